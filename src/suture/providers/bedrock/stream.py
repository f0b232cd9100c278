"""Reads streams of Converse, and the metadata and errors of its replies."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

from suture.codecs.codec import as_json
from suture.codecs.contents import rest_of
from suture.codecs.refusals import read_failure
from suture.codecs.replies import BlockReader, OpenBlock, join_base64, make_meta, read_usage
from suture.errors import InputError, ModelError, ModelReplyError
from suture.messages import Delta, ResponseMeta
from suture.wires.fields import expect, get, is_map, map_of, object_of, text_of

WIRE = "bedrock"
SERVER_CALL = "server_tool_use"
"""The type of a call that the service itself runs."""
_REASONS = {
    **dict.fromkeys(("end_turn", "stop_sequence"), "stop"),
    **dict.fromkeys(("max_tokens", "model_context_window_exceeded"), "length"),
    **dict.fromkeys(("content_filtered", "guardrail_intervened"), "content_filter"),
    "tool_use": "tool_calls",
}
_SLIPS = ("malformed_model_output", "malformed_tool_use")
_COUNTS = {
    "prompt_tokens": "inputTokens cacheReadInputTokens cacheWriteInputTokens",
    "completion_tokens": "outputTokens",
    "total_tokens": "totalTokens",
    "cached_tokens": "cacheReadInputTokens",
    "cache_write_tokens": "cacheWriteInputTokens",
}
"""The fields of the token usage; Converse does not include cached tokens in `inputTokens`."""
_EVENTS = (
    *("messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop"),
    *("messageStop", "metadata"),
)
_PADDING, _RESPONSE, _INDEX = "p", "ResponseMetadata", "contentBlockIndex"
_STARTED = ("toolUse", "toolResult", "image")
"""The types of blocks that need a start before their deltas."""


# Failures


def _failure(kind: str, body: Any) -> ModelError:
    """Return the error for an exception of the service."""
    reasons = [get(body, name) for name in ("message", "Message", "originalMessage")]
    reason = ": ".join(dict.fromkeys(said for said in reasons if isinstance(said, str) and said)) or kind
    return read_failure(WIRE, {"message": reason, "status": get(body, "originalStatusCode")}, kind=kind)


def read_refusal(body: Mapping[str, Any]) -> Exception:
    """Return the error in a body without a message: the service's own, or boto3's form of it."""
    error = body.get("Error")
    if is_map(error):
        return _failure(str(error.get("Code", "")), error)
    if "message" in body or "Message" in body:
        return _failure(str(body.get("__type", "")).rpartition("#")[2] or "error", body)
    return InputError("a response without output")


# Metadata of a reply


def has_only(value: Any, *names: str) -> TypeGuard[Mapping[str, Any]]:
    """Return whether `value` is an object with no fields except `names`."""
    return is_map(value) and value.keys() <= set(names)


def read_meta(body: Mapping[str, Any]) -> ResponseMeta:
    """Return why a reply ended, its token usage, and the other fields of its body."""
    word = text_of(body, "stopReason")
    if word in _SLIPS:
        raise ModelReplyError(f"the model's reply is of no use: {word}", provider=WIRE, code=word)
    usage = body.get("usage")
    counted = None if usage is None else read_usage(usage, _COUNTS)
    facts = {**rest_of(body, "output", "stopReason", _RESPONSE), "id": get(body.get(_RESPONSE), "RequestId")}
    return make_meta(facts, word, _REASONS, counted)


# Streams


class BedrockReader(BlockReader):
    """Reads the events of `ConverseStream`, from boto3 or from JSON.

    >>> from suture.codecs import get_codec
    >>> reader = get_codec("bedrock").reader()
    >>> reader.feed({"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "hi"}}})
    [Delta(text='hi')]
    >>> reader.finish()
    Traceback (most recent call last):
        ...
    suture.errors.StreamCutError: bedrock: the stream ended before the reply did; ask again
    """

    def __init__(self, codec: Any) -> None:
        super().__init__(codec)
        self._message: dict[str, Any] = {"role": "assistant"}
        self._rest: dict[str, Any] = {}
        self._ended = False

    def add(self, event: Mapping[str, Any]) -> Iterator[Delta]:
        for kind, payload in as_json(dict(event)).items():
            if kind in _EVENTS:
                # The padding has no meaning.
                yield from self._take(kind, rest_of(expect(payload, dict, "an object", kind), _PADDING))
            elif kind.endswith(("Exception", "Error")) or has_only(payload, "message"):
                raise _failure(kind, payload)

    def fold(self) -> Mapping[str, Any] | None:
        if not self._ended:
            return None
        content = [_join(block) for block in self.in_order() if block.kind]
        return {**self._rest, "output": {"message": {**self._message, "content": content}}}

    def _take(self, kind: str, facts: dict[str, Any]) -> Iterator[Delta]:
        match kind:
            case "messageStart":
                self._message |= facts
            case "contentBlockStart":
                yield from self._start(facts)
            case "contentBlockDelta":
                yield from self._add(facts)
            case "contentBlockStop":
                if (block := self.blocks.get(self.place_of(facts, _INDEX))) is not None:
                    block.is_open = False
            case "messageStop":
                if not isinstance(facts.get("stopReason"), str):
                    raise InputError("a messageStop without its reason")
                self._rest |= facts
                self._ended = True
            case _:
                if "usage" in facts:
                    yield Delta(usage=read_usage(facts["usage"], _COUNTS))
                self._rest |= facts

    def _start(self, facts: Mapping[str, Any]) -> list[Delta]:
        start, place = object_of(facts, "start", "contentBlockStart"), self.place_of(facts, _INDEX)
        if len(start) > 1 or self._ended:
            raise InputError(f"block {place} begins where it cannot")
        [(kind, head)] = list[tuple[str, Any]](start.items()) or [("", {})]
        if kind not in _STARTED and not (is_map(head) and head):
            kind, head = "", {}
        head = expect(head, dict, "an object", f"contentBlockStart.start.{kind}")
        call_id, name = head.get("toolUseId"), head.get("name")
        if kind == "toolUse" and not (isinstance(call_id, str) and isinstance(name, str)):
            raise InputError("a call without its id or its name")
        block = self.begin(place, kind, head, is_call=kind == "toolUse" and head.get("type") != SERVER_CALL)
        return block.show_call(call_id=call_id, name=name)

    def _add(self, facts: Mapping[str, Any]) -> Iterator[Delta]:
        delta, place = object_of(facts, "delta", "contentBlockDelta"), self.place_of(facts, _INDEX)
        for kind, held in delta.items():
            block = None if held is None else self._block_at(place, "text" if kind == "citation" else kind)
            if block is None:
                continue
            if kind == "toolResult":
                block.pieces.setdefault(kind, []).extend(expect(held, list, "a list", kind))
                continue
            fields = delta if kind == "text" else expect(held, dict, "an object", kind)
            if kind in {"citation", "image"}:
                block.add(kind, fields)
                continue
            for name in ("text", "signature", "redactedContent", "input"):
                if name in fields:
                    block.add(name, piece := text_of(fields, name))
                    if name == "input" and piece:
                        yield from block.show_call(arguments=piece)
                    elif name == "text" and piece:
                        yield Delta(reasoning=piece) if block.kind == "reasoningContent" else Delta(piece)

    def _block_at(self, index: int, kind: str) -> OpenBlock | None:
        """Return the block for a delta, a new one if text or reasoning begins it; `None` for an unknown kind."""
        block = self.blocks.get(index)
        if kind not in {"text", "reasoningContent", *_STARTED}:
            return None
        if self._ended or (block is not None and not block.is_open):
            raise InputError(f"a delta for block {index}, which has ended")
        if block is None or not block.kind:
            if kind in _STARTED:
                raise InputError(f"a delta of {kind} for block {index}, which never began")
            block = self.blocks[index] = OpenBlock(kind, {}, None)
        if block.kind != kind:
            raise InputError(f"a delta of {kind} for block {index}, which is {block.kind}")
        return block


def _join(block: OpenBlock) -> dict[str, Any]:
    """Return a block in the form that it has in a plain response."""
    kind, pieces = block.kind, block.pieces
    if kind == "toolUse":
        made: Any = {**block.head, "input": block.arguments("input")}
    elif kind == "toolResult":
        made = {**block.head, "content": pieces.get("toolResult", [])}
    elif kind == "image":
        made = {name: value for piece in (block.head, *pieces.get(kind, ())) for name, value in piece.items()}
        found = [map_of(piece, "source").get("bytes") for piece in pieces.get(kind, ())]
        if data := [each for each in found if isinstance(each, str)]:
            made["source"] = {"bytes": join_base64(data)}
    elif block.head:
        made = block.head
    elif "redactedContent" in pieces:
        made = {"redactedContent": join_base64(pieces["redactedContent"])}
    elif kind == "reasoningContent":
        signature = block.text("signature")
        made = {"reasoningText": {"text": block.text("text"), **({"signature": signature} if signature else {})}}
    else:
        kind, made = "text", block.text("text")
        if "citation" in pieces:
            content = {"content": [{"text": made}]} if made else {}
            kind, made = "citationsContent", {**content, "citations": pieces["citation"]}
    return {kind: made}
