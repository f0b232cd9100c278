"""Folds streams of Responses into the body of a plain response."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from suture.codecs.replies import OpenBlock, StreamReader
from suture.errors import InputError
from suture.messages import Delta
from suture.providers.openai_responses.items import CALLS, arguments_of, name_of, read_error, read_usage
from suture.wires.fields import expect, is_list, is_map, list_of, object_of, text_of

_CUSTOM = "custom_tool_call"


class _Channel(NamedTuple):
    """Where the pieces in one kind of event belong: the type of item, its field, and the part in that field."""

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


class _OpenItem(OpenBlock):
    """An item in a stream; its place is where the server puts it, and `is_named` says whether its call was told."""

    __slots__ = ("is_named", "place")

    def __init__(self, kind: str, head: Mapping[str, Any], call_index: int | None, place: int) -> None:
        super().__init__(kind, head, call_index)
        self.place, self.is_named = place, False


class ResponsesReader(StreamReader):
    """Reads the events of one streamed response.

    >>> from suture.codecs import get_codec
    >>> reader = get_codec("openai-responses").reader()
    >>> reader.feed({"type": "response.completed", "response": {"status": "completed", "output": []}})
    []
    >>> reader.finish().role
    'assistant'
    """

    def __init__(self, codec: Any) -> None:
        super().__init__(codec)
        self._items: list[_OpenItem] = []
        self._by_id: dict[Any, _OpenItem | None] = {}
        """The items by their ids; `None` for an id that several have."""
        self._calls = 0
        self._body: dict[str, Any] | None = None

    def add(self, event: Mapping[str, Any]) -> list[Delta]:
        kind = event.get("type")
        error = event.get("error")
        if kind in ("error", "response.error") or (kind is None and is_map(error)):
            raise read_error(error if is_map(error) else event)
        if not isinstance(kind, str):
            raise InputError("an event without a type")
        if self._body is not None:
            return []
        if kind in _CHANNELS:
            return self._add_piece(event, _CHANNELS[kind])
        match kind:
            case "response.output_item.added" | "response.output_item.done":
                return self._take_item(event, ends=kind == "response.output_item.done")
            case "response.completed" | "response.incomplete" | "response.done":
                body = object_of(event, "response")
                usage = read_usage(body)
                status = "incomplete" if kind == "response.incomplete" else "completed"
                self._body = {"status": status, **body}
                late = () if self._items else list_of(body, "output", path="response")  # nothing was streamed
                deltas = [delta for item in late for delta in self._take_item({"item": item}, ends=True)]
                return deltas if usage is None else [*deltas, Delta(usage=usage)]
            case "response.failed":
                error = object_of(event, "response").get("error")
                raise read_error(error if is_map(error) else {})
            case "[DONE]":
                self._body = {"status": "completed"} if self._items else None
                return []
            case _:
                return []

    def fold(self) -> Mapping[str, Any] | None:
        if self._body is None or self._body.get("output"):
            return self._body
        in_order = sorted(self._items, key=lambda held: held.place)
        if any(held.kind in CALLS and not held.is_named for held in in_order):
            raise InputError("a call without its id and its name")
        return {**self._body, "output": [*map(_join, in_order)]}

    def _take_item(self, event: Mapping[str, Any], *, ends: bool) -> list[Delta]:
        """Take the beginning or the end of an item; at its end, return deltas for what did not come in pieces."""
        item = object_of(event, "item")
        kind = expect(item.get("type"), str, "a type", "item.type")
        item_id = item.get("id")
        known = self._by_id.get(item_id) if isinstance(item_id, str) else None
        held = self._find(event, kind, item_id) if ends else known
        if held is None or (not ends and held.place != event.get("output_index", held.place)):
            held = self._begin(event, kind, item)
        deltas: list[Delta] = []
        if held.call_index is not None and not held.is_named:
            call_id, name = text_of(item, "call_id"), name_of(item, kind)
            held.is_named = bool(call_id or name)
            deltas += held.show_call(call_id=call_id, name=name) if held.is_named else []
        if not ends or not held.is_open:
            return deltas
        held.is_open, held.head = False, dict(item)
        return [*deltas, *_rest(held)]

    def _begin(self, event: Mapping[str, Any], kind: str, item: Mapping[str, Any]) -> _OpenItem:
        """Begin an item, which stands where the event says, or behind all others."""
        if "output_index" in event:
            place = _place_in(event, "output_index")
        else:
            place = max([held.place for held in self._items], default=-1) + 1
        is_call, item_id = kind in CALLS, item.get("id")
        held = _OpenItem(kind, item, self._calls if is_call else None, place)
        self._calls += is_call
        self._items.append(held)
        if isinstance(item_id, str) and item_id:
            self._by_id[item_id] = None if item_id in self._by_id else held
        return held

    def _find(self, event: Mapping[str, Any], kind: str, item_id: Any) -> _OpenItem | None:
        """Return the item of this kind that an event is about: by its id, by its place, or as the only one open.

        Some servers give each event of an item another id, count an item twice, or do not say that it begins.
        """
        held = self._by_id.get(item_id) if isinstance(item_id, str) else None
        if held is not None and held.kind == kind:
            return held
        found = [held for held in self._items if held.is_open and held.kind == kind]
        here = [held for held in found if held.place == event.get("output_index")]
        return here[-1] if here else found[0] if len(found) == 1 else None

    def _add_piece(self, event: Mapping[str, Any], channel: _Channel) -> list[Delta]:
        item_id, piece = event.get("item_id"), event.get("delta")
        held = self._by_id.get(item_id) if item_id.__class__ is str else None
        if held is None or held.kind != channel.item:
            held = self._find(event, channel.item, item_id)
        if not isinstance(piece, str):
            raise InputError("a piece that is no text")
        if held is None:
            head = {"role": "assistant"} if channel.item == "message" else {}
            held = self._begin(event, channel.item, {"type": channel.item, "id": item_id, **head})
        if not held.is_open:
            return []  # its end has told the whole
        key = channel, _place_in(event, channel.counter) if channel.counter in event else 0
        is_first, is_new = not held.pieces, key not in held.pieces
        held.add(key, piece)
        if channel.item == "message":
            return [Delta(piece)] if piece else []
        if channel.item == "reasoning":
            return [Delta(reasoning=("\n\n" if is_new and not is_first else "") + piece)]
        if channel.item == _CUSTOM:  # the arguments are an object with this text, so each piece is escaped for JSON
            piece = ('{"input":"' if is_first else "") + msgspec.json.encode(piece).decode()[1:-1]
        return held.show_call(arguments=piece) if piece else []


def _place_in(event: Mapping[str, Any], field: str) -> int:
    """Return the number in a field, which must be there."""
    place = event.get(field)
    if type(place) is not int or place < 0:
        raise InputError(f"expected a place, found {place!r}", path=field)
    return place


def _join(held: OpenBlock) -> dict[str, Any]:
    """Return the item: complete if its end came, else with the pieces that came."""
    item = dict(held.head)
    for channel, part in sorted(held.pieces, key=lambda key: (key[0].field, key[1])) if held.is_open else ():
        text = held.text((channel, part))
        parts = [*_list_in(item, channel.field), {"type": channel.part, channel.text: text}]
        item[channel.field] = parts if channel.part else text
    return item


def _rest(held: OpenBlock) -> list[Delta]:
    """Return deltas for what did not come in pieces, of an item that is complete now."""
    if held.call_index is not None:
        if held.pieces:
            return held.show_call(arguments='"}') if held.kind == _CUSTOM else []
        arguments = arguments_of(held.head, held.kind)
        return held.show_call(arguments=arguments) if arguments else []
    if held.pieces or held.kind not in {"message", "reasoning"}:
        return []
    parts = [part for field in ("summary", "content") for part in _list_in(held.head, field) if is_map(part)]
    texts = [text for part in parts if isinstance(text := part.get("text") or part.get("refusal"), str) and text]
    if held.kind == "message":
        return [Delta(text) for text in texts]
    return [Delta(reasoning="\n\n".join(texts))] if texts else []


def _list_in(item: Mapping[str, Any], name: str) -> Sequence[Any]:
    """Return the list in the field `name`; an empty one if it is no list, as in an item that is incomplete."""
    value = item.get(name)
    return value if is_list(value) else ()
