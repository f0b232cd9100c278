"""Item ids: reasoning and what it produced keep theirs together, or lose them together."""

from typing import Any

import pytest
from msgspec.structs import replace

import suture
from suture.codecs import Lost, Request, get_codec
from suture.messages import AgenticMessage, Reasoning
from tests.codecs.openai_responses.marks import says

WIRE = "openai-responses"
codec = get_codec(WIRE)
USER = {"role": "user", "content": "hi"}
THOUGHT = {"type": "reasoning", "id": "rs_9f", "summary": [], "encrypted_content": "gAAA"}
KNOWN = {"type": "reasoning", "id": "rs_9f", "summary": []}
CALL = {"type": "function_call", "id": "fc_9f", "call_id": "a", "name": "f", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "a", "output": "42"}
SAID = {
    "type": "message",
    "id": "msg_9f",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "so", "annotations": []}],
}
SEARCH = {"type": "web_search_call", "id": "ws_9f", "status": "completed", "action": {"type": "search"}}


def without(item: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name not in names}


def without_reasoning(messages: list[AgenticMessage]) -> list[AgenticMessage]:
    return [
        replace(message, content_blocks=[block for block in message.content_blocks if not isinstance(block, Reasoning)])
        for message in messages
    ]


def test_ids_stay_where_reasoning_stands_before_what_it_produced():
    items = [USER, THOUGHT, CALL, OUTPUT, SAID]
    assert codec.encode_messages(codec.decode_messages(items)) == (items, ())


def test_an_id_without_reasoning_stays():
    items = [USER, CALL, OUTPUT, SAID, SEARCH]
    assert codec.encode_messages(codec.decode_messages(items)) == (items, ())


def test_what_was_made_after_reasoning_that_is_gone_has_no_id():
    messages = codec.decode_messages([USER, THOUGHT, CALL, SAID, OUTPUT])
    written = codec.encode_messages(without_reasoning(messages))
    assert written == ([USER, without(CALL, "id"), without(SAID, "id", "status"), OUTPUT], ())


def test_what_is_nothing_without_its_id_is_left_out_with_its_reasoning_and_reported():
    messages = codec.decode_messages([USER, THOUGHT, SEARCH, CALL, OUTPUT])
    items, losses = codec.encode_messages(without_reasoning(messages))
    assert items == [USER, without(CALL, "id"), OUTPUT]
    assert [(loss.name, loss.what, loss.index, loss.path) for loss in losses] == [
        (Lost.BLOCK, "web_search_call ws_9f", 1, "content_blocks[0]")
    ]


@pytest.mark.parametrize("after", [[], [USER], [says("rewritten")]])
def test_reasoning_that_nothing_follows_goes_without_its_id(after: list[Any]):
    written = codec.encode_messages(codec.decode_messages([USER, THOUGHT, *after]))
    assert written == ([USER, without(THOUGHT, "id"), *after], ())


def test_reasoning_that_is_only_an_id_is_left_out_where_nothing_follows_and_reported():
    items, losses = codec.encode_messages(codec.decode_messages([USER, KNOWN, USER]))
    assert items == [USER, USER]
    assert [(loss.name, loss.what, loss.index, loss.path) for loss in losses] == [
        (Lost.REASONING, "thought rs_9f", 1, "content_blocks[0]")
    ]


def test_reasoning_that_is_told_in_full_goes_without_its_id_where_nothing_follows():
    told = {**KNOWN, "content": [{"type": "reasoning_text", "text": "hm"}]}
    written = codec.encode_messages(codec.decode_messages([USER, told, USER]))
    assert written == ([USER, without(told, "id"), USER], ())


def test_what_comes_later_loses_its_id_with_the_reasoning_that_lost_its_own():
    written = codec.encode_messages(codec.decode_messages([USER, KNOWN, says("x"), CALL]))
    assert written.payload == [USER, says("x"), without(CALL, "id")]


def test_reasoning_before_reasoning_that_is_left_out_is_left_out_too():
    items = [USER, KNOWN, {**KNOWN, "id": "rs_8e"}, USER]
    written = codec.encode_messages(codec.decode_messages(items))
    assert written.payload == [USER, USER]
    assert [loss.what for loss in written.losses] == ["thought rs_8e", "thought rs_9f"]


def test_an_empty_message_does_not_hold_its_reasoning():
    empty = {"type": "message", "id": "msg_9f", "role": "assistant", "content": []}
    written = codec.encode_messages(codec.decode_messages([USER, THOUGHT, empty]))
    assert written.payload == [USER, without(THOUGHT, "id")]


@pytest.mark.parametrize(
    ("item", "again"),
    [(CALL, [without(CALL, "id")]), (SAID, [without(SAID, "id", "status")]), (SEARCH, [])],
)
def test_an_item_id_is_sent_once(item: dict[str, Any], again: list[Any]):
    written = codec.encode_messages(codec.decode_messages([USER, item, USER, item])).payload
    assert written == [USER, item, USER, *again]
    assert "repeated-item" not in {
        finding.problem for finding in suture.check(written, wire=WIRE, profile=WIRE).findings
    }


def test_the_status_of_reasoning_is_for_replies_alone():
    given = {**THOUGHT, "status": "completed"}
    messages = codec.decode_messages([given, CALL])
    assert codec.encode_messages(messages).payload == [THOUGHT, CALL]
    assert codec.encode_reply(messages[0]).payload["output"] == [given, CALL]


def test_with_nothing_stored_messages_calls_and_reasoning_go_without_ids():
    messages = codec.decode_messages([USER, THOUGHT, CALL, SAID, SEARCH, OUTPUT])
    written = codec.encode_request(Request(messages, options={"store": False}))
    assert written.payload["input"] == [
        USER,
        without(THOUGHT, "id"),
        without(CALL, "id"),
        without(SAID, "id", "status"),
        SEARCH,
        OUTPUT,
    ]
    assert written.losses == ()
    assert codec.encode_request(Request(messages, options={"store": True})).payload["input"][1] == THOUGHT


def test_with_nothing_stored_reasoning_that_is_only_an_id_is_left_out_and_reported():
    messages = codec.decode_messages([USER, KNOWN, CALL, OUTPUT])
    written = codec.encode_request(Request(messages, options={"store": False}))
    assert written.payload["input"] == [USER, without(CALL, "id"), OUTPUT]
    assert [loss.name for loss in written.losses] == [Lost.REASONING]
