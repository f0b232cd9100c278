"""`StoreContract`: what every store must do, as tests that any test runner can find."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from typing import Any

from suture.errors import ConfigError
from suture.stores import DamagedJournalError, Entry, LeaseError, Store, StoreConflictError
from suture.testing.checks import anything, ensure, refused, run_with, same

with_store = run_with("make_store")

ODD_IDS = ("ä b", "'; DROP TABLE runs; --", "%", "_", "A", "a", "a%", "\0", "\n", "日本", "/", "//", "x" * 2000)


class StoreContract(ABC):
    """The tests of a store. Inherit, say how a store is made, and let pytest or unittest find the tests.

    `make_store` gives a new, empty store each time it is called. The others are for stores that can do more:
    `make_another` gives a second store with the same journals, as another process would have it, `crash` kills what
    is behind a store and starts it again, and `damage` changes a record behind its back.

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

    def make_another(self, store: Store) -> Store:
        """Return another store with the same journals; without a second one, the same."""
        return store

    def crash(self, store: Store) -> None:  # noqa: B027 - most have nothing to kill
        """Kill what is behind a store, as a loss of power would, and start it again, if there is anything."""

    def damage(self, store: Store, run: str, number: int) -> bool:
        """Change the bytes of a record, if that can be done; return whether it was."""
        return False

    def test_an_unknown_run_has_no_records(self) -> None:
        """Loading what was never written is no error."""
        same(asyncio.run(self.make_store().load("never")), [])

    @with_store
    async def test_records_come_back_in_order(self, store: Store) -> None:
        """Records written one by one and several at once are one journal."""
        await store.append("run", 0, [b"0"])
        await store.append("run", 1, [b"1"])
        await store.append("run", 2, [b"2", b"3", b"4"])
        await store.append("run", 5, (b"5",))
        same(await store.load("run"), [b"0", b"1", b"2", b"3", b"4", b"5"])

    @with_store
    async def test_any_bytes_come_back_as_they_were(self, store: Store) -> None:
        """Empty records, all byte values and large records are kept exactly."""
        records = [b"", bytes(range(256)), b"\0", b"x" * 3_000_000, b"after"]
        await store.append("run", 0, records)
        await store.append("run", 5, [b""])
        same(await store.load("run"), [*records, b""])

    @with_store
    async def test_to_append_nothing_does_nothing(self, store: Store) -> None:
        """An append of no records makes no run."""
        await store.append("run", 0, [])
        same(await store.runs(), [])

    @with_store
    async def test_a_number_that_is_taken_is_a_conflict(self, store: Store) -> None:
        """Nothing of the append is written, also not the records behind the one that is there."""
        await store.append("run", 0, [b"0", b"1"])
        for first, records in ((0, [b"x"]), (1, [b"x"]), (0, [b"x"] * 3), (1, [b"x"] * 3)):
            conflict = await refused(store.append("run", first, records), StoreConflictError)
            same((conflict.run, conflict.given, conflict.expected), ("run", first, 2))
        same(await store.load("run"), [b"0", b"1"])
        await store.append("run", 2, [b"2"])

    @with_store
    async def test_a_gap_is_a_conflict(self, store: Store) -> None:
        """Nothing is written behind a gap, whether the run is known or not."""
        for records in ([b"x"], [b"x", b"y"]):
            conflict = await refused(store.append("new", 1, records), StoreConflictError)
            same((conflict.given, conflict.expected), (1, 0))
        same(await store.runs(), [])
        await store.append("run", 0, [b"0"])
        for records in ([b"x"], [b"x", b"y"]):
            conflict = await refused(store.append("run", 2, records), StoreConflictError)
            same((conflict.given, conflict.expected), (2, 1))
        same(await store.load("run"), [b"0"])

    @with_store
    async def test_what_was_given_and_what_was_loaded_may_be_changed(self, store: Store) -> None:
        """The store shares no list with its callers."""
        given = [b"0"]
        await store.append("run", 0, given)
        given.append(b"x")
        (await store.load("run")).append(b"y")
        same(await store.load("run"), [b"0"])

    @with_store
    async def test_any_text_is_the_id_of_a_run(self, store: Store) -> None:
        """Ids are compared exactly, and mean nothing but nesting."""
        for run in ODD_IDS:
            await store.append(run, 0, [run.encode()])
            await store.append(run, 1, [b"1"])
        same(sorted(await store.runs()), sorted(ODD_IDS))
        for run in ODD_IDS:
            same(await store.load(run), [run.encode(), b"1"])

    @with_store
    async def test_a_run_is_deleted_with_those_nested_in_it(self, store: Store) -> None:
        """Runs whose ids only look alike stay."""
        gone = ["a", "a/", "a/b", "a/b/c", "a/%", "a/\U0010ffff"]
        kept = ["A", "a0", "a.", "a%", "ab", "ab/c", "b", "b/a/c", "a\0", "%"]
        for run in [*gone, *kept]:
            await store.append(run, 0, [b"0", b"1"])
        await store.delete("a")
        same(sorted(await store.runs()), sorted(kept))
        same([record for run in gone for record in await store.load(run)], [])
        same([await store.load(run) for run in kept], [[b"0", b"1"]] * len(kept))

    @with_store
    async def test_a_run_may_be_deleted_that_is_not_there(self, store: Store) -> None:
        """Nested runs go even if the outer one was never written."""
        await store.append("a/b", 0, [b"0"])
        await store.delete("never")
        same(await store.runs(), ["a/b"])
        await store.delete("a")
        same(await store.runs(), [])

    @with_store
    async def test_a_deleted_run_begins_anew(self, store: Store) -> None:
        """Whoever still writes the old one is told."""
        await store.append("run", 0, [b"0", b"1"])
        await store.delete("run")
        await refused(store.append("run", 2, [b"2"]), StoreConflictError)
        await store.append("run", 0, [b"new"])
        same(await store.load("run"), [b"new"])

    @with_store
    async def test_runs_are_listed_with_the_last_change_first(self, store: Store) -> None:
        """Reading a run, or failing to write it, is no change."""
        for run in ("a", "b", "c"):
            await store.append(run, 0, [b"0"])
        same(await store.runs(), ["c", "b", "a"])
        await store.append("a", 1, [b"1"])
        same(await store.runs(), ["a", "c", "b"])
        await store.load("b")
        await refused(store.append("b", 5, [b"5"]), StoreConflictError)
        await store.append("b", 1, [])
        same(await store.runs(), ["a", "c", "b"])

    @with_store
    async def test_runs_expire(self, store: Store) -> None:
        """Only those that have not changed for so long."""
        same(await store.expire(0), 0)
        for run in ("a", "a/b", "c"):
            await store.append(run, 0, [b"0"])
        same(await store.expire(3600), 0)
        same(await store.runs(), ["c", "a/b", "a"])
        same(await store.expire(0), 3)
        same(await store.runs(), [])
        same(await store.load("a"), [])

    @with_store
    async def test_of_tasks_that_write_the_same_number_one_wins(self, store: Store) -> None:
        """The others are told, and nothing of theirs is written."""
        writers = [store.append("run", 0, [b"%d" % number] * 2) for number in range(20)]
        results = await asyncio.gather(*writers, return_exceptions=True)
        winners = [number for number, result in enumerate(results) if result is None]
        same(len(winners), 1)
        same([type(result) for result in results if result is not None], [StoreConflictError] * 19)
        same(await store.load("run"), [b"%d" % winners[0]] * 2)

    @with_store
    async def test_tasks_write_their_own_runs_side_by_side(self, store: Store) -> None:
        """Each journal is as its writer wrote it."""
        await asyncio.gather(*(_write(store, f"run-{number}", 20) for number in range(20)))
        for number in range(20):
            same(await store.load(f"run-{number}"), _written(f"run-{number}", 20))

    def test_threads_with_event_loops_of_their_own_share_a_store(self) -> None:
        """Each journal is as its writer wrote it."""
        store = self.make_store()

        def write(number: int) -> list[bytes]:
            asyncio.run(_write(store, f"run-{number}", 50))
            return asyncio.run(store.load(f"run-{number}"))

        with ThreadPoolExecutor(8) as threads:
            journals = list(threads.map(write, range(8)))
        same(journals, [_written(f"run-{number}", 50) for number in range(8)])

    @with_store
    async def test_a_cancelled_append_is_written_whole_or_raises(self, store: Store) -> None:
        """Whoever sees it raise can rely on nothing being there."""
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

    @with_store
    async def test_a_run_is_loaded_from_a_number_on(self, store: Store) -> None:
        """Whoever has read a part of it reads the rest."""
        records = [b"%d" % number for number in range(7)]
        await store.append("run", 0, records)
        for first in range(10):
            same(await store.load("run", first), records[first:])
        same(await store.load("never", 3), [])

    # --- keys ---------------------------------------------------------------------------------

    @with_store
    async def test_of_the_records_under_a_key_the_first_is_kept(self, store: Store) -> None:
        """It is a record like any other. Each run has keys of its own."""
        await store.append("run", 0, [b"0"])
        same(await store.claim("run", "call/1", b"1"), Entry(1, b"1"))
        for record in (b"1", b"another", b""):
            same(await store.claim("run", "call/1", record), Entry(1, b"1"))
        await store.append("run", 2, [b"2"])
        for number, key in enumerate(ODD_IDS, 3):
            same(await store.claim("run", key, key.encode()), Entry(number, key.encode()))
        same(await store.load("run"), [b"0", b"1", b"2", *(key.encode() for key in ODD_IDS)])
        await refused(store.append("run", 3, [b"3"]), StoreConflictError)
        same(await store.claim("other", "call/1", b"other"), Entry(0, b"other"))
        same(await store.runs(), ["other", "run"])

    @with_store
    async def test_a_deleted_run_has_no_keys(self, store: Store) -> None:
        """They begin anew with it."""
        await store.claim("run", "key", b"old")
        await store.delete("run")
        await store.append("run", 0, [b"0"])
        same(await store.claim("run", "key", b"new"), Entry(1, b"new"))

    @with_store
    async def test_of_tasks_that_claim_a_key_one_wins_and_all_get_its_record(self, store: Store) -> None:
        """Also if they use two stores, and next to others that claim other keys of the run."""
        another = self.make_another(store)
        claims = [one.claim("run", f"{n % 5}", f"{n}".encode()) for n in range(30) for one in (store, another)]
        entries = await asyncio.gather(*claims)
        same(len(set(entries)), 5)
        same(sorted(entry.number for entry in set(entries)), [0, 1, 2, 3, 4])
        same(await store.load("run"), [entry.record for entry in sorted(set(entries))])
        for place, entry in enumerate(entries):
            ensure(int(entry.record) % 5 == place // 2 % 5)

    @with_store
    async def test_a_cancelled_claim_is_whole_or_not_there(self, store: Store) -> None:
        """Whoever tries again gets what is there, and it is there once."""
        for turns in range(8):
            task = asyncio.ensure_future(store.claim(f"run-{turns}", "key", b"first"))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            entry = await store.claim(f"run-{turns}", "key", b"again")
            same(entry.number, 0)
            same(await store.load(f"run-{turns}"), [entry.record])

    # --- leases -----------------------------------------------------------------------------------

    @with_store
    async def test_a_lease_has_one_holder(self, store: Store) -> None:
        """Others cannot take it, renew it or give it back; whoever holds it can. A run need not be there."""
        another = self.make_another(store)
        for run in ("run", *ODD_IDS):
            same(await store.lease(run), None)
            ensure(await store.acquire(run, "a", 3600))
            ensure(not await another.acquire(run, "b", 3600))
            ensure(not await another.renew(run, "b", 3600))
            await another.release(run, "b")
            ensure(await store.acquire(run, "a", 3600))
            ensure(await store.renew(run, "a", 9000))
            lease = await another.lease(run)
            same((lease and lease.owner, lease and 3600 < lease.seconds <= 9000), ("a", True))
            await store.release(run, "a")
            ensure(await another.acquire(run, "b", 3600))
            ensure(not await store.renew(run, "a", 3600))
        same(await store.runs(), [])

    @with_store
    async def test_a_lease_that_is_not_renewed_runs_out(self, store: Store) -> None:
        """By the clock of the store, so that a dead process holds up nobody."""
        ensure(await store.acquire("run", "dead", 0.01))
        while await store.lease("run") is not None:  # noqa: ASYNC110 - a store does not say when
            await asyncio.sleep(0.01)  # between two questions; nothing relies on it
        ensure(not await store.renew("run", "dead", 3600))
        ensure(await store.acquire("run", "alive", 3600))
        await refused(store.append("run", 0, [b"late"], owner="dead"), LeaseError)
        await store.append("run", 0, [b"0"], owner="alive")
        same(await store.load("run"), [b"0"])

    @with_store
    async def test_who_says_who_it_is_writes_only_with_the_lease(self, store: Store) -> None:
        """Nothing of a refused append is there. Who does not say may write, and so may anybody without a lease."""
        await store.append("run", 0, [b"0"], owner="b")
        ensure(await store.acquire("run", "a", 3600))
        for records in ([b"x"], [b"x", b"y"]):
            error = await refused(store.append("run", 1, records, owner="b"), LeaseError)
            same((error.run, error.owner, error.holder), ("run", "b", "a"))
        await store.append("run", 1, [b"1"], owner="a")
        await store.append("run", 2, [b"2"])
        same(await store.claim("run", "key", b"3"), Entry(3, b"3"))
        await refused(store.append("run", 1, [b"x"], owner="a"), StoreConflictError)
        await store.append("other", 0, [b"0"], owner="b")
        await store.release("run", "a")
        await store.append("run", 4, [b"4"], owner="b")
        same(await store.load("run"), [b"0", b"1", b"2", b"3", b"4"])

    @with_store
    async def test_of_tasks_that_want_a_lease_one_gets_it(self, store: Store) -> None:
        """Also if they use two stores."""
        another = self.make_another(store)
        wishes = [one.acquire("run", f"{n}", 3600) for n, one in enumerate([store, another] * 10)]
        taken = await asyncio.gather(*wishes)
        same(taken.count(True), 1)
        lease = await store.lease("run")
        same(lease and lease.owner, f"{taken.index(True)}")

    @with_store
    async def test_who_waits_for_a_lease_gets_it_in_the_order_of_arrival(self, store: Store) -> None:
        """Whatever store they use; asking again keeps a place, and who gave up or did not come back is passed over."""
        another = self.make_another(store)
        ensure(await store.acquire("run", "a", 3600, queue=True))
        waiting = ["b", "c", "d", "e"]
        for place, owner in enumerate(waiting):
            ensure(
                not await (store, another)[place % 2].acquire("run", owner, 0.01 if owner == "c" else 3600, queue=True)
            )
        for owner in ("e", "b", "d"):
            ensure(not await another.acquire("run", owner, 3600, queue=True))
            ensure(await another.renew("run", owner, 3600))
        ensure(not await store.acquire("run", "x", 3600))
        await another.release("run", "d")
        for before, owner in (("a", "b"), ("b", "e")):
            await store.release("run", before)
            while getattr(await another.lease("run"), "owner", "") != owner:  # noqa: ASYNC110 - a store does not say when
                await asyncio.sleep(0.01)  # until the time of c is over; nothing else relies on it
            ensure(not await store.acquire("run", "x", 3600))
            await refused(store.append("run", 0, [b"x"], owner="x"), LeaseError)
            ensure(await store.acquire("run", owner, 3600, queue=True))
        await store.append("run", 0, [b"0"], owner="e")
        await store.release("run", "e")
        ensure(await another.acquire("run", "x", 3600))

    @with_store
    async def test_a_run_whose_lease_is_held_does_not_expire(self, store: Store) -> None:
        """It goes once the lease is given back, and deleted at any time, with its lease."""
        for run in ("a", "b"):
            await store.append(run, 0, [b"0"])
        await store.acquire("a", "owner", 3600)
        same(await store.expire(0), 1)
        same(await store.runs(), ["a"])
        await store.release("a", "owner")
        same(await store.expire(0), 1)
        for run in ("c", "c/d"):
            await store.acquire(run, "owner", 3600)
        await store.acquire("cd", "owner", 3600)
        await store.delete("c")
        same([await store.lease(run) for run in ("c", "c/d")], [None, None])
        ensure(await store.lease("cd"))

    # --- forks ------------------------------------------------------------------------------------

    @with_store
    async def test_a_fork_begins_with_the_records_below_a_position(self, store: Store) -> None:
        """Then both go on on their own."""
        records = [b"%d" % number for number in range(5)]
        await store.append("run", 0, records)
        for position in range(1, 6):
            await store.fork("run", position, f"fork-{position}")
        await store.append("run", 5, [b"5", b"6"])
        for position in range(1, 6):
            same(await store.load(f"fork-{position}"), records[:position])
            await refused(store.append(f"fork-{position}", position - 1, [b"x"]), StoreConflictError)
            await store.append(f"fork-{position}", position, [b"own"])
            await store.append(f"fork-{position}", position + 1, [b"more", b"more"])
            for first in range(9):
                expected = [*records[:position], b"own", b"more", b"more"][first:]
                same(await store.load(f"fork-{position}", first), expected)
        same(await store.load("run"), [*records, b"5", b"6"])
        same((await store.runs())[::5], ["fork-5", "run"])

    @with_store
    async def test_a_fork_has_the_keys_of_its_records(self, store: Store) -> None:
        """Keys of later records are free in it."""
        for number in range(4):
            await store.claim("run", f"{number}", b"run")
        await store.fork("run", 2, "fork")
        same(await store.claim("fork", "1", b"fork"), Entry(1, b"run"))
        same(await store.claim("fork", "3", b"fork"), Entry(2, b"fork"))
        same(await store.claim("fork", "3", b"again"), Entry(2, b"fork"))
        same(await store.claim("run", "3", b"again"), Entry(3, b"run"))

    @with_store
    async def test_forks_of_forks_outlive_each_other(self, store: Store) -> None:
        """Whatever is deleted, and in whatever order, all others have their records and keys."""
        for order in permutations(["a", "b", "c", "d"]):
            await store.claim("a", "key", b"a")
            await store.append("a", 1, [b"a", b"a"])
            await store.fork("a", 2, "b")
            await store.append("b", 2, [b"b", b"b"])
            await store.fork("b", 3, "c")
            await store.fork("c", 1, "d")  # which is all of a's
            await store.append("d", 1, [b"d"])
            journals = {"a": [b"a"] * 3, "b": [b"a", b"a", b"b", b"b"], "c": [b"a", b"a", b"b"], "d": [b"a", b"d"]}
            for run in order:
                await store.delete(run)
                del journals[run]
                same({each: await store.load(each) for each in journals}, journals)
                same(sorted(await store.runs()), sorted(journals))
                same([await store.claim(each, "key", b"new") for each in journals], [Entry(0, b"a")] * len(journals))
                same(await store.load(run), [])
            same(await store.claim("a", "key", b"new"), Entry(0, b"new"))
            same(await store.expire(0), 1)

    @with_store
    async def test_a_fork_that_cannot_be_is_a_conflict(self, store: Store) -> None:
        """Beyond the end, of a run that is not there, or where a run is. A fork at 0 shares nothing, and is none."""
        await store.append("run", 0, [b"0", b"1"])
        await store.append("other", 0, [b"x"])
        conflict = await refused(store.fork("run", 3, "fork"), StoreConflictError)
        same((conflict.run, conflict.given, conflict.expected), ("run", 3, 2))
        await refused(store.fork("never", 1, "fork"), StoreConflictError)
        for taken in ("other", "run"):
            await refused(store.fork("run", 1, taken), StoreConflictError)
        await store.fork("run", 0, "fork")
        same(await store.runs(), ["other", "run"])
        same([await store.load(run) for run in ("run", "other")], [[b"0", b"1"], [b"x"]])

    # --- replacing --------------------------------------------------------------------------------

    @with_store
    async def test_all_records_of_a_run_are_replaced_at_once(self, store: Store) -> None:
        """Its forks keep what they share, nested runs stay, and its keys are free."""
        await store.claim("run", "key", b"0")
        await store.append("run", 1, [b"1", b"2"])
        await store.append("run/nested", 0, [b"x"])
        await store.fork("run", 2, "fork")
        await refused(store.replace("run", 2, [b"short"]), StoreConflictError)
        await store.acquire("run", "a", 3600)
        await refused(store.replace("run", 3, [b"short"], owner="b"), LeaseError)
        same(await store.load("run"), [b"0", b"1", b"2"])
        await store.replace("run", 3, [b"short"], owner="a")
        await store.append("run", 1, [b"3"], owner="a")
        same([await store.load(run) for run in ("run", "fork", "run/nested")], [[b"short", b"3"], [b"0", b"1"], [b"x"]])
        same([await store.claim(run, "key", b"new") for run in ("run", "fork")], [Entry(2, b"new"), Entry(0, b"0")])
        await store.delete("fork")
        same(await store.load("run"), [b"short", b"3", b"new"])

    # --- faults -----------------------------------------------------------------------------------

    @with_store
    async def test_what_was_written_outlives_a_crash(self, store: Store) -> None:
        """Records, keys, forks and leases; and the store goes on."""
        await store.append("run", 0, [b"0"])
        await store.claim("run", "key", b"1")
        await store.fork("run", 2, "fork")
        await store.acquire("run", "owner", 3600)
        self.crash(store)
        same([await store.load(run) for run in ("run", "fork")], [[b"0", b"1"]] * 2)
        same(await store.claim("fork", "key", b"again"), Entry(1, b"1"))
        await refused(store.append("run", 2, [b"2"], owner="other"), LeaseError)
        self.crash(store)
        await store.append("run", 2, [b"2"], owner="owner")
        same(await store.load("run", 1), [b"1", b"2"])

    @with_store
    async def test_a_damaged_record_is_noticed(self, store: Store) -> None:
        """Wherever it is read; what is behind it can be read."""
        await store.claim("run", "0", b"zero")
        await store.claim("run", "1", b"one")
        await store.append("run", 2, [b"two"])
        await store.fork("run", 3, "fork")
        if not self.damage(store, "run", 1):
            return
        for run in ("run", "fork"):
            await refused(store.load(run), DamagedJournalError)
            await refused(store.claim(run, "1", b"again"), DamagedJournalError)
            same(await store.load(run, 2), [b"two"])
            same(await store.claim(run, "0", b"again"), Entry(0, b"zero"))

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
            lambda: store.append("run", 0, [b"0"], owner=""),
            lambda: store.claim("run", "", b"0"),
            lambda: store.claim("run", "\ud800", b"0"),
            lambda: store.claim("run", "key", anything("text")),
            lambda: store.load(""),
            lambda: store.load("run", -1),
            lambda: store.load("run", anything("0")),
            lambda: store.fork("run", -1, "new"),
            lambda: store.fork("run", 1, ""),
            lambda: store.acquire("run", "", 1),
            lambda: store.acquire("run", "owner", -1),
            lambda: store.acquire("run", "owner", float("inf")),
            lambda: store.renew("", "owner", 1),
            lambda: store.lease(""),
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
