"""Thousands of calls, in one turn or in many, cost in proportion to their number: steps are counted, not seconds."""

import random
import sys
from collections.abc import Callable
from itertools import count
from types import FrameType
from typing import Any

import pytest

import suture
from tests.repair.credit import WIRES, history
from tests.shapes.notation import Result, call, result, says, turn, user

MOST = 12
SCALES = [(60, 480), pytest.param((500, 4_000), marks=pytest.mark.soak)]
ORDERS: dict[str, Callable[[list[Result]], list[Result]]] = {
    "in order": lambda results: results,
    "reversed": lambda results: results[::-1],
    "shuffled": lambda results: random.Random(7).sample(results, len(results)),
}


class TooMuchError(BaseException):
    """The work is out of proportion; no need to see the end of it."""


def steps(work: Callable[[], Any], limit: float) -> int:
    """Return how many functions were entered and lines run in `work`.

    Lines count because a loop, or a comprehension, over all calls for each result enters no function.
    """
    counter = count(1)

    def trace(_frame: FrameType, _event: str, _argument: Any) -> Any:
        if next(counter) > limit:
            raise TooMuchError
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return next(counter) - 1


_scale = [60, 480]


@pytest.fixture(params=SCALES, ids=str, autouse=True)
def scale(request: pytest.FixtureRequest) -> None:
    """Let the tests be about so few and so many calls."""
    _scale[:] = request.param


def assert_linear(work: Callable[[list[Any]], Any], build: Callable[[int], list[Any]]) -> None:
    few, many = _scale
    small, large = build(few), build(many)
    work(small)  # whatever is made once is made now
    least = steps(lambda: work(small), float("inf"))
    try:
        steps(lambda: work(large), least * MOST)
    except TooMuchError:
        pytest.fail(f"{many} calls take more than {MOST} times the {least} steps of {few}", pytrace=False)


def wide(wire: str, order: str, tell: str) -> Callable[[int], list[Any]]:
    """Return what builds a turn of so many calls, told apart by ids, by names, or only by their place."""

    def build(width: int) -> list[Any]:
        ids = [f"call{number}" if tell == "ids" else "" for number in range(width)]
        names = [f"tool{number}" if tell == "names" else "search" for number in range(width)]
        calls = turn(*map(call, ids, names))
        results = [result(id_, str(number), names[number]) for number, id_ in enumerate(ids)]
        return history(wire, user("q"), calls, *ORDERS[order](results), bundle=True)

    return build


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("wire", WIRES)
def test_results_with_ids_cost_in_proportion_to_the_width_of_a_turn(wire: str, order: str) -> None:
    assert_linear(lambda messages: suture.repair(messages, wire=wire), wide(wire, order, "ids"))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("wire", ["gemini", "message", "agentic"])
def test_results_with_names_alone_cost_in_proportion_to_the_width_of_a_turn(wire: str, order: str) -> None:
    assert_linear(lambda messages: suture.repair(messages, wire=wire), wide(wire, order, "names"))


@pytest.mark.parametrize("wire", WIRES)
def test_results_without_ids_cost_in_proportion_to_the_width_of_a_turn(wire: str) -> None:
    assert_linear(lambda messages: suture.repair(messages, wire=wire), wide(wire, "in order", "place"))


@pytest.mark.parametrize("wire", WIRES)
def test_answering_costs_in_proportion_to_the_width_of_a_turn(wire: str) -> None:
    def build(width: int) -> list[Any]:
        calls = turn(*(call(f"call{number}") for number in range(width)))
        soon, late = ([result(f"call{number}", "1", "search") for number in range(first, width, 4)] for first in (0, 2))
        return history(wire, user("q"), calls, *soon, user("stop"), *late)

    assert_linear(lambda messages: suture.repair(messages, wire=wire), build)


@pytest.mark.parametrize("wire", ["openai-chat", "anthropic", "gemini"])
def test_a_turn_in_thousands_of_messages_costs_in_proportion_to_them(wire: str) -> None:
    def build(width: int) -> list[Any]:
        calls = [turn(call(f"call{number}")) for number in range(width)]
        return history(wire, user("q"), *calls, *(result(f"call{number}", "1", "search") for number in range(width)))

    assert_linear(lambda messages: suture.repair(messages, wire=wire), build)


def test_one_id_for_all_calls_costs_in_proportion_to_them() -> None:
    def build(width: int) -> list[Any]:
        results = [result("a", str(number)) for number in range(width)]
        return history("openai-chat", user("q"), turn(*[call("a")] * width), *results)

    assert_linear(lambda messages: suture.repair(messages, wire="openai-chat"), build)


@pytest.mark.parametrize("wire", ["openai-chat", "anthropic"])
def test_a_check_and_a_growing_history_cost_in_proportion_to_the_width_of_a_turn(wire: str) -> None:
    build = wide(wire, "reversed", "ids")
    assert_linear(lambda messages: suture.check(messages, wire=wire), build)
    assert_linear(lambda messages: suture.Repairer[Any](messages, wire=wire).messages, build)


def rounds(wire: str, count: int, *, late: int = -1) -> list[Any]:
    """Return so many questions, each with a call, its result and an answer; one result comes four rounds late."""
    told: list[Any] = []
    for number in range(count):
        told += [user("q"), turn(call(f"call{number}"))]
        told += [result(f"call{late}", "1", "search")] if number == late + 4 and late >= 0 else []
        told += [] if number == late else [result(f"call{number}", "1", "search")]
        told.append(says("ok"))
    return history(wire, *told)


@pytest.mark.parametrize("wire", WIRES)
def test_a_late_result_costs_a_thorough_look_only_from_its_call_on(wire: str) -> None:
    whole, late = rounds(wire, 300), rounds(wire, 300, late=150)
    least = [steps(lambda: suture.repair(one, wire=wire), float("inf")) for one in (whole, whole, late)]  # noqa: B023 - it is called at once
    assert least[2] < 2 * least[1]


@pytest.mark.parametrize("wire", WIRES)
def test_lost_results_cost_in_proportion_to_them(wire: str) -> None:
    def build(width: int) -> list[Any]:
        lost = [step for number in range(width) for step in (user("q"), turn(call(f"call{number}")), user("stop"))]
        return history(wire, *lost)

    assert_linear(lambda messages: suture.repair(messages, wire=wire), build)


@pytest.mark.parametrize("used", [True, False], ids=["used", "never used"])
def test_results_of_a_servers_tools_behind_those_of_calls_cost_in_proportion_to_them(used: bool) -> None:
    def build(width: int) -> list[Any]:
        told: list[Any] = [{"role": "user", "content": "q"}]
        for number in range(width):
            ended = {"type": "web_search_tool_result", "tool_use_id": f"s{number - 1}" if used else "x", "content": []}
            search = {"type": "server_tool_use", "id": f"s{number}", "name": "web_search", "input": {}}
            use = {"type": "tool_use", "id": f"t{number}", "name": "f", "input": {}}
            told.append({"role": "assistant", "content": [*([ended] if number else []), search, use]})
            told.append(
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{number}", "content": "1"}]}
            )
        return told

    def extend(messages: list[Any]) -> None:
        repairer = suture.Repairer[Any](wire="anthropic")
        for number in range(0, len(messages), 2):
            repairer.extend(messages[number : number + 2])

    assert_linear(lambda messages: suture.repair(messages, wire="anthropic"), build)
    assert_linear(extend, build)
