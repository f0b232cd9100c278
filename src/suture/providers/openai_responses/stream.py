"""Items in a row, and responses, whole or streamed, read as messages; what they say of a failure, as an exception."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from suture.codecs.codec import located
from suture.codecs.replies import BlockReader, OpenBlock, make_meta, read_failure, read_logprobs, read_usage
from suture.errors import InputError, ModelError, ModelRequestError, ModelServerError
from suture.messages import (
    AgenticMessage,
    AssistantGenText,
    Delta,
    FunctionToolCall,
    ResponseMeta,
    TokenUsage,
)
from suture.providers.openai_responses.items import (
    CALLS,
    ITEM,
    NEEDS,
    PRODUCTS,
    WIRE,
    arguments_of,
    extra_of,
    kind_of,
    mark,
    name_of,
    read_item,
    read_parts,
    role_of,
)
from suture.wires.fields import expect, is_list, is_map, list_of, map_of, object_of, text_of

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
_COUNTS = {
    "prompt_tokens": "input_tokens",
    "completion_tokens": "output_tokens",
    "total_tokens": "total_tokens",
    "cached_tokens": "input_tokens_details.cached_tokens",
    "cache_write_tokens": "input_tokens_details.cache_write_tokens",
    "reasoning_tokens": "output_tokens_details.reasoning_tokens",
}
_REFUSALS = ("invalid_", "image_", "unsupported_", "empty_image", "failed_to_download_image")


# Items in a row


def read_items(items: Sequence[Mapping[str, Any]]) -> list[AgenticMessage]:
    """Return the messages that `items` say: what the model made in a row is one, everything else one each."""
    messages: list[AgenticMessage] = []
    run: _Run | None = None
    for index, item in enumerate(items):
        with located(index=index):
            role = role_of(item)
            if role == "assistant":
                run = run or _Run()
                run.add(item)
                continue
            messages += [] if run is None else [run.message()]
            run, kind = None, kind_of(item)
            if kind != "message":
                messages.append(AgenticMessage(role, tuple(read_item(item, kind))))
                continue
            extra = extra_of(item, "content", "role" if item.get("role") == role else "")
            messages.append(AgenticMessage(role, tuple(read_parts(item)), extra=extra))
    return messages if run is None else [*messages, run.message()]


def read_output(items: Sequence[Mapping[str, Any]]) -> AgenticMessage:
    """Return the message that the output of a response says."""
    run = _Run(is_reply=True)
    for place, item in enumerate(items):
        with located(f"output[{place}]"):
            run.add(item)
    return run.message()


class _Run:
    """Items that the model made, one after another."""

    def __init__(self, *, is_reply: bool = False) -> None:
        self._blocks: list[Any] = []
        self._is_reply = is_reply
        self._needs = ""
        self._head: Mapping[str, Any] | None = None
        self._after_text = False

    def message(self) -> AgenticMessage:
        return AgenticMessage("assistant", tuple(self._blocks), extra={WIRE: {ITEM: self._head}} if self._head else {})

    def add(self, item: Mapping[str, Any]) -> None:
        kind = kind_of(item)
        if kind == "message":
            self._say(item)
            return
        self._after_text = False
        if kind == "reasoning":
            self._needs = text_of(item, "id")
        blocks = read_item(item, kind)
        if self._needs and isinstance(blocks[0], PRODUCTS):
            blocks[0] = mark(blocks[0], **{NEEDS: self._needs})
        self._blocks += blocks

    def _say(self, item: Mapping[str, Any]) -> None:
        """Add the parts of a message, and keep what it has beside them."""
        by_model = role_of(item) == "assistant"
        if (self._is_reply or item.get("id")) and not isinstance(item.get("content"), str):
            # The texts need not say that they have no annotations, and no likelihoods.
            parts = [
                {name: value for name, value in part.items() if value or name not in {"annotations", "logprobs"}}
                for part in list_of(item, "content")
            ]
            item = {**item, "content": parts}
        parts = read_parts(item, by_model=by_model)
        if not parts:
            return
        head = dict(map_of(extra_of(item, "type", "content", "role" if by_model else ""), WIRE))
        if self._needs:
            head[NEEDS] = self._needs
        if self._head is None:
            self._head = head
        elif head or self._after_text:
            parts[0] = mark(parts[0], **{ITEM: head})
        self._after_text = True
        self._blocks += parts


# Responses


def _error(said: Mapping[str, Any]) -> ModelError:
    refuses = any(str(said.get(name)).startswith(_REFUSALS) for name in ("code", "type"))
    return read_failure(WIRE, said, default=ModelRequestError if refuses else ModelServerError)


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
    return None if body.get("usage") is None else read_usage(body["usage"], _COUNTS)


def _meta(body: Mapping[str, Any], status: str, blocks: Sequence[Any]) -> ResponseMeta:
    reason = "tool_calls" if any(isinstance(block, FunctionToolCall) for block in blocks) else "stop"
    if status == "incomplete":
        reason = text_of(object_of(body, "incomplete_details", optional=True), "reason") or status
    facts = {name: value for name, value in body.items() if name not in _NO_EXTENSION}
    texts = [block for block in blocks if isinstance(block, AssistantGenText)]
    likely = [token for block in texts for token in list_of(map_of(block.extra, WIRE), "logprobs")]
    logprobs = read_logprobs(likely) if likely else None
    return make_meta(facts, reason, {"max_output_tokens": "length"}, _usage(body), logprobs)


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
        """Where each item stands, by its id: for servers that do not number their items."""
        self._body: dict[str, Any] | None = None

    def add(self, event: Mapping[str, Any]) -> list[Delta]:
        kind = event.get("type")
        error = event.get("error")
        if kind in ("error", "response.error") or (kind is None and is_map(error)):
            raise _error(error if is_map(error) else event)
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
                usage = _usage(body)
                self._body = {"status": kind.removeprefix("response."), **body}
                return [] if usage is None else [Delta(usage=usage)]
            case "response.failed":
                error = object_of(event, "response").get("error")
                raise _error(error if is_map(error) else {})
            case _:
                return []

    def fold(self) -> Mapping[str, Any] | None:
        if self._body is None or self._body.get("output"):
            return self._body
        return {**self._body, "output": [*map(_join, self.in_order())]}

    def _take_item(self, event: Mapping[str, Any], *, ends: bool) -> list[Delta]:
        """Take the beginning of an item, or the item as it is in the end; what was not said in pieces is said now."""
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
        """Return where the item of `event` stands: as it says, or else where the one with its id does, or the next."""
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
        if channel.item == _CUSTOM:  # the input is a text in an object, so a piece of it is one of a JSON text
            piece = ('{"input":"' if is_first else "") + msgspec.json.encode(piece).decode()[1:-1]
        return held.show_call(arguments=piece) if piece else []


def _join(held: OpenBlock) -> dict[str, Any]:
    """Return the item: as it was given whole, else as far as it came."""
    item = dict(held.head)
    for channel, part in sorted(held.pieces, key=lambda key: (key[0].field, key[1])) if held.is_open else ():
        text = held.text((channel, part))
        parts = [*_list_in(item, channel.field), {"type": channel.part, channel.text: text}]
        item[channel.field] = parts if channel.part else text
    return item


def _rest(held: OpenBlock) -> list[Delta]:
    """Return what is still to be said of an item that is whole now."""
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
    """Return the list in the field `name`, of an item of which the rest is still to come."""
    value = item.get(name)
    return value if is_list(value) else ()
