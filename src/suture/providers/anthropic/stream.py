"""Streams of Anthropic's Messages API: events folded into the body of a plain response, and such a body cut up."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from suture.codecs._contents import arguments_text
from suture.errors import InputError, StreamCutError
from suture.messages import AgenticMessage, Delta, check_plain
from suture.providers.anthropic.fields import count_in, list_in, map_in, text_in
from suture.providers.anthropic.reply import error_in, nonsense, read_reply, read_usage

__all__ = ["AnthropicReader", "cut"]

_CALLING = frozenset(("tool_use", "server_tool_use", "mcp_tool_use"))
_STOPPED = ("stop_reason", "stop_sequence", "stop_details")
_decode = msgspec.json.Decoder().decode


class _Block:
    """A block that is still being said: how it began, and what came since."""

    __slots__ = ("arguments", "began", "call_index", "citations", "signature", "texts", "thoughts", "type")

    def __init__(self, began: Mapping[str, Any], call_index: int | None) -> None:
        self.began = dict(began)
        self.type: str = began["type"]
        self.call_index = call_index
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.arguments: list[str] = []
        self.citations: list[Any] = []
        self.signature: str | None = None

    def whole(self) -> dict[str, Any]:
        """Return the block as a plain response would hold it."""
        block = dict(self.began)
        if self.texts:
            block["text"] = "".join([text_in(self.began, "text"), *self.texts])
        if self.thoughts:
            block["thinking"] = "".join([text_in(self.began, "thinking"), *self.thoughts])
        if self.signature is not None:
            block["signature"] = self.signature
        if self.citations:
            before = list_in(self.began, "citations") if self.began.get("citations") else []
            block["citations"] = [*before, *self.citations]
        arguments = "".join(self.arguments)
        if arguments.strip():
            block["input"] = _parsed(arguments)
        return block


def _parsed(arguments: str) -> Any:
    """Return arguments as an object; a piece of one, in a reply that was cut by its length, as it is."""
    try:
        found: Any = _decode(arguments)
        check_plain(found)
    except (msgspec.DecodeError, UnicodeError, RecursionError, InputError):
        return arguments
    return found if found.__class__ is dict else arguments


class AnthropicReader:
    """Reads one streamed reply.

    >>> reader = AnthropicReader()
    >>> reader.feed({"type": "message_start", "message": {"content": []}})
    []
    >>> reader.feed({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "hi"}})
    [Delta(text='hi')]
    """

    def __init__(self) -> None:
        self._body: dict[str, Any] | None = None
        self._usage: dict[str, Any] = {}
        self._blocks: dict[int, _Block] = {}
        self._open: set[int] = set()
        self._calls = 0
        self._ended = False
        self._events: Mapping[str, Callable[[Mapping[str, Any]], list[Delta]]] = {
            "message_start": self._start,
            "content_block_start": self._open_block,
            "content_block_delta": self._add,
            "content_block_stop": self._close_block,
            "message_delta": self._change,
            "message_stop": self._stop,
            "error": self._fail,
        }

    def feed(self, event: Mapping[str, Any]) -> list[Delta]:
        """Return what `event` adds; raise the error that it reports."""
        kind = event.get("type")
        if not isinstance(kind, str):
            raise nonsense("an event without a type")
        taking = self._events.get(kind)
        try:
            return [] if taking is None else taking(event)
        except InputError as error:
            raise nonsense(f"{kind}, {error}") from None

    def finish(self) -> AgenticMessage:
        """Return the whole message; raise `StreamCutError` where its end was not said."""
        body = self._body
        if body is None or not (self._ended or body.get("stop_reason") is not None):
            raise StreamCutError("anthropic: the stream ended before the reply did; ask again")
        try:
            content = [self._blocks[index].whole() for index in sorted(self._blocks)]
        except InputError as error:
            raise nonsense(str(error)) from None
        return read_reply({**body, "content": content, "usage": self._usage or None})

    def _start(self, event: Mapping[str, Any]) -> list[Delta]:
        if self._body is not None:
            raise InputError("a second beginning")
        message = map_in(event, "message")
        if message.get("content"):
            raise InputError("expected a beginning without content", path="message.content")
        self._body = {name: value for name, value in message.items() if name not in {"content", "usage"}}
        return self._count(message)

    def _begun(self) -> dict[str, Any]:
        if self._body is None:
            raise InputError("it came before message_start")
        return self._body

    def _open_block(self, event: Mapping[str, Any]) -> list[Delta]:
        self._begun()
        index, began = self._index(event), map_in(event, "content_block")
        if index in self._blocks:
            raise InputError(f"block {index} is there already", path="index")
        if not text_in(began, "type"):
            raise InputError("expected a type", path="content_block.type")
        check_plain(began)
        called = began["type"] == "tool_use"
        self._blocks[index] = _Block(began, self._calls if called else None)
        self._open.add(index)
        self._calls += called
        return _beginning(self._blocks[index])

    def _add(self, event: Mapping[str, Any]) -> list[Delta]:
        block, delta = self._block(event), map_in(event, "delta")
        kind = text_in(delta, "type")
        if kind == "text_delta" and block.type == "text":
            block.texts.append(piece := text_in(delta, "text"))
            return [Delta(piece)] if piece else []
        if kind == "thinking_delta" and block.type == "thinking":
            block.thoughts.append(piece := text_in(delta, "thinking"))
            return [Delta(reasoning=piece)] if piece else []
        if kind == "input_json_delta" and block.type in _CALLING:
            block.arguments.append(piece := text_in(delta, "partial_json"))
            return _called(block, piece)
        if kind == "signature_delta" and block.type == "thinking":
            block.signature = text_in(delta, "signature")
        elif kind == "citations_delta" and block.type == "text":
            block.citations.append(map_in(delta, "citation"))
        elif kind == "compaction_delta" and block.type == "compaction":
            block.began |= {name: value for name, value in delta.items() if name != "type"}
        elif kind in _KNOWN:
            raise InputError(f"a {kind} for a block of type {block.type}", path="delta.type")
        return []

    def _close_block(self, event: Mapping[str, Any]) -> list[Delta]:
        block = self._block(event)
        self._open.remove(self._index(event))
        given = "" if any(block.arguments) else block.began.get("input")
        return _called(block, arguments_text(given)) if given else []

    def _change(self, event: Mapping[str, Any]) -> list[Delta]:
        body, delta = self._begun(), map_in(event, "delta")
        text_in(delta, "stop_reason")
        beside = {name: value for name, value in event.items() if name not in {"type", "delta", "usage"}}
        body |= {name: value for name, value in {**beside, **delta}.items() if value is not None}
        return self._count(event)

    def _stop(self, event: Mapping[str, Any]) -> list[Delta]:
        self._begun()
        self._ended = True
        return []

    def _fail(self, event: Mapping[str, Any]) -> list[Delta]:
        raise error_in(event)

    def _count(self, holder: Mapping[str, Any]) -> list[Delta]:
        """Take the counts of tokens: each one stands for the whole reply so far."""
        if holder.get("usage") is None:
            return []
        usage = map_in(holder, "usage")
        self._usage |= {name: value for name, value in usage.items() if value is not None}
        return [Delta(usage=read_usage(self._usage))]

    def _index(self, event: Mapping[str, Any]) -> int:
        if event.get("index") is None:
            raise InputError("expected a number, found nothing", path="index")
        return count_in(event, "index")

    def _block(self, event: Mapping[str, Any]) -> _Block:
        index = self._index(event)
        if index not in self._open:
            raise InputError(f"block {index} is not open", path="index")
        return self._blocks[index]


def _beginning(block: _Block) -> list[Delta]:
    """Return what the beginning of a block says by itself."""
    began = block.began
    if block.call_index is not None:
        return [Delta(call_index=block.call_index, call_id=text_in(began, "id"), name=text_in(began, "name"))]
    text = text_in(began, "text") if block.type == "text" else ""
    thought = text_in(began, "thinking") if block.type == "thinking" else ""
    return [Delta(text, thought)] if text or thought else []


def _called(block: _Block, piece: str) -> list[Delta]:
    """Return a piece of the arguments of one of the program's tools; those of the provider's are not shown."""
    return [Delta(call_index=block.call_index, arguments=piece)] if piece and block.call_index is not None else []


_KNOWN = frozenset(
    ("text_delta", "thinking_delta", "signature_delta", "input_json_delta", "citations_delta", "compaction_delta")
)


def cut(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the events of a stream that gives the response `body`.

    >>> [event["type"] for event in cut({"content": [], "stop_reason": "end_turn", "usage": {}})]
    ['message_start', 'message_delta', 'message_stop']
    """
    stopped = {name: body[name] for name in _STOPPED if name in body}
    usage = body["usage"]
    begun: dict[str, Any] = {**body, **dict.fromkeys(stopped), "content": [], "usage": {**usage, "output_tokens": 0}}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": begun}]
    for index, block in enumerate(body["content"]):
        began, deltas = _taken_apart(block)
        events.append({"type": "content_block_start", "index": index, "content_block": began})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": stopped, "usage": usage})
    return [*events, {"type": "message_stop"}]


def _taken_apart(block: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return how a block begins in a stream, and the pieces that follow."""
    kind, began = block.get("type"), dict(block)
    deltas: list[dict[str, Any]] = []
    if kind == "text":
        cited: list[Any] = block.get("citations") or []
        began |= {"text": ""} | ({"citations": []} if cited else {})
        deltas = [{"type": "citations_delta", "citation": citation} for citation in cited]
        deltas.append({"type": "text_delta", "text": block.get("text", "")})
    elif kind == "thinking":
        began |= {"thinking": "", **({"signature": ""} if "signature" in block else {})}
        deltas = [{"type": "thinking_delta", "thinking": block.get("thinking", "")}]
        deltas += [{"type": "signature_delta", "signature": block["signature"]}] if "signature" in block else []
    elif kind in _CALLING:
        began |= {"input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": msgspec.json.encode(block.get("input")).decode()}]
    return began, deltas
