"""The rewriter of whole rounds, in agents: catalogue lines 48 to 56 and R10, plain and async, on every chat wire."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

import suture
from suture.middleware import PatchToolCalls
from suture.stores import MemoryBackend
from tests.agent.durability.scenes import play, seen
from tests.agent.patching.wiring import assert_acceptable
from tests.agent.reduction._clear_scenes import (
    Counting,
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
from tests.reduction.rounds import long, read
from tests.shapes.notation import call, result, says, turn, user
from tests.shapes.wires import read as outline
from tests.shapes.wires import render

REMINDER = user("<system-reminder>a file was written</system-reminder>")
Rewriter = Callable[[Any, Sequence[Any]], Any]
plain_or_async = pytest.mark.parametrize("later", [False, True], ids=["plain", "async"])


def perhaps_async(rewriter: Rewriter, *, later: bool) -> Rewriter:
    async def awaited(turn_message: Any, results: Sequence[Any]) -> Any:
        return rewriter(turn_message, results)

    return awaited if later else rewriter


@plain_or_async
@on_each_wire
def test_each_old_round_becomes_a_reminder(wire: str, later: bool):
    async def scene() -> None:
        given: list[list[str]] = []

        def remind(_turn: Any, results: Sequence[Any]) -> list[Any]:
            given.append([one.id for one in read(wire, results)])
            return [message(wire, REMINDER)]

        backend = Counting()
        reduction = reducing(backend, clear_message_rewriter=perhaps_async(remind, later=later))
        agent, model = make(wire, [asks(wire, "a", "b"), asks(wire, "c"), asks(wire, "d"), "done"], reduction)
        events, _ = await seen(agent.stream("go"))
        assert given == [["a", "b"], ["c"]]
        wanted = [user("go"), REMINDER, REMINDER, turn(call("d", "look")), result("d", long("d"), "look")]
        assert outline(wire, sent(model)) == outline(wire, render(wire, wanted).messages)
        assert backend.written == []
        (first, second) = rewrites(events)
        assert (first.after, second.before, second.after) == (4, 6, 5)
        assert first.before in {6, 7}  # results of parallel calls share a message on some wires

    play(scene())


@plain_or_async
@on_each_wire
def test_no_messages_remove_the_round(wire: str, later: bool):
    async def scene() -> None:
        reduction = reducing(
            MemoryBackend(), clear_message_rewriter=perhaps_async(lambda _turn, _results: [], later=later)
        )
        agent, model = make(wire, ["done"], reduction)
        await agent.run(history(wire, "a", "b", "c"))
        wanted = [user("go"), turn(call("c", "look", {"label": "c"})), result("c", long("c"), "look")]
        assert outline(wire, sent(model)) == outline(wire, render(wire, wanted).messages)
        assert_acceptable(wire, sent(model))

    play(scene())


@on_each_wire
def test_what_comes_back_is_cleared_by_the_usual_rules(wire: str):
    """One tool is excluded, so what the rewriter kept of it stays; the other goes to its file."""

    async def scene() -> None:
        def same(turn_message: Any, results: Sequence[Any]) -> list[Any]:
            return [turn_message, *results]

        backend = MemoryBackend()
        steps = [
            user("go"),
            turn(call("a", "look"), call("k", "keep")),
            result("a", long("a"), "look"),
            result("k", long("k"), "keep"),
            turn(call("z", "look")),
            result("z", long("z"), "look"),
        ]
        reduction = reducing(backend, clear_message_rewriter=same, clear_exclude_tools=["keep"])
        agent, model = make(wire, ["done"], reduction)
        await agent.run(render(wire, steps).messages)
        assert said(wire, sent(model)) == placed("a") | whole("k", "z")
        assert await files(backend) == filed("a")

    play(scene())


@on_each_wire
def test_what_stands_between_rounds_stays_and_is_not_offered(wire: str):
    async def scene() -> None:
        offered: list[Any] = []

        def remove(turn_message: Any, _results: Sequence[Any]) -> list[Any]:
            offered.append(turn_message)
            return []

        steps = [
            user("go"),
            turn(call("a", "look")),
            result("a", long("a"), "look"),
            says("Well."),
            user("And?"),
            turn(call("b", "look")),
            result("b", long("b"), "look"),
            user("So?"),
            turn(call("c", "look")),
            result("c", long("c"), "look"),
        ]
        messages = render(wire, steps).messages
        agent, model = make(wire, ["done"], reducing(MemoryBackend(), clear_message_rewriter=remove))
        await agent.run(messages)
        assert sent(model) == [messages[place] for place in (0, 3, 4, 7, 8, 9)]
        assert offered == [messages[1], messages[5]]

    play(scene())


@plain_or_async
@on_each_wire
def test_the_error_of_a_rewriter_ends_the_run_as_it_is_and_nothing_has_changed(wire: str, later: bool):
    async def scene() -> None:
        failure = RuntimeError("no reminder today")

        def failing(_turn: Any, results: Sequence[Any]) -> list[Any]:
            if [one.id for one in read(wire, results)] == ["b"]:
                raise failure
            return []

        backend = Counting()
        rewriter = perhaps_async(failing, later=later)
        agent, model = make(wire, ["done"], reducing(backend, clear_message_rewriter=rewriter))
        run = agent.stream(history(wire, "a", "b", "c"))
        with pytest.raises(RuntimeError) as caught:
            await run.result()
        assert caught.value is failure
        assert run.final_result is not None
        assert said(wire, run.final_result.messages) == whole("a", "b", "c")
        assert (backend.written, model.requests) == ([], [])

    play(scene())


@pytest.mark.parametrize("wrong", [None, "gone", 7], ids=repr)
@plain_or_async
def test_a_rewriter_that_gives_no_list_is_an_error(wrong: Any, later: bool):
    async def scene() -> None:
        rewriter = perhaps_async(lambda _turn, _results: wrong, later=later)
        agent, _ = make("message", ["done"], reducing(MemoryBackend(), clear_message_rewriter=rewriter))
        with pytest.raises(suture.ConfigError, match="rewriter"):
            await agent.run(history("message", "a", "b"))

    play(scene())


@pytest.mark.parametrize("patched", ["before", "after", "not at all"])
@on_each_wire
def test_a_dangling_call_never_takes_the_user_message_behind_it(wire: str, patched: str):
    async def scene() -> None:
        reduction = reducing(MemoryBackend(), clear_message_rewriter=lambda _turn, _results: [])
        middlewares = {
            "before": [PatchToolCalls(), reduction],
            "after": [reduction, PatchToolCalls()],
            "not at all": [reduction],
        }[patched]
        steps = [
            user("go"),
            turn(call("a", "look"), call("b", "look")),
            result("b", long("b"), "look"),
            user("Stop."),
            turn(call("c", "look")),
            user("Stop, I said."),
            turn(call("z", "look")),
            result("z", long("z"), "look"),
        ]
        messages = render(wire, steps).messages
        agent, model = make(wire, ["done"], *middlewares)
        await agent.run(messages)
        assert sent(model) == [messages[place] for place in (0, 3, 5, 6, 7)]
        assert_acceptable(wire, sent(model))

    play(scene())


@on_each_wire
def test_a_round_is_offered_once_however_many_turns_follow(wire: str):
    async def scene() -> None:
        offered: list[str] = []

        def same(turn_message: Any, results: Sequence[Any]) -> list[Any]:
            offered.extend(one.id for one in read(wire, results))
            return [turn_message, *results]

        labels = ["a", "b", "c", "d", "e"]
        script = [*(asks(wire, label) for label in labels), "done"]
        agent, model = make(wire, script, reducing(MemoryBackend(), clear_message_rewriter=same))
        await agent.run("go")
        assert offered == labels[:-1]
        assert said(wire, sent(model)) == placed(*labels[:-1]) | whole("e")

    play(scene())


@on_each_wire
def test_if_it_gains_too_little_nothing_happens(wire: str):
    async def scene() -> None:
        def remind(_turn: Any, _results: Sequence[Any]) -> list[Any]:
            return [message(wire, REMINDER)]

        reduction = reducing(MemoryBackend(), clear_message_rewriter=remind, clear_at_least_tokens=10_000)
        agent, model = make(wire, ["done"], reduction)
        messages = history(wire, "a", "b", "c")
        events, _ = await seen(agent.stream(messages))
        assert sent(model) == messages
        assert rewrites(events) == []

    play(scene())
