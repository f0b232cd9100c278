"""What the tests of replies share with those of models."""

from tests.models.conftest import surroundings

__all__ = ["surroundings"]
