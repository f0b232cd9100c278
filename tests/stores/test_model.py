"""Whatever is done to a store, it holds what a plain dict would hold."""

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from suture.stores import LeaseError, MemoryStore, SQLiteStore, Store, StoreConflictError

RUNS = st.sampled_from(["a", "a/b", "a/b/c", "a0", "a.", "A", "b", "b/a", "ä", "c/d/e", "c/d"])
KEYS = st.sampled_from(["k", "k/1", "ä"])
OWNERS = st.sampled_from(["one", "two"])
RECORDS = st.lists(st.binary(max_size=8) | st.just(b"x" * 5000), max_size=4)


class Machine(RuleBasedStateMachine):
    """A store beside dicts of journals, of their keys, of the times of their last change, and of leases."""

    def __init__(self) -> None:
        super().__init__()
        self.journals: dict[str, list[bytes]] = {}
        self.keys: dict[str, dict[str, int]] = {}
        self.changed: dict[str, float] = {}
        self.leases: dict[str, tuple[str, float]] = {}
        self.now = 1_700_000_000.0
        self.runner = asyncio.Runner()
        self.directory = tempfile.TemporaryDirectory()
        self.store = self.make_store()

    def make_store(self) -> Store:
        raise NotImplementedError

    def teardown(self) -> None:
        if isinstance(self.store, SQLiteStore):
            self.store.close()
        self.runner.close()
        self.directory.cleanup()

    def do(self, call):
        self.now += 1
        return self.runner.run(call)

    @rule(run=RUNS, records=RECORDS)
    def append(self, run: str, records: list[bytes]) -> None:
        self.do(self.store.append(run, len(self.journals.get(run, [])), records))
        if records:
            self.change(run).extend(records)

    def change(self, run: str) -> list[bytes]:
        self.keys.setdefault(run, {})
        self.changed[run] = self.now
        return self.journals.setdefault(run, [])

    @rule(run=RUNS, key=KEYS, record=st.binary(max_size=8))
    def claim(self, run: str, key: str, record: bytes) -> None:
        entry = self.do(self.store.claim(run, key, record))
        if key not in self.keys.get(run, {}):
            journal = self.change(run)
            self.keys[run][key] = len(journal)
            journal.append(record)
        number = self.keys[run][key]
        assert entry == (number, self.journals[run][number])

    @rule(run=RUNS, new=RUNS, position=st.integers(0, 12))
    def fork(self, run: str, new: str, position: int) -> None:
        if position > len(self.journals.get(run, [])) or new in self.journals:
            with pytest.raises(StoreConflictError):
                self.do(self.store.fork(run, position, new))
        else:
            self.do(self.store.fork(run, position, new))
            if position:
                self.change(new).extend(self.journals[run][:position])
                self.keys[new] = {key: number for key, number in self.keys[run].items() if number < position}

    def holder(self, run: str) -> str | None:
        owner, until = self.leases.get(run, (None, 0))
        return owner if until > self.now else None

    @rule(run=RUNS, owner=OWNERS, seconds=st.integers(0, 20), new=st.booleans())
    def acquire_or_renew(self, run: str, owner: str, seconds: int, new: bool) -> None:
        done = self.do((self.store.acquire if new else self.store.renew)(run, owner, seconds))
        assert done == (self.holder(run) in ((owner, None) if new else (owner,)))
        if done:
            self.leases[run] = owner, self.now + seconds

    @rule(run=RUNS, owner=OWNERS)
    def release(self, run: str, owner: str) -> None:
        self.do(self.store.release(run, owner))
        if self.leases.get(run, ("",))[0] == owner:
            del self.leases[run]

    @rule(run=RUNS, owner=OWNERS, records=RECORDS.filter(bool))
    def append_as_owner(self, run: str, owner: str, records: list[bytes]) -> None:
        self.now += 1
        append = self.store.append(run, len(self.journals.get(run, [])), records, owner=owner)
        if self.holder(run) in (owner, None):
            self.runner.run(append)
            self.change(run).extend(records)
        else:
            with pytest.raises(LeaseError):
                self.runner.run(append)

    @rule(run=RUNS, records=RECORDS.filter(bool), off=st.integers(-3, 3).filter(bool))
    def append_at_the_wrong_place(self, run: str, records: list[bytes], off: int) -> None:
        length = len(self.journals.get(run, []))
        if length + off >= 0:
            with pytest.raises(StoreConflictError) as caught:
                self.do(self.store.append(run, length + off, records))
            assert (caught.value.given, caught.value.expected) == (length + off, length)

    @rule(run=RUNS, first=st.integers(0, 12))
    def load(self, run: str, first: int) -> None:
        assert self.do(self.store.load(run, first)) == self.journals.get(run, [])[first:]

    @rule(run=RUNS)
    def delete(self, run: str) -> None:
        self.do(self.store.delete(run))
        gone = {each for each in {**self.journals, **self.leases} if each == run or each.startswith(run + "/")}
        self.forget(gone & self.journals.keys())
        for each in gone & self.leases.keys():
            del self.leases[each]

    @rule(seconds=st.integers(0, 20))
    def expire(self, seconds: int) -> None:
        count = self.do(self.store.expire(seconds))
        fresh = {each for each, changed in self.changed.items() if changed > self.now - seconds or self.holder(each)}
        # To keep a run is to keep all that it is nested in, and all that is nested in those.
        heads = {next(head for head in sorted(self.journals) if (each + "/").startswith(head + "/")) for each in fresh}
        kept = {each for each in self.journals if any((each + "/").startswith(head + "/") for head in heads)}
        assert count == len(self.journals) - len(kept)
        self.forget(set(self.journals) - kept)

    def forget(self, runs: set[str]) -> None:
        for run in runs:
            del self.journals[run], self.changed[run], self.keys[run]

    @invariant()
    def the_leases_are_those_of_the_model(self) -> None:
        for run in self.leases:
            lease = self.runner.run(self.store.lease(run))
            assert (lease and lease.owner) == self.holder(run)

    @invariant()
    def the_runs_are_those_of_the_model(self) -> None:
        newest_first = sorted(self.changed, key=lambda run: self.changed[run], reverse=True)
        assert self.runner.run(self.store.runs()) == newest_first


class MemoryMachine(Machine):
    def make_store(self) -> Store:
        return MemoryStore(clock=lambda: self.now)


class SQLiteMachine(Machine):
    def make_store(self) -> Store:
        return SQLiteStore(Path(self.directory.name) / "runs.db", clock=lambda: self.now)

    @rule()
    def open_again(self) -> None:
        assert isinstance(self.store, SQLiteStore)
        self.store.close()
        self.store = self.make_store()

    @rule()
    @precondition(lambda self: self.journals)
    def open_a_second_one_beside_it(self) -> None:
        with SQLiteStore(Path(self.directory.name) / "runs.db") as other:
            for run, journal in self.journals.items():
                assert self.runner.run(other.load(run)) == journal


TestMemoryStoreAsADict = MemoryMachine.TestCase
TestMemoryStoreAsADict.settings = settings(deadline=None, stateful_step_count=40)
TestSQLiteStoreAsADict = SQLiteMachine.TestCase
TestSQLiteStoreAsADict.settings = settings(deadline=None, stateful_step_count=30)
