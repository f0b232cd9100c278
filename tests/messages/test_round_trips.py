"""Whatever the two message types can hold comes back from storage as it was."""

from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields

from suture.messages import (
    AgenticMessage,
    Message,
    Opaque,
    from_json,
    from_msgpack,
    message_from_dict,
    message_to_dict,
    to_json,
    to_msgpack,
)

_INT64 = st.integers(-(2**63), 2**64 - 1)
_TEXT = st.text(max_size=8)
_FLOATS = st.floats(allow_nan=False, allow_infinity=False)
_PLAIN = st.recursive(
    st.none() | st.booleans() | _INT64 | _FLOATS | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=6,
)
_MAPS = st.dictionaries(_TEXT, _PLAIN, max_size=3)
_UNKNOWN = st.builds(lambda kind, rest: Opaque({**rest, "type": f"x-{kind}"}), st.text("abc", max_size=4), _MAPS)
_LEAVES: dict[Any, st.SearchStrategy[Any]] = {
    str: _TEXT,
    int: _INT64,
    bool: st.booleans(),
    float: _FLOATS,
    Any: _PLAIN,
    type(None): st.none(),
    Opaque: _UNKNOWN,
}


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Everything that a field with this annotation may hold."""
    if hint in _LEAVES:
        return _LEAVES[hint]
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return st.sampled_from(args)
    if origin in (tuple, Sequence):
        return st.lists(values_of(args[0]), max_size=3).map(tuple)
    if origin is Mapping:
        return _MAPS
    if origin in (Union, UnionType):
        return st.one_of([values_of(arg) for arg in args])
    given_fields = {field.name: st.deferred(lambda kind=field.type: values_of(kind)) for field in fields(hint)}
    return st.builds(hint, **given_fields)


ANY_MESSAGES = st.lists(values_of(Message) | values_of(AgenticMessage), max_size=4)


@given(ANY_MESSAGES)
def test_messages_of_both_types_come_back_from_json_equal_and_to_the_same_bytes(messages):
    stored = to_json(messages)
    again = from_json(stored)
    assert again == messages
    assert to_json(again) == stored


@given(ANY_MESSAGES)
def test_messages_of_both_types_come_back_from_msgpack_equal_and_to_the_same_bytes(messages):
    stored = to_msgpack(messages)
    again = from_msgpack(stored)
    assert again == messages
    assert to_msgpack(again) == stored


@given(values_of(Message) | values_of(AgenticMessage))
def test_a_message_comes_back_from_its_dict_with_or_without_its_kind(message):
    stored = message_to_dict(message)
    assert message_from_dict(stored) == message
    del stored["kind"]
    if isinstance(message, Message) or message.content_blocks:
        assert message_from_dict(stored) == message


@given(values_of(Message) | values_of(AgenticMessage))
def test_a_message_inside_another_struct_comes_back_through_plain_msgspec(message):
    assert msgspec.json.decode(msgspec.json.encode(message), type=Message | AgenticMessage) == message


@given(st.integers())
@pytest.mark.parametrize("factor", [1, 2**64, -(2**200)])
def test_integers_of_any_size_come_back_from_json(factor, number):
    message = Message.user("x")
    message = msgspec.structs.replace(message, extra={"n": number * factor})
    assert from_json(to_json([message]))[0].extra["n"] == number * factor


def test_every_stored_block_type_has_the_name_it_is_known_by():
    blocks = get_args(get_args(AgenticMessage.__annotations__["content_blocks"])[0])
    assert {block.__struct_config__.tag for block in blocks if block is not Opaque} == {
        "reasoning",
        "user_input_text",
        "user_input_image",
        "user_input_audio",
        "user_input_video",
        "user_input_file",
        "tool_search_result",
        "assistant_gen_text",
        "assistant_gen_image",
        "assistant_gen_audio",
        "assistant_gen_video",
        "function_tool_call",
        "function_tool_result",
        "server_tool_call",
        "server_tool_result",
        "mcp_tool_call",
        "mcp_tool_result",
        "mcp_list_tools_result",
        "mcp_tool_approval_request",
        "mcp_tool_approval_response",
    }
