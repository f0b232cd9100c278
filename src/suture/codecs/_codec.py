"""What a codec is: one provider's requests, replies and streams, from and into native values. No I/O."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from suture.codecs._sse import ServerSentEvents, write_event
from suture.codecs._values import Encoded, Losses, Request
from suture.messages import AgenticMessage, Delta
from suture.wires import check_list, plain

__all__ = ["Codec", "Framing", "StreamReader"]


class StreamReader(Protocol):
    """Reads one streamed reply, event by event.

    >>> from suture.codecs import get_codec
    >>> reader = get_codec("anthropic").reader()
    >>> reader.feed({"type": "ping"})
    []
    """

    def feed(self, event: Mapping[str, Any]) -> list[Delta]:
        """Return what `event` adds; raise `ModelError` where the provider reports one."""
        ...

    def finish(self) -> AgenticMessage:
        """Return the whole message; raise `StreamCutError` where the stream ended before its end was said."""
        ...


class Framing(Protocol):
    r"""Takes the bytes of a stream apart into events, whatever pieces the bytes come in.

    >>> from suture.codecs import get_codec
    >>> framing = get_codec("anthropic").framing()
    >>> framing.feed(b'data: {"type": "pi'), framing.feed(b'ng"}\n\n')
    ([], [{'type': 'ping'}])
    """

    def feed(self, chunk: bytes) -> list[dict[str, Any]]:
        """Return the events that are whole by now; raise `ModelError` for what is no event."""
        ...


class Codec(ABC):
    """`AgenticMessage` from and into one provider's payload.

    What is read and written again is the same, up to the differences that the codec's docstring declares. What a
    format cannot hold is reported as a `Loss`, never dropped in silence.

    >>> from suture.codecs import get_codec
    >>> from suture.messages import AgenticMessage
    >>> get_codec("anthropic").encode_messages([AgenticMessage.user("hi")]).payload
    [{'role': 'user', 'content': [{'type': 'text', 'text': 'hi'}]}]
    """

    name: ClassVar[str]
    """The wire whose messages it writes."""

    messages_field: ClassVar[str] = "messages"
    """Where the body of a request has the list of messages."""

    def __init__(self, field: str = "") -> None:
        self.field = field
        """The text field that the profile demands on a message with calls (`Profile.field`)."""

    def encode_messages(self, messages: Iterable[AgenticMessage]) -> Encoded:
        """Return `messages` as this provider's list; a system message has a place in it or is reported lost."""
        losses = Losses()
        return Encoded(self.write_messages(list(messages), losses), losses.found())

    def decode_messages(self, items: Sequence[Any]) -> list[AgenticMessage]:
        """Return the messages that this provider's `items` (dicts or its SDK's objects) say."""
        check_list(items)
        return self.read_messages([plain(item) for item in items])

    def encode_request(self, request: Request) -> Encoded:
        """Return the body of a request, without the model's name."""
        losses = Losses()
        return Encoded(self.write_request(request, losses), losses.found())

    def encode_reply(self, message: AgenticMessage) -> Encoded:
        """Return the body of a response that says `message`, the reply of a model."""
        losses = Losses()
        return Encoded(self.write_reply(message, losses), losses.found())

    def encode_stream(self, message: AgenticMessage) -> Encoded:
        """Return the events of a stream that says `message`."""
        losses = Losses()
        return Encoded(self.write_stream(message, losses), losses.found())

    def write_messages(self, messages: Sequence[AgenticMessage], losses: Losses) -> list[dict[str, Any]]:
        """Return `messages` as this provider's list: what is made of each, one after the other."""
        made: list[dict[str, Any]] = []
        for losses.index, message in enumerate(messages):
            made += self.write_message(message, losses)
        losses.index = None
        return made

    def write_message(self, message: AgenticMessage, losses: Losses) -> list[dict[str, Any]]:
        """Return what `message` is for this provider, whatever stands beside it: none, one or several of its own.

        Nothing is arranged: order, joining, names and fillers that depend on others are fit's (`suture.repair`).
        """
        raise NotImplementedError

    def write_settings(self, request: Request, losses: Losses) -> dict[str, Any]:
        """Return the body of a request without its messages: instruction, tools and options."""
        raise NotImplementedError

    @abstractmethod
    def read_messages(self, items: Sequence[Mapping[str, Any]]) -> list[AgenticMessage]:
        """Return what `items`, plain dicts, say."""

    def write_request(self, request: Request, losses: Losses) -> dict[str, Any]:
        """Return the body of a request."""
        return {
            self.messages_field: self.write_messages(request.messages, losses),
            **self.write_settings(request, losses),
        }

    @abstractmethod
    def decode_request(self, payload: Mapping[str, Any]) -> Request:
        """Return what the body of a request says."""

    @abstractmethod
    def write_reply(self, message: AgenticMessage, losses: Losses) -> dict[str, Any]:
        """Return the body of a response that says `message`."""

    @abstractmethod
    def decode_reply(self, payload: Mapping[str, Any]) -> AgenticMessage:
        """Return what the body of a response says; raise `ModelError` where it reports one."""

    @abstractmethod
    def write_stream(self, message: AgenticMessage, losses: Losses) -> list[dict[str, Any]]:
        """Return the events of a stream that says `message`."""

    @abstractmethod
    def reader(self) -> StreamReader:
        """Return what reads one streamed reply."""

    def framing(self) -> Framing:
        """Return what takes the bytes of a stream apart into events; most providers send server-sent ones."""
        return ServerSentEvents(self.name)

    def frame(self, event: Mapping[str, Any]) -> bytes:
        """Return one event as the bytes of a stream."""
        return write_event(event)
