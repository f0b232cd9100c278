"""Interrupts, conversations and crashes: what was cleared stays cleared, and can be read in whatever comes next."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import suture
from suture.stores import LocalBackend, MemoryBackend, MemoryStore, SQLiteStore
from suture.wires import get_chat_wire
from tests.agent.durability.scenes import acceptable, play
from tests.agent.durability.victim import Snapshots
from tests.agent.reduction._clear_scenes import WIRES, Counting, files, on_each_wire, said, sent
from tests.agent.reduction._clear_victim import LABELS, cast, originals
from tests.reduction.rounds import MARK, long, read, saved_at

ROOT = Path(__file__).parents[3]
WHOLE = {label: long(label) for label in LABELS}


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    if request.param == "memory":
        yield MemoryStore()
        return
    with SQLiteStore(tmp_path / "runs.db") as made:
        yield made


def at(*labels: str, root: str = "/k") -> dict[str, str]:
    """Return what stands in place of these results, in the conversation's own place."""
    return {label: saved_at(f"{root}/clear/{label}") for label in labels}


def forms(wire: str, model: Any) -> dict[str, set[str]]:
    """Return how each cleared result looked, in all requests together."""
    found: dict[str, set[str]] = {}
    for request in model.requests:
        for message in request.messages:
            for one in read(wire, [message]):
                if one.text.startswith("<persisted-output>"):
                    found.setdefault(one.id, set()).add(repr(message))
    return found


@on_each_wire
def test_an_interrupted_run_goes_on_with_the_same_placeholders_and_clears_no_round_twice(wire: str, store: Any):
    async def scene() -> None:
        backend = Counting()
        agent, first = cast(wire, backend, store, pause="c")
        stopped = await agent.run("go", checkpoint_id="k")
        assert stopped.outcome == "interrupted"
        assert said(wire, stopped.messages) == at("a") | {"b": long("b")}
        again, second = cast(wire, backend, store, pause="c")
        result = await again.resume("k", answers={stopped.interrupts[0].id: "yes"})
        assert said(wire, result.messages) == at("a", "b", "c") | {"asked": "yes", "d": long("d")}
        assert backend.written == ["/k/clear/a", "/k/clear/b", "/k/clear/c"]
        assert await originals(wire, result.messages, backend) == WHOLE | {"asked": "yes"}
        before, after = forms(wire, first), forms(wire, second)
        assert before == {label: after[label] for label in before}
        assert all(len(seen) == 1 for seen in after.values())

    play(scene())


@pytest.mark.parametrize("wire", ["message", "agentic"])
def test_the_marks_are_there_after_a_resume(wire: str, store: Any):
    async def scene() -> None:
        agent, _ = cast(wire, MemoryBackend(), store, pause="c")
        stopped = await agent.run("go", checkpoint_id="k")
        marks = [message.extra.get(MARK) for message in stopped.messages]
        assert marks == [None, True, None, None, None, None]
        result = await agent.resume("k", answers={stopped.interrupts[0].id: "yes"})
        turns = [message.extra.get(MARK) for message in result.messages if message.role == "assistant"]
        # What somebody answered was short: nothing of that round was cleared.
        assert turns == [True, True, None, True, None, None]

    play(scene())


@on_each_wire
def test_after_a_resume_the_model_reads_what_was_cleared_before(wire: str, store: Any):
    async def scene() -> None:
        backend = MemoryBackend()
        agent, _ = cast(wire, backend, store, pause="d")
        stopped = await agent.run("go", checkpoint_id="k")
        again, model = cast(wire, backend, store, pause="d")
        await again.resume("k", answers={stopped.interrupts[0].id: "yes"})
        await again.run("read /k/clear/a", checkpoint_id="k")
        assert long("a").splitlines()[0] in said(wire, sent(model))["reader"]

    play(scene())


@on_each_wire
def test_the_next_run_of_a_conversation_reads_the_same_files_and_clears_none_of_them_again(wire: str, store: Any):
    async def scene() -> None:
        backend = Counting()
        agent, _ = cast(wire, backend, store)
        await agent.run("go", checkpoint_id="k")
        written = list(backend.written)
        assert written == ["/k/clear/a", "/k/clear/b", "/k/clear/c"]
        again, model = cast(wire, backend, store)
        result = await again.run("read /k/clear/b", checkpoint_id="k")
        assert backend.written == [*written, "/k/clear/d"]
        assert said(wire, sent(model, 0)) == at("a", "b", "c") | {"d": long("d")}
        assert long("b").splitlines()[0] in said(wire, result.messages)["reader"]

    play(scene())


@on_each_wire
def test_the_session_carries_it_where_there_is_no_checkpoint(wire: str):
    async def scene() -> None:
        backend = Counting()
        agent, _ = cast(wire, backend, None, root_dir="/s")
        first = await agent.run("go")
        again, model = cast(wire, backend, None, root_dir="/s")
        more = [*first.messages, get_chat_wire(wire).user("read /s/clear/a")]
        result = await again.run(more, session=first.session)
        assert said(wire, sent(model, 0)) == at("a", "b", "c", root="/s") | {"d": long("d")}
        assert long("a").splitlines()[0] in said(wire, result.messages)["reader"]
        assert backend.written[:3] == ["/s/clear/a", "/s/clear/b", "/s/clear/c"]
        assert len(set(backend.written)) == len(backend.written)

    play(scene())


@on_each_wire
def test_without_session_the_placeholders_are_still_left_alone(wire: str):
    """They are recognised by what they say."""

    async def scene() -> None:
        backend = Counting()
        agent, _ = cast(wire, backend, None, root_dir="/s")
        first = await agent.run("go")
        again, model = cast(wire, backend, None, root_dir="/s")
        await again.run([*first.messages, get_chat_wire(wire).user("more")])
        assert said(wire, sent(model, 0)) == at("a", "b", "c", root="/s") | {"d": long("d")}
        assert backend.written == ["/s/clear/a", "/s/clear/b", "/s/clear/c"]

    play(scene())


class Remembering(MemoryBackend):
    """A memory whose files can be looked at, at once, and taken over by another one."""

    def __init__(self, taken: Sequence[tuple[str, str | bytes]] = ()) -> None:
        super().__init__()
        self.taken = list(taken)

    async def write(self, path: str, content: str | bytes) -> None:
        await super().write(path, content)
        self.taken.append((path, content))

    def all(self) -> Any:
        """Return what is there now; what a store of snapshots asks of effects."""
        return list(self.taken)

    @classmethod
    async def holding(cls, taken: Sequence[tuple[str, str | bytes]]) -> "Remembering":
        made = cls()
        for path, content in taken:
            await made.write(path, content)
        return made


@on_each_wire
def test_whatever_append_a_process_dies_behind_nothing_is_lost_and_nothing_is_unreadable(wire: str):
    """Every prefix of the journal, with the files there were then, is resumed, or goes on with something new."""

    async def scene() -> None:
        backend = Remembering()
        snapshots = Snapshots(backend)
        agent, _ = cast(wire, backend, snapshots)
        await agent.run("go", checkpoint_id="k")
        assert len(snapshots.taken) > 8
        for journals, taken in snapshots.taken:
            there = await Remembering.holding(taken)  # pyright: ignore[reportArgumentType]
            kept = await snapshots.restore(journals)
            again, model = cast(wire, there, kept)
            try:
                result = await again.resume("k")
            except suture.ResumeError:
                result = await again.run("more", checkpoint_id="k")
            assert await originals(wire, result.messages, there) == WHOLE
            assert all(acceptable(request.messages, wire) for request in model.requests)
            assert all(len(seen) == 1 for seen in forms(wire, model).values())
            assert len(await files(there)) == len({path for path, _ in there.taken})

    play(scene(), patience=60)


def die(wire: str, directory: Path, where: str, deadline: int) -> bool:
    """Let a victim kill itself; tell whether it did."""
    directory.mkdir(exist_ok=True)
    program = [sys.executable, "-m", "tests.agent.reduction._clear_victim"]
    command = [*program, wire, str(directory), where, str(deadline)]
    ended = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=60, check=False)
    if ended.returncode == 0:
        assert ended.stdout == "ended\n"
        return False
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    return True


def survives(wire: str, directory: Path, where: str, deadline: int) -> bool:
    """Kill a run, go on in this process, and check that everything is there; tell whether it was killed."""
    if not die(wire, directory, where, deadline):
        return False

    async def scene() -> None:
        backend = LocalBackend(directory / "outputs")
        with SQLiteStore(directory / "runs.db") as store:
            agent, model = cast(wire, backend, store)
            try:
                result = await agent.resume("k")
            except suture.ResumeError:
                result = await agent.run("more", checkpoint_id="k")
            assert await originals(wire, result.messages, backend) == WHOLE
            assert all(acceptable(request.messages, wire) for request in model.requests)
            path = read(wire, result.messages)[0].text.partition("saved to: ")[2].partition("\n")[0]
            reading = await agent.run(f"read {path}", checkpoint_id="k")
            assert long("a").splitlines()[0] in said(wire, reading.messages)["reader"]

    play(scene())
    return True


@pytest.mark.parametrize(("where", "deadline"), [("before", 1), ("behind", 1), ("behind", 2), ("append", 7)])
@on_each_wire
def test_a_process_that_dies_while_it_clears_goes_on_and_has_lost_nothing(
    tmp_path: Path, wire: str, where: str, deadline: int
):
    assert survives(wire, tmp_path, where, deadline)


@pytest.mark.soak
@pytest.mark.parametrize("where", ["before", "behind", "append"])
@pytest.mark.parametrize("wire", WIRES)
def test_a_process_that_dies_at_any_effect_goes_on_and_has_lost_nothing(
    tmp_path: Path, wire: str, where: str, covered: Callable[[str], None]
):
    deaths = 0
    while survives(wire, tmp_path / str(deaths), where, deaths + 1):
        deaths += 1
    assert deaths >= 3
    covered(f"killed a run that clears, on {wire}, {where} each of {deaths} effects")
