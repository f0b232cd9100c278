"""The interface of codecs, which write native messages and requests for one provider and read its payloads and replies.

Nothing here sends anything. Whatever cannot be translated is reported by name.
"""

from abc import ABC, abstractmethod
from binascii import b2a_base64
from collections import deque
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from operator import is_
from typing import Any, ClassVar, NamedTuple

import msgspec
from msgspec.structs import replace

from suture.codecs.losses import Loss, Losses, Lost
from suture.codecs.replies import Framing, StreamReader, check_calls, sensible
from suture.errors import ConfigError, InputError
from suture.messages import AgenticMessage, FrozenMap, FunctionToolCall, FunctionToolResult, ToolInfo, check_plain
from suture.wires import check_list, plain
from suture.wires.fields import is_list, is_map

_CLASSES = {
    "openai-chat": "OpenAIChatCodec",
    "openai-responses": "OpenAIResponsesCodec",
    "anthropic": "AnthropicCodec",
    "gemini": "GeminiCodec",
    "bedrock": "BedrockCodec",
}
"""The codec class of each wire, which is loaded on first use."""

CODECS = tuple(_CLASSES)
"""The wires that have a codec."""

OPTIONS = (
    *("max_tokens", "temperature", "top_p", "top_k", "presence_penalty", "frequency_penalty", "seed", "stop"),
    *("tool_choice", "parallel_tool_calls", "output_schema"),
)
"""The options that have the same name for all providers."""


# Values


def report_meta(message: AgenticMessage, losses: Losses) -> None:
    """Report the metadata of a reply, which requests have no field for."""
    if message.response_meta is not None:
        losses.add(Lost.META, "why the reply ended and what it cost", "response_meta")


class Encoded(NamedTuple):
    """A payload of plain dicts and lists, and what was lost in it.

    >>> Encoded([], ()).losses
    ()
    """

    payload: Any
    losses: tuple[Loss, ...] = ()


class Request(msgspec.Struct, frozen=True):
    """A request to a model in native values.

    `options` are those of the table in `suture.codecs`; any other option belongs to one provider and is put into the
    payload as it is.

    >>> from suture.messages import AgenticMessage
    >>> Request([AgenticMessage.user("hi")], "Answer briefly.").tools
    ()
    """

    messages: Sequence[AgenticMessage]
    instruction: str = ""
    tools: Sequence[ToolInfo] = ()
    options: Mapping[str, Any] = FrozenMap()


# Reading


@contextmanager
def located(path: str = "", index: int | None = None) -> Generator[None]:
    """Add a path and an index to an `InputError` that is raised inside the block."""
    try:
        yield
    except InputError as error:
        raise InputError(error.reason, index=index, path=f"{path}.{error.path}".strip(".")) from None


def as_json(value: Any) -> Any:
    """Return `value` with the bytes that SDKs have as base64 text, as JSON needs it."""
    check_plain(value, foreign=True)
    return _without_bytes(value)


def _without_bytes(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        return b2a_base64(value, newline=False).decode()
    if is_map(value):
        return {name: _without_bytes(item) for name, item in value.items()}
    if is_list(value):
        return [_without_bytes(item) for item in value]
    return value


# Codecs


class Codec(ABC):
    """Translates `AgenticMessage`s into one provider's payload, and back.

    Reading and writing again changes only what the codec's docstring lists. Whatever a format cannot hold is reported
    as a `Loss`, never dropped in silence.

    >>> from suture.codecs import get_codec
    >>> from suture.messages import AgenticMessage
    >>> get_codec("anthropic").encode_messages([AgenticMessage.user("hi")]).payload
    [{'role': 'user', 'content': [{'type': 'text', 'text': 'hi'}]}]
    """

    name: ClassVar[str]
    """The wire of the messages that it writes."""
    messages_field: ClassVar[str] = "messages"
    """The field of a request's body that holds the list of messages."""
    folder: ClassVar[type[StreamReader]]
    """The class that reads the streams of this provider."""
    writer: ClassVar[Any]
    """The `BlockWriter` that writes the blocks of messages."""
    request_form: ClassVar[Any]
    """The `RequestForm` of this provider, for everything in a request but the messages."""
    system_field: ClassVar[str] = ""
    """The field of a request's body that holds the system instruction, if that is outside the list of messages."""
    has_bytes: ClassVar[bool] = False
    """Whether the SDK uses bytes where JSON has base64."""

    def __init__(self, *, field: str = "", store: bool = True, without: frozenset[str] = frozenset()) -> None:
        self.field = field
        """The text field that the profile demands on a message with calls (`Profile.field`)."""
        self.without = without
        """The fields of a thought that the server refuses (Chat Completions)."""
        self.store = store
        """Whether the provider stores its answers, and so knows its own items by their ids (Responses)."""

    def encode_messages(self, messages: Iterable[AgenticMessage]) -> Encoded:
        """Return `messages` as this provider's list; a system message that has no place there is reported."""
        losses = Losses()
        return Encoded(self._write_from(0, list(messages), losses), losses.found())

    def decode_messages(self, items: Sequence[Any]) -> list[AgenticMessage]:
        """Return this provider's `items` (dicts or its SDK's objects) as messages."""
        check_list(items)
        plain: list[Any] = []
        for index, item in enumerate(items):
            with located(index=index):
                plain.append(self.plain(item))
        return self.read_messages(plain)

    def encode_request(self, request: Request) -> Encoded:
        """Return the body of a request, without the model's name."""
        losses = Losses()
        messages = self._write_from(self.leading_system(request.messages), request.messages, losses)
        listed = [*self.write_head(request.instruction), *messages]
        return Encoded({**self.write_settings(request, losses), self.messages_field: listed}, losses.found())

    def _write_from(self, start: int, messages: Sequence[AgenticMessage], losses: Losses) -> list[dict[str, Any]]:
        made: list[dict[str, Any]] = []
        for losses.index in range(start, len(messages)):
            made += self.write_message(messages[losses.index], losses)
        losses.index = None
        return made

    @abstractmethod
    def write_message(self, message: AgenticMessage, losses: Losses) -> list[dict[str, Any]]:
        """Return `message` as messages of this provider (none, one or several), whatever messages are around it.

        Nothing is arranged: order, joining, and names and fillers that depend on others are left to `suture.repair`.
        """

    def write_settings(self, request: Request, losses: Losses) -> dict[str, Any]:
        """Return the body of a request without its messages: instruction, tools and options."""
        said = self.write_system(request, losses) if self.system_field else None
        return self.request_form.write(request, losses, {self.system_field: said} if said else {})

    def write_system(self, request: Request, losses: Losses) -> Any:
        """Return the content of `system_field`: the instruction, then the leading system messages."""
        head = AgenticMessage.system(request.instruction) if request.instruction else AgenticMessage("system")
        outside = request.messages[: self.leading_system(request.messages)]
        said = self.writer(losses).write_system(head)
        for losses.index, message in enumerate(outside):
            report_meta(message, losses)
            writer = self.writer(losses)
            writer.report_extras(message.extra, "extra")
            said += writer.write_system(message)
        losses.index = None
        return said

    def plain(self, thing: Any) -> Any:
        """Return dicts or the SDK's objects as plain dicts and lists."""
        return plain(as_json(thing) if self.has_bytes else thing)

    def read_messages(self, items: Sequence[Any]) -> list[AgenticMessage]:
        """Return `items`, which are plain dicts, as messages; results learn from the calls before them."""
        messages: list[AgenticMessage] = []
        for index, item in enumerate(items):
            with located(index=index):
                messages.append(self.read_message(item))
        return self.link(messages)

    def link(self, messages: Iterable[AgenticMessage]) -> list[AgenticMessage]:
        """Return `messages` with results that have learned from their calls.

        Only the latest turn with a call of the result's id counts. If several calls there share the id, results belong
        to them in order, and any further result to the last of them.
        """
        made: list[AgenticMessage] = []
        calls: dict[str, tuple[int, deque[FunctionToolCall]]] = {}
        turn, last = 0, ""
        for message in messages:
            turn += message.role == "assistant" != last
            last = last if message.role == "system" else message.role
            blocks = list(message.content_blocks)
            for place, block in enumerate(blocks):
                if isinstance(block, FunctionToolCall):
                    before, waiting = calls.get(block.call_id, (0, deque[FunctionToolCall]()))
                    calls[block.call_id] = turn, waiting if before == turn else deque[FunctionToolCall]()
                    calls[block.call_id][1].append(block)
                elif isinstance(block, FunctionToolResult) and block.call_id in calls:
                    _, waiting = calls[block.call_id]
                    blocks[place] = self.learn(block, waiting.popleft() if len(waiting) > 1 else waiting[0])
            same = all(map(is_, blocks, message.content_blocks))
            made.append(message if same else replace(message, content_blocks=tuple(blocks)))
        return made

    def learn(self, result: FunctionToolResult, call: FunctionToolCall) -> FunctionToolResult:
        """Return `result` with what only its call says."""
        return replace(result, name=call.name)

    def read_message(self, item: Any) -> AgenticMessage:
        """Return one of this provider's messages as a native one."""
        raise NotImplementedError

    def is_outside(self, message: AgenticMessage) -> bool:
        """Return whether `message` is a system message that `write_settings` puts outside the list."""
        return False

    def leading_system(self, messages: Sequence[AgenticMessage]) -> int:
        """Return how many of the first messages are written outside the list."""
        inside = (place for place, message in enumerate(messages) if not self.is_outside(message))
        return next(inside, len(messages))

    def write_head(self, instruction: str) -> list[dict[str, Any]]:
        """Return the instruction as the head of the list of messages, if this provider has it there."""
        return []

    def decode_request(self, payload: Mapping[str, Any]) -> Request:
        """Return the body of a request as native values."""
        return self.read_request(self.plain(dict(payload)))

    def read_request(self, body: Mapping[str, Any]) -> Request:
        """Return the body of a request, which is plain dicts, as native values."""
        items: Any = body.get(self.messages_field)
        check_list(items)
        instruction, system = self.read_system(body)
        tools, options = self.request_form.read(body, self.messages_field, self.system_field)
        return Request([*system, *self.read_messages(items)], instruction, tools, options)

    def read_system(self, body: Mapping[str, Any]) -> tuple[str, list[AgenticMessage]]:
        """Return the system instruction outside the list: as a plain text if it is just that, else as messages."""
        del body
        return "", []

    def decode_reply(self, payload: Mapping[str, Any]) -> AgenticMessage:
        """Return the message in a response, the first if there are several; raise the error that a response reports."""
        with sensible(self.name):
            message = self.read_reply(self.plain(payload))
            check_calls(message, self.name)
            return message

    def reader(self) -> StreamReader:
        """Return a reader for one streamed reply."""
        return self.folder(self)

    @abstractmethod
    def read_reply(self, body: Mapping[str, Any]) -> AgenticMessage:
        """Return the message in the body of a response, which is plain dicts."""

    def framing(self) -> Framing:
        """Return the object that splits the bytes of a stream into events; most providers send server-sent events."""
        return Framing(self.name)


def get_codec(name: str, *, field: str = "", store: bool = True, without: frozenset[str] = frozenset()) -> Codec:
    """Return the codec of the wire `name`.

    `field` is the text field that a profile demands (`Profile.field`), `without` are the fields of a thought that the
    server refuses (Chat Completions). Without `store`, items are written without the
    ids that only a provider that stores its answers knows (Responses).

    >>> get_codec("gemini").name
    'gemini'
    """
    if name not in _CLASSES:
        raise ConfigError(f"no codec for {name!r}; there are: {', '.join(CODECS)}")
    module = import_module(f"suture.providers.{name.replace('-', '_')}.codec")
    return getattr(module, _CLASSES[name])(field=field, store=store, without=without)
