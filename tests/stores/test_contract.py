"""Both stores keep the contract, and the contract bites."""

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Literal

import pytest

from suture.stores import DamagedJournalError, EncryptedStore, MemoryStore, SQLiteStore, Store, StoreConflictError
from suture.testing import StoreContract


class TestMemoryStore(StoreContract):
    def make_store(self) -> Store:
        return MemoryStore()


class TestEncryptedStore(StoreContract):
    def make_store(self) -> Store:
        return EncryptedStore(MemoryStore(), b"k" * 32)

    def damage(self, store: Store, run: str, number: int) -> bool:
        assert isinstance(store, EncryptedStore)
        assert isinstance(store.store, MemoryStore)
        for records in store.store._tables.journals.values():  # a fork has a list of its own
            records[number] = records[number][:-1] + bytes([records[number][-1] ^ 1])
        return True


def test_a_record_that_was_moved_or_encrypted_with_another_key_is_damaged():
    async def scene() -> None:
        inner = MemoryStore()
        store = EncryptedStore(inner, b"k" * 16)
        await store.append("run", 0, [b"pay 1", b"pay 2"])
        assert await EncryptedStore(inner, b"n" * 16, b"k" * 16).load("run") == [b"pay 1", b"pay 2"]
        with pytest.raises(DamagedJournalError):
            await EncryptedStore(inner, b"n" * 16).load("run")
        inner._tables.journals["run"].reverse()
        with pytest.raises(DamagedJournalError):
            await store.load("run")

    asyncio.run(scene())


class TestSQLiteStore(StoreContract):
    synchronous: Literal["normal", "full"] = "normal"

    @pytest.fixture(autouse=True)
    def _directory(self, tmp_path: Path):
        self.directory, self.stores = tmp_path, list[SQLiteStore]()
        yield
        for store in self.stores:
            store.close()

    def make_store(self) -> Store:
        return self.open(self.directory / f"{len(self.stores)}.db")

    def make_another(self, store: Store) -> Store:
        assert isinstance(store, SQLiteStore)
        return self.open(Path(store.path))

    def damage(self, store: Store, run: str, number: int) -> bool:
        assert isinstance(store, SQLiteStore)
        with closing(sqlite3.connect(store.path)) as other:
            other.execute("UPDATE records SET body = x'00' WHERE key & 4294967295 = ?", (number,))
            other.commit()
        return True

    def open(self, path: Path) -> SQLiteStore:
        self.stores.append(SQLiteStore(path, synchronous=self.synchronous, busy_timeout=60))
        return self.stores[-1]


class TestSQLiteStoreThatWaitsForTheDisk(TestSQLiteStore):
    synchronous = "full"


class Overwriting(MemoryStore):
    """A store that lets a second writer overwrite the first."""

    async def append(self, run: str, first: int, records: Sequence[bytes], *, owner: str | None = None) -> None:
        try:
            await super().append(run, first, records, owner=owner)
        except StoreConflictError:
            self._tables._change(run)[first:] = records


class Broken(StoreContract):
    def make_store(self) -> Store:
        return Overwriting()


def test_a_store_that_overwrites_breaks_the_contract():
    with pytest.raises(AssertionError, match=r"MemoryStore gives .*StoreConflictError.*this gives None; after "):
        Broken().test_it_does_what_a_memory_store_does()
    with pytest.raises(AssertionError):
        Broken().test_of_tasks_that_write_the_same_number_one_wins()


class Unordered(MemoryStore):
    """A store that has no queue: whoever waits has to ask again."""

    async def acquire(self, run: str, owner: str, seconds: float, *, queue: bool = False) -> bool:
        return await super().acquire(run, owner, seconds)


class Hurried(StoreContract):
    def make_store(self) -> Store:
        return Unordered()


def test_a_store_without_a_queue_breaks_the_contract_and_does_not_hang_it():
    with pytest.raises(AssertionError, match="expected 'alive', found ''"):
        Hurried().test_a_lease_that_is_not_renewed_runs_out()
