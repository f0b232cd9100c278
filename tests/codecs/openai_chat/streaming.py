"""Chunks of a stream, and what a reader makes of them."""

from typing import Any

from suture.codecs import get_codec
from suture.messages import AgenticMessage, Delta

CODEC = get_codec("openai-chat")
END = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def chunk(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def piece(arguments: Any = "", name: Any = None, **marks: Any) -> dict[str, Any]:
    function = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
    return {"type": "function", "function": function, **marks}


def read(*events: dict[str, Any]) -> tuple[AgenticMessage, list[Delta]]:
    reader = CODEC.reader()
    deltas = [delta for event in (*events, END) for delta in reader.feed(event)]
    return reader.finish(), deltas
