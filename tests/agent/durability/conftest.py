"""Every journal test runs on both stores."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from suture.stores import MemoryStore, SQLiteStore


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryStore | SQLiteStore]:
    """Return an empty store, of each kind."""
    if request.param == "memory":
        yield MemoryStore()
        return
    with SQLiteStore(tmp_path / "runs.db") as made:
        yield made
