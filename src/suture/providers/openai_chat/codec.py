"""OpenAI's Chat Completions, which many servers speak."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from suture.codecs._codec import Codec, StreamReader
from suture.codecs._kept import REST, report_extra, unknown
from suture.codecs._values import Losses, Lost, Request
from suture.errors import InputError
from suture.messages import AgenticMessage, FunctionToolResult, Reasoning, UserInputText
from suture.providers.openai_chat.parts import (
    LISTED,
    WIRE,
    inside,
    is_list,
    is_map,
    join_parts,
    only_texts,
    others,
    own,
    read_content,
    restored,
    write_part,
    write_words,
)
from suture.providers.openai_chat.reading import read_turn
from suture.providers.openai_chat.reply import read_reply, write_body
from suture.providers.openai_chat.request import read_options, read_tools, write_options, write_tools
from suture.providers.openai_chat.stream import ChatReader, cut
from suture.providers.openai_chat.writing import NAMED, is_result, write_result, write_turn

__all__ = ["OpenAIChatCodec"]


class OpenAIChatCodec(Codec):
    """Messages, requests, replies and streams of Chat Completions, as OpenAI and many others speak it.

    What is read and written again is the same, but for this. A field that is null is left out, as is an empty list of
    calls or of tools, the index of a call, and an empty thought in a reply. A content that is null is an empty text; an
    empty one beside calls is null. A refusal that is the only one stands in its field, not among the parts. Arguments
    that are an object are written as text. Media in a result are named there and shown in a user message after the
    last result of the turn, since a result is text. A sound of the model's is sent back by its id. One text to stop at
    is written as a list. Of several choices in a reply, only the first is read.

    Of a message that was not read here, texts that are all it says are written as one, since many servers take
    nothing else; thought, text, media and calls stand in this order; and results stand before what the user says.

    >>> from suture.codecs import get_codec
    >>> codec = get_codec("openai-chat")
    >>> codec.encode_messages([AgenticMessage.tool_result("call_1", "add", "42")]).payload
    [{'role': 'tool', 'tool_call_id': 'call_1', 'content': '42'}]
    >>> codec.decode_messages([{"role": "user", "content": "hi"}])[0].content_blocks
    (UserInputText(text='hi'),)
    """

    name = WIRE

    def write_messages(self, messages: Sequence[AgenticMessage], losses: Losses) -> list[dict[str, Any]]:
        """Return `messages` as this provider's list."""
        writing = _Writing([], [], losses, self.field)
        for index, message in enumerate(messages):
            losses.index = index
            writing.add(message)
        losses.index = None
        writing.show()
        return writing.made

    def read_messages(self, items: Sequence[Mapping[str, Any]]) -> list[AgenticMessage]:
        """Return what `items`, plain dicts, say."""
        return [_read(item, index) for index, item in enumerate(items)]

    def write_request(self, request: Request, losses: Losses) -> dict[str, Any]:
        """Return the body of a request."""
        messages = self.write_messages(request.messages, losses)
        if request.instruction:
            messages.insert(0, {"role": "system", "content": request.instruction})
        payload: dict[str, Any] = {"messages": messages}
        tools = write_tools(request.tools, losses)
        if tools:
            payload["tools"] = tools
        write_options(payload, request.options, losses)
        return payload

    def decode_request(self, payload: Mapping[str, Any]) -> Request:
        """Return what the body of a request says; a system message stays one."""
        messages = self.decode_messages(payload.get("messages", ()))
        options = read_options({name: payload[name] for name in payload if name not in {"messages", "tools"}})
        return Request(messages, "", read_tools(payload.get("tools")), options)

    def write_reply(self, message: AgenticMessage, losses: Losses) -> dict[str, Any]:
        """Return the body of a response that says `message`."""
        made = write_turn(message, losses, reply=True)
        return write_body(message, restored(made, message.extra, losses), losses)

    def decode_reply(self, payload: Mapping[str, Any]) -> AgenticMessage:
        """Return what the body of a response says; of several choices, the first."""
        return read_reply(payload)

    def write_stream(self, message: AgenticMessage, losses: Losses) -> list[dict[str, Any]]:
        """Return the events of a stream that says `message`."""
        return cut(self.write_reply(message, losses))

    def reader(self) -> StreamReader:
        """Return what reads one streamed reply."""
        return ChatReader()


# Writing


class _Writing(NamedTuple):
    """The messages so far, and the media of the results so far that are still to be shown."""

    made: list[dict[str, Any]]
    media: list[dict[str, Any]]
    losses: Losses
    field: str

    def add(self, message: AgenticMessage) -> None:
        """Add what `message` says: the results in it are messages of their own."""
        spoken = any(not is_result(block) for block in message.content_blocks) or not message.content_blocks
        is_turn = message.role == "assistant" and spoken
        if is_turn:
            self.show()
        said = None
        if is_turn:
            turn = write_turn(message, self.losses, field=self.field)
            if turn["content"] or len(turn) > 2 or not message.content_blocks:  # else all that it said was lost
                said = len(self.made)
                self.made.append(turn)
        for place, block in enumerate(message.content_blocks):
            if is_result(block):
                result, shown = write_result(block, self.losses, f"content_blocks[{place}]")
                self.made.append(result)
                self.media.extend(shown)
        if message.role != "assistant" and spoken:
            self.show()
            said = len(self.made)
            self.made.append(_write_said(message, self.losses))
        if message.response_meta is not None:
            self.losses.add(Lost.META, "why the reply ended and what it cost")
        if message.extra and said is not None:
            self.made[said] = _named(self.made[said], message, self.losses)
        elif message.extra:
            for name, value in message.extra.items():
                report_extra(name, value, self.losses, "extra")

    def show(self) -> None:
        """Show the media of the results so far."""
        if self.media:
            self.made.append({"role": "user", "content": list(self.media)})
            self.media.clear()


def _write_said(message: AgenticMessage, losses: Losses) -> dict[str, Any]:
    """Return a message of the user's or the system's; the system's is text."""
    parts: list[dict[str, Any]] = []
    for place, block in enumerate(message.content_blocks):
        path = f"content_blocks[{place}]"
        if is_result(block):
            continue
        if isinstance(block, Reasoning):
            losses.add(Lost.REASONING, "a thought that is not the model's", path)
            continue
        as_words = message.role == "system" and not isinstance(block, UserInputText)
        part = (write_words if as_words else write_part)(block, losses, path)
        if part is not None:
            parts.append(part)
    return {"role": message.role, "content": join_parts(parts, listed=LISTED in own(message.extra))}


def _named(made: dict[str, Any], message: AgenticMessage, losses: Losses) -> dict[str, Any]:
    """Return the message that says what `message` does, with what that carries beside its blocks."""
    native = inside(message.extra, REST)
    if set(native) != {"name"} or not isinstance(native["name"], str):
        return restored(made, message.extra, losses)
    rest = {name: value for name, value in message.extra.items() if name != REST}
    return restored({**made, "name": native["name"]}, rest, losses)


# Reading


def _read(item: Any, index: int) -> AgenticMessage:
    role = item.get("role") if is_map(item) else None
    reader = _READERS.get(role) if isinstance(role, str) else None
    if reader is None:
        found = f"the role {role!r}" if is_map(item) else type(item).__name__
        raise InputError(f"expected a message of {', '.join(_READERS)}; found {found}", index=index, path="role")
    return reader(item, index)


def _read_said(item: Mapping[str, Any], index: int) -> AgenticMessage:
    content = item.get("content")
    blocks = read_content(content, index)
    rest = others(item, ("role", "content"))
    if is_list(content) and only_texts(content):
        rest[LISTED] = None
    if item["role"] == "developer":
        rest["role"] = "developer"
    role = "user" if item["role"] == "user" else "system"
    return AgenticMessage(role, tuple(blocks), extra={WIRE: rest} if rest else {})


def _read_turn(item: Mapping[str, Any], index: int) -> AgenticMessage:
    blocks, rest = read_turn(item, index)
    return AgenticMessage("assistant", tuple(blocks), extra={WIRE: rest} if rest else {})


def _read_result(item: Mapping[str, Any], index: int) -> AgenticMessage:
    content, call_id, name = item.get("content"), item.get("tool_call_id") or "", item.get("name") or ""
    if not isinstance(call_id, str) or not isinstance(name, str):
        raise InputError("expected a text as tool_call_id and as name", index=index, path="tool_call_id")
    rest = others(item, ("role", "content", "tool_call_id", "name"))
    if is_list(content) and only_texts(content):
        rest[LISTED] = None
    if name:
        rest[NAMED] = None
    result = FunctionToolResult(call_id, name, tuple(read_content(content, index)), extra={WIRE: rest} if rest else {})
    return AgenticMessage("user", (result,))


def _read_older(item: Mapping[str, Any], _index: int) -> AgenticMessage:
    return AgenticMessage("user", (unknown(WIRE, item),))


_READERS: Mapping[str, Callable[[Mapping[str, Any], int], AgenticMessage]] = {
    "system": _read_said,
    "developer": _read_said,
    "user": _read_said,
    "assistant": _read_turn,
    "tool": _read_result,
    "function": _read_older,
}
