"""Folds streams of Responses into the body of a plain response."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from suture.codecs.replies import BlockReader, OpenBlock
from suture.errors import InputError
from suture.messages import Delta
from suture.providers.openai_responses.items import CALLS, arguments_of, name_of, read_error, read_usage
from suture.wires.fields import expect, is_list, is_map, object_of, text_of

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


class ResponsesReader(BlockReader):
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
        self._places: dict[str, int] = {}
        """The place of each item by its id, for servers that do not number their items."""
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
            case "response.completed" | "response.incomplete":
                body = object_of(event, "response")
                usage = read_usage(body)
                self._body = {"status": kind.removeprefix("response."), **body}
                return [] if usage is None else [Delta(usage=usage)]
            case "response.failed":
                error = object_of(event, "response").get("error")
                raise read_error(error if is_map(error) else {})
            case _:
                return []

    def fold(self) -> Mapping[str, Any] | None:
        if self._body is None or self._body.get("output"):
            return self._body
        return {**self._body, "output": [*map(_join, self.in_order())]}

    def _take_item(self, event: Mapping[str, Any], *, ends: bool) -> list[Delta]:
        """Take the beginning or the end of an item; at its end, return deltas for what did not come in pieces."""
        item = object_of(event, "item")
        place = self._place(event, item.get("id"))
        deltas: list[Delta] = []
        if not ends or place not in self.blocks:
            kind = expect(item.get("type"), str, "a type", "item.type")
            held = self.begin(place, kind, item, is_call=kind in CALLS)
            if isinstance(item.get("id"), str):
                self._places[item["id"]] = place
            if kind in CALLS:
                call_id, name = text_of(item, "call_id"), name_of(item, kind)
                deltas += held.show_call(call_id=call_id, name=name) if call_id or name else []
        held = self.blocks[place]
        if not ends:
            return deltas
        if item.get("type") != held.kind:
            raise InputError(f"an item that began as {held.kind} and ended as {item.get('type')}")
        held.is_open, held.head = False, dict(item)
        return [*deltas, *_rest(held)]

    def _place(self, event: Mapping[str, Any], item_id: Any) -> int:
        """Return the place of the item in `event`: as the event says, else by the item's id, else the next place."""
        if "output_index" in event:
            return self.place_of(event, "output_index")
        if not isinstance(item_id, str):
            raise InputError(f"{event.get('type')} without output_index")
        return self._places.get(item_id, max(self.blocks, default=-1) + 1)

    def _add_piece(self, event: Mapping[str, Any], channel: _Channel) -> list[Delta]:
        place, piece = self._place(event, event.get("item_id")), event.get("delta")
        held = self.blocks.get(place)
        if held is None or not held.is_open or held.kind != channel.item:
            raise InputError(f"a piece of {channel.item} at output_index {place}, where none is open")
        if not isinstance(piece, str):
            raise InputError("a piece that is no text")
        key = channel, self.place_of(event, channel.counter) if channel.counter in event else 0
        is_first, is_new = not held.pieces, key not in held.pieces
        held.add(key, piece)
        if channel.item == "message":
            return [Delta(piece)] if piece else []
        if channel.item == "reasoning":
            return [Delta(reasoning=("\n\n" if is_new and not is_first else "") + piece)]
        if channel.item == _CUSTOM:  # the arguments are an object with this text, so each piece is escaped for JSON
            piece = ('{"input":"' if is_first else "") + msgspec.json.encode(piece).decode()[1:-1]
        return held.show_call(arguments=piece) if piece else []


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
