"""What is attached to messages and to results: native ones can carry it, others cannot."""

from typing import Any

import pytest

from suture.messages import AgenticMessage, FunctionToolResult, Message, TextPart, ToolSearchResult, UserInputText
from suture.wires import MARK, ResultEdit, Wire, get_wire
from tests.wires.results import on_foreign_wires, on_native_wires, result_of

MESSAGE, AGENTIC = get_wire("message"), get_wire("agentic")


def lone(wire: Wire) -> Any:
    if wire.name == "gemini":
        return ({"result": "a"}, None)
    return [{"text": "a"}] if wire.name == "bedrock" else "a"


@on_native_wires
def test_a_native_message_has_what_is_attached_to_it_and_takes_more(wire: Wire):
    kind = Message if wire is MESSAGE else AgenticMessage
    message = kind("user", extra={"a": 1, "b": 2})
    assert wire.extra_of(message) == {"a": 1, "b": 2}
    assert wire.with_extra(message, {"b": 3, "c": 4}) == kind("user", extra={"a": 1, "b": 3, "c": 4})
    assert wire.with_extra(message, {}) is message
    assert message.extra == {"a": 1, "b": 2}


@on_foreign_wires
def test_to_any_other_message_nothing_is_attached_and_nothing_can_be(wire: Wire):
    message = result_of(wire, lone(wire)) | {"extra": {"a": 1}}
    assert wire.extra_of(message) == {}
    assert wire.with_extra(message, {"b": 2}) is message


@on_native_wires
def test_a_native_result_has_what_is_attached_to_it_and_takes_more(wire: Wire):
    message = result_of(wire, "a")
    assert wire.view(message).results[0].extra == {"took": 3}
    changed = wire.edit(message, {}, {0: ResultEdit(extra={"saved": "/a"})})
    assert wire.view(changed).results[0] == wire.view(message).results[0]._replace(extra={"took": 3, "saved": "/a"})
    assert wire.view(message).results[0].extra == {"took": 3}


@on_foreign_wires
def test_to_any_other_result_nothing_is_attached_and_nothing_can_be(wire: Wire):
    message = result_of(wire, lone(wire))
    assert wire.view(message).results[0].extra == {}
    assert wire.edit(message, {}, {0: ResultEdit(extra={"saved": "/a"})}) == message


def test_on_agentic_it_is_the_block_that_carries_it_not_the_message():
    blocks = (FunctionToolResult("a", "f", (UserInputText("x"),)), ToolSearchResult("b", "g", extra={"n": 1}))
    message = AgenticMessage("user", blocks, extra={"kept": True})
    changed = AGENTIC.edit(message, {}, {at: ResultEdit(extra={"saved": "/a"}) for at in (0, 1)})
    assert [block.extra for block in changed.content_blocks] == [{"saved": "/a"}, {"n": 1, "saved": "/a"}]
    assert changed.extra == {"kept": True}


@pytest.mark.parametrize("wire", [MESSAGE, AGENTIC], ids=lambda wire: wire.name)
def test_parts_and_what_is_attached_change_together(wire: Wire):
    changed = wire.edit(result_of(wire, "a"), {}, {0: ResultEdit(parts=[TextPart("x")], extra={MARK: "canceled"})})
    (result,) = wire.view(changed).results
    assert (wire.result_text(result)[0], result.extra, result.marked) == ("x", {"took": 3, MARK: "canceled"}, True)
