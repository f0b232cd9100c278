"""One broken group in a long history: it comes out as if all had been looked at, and only a little is looked at."""

from typing import Any

import pytest

import suture
from suture.profiles import default_profile
from suture.wires import WIRES, get_wire
from tests.histories import Step, write
from tests.repair.test_properties import assert_one_path

GROUPS = 70


def group(call_id: str, *results: tuple[str, str]) -> list[Step]:
    """Return a question, a call with these results, and an answer."""
    return [
        ("user", "go"),
        ("turn", [(call_id, "f", "{}")]),
        *[("result", result_id, "f", text) for result_id, text in results],
        ("say", "done"),
    ]


def whole(name: str) -> list[Step]:
    return [step for number in range(GROUPS) for step in group(f"{name}{number}", (f"{name}{number}", "fine"))]


KINDS: dict[str, tuple[list[Step], list[Step]]] = {
    "a lost result": (group("x"), []),
    "a late result": (group("x"), [("result", "x", "f", "late")]),
    "a late result behind a question": (group("x"), [("user", "and?"), ("result", "x", "f", "late"), ("say", "so")]),
    "a copy": (group("x", ("x", "fine")), [("result", "x", "f", "fine")]),
    "another result": (group("x", ("x", "fine")), [("result", "x", "f", "other")]),
    "another result of an id that is used before": (
        [*group("x", ("x", "one")), *whole("b"), *group("x", ("x", "two"))],
        [("result", "x", "f", "three")],
    ),
    "a result by half of an id": (group("x|y"), [("result", "y", "f", "late")]),
    "a result of an id that is half of a later one": (
        [*group("x"), *group("x|y", ("x|y", "fine"))],
        [("result", "x", "f", "late")],
    ),
    "a copy by the other half": (group("x|y", ("x|y", "fine")), [("result", "x", "f", "fine")]),
    "a stray result": (group("x", ("x", "fine"), ("z", "whose?")), []),
    "a stray result far from any call": (group("x", ("x", "fine")), [("result", "z", "f", "whose?")]),
    "an adopted result": (group("x", ("z", "mine")), []),
    "a result that a later call has the id of": (group("x", ("z", "early?")), group("z", ("z", "fine"))),
    "an early result": ([("user", "go"), ("result", "x", "f", "early"), *group("x")[1:]], []),
    "a result without an id": (group("x"), [("result", "", "f", "late")]),
    "two late results that cross": (
        [*group("x"), *whole("b"), *group("y")],
        [("result", "y", "f", "late"), ("user", "and?"), ("result", "x", "f", "later")],
    ),
}


def history(wire: str, kind: str) -> list[Any]:
    here, far = KINDS[kind]
    return write(wire, [*whole("a"), *here, *whole("c"), *far, *whole("d")])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wire", WIRES)
def test_a_broken_group_far_from_its_results_comes_out_as_if_all_had_been_looked_at(wire: str, kind: str) -> None:
    assert_one_path(wire, default_profile(wire).name, history(wire, kind))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wire", WIRES)
def test_only_the_groups_that_belong_together_are_looked_at(
    wire: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages, spoken = history(wire, kind), get_wire(wire)
    views: list[Any] = []
    view = spoken.view

    def count(message: Any, index: int | None = None) -> Any:
        views.append(message)
        return view(message, index)

    monkeypatch.setattr(spoken, "view", count)
    suture.repair(messages, wire=wire)
    assert len(views) < len(messages)


def test_a_picture_between_two_late_results_is_shown_and_told_of() -> None:
    """The second one sends the repair back, past a group that it has already fitted for the first."""

    def calls(id_: str) -> dict[str, Any]:
        function = {"name": "f", "arguments": "{}"}
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": id_, "type": "function", "function": function}],
        }

    def result(id_: str, content: Any) -> dict[str, Any]:
        return {"role": "tool", "tool_call_id": id_, "content": content}

    user, picture = (
        {"role": "user", "content": "q"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}},
    )
    first, second = [user, calls("x"), user, calls("y"), user], [result("r", [picture]), result("x", "late")]
    history = [*first, calls("r"), *second, calls("s"), result("s", "S"), result("y", "late"), user]
    fixed = suture.repair(history, wire="openai-chat")
    assert "base64,AA" in str(fixed.messages)
    assert [finding.problem for finding in fixed.report.findings] == ["media-in-result", "late", "late"]
    grown = suture.Repairer[Any](wire="openai-chat")
    for message in history:
        grown.extend([message])
    assert (list(grown.messages), grown.report) == (list(fixed.messages), fixed.report)
