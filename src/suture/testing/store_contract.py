"""`StoreContract`: what every store must do, as tests that any test runner can find."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

from suture.errors import ConfigError
from suture.stores import DamagedJournalError, Entry, LeaseError, MemoryStore, Store, StoreConflictError
from suture.testing.checks import Step, cancel_after, ensure, refused, run_with, same, walk

with_store = run_with("make_store")

ODD_IDS = ("ä b", "'; DROP TABLE runs; --", "%", "_", "A", "a", "a%", "\0", "\n", "日本", "/", "//", "x" * 2000)
RUNS, KEYS, OWNERS = ("a", "a/b", "a/b/c", "a0", "b"), ("k", "l", "m"), ("one", "two", "three")
NONSENSE: Sequence[tuple[Any, ...]] = (
    ("append", ("", 0, [b"0"]), (7, 0, [b"0"]), ("\ud800", 0, [b"0"]), ("run", 0, ["text"]), ("run", -1, [b"0"])),
    ("append", ("run", "0", [b"0"]), ("run", True, [b"0"]), ("run", 2**32, [b"0"]), ("run", 0, [b"0", bytearray()])),
    ("claim", ("run", "", b"0"), ("run", "\ud800", b"0"), ("run", "key", "text")),
    ("load", ("",), ("run", -1), ("run", "0")),
    ("fork", ("run", -1, "new"), ("run", 1, "")),
    ("acquire", ("run", "", 1), ("run", "owner", -1), ("run", "owner", float("inf"))),
    ("renew", ("", "owner", 1)),
    ("lease", ("",)),
    ("delete", ("",)),
    ("expire", (-1,), (float("nan"),)),
)
"""Methods, and arguments that they refuse."""
KINDS = (
    ("append", "claim", "claim", "fork"),
    ("acquire", "acquire", "acquire", "release", "append"),
    ("append", "claim", "fork", "replace", "delete"),
    ("append", "claim", "fork", "delete", "expire", "acquire", "renew", "release", "replace"),
)
WALKS, STEPS = 40, 20


class StoreContract(ABC):
    """The tests of a store. Inherit, define `make_store`, and let pytest or unittest find the tests.

    `make_store` returns a new, empty store each time it is called. The others are for stores that can do more:
    `make_another` returns a second store with the same journals, as another process would have it, `crash` kills and
    restarts the server behind a store, and `damage` changes a record behind the store's back.

    >>> from suture.stores import MemoryStore
    >>> from suture.testing import StoreContract
    >>> class TestMemoryStore(StoreContract):
    ...     def make_store(self):
    ...         return MemoryStore()
    >>> TestMemoryStore().test_any_bytes_come_back_as_they_were()
    """

    @abstractmethod
    def make_store(self) -> Store:
        """Return a new, empty store."""

    def make_another(self, store: Store) -> Store:
        """Return another store with the same journals; by default the same store."""
        return store

    def crash(self, store: Store) -> None:  # noqa: B027 - most have nothing to kill
        """Kill the server behind a store, as a loss of power would, and start it again; by default do nothing."""

    def damage(self, store: Store, run: str, number: int) -> bool:
        """Change the bytes of a record, and return `True`; by default do nothing and return `False`."""
        return False

    @with_store
    async def test_it_does_what_a_memory_store_does(self, store: Store) -> None:
        """Random steps with records, keys, forks, leases and their queues give the same, even through two stores."""
        another = self.make_another(store)
        for number in range(WALKS):
            reference = MemoryStore()
            await walk((store, another), reference, _choose_steps(Random(number), reference))  # noqa: S311 - no secret
            for run in RUNS:
                await store.delete(run)
            same(await store.runs(), [])

    @with_store
    async def test_any_bytes_come_back_as_they_were(self, store: Store) -> None:
        """Empty records, all byte values and large records are kept exactly."""
        records = [b"", bytes(range(256)), b"\0", b"x" * 3_000_000, b"after"]
        await store.append("run", 0, records)
        await store.append("run", 5, (b"",))
        same(await store.load("run"), [*records, b""])

    @with_store
    async def test_what_was_given_and_what_was_loaded_may_be_changed(self, store: Store) -> None:
        """The store shares no list with its callers."""
        given = [b"0"]
        await store.append("run", 0, given)
        given.append(b"x")
        (await store.load("run")).append(b"y")
        same(await store.load("run"), [b"0"])

    @with_store
    async def test_any_text_is_an_id(self, store: Store) -> None:
        """For runs, keys and owners. Ids are compared exactly, and nothing in them has a meaning but the slash."""
        for number, text in enumerate(ODD_IDS):
            await store.append(text, 0, [text.encode()])
            await store.append(text, 1, [b"1"])
            ensure(await store.acquire(text, text, 3600))
            same(await store.claim("keys", text, text.encode()), Entry(number, text.encode()))
        same(sorted(await store.runs()), sorted([*ODD_IDS, "keys"]))
        for number, text in enumerate(ODD_IDS):
            same(await store.load(text), [text.encode(), b"1"])
            same(getattr(await store.lease(text), "owner", ""), text)
            same(await store.claim("keys", text, b"again"), Entry(number, text.encode()))

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
    async def test_keys_belong_to_their_records(self, store: Store) -> None:
        """A fork has the keys of its records; later ones are free in it, and all are free in a run that is replaced."""
        for number in range(4):
            await store.claim("run", f"{number}", b"run")
        await store.fork("run", 2, "fork")
        same(await store.claim("fork", "1", b"fork"), Entry(1, b"run"))
        same(await store.claim("fork", "3", b"fork"), Entry(2, b"fork"))
        same(await store.claim("fork", "2", b"fork"), Entry(3, b"fork"))
        same(await store.claim("run", "3", b"again"), Entry(3, b"run"))
        await store.replace("run", 4, [b"short"])
        same(await store.claim("run", "0", b"new"), Entry(1, b"new"))
        same(await store.claim("fork", "0", b"again"), Entry(0, b"run"))

    @with_store
    async def test_who_waits_for_a_lease_gets_it_in_the_order_of_arrival(self, store: Store) -> None:
        """Whatever store they use; asking again keeps the place, and owners that gave up are skipped."""
        another = self.make_another(store)
        for one, owner in zip((store, another) * 3, ("a", "b", "c", "d", "b", "d"), strict=True):
            same(await one.acquire("run", owner, 3600, queue=True), owner == "a")
        await another.release("run", "c")
        for before, owner in (("a", "b"), ("b", "d")):
            await store.release("run", before)
            same(getattr(await another.lease("run"), "owner", ""), owner)
            ensure(not await store.acquire("run", "x", 3600))

    @with_store
    async def test_a_lease_is_for_its_owner_and_for_all_that_is_nested_in_the_run(self, store: Store) -> None:
        """Asking without a queue takes no place and loses none; the holder renews by asking again."""
        for run in ("a", "a/b"):
            await store.append(run, 0, [b"0"])
        ensure(await store.acquire("a", "one", 60))
        for owner, queue in (("two", False), ("three", True), ("three", False), ("two", False)):
            ensure(not await store.acquire("a", owner, 3600, queue=queue))
        await refused(store.replace("a", 1, [b"new"], owner="two"), LeaseError)
        same((await store.expire(0), sorted(await store.runs())), (0, ["a", "a/b"]))
        ensure(await store.acquire("a", "one", 9000))
        lease = await store.lease("a")
        ensure(lease and lease.owner == "one" and lease.seconds > 3600)
        await store.release("a", "nobody")
        for owner, holder in (("one", "three"), ("three", "")):
            await store.release("a", owner)
            same(getattr(await store.lease("a"), "owner", ""), holder)
        same(await store.expire(0), 2)

    # --- several at once --------------------------------------------------------------------------

    @with_store
    async def test_of_tasks_that_write_the_same_number_one_wins(self, store: Store) -> None:
        """The others get an error, and nothing of theirs is written."""
        writers = [store.append("run", 0, [b"%d" % number] * 2) for number in range(20)]
        results = await asyncio.gather(*writers, return_exceptions=True)
        winners = [number for number, result in enumerate(results) if result is None]
        same(len(winners), 1)
        same([type(result) for result in results if result is not None], [StoreConflictError] * 19)
        same(await store.load("run"), [b"%d" % winners[0]] * 2)

    def test_tasks_and_threads_write_their_own_runs_side_by_side(self) -> None:
        """Each journal is as its writer wrote it; each thread has an event loop of its own."""
        store = self.make_store()

        async def write(run: str) -> None:
            for number in range(15):
                await store.append(run, 2 * number, [f"{run} {number}".encode()] * 2)

        async def write_all(thread: int) -> None:
            await asyncio.gather(*(write(f"{thread}-{task}") for task in range(6)))

        with ThreadPoolExecutor(6) as threads:
            list(threads.map(asyncio.run, map(write_all, range(6))))
        for run in [f"{thread}-{task}" for thread in range(6) for task in range(6)]:
            same(asyncio.run(store.load(run)), [f"{run} {number // 2}".encode() for number in range(30)])

    @with_store
    async def test_of_tasks_that_claim_a_key_one_wins_and_all_get_its_record(self, store: Store) -> None:
        """Even if they use two stores, and while others claim other keys of the run."""
        another = self.make_another(store)
        claims = [one.claim("run", f"{n % 5}", f"{n}".encode()) for n in range(30) for one in (store, another)]
        entries = await asyncio.gather(*claims)
        same(sorted(entry.number for entry in set(entries)), [0, 1, 2, 3, 4])
        same(await store.load("run"), [entry.record for entry in sorted(set(entries))])
        for place, entry in enumerate(entries):
            ensure(int(entry.record) % 5 == place // 2 % 5)

    @with_store
    async def test_of_tasks_that_want_a_lease_one_gets_it(self, store: Store) -> None:
        """Even if they use two stores."""
        another = self.make_another(store)
        wishes = [one.acquire("run", f"{n}", 3600) for n, one in enumerate([store, another] * 10)]
        taken = await asyncio.gather(*wishes)
        same(taken.count(True), 1)
        same(getattr(await store.lease("run"), "owner", ""), f"{taken.index(True)}")

    @with_store
    async def test_what_is_cancelled_is_written_whole_or_raises(self, store: Store) -> None:
        """If an append raises, nothing is written; a claim is written at most once."""
        for turns in range(8):
            run = f"append-{turns}"
            returned = await cancel_after(turns, store.append(run, 0, [b"0", b"1"]))
            same(await store.load(run), [b"0", b"1"] if returned else [])
            await store.append(run, 2 if returned else 0, [b"next"])
            await cancel_after(turns, store.claim(f"claim-{turns}", "key", b"first"))
            entry = await store.claim(f"claim-{turns}", "key", b"again")
            same((entry.number, await store.load(f"claim-{turns}")), (0, [entry.record]))

    # --- time and faults --------------------------------------------------------------------------

    @with_store
    async def test_a_lease_that_is_not_renewed_runs_out(self, store: Store) -> None:
        """By the store's clock, so that a dead process blocks nobody; a place in the queue runs out, too."""
        another = self.make_another(store)
        ensure(await store.acquire("run", "dead", 3600))
        ensure(not await another.acquire("run", "gone", 0.01, queue=True))
        ensure(not await another.acquire("run", "alive", 3600, queue=True))
        ensure(await store.renew("run", "dead", 0.01))
        async with asyncio.timeout(60):  # a lease that never runs out is a failure, too
            while (owner := getattr(await store.lease("run"), "owner", "")) in {"dead", "gone"}:  # noqa: ASYNC110 - a store does not say when
                await asyncio.sleep(0.01)  # between two questions; nothing relies on it
        same(owner, "alive")
        ensure(not await store.renew("run", "dead", 3600))
        await refused(store.append("run", 0, [b"late"], owner="dead"), LeaseError)
        await store.append("run", 0, [b"0"], owner="alive")
        ensure(await store.renew("run", "alive", 9000))
        lease = await another.lease("run")
        ensure(lease and 3600 < lease.seconds <= 9000)

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
        """Wherever it is read; the records after it can be read."""
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

    @with_store
    async def test_what_makes_no_sense_is_refused(self, store: Store) -> None:
        """A wrong argument is a `ConfigError`."""
        await refused(store.append("run", 0, [b"0"], owner=""), ConfigError)
        for method, *wrong in NONSENSE:
            for arguments in wrong:
                await refused(getattr(store, method)(*arguments), ConfigError)
                same(await store.runs(), [])


async def _choose_steps(chance: Random, reference: Store) -> AsyncIterator[Step]:
    """Yield random steps, most of which a store accepts; at the end every run is read."""
    kinds = chance.choice(KINDS)
    for number in range(STEPS):
        other, owner = chance.choice(RUNS), chance.choice(OWNERS)
        run = chance.choice([*await reference.runs(), other])  # most often one that is there
        length = len(await reference.load(run))
        records = [b"%d.%d" % (number, at) for at in range(chance.choice((0, 1, 1, 1, 2, 3)))]
        place = max(0, length + chance.choice((0, 0, 0, 0, -1, 1)))
        writer = {"owner": chance.choice((None, None, owner))}
        steps = {
            "append": Step("append", (run, place, records), writer),
            "claim": Step("claim", (run, chance.choice(KEYS), b"%d" % number)),
            "fork": Step("fork", (run, chance.randint(0, length + 1), chance.choice(RUNS))),
            "replace": Step("replace", (run, place, records or [b"new"]), writer),
            "delete": Step("delete", (run,)),
            "expire": Step("expire", (chance.choice((0, 3600, 3600)),)),
            "acquire": Step("acquire", (run, owner, 3600), {"queue": chance.random() < 0.5}),
            "renew": Step("renew", (run, owner, 3600)),
            "release": Step("release", (run, owner)),
        }
        yield steps[chance.choice(kinds)]
        yield chance.choice((Step("lease", (run,)), Step("load", (run, chance.randint(0, length + 1))), Step("runs")))
    for run in RUNS:
        yield Step("load", (run,))
