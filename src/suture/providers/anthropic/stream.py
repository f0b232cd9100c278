"""Reads streams of Anthropic's Messages API, and the metadata and errors of its replies."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from suture.codecs.contents import rest_of
from suture.codecs.refusals import read_failure
from suture.codecs.replies import BlockReader, OpenBlock, make_meta, read_usage
from suture.errors import InputError
from suture.messages import Delta, ResponseMeta, check_plain
from suture.wires.fields import argument_json, list_of, object_of, text_of

NAME = "anthropic"
_REASONS = {
    **dict.fromkeys(("end_turn", "stop_sequence"), "stop"),
    **dict.fromkeys(("max_tokens", "model_context_window_exceeded"), "length"),
    "tool_use": "tool_calls",
    "refusal": "content_filter",
    "pause_turn": "pause",
}
_COUNTS = {
    "prompt_tokens": "input_tokens cache_creation_input_tokens cache_read_input_tokens",
    "completion_tokens": "output_tokens",
    "cached_tokens": "cache_read_input_tokens",
    "cache_write_tokens": "cache_creation_input_tokens",
    "reasoning_tokens": "output_tokens_details.thinking_tokens",
}
"""The fields of the token usage; the API does not include cached tokens in `input_tokens`."""
_READ = ("type", "role", "content", "stop_reason")
_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
_DELTAS: Mapping[str, tuple[Collection[str], str, str]] = {
    "text_delta": (("text",), "text", "text"),
    "thinking_delta": (("thinking",), "thinking", "thinking"),
    "signature_delta": (("thinking",), "signature", "signature"),
    "input_json_delta": (_CALLS, "partial_json", "input"),
    "citations_delta": (("text",), "citation", "citations"),
    "compaction_delta": (("compaction",), "", ""),
}
"""For each type of delta: the types of blocks that it may add to, its own field, and the field of the block."""
_KINDS = {kind for kinds, _, _ in _DELTAS.values() for kind in kinds} | {"redacted_thinking"}
"""The types of blocks for which the allowed deltas are known."""


# Metadata and errors of a reply


def read_meta(body: Mapping[str, Any]) -> ResponseMeta:
    """Return why a reply ended, its token usage, and the other fields of its body."""
    usage = body.get("usage")
    counted = None if usage is None else read_usage(usage, _COUNTS)
    return make_meta(rest_of(body, *_READ), text_of(body, "stop_reason"), _REASONS, counted)


def raise_error(body: Mapping[str, Any]) -> None:
    """Raise the error that a body or an event of a stream reports; some servers send it without its type."""
    if body.get("type") == "error" or (body.get("type") is None and body.get("error")):
        raise read_failure(NAME, body.get("error"), request_id=text_of(body, "request_id"))


# Streams


class AnthropicReader(BlockReader):
    """Reads one streamed reply.

    >>> from suture.codecs import get_codec
    >>> reader = get_codec("anthropic").reader()
    >>> reader.feed({"type": "message_start", "message": {"content": []}})
    []
    >>> reader.feed({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "hi"}})
    [Delta(text='hi')]
    """

    def __init__(self, codec: Any) -> None:
        super().__init__(codec)
        self._body: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._started = self._ended = False
        self._takers: Mapping[str, Callable[[Mapping[str, Any]], list[Delta]]] = {
            "message_start": self._start,
            "content_block_start": self._open,
            "content_block_delta": self._add,
            "content_block_stop": self._close,
            "message_delta": self._change,
            "message_stop": self._stop,
        }

    def add(self, event: Mapping[str, Any]) -> list[Delta]:
        kind = event.get("type")
        if kind is None or kind == "error":
            raise_error(event)
        if not isinstance(kind, str):
            raise InputError("an event without a type")
        if kind not in self._takers:
            return []
        if not self._started and kind != "message_start":
            raise InputError(f"{kind}, it came before message_start")
        try:
            return self._takers[kind](event)
        except InputError as error:
            raise InputError(f"{kind}, {error}") from None

    def fold(self) -> Mapping[str, Any] | None:
        if not self._ended and self._body.get("stop_reason") is None:
            return None
        return {**self._body, "content": [*map(_join, self.in_order())], "usage": self._usage or None}

    def _start(self, event: Mapping[str, Any]) -> list[Delta]:
        if self._started and self.blocks:
            raise InputError("a second beginning")
        message = object_of(event, "message")
        self._body = rest_of(message, "content", "usage")
        self._started = True
        deltas = self._count(message)
        for place, block in enumerate(list_of(message, "content", path="message")):  # what has come before, whole
            deltas += self._open({"index": place, "content_block": block})
            deltas += self._close({"index": place})
        return deltas

    def _open(self, event: Mapping[str, Any]) -> list[Delta]:
        start = object_of(event, "content_block")
        kind = text_of(start, "type")
        if not kind:
            raise InputError("expected a type", path="content_block.type")
        check_plain(start)
        block = self.begin(self.place_of(event, "index"), kind, start, is_call=kind == "tool_use")
        if kind == "tool_use":
            return block.show_call(call_id=text_of(start, "id"), name=text_of(start, "name"))
        text = text_of(start, "text") if kind == "text" else ""
        thought = text_of(start, "thinking") if kind == "thinking" else ""
        return [Delta(text, thought)] if text or thought else []

    def _add(self, event: Mapping[str, Any]) -> list[Delta]:
        block, delta = self._block_of(event), object_of(event, "delta")
        kind = text_of(delta, "type")
        if kind not in _DELTAS:
            return []
        types, source, field = _DELTAS[kind]
        if block.kind not in types and block.kind in _KINDS:
            if delta.get(source) == "":
                return []
            raise InputError(f"a {kind} for a block of type {block.kind}", path="delta.type")
        if not field:  # a compaction comes whole
            block.head |= rest_of(delta, "type")
            return []
        piece: Any = object_of(delta, source) if field == "citations" else text_of(delta, source)
        block.add(field, piece)
        if not piece or field in {"signature", "citations"} or block.kind not in types:
            return []
        if field == "input":
            return block.show_call(arguments=piece)
        return [Delta(piece) if field == "text" else Delta(reasoning=piece)]

    def _close(self, event: Mapping[str, Any]) -> list[Delta]:
        block = self._block_of(event)
        block.is_open = False
        arguments = None if block.text("input") else block.head.get("input")
        return block.show_call(arguments=argument_json(arguments)) if arguments else []

    def _change(self, event: Mapping[str, Any]) -> list[Delta]:
        delta = object_of(event, "delta")
        text_of(delta, "stop_reason")
        self._body |= rest_of({**event, **delta}, "type", "delta", "usage")
        return self._count(event)

    def _stop(self, _event: Mapping[str, Any]) -> list[Delta]:
        self._ended = True
        return []

    def _count(self, holder: Mapping[str, Any]) -> list[Delta]:
        """Take the counts of tokens; each of them is for the whole reply so far."""
        if holder.get("usage") is None:
            return []
        self._usage |= rest_of(object_of(holder, "usage"))
        return [Delta(usage=read_usage(self._usage, _COUNTS))]

    def _block_of(self, event: Mapping[str, Any]) -> OpenBlock:
        block = self.blocks.get(self.place_of(event, "index"))
        if block is None or not block.is_open:
            raise InputError(f"block {event['index']} is not open", path="index")
        return block


def _join(block: OpenBlock) -> dict[str, Any]:
    """Return a block in the form that it has in a plain response."""
    made = dict(block.head)
    for name, pieces in block.pieces.items():
        if name == "citations":
            made[name] = [*list_of(block.head, name), *pieces]
        elif name == "signature":
            made[name] = pieces[-1]
        elif name != "input":
            made[name] = text_of(block.head, name) + block.text(name)
        elif block.text(name).strip():
            made[name] = block.arguments(name)
    return made
