"""Input that is no history: one of our own errors, with the index of the offending message, and nothing changed."""

import math
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

import suture
from suture.messages import AgenticMessage, Message, ToolCall
from tests.shapes.notation import call, result, says, turn, user
from tests.shapes.wires import WIRES, render

FOREIGN = tuple(wire for wire in WIRES if wire not in {"message", "agentic"})
LONE = "half an emoji: \ud83d"
WAYS: dict[str, Callable[..., Any]] = {
    "repair": suture.repair,
    "check": suture.check,
    "Repairer": suture.Repairer,
    "extend": lambda messages, **options: suture.Repairer(**options).extend(messages),
}


def good(wire: str) -> list[Any]:
    """Return a whole history."""
    return render(wire, [user("go"), turn(call("x")), result("x", "1"), says("done")]).messages


def refused(messages: Any, index: int | None, **options: Any) -> None:
    """Assert that every way in refuses the messages with one error of ours that says where."""
    for name, way in WAYS.items():
        with pytest.raises(suture.SutureError) as caught:
            way(messages, **options)
        assert isinstance(caught.value, suture.InputError), name
        assert caught.value.index == index, name
        assert "\n" not in str(caught.value), name
        assert len(str(caught.value)) < 1000, name


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "thing", [None, 7, 1.5, True, "text", ["list"], (), b"bytes", object(), len], ids=lambda thing: type(thing).__name__
)
def test_a_message_that_is_none_or_of_no_kind_is_refused_where_it_stands(wire: str, thing: Any):
    for index in (0, 2, 4):
        messages = good(wire)
        messages.insert(index, thing)
        refused(messages, index, wire=wire)
        refused(messages, index)


@pytest.mark.parametrize("wire", [*WIRES, None])
@pytest.mark.parametrize(
    "thing",
    [None, 7, "text", b"bytes", {"role": "user"}, {"messages": []}, {}, object(), {1, 2}],
    ids=["None", "int", "str", "bytes", "message", "container", "empty dict", "object", "set"],
)
def test_messages_that_are_no_list_are_refused(wire: str | None, thing: Any):
    for way in (suture.repair, suture.check):
        with pytest.raises(suture.InputError) as caught:
            way(thing, wire=wire)
        assert caught.value.index is None


@pytest.mark.parametrize(
    "thing", [None, 7, object(), "text", {"role": "user"}], ids=["None", "int", "object", "str", "dict"]
)
def test_a_repairer_refuses_what_it_cannot_iterate_or_what_holds_no_messages(thing: Any):
    for name in ("Repairer", "extend"):
        with pytest.raises(suture.InputError) as caught:
            WAYS[name](thing, wire="openai-chat")
        assert caught.value.index in {None, 0}


@pytest.mark.parametrize("wire", FOREIGN)
@pytest.mark.parametrize("role", ["wizard", "", "USER", None, 7, ["user"], {}], ids=repr)
def test_an_unknown_role_is_refused_where_it_stands(wire: str, role: Any):
    key = "parts" if wire == "gemini" else "content"
    messages = [*good(wire), {"role": role, key: [{"text": "hi"}] if wire in {"gemini", "bedrock"} else "hi"}]
    if wire == "gemini" and role is None:  # a content may come without a role
        return
    refused(messages, 4, wire=wire)


def test_a_message_without_a_role_is_refused_where_it_stands():
    for wire in ("openai-chat", "anthropic", "bedrock"):
        refused([*good(wire), {"content": [{"text": "hi"}]}], 4, wire=wire)


@pytest.mark.parametrize(
    ("wire", "message"),
    [
        ("openai-chat", {"role": "user", "content": 7}),
        ("openai-chat", {"role": "user", "content": {"text": "hi"}}),
        ("openai-chat", {"role": "user", "content": [7]}),
        ("openai-chat", {"role": "assistant", "content": None, "tool_calls": "x"}),
        ("openai-chat", {"role": "assistant", "content": None, "tool_calls": {"id": "x"}}),
        ("openai-chat", {"role": "assistant", "content": None, "tool_calls": [None]}),
        ("openai-chat", {"role": "assistant", "content": None, "tool_calls": ["x"]}),
        ("openai-chat", {"role": "assistant", "content": None, "tool_calls": [{"id": 7, "type": "function"}]}),
        ("openai-chat", {"role": "assistant", "content": None, "tool_calls": [{"id": "x", "function": 7}]}),
        (
            "openai-chat",
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "x", "function": {"name": 7, "arguments": "{}"}}],
            },
        ),
        ("openai-chat", {"role": "assistant", "content": None, "function_call": "x"}),
        ("openai-chat", {"role": "tool", "tool_call_id": 7, "content": "1"}),
        ("openai-chat", {"role": "tool", "tool_call_id": ["x"], "content": "1"}),
        ("openai-chat", {"role": "tool", "tool_call_id": "x", "content": 7}),
        ("openai-responses", {"type": 7}),
        ("openai-responses", {"type": "message", "role": "user", "content": 7}),
        ("openai-responses", {"type": "function_call", "call_id": 7, "name": "f", "arguments": "{}"}),
        ("openai-responses", {"type": "function_call", "call_id": "y", "name": ["f"], "arguments": "{}"}),
        ("openai-responses", {"type": "function_call_output", "call_id": {}, "output": "1"}),
        ("anthropic", {"role": "user", "content": 7}),
        ("anthropic", {"role": "user", "content": None}),
        ("anthropic", {"role": "user", "content": {"type": "text"}}),
        ("anthropic", {"role": "user", "content": [None]}),
        ("anthropic", {"role": "user", "content": ["text"]}),
        ("anthropic", {"role": "user", "content": [{"type": 7}]}),
        ("anthropic", {"role": "assistant", "content": [{"type": "tool_use", "id": 7, "name": "f", "input": {}}]}),
        ("anthropic", {"role": "assistant", "content": [{"type": "tool_use", "id": "y", "name": 7, "input": {}}]}),
        ("anthropic", {"role": "user", "content": [{"type": "tool_result", "tool_use_id": [], "content": "1"}]}),
        ("gemini", {"role": "user", "parts": 7}),
        ("gemini", {"role": "user", "parts": "hi"}),
        ("gemini", {"role": "user", "parts": {"text": "hi"}}),
        ("gemini", {"role": "user", "parts": [7]}),
        ("gemini", {"role": "model", "parts": [{"functionCall": 7}]}),
        ("gemini", {"role": "model", "parts": [{"functionCall": {"id": 7, "name": "f"}}]}),
        ("gemini", {"role": "user", "parts": [{"functionResponse": []}]}),
        ("bedrock", {"role": "user", "content": 7}),
        ("bedrock", {"role": "user", "content": {"text": "hi"}}),
        ("bedrock", {"role": "user", "content": [7]}),
        ("bedrock", {"role": "assistant", "content": [{"toolUse": 7}]}),
        ("bedrock", {"role": "assistant", "content": [{"toolUse": {"toolUseId": 7, "name": "f", "input": {}}}]}),
        ("bedrock", {"role": "user", "content": [{"toolResult": {"toolUseId": {}, "content": []}}]}),
        ("bedrock", {"role": "user", "content": [{"toolResult": {"toolUseId": "x", "content": 7}}]}),
    ],
    ids=str,
)
def test_a_wrong_type_at_any_level_is_refused_where_it_stands(wire: str, message: dict[str, Any]):
    messages = [*good(wire), message]
    before = deepcopy(messages)
    refused(messages, 4, wire=wire)
    assert messages == before


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


def listed(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def cyclic() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["self"] = [value]
    return value


def within(wire: str, value: Any) -> list[list[Any]]:
    """Return histories with `value` at places of message 1 that belong to the wire and may hold any JSON."""
    out: list[list[Any]] = []

    def put(change: Callable[[Any], None]) -> None:
        messages = good(wire)
        change(messages[1])
        out.append(messages)

    match wire:
        case "anthropic":
            put(lambda m: m["content"][0].update(input=value))
            put(lambda m: m["content"].insert(0, {"type": "hologram", "beam": value}))
        case "gemini":
            put(lambda m: m["parts"][0]["functionCall"].update(args=value))
            put(lambda m: m["parts"].insert(0, {"hologram": value}))
        case "bedrock":
            put(lambda m: m["content"][0]["toolUse"].update(input=value))
            put(lambda m: m["content"].insert(0, {"hologram": value}))
        case _:
            put(lambda m: m.clear() or m.update(role="user", content=[{"type": "hologram", "beam": value}]))
            out[-1].pop(2)  # the result of what was a call
    return out


def beside(wire: str, value: Any) -> list[list[Any]]:
    """Return a whole and a broken history whose message 1 has `value` in a field that nobody knows."""
    whole = good(wire)
    whole[1]["x_extra"] = value
    return [whole, [*whole[:2], whole[3]]]


MONSTERS: dict[str, Callable[[], Any]] = {
    "cyclic": cyclic,
    "10000 deep": lambda: nested(10_000),
    "10000 deep, lists": lambda: listed(10_000),
    "nan": lambda: {"a": [math.nan]},
    "infinity": lambda: {"a": [math.inf]},
    "-infinity": lambda: {"a": -math.inf},
    "a key that is a number": lambda: {7: "seven"},
}


@pytest.mark.parametrize("wire", FOREIGN)
@pytest.mark.parametrize("monster", MONSTERS)
def test_what_json_cannot_carry_is_refused_where_it_stands(wire: str, monster: str):
    for messages in within(wire, MONSTERS[monster]()):
        refused(messages, 1, wire=wire)


@pytest.mark.parametrize("wire", FOREIGN)
@pytest.mark.parametrize("monster", MONSTERS)
def test_in_a_field_that_nobody_knows_it_is_refused_or_carried_along_but_nothing_breaks(wire: str, monster: str):
    value = MONSTERS[monster]()
    for messages in beside(wire, value):
        for way in (suture.repair, suture.check):
            error = None
            try:
                way(messages, wire=wire)
            except suture.InputError as raised:
                error = raised
            assert error is None or error.index == 1


def test_a_history_that_holds_itself_is_refused():
    messages: list[Any] = good("openai-chat")
    messages.append({"role": "user", "content": [{"type": "text", "text": "hi", "history": messages}]})
    refused(messages, 4, wire="openai-chat")


@pytest.mark.parametrize("wire", FOREIGN)
def test_what_json_can_carry_is_welcome(wire: str):
    whole = {"a": [1, -1.5e300, 2**63, 10**30, True, None, "😀", "\u0000", "\x1b[31m", {}, []], "deep": nested(50)}
    for messages in within(wire, whole) + beside(wire, whole):
        fixed = suture.repair(messages, wire=wire)
        assert not fixed.unresolved


# --- several wires ----------------------------------------------------------------------------


MIXED = [(first, second) for first in WIRES for second in WIRES if first != second]


@pytest.mark.parametrize(("first", "second"), MIXED)
def test_messages_of_two_wires_in_one_list_are_refused(first: str, second: str):
    calls = render(first, [user("go"), turn(call("x"))]).messages
    messages = calls + render(second, [turn(call("y")), result("y", "1")]).messages
    before = deepcopy(messages)
    for way in WAYS.values():
        with pytest.raises(suture.SutureError):
            way(messages)
    assert messages == before


@pytest.mark.parametrize("wire", FOREIGN)
def test_messages_of_another_wire_than_the_named_one_are_refused_where_they_stand(wire: str):
    native = [Message.assistant(tool_calls=[ToolCall("y", "f", "{}")]), AgenticMessage.assistant("hi")]
    for other in native:
        refused([*good(wire), other], 4, wire=wire)


@pytest.mark.parametrize("wire", ["message", "agentic"])
def test_a_foreign_message_among_native_ones_is_refused_where_it_stands(wire: str):
    refused([*good(wire), {"role": "user", "content": "hi"}], 4, wire=wire)
    other = good("agentic" if wire == "message" else "message")[0]
    refused([*good(wire), other], 4, wire=wire)
    refused([*good(wire), other], 4)


def test_a_wire_that_nobody_knows_is_refused():
    for unknown in ("openai", "", "Anthropic", "langchain-core"):
        for way in WAYS.values():
            with pytest.raises(suture.SutureError):
                way(good("openai-chat"), wire=unknown)


@pytest.mark.parametrize(
    "record",
    [
        {"speaker": "me", "words": "hi"},
        {"type": "log", "msg": "started"},
        {"type": "user", "uuid": "1", "message": {"role": "user", "content": "hi"}},  # a coding agent's session
        {"timestamp": "2026-01-01", "type": "response_item", "payload": {"type": "message"}},
    ],
)
def test_messages_that_no_wire_knows_are_refused_with_their_index(record: dict[str, Any]):
    with pytest.raises(suture.UnknownWireError) as caught:
        suture.repair([record])
    assert caught.value.index == 0


def test_an_item_of_a_new_type_is_one_of_responses():
    report = suture.check([{"type": "dream", "id": "drm_1"}, {"role": "user", "content": "hi"}])
    assert (report.wire, report.acceptable) == ("openai-responses", True)


def test_plain_text_needs_no_wire_where_all_give_the_same():
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    assert suture.repair(messages).messages is messages
    assert suture.check(messages).acceptable


def test_plain_text_on_which_the_wires_differ_is_refused_with_their_names():
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": " "}]  # blank for Anthropic alone
    with pytest.raises(suture.AmbiguousWireError) as caught:
        suture.repair(messages)
    assert {"openai-chat", "anthropic"} <= set(caught.value.candidates)
    assert all(candidate in str(caught.value) for candidate in caught.value.candidates)


# --- options ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"tail": "drop"},
        {"tail": None},
        {"orphans": "keep"},
        {"language": "fr"},
        {"profile": "opnai"},
        {"generator": "text"},
        {"is_placeholder": "text"},
        {"causes": {(1, 0): "bored"}},
        {"causes": [(1, 0)]},
    ],
    ids=str,
)
def test_an_option_that_makes_no_sense_is_refused(options: dict[str, Any]):
    messages = render("openai-chat", [user("go"), turn(call("x"))]).messages
    before = deepcopy(messages)
    for way in (suture.repair, suture.Repairer):
        with pytest.raises(suture.ConfigError):
            way(messages, wire="openai-chat", **options)
    assert messages == before


def test_every_error_of_ours_has_one_root():
    for error in (suture.InputError, suture.UnknownWireError, suture.AmbiguousWireError, suture.ConfigError):
        assert issubclass(error, suture.SutureError)
