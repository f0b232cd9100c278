"""A response, whole or streamed, read as a message; what it says of a failure, as an exception."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from suture.codecs.replies import FoldingReader, failure_kind
from suture.errors import InputError, ModelError, ModelRequestError, ModelServerError
from suture.messages import (
    AgenticMessage,
    AssistantGenText,
    Delta,
    FunctionToolCall,
    LogProb,
    ResponseMeta,
    TokenUsage,
    TopLogProb,
)
from suture.providers.openai_responses.items import CALLS, arguments_of, name_of, read_output
from suture.providers.openai_responses.parts import WIRE
from suture.wires.fields import count_of, expect, inner, is_list, is_map, list_of, map_of, object_of, text_of

_NO_EXTENSION = frozenset(
    (
        *("object", "output", "status", "error", "incomplete_details", "usage", "access_programs", "background"),
        *("frequency_penalty", "image", "instructions", "max_output_tokens", "max_tool_calls", "metadata"),
        *("parallel_tool_calls", "presence_penalty", "previous_response_id", "prompt", "prompt_cache_key"),
        *("prompt_cache_options", "prompt_cache_retention", "reasoning", "safety_identifier", "store", "temperature"),
        *("text", "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user"),
    )
)
"""What is read of a response, and what it repeats of its request."""
_REFUSALS = ("invalid_", "image_", "unsupported_", "empty_image", "failed_to_download_image")


def _error(said: Mapping[str, Any]) -> ModelError:
    names = [name for name in (said.get("code"), said.get("type")) if isinstance(name, str) and name != "error"]
    refuses = any(name.startswith(_REFUSALS) for name in names)
    kind = failure_kind(names, ModelRequestError if refuses else ModelServerError)
    code = names[0] if names else ""
    message = said.get("message")
    reason = message if isinstance(message, str) and message else f"it failed and gives no reason but {code or 'none'}"
    return kind(reason, provider=WIRE, code=code, retryable=False if code == "insufficient_quota" else None)


def read_reply(body: Mapping[str, Any]) -> AgenticMessage:
    """Return what the body of a response says."""
    error = body.get("error")
    if is_map(error):
        raise _error(error)
    status = text_of(body, "status") or "completed"
    if status not in {"completed", "incomplete"}:
        raise ModelServerError(f"the response is {status[:40]}, with no reply in it", provider=WIRE)
    if not isinstance(body.get("output"), list):
        raise InputError("a response without output")
    message = read_output(list_of(body, "output"))
    return replace(message, response_meta=_meta(body, status, message.content_blocks))


def _usage(body: Mapping[str, Any]) -> TokenUsage | None:
    usage = inner(body, "usage", None)
    if usage is None:
        return None
    prompt_details = object_of(usage, "input_tokens_details", optional=True)
    completion_details = object_of(usage, "output_tokens_details", optional=True)
    prompt, completion = count_of(usage, "input_tokens"), count_of(usage, "output_tokens")
    return TokenUsage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=count_of(usage, "total_tokens") or prompt + completion,
        cached_tokens=count_of(prompt_details, "cached_tokens"),
        cache_write_tokens=count_of(prompt_details, "cache_write_tokens"),
        reasoning_tokens=count_of(completion_details, "reasoning_tokens"),
    )


def _meta(body: Mapping[str, Any], status: str, blocks: Sequence[Any]) -> ResponseMeta:
    reason = "tool_calls" if any(isinstance(block, FunctionToolCall) for block in blocks) else "stop"
    if status == "incomplete":
        reason = text_of(object_of(body, "incomplete_details", optional=True), "reason") or status
        reason = "length" if reason == "max_output_tokens" else reason
    extension = {name: value for name, value in body.items() if value and name not in _NO_EXTENSION}
    return ResponseMeta(finish_reason=reason, usage=_usage(body), logprobs=_logprobs(blocks), extension=extension)


def _logprobs(blocks: Sequence[Any]) -> tuple[LogProb, ...] | None:
    """Return how likely the tokens of the texts were, where that was asked for."""
    texts = [block for block in blocks if isinstance(block, AssistantGenText)]
    found = [token for block in texts for token in list_of(map_of(block.extra, WIRE), "logprobs")]
    if not found:
        return None
    return tuple(
        LogProb(*_token(token), tuple(TopLogProb(*_token(other)) for other in list_of(token, "top_logprobs")))
        for token in found
    )


def _token(token: Mapping[str, Any]) -> tuple[str, float, tuple[int, ...] | None]:
    numbers = token.get("bytes")
    known = None if numbers is None else tuple(expect(numbers, list, "a list", "bytes"))
    return text_of(token, "token"), token.get("logprob", 0.0), known


# Streams

_CUSTOM = "custom_tool_call"


class _Channel(NamedTuple):
    """Where the pieces of one kind of event belong: the type of item, its field, and the part of it that they are."""

    item: str
    field: str
    counter: str = ""
    part: str = ""
    text: str = "text"


_CHANNELS: Mapping[str, _Channel] = {
    "response.output_text.delta": _Channel("message", "content", "content_index", "output_text"),
    "response.refusal.delta": _Channel("message", "content", "content_index", "refusal", "refusal"),
    "response.reasoning_summary_text.delta": _Channel("reasoning", "summary", "summary_index", "summary_text"),
    "response.reasoning_text.delta": _Channel("reasoning", "content", "content_index", "reasoning_text"),
    "response.function_call_arguments.delta": _Channel("function_call", "arguments"),
    "response.custom_tool_call_input.delta": _Channel(_CUSTOM, "input"),
    "response.mcp_call_arguments.delta": _Channel("mcp_call", "arguments"),
    "response.code_interpreter_call_code.delta": _Channel("code_interpreter_call", "code"),
}


class _Open:
    """An item of which pieces come: what it was when it came, what came since, and what it is when it is whole."""

    def __init__(self, item: Mapping[str, Any], call_index: int | None) -> None:
        self.item = item
        self.kind: str = item["type"]
        self.call_index = call_index
        self.whole: Mapping[str, Any] | None = None
        self.pieces: dict[tuple[_Channel, int], list[str]] = {}

    def folded(self) -> dict[str, Any]:
        """Return the item: as it was given whole, else as far as it came."""
        if self.whole is not None:
            return dict(self.whole)
        item = dict(self.item)
        for (channel, _), pieces in sorted(self.pieces.items(), key=lambda held: (held[0][0].field, held[0][1])):
            text = "".join(pieces)
            parts = [*_list_in(item, channel.field), {"type": channel.part, channel.text: text}]
            item[channel.field] = parts if channel.part else text
        return item


class ResponsesReader(FoldingReader):
    """Reads the events of one streamed response.

    >>> from suture.codecs import get_codec
    >>> reader = get_codec("openai-responses").reader()
    >>> reader.feed({"type": "response.completed", "response": {"status": "completed", "output": []}})
    []
    >>> reader.finish().role
    'assistant'
    """

    def __init__(self, provider: str, read: Callable[[Mapping[str, Any]], AgenticMessage]) -> None:
        super().__init__(provider, read)
        self._items: dict[int, _Open] = {}
        self._places: dict[str, int] = {}
        """Where each item stands, by its id: for servers that do not number their items."""
        self._calls = 0
        self._body: dict[str, Any] | None = None

    def add(self, event: Mapping[str, Any]) -> Iterable[Delta]:
        """Take one event, and return what it adds."""
        kind = event.get("type")
        error = event.get("error")
        if kind in ("error", "response.error") or (kind is None and is_map(error)):
            raise _error(error if is_map(error) else event)
        if not isinstance(kind, str):
            raise InputError("an event without a type")
        if self._body is not None:
            return []
        if kind in _CHANNELS:
            return self._piece(event, _CHANNELS[kind])
        take = _TAKERS.get(kind)
        return [] if take is None else take(self, event)

    def fold(self) -> Mapping[str, Any] | None:
        """Return the body that the events make; `None` where its end did not come."""
        if self._body is None or self._body.get("output"):
            return self._body
        return {**self._body, "output": [self._items[place].folded() for place in sorted(self._items)]}

    # One method for each kind of event

    def open(self, event: Mapping[str, Any]) -> list[Delta]:
        """Take the beginning of an item."""
        item = object_of(event, "item")
        place = self._place(event, item.get("id"))
        if place in self._items:
            raise InputError(f"a second item at output_index {place}")
        return self._begin(place, item)

    def close(self, event: Mapping[str, Any]) -> list[Delta]:
        """Take an item as it is in the end; what was not said in pieces is said now."""
        item = object_of(event, "item")
        place = self._place(event, item.get("id"))
        begun = [] if place in self._items else self._begin(place, item)
        held = self._items[place]
        if item.get("type") != held.kind:
            raise InputError(f"an item that began as {held.kind} and ended as {item.get('type')}")
        held.whole = item
        return [*begun, *_rest(held, item)]

    def end(self, event: Mapping[str, Any]) -> list[Delta]:
        """Take the end of the response."""
        body = object_of(event, "response")
        usage = _usage(body)
        self._body = {"status": event["type"].removeprefix("response."), **body}
        return [] if usage is None else [Delta(usage=usage)]

    def fail(self, event: Mapping[str, Any]) -> list[Delta]:
        """Take the news that there will be no response."""
        error = object_of(event, "response").get("error")
        raise _error(error if is_map(error) else {})

    def _begin(self, place: int, item: Mapping[str, Any]) -> list[Delta]:
        kind = expect(item.get("type"), str, "a type", "item.type")
        is_call = kind in CALLS
        held = self._items[place] = _Open(item, self._calls if is_call else None)
        item_id = item.get("id")
        if isinstance(item_id, str):
            self._places[item_id] = place
        if not is_call:
            return []
        self._calls += 1
        call_id, name = text_of(item, "call_id"), name_of(item, kind)
        return [Delta(call_index=held.call_index, call_id=call_id, name=name)] if call_id or name else []

    def _place(self, event: Mapping[str, Any], item_id: Any) -> int:
        """Return where the item of `event` stands: as it says, or else where the one with its id does, or the next."""
        if "output_index" in event:
            return _number(event, "output_index")
        if not isinstance(item_id, str):
            raise InputError(f"{event.get('type')} without output_index")
        return self._places.get(item_id, max(self._items, default=-1) + 1)

    def _piece(self, event: Mapping[str, Any], channel: _Channel) -> list[Delta]:
        place, piece = self._place(event, event.get("item_id")), event.get("delta")
        held = self._items.get(place)
        if held is None or held.whole is not None or held.kind != channel.item:
            raise InputError(f"a piece of {channel.item} at output_index {place}, where none is open")
        if not isinstance(piece, str):
            raise InputError("a piece that is no text")
        part = _number(event, channel.counter) if channel.counter in event else 0
        is_first = not held.pieces
        is_new = (channel, part) not in held.pieces
        held.pieces.setdefault((channel, part), []).append(piece)
        if channel.item == "message":
            return [Delta(piece)] if piece else []
        if channel.item == "reasoning":
            return [Delta(reasoning=("\n\n" if is_new and not is_first else "") + piece)]
        if held.call_index is None:
            return []
        said = _escaped(piece, begins=is_first) if channel.item == _CUSTOM else piece
        return [Delta(call_index=held.call_index, arguments=said)] if said else []


_TAKERS: Mapping[str, Callable[[ResponsesReader, Mapping[str, Any]], list[Delta]]] = {
    "response.output_item.added": ResponsesReader.open,
    "response.output_item.done": ResponsesReader.close,
    "response.completed": ResponsesReader.end,
    "response.incomplete": ResponsesReader.end,
    "response.failed": ResponsesReader.fail,
}


def _rest(held: _Open, item: Mapping[str, Any]) -> list[Delta]:
    """Return what is still to be said of an item that is whole now."""
    if held.call_index is not None:
        if held.pieces:
            return [Delta(call_index=held.call_index, arguments='"}')] if held.kind == _CUSTOM else []
        arguments = arguments_of(item, held.kind)
        return [Delta(call_index=held.call_index, arguments=arguments)] if arguments else []
    if held.pieces or held.kind not in {"message", "reasoning"}:
        return []
    parts = [part for field in ("summary", "content") for part in _list_in(item, field) if is_map(part)]
    texts = [text for part in parts if isinstance(text := part.get("text") or part.get("refusal"), str) and text]
    if held.kind == "message":
        return [Delta(text) for text in texts]
    return [Delta(reasoning="\n\n".join(texts))] if texts else []


def _escaped(piece: str, *, begins: bool) -> str:
    """Return a piece of a custom tool's input as a piece of the arguments that it becomes."""
    inner = msgspec.json.encode(piece).decode()[1:-1]
    return '{"input":"' + inner if begins else inner


def _list_in(item: Mapping[str, Any], name: str) -> Sequence[Any]:
    """Return the list in the field `name`, of an item of which the rest is still to come."""
    value = item.get(name)
    return value if is_list(value) else ()


def _number(event: Mapping[str, Any], name: str) -> int:
    value = event.get(name)
    if type(value) is not int:
        raise InputError("expected a whole number", path=name)
    return value
