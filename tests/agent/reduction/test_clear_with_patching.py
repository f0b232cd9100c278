"""The seven broken histories, cleared: whatever the order of the middlewares, no unacceptable request is sent."""

from dataclasses import replace
from typing import Any

import pytest

from suture.middleware import PatchToolCalls
from suture.stores import MemoryBackend
from tests.agent.durability.scenes import play
from tests.agent.patching.seven import CASES, Case
from tests.agent.patching.wiring import assert_acceptable
from tests.agent.reduction._clear_scenes import (
    asks,
    files,
    make,
    message,
    on_each_wire,
    reducing,
    said,
    sent,
)
from tests.reduction.rounds import long, read
from tests.shapes.notation import Result, Step, call, result, turn, user
from tests.shapes.wires import render

each_case = pytest.mark.parametrize("case", CASES, ids=str)
each_order = pytest.mark.parametrize("order", ["patch, reduce", "reduce, patch", "reduce", "patch, reduce, patch"])
SAME = {f"{text}": long(f"what {text} is about") for text in ("06:12", "06:13", "07:01", "full")}


def lengthened(steps: tuple[Step, ...]) -> list[Step]:
    """Return the same history with results that are worth clearing."""
    return [replace(step, text=SAME[step.text]) if isinstance(step, Result) else step for step in steps]


def stack(order: str, reduction: Any) -> list[Any]:
    return [PatchToolCalls() if name == "patch" else reduction for name in order.split(", ")]


def lost(case: Case) -> set[str]:
    """Return the results that a repair gives up: of two for one call the last counts."""
    return {SAME["06:12"]} if case.name.startswith("D") else set()


@pytest.mark.parametrize("kept", [0, 1])
@each_order
@each_case
@on_each_wire
def test_every_request_is_acceptable_and_nothing_is_lost(wire: str, case: Case, order: str, kept: int):
    async def scene() -> None:
        backend = MemoryBackend()
        reduction = reducing(backend, clear_retention_suffix_limit=kept)
        script = ["well", asks(wire, "x"), asks(wire, "y"), "done"]
        agent, model = make(wire, script, *stack(order, reduction))
        messages = render(wire, lengthened(case.broken)).messages
        first = await agent.run(messages)
        again = await agent.run([*first.messages, message(wire, user("And now?"))], session=first.session)
        for request in model.requests:
            assert_acceptable(wire, request.messages)
        told = str([one.texts for one in read(wire, sent(model))]) + str(sent(model)) + str(await files(backend))
        outputs = [step.text for step in lengthened(case.broken) if isinstance(step, Result)]
        outputs += [long("x"), long("y")]
        assert [text[:60] for text in outputs if text not in lost(case) and repr(text)[1:-1] not in told] == []
        assert await named_files(wire, sent(model), backend) == await named_files(wire, again.messages, backend)

    play(scene())


async def named_files(wire: str, messages: Any, backend: MemoryBackend) -> dict[str, str]:
    """Return the file that each placeholder in a history names; fail where there is none."""
    kept = await files(backend)
    named = [
        text.partition("saved to: ")[2].partition("\n")[0]
        for one in read(wire, messages)
        for text in one.texts
        if text.startswith("<persisted-output>Tool result saved to: ")
    ]
    return {path: kept[path] for path in named}


def test_the_test_above_is_about_clearing():
    async def scene() -> None:
        counts: dict[str, int] = {}
        for case in CASES:
            backend = MemoryBackend()
            agent, _ = make("message", ["done"], PatchToolCalls(), reducing(backend, clear_retention_suffix_limit=0))
            await agent.run(render("message", lengthened(case.broken)).messages)
            counts[case.name[0]] = len(await files(backend))
        # C is a result without a call: it becomes text of the user's, and that is not cleared.
        assert {name for name, count in counts.items() if count} >= set("DEFG")

    play(scene())


@pytest.mark.parametrize("order", ["patch, reduce", "reduce, patch"])
@on_each_wire
def test_the_placeholder_of_a_missing_result_is_left_alone_however_long_it_is(wire: str, order: str):
    """It says why there is no result; that is not in any file."""

    async def scene() -> None:
        told = long("nobody ran it", 1_500)
        backend = MemoryBackend()
        patch = PatchToolCalls(generator=lambda _name, _call_id: told)
        reduction = reducing(backend, clear_retention_suffix_limit=0)
        middlewares = [patch, reduction] if order == "patch, reduce" else [reduction, patch]
        script = [asks(wire, "x"), asks(wire, "y"), "done"]
        agent, model = make(wire, script, *middlewares)
        steps = [
            user("go"),
            turn(call("a", "look")),
            user("Stop."),
            turn(call("b", "look")),
            result("b", long("b"), "look"),
        ]
        await agent.run(render(wire, steps).messages)
        for request in model.requests:
            assert said(wire, request.messages)["a"] == told
            assert_acceptable(wire, request.messages)
        assert sorted(await files(backend)) == ["/r/clear/b", "/r/clear/x", "/r/clear/y"]

    play(scene())


@on_each_wire
def test_a_late_result_is_cleared_as_part_of_its_own_round(wire: str):
    """It belongs to the old turn, so it goes although it stands behind the kept one."""

    async def scene() -> None:
        backend = MemoryBackend()
        steps = [
            user("go"),
            turn(call("a", "look")),
            user("Meanwhile?"),
            turn(call("z", "look")),
            result("z", long("z"), "look"),
            result("a", long("a"), "look"),
        ]
        agent, model = make(wire, ["done"], PatchToolCalls(), reducing(backend))
        await agent.run(render(wire, steps).messages)
        assert_acceptable(wire, sent(model))
        assert await files(backend) == {"/r/clear/a": long("a")}
        assert said(wire, sent(model))["z"] == long("z")

    play(scene())
