"""A streamed response: its events, folded into the body of a plain one; and such a body, cut into events."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from suture.codecs._contents import arguments_text
from suture.errors import InputError, StreamCutError
from suture.messages import AgenticMessage, Delta
from suture.providers.openai_responses.calls import CALLS, input_arguments
from suture.providers.openai_responses.reply import error_of, nonsense, read_reply, read_usage

__all__ = ["ResponsesReader"]

_ENDS = {"response.completed": "completed", "response.incomplete": "incomplete"}
_CUSTOM = "custom_tool_call"


class _Channel(NamedTuple):
    """Where the pieces of one kind of event belong: the type of item, its field, and what counts the parts in it."""

    item: str
    field: str
    counter: str = ""
    part: str = ""
    """The type of the part."""
    text: str = "text"
    """The field of the part that holds the text."""


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
        self.kind = cast("str", item["type"])
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
            if not channel.part:
                item[channel.field] = text
                continue
            held: Any = item.get(channel.field)
            before = cast("list[Any]", held) if isinstance(held, list) else []
            item[channel.field] = [*before, {"type": channel.part, channel.text: text}]
        return item


class ResponsesReader:
    """Reads the events of one streamed response.

    >>> reader = ResponsesReader()
    >>> reader.feed({"type": "response.completed", "response": {"status": "completed", "output": []}})
    []
    >>> reader.finish().role
    'assistant'
    """

    def __init__(self) -> None:
        self._items: dict[int, _Open] = {}
        self._places: dict[str, int] = {}
        """Where each item stands, by its id: for servers that do not number their items."""
        self._calls = 0
        self._body: dict[str, Any] | None = None

    def feed(self, event: Mapping[str, Any]) -> list[Delta]:
        """Return what `event` adds."""
        kind = event.get("type")
        error: Any = event.get("error")
        if kind in ("error", "response.error") or (kind is None and isinstance(error, Mapping)):
            raise error_of(cast("Mapping[str, Any]", error) if isinstance(error, Mapping) else event)
        if not isinstance(kind, str):
            raise nonsense("an event without a type")
        if self._body is not None:
            return []
        if kind in _CHANNELS:
            return self._piece(event, _CHANNELS[kind])
        take = _TAKERS.get(kind)
        return [] if take is None else take(self, event)

    def finish(self) -> AgenticMessage:
        """Return the whole message; raise `StreamCutError` where the end was not said."""
        if self._body is None:
            raise StreamCutError("openai-responses: the stream ended before the response was whole")
        body = self._body
        if not body.get("output"):
            body = {**body, "output": [self._items[place].folded() for place in sorted(self._items)]}
        return read_reply(body)

    # One method for each kind of event

    def open(self, event: Mapping[str, Any]) -> list[Delta]:
        """Take the beginning of an item."""
        item = _object(event, "item")
        place = self._place(event, item.get("id"))
        if place in self._items:
            raise nonsense(f"a second item at output_index {place}")
        return self._begin(place, item)

    def close(self, event: Mapping[str, Any]) -> list[Delta]:
        """Take an item as it is in the end; what was not said in pieces is said now."""
        item = _object(event, "item")
        place = self._place(event, item.get("id"))
        begun = [] if place in self._items else self._begin(place, item)
        held = self._items[place]
        if item["type"] != held.kind:
            raise nonsense(f"an item that began as {held.kind} and ended as {item['type']}")
        held.whole = item
        return [*begun, *_rest(held, item)]

    def end(self, event: Mapping[str, Any]) -> list[Delta]:
        """Take the end of the response."""
        body = _response(event)
        try:
            usage = read_usage(body)
        except InputError as fault:
            raise nonsense(f"a response that makes no sense: {fault}") from None
        self._body = {"status": _ENDS[event["type"]], **body}
        return [] if usage is None else [Delta(usage=usage)]

    def fail(self, event: Mapping[str, Any]) -> list[Delta]:
        """Take the news that there will be no response."""
        error: Any = _response(event).get("error")
        raise error_of(cast("Mapping[str, Any]", error) if isinstance(error, Mapping) else {})

    def _begin(self, place: int, item: Mapping[str, Any]) -> list[Delta]:
        kind = CALLS.get(item["type"])
        held = self._items[place] = _Open(item, None if kind is None else self._calls)
        item_id = item.get("id")
        if isinstance(item_id, str):
            self._places[item_id] = place
        if kind is None:
            return []
        self._calls += 1
        call_id, name = item.get("call_id") or "", item.get("name") or kind.name
        if not isinstance(call_id, str) or not isinstance(name, str):
            raise nonsense("a call whose id or name is no text")
        return [Delta(call_index=held.call_index, call_id=call_id, name=name)] if call_id or name else []

    def _place(self, event: Mapping[str, Any], item_id: Any) -> int:
        """Return where the item of `event` stands: as it says, or else where the one with its id does, or the next."""
        if "output_index" in event:
            return _number(event, "output_index")
        if not isinstance(item_id, str):
            raise nonsense(f"{event.get('type')} without output_index")
        return self._places.get(item_id, max(self._items, default=-1) + 1)

    def _piece(self, event: Mapping[str, Any], channel: _Channel) -> list[Delta]:
        place, piece = self._place(event, event.get("item_id")), event.get("delta")
        held = self._items.get(place)
        if held is None or held.whole is not None or held.kind != channel.item:
            raise nonsense(f"a piece of {channel.item} at output_index {place}, where none is open")
        if not isinstance(piece, str):
            raise nonsense("a piece that is no text")
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
        given: Any = item.get(CALLS[held.kind].arguments)
        is_input = held.kind == _CUSTOM and isinstance(given, str)
        arguments = input_arguments(given) if is_input else arguments_text(given)
        return [Delta(call_index=held.call_index, arguments=arguments)] if arguments else []
    if held.pieces or held.kind not in {"message", "reasoning"}:
        return []
    texts = [
        text
        for field in ("summary", "content")
        for part in _list(item.get(field))
        if isinstance(part, Mapping)
        for text in (cast("Mapping[str, Any]", part).get("text") or cast("Mapping[str, Any]", part).get("refusal"),)
        if isinstance(text, str) and text
    ]
    if held.kind == "message":
        return [Delta(text) for text in texts]
    return [Delta(reasoning="\n\n".join(texts))] if texts else []


def _escaped(piece: str, *, begins: bool) -> str:
    """Return a piece of a custom tool's input as a piece of the arguments that it becomes."""
    inner = msgspec.json.encode(piece).decode()[1:-1]
    return '{"input":"' + inner if begins else inner


def _list(value: Any) -> Sequence[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else ()


def _number(event: Mapping[str, Any], name: str) -> int:
    value = event.get(name)
    if type(value) is not int:
        raise nonsense(f"{event.get('type')} whose {name} is no number")
    return value


def _object(event: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value: Any = event.get(name)
    if not isinstance(value, Mapping) or not isinstance(cast("Mapping[str, Any]", value).get("type"), str):
        raise nonsense(f"{event.get('type')} without an {name}")
    return cast("Mapping[str, Any]", value)


def _response(event: Mapping[str, Any]) -> Mapping[str, Any]:
    value: Any = event.get("response")
    if not isinstance(value, Mapping):
        raise nonsense(f"{event.get('type')} without a response")
    return cast("Mapping[str, Any]", value)
