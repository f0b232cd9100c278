"""`StoreContract`: what every store must do, as tests that any test runner can find."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from suture.errors import ConfigError
from suture.stores import Store, StoreConflictError
from suture.testing._checks import anything, refused, same

__all__ = ["StoreContract"]

ODD_IDS = ("ä b", "'; DROP TABLE runs; --", "%", "_", "A", "a", "a%", "\0", "\n", "日本", "/", "//", "x" * 2000)


class StoreContract(ABC):
    """The tests of a store. Inherit, say how a store is made, and let pytest or unittest find the tests.

    `make_store` gives a new, empty store each time it is called.

    >>> from suture.stores import MemoryStore
    >>> from suture.testing import StoreContract
    >>> class TestMemoryStore(StoreContract):
    ...     def make_store(self):
    ...         return MemoryStore()
    >>> TestMemoryStore().test_records_come_back_in_order()
    """

    @abstractmethod
    def make_store(self) -> Store:
        """Return a new, empty store."""

    def test_an_unknown_run_has_no_records(self) -> None:
        """Loading what was never written is no error."""
        same(asyncio.run(self.make_store().load("never")), [])

    def test_records_come_back_in_order(self) -> None:
        """Records written one by one and several at once are one journal."""

        async def use(store: Store) -> None:
            await store.append("run", 0, [b"0"])
            await store.append("run", 1, [b"1"])
            await store.append("run", 2, [b"2", b"3", b"4"])
            await store.append("run", 5, (b"5",))
            same(await store.load("run"), [b"0", b"1", b"2", b"3", b"4", b"5"])

        asyncio.run(use(self.make_store()))

    def test_any_bytes_come_back_as_they_were(self) -> None:
        """Empty records, all byte values and large records are kept exactly."""

        async def use(store: Store) -> None:
            records = [b"", bytes(range(256)), b"\0", b"x" * 3_000_000, b"after"]
            await store.append("run", 0, records)
            await store.append("run", 5, [b""])
            same(await store.load("run"), [*records, b""])

        asyncio.run(use(self.make_store()))

    def test_to_append_nothing_does_nothing(self) -> None:
        """An append of no records makes no run."""

        async def use(store: Store) -> None:
            await store.append("run", 0, [])
            same(await store.runs(), [])

        asyncio.run(use(self.make_store()))

    def test_a_number_that_is_taken_is_a_conflict(self) -> None:
        """Nothing of the append is written, also not the records behind the one that is there."""

        async def use(store: Store) -> None:
            await store.append("run", 0, [b"0", b"1"])
            for first, records in ((0, [b"x"]), (1, [b"x"]), (0, [b"x"] * 3), (1, [b"x"] * 3)):
                conflict = await refused(store.append("run", first, records), StoreConflictError)
                same((conflict.run, conflict.given, conflict.expected), ("run", first, 2))
            same(await store.load("run"), [b"0", b"1"])
            await store.append("run", 2, [b"2"])

        asyncio.run(use(self.make_store()))

    def test_a_gap_is_a_conflict(self) -> None:
        """Nothing is written behind a gap, whether the run is known or not."""

        async def use(store: Store) -> None:
            for records in ([b"x"], [b"x", b"y"]):
                conflict = await refused(store.append("new", 1, records), StoreConflictError)
                same((conflict.given, conflict.expected), (1, 0))
            same(await store.runs(), [])
            await store.append("run", 0, [b"0"])
            for records in ([b"x"], [b"x", b"y"]):
                conflict = await refused(store.append("run", 2, records), StoreConflictError)
                same((conflict.given, conflict.expected), (2, 1))
            same(await store.load("run"), [b"0"])

        asyncio.run(use(self.make_store()))

    def test_what_was_given_and_what_was_loaded_may_be_changed(self) -> None:
        """The store shares no list with its callers."""

        async def use(store: Store) -> None:
            given = [b"0"]
            await store.append("run", 0, given)
            given.append(b"x")
            (await store.load("run")).append(b"y")
            same(await store.load("run"), [b"0"])

        asyncio.run(use(self.make_store()))

    def test_any_text_is_the_id_of_a_run(self) -> None:
        """Ids are compared exactly, and mean nothing but nesting."""

        async def use(store: Store) -> None:
            for run in ODD_IDS:
                await store.append(run, 0, [run.encode()])
                await store.append(run, 1, [b"1"])
            same(sorted(await store.runs()), sorted(ODD_IDS))
            for run in ODD_IDS:
                same(await store.load(run), [run.encode(), b"1"])

        asyncio.run(use(self.make_store()))

    def test_a_run_is_deleted_with_those_nested_in_it(self) -> None:
        """Runs whose ids only look alike stay."""

        async def use(store: Store) -> None:
            gone = ["a", "a/", "a/b", "a/b/c", "a/%", "a/\U0010ffff"]
            kept = ["A", "a0", "a.", "a%", "ab", "ab/c", "b", "b/a/c", "a\0", "%"]
            for run in [*gone, *kept]:
                await store.append(run, 0, [b"0", b"1"])
            await store.delete("a")
            same(sorted(await store.runs()), sorted(kept))
            same([record for run in gone for record in await store.load(run)], [])
            same([await store.load(run) for run in kept], [[b"0", b"1"]] * len(kept))

        asyncio.run(use(self.make_store()))

    def test_a_run_may_be_deleted_that_is_not_there(self) -> None:
        """Nested runs go even if the outer one was never written."""

        async def use(store: Store) -> None:
            await store.append("a/b", 0, [b"0"])
            await store.delete("never")
            same(await store.runs(), ["a/b"])
            await store.delete("a")
            same(await store.runs(), [])

        asyncio.run(use(self.make_store()))

    def test_a_deleted_run_begins_anew(self) -> None:
        """Whoever still writes the old one is told."""

        async def use(store: Store) -> None:
            await store.append("run", 0, [b"0", b"1"])
            await store.delete("run")
            await refused(store.append("run", 2, [b"2"]), StoreConflictError)
            await store.append("run", 0, [b"new"])
            same(await store.load("run"), [b"new"])

        asyncio.run(use(self.make_store()))

    def test_runs_are_listed_with_the_last_change_first(self) -> None:
        """Reading a run, or failing to write it, is no change."""

        async def use(store: Store) -> None:
            for run in ("a", "b", "c"):
                await store.append(run, 0, [b"0"])
            same(await store.runs(), ["c", "b", "a"])
            await store.append("a", 1, [b"1"])
            same(await store.runs(), ["a", "c", "b"])
            await store.load("b")
            await refused(store.append("b", 5, [b"5"]), StoreConflictError)
            await store.append("b", 1, [])
            same(await store.runs(), ["a", "c", "b"])

        asyncio.run(use(self.make_store()))

    def test_runs_expire(self) -> None:
        """Only those that have not changed for so long."""

        async def use(store: Store) -> None:
            same(await store.expire(0), 0)
            for run in ("a", "a/b", "c"):
                await store.append(run, 0, [b"0"])
            same(await store.expire(3600), 0)
            same(await store.runs(), ["c", "a/b", "a"])
            same(await store.expire(0), 3)
            same(await store.runs(), [])
            same(await store.load("a"), [])

        asyncio.run(use(self.make_store()))

    def test_of_tasks_that_write_the_same_number_one_wins(self) -> None:
        """The others are told, and nothing of theirs is written."""

        async def use(store: Store) -> None:
            writers = [store.append("run", 0, [b"%d" % number] * 2) for number in range(20)]
            results = await asyncio.gather(*writers, return_exceptions=True)
            winners = [number for number, result in enumerate(results) if result is None]
            same(len(winners), 1)
            same([type(result) for result in results if result is not None], [StoreConflictError] * 19)
            same(await store.load("run"), [b"%d" % winners[0]] * 2)

        asyncio.run(use(self.make_store()))

    def test_tasks_write_their_own_runs_side_by_side(self) -> None:
        """Each journal is as its writer wrote it."""

        async def use(store: Store) -> None:
            await asyncio.gather(*(_write(store, f"run-{number}", 20) for number in range(20)))
            for number in range(20):
                same(await store.load(f"run-{number}"), _written(f"run-{number}", 20))

        asyncio.run(use(self.make_store()))

    def test_threads_with_event_loops_of_their_own_share_a_store(self) -> None:
        """Each journal is as its writer wrote it."""
        store = self.make_store()

        def write(number: int) -> list[bytes]:
            asyncio.run(_write(store, f"run-{number}", 50))
            return asyncio.run(store.load(f"run-{number}"))

        with ThreadPoolExecutor(8) as threads:
            journals = list(threads.map(write, range(8)))
        same(journals, [_written(f"run-{number}", 50) for number in range(8)])

    def test_a_cancelled_append_is_written_whole_or_raises(self) -> None:
        """Whoever sees it raise can rely on nothing being there."""

        async def use(store: Store) -> None:
            for turns in range(8):
                run = f"run-{turns}"
                outcome: list[str] = []

                async def write(run: str, outcome: list[str]) -> None:
                    await store.append(run, 0, [b"0", b"1"])
                    outcome.append("returned")

                task = asyncio.ensure_future(write(run, outcome))
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                same(await store.load(run), [b"0", b"1"] if outcome else [])
                await store.append(run, 2 if outcome else 0, [b"next"])

        asyncio.run(use(self.make_store()))

    def test_what_makes_no_sense_is_refused(self) -> None:
        """A wrong argument is the caller's fault, and says so."""
        store = self.make_store()
        wrong: list[Any] = [
            lambda: store.append("", 0, [b"0"]),
            lambda: store.append(anything(7), 0, [b"0"]),
            lambda: store.append("\ud800", 0, [b"0"]),
            lambda: store.append("run", -1, [b"0"]),
            lambda: store.append("run", anything("0"), [b"0"]),
            lambda: store.append("run", anything(True), [b"0"]),  # noqa: FBT003 - the wrong argument
            lambda: store.append("run", 2**32, [b"0"]),
            lambda: store.append("run", 0, anything(["text"])),
            lambda: store.append("run", 0, [b"0", anything(bytearray(b"1"))]),
            lambda: store.load(""),
            lambda: store.delete(""),
            lambda: store.expire(-1),
            lambda: store.expire(float("nan")),
        ]

        async def use(call: Callable[[], Coroutine[Any, Any, Any]]) -> None:
            await refused(call(), ConfigError)
            same(await store.runs(), [])

        for call in wrong:
            asyncio.run(use(call))


async def _write(store: Store, run: str, appends: int) -> None:
    first = 0
    for records in _batches(run, appends):
        await store.append(run, first, records)
        first += len(records)


def _batches(run: str, appends: int) -> list[Sequence[bytes]]:
    return [[f"{run} {number} {part}".encode() for part in range(number % 3 + 1)] for number in range(appends)]


def _written(run: str, appends: int) -> list[bytes]:
    return [record for records in _batches(run, appends) for record in records]
