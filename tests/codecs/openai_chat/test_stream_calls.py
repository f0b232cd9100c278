"""Calls in streams of Chat Completions, however servers mark their pieces."""

from typing import Any

import pytest

from suture.messages import Delta, FunctionToolCall
from tests.codecs.openai_chat.samples import SIGNATURE, kept, own
from tests.codecs.openai_chat.server import chunk, piece, read

CALLS: dict[str, list[list[dict[str, Any]]]] = {
    "by the index": [
        [piece("", "f", index=0, id="a")],
        [piece('{"x"', index=0)],
        [piece(": 1}", index=0)],
        [piece("", "g", index=1, id="b")],
        [piece("{}", index=1)],
    ],
    "in turns": [
        [piece("", "f", index=0, id="a"), piece("", "g", index=1, id="b")],
        [piece("{", index=1), piece('{"x"', index=0)],
        [piece(": 1}", index=0), piece("}", index=1)],
    ],
    "whole": [[piece('{"x": 1}', "f", index=0, id="a"), piece("{}", "g", index=1, id="b")]],
    "whole, without an index": [[piece('{"x": 1}', "f", id="a")], [piece("{}", "g", id="b")]],
    "both at once, without an index": [[piece('{"x": 1}', "f", id="a"), piece("{}", "g", id="b")]],
    "by the id alone": [
        [piece("", "f", id="a")],
        [piece('{"x"', id="a")],
        [piece("", "g", id="b")],
        [piece(": 1}", id="a")],
        [piece("{}", id="b")],
    ],
    "by nothing but the order": [
        [piece("", "f", id="a")],
        [piece('{"x"')],
        [piece(": 1}")],
        [piece("", "g", id="b")],
        [piece("{}")],
    ],
    "with an index that is null": [
        [piece("", "f", id="a", index=None)],
        [piece('{"x": 1}', id=None, index=None)],
        [piece("{}", "g", id="b", index=None)],
    ],
    "with the id and the name in each": [
        [piece("", "f", index=0, id="a")],
        [piece('{"x": 1}', "f", index=0, id="a")],
        [piece("{}", "g", index=1, id="b")],
    ],
    "with a new id in each": [
        [piece("", "f", index=0, id="a")],
        [piece('{"x"', index=0, id="a2")],
        [piece(": 1}", index=0, id="a3")],
        [piece("", "g", index=1, id="b")],
        [piece("{}", index=1, id="b2")],
    ],
    "under the index of the call before": [
        [piece('{"x": 1}', "f", index=0, id="a")],
        [piece("", "g", index=0, id="b")],
        [piece("{}", index=1)],
    ],
    "under one index": [
        [piece('{"x": 1}', "f", index=0, id="a"), piece("", "g", index=0, id="b")],
        [piece("{}", index=0)],
    ],
    "with the name behind the arguments": [
        [piece('{"x"', index=0, id="a")],
        [piece(": 1}", "f", index=0)],
        [piece("{}", "g", index=1, id="b")],
    ],
    "with the id before all else": [
        [{"index": 0, "id": "a", "type": "function"}],
        [piece('{"x": 1}', "f", index=0)],
        [{"index": 1, "id": "b", "type": "function", "function": {}}, piece("{}", "g", index=1)],
    ],
    "with the id behind the name": [
        [piece('{"x"', "f", index=0)],
        [piece(": 1}", index=0, id="a")],
        [piece("{}", "g", index=1, id="b")],
    ],
    "under one index, with no id but the first": [
        [piece('{"x": 1}', "f", index=0, id="a")],
        [piece("", "g", index=0)],
        [piece("{}", index=0, id="b")],
    ],
    "with arguments that are an object": [
        [piece('{"x": 1}', "f", index=0, id="a")],
        [piece({}, "g", index=1, id="b")],
    ],
}


@pytest.mark.parametrize("chunks", CALLS.values(), ids=CALLS)
def test_calls_are_put_together_however_their_pieces_are_marked(chunks: list[list[dict[str, Any]]]):
    message, deltas = read(*(chunk(tool_calls=pieces) for pieces in chunks))
    assert message.content_blocks == (FunctionToolCall("a", "f", '{"x": 1}'), FunctionToolCall("b", "g", "{}"))
    for place, block in enumerate(message.content_blocks):
        assert isinstance(block, FunctionToolCall)
        mine = [delta for delta in deltas if delta.call_index == place]
        assert [delta.call_id for delta in mine if delta.call_id] == [block.call_id]
        assert [delta.name for delta in mine if delta.name] == [block.name]
        assert "".join(delta.arguments for delta in mine) == block.arguments


def test_calls_without_any_id_are_told_apart_by_their_names():
    message, _ = read(chunk(tool_calls=[piece('{"x": 1}', "f")]), chunk(tool_calls=[piece("{}", "f")]))
    assert message.content_blocks == (FunctionToolCall("", "f", '{"x": 1}'), FunctionToolCall("", "f", "{}"))


SHARED: dict[str, tuple[list[dict[str, Any]], ...]] = {
    "one id, in one chunk": ([piece('{"x": 1}', "f", id="a"), piece("{}", "g", id="a")],),
    "one id and one name, in one chunk": ([piece('{"x": 1}', "f", id="a"), piece("{}", "f", id="a")],),
    "one id, in two chunks": ([piece('{"x": 1}', "f", id="a")], [piece("{}", "g", id="a")]),
    "one id and one index": ([piece('{"x": 1}', "f", index=0, id="a")], [piece("{}", "g", index=0, id="a")]),
    "one index and no id": ([piece('{"x": 1}', "f", index=0)], [piece("", "g", index=0)], [piece("{}", index=0)]),
}


@pytest.mark.parametrize("chunks", SHARED.values(), ids=SHARED)
def test_a_call_that_has_a_name_is_not_given_another(chunks: tuple[list[dict[str, Any]], ...]):
    message, deltas = read(*(chunk(tool_calls=pieces) for pieces in chunks))
    found = [block for block in message.content_blocks if isinstance(block, FunctionToolCall)]
    assert [call.arguments for call in found] == ['{"x": 1}', "{}"]
    assert [delta.name for delta in deltas if delta.name] == [call.name for call in found]
    assert {delta.call_index for delta in deltas} == {0, 1}


def test_a_custom_call_comes_in_pieces():
    head = {"index": 0, "id": "c", "type": "custom", "custom": {"name": "shell", "input": "ls"}}
    rest = {"index": 0, "custom": {"input": " -l"}}
    message, deltas = read(chunk(tool_calls=[head]), chunk(tool_calls=[rest]))
    assert message.content_blocks == (FunctionToolCall("c", "shell", "ls -l", extra={"suture.kind": "custom"}),)
    assert deltas == [
        Delta(call_index=0, call_id="c", name="shell", arguments="ls"),
        Delta(call_index=0, arguments=" -l"),
    ]


def test_what_a_call_carries_stays_with_it():
    message, _ = read(chunk(tool_calls=[piece("{}", "f", id="a", **SIGNATURE)]))
    assert message.content_blocks == (FunctionToolCall("a", "f", "{}", extra=own(**SIGNATURE)),)


def test_a_call_of_the_older_form_comes_in_pieces():
    message, deltas = read(
        chunk(function_call={"name": "f", "arguments": ""}), chunk(function_call={"arguments": "{}"})
    )
    assert message.content_blocks == (kept({"function_call": {"name": "f", "arguments": "{}"}}),)
    assert deltas == []


def test_a_call_of_the_older_form_without_arguments_still_says_so():
    message, _ = read(chunk(function_call={"name": "f", "arguments": ""}))
    assert message.content_blocks == (kept({"function_call": {"name": "f", "arguments": ""}}),)
