"""Streams of Converse; what replies say of themselves, and the errors that they report."""

from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from suture.codecs.codec import as_json
from suture.codecs.contents import rest_of
from suture.codecs.replies import FoldingReader, failure_kind
from suture.errors import InputError, ModelError, ModelServerError
from suture.messages import AgenticMessage, Delta, ResponseMeta, TokenUsage
from suture.wires.fields import count_of, expect, get, is_map, object_of, parse_json, text_of

WIRE = "bedrock"
SERVER_CALL = "server_tool_use"
"""The type of a call that the service itself runs."""
_REASONS = {"end_turn": "stop", "tool_use": "tool_calls", "max_tokens": "length", "content_filtered": "content_filter"}
_NARROWER_REASONS = {
    "stop_sequence": "stop",
    "guardrail_intervened": "content_filter",
    "model_context_window_exceeded": "length",
}
"""Reasons that say more than our word for them, and are kept beside it."""
_COUNTS = {
    "inputTokens": "prompt_tokens",
    "outputTokens": "completion_tokens",
    "totalTokens": "total_tokens",
    "cacheReadInputTokens": "cached_tokens",
    "cacheWriteInputTokens": "cache_write_tokens",
}
_PADDING = "p"
_STARTED = ("toolUse", "toolResult", "image")
"""The blocks whose deltas come only behind a start."""


# Failures


def _failure(kind: str, body: Any) -> ModelError:
    """Return what an exception of the service's means."""
    reasons = [get(body, name) for name in ("message", "Message", "originalMessage")]
    reason = ": ".join(dict.fromkeys(said for said in reasons if isinstance(said, str) and said)) or kind
    error = failure_kind([kind], ModelServerError, reason)
    status = get(body, "originalStatusCode")
    return error(reason, provider=WIRE, code=kind, status=status if type(status) is int else None)


def read_refusal(body: Mapping[str, Any]) -> Exception:
    """Return what a body without a message says: the service's error, or boto3's form of it."""
    error = body.get("Error")
    if is_map(error):
        return _failure(str(error.get("Code", "")), error)
    if "message" in body or "Message" in body:
        return _failure(str(body.get("__type", "")).rpartition("#")[2] or "error", body)
    return InputError("a response without output")


# What a reply says of itself


def has_only(value: Any, *names: str) -> TypeGuard[Mapping[str, Any]]:
    """Return whether `value` is an object that has no fields but `names`."""
    return is_map(value) and value.keys() <= set(names)


def read_meta(body: Mapping[str, Any]) -> ResponseMeta:
    """Return why a reply ended, what it cost, and what else its body says."""
    reason, usage = text_of(body, "stopReason"), body.get("usage")
    extension: dict[str, Any] = {"wire": WIRE}
    identity = get(body.get("ResponseMetadata"), "RequestId")
    if isinstance(identity, str):
        extension["id"] = identity
    if reason in _NARROWER_REASONS:
        extension["finish_reason"] = reason
    known = ("output", "stopReason", "usage", "ResponseMetadata", "wire", "id", "finish_reason")
    extension |= rest_of(body, *known)
    finish = _REASONS.get(reason) or _NARROWER_REASONS.get(reason, reason)
    if usage is None:
        return ResponseMeta(finish_reason=finish, extension=extension)
    counts = _read_usage(usage)
    rest = rest_of(usage, *_COUNTS)
    if rest:
        extension["usage"] = rest
    return ResponseMeta(finish_reason=finish, usage=counts, extension=extension)


def _read_usage(usage: Any) -> TokenUsage:
    """Return what a reply cost; Converse does not count what was cached as input."""
    usage = expect(usage, dict, "an object", "usage")
    counts = {own: count_of(usage, name) for name, own in _COUNTS.items()}
    counts["prompt_tokens"] += counts["cached_tokens"] + counts["cache_write_tokens"]
    if usage.get("totalTokens") is None:
        counts["total_tokens"] = counts["prompt_tokens"] + counts["completion_tokens"]
    return TokenUsage(**counts)


# Streams


class BedrockReader(FoldingReader):
    """Reads the events of `ConverseStream`, as boto3 hands them out or as JSON has them.

    >>> from suture.codecs import get_codec
    >>> reader = get_codec("bedrock").reader()
    >>> reader.feed({"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "hi"}}})
    [Delta(text='hi')]
    >>> reader.finish()
    Traceback (most recent call last):
        ...
    suture.errors.StreamCutError: bedrock: the stream ended before the reply did; ask again
    """

    def __init__(self, provider: str, read: Callable[[Mapping[str, Any]], AgenticMessage]) -> None:
        super().__init__(provider, read)
        self._message: dict[str, Any] = {"role": "assistant"}
        self._blocks: dict[int, _Block] = {}
        self._calls = 0
        self._rest: dict[str, Any] = {}
        self._ended = False

    def add(self, event: Mapping[str, Any]) -> Iterator[Delta]:
        """Take one event, and yield what it adds."""
        for kind, payload in as_json(dict(event)).items():
            yield from self._take(kind, payload)

    def fold(self) -> Mapping[str, Any] | None:
        """Return the body that the events make; `None` where its end did not come."""
        if not self._ended:
            return None
        blocks = [self._blocks[index].join() for index in sorted(self._blocks)]
        content = [block for block in blocks if block is not None]
        return {**self._rest, "output": {"message": {**self._message, "content": content}}}

    def _take(self, kind: str, payload: Any) -> Iterator[Delta]:
        match kind:
            case "messageStart":
                self._message |= _facts(kind, payload)
            case "contentBlockStart":
                yield from self._start(_facts(kind, payload))
            case "contentBlockDelta":
                yield from self._add(_facts(kind, payload))
            case "contentBlockStop":
                block = self._blocks.get(_index(_facts(kind, payload)))
                if block is not None:
                    block.has_ended = True
            case "messageStop":
                facts = _facts(kind, payload)
                if not isinstance(facts.get("stopReason"), str):
                    raise InputError("a messageStop without its reason")
                self._rest |= facts
                self._ended = True
            case "metadata":
                facts = _facts(kind, payload)
                if "usage" in facts:
                    yield Delta(usage=_read_usage(facts["usage"]))
                self._rest |= facts
            case _ if kind.endswith(("Exception", "Error")) or has_only(payload, "message"):
                raise _failure(kind, payload)
            case _:
                pass

    def _start(self, facts: Mapping[str, Any]) -> Iterator[Delta]:
        index = _index(facts)
        start = object_of(facts, "start", "contentBlockStart")
        if index in self._blocks or len(start) > 1 or self._ended:
            raise InputError(f"block {index} begins where it cannot")
        [(kind, head)] = list[tuple[str, Any]](start.items()) or [("", {})]
        if kind not in _STARTED and not (is_map(head) and head):
            kind, head = "", {}
        head = expect(head, dict, "an object", f"contentBlockStart.start.{kind}")
        call_id, name = head.get("toolUseId"), head.get("name")
        if kind == "toolUse" and not (isinstance(call_id, str) and isinstance(name, str)):
            raise InputError("a call without its id or its name")
        is_call = kind == "toolUse" and head.get("type") != SERVER_CALL
        self._blocks[index] = _Block(kind, head, self._calls if is_call else None)
        if is_call:
            yield Delta(call_index=self._calls, call_id=str(call_id), name=str(name))
            self._calls += 1

    def _add(self, facts: Mapping[str, Any]) -> Iterator[Delta]:
        index = _index(facts)
        delta = object_of(facts, "delta", "contentBlockDelta")
        for kind, held in delta.items():
            block = None if held is None else self._block_at(index, "text" if kind == "citation" else kind)
            if block is None:
                continue
            match kind:
                case "text":
                    yield from block.add_text("text", text_of(delta, kind))
                case "toolUse":
                    yield from block.add_text("input", text_of(expect(held, dict, "an object", kind), "input"))
                case "reasoningContent":
                    thought = expect(held, dict, "an object", kind)
                    for name in ("text", "signature", "redactedContent"):
                        if name in thought:
                            yield from block.add_text(name, text_of(thought, name))
                case "toolResult":
                    block.add(kind, expect(held, list, "a list", kind))
                case "citation":
                    block.add(kind, expect(held, dict, "an object", kind))
                case _:
                    block.add_image(expect(held, dict, "an object", kind))

    def _block_at(self, index: int, kind: str) -> "_Block | None":
        """Return the block that a delta belongs to; text and thought begin one, unknown kinds are passed over."""
        block = self._blocks.get(index)
        if kind not in {"text", "reasoningContent", *_STARTED}:
            return None
        if self._ended or (block is not None and block.has_ended):
            raise InputError(f"a delta for block {index}, which has ended")
        if block is None or not block.kind:
            if kind in _STARTED:
                raise InputError(f"a delta of {kind} for block {index}, which never began")
            block = self._blocks[index] = _Block(kind, {})
        if block.kind != kind:
            raise InputError(f"a delta of {kind} for block {index}, which is {block.kind}")
        return block


class _Block:
    """A block that is still being said: what it began with, and its pieces by what they are of."""

    __slots__ = ("call_index", "has_ended", "head", "kind", "pieces")

    def __init__(self, kind: str, head: Mapping[str, Any], call_index: int | None = None) -> None:
        self.kind, self.head, self.call_index = kind, head, call_index
        self.pieces: dict[str, list[Any]] = {}
        self.has_ended = False

    def add(self, name: str, piece: Any) -> None:
        self.pieces.setdefault(name, []).append(piece)

    def add_text(self, name: str, piece: str) -> Iterator[Delta]:
        """Add a piece of text, and yield what a program is shown of it."""
        self.add(name, piece)
        if not piece:
            return
        if name == "input" and self.call_index is not None:
            yield Delta(call_index=self.call_index, arguments=piece)
        elif name == "text":
            yield Delta(reasoning=piece) if self.kind == "reasoningContent" else Delta(piece)

    def add_image(self, image: Mapping[str, Any]) -> None:
        source, error = image.get("source"), image.get("error")
        if source is not None:
            data = expect(source, dict, "an object", "image.source").get("bytes")
            self.add("bytes" if isinstance(data, str) else "source", data if isinstance(data, str) else source)
        if error is not None:
            self.add("error", error)

    def join(self) -> dict[str, Any] | None:
        """Return the block as a plain response has it; `None` where nothing was said."""
        match self.kind:
            case "toolUse":
                return {"toolUse": {**self.head, "input": self._arguments()}}
            case "toolResult":
                content = [part for parts in self.pieces.get("toolResult", []) for part in parts]
                return {"toolResult": {**self.head, "content": content}}
            case "image":
                return {"image": self._image()}
            case "":
                return None
            case _ if self.head:
                return {self.kind: self.head}
            case "reasoningContent":
                return {"reasoningContent": self._reasoning()}
            case _:
                return self._text()

    def _arguments(self) -> Any:
        """Return the arguments of a call: an object, or the text where it is none, or not yet."""
        text = "".join(self.pieces.get("input", []))
        if not text.strip():
            return {}
        value = parse_json(text)
        if self.call_index is None:
            return text if value is None and text.strip() != "null" else value
        return value if value.__class__ is dict else text

    def _text(self) -> dict[str, Any]:
        text, citations = "".join(self.pieces.get("text", [])), self.pieces.get("citation")
        if citations is None:
            return {"text": text}
        content = {"content": [{"text": text}]} if text else {}
        return {"citationsContent": {**content, "citations": citations}}

    def _reasoning(self) -> dict[str, Any]:
        if "redactedContent" in self.pieces:
            return {"redactedContent": _join_base64(self.pieces["redactedContent"])}
        text, signature = ("".join(self.pieces.get(name, [])) for name in ("text", "signature"))
        return {"reasoningText": {"text": text, **({"signature": signature} if signature else {})}}

    def _image(self) -> dict[str, Any]:
        image = {**self.head, **{name: self.pieces[name][-1] for name in ("source", "error") if name in self.pieces}}
        if "bytes" in self.pieces:
            image["source"] = {"bytes": _join_base64(self.pieces["bytes"])}
        return image


def _facts(kind: str, payload: Any) -> dict[str, Any]:
    """Return what an event says, without what only makes it longer."""
    return rest_of(expect(payload, dict, "an object", kind), _PADDING)


def _index(facts: Mapping[str, Any]) -> int:
    index = facts.get("contentBlockIndex")
    if type(index) is not int or index < 0:
        raise InputError(f"a block without an index: {index!r}")
    return index


def _join_base64(pieces: Sequence[str]) -> str:
    """Return base64 that came in pieces, each whole in itself."""
    if len(pieces) == 1:
        return pieces[0]
    try:
        return b2a_base64(b"".join([a2b_base64(piece) for piece in pieces]), newline=False).decode()
    except ValueError:
        raise InputError("bytes that are no base64") from None
