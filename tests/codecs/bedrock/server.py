"""What Converse answers, for tests that need an answer: responses, the events of a stream, and their frames."""

import json
from collections.abc import Mapping
from struct import pack
from typing import Any
from zlib import crc32

from suture.codecs import get_codec
from suture.messages import AgenticMessage, FunctionToolCall, ResponseMeta

_REASONS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "content_filtered"}


def write_reply(message: AgenticMessage) -> dict[str, Any]:
    """Return the body of a response that says `message`."""
    said = AgenticMessage("assistant", message.content_blocks)
    content = [block for one in get_codec("bedrock").encode_messages([said]).payload for block in one["content"]]
    meta = message.response_meta or ResponseMeta()
    calls = any(isinstance(block, FunctionToolCall) for block in message.content_blocks)
    stop = _REASONS.get(meta.finish_reason, meta.finish_reason) or ("tool_use" if calls else "end_turn")
    body: dict[str, Any] = {"output": {"message": {"role": "assistant", "content": content}}, "stopReason": stop}
    if meta.usage is not None:
        body["usage"] = {
            "inputTokens": meta.usage.prompt_tokens - meta.usage.cached_tokens - meta.usage.cache_write_tokens,
            "outputTokens": meta.usage.completion_tokens,
            "totalTokens": meta.usage.total_tokens,
            "cacheReadInputTokens": meta.usage.cached_tokens,
            "cacheWriteInputTokens": meta.usage.cache_write_tokens,
        }
    return body


def write_stream(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the events of a stream that says what `body`, a plain response, says."""
    rest = dict(body)
    message = dict(rest.pop("output")["message"])
    events: list[dict[str, Any]] = []
    for index, block in enumerate(message.pop("content")):
        place = {"contentBlockIndex": index}
        start, deltas = _pieces(block)
        events += [{"contentBlockStart": {**place, "start": start}}] if start else []
        events += [{"contentBlockDelta": {**place, "delta": delta}} for delta in deltas]
        events.append({"contentBlockStop": place})
    stop = {"stopReason": rest.pop("stopReason")}
    return [{"messageStart": message}, *events, {"messageStop": stop}, *([{"metadata": rest}] if rest else [])]


def _pieces(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return what a block begins with and its deltas; one that streams have no form for begins with all of it."""
    [(kind, held)] = block.items()
    rest = dict(held) if isinstance(held, dict) else {}
    match kind:
        case "text":
            return {}, [{kind: held}]
        case "toolUse":
            return {kind: rest}, [{kind: {"input": json.dumps(rest.pop("input"))}}]
        case "image" if "source" in rest:
            return {kind: rest}, [{kind: {"source": rest.pop("source")}}]
        case "citationsContent" if "content" in rest:
            return {}, [*rest["content"], *({"citation": citation} for citation in rest["citations"])]
        case "reasoningContent" if rest.get("reasoningText", {}).get("signature") != "":
            return {}, [{kind: {name: piece}} for name, piece in rest.get("reasoningText", rest).items()]
        case _:
            return block, []


def frame(event: Mapping[str, Any]) -> bytes:
    """Return one event as a frame of Amazon's event stream."""
    [(kind, payload)] = event.items()
    failed = kind.endswith("Exception")
    named = {
        ":exception-type" if failed else ":event-type": kind,
        ":content-type": "application/json",
        ":message-type": "exception" if failed else "event",
    }
    headers = b"".join(
        [
            pack(">B", len(name)) + name.encode() + pack(">BH", 7, len(said)) + said.encode()
            for name, said in named.items()
        ]
    )
    data = json.dumps(payload).encode()
    prelude = pack(">II", 16 + len(headers) + len(data), len(headers))
    whole = prelude + pack(">I", crc32(prelude)) + headers + data
    return whole + pack(">I", crc32(whole))
