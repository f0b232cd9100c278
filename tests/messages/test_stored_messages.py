"""The stored form: its envelope, what it refuses to write, and what it says of what it cannot read."""

import json
import math
from typing import Any

import msgspec
import pytest

from suture.errors import InputError, SchemaVersionError
from suture.messages import (
    SCHEMA_VERSION,
    AgenticMessage,
    FunctionToolResult,
    LogProb,
    Message,
    Opaque,
    ResponseMeta,
    ServerToolCall,
    TextPart,
    ToolCall,
    UserInputText,
    from_json,
    from_msgpack,
    message_from_dict,
    message_to_dict,
    to_json,
    to_msgpack,
)

NUMBERED: Any = {7: "x"}
HOLOGRAM = {"type": "hologram", "beam": [7, None, {"x": 1.5}], "extra": {"a": 1}, "index": 2}


def test_the_envelope_has_a_schema_version_and_messages_that_say_their_kind():
    stored = json.loads(to_json([Message.user("hi"), AgenticMessage.user("hi")]))
    assert stored == {
        "schema": 1,
        "messages": [
            {"kind": "message", "role": "user", "content": "hi"},
            {
                "kind": "agentic",
                "role": "user",
                "content_blocks": [{"type": "user_input_text", "text": "hi"}],
            },
        ],
    }
    assert msgspec.msgpack.decode(to_msgpack([Message.user("hi")])) == {
        "schema": SCHEMA_VERSION,
        "messages": [{"kind": "message", "role": "user", "content": "hi"}],
    }


def test_no_messages_are_stored_as_none():
    assert from_json(to_json([])) == from_msgpack(to_msgpack(())) == from_json("[]") == []


def test_any_iterable_of_messages_can_be_stored():
    assert from_json(to_json(Message.user(text) for text in "ab")) == [Message.user("a"), Message.user("b")]


@pytest.mark.parametrize("data", ['[{"role":"user","content":"hi"}]', b' [ {"content":"hi","role":"user"} ] '])
def test_a_bare_array_is_read_too_and_a_message_without_kind_is_a_chat_message(data):
    assert from_json(data) == [Message.user("hi")]
    assert from_json(bytearray(data, "ascii") if isinstance(data, str) else data) == [Message.user("hi")]


def test_a_message_without_kind_but_with_content_blocks_is_agentic():
    stored = {"role": "user", "content_blocks": [{"type": "user_input_text", "text": "hi"}]}
    assert message_from_dict(stored) == AgenticMessage.user("hi")
    assert from_json(json.dumps([stored])) == [AgenticMessage.user("hi")]
    assert from_msgpack(msgspec.msgpack.encode([stored])) == [AgenticMessage.user("hi")]


def test_a_message_given_as_a_dict_is_plain_lists_and_dicts():
    stored = message_to_dict(Message.assistant("hi", [ToolCall("c1", "f", "{}", extra={"a": (1, 2)})]), index=None)
    assert stored == {
        "kind": "message",
        "role": "assistant",
        "content": "hi",
        "tool_calls": [{"id": "c1", "name": "f", "arguments": "{}", "extra": {"a": [1, 2]}}],
    }
    assert type(stored["tool_calls"][0]["extra"]) is dict


@pytest.mark.parametrize("version", [0, 2, 99])
@pytest.mark.parametrize(("read", "encode"), [(from_json, msgspec.json.encode), (from_msgpack, msgspec.msgpack.encode)])
def test_another_schema_version_is_refused_and_both_versions_are_named(read, encode, version):
    with pytest.raises(SchemaVersionError, match=rf"schema version {version}; this release reads version 1"):
        read(encode({"schema": version, "messages": {"not": "even a list"}}))


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "truncated"),
        (b"[", "truncated"),
        (b"nonsense", "malformed"),
        (b'"text"', r"Expected `object \| array`"),
        (b"{}", "missing required field `schema`"),
        (b'{"messages":[]}', "missing required field `schema`"),
        (b'{"schema":1}', "messages: the envelope holds no messages"),
        (b'{"schema":1,"messages":{}}', "Expected `array`"),
        (b'{"schema":"1","messages":[]}', "schema: Expected `int`"),
        (b'[{"role":"user"},7]', "message 1: a message is an object, not int"),
        (b'[{"role":"user"},{"role":"robot"}]', "message 1, role: Invalid enum value 'robot'"),
        (b'[{"role":"user","kind":"memo"}]', "message 0, kind: .* not 'memo'"),
        (b'[{"role":"user","kind":["message"]}]', "message 0, kind: .* not list"),
        (b'[{"content":"hi"}]', "message 0: Object missing required field `role`"),
        (b'[{"role":"user","content":null}]', "message 0, content: Expected `str`, got `null`"),
        (b'[{"role":"user","mood":"good"}]', "message 0: Object contains unknown field `mood`"),
        (
            b'[{"role":"assistant","tool_calls":[{"id":"c1","function":{"name":"f"}}]}]',
            r"message 0, tool_calls\[0\]: Object contains unknown field `function`",
        ),
        (
            b'[{"kind":"agentic","role":"user","content_blocks":[{"type":"user_input_text","text":7}]}]',
            r"message 0, content_blocks\[0\].text: Expected `str`, got `int`",
        ),
        (
            b'[{"kind":"agentic","role":"user","content_blocks":[{"text":"no type"}]}]',
            r"message 0, content_blocks\[0\]: Object missing required field `type`",
        ),
        (
            b'[{"kind":"agentic","role":"user","content_blocks":[{"type":7}]}]',
            r"message 0, content_blocks\[0\].type: Expected `str`",
        ),
        (
            b'[{"kind":"agentic","role":"user","content_blocks":[7]}]',
            r"content_blocks\[0\]: Expected `object`",
        ),
        (b'[{"kind":"agentic","role":"user","content_blocks":7}]', r"content_blocks: Expected `array`"),
        (b'[{"role":"user","content":"\xff"}]', "message 0: .*can't decode byte 0xff"),
        (b'[{"role":"user","content":"\\ud800 all alone"}]', r"malformed: .*\(byte 33\)"),
        (b'[{"role":"user","extra":{"n":1e999}}]', "out of range"),
        (b'[{"role":"user","extra":{"n":NaN}}]', "malformed"),
        ('[{"role":"user","content":"\ud800"}]', "surrogates not allowed"),
    ],
)
def test_malformed_json_is_refused_with_what_is_wrong_and_where(data, complaint):
    with pytest.raises(InputError, match=complaint):
        from_json(data)


def test_an_error_while_reading_carries_the_message_and_the_path():
    with pytest.raises(InputError) as caught:
        from_json('[{"role":"user"},{"role":"assistant","tool_calls":[{"id":"a"},{"id":7}]}]')
    assert (caught.value.index, caught.value.path) == (1, "tool_calls[1].id")


@pytest.mark.parametrize("kind", [b"", b'"kind":"message",'])
def test_json_nested_beyond_all_measure_is_refused(kind):
    for levels in (100_000, 900, 201):
        data = b"[{" + kind + b'"role":"user","extra":{"a":' + b"[" * levels + b"0" + b"]" * levels + b"}}]"
        with pytest.raises(InputError, match="nested"):
            from_json(data)


@pytest.mark.parametrize(
    ("extra", "complaint"),
    [
        (b"\x81\xa1a\xc4\x01x", "message 0, extra.a: bytes is not a JSON value"),
        (b"\x81\xa1a\x81\x01\x02", "message 0, extra.a: a key must be a string, not int"),
        (b"\x81\xa1a\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00", "message 0, extra.a: nan is not a JSON number"),
        (b"\x81\xa1a\xd6\xff\x00\x00\x00\x00", "message 0, extra.a: datetime is not a JSON value"),
        (b"\x81\xa1a" + b"\x91" * 100_000 + b"\xc0", "nested"),
        (b"\x81\xa1a", "truncated"),
    ],
)
@pytest.mark.parametrize("head", [b"\x91\x82", b"\x91\x83\xa4kind\xa7message"])
def test_msgpack_that_holds_more_than_json_can_is_refused_when_it_is_read(head, extra, complaint):
    with pytest.raises(InputError, match=complaint):
        from_msgpack(head + b"\xa4role\xa4user\xa5extra" + extra)


@pytest.mark.parametrize("write", [to_json, to_msgpack, lambda messages: [message_to_dict(m) for m in messages]])
@pytest.mark.parametrize(
    ("message", "place"),
    [
        (Message("user", extra={"a": [math.nan]}), "extra.a[0]"),
        (Message("user", "\ud800"), "content"),
        (Message("user", extra={"a": {1: 2}}), "extra.a"),
        (Message("user", extra={"a": b"x"}), "extra.a"),
        (Message("user", extra=NUMBERED), "extra"),
        (Message.user([TextPart("a", extra={"x": {1}})]), "user_input_multi_content[0].extra.x"),
        (Message.assistant(tool_calls=[ToolCall("c1", "f", "\udfff")]), "tool_calls[0].arguments"),
        (
            Message("assistant", response_meta=ResponseMeta(logprobs=(LogProb("a", -math.inf),))),
            "response_meta.logprobs[0].logprob",
        ),
        (AgenticMessage.assistant([ServerToolCall(arguments=object())]), "content_blocks[0].arguments"),
        (AgenticMessage.assistant([Opaque({"type": "x", "n": math.nan})]), "content_blocks[0].data.n"),
    ],
)
def test_what_would_not_come_back_as_it_was_is_refused_when_it_is_written(write, message, place):
    with pytest.raises(InputError) as caught:
        write([message])
    assert caught.value.path == place


def test_a_refusal_to_write_names_the_message():
    for write in (to_json, to_msgpack):
        with pytest.raises(InputError) as caught:
            write([Message.user("fine"), Message("user", "\ud800")])
        assert caught.value.index == 1


def test_an_extra_that_contains_itself_is_refused_when_it_is_written():
    loop = []
    loop.append(loop)
    for write in (to_json, to_msgpack):
        with pytest.raises(InputError, match=r"message 0, extra.a\[0\]: a value that contains itself"):
            write([Message("user", extra={"a": loop})])


def test_integers_beyond_64_bits_are_stored_as_json_and_refused_as_msgpack():
    for number in (2**64, -(2**63) - 1):
        message = Message("user", user_input_multi_content=(TextPart("a", index=number),), extra={"n": number})
        assert from_json(to_json([message])) == [message]
        with pytest.raises(InputError, match=r"message 0, .*an integer too large to be stored"):
            to_msgpack([message])
    for number in (2**64 - 1, -(2**63)):
        message = Message("user", extra={"n": number})
        assert from_msgpack(to_msgpack([message])) == [message]


@pytest.mark.parametrize("write", [to_json, to_msgpack])
def test_only_messages_can_be_stored(write):
    with pytest.raises(InputError, match="message 1: expected a Message or AgenticMessage, found dict"):
        write([Message.user("a"), {"role": "user"}])
    with pytest.raises(InputError, match="expected a list of messages, found one Message"):
        write(Message.user("a"))
    with pytest.raises(InputError, match="found TextPart"):
        write([TextPart("a")])


def test_a_dict_that_holds_more_than_json_can_is_no_message():
    no_mapping: Any = [("role", "user")]
    with pytest.raises(InputError, match=r"message 3, extra.a: bytes is not a JSON value"):
        message_from_dict({"role": "user", "extra": {"a": b"x"}}, index=3)
    with pytest.raises(InputError, match="a message is an object, not list"):
        message_from_dict(no_mapping)


@pytest.mark.parametrize(
    ("stored", "held"),
    [
        (
            {"kind": "agentic", "role": "user", "content_blocks": [HOLOGRAM]},
            lambda message: message.content_blocks,
        ),
        (
            {
                "kind": "agentic",
                "role": "user",
                "content_blocks": [
                    {"type": "function_tool_result", "call_id": "c1", "name": "f", "content": [HOLOGRAM]}
                ],
            },
            lambda message: message.content_blocks[0].content,
        ),
        (
            {"kind": "message", "role": "user", "user_input_multi_content": [HOLOGRAM]},
            lambda message: message.user_input_multi_content,
        ),
        (
            {"kind": "message", "role": "assistant", "assistant_gen_multi_content": [HOLOGRAM]},
            lambda message: message.assistant_gen_multi_content,
        ),
    ],
)
def test_a_piece_of_unknown_type_is_kept_opaque_and_written_back_as_it_was(stored, held):
    message = message_from_dict(stored)
    assert held(message) == (Opaque(HOLOGRAM),)
    assert message_to_dict(message) == stored
    assert json.loads(to_json([message]))["messages"] == [stored]
    assert from_msgpack(to_msgpack([message])) == from_json(json.dumps([stored])) == [message]


def test_a_piece_is_unknown_by_the_place_it_stands_in():
    block = {"type": "image", "url": "u"}  # a part's type, not a block's
    message: Any = message_from_dict({"role": "user", "content_blocks": [block]})
    assert message.content_blocks == (Opaque(block),)
    inner = {"type": "reasoning", "text": "x"}  # a block's type, not one that a result may hold
    result = {"type": "function_tool_result", "content": [inner]}
    message = message_from_dict({"role": "user", "content_blocks": [result]})
    assert message.content_blocks == (FunctionToolResult(content=(Opaque(inner),)),)
    assert from_json(to_json([message])) == [message]


def test_a_piece_that_is_unknown_where_it_stands_is_kept_with_all_that_is_in_it():
    result = {"type": "function_tool_result", "content": [HOLOGRAM]}
    message = message_from_dict({"kind": "message", "role": "user", "user_input_multi_content": [result]})
    assert message == Message.user([Opaque(result)])
    assert message_to_dict(message)["user_input_multi_content"] == [result]


def test_an_opaque_of_a_known_type_cannot_be_stored_because_it_would_change():
    for write in (to_json, to_msgpack):
        with pytest.raises(InputError, match=r"message 0, content_blocks\[1\]: .* known type 'reasoning'"):
            write([AgenticMessage.user([UserInputText("a"), Opaque({"type": "reasoning", "text": "x"})])])


def test_reading_a_dict_leaves_the_dict_as_it_was():
    stored = {
        "role": "user",
        "content_blocks": [dict(HOLOGRAM), {"type": "function_tool_result", "content": []}],
    }
    before = json.dumps(stored)
    message_from_dict(stored)
    assert json.dumps(stored) == before
