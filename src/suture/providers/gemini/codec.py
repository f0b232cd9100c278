"""Google's Gemini, generateContent: requests, replies and streams from and into native values."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from suture.codecs._codec import Codec, StreamReader
from suture.codecs._contents import as_json, split_system
from suture.codecs._values import Losses, Lost, Request
from suture.messages import AgenticMessage
from suture.providers.gemini.fields import GEMINI, camel
from suture.providers.gemini.read import read_contents
from suture.providers.gemini.reply import read_reply, write_reply
from suture.providers.gemini.request import read_options, read_system, read_tools, write_options, write_tools
from suture.providers.gemini.stream import GeminiReader, cut
from suture.providers.gemini.write import write_contents, write_system
from suture.wires import check_list, plain

__all__ = ["GeminiCodec"]

_OUTSIDE = ("contents", "systemInstruction", "tools")


class GeminiCodec(Codec):
    """Contents as the Gemini API and Vertex AI take and give them.

    What is read and written again is the same, but for this:

    - Names of fields are written in camel case; bytes and the SDK's base64 become plain base64. An optional field that
      is null or empty is left out. A content without a role is the user's, as are those of `function` and `tool`.
    - Neighbouring contents of one role become one; a response stands before what else its content holds, and one
      without a name is given that of its call.
    - The texts of a response become one, and stand before its media. A result without content says an empty text.
    - All functions that a request declares stand in one list, and its other tools each in one of their own.
    - In a reply, a text without words is left out.

    A call without an id gets one, `call_<place>_<number>`, which is never sent to Gemini, nor with its response.

    >>> codec = GeminiCodec()
    >>> codec.decode_messages([{"role": "model", "parts": [{"text": "At 06:12."}]}])
    [AgenticMessage(role='assistant', content_blocks=(AssistantGenText(text='At 06:12.'),))]
    """

    name: ClassVar[str] = GEMINI

    def write_messages(self, messages: Sequence[AgenticMessage], losses: Losses) -> list[dict[str, Any]]:
        """Return `messages` as contents; those of the system at the beginning belong to a request and are reported.

        >>> GeminiCodec().write_messages([AgenticMessage.assistant("hello")], Losses())
        [{'role': 'model', 'parts': [{'text': 'hello'}]}]
        """
        system, rest = split_system(messages)
        for losses.index in range(len(system)):
            losses.add(Lost.SYSTEM, "the system message at the beginning; a request has a place for it")
        return write_contents(rest, len(system), losses)

    def decode_messages(self, items: Sequence[Any]) -> list[AgenticMessage]:
        """Return the messages that contents (dicts, with bytes or base64, or the SDK's objects) say.

        >>> picture = {"inline_data": {"mime_type": "image/png", "data": b"cat"}}
        >>> GeminiCodec().decode_messages([{"parts": [picture]}])[0].content_blocks[0].base64_data
        'Y2F0'
        """
        check_list(items)
        return super().decode_messages([as_json(item) for item in items])

    def read_messages(self, items: Sequence[Mapping[str, Any]]) -> list[AgenticMessage]:
        """Return what contents say; calls without an id, and their responses, are given one.

        >>> call = {"functionCall": {"name": "tides", "args": {}}}
        >>> GeminiCodec().read_messages([{"role": "model", "parts": [call]}])[0].content_blocks[0].call_id
        'call_0_0'
        """
        return read_contents(items)

    def write_request(self, request: Request, losses: Losses) -> dict[str, Any]:
        """Return the body of a request.

        >>> body = GeminiCodec().write_request(Request([AgenticMessage.user("hi")], "Be brief."), Losses())
        >>> body["systemInstruction"]
        {'parts': [{'text': 'Be brief.'}]}
        """
        system, rest = split_system(request.messages)
        said = write_system(request.instruction, system, losses)
        payload: dict[str, Any] = {"contents": write_contents(rest, len(system), losses)}
        if said is not None:
            payload["systemInstruction"] = said
        tools = write_tools(request.tools, losses)
        if tools:
            payload["tools"] = tools
        write_options(payload, request.options, losses)
        return payload

    def decode_request(self, payload: Mapping[str, Any]) -> Request:
        """Return what the body of a request says.

        >>> body = {"contents": [], "systemInstruction": {"parts": [{"text": "Be brief."}]}}
        >>> GeminiCodec().decode_request(body).instruction
        'Be brief.'
        """
        body = camel(plain(as_json(payload)))
        check_list(body.get("contents"))
        messages = self.read_messages(body["contents"])
        instruction, system = read_system(body.get("systemInstruction"))
        options = read_options({name: value for name, value in body.items() if name not in _OUTSIDE})
        return Request([*system, *messages], instruction, tuple(read_tools(body.get("tools"))), options)

    def write_reply(self, message: AgenticMessage, losses: Losses) -> dict[str, Any]:
        """Return the body of a response that says `message`.

        >>> GeminiCodec().write_reply(AgenticMessage.assistant("hello"), Losses())["candidates"][0]["content"]
        {'parts': [{'text': 'hello'}], 'role': 'model'}
        """
        return write_reply(message, losses)

    def decode_reply(self, payload: Mapping[str, Any]) -> AgenticMessage:
        """Return what the body of a response says; of several candidates, the first.

        >>> body = {"candidates": [{"content": {"parts": [{"text": "hello"}]}, "finishReason": "STOP"}]}
        >>> GeminiCodec().decode_reply(body).response_meta.finish_reason
        'stop'
        """
        return read_reply(payload)

    def write_stream(self, message: AgenticMessage, losses: Losses) -> list[dict[str, Any]]:
        """Return the events of a stream that says `message`.

        >>> len(GeminiCodec().write_stream(AgenticMessage.assistant("hello"), Losses()))
        2
        """
        return cut(write_reply(message, losses))

    def reader(self) -> StreamReader:
        """Return what reads one streamed reply."""
        return GeminiReader()
