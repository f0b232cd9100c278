"""Anthropic's Messages API: requests, replies and streams from and into native values."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from msgspec.structs import replace

from suture.codecs._codec import Codec, StreamReader
from suture.codecs._contents import Called
from suture.codecs._kept import put_back, report_extra
from suture.codecs._values import Losses, Lost, Request
from suture.errors import InputError
from suture.messages import AgenticMessage, ContentBlock, FunctionToolCall, FunctionToolResult
from suture.providers.anthropic.fields import WIRE, kept_beside, list_in, own_fields
from suture.providers.anthropic.reading import read_content
from suture.providers.anthropic.reply import read_body, read_reply, write_reply
from suture.providers.anthropic.request import read_options, read_tool, write_options, write_tools
from suture.providers.anthropic.stream import AnthropicReader, cut
from suture.providers.anthropic.writing import write_content, write_system
from suture.wires import check_list, plain

__all__ = ["AnthropicCodec"]

_ROLES = ("user", "assistant", "system")
_OUTSIDE = ("messages", "system", "tools")
_MOVABLE = frozenset(("text", "thinking", "redacted_thinking", "image", "document"))
"""What may not stand behind a call."""


class AnthropicCodec(Codec):
    """Messages as Anthropic's API takes and gives them.

    What is read and written again is the same, but for this:

    - Content that is a string becomes one text block. A tool's result that is one plain text becomes a string.
    - Blank text is left out, and a message that says nothing. An error without a text is given one.
    - Neighbouring user messages with results become one; results stand first in it, calls last in a reply.
    - A field that is null, an `is_error` that is false, an empty list of tools and an empty `system` are left out.
    - A request without `max_tokens` asks for 8192.

    >>> codec = AnthropicCodec()
    >>> codec.decode_messages([{"role": "user", "content": "hi"}])
    [AgenticMessage(role='user', content_blocks=(UserInputText(text='hi'),))]
    """

    name: ClassVar[str] = WIRE

    def write_messages(self, messages: Sequence[AgenticMessage], losses: Losses) -> list[dict[str, Any]]:
        """Return `messages` as the API's; those of the system at the beginning belong to a request and are reported.

        >>> AnthropicCodec().write_messages([AgenticMessage.assistant("hello")], Losses())
        [{'role': 'assistant', 'content': [{'type': 'text', 'text': 'hello'}]}]
        """
        start = _system_end(messages)
        for index in range(start):
            losses.index = index
            losses.add(Lost.SYSTEM, "the system message at the beginning; a request has a place for it")
        return _write_turns(messages, start, losses)

    def read_messages(self, items: Sequence[Mapping[str, Any]]) -> list[AgenticMessage]:
        """Return what the API's messages say; a result is given the name of its call.

        >>> AnthropicCodec().read_messages([{"role": "assistant", "content": "hello"}])[0].role
        'assistant'
        """
        names = Called[str]()
        messages: list[AgenticMessage] = []
        for index, item in enumerate(items):
            try:
                message = _read_message(item)
            except InputError as error:
                raise InputError(error.reason, index=index, path=error.path) from None
            messages.append(_named(message, names))
        return messages

    def write_request(self, request: Request, losses: Losses) -> dict[str, Any]:
        """Return the body of a request.

        >>> body = AnthropicCodec().write_request(Request([AgenticMessage.user("hi")], "Be brief."), Losses())
        >>> body["system"], body["max_tokens"]
        ([{'type': 'text', 'text': 'Be brief.'}], 8192)
        """
        start = _system_end(request.messages)
        payload: dict[str, Any] = {}
        system = [{"type": "text", "text": request.instruction}] if request.instruction.strip() else []
        for index, message in enumerate(request.messages[:start]):
            losses.index = index
            _report_beside(message, losses)
            system += write_system(message.content_blocks, losses)
        if system:
            payload["system"] = system
        payload["messages"] = _write_turns(request.messages, start, losses)
        tools = write_tools(request.tools, losses)
        if tools:
            payload["tools"] = tools
        write_options(payload, request.options, losses)
        return payload

    def decode_request(self, payload: Mapping[str, Any]) -> Request:
        """Return what the body of a request says.

        >>> AnthropicCodec().decode_request({"system": "Be brief.", "messages": []}).instruction
        'Be brief.'
        """
        body: Mapping[str, Any] = plain(payload)
        check_list(body.get("messages"))
        messages = self.read_messages(body["messages"])
        instruction, system = _read_system(body)
        tools = [read_tool(tool) for tool in list_in(body, "tools")] if body.get("tools") is not None else []
        options = read_options({name: value for name, value in body.items() if name not in _OUTSIDE})
        return Request([*system, *messages], instruction, tuple(tools), options)

    def write_reply(self, message: AgenticMessage, losses: Losses) -> dict[str, Any]:
        """Return the body of a response that says `message`.

        >>> AnthropicCodec().write_reply(AgenticMessage.assistant("hello"), Losses())["stop_reason"]
        'end_turn'
        """
        return write_reply(message, losses)

    def decode_reply(self, payload: Mapping[str, Any]) -> AgenticMessage:
        """Return what the body of a response says.

        >>> body = {"content": [{"type": "text", "text": "hello"}], "stop_reason": "end_turn"}
        >>> AnthropicCodec().decode_reply(body).response_meta.finish_reason
        'stop'
        """
        return read_reply(payload)

    def write_stream(self, message: AgenticMessage, losses: Losses) -> list[dict[str, Any]]:
        """Return the events of a stream that says `message`.

        >>> AnthropicCodec().write_stream(AgenticMessage.assistant("hello"), Losses())[-1]
        {'type': 'message_stop'}
        """
        return cut(write_reply(message, losses))

    def reader(self) -> StreamReader:
        """Return what reads one streamed reply."""
        return AnthropicReader()


# Messages


def _read_message(item: Any) -> AgenticMessage:
    """Return one message; a whole response in the place of a message is read as the reply that it is."""
    if not isinstance(item, dict):
        raise InputError(f"expected a message, found {type(item).__name__}")
    item = cast("dict[str, Any]", item)
    role = item.get("role")
    if role not in _ROLES:
        raise InputError(f"unknown role {role!r}; expected user, assistant or system", path="role")
    if "stop_reason" in item:
        return read_body(item)
    blocks = read_content(item, made=role == "assistant")
    extra = kept_beside(item, ("role", "content"))
    if role == "system":
        absent = {"content": None} if item.get("content") is None else {}
        extra = {WIRE: {**extra.get(WIRE, {}), **absent, "system": None}}
    return AgenticMessage(role, tuple(blocks), extra=extra)


def _named(message: AgenticMessage, names: Called[str]) -> AgenticMessage:
    """Return `message` with its results named as their calls, and note the calls in it."""
    names.enter(message.role)
    blocks: list[ContentBlock] = []
    for block in message.content_blocks:
        if isinstance(block, FunctionToolCall):
            names.note(block.call_id, block.name)
        if isinstance(block, FunctionToolResult):
            blocks.append(replace(block, name=names.answered(block.call_id) or ""))
        else:
            blocks.append(block)
    return replace(message, content_blocks=tuple(blocks))


def _read_system(body: Mapping[str, Any]) -> tuple[str, list[AgenticMessage]]:
    """Return the system's text; as a message, where it is more than one plain text."""
    try:
        blocks = read_content({"content": body.get("system")})
    except InputError as error:
        raise InputError(error.reason, path=error.path.replace("content", "system", 1)) from None
    first: Any = blocks[0] if blocks else None
    if len(blocks) == 1 and getattr(first, "text", "") and not first.extra:
        return first.text, []
    return "", [AgenticMessage("system", tuple(blocks))] if blocks else []


def _stays(message: AgenticMessage) -> bool:
    """Tell whether a system message was read from among the messages, and so may be written there."""
    return "system" in own_fields(message.extra)


def _system_end(messages: Sequence[AgenticMessage]) -> int:
    """Return how many messages at the beginning are the system's and belong outside."""
    inside = (place for place, message in enumerate(messages) if message.role != "system" or _stays(message))
    return next(inside, len(messages))


def _report_beside(message: AgenticMessage, losses: Losses) -> None:
    """Report what a message carries beside its blocks and a request does not say."""
    if message.response_meta is not None:
        losses.add(Lost.META, "why the reply ended and what it cost", "response_meta")
    if message.role == "system" and not _stays(message):
        for name, value in message.extra.items():
            report_extra(name, value, losses, "extra")


def _write_turns(messages: Sequence[AgenticMessage], start: int, losses: Losses) -> list[dict[str, Any]]:
    """Return the messages from `start` on; neighbours that carry results become one."""
    turns: list[list[dict[str, Any]]] = []
    carrying = False
    for index in range(start, len(messages)):
        losses.index = index
        turn = _write_turn(messages[index], losses)
        if turn is None:
            continue
        joins = carrying and _carries_results(turn)
        carrying = _carries_results(turn)
        if joins:
            turns[-1].append(turn)
        else:
            turns.append([turn])
    losses.index = None
    return [turn[0] if len(turn) == 1 else _merged(turn) for turn in turns]


def _write_turn(message: AgenticMessage, losses: Losses) -> dict[str, Any] | None:
    _report_beside(message, losses)
    role = message.role
    if role == "system":
        blocks = write_system(message.content_blocks, losses)
        if not _stays(message):
            losses.add(Lost.SYSTEM, "that this message is the system's; it is told as the user's")
            return {"role": "user", "content": blocks} if blocks else None
    else:
        blocks = _in_order(write_content(message.content_blocks, losses))
    made = put_back(WIRE, {"role": role, "content": blocks}, message.extra, losses, "extra")
    return made if blocks or "content" not in made else None


def _in_order(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the blocks with results first, and what is said or shown behind the first call put before it."""
    kinds = [block.get("type") for block in blocks]
    if "tool_result" in kinds:
        return sorted(blocks, key=lambda block: block.get("type") != "tool_result")
    if "tool_use" not in kinds:
        return blocks
    first = kinds.index("tool_use")
    behind = blocks[first:]
    moved = [block for block in behind if block.get("type") in _MOVABLE]
    return [*blocks[:first], *moved, *[block for block in behind if block.get("type") not in _MOVABLE]]


def _carries_results(turn: Mapping[str, Any]) -> bool:
    content = cast("list[dict[str, Any]]", turn.get("content", ()))
    return turn["role"] == "user" and any(block.get("type") == "tool_result" for block in content)


def _merged(turns: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one message with what all of `turns` say, results first."""
    whole: dict[str, Any] = {}
    for turn in turns:
        whole |= turn
    return {**whole, "content": _in_order([block for turn in turns for block in turn["content"]])}
