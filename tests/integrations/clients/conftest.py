"""What the tests of clients share with those of models."""

from tests.models.conftest import surroundings

__all__ = ["surroundings"]
