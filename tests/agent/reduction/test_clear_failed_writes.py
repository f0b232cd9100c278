"""R8 and defect 4: a write that fails changes nothing, whichever it is; the next attempt loses nothing."""

import asyncio
import copy
from collections.abc import AsyncIterable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from suture.errors import OffloadError
from suture.events import Custom
from suture.stores import LocalBackend, MemoryBackend, MemoryStore, SQLiteBackend
from tests.agent.durability.scenes import play, seen, start
from tests.agent.reduction._clear_scenes import (
    Faulty,
    asks,
    filed,
    files,
    history,
    make,
    message,
    on_each_wire,
    placed,
    reducing,
    rewrites,
    said,
    sent,
    whole,
)
from tests.reduction.rounds import MARK
from tests.shapes.notation import user

OLD = ("a", "b", "c", "d")
ALL = (*OLD, "z")
Maker = Callable[[], Any]


@pytest.fixture(params=["memory", "local", "sqlite"])
def fresh(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Maker]:
    """Return what makes an empty backend of each kind."""
    with ExitStack() as stack:
        made: list[Any] = []

        def maker() -> Any:
            place = tmp_path / str(len(made))
            if request.param == "memory":
                backend: Any = MemoryBackend()
            elif request.param == "local":
                backend = LocalBackend(place)
            else:
                backend = stack.enter_context(SQLiteBackend(place.with_suffix(".db")))
            made.append(backend)
            return backend

        yield maker


@on_each_wire
def test_whichever_write_fails_history_and_files_are_as_they_were_and_the_next_attempt_succeeds(
    wire: str, fresh: Maker
):
    async def attempt(number: int) -> None:
        inner = fresh()
        backend = Faulty(inner, number)
        agent, model = make(wire, ["done"] * 2, reducing(backend))
        messages = history(wire, *ALL)
        before = copy.deepcopy(messages)
        failed = number <= len(OLD)
        if failed:
            with pytest.raises(OffloadError) as caught:
                await agent.run(messages)
            assert caught.value.calls == (("look", ALL[number - 1]),)
            assert isinstance(caught.value.__cause__, OSError)
            result: Any = caught.value.result
            assert list(result.messages) == before == messages
            assert all(mine is theirs for mine, theirs in zip(result.messages, messages, strict=True))
            assert model.requests == []
            assert await files(inner) == {}
            backend.fails_at = None
        await agent.run(messages)
        assert said(wire, sent(model)) == placed(*OLD) | whole("z")
        assert await files(inner) == filed(*OLD)
        assert backend.effects == (number + len(OLD) if failed else len(OLD))

    async def scene() -> None:
        for number in range(1, len(OLD) + 2):
            await attempt(number)

    play(scene(), patience=60)


@on_each_wire
def test_if_what_was_written_cannot_be_deleted_either_nothing_is_lost(wire: str, fresh: Maker):
    """The files stay behind, named by nobody, and the next attempt finds its way around them or takes them."""

    async def scene() -> None:
        for number in range(1, len(OLD) + 1):
            inner = fresh()
            backend = Faulty(inner, number, deletes=False)
            agent, model = make(wire, ["done"], reducing(backend))
            messages = history(wire, *ALL)
            with pytest.raises(OffloadError, match="no space left on device"):
                await agent.run(messages)
            assert said(wire, messages) == whole(*ALL)
            await agent.run(messages)
            kept = await files(inner)
            for label, text in said(wire, sent(model)).items():
                path = text.partition("saved to: ")[2].partition("\n")[0]
                assert kept.get(path, text) == whole(label)[label]
            assert MARK not in str(messages)

    play(scene(), patience=60)


@on_each_wire
def test_a_pass_that_fails_takes_back_only_what_it_wrote_itself(wire: str, fresh: Maker):
    """The same history goes on twice: to write what is there already is fine, to delete it is not."""

    async def scene() -> None:
        backend = Faulty(fresh())
        agent, _ = make(wire, ["done"] * 2, reducing(backend))
        first = await agent.run(history(wire, "a", "b", "z"))
        assert await files(backend) == filed("a", "b")
        backend.effects, backend.fails_at = 0, 4
        with pytest.raises(OffloadError):
            await agent.run(history(wire, "a", "b", "c", "d", "z"))
        assert said(wire, first.messages) == placed("a", "b") | whole("z")
        assert await files(backend) == filed("a", "b")

    play(scene())


@on_each_wire
def test_a_conversation_that_failed_is_resumed_once_there_is_room(wire: str, fresh: Maker):
    async def scene() -> None:
        for number in range(1, len(OLD) + 1):
            backend = Faulty(fresh(), number)
            store = MemoryStore()
            agent, model = make(wire, ["done"], reducing(backend), checkpoint_store=store)
            with pytest.raises(OffloadError):
                await agent.run(history(wire, *ALL), checkpoint_id="c")
            result = await agent.resume("c")
            assert said(wire, sent(model)) == said(wire, result.messages) == placed(*OLD) | whole("z")
            assert await files(backend) == filed(*OLD)

    play(scene(), patience=60)


@on_each_wire
def test_a_failure_in_the_middle_of_a_run_keeps_what_the_run_has_so_far(wire: str):
    async def scene() -> None:
        backend = Faulty(MemoryBackend(), 2)
        script = [asks(wire, "a"), asks(wire, "b"), asks(wire, "c"), "done"]
        agent, model = make(wire, script, reducing(backend))
        with pytest.raises(OffloadError) as caught:
            await agent.run("go")
        assert caught.value.calls == (("look", "b"),)
        result: Any = caught.value.result
        assert said(wire, result.messages) == placed("a") | whole("b", "c")
        assert await files(backend) == filed("a")
        assert len(model.requests) == 3

    play(scene())


@on_each_wire
def test_on_backend_error_continue_sends_everything_and_says_so(wire: str):
    async def scene() -> None:
        backend = Faulty(MemoryBackend(), 1)
        script = [asks(wire, "a"), asks(wire, "b"), asks(wire, "c"), "done"]
        agent, model = make(wire, script, reducing(backend, on_backend_error="continue"))
        events, _ = await seen(agent.stream("go"))
        told = [event for event in events if isinstance(event, Custom) and event.name == "tool_output_not_saved"]
        assert len(told) == 1
        assert "a" in str(told[0].data)
        assert [said(wire, request.messages) for request in model.requests[2:]] == [
            whole("a", "b"),
            placed("a", "b") | whole("c"),
        ]
        assert [event.turn for event in rewrites(events)] == [4]
        assert await files(backend) == filed("a", "b")

    play(scene())


@on_each_wire
def test_a_run_that_is_cancelled_while_it_saves_has_changed_nothing(wire: str):
    class Stuck(MemoryBackend):
        def __init__(self) -> None:
            super().__init__()
            self.reached = asyncio.Event()
            self.stuck = True

        async def write_stream(self, path: str, chunks: AsyncIterable[bytes]) -> int:
            if self.stuck and path.endswith("b"):
                self.reached.set()
                await asyncio.Event().wait()
            return await super().write_stream(path, chunks)

    async def scene() -> None:
        backend = Stuck()
        agent, model = make(wire, ["done"], reducing(backend))
        messages = history(wire, *ALL)
        run = agent.stream(messages)
        waiting = start(run)
        await backend.reached.wait()
        result = await run.cancel()
        await waiting
        assert result.outcome == "cancelled"
        assert said(wire, result.messages) == whole(*ALL)
        assert MARK not in str(list(result.messages))
        backend.stuck = False
        await agent.run([*result.messages, message(wire, user("go on"))])
        kept = await files(backend)
        for label, text in said(wire, sent(model)).items():
            path = text.partition("saved to: ")[2].partition("\n")[0]
            assert kept.get(path, text) == whole(label)[label]
            assert (path == "") == (label == "z")

    play(scene())


def test_a_backend_that_can_only_write_is_enough_plain_or_async():
    class Shelf:
        def __init__(self) -> None:
            self.files: dict[str, str] = {}

        def write(self, path: str, content: str) -> None:
            assert path not in self.files
            self.files[path] = content

    class AsyncShelf(Shelf):
        async def write(self, path: str, content: str) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
            await asyncio.sleep(0)
            super().write(path, content)

    async def scene() -> None:
        for shelf in (Shelf(), AsyncShelf()):
            agent, model = make("message", ["done"], reducing(shelf))
            await agent.run(history("message", *ALL))
            assert shelf.files == filed(*OLD)
            assert said("message", sent(model)) == placed(*OLD) | whole("z")
            assert [info.name for info in model.requests[0].tool_infos] == ["look", "peek"]

    play(scene())
