"""A harbour to talk to, in a directory of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.chat.harbour import Harbour


@pytest.fixture
def harbour(tmp_path: Path) -> Iterator[Harbour]:
    made = Harbour(tmp_path)
    yield made
    made.close()
