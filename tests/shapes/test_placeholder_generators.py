"""The text of a missing result where the caller writes it."""

from copy import deepcopy
from typing import Any

import pytest

import suture
from tests.shapes.notation import call, result, says, turn, user
from tests.shapes.repairing import GO, XY, X, repaired, results
from tests.shapes.texts import placeholder
from tests.shapes.wires import WIRES, render


def repaired_messages(wire: str, messages: list[Any]) -> list[tuple[str, str]]:
    return results(wire, suture.repair(messages, wire=wire).messages)


def extras(message: Any) -> list[Any]:
    """Return the `extra` maps of a native message and its blocks."""
    return [message.extra, *(block.extra for block in getattr(message, "content_blocks", ()))]


@pytest.mark.parametrize("wire", WIRES)
def test_a_generator_writes_the_text(wire: str):
    told = repaired(
        wire,
        [GO, XY, result("x", "1"), user("next")],
        generator=lambda name, call_id: f"123 {name} {call_id}",
    )
    assert told == [("x", "1"), ("y", "123 fetch y")]


@pytest.mark.parametrize("wire", WIRES)
def test_a_generator_is_called_once_for_each_missing_result_in_the_order_of_the_history(wire: str):
    asked: list[tuple[str, str]] = []

    def generate(name: str, call_id: str) -> str:
        asked.append((name, call_id))
        return f"no {call_id}"

    steps = [
        GO,
        XY,
        result("y", "2"),
        user("no"),
        turn(call("v"), call("w")),
        user("no"),
        turn(call("z", "fetch")),
    ]
    told = repaired(wire, steps, generator=generate)
    assert asked == [("search", "x"), ("search", "v"), ("search", "w"), ("fetch", "z")]
    assert [text for _, text in told] == ["no x", "2", "no v", "no w", "no z"]


def test_a_generator_may_ask_for_the_cause():
    def generate(name: str, call_id: str, cause: suture.Cause) -> str:
        assert isinstance(cause, suture.Cause)
        return f"{name} {call_id} {cause.value}"

    steps = [GO, XY, user("no"), turn(call("v", arguments='{"q')), user("no"), turn(call("w"))]
    told = repaired("message", steps, generator=generate, causes={(1, 1): suture.Cause.REJECTED})
    assert [text for _, text in told] == [
        "search x interrupted",
        "fetch y rejected",
        "search v malformed",
        "search w unknown",
    ]


@pytest.mark.parametrize("keyword_only", [True, False])
def test_the_cause_is_given_by_its_keyword(keyword_only: bool):
    def strict(name: str, call_id: str, *, cause: suture.Cause) -> str:
        return f"{name} {call_id} {cause.value}"

    def loose(name: str, call_id: str, **more: Any) -> str:
        return f"{name} {call_id} {more['cause'].value}"

    told = repaired("message", [GO, X], generator=strict if keyword_only else loose)
    assert told == [("x", "search x unknown")]


def test_an_empty_text_means_the_built_in_one():
    for wire in WIRES:
        told = repaired(wire, [GO, XY], generator=lambda name, _id: "" if name == "search" else "own")
        assert told == [("x", placeholder("unknown", "x")), ("y", "own")]


@pytest.mark.parametrize("wire", WIRES)
def test_the_error_of_a_generator_is_the_callers_and_nothing_has_changed(wire: str):

    def generate(_name: str, call_id: str) -> str:
        if call_id == "y":
            raise LookupError("no text for y")
        return "own"

    messages = render(wire, [GO, XY, user("next")]).messages
    given, before = list(messages), deepcopy(messages)
    with pytest.raises(LookupError, match="no text for y"):
        suture.repair(messages, wire=wire, generator=generate)
    assert messages == before
    assert all(one is other for one, other in zip(messages, given, strict=True))


def test_the_error_of_a_generator_leaves_a_repairer_as_it_was():
    broken = True

    def generate(_name: str, call_id: str) -> str:
        if broken:
            raise LookupError(call_id)
        return "own"

    messages = render("openai-chat", [GO, X, user("next")]).messages
    repairer = suture.Repairer(messages[:1], wire="openai-chat", generator=generate)
    with pytest.raises(LookupError):
        repairer.extend(messages[1:])
    assert list(repairer.messages) == messages[:1]
    broken = False
    repairer.extend(messages[1:])
    assert results("openai-chat", repairer.messages) == [("x", "own")]


def test_a_generator_is_not_asked_where_nothing_is_missing():
    def generate(_name: str, _call_id: str) -> str:
        raise AssertionError("asked")

    for wire in WIRES:
        messages = render(wire, [GO, X, result("x", "1"), says("done")]).messages
        assert suture.repair(messages, wire=wire, generator=generate).messages is messages
        suture.repair(render(wire, [GO, X]).messages, wire=wire, generator=generate, tail="keep")


@pytest.mark.parametrize("wire", ["message", "agentic"])
def test_on_native_wires_a_generators_text_is_marked_and_gives_way_to_the_real_result(wire: str):
    fixed = suture.repair(
        render(wire, [GO, X, user("next")]).messages, wire=wire, generator=lambda _name, _id: "[skipped]"
    )
    assert any(extras(fixed.messages[2]))
    late = render(wire, [result("x", "42", "search")]).messages
    assert repaired_messages(wire, [*fixed.messages, *late]) == [("x", "42")]


def test_on_foreign_wires_the_caller_tells_which_texts_only_stand_for_a_result():
    steps = [GO, X, result("x", "[skipped]"), user("next"), result("x", "42")]
    for wire in WIRES:
        told = repaired(wire, steps, is_placeholder=lambda text: text == "[skipped]")
        assert told == [("x", "42")]
        told = repaired(
            wire, [GO, X, result("x", "42"), result("x", "[skipped]")], is_placeholder=lambda t: t[0] == "["
        )
        assert told == [("x", "42")]
    displaced = suture.repair(render("openai-chat", steps).messages).report.displaced
    assert [each.content for each in displaced] == ["[skipped]"]
