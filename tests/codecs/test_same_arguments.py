"""Arguments that a server sends twice, or behind an empty object, in streams whose blocks are counted."""

from typing import Any

import pytest

from suture.codecs import get_codec
from suture.messages import FunctionToolCall

ROME = '{"city":"Rome"}'
READ = {"{}" + ROME: ROME, ROME + ROME: ROME, "null": "{}", ROME[:-1]: ROME[:-1], '{"x":1}{"x":2}': '{"x":1}{"x":2}'}


def anthropic(pieces: list[str]) -> list[dict[str, Any]]:
    call = {"type": "tool_use", "id": "a", "name": "weather", "input": {}}
    said = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return [
        {"type": "message_start", "message": {"content": []}},
        {"type": "content_block_start", "index": 0, "content_block": call},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in said),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    ]


def bedrock(pieces: list[str]) -> list[dict[str, Any]]:
    call = {"toolUse": {"toolUseId": "a", "name": "weather"}}
    said = [{"toolUse": {"input": piece}} for piece in pieces]
    return [
        {"contentBlockStart": {"contentBlockIndex": 0, "start": call}},
        *({"contentBlockDelta": {"contentBlockIndex": 0, "delta": delta}} for delta in said),
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"messageStop": {"stopReason": "tool_use"}},
    ]


@pytest.mark.parametrize("text", READ)
@pytest.mark.parametrize(("wire", "events_of"), [("anthropic", anthropic), ("bedrock", bedrock)])
def test_arguments_are_one_object(wire: str, events_of: Any, text: str):
    reader = get_codec(wire).reader()
    for event in events_of([text[:3], text[3:]]):
        reader.feed(event)
    [call] = reader.finish().content_blocks
    assert isinstance(call, FunctionToolCall)
    assert call.arguments == READ[text]
