"""Stores that come with Suture, and one of your own with its tests."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import assert_type

from suture import ChatModelAgent, Message
from suture.stores import Entry, Lease, LeaseError, MemoryStore, SQLiteStore, Store, StoreConflictError
from suture.testing import ScriptedModel, StoreContract


class DictStore:
    """A store of your own."""

    def __init__(self) -> None:
        self.journals: dict[str, list[bytes]] = {}
        self.changed: dict[str, float] = {}
        self.keys: dict[tuple[str, str], int] = {}
        self.owners: dict[str, str] = {}

    async def append(self, run: str, first: int, records: Sequence[bytes], *, owner: str | None = None) -> None:
        if owner is not None and self.owners.get(run, owner) != owner:
            raise LeaseError(run, owner, self.owners[run])
        journal = self.journals.setdefault(run, [])
        if first != len(journal):
            raise StoreConflictError(run, given=first, expected=len(journal))
        journal.extend(records)
        self.changed[run] = time.time()

    async def claim(self, run: str, key: str, record: bytes) -> Entry:
        length = len(self.journals.get(run, []))
        number = self.keys.setdefault((run, key), length)
        if number == length:
            await self.append(run, number, [record])
        return Entry(number, self.journals[run][number])

    async def load(self, run: str, first: int = 0) -> list[bytes]:
        return self.journals.get(run, [])[first:]

    async def fork(self, run: str, position: int, new_run: str) -> None:
        await self.append(new_run, 0, self.journals[run][:position])

    async def delete(self, run: str) -> None:
        for each in [each for each in self.journals if each == run or each.startswith(f"{run}/")]:
            del self.journals[each], self.changed[each]

    async def runs(self) -> list[str]:
        return sorted(self.journals, key=self.changed.__getitem__, reverse=True)

    async def expire(self, seconds: float) -> int:
        old = [run for run, changed in self.changed.items() if changed <= time.time() - seconds]
        for run in old:
            await self.delete(run)
        return len(old)

    async def replace(self, run: str, length: int, records: Sequence[bytes], *, owner: str | None = None) -> None:
        journal = self.journals.get(run, [])
        if length != len(journal):
            raise StoreConflictError(run, given=length, expected=len(journal))
        journal[:] = records

    async def acquire(self, run: str, owner: str, seconds: float, *, queue: bool = False) -> bool:
        return self.owners.setdefault(run, owner) == owner

    async def renew(self, run: str, owner: str, seconds: float) -> bool:
        return self.owners.get(run) == owner

    async def release(self, run: str, owner: str) -> None:
        if self.owners.get(run) == owner:
            del self.owners[run]

    async def lease(self, run: str) -> Lease | None:
        return Lease(self.owners[run], 1.0) if run in self.owners else None


class ExplicitStore(Store):
    """One that says so, and passes everything on."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner

    async def append(self, run: str, first: int, records: Sequence[bytes], *, owner: str | None = None) -> None:
        await self.inner.append(run, first, records, owner=owner)

    async def claim(self, run: str, key: str, record: bytes) -> Entry:
        return await self.inner.claim(run, key, record)

    async def load(self, run: str, first: int = 0) -> list[bytes]:
        return await self.inner.load(run, first)

    async def fork(self, run: str, position: int, new_run: str) -> None:
        await self.inner.fork(run, position, new_run)

    async def delete(self, run: str) -> None:
        await self.inner.delete(run)

    async def runs(self) -> list[str]:
        return await self.inner.runs()

    async def expire(self, seconds: float) -> int:
        return await self.inner.expire(seconds)

    async def acquire(self, run: str, owner: str, seconds: float, *, queue: bool = False) -> bool:
        return await self.inner.acquire(run, owner, seconds, queue=queue)

    async def replace(self, run: str, length: int, records: Sequence[bytes], *, owner: str | None = None) -> None:
        await self.inner.replace(run, length, records, owner=owner)

    async def renew(self, run: str, owner: str, seconds: float) -> bool:
        return await self.inner.renew(run, owner, seconds)

    async def release(self, run: str, owner: str) -> None:
        await self.inner.release(run, owner)

    async def lease(self, run: str) -> Lease | None:
        return await self.inner.lease(run)


class TestDictStore(StoreContract):
    def make_store(self) -> Store:
        return DictStore()


async def use(store: Store) -> None:
    agent = ChatModelAgent(name="keeper", model=ScriptedModel(["hello", "again"]), checkpoint_store=store)
    await agent.run("hi", checkpoint_id="c1")
    result = await agent.run("and?", checkpoint_id="c1")
    assert [message.content for message in result.messages] == ["hi", "hello", "and?", "again"]
    assert_type(await store.load("c1"), list[bytes])
    assert_type(await store.runs(), list[str])
    assert_type(await store.expire(3600), int)
    assert_type(await store.claim("c1", "key", b"record"), Entry)
    assert_type(await store.lease("c1"), Lease | None)
    await store.fork("c1", 1, "c2")
    await store.delete("c2")
    await store.delete("c1")
    assert await store.runs() == []


async def main() -> None:
    for store in (MemoryStore(), DictStore(), ExplicitStore(DictStore())):
        await use(store)
    with TemporaryDirectory() as folder, SQLiteStore(Path(folder) / "runs.db") as database:
        assert_type(database, SQLiteStore)
        await use(database)
    keeper = ChatModelAgent(name="keeper", model=ScriptedModel([Message.assistant("hi")]), checkpoint_store=DictStore())
    await keeper.run("hi", checkpoint_id="c1")


if __name__ == "__main__":
    asyncio.run(main())
    TestDictStore().test_any_bytes_come_back_as_they_were()
