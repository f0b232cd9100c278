"""Whatever is done to a store, it holds what a plain dict would hold."""

import asyncio
import tempfile
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from suture.stores import MemoryStore, SQLiteStore, Store, StoreConflictError, memory, sqlite

RUNS = st.sampled_from(["a", "a/b", "a/b/c", "a0", "a.", "A", "b", "b/a", "ä", "c/d/e", "c/d"])
RECORDS = st.lists(st.binary(max_size=8) | st.just(b"x" * 5000), max_size=4)


class Machine(RuleBasedStateMachine):
    """A store beside a dict of journals and a dict of the times of their last change."""

    def __init__(self) -> None:
        super().__init__()
        self.journals: dict[str, list[bytes]] = {}
        self.changed: dict[str, float] = {}
        self.now = 1_700_000_000.0
        clock = SimpleNamespace(time=lambda: self.now, monotonic=lambda: self.now)
        self.patches = [mock.patch.object(module, "time", clock) for module in (memory, sqlite)]
        for patch in self.patches:
            patch.start()
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
        for patch in self.patches:
            patch.stop()

    def do(self, call):
        self.now += 1
        return self.runner.run(call)

    @rule(run=RUNS, records=RECORDS)
    def append(self, run: str, records: list[bytes]) -> None:
        self.do(self.store.append(run, len(self.journals.get(run, [])), records))
        if records:
            self.journals.setdefault(run, []).extend(records)
            self.changed[run] = self.now

    @rule(run=RUNS, records=RECORDS.filter(bool), off=st.integers(-3, 3).filter(bool))
    def append_at_the_wrong_place(self, run: str, records: list[bytes], off: int) -> None:
        length = len(self.journals.get(run, []))
        if length + off >= 0:
            with pytest.raises(StoreConflictError) as caught:
                self.do(self.store.append(run, length + off, records))
            assert (caught.value.given, caught.value.expected) == (length + off, length)

    @rule(run=RUNS)
    def load(self, run: str) -> None:
        assert self.do(self.store.load(run)) == self.journals.get(run, [])

    @rule(run=RUNS)
    def delete(self, run: str) -> None:
        self.do(self.store.delete(run))
        self.forget({each for each in self.journals if each == run or each.startswith(run + "/")})

    @rule(seconds=st.integers(0, 20))
    def expire(self, seconds: int) -> None:
        count = self.do(self.store.expire(seconds))
        fresh = {each for each, changed in self.changed.items() if changed > self.now - seconds}
        # To keep a run is to keep all that it is nested in, and all that is nested in those.
        heads = {next(head for head in sorted(self.journals) if (each + "/").startswith(head + "/")) for each in fresh}
        kept = {each for each in self.journals if any((each + "/").startswith(head + "/") for head in heads)}
        assert count == len(self.journals) - len(kept)
        self.forget(set(self.journals) - kept)

    def forget(self, runs: set[str]) -> None:
        for run in runs:
            del self.journals[run], self.changed[run]

    @invariant()
    def the_runs_are_those_of_the_model(self) -> None:
        newest_first = sorted(self.changed, key=lambda run: self.changed[run], reverse=True)
        assert self.runner.run(self.store.runs()) == newest_first


class MemoryMachine(Machine):
    def make_store(self) -> Store:
        return MemoryStore()


class SQLiteMachine(Machine):
    def make_store(self) -> Store:
        return SQLiteStore(Path(self.directory.name) / "runs.db")

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
TestSQLiteStoreAsADict.settings = settings(deadline=None, max_examples=40, stateful_step_count=30)
