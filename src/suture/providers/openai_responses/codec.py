"""OpenAI's Responses API: a flat list of items."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from suture.codecs._codec import Codec, StreamReader
from suture.codecs._values import Losses, Lost, Request
from suture.errors import InputError
from suture.messages import AgenticMessage
from suture.providers.openai_responses.events import write_events
from suture.providers.openai_responses.fields import list_in, text_in
from suture.providers.openai_responses.ids import settle
from suture.providers.openai_responses.read import read_items
from suture.providers.openai_responses.reply import nonsense, read_reply, write_reply
from suture.providers.openai_responses.request import read_options, read_tools, write_options, write_tools
from suture.providers.openai_responses.stream import ResponsesReader
from suture.providers.openai_responses.write import write_items
from suture.wires import plain

__all__ = ["OpenAIResponsesCodec"]


class OpenAIResponsesCodec(Codec):
    """Items of Responses: what the model made in a row is one message, every other item a message of its own.

    A call of a custom tool, of the local shell or of the patch tool is a `FunctionToolCall`, too; it goes back as
    what it was, and so does its result. What the service's own tools did goes back to it, and to nobody else.

    What is read and written again differs in this alone:

    - A text without fields of its own is written as a string, in a message for the model and in an output. A message
      of the model's says its type, and has a list.
    - A field that is null is left out, and so is what the SDK adds for its user. An id that is absent is empty.
    - A reference says its type. A text of a message with an id says what it cites, if nothing, and how likely it was
      if that was asked for.
    - Reasoning has a summary, if an empty one, and no status.
    - An assistant message that says nothing is left out.
    - An item id is sent once. Reasoning that is not followed by what it produced goes without its id, and is left
      out if the id was all there was; what was made after reasoning that is gone goes without its id, too.
    - With `store` off, messages, calls and reasoning go without their ids.
    - A function says whether its schema is strict, and has one; `input` is a list.
    - A response does not repeat its request, and its usage has every count. An item without an id has its number
      for one, such as `msg_0`, which is not kept.

    >>> codec = OpenAIResponsesCodec()
    >>> codec.encode_messages([AgenticMessage.tool_result("call_1", "add", "42")]).payload
    [{'type': 'function_call_output', 'call_id': 'call_1', 'output': '42'}]
    """

    name: ClassVar[str] = "openai-responses"

    def write_messages(self, messages: Sequence[AgenticMessage], losses: Losses) -> list[dict[str, Any]]:
        """Return `messages` as items."""
        return self._write(messages, losses, stored=True)

    def read_messages(self, items: Sequence[Mapping[str, Any]]) -> list[AgenticMessage]:
        """Return what `items` say."""
        return read_items(items)

    def write_request(self, request: Request, losses: Losses) -> dict[str, Any]:
        """Return the body of a request."""
        payload: dict[str, Any] = {"instructions": request.instruction} if request.instruction else {}
        payload["input"] = self._write(request.messages, losses, stored=request.options.get("store") is not False)
        tools = write_tools(request.tools, losses)
        if tools:
            payload["tools"] = tools
        write_options(payload, request.options, request.tools, losses)
        return payload

    def decode_request(self, payload: Mapping[str, Any]) -> Request:
        """Return what the body of a request says."""
        body = plain(dict(payload))
        given = body.get("input")
        items = [{"role": "user", "content": given}] if isinstance(given, str) else list_in(body, "input")
        return Request(read_items(items), text_in(body, "instructions"), read_tools(body), read_options(body))

    def write_reply(self, message: AgenticMessage, losses: Losses) -> dict[str, Any]:
        """Return the body of a response that says `message`."""
        return write_reply(message, losses)

    def decode_reply(self, payload: Mapping[str, Any]) -> AgenticMessage:
        """Return what the body of a response says; raise `ModelError` where it reports one."""
        try:
            body = plain(dict(payload))
        except InputError as fault:
            raise nonsense(f"a response that is no JSON: {fault}") from None
        return read_reply(body)

    def write_stream(self, message: AgenticMessage, losses: Losses) -> list[dict[str, Any]]:
        """Return the events of a stream that says `message`."""
        return write_events(write_reply(message, losses))

    def reader(self) -> StreamReader:
        """Return what reads one streamed response."""
        return ResponsesReader()

    def _write(self, messages: Sequence[AgenticMessage], losses: Losses, *, stored: bool) -> list[dict[str, Any]]:
        for index, message in enumerate(messages):
            if message.response_meta is not None:
                losses.index = index
                losses.add(Lost.META, "why the reply ended and what it cost")
        return settle(write_items(messages, losses), losses, stored=stored)
