"""Both stores keep the contract, and the contract bites."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from suture.stores import MemoryStore, SQLiteStore, Store, StoreConflictError
from suture.testing import StoreContract


class TestMemoryStore(StoreContract):
    def make_store(self) -> Store:
        return MemoryStore()


class TestSQLiteStore(StoreContract):
    @pytest.fixture(autouse=True)
    def _directory(self, tmp_path: Path):
        self.directory, self.stores = tmp_path, list[SQLiteStore]()
        yield
        for store in self.stores:
            store.close()

    def make_store(self) -> Store:
        self.stores.append(SQLiteStore(self.directory / f"{len(self.stores)}.db"))
        return self.stores[-1]


class TestSQLiteStoreThatWaitsForTheDisk(TestSQLiteStore):
    def make_store(self) -> Store:
        self.stores.append(SQLiteStore(self.directory / f"{len(self.stores)}.db", synchronous="full"))
        return self.stores[-1]


class Overwriting(MemoryStore):
    """A store that lets a second writer overwrite the first."""

    async def append(self, run: str, first: int, records: Sequence[bytes]) -> None:
        try:
            await super().append(run, first, records)
        except StoreConflictError:
            self._journals[run][first:] = records


class Broken(StoreContract):
    def make_store(self) -> Store:
        return Overwriting()


def test_a_store_that_overwrites_breaks_the_contract():
    with pytest.raises(AssertionError, match="no StoreConflictError was raised"):
        Broken().test_a_number_that_is_taken_is_a_conflict()
    with pytest.raises(AssertionError):
        Broken().test_of_tasks_that_write_the_same_number_one_wins()
