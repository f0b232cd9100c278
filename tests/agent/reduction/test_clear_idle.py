"""`clear_after_idle`: when nobody asked the model for so long that its cache is cold, what is old goes for free."""

from typing import Any

import pytest

from suture import tool
from suture.stores import MemoryBackend, MemoryStore
from tests.agent.durability.scenes import play
from tests.agent.reduction._clear_scenes import (
    asks,
    filed,
    files,
    history,
    make,
    message,
    on_each_wire,
    placed,
    reducing,
    said,
    sent,
    whole,
)
from tests.shapes.notation import user


class Clock:
    """A time of day that only moves when it is told to."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("suture.middleware.tool_reduction.time.time", made)
    return made


FEW = {"max_tokens_for_clear": 1_000_000, "clear_after_idle": 300}


@pytest.mark.parametrize(("pause", "cleared"), [(299, False), (301, True), (86_400, True)])
@on_each_wire
def test_a_conversation_that_rested_is_cleared_however_few_tokens_it_has(
    wire: str, clock: Clock, pause: int, cleared: bool
):
    async def scene() -> None:
        backend = MemoryBackend()
        script = [asks(wire, "a"), asks(wire, "b"), "done", "again"]
        agent, model = make(wire, script, reducing(backend, **FEW), checkpoint_store=MemoryStore())
        await agent.run("go", checkpoint_id="c")
        assert said(wire, sent(model)) == whole("a", "b")
        clock.now += pause
        await agent.run("more", checkpoint_id="c")
        assert said(wire, sent(model)) == (placed("a") | whole("b") if cleared else whole("a", "b"))
        assert await files(backend) == (filed("a") if cleared else {})

    play(scene())


@on_each_wire
def test_the_time_of_the_last_turn_is_in_the_session(wire: str, clock: Clock):
    async def scene() -> None:
        script = [asks(wire, "a"), asks(wire, "b"), "done", "again"]
        agent, model = make(wire, script, reducing(MemoryBackend(), **FEW))
        first = await agent.run("go")
        clock.now += 400
        more = [*first.messages, message(wire, user("more"))]
        await agent.run(more, session=first.session)
        assert said(wire, sent(model)) == placed("a") | whole("b")

    play(scene())


@on_each_wire
def test_a_history_of_which_nobody_knows_when_it_was_sent_is_not_taken_for_old(wire: str, clock: Clock):
    async def scene() -> None:
        agent, model = make(wire, ["done"], reducing(MemoryBackend(), **FEW))
        await agent.run(history(wire, "a", "b"))
        assert said(wire, sent(model)) == whole("a", "b")
        assert clock.now == 1_000_000

    play(scene())


@on_each_wire
def test_a_tool_that_takes_its_time_makes_the_cache_cold_as_well(wire: str, clock: Clock):
    @tool
    async def wait(label: str) -> str:
        """Wait."""
        clock.now += 301
        return f"waited {label}"

    async def scene() -> None:
        script: list[Any] = [asks(wire, "a"), asks(wire, "b"), asks(wire, "w", name="wait"), "done"]
        agent, model = make(wire, script, reducing(MemoryBackend(), **FEW), tools=[wait])
        await agent.run("go")
        assert said(wire, sent(model, 2)) == whole("a", "b")
        assert said(wire, sent(model)) == placed("a", "b") | {"w": "waited w"}

    play(scene())


@on_each_wire
def test_after_a_rest_it_is_done_once_and_not_each_turn(wire: str, clock: Clock):
    async def scene() -> None:
        backend = MemoryBackend()
        script = [asks(wire, "a"), asks(wire, "b"), "done", asks(wire, "c"), asks(wire, "d"), "done"]
        agent, model = make(wire, script, reducing(backend, **FEW), checkpoint_store=MemoryStore())
        await agent.run("go", checkpoint_id="c")
        clock.now += 500
        await agent.run("more", checkpoint_id="c")
        assert said(wire, sent(model)) == placed("a") | whole("b", "c", "d")
        assert await files(backend) == filed("a")

    play(scene())


@on_each_wire
def test_without_the_setting_no_rest_matters(wire: str, clock: Clock):
    async def scene() -> None:
        script = [asks(wire, "a"), asks(wire, "b"), "done", "again"]
        reduction = reducing(MemoryBackend(), max_tokens_for_clear=1_000_000)
        agent, model = make(wire, script, reduction, checkpoint_store=MemoryStore())
        await agent.run("go", checkpoint_id="c")
        clock.now += 10**9
        await agent.run("more", checkpoint_id="c")
        assert said(wire, sent(model)) == whole("a", "b")

    play(scene())
