"""Amazon Bedrock's Converse, from and into native messages."""

from collections.abc import Mapping, Sequence
from typing import Any

from suture.codecs._codec import Codec
from suture.codecs._contents import Called, as_json
from suture.codecs._event_stream import EventStream, write_frame
from suture.codecs._kept import put_back
from suture.codecs._values import Losses, Lost, Request
from suture.messages import AgenticMessage, FunctionToolCall
from suture.providers.bedrock.json import WIRE, Where, is_map
from suture.providers.bedrock.read import read_message
from suture.providers.bedrock.reply import read_reply, write_reply
from suture.providers.bedrock.request import (
    read_options,
    read_system,
    read_tools,
    write_options,
    write_system,
    write_tools,
)
from suture.providers.bedrock.stream import BedrockReader, cut
from suture.providers.bedrock.write import Writing, arranged, is_blank, write_blocks
from suture.wires import check_list

__all__ = ["BedrockCodec"]

_START = "(start of the conversation)"


class BedrockCodec(Codec):
    """Converse, in the form that JSON has: bytes are base64 text. What boto3 has, bytes, is read as well.

    What is read and written again is the same, but for this:

    - A field that is null is left out.
    - Neighbouring messages of one role are one message. Results come first in it, calls last.
    - Text that is blank is left out, and a message that says nothing. An error without a text gets one.
    - Where that, or taking the system's words out, would let the model speak first, a user's message is put before it.
    - A call's `input` is an object: empty where it was missing, or anything else.
    - A document's name has the characters that Converse allows, and no two documents have the same.
    - The texts of `citationsContent` are one text.
    - An output schema is called `answer`, and its text has no blanks.
    - Where a request has no tools but calls of some, `toolConfig` names those: Converse demands it.
    - `ResponseMetadata`, which boto3 adds to a response, is no part of it; its `RequestId` is the reply's id.

    >>> from suture.messages import AgenticMessage
    >>> BedrockCodec().encode_messages([AgenticMessage.user("hi")]).payload
    [{'role': 'user', 'content': [{'text': 'hi'}]}]
    """

    name = WIRE

    def decode_messages(self, items: Sequence[Any]) -> list[AgenticMessage]:
        """Return the messages that `items` say; bytes in them are read as their base64."""
        check_list(items)
        return super().decode_messages(as_json(list(items)))

    def write_messages(self, messages: Sequence[AgenticMessage], losses: Losses) -> list[dict[str, Any]]:
        """Return `messages` as Converse's."""
        first = _first_spoken(messages)
        for index, message in enumerate(messages[:first]):
            losses.index = index
            losses.add(Lost.SYSTEM, f"a system message, which stands outside of the list: {_words(message)!r}")
        return _written(messages, first, Writing(losses, {}))

    def read_messages(self, items: Sequence[Mapping[str, Any]]) -> list[AgenticMessage]:
        """Return what `items` say; a result has the name of its call."""
        names = Called[str]()
        return [read_message(item, index, names) for index, item in enumerate(items)]

    def write_request(self, request: Request, losses: Losses) -> dict[str, Any]:
        """Return the body of a request."""
        first = _first_spoken(request.messages)
        writing = Writing(losses, {})
        system = write_system(request.instruction, request.messages[:first], writing)
        payload: dict[str, Any] = {"messages": _written(request.messages, first, writing)}
        losses.index = None
        if system:
            payload["system"] = system
        tools = write_tools(request.tools, _called(request.messages), losses)
        if tools:
            payload["toolConfig"] = {"tools": tools}
        write_options(payload, request.options, losses)
        return payload

    def decode_request(self, payload: Mapping[str, Any]) -> Request:
        """Return what the body of a request says."""
        body: dict[str, Any] = as_json(dict(payload))
        instruction, system = read_system(body.get("system"))
        messages = self.read_messages(Where("", None, "messages").list(body.get("messages", [])))
        config: Any = body.get("toolConfig")
        tools = read_tools(config) if is_map(config) else ()
        return Request([*system, *messages], instruction, tools, read_options(body))

    def write_reply(self, message: AgenticMessage, losses: Losses) -> dict[str, Any]:
        """Return the body of a response that says `message`."""
        return write_reply(message, losses)

    def decode_reply(self, payload: Mapping[str, Any]) -> AgenticMessage:
        """Return what the body of a response says."""
        return read_reply(payload)

    def write_stream(self, message: AgenticMessage, losses: Losses) -> list[dict[str, Any]]:
        """Return the events of a stream that says `message`."""
        return cut(write_reply(message, losses))

    def reader(self) -> BedrockReader:
        """Return what reads one streamed reply."""
        return BedrockReader()

    def framing(self) -> EventStream:
        """Return what takes the bytes of a stream apart into events."""
        return EventStream()

    def frame(self, event: Mapping[str, Any]) -> bytes:
        """Return one event as a frame."""
        return write_frame(event)


def _first_spoken(messages: Sequence[AgenticMessage]) -> int:
    """Return where the conversation begins, behind the system messages that stand outside of it."""
    for place, message in enumerate(messages):
        if message.role != "system" or _own_role(message):
            return place
    return len(messages)


def _own_role(message: AgenticMessage) -> bool:
    """Tell whether a system message was read from the middle of a conversation, where some models take it."""
    kept: Any = message.extra.get(WIRE)
    return is_map(kept) and kept.get("role") == "system"


def _written(messages: Sequence[AgenticMessage], first: int, writing: Writing) -> list[dict[str, Any]]:
    """Return the conversation: neighbours of one role as one, its blocks in order, nothing blank."""
    made: list[dict[str, Any]] = []
    for index, message in enumerate(messages[first:], first):
        writing.losses.index = index
        written = _write(message, writing)
        if not written["content"]:
            continue
        if made and made[-1]["role"] == written["role"]:
            blocks = made[-1]["content"]
            blocks += written["content"]
            made[-1] = {**made[-1], **written, "content": blocks}
        else:
            made.append(written)
    if made and made[0]["role"] == "assistant" and messages[0].role != "assistant":
        made.insert(0, {"role": "user", "content": [{"text": _START}]})
    return [{**message, "content": arranged(message["role"], message["content"])} for message in made]


def _write(message: AgenticMessage, writing: Writing) -> dict[str, Any]:
    losses = writing.losses
    if message.response_meta is not None:
        losses.add(Lost.META, "why the reply ended and what it cost")
    if message.role == "system" and not _own_role(message):
        losses.add(Lost.SYSTEM, f"that this is the system's: {_words(message)!r}")
    role = "assistant" if message.role == "assistant" else "user"
    blocks = [block for block in write_blocks(message.content_blocks, writing) if not is_blank(block)]
    return put_back(WIRE, {"role": role, "content": blocks}, message.extra, losses)


def _words(message: AgenticMessage) -> str:
    return " ".join([getattr(block, "text", "") for block in message.content_blocks])[:40]


def _called(messages: Sequence[AgenticMessage]) -> list[str]:
    blocks = [block for message in messages for block in message.content_blocks]
    return [block.name for block in blocks if isinstance(block, FunctionToolCall) and block.name]
