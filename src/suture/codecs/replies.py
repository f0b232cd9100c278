"""What all codecs need to read replies: token usage, folding streams, server-sent events."""

from abc import ABC, abstractmethod
from binascii import a2b_base64, b2a_base64
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from json import JSONDecoder
from typing import Any, cast

import msgspec

from suture import errors
from suture.messages import AgenticMessage, Delta, FunctionToolCall, LogProb, Reasoning, ResponseMeta, TokenUsage
from suture.wires.fields import expect, is_map, parse_json, without_lone_escapes

_DECODE = JSONDecoder(strict=False).raw_decode
_ANNOUNCED = ("tool_calls", "function_call")


def check_calls(message: AgenticMessage, provider: str) -> None:
    """Raise `ModelReplyError` if a reply ends with the words that a call comes, and there is none, and no text."""
    meta = message.response_meta
    if meta is None or meta.finish_reason not in _ANNOUNCED:
        return
    blocks = message.content_blocks
    if blocks and isinstance(blocks[-1], FunctionToolCall):
        return
    if all(isinstance(block, Reasoning) or getattr(block, "text", None) == "" for block in blocks):
        raise errors.ModelReplyError(
            f"the reply ends with {meta.finish_reason!r}, and there is no call in it", provider=provider
        )


@contextmanager
def sensible(provider: str) -> Generator[None]:
    """Turn an `InputError` about a reply into a `ModelError` that can be retried.

    >>> from suture.errors import InputError
    >>> with sensible("gemini"):
    ...     raise InputError("expected a list, found str", path="parts")
    Traceback (most recent call last):
        ...
    suture.errors.ModelError: gemini: the reply makes no sense: parts: expected a list, found str
    """
    try:
        yield
    except errors.InputError as error:
        raise _nonsense(error, provider) from None


def _nonsense(error: errors.InputError, provider: str) -> errors.ModelError:
    return errors.ModelError(f"the reply makes no sense: {error}", provider=provider, retryable=True)


# Metadata of a reply


def read_usage(usage: Any, counts: Mapping[str, str]) -> TokenUsage:
    """Return token usage: each count is a sum of fields; of alternatives with a `|`, the first that is not zero counts.

    >>> read_usage({"in": 3, "cached": 4, "out": 5}, {"prompt_tokens": "in cached", "completion_tokens": "out|said"})
    TokenUsage(prompt_tokens=7, completion_tokens=5, total_tokens=12)
    """
    expect(usage, Mapping, "an object", "usage")
    found = {name: sum([_count(usage, field) for field in fields.split()]) for name, fields in counts.items()}
    found["total_tokens"] = found.get("total_tokens") or found["prompt_tokens"] + found["completion_tokens"]
    return TokenUsage(**found)


def _count(usage: Mapping[str, Any], fields: str) -> int:
    for path in fields.split("|"):
        value: Any = usage
        for name in path.split("."):
            value = value.get(name) if is_map(value) else None
        if type(value) is int and value > 0:
            return value
    return 0


def make_meta(
    facts: Mapping[str, Any],
    word: str,
    reasons: Mapping[str, str],
    usage: TokenUsage | None,
    logprobs: tuple[LogProb, ...] | None = None,
) -> ResponseMeta:
    """Return the metadata of a reply; its finish reason is the shared word, and its own word is kept if it differs."""
    reason = reasons.get(word, word)
    extension = {name: value for name, value in facts.items() if value}
    extension |= {"finish_reason": word} if reason != word else {}
    return ResponseMeta(finish_reason=reason, usage=usage, logprobs=logprobs, extension=extension)


def read_logprobs(found: Any) -> tuple[LogProb, ...] | None:
    """Return log probabilities from OpenAI's form; `None` if they have another form."""
    try:
        return msgspec.convert(found, tuple[LogProb, ...])
    except msgspec.ValidationError:
        return None


class StreamReader(ABC):
    """Reads one streamed reply: folds its events into the body of a plain response, which the codec reads.

    >>> from suture.codecs import get_codec
    >>> get_codec("anthropic").reader().feed({"type": "ping"})
    []
    """

    def __init__(self, codec: Any) -> None:
        self._codec = codec

    def feed(self, event: Mapping[str, Any]) -> list[Delta]:
        """Return the deltas of `event`; raise `ModelError` if it reports an error or makes no sense."""
        try:  # a context manager would cost as much as reading the event
            return list(self.add(event))
        except errors.InputError as error:
            raise _nonsense(error, self._codec.name) from None

    def finish(self) -> AgenticMessage:
        """Return the whole message; raise `StreamCutError` if its end did not come."""
        with sensible(self._codec.name):
            body = self.fold()
            if body is None:
                raise errors.StreamCutError(f"{self._codec.name}: the stream ended before the reply did; ask again")
            message = self._codec.read_reply(body)
            check_calls(message, self._codec.name)
            return message

    @abstractmethod
    def add(self, event: Mapping[str, Any]) -> Iterable[Delta]:
        """Take one event, and yield its deltas."""

    @abstractmethod
    def fold(self) -> Mapping[str, Any] | None:
        """Return the body that the events make; `None` if its end did not come."""


class OpenBlock:
    """A block in a stream: how it began, and the pieces that have come for each field."""

    __slots__ = ("call_index", "head", "is_open", "kind", "pieces")

    def __init__(self, kind: str, head: Mapping[str, Any], call_index: int | None) -> None:
        self.kind, self.head, self.call_index = kind, dict(head), call_index
        self.is_open = True
        self.pieces: dict[Any, list[Any]] = {}

    def add(self, field: Any, piece: Any) -> None:
        """Add a piece of a field."""
        self.pieces.setdefault(field, []).append(piece)

    def text(self, field: Any) -> str:
        """Return the text of a field, joined from its pieces."""
        return "".join(self.pieces.get(field, ()))

    def arguments(self, field: Any) -> Any:
        """Return the arguments of a call as an object, or as text if they are no object (yet)."""
        text = self.text(field)
        value: Any = parse_json(text) if text.strip() not in {"", "null"} else {}
        if value is None and len(texts := objects_in(text)) == 1:
            return parse_json(texts[0])  # an empty object came first, or the whole again
        return value if value.__class__ is dict else text

    def show_call(self, **said: Any) -> list[Delta]:
        """Return a delta for a call of one of the program's tools; none for a call that the provider runs itself."""
        return [] if self.call_index is None else [Delta(call_index=self.call_index, **said)]


def objects_in(text: str) -> list[str]:
    """Return the different objects of which a text consists, without empty ones; none if it is anything else.

    >>> objects_in('{}{"x": 1}{"x": 1} {"x": "}{"}'), objects_in('{"x": 1')
    (['{"x": 1}', '{"x": "}{"}'], [])
    """
    found: list[str] = []
    place, values = 0, list[Any]()
    while place < len(text):
        if text[place].isspace():
            place += 1
            continue
        try:
            value, end = _DECODE(text, place)
        except (ValueError, RecursionError):
            return []
        if value.__class__ is not dict:
            return []
        if value and value not in values:
            values.append(value)
            found.append(text[place:end])
        place = end
    return found or ["{}"]


def join_base64(pieces: Sequence[str]) -> str:
    """Join base64 that came in pieces, of which each is complete base64.

    >>> join_base64(["QQ==", "Qg=="])
    'QUI='
    """
    if len(pieces) == 1:
        return pieces[0]
    try:
        return b2a_base64(b"".join([a2b_base64(piece) for piece in pieces]), newline=False).decode()
    except ValueError:
        raise errors.InputError("bytes that are no base64") from None


class BlockReader(StreamReader):
    """Reads a stream whose events have the index of their block."""

    def __init__(self, codec: Any) -> None:
        super().__init__(codec)
        self.blocks: dict[int, OpenBlock] = {}
        self._earlier: list[OpenBlock] = []
        """The blocks that had ended when the server began to count again, as some gateways do."""
        self._calls = 0

    def begin(self, index: int, kind: str, head: Mapping[str, Any], *, is_call: bool = False) -> OpenBlock:
        """Begin the block `index`, which may be a call of one of the program's tools."""
        if index in self.blocks:
            if self.blocks[index].is_open:
                raise errors.InputError(f"a second block {index}")
            self._earlier = [block for block in self.in_order() if not block.is_open]
            self.blocks = {place: block for place, block in self.blocks.items() if block.is_open}
        block = self.blocks[index] = OpenBlock(kind, head, self._calls if is_call else None)
        self._calls += is_call
        return block

    def place_of(self, event: Mapping[str, Any], field: str) -> int:
        """Return the index in a field, which must be there."""
        place = event.get(field)
        if type(place) is not int or place < 0:
            raise errors.InputError(f"expected a place, found {place!r}", path=field)
        return place

    def in_order(self) -> list[OpenBlock]:
        """Return the blocks in the order of the reply."""
        return [*self._earlier, *(self.blocks[index] for index in sorted(self.blocks))]


# Server-sent events

MAX_EVENT = 64 * 1024 * 1024
"""The most bytes of one event; it may hold an image."""
_DONE = b"[DONE]"
DONE: dict[str, Any] = {"type": "[DONE]"}
"""The event that stands for the mark `[DONE]`."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""The byte order mark with which some servers begin a stream."""


class Framing:
    r"""Splits a stream into server-sent events, whatever pieces its bytes come in.

    Comments, and fields other than `data`, are ignored.

    >>> events = Framing("openai-chat")
    >>> events.feed(b': ping\n\ndata: {"a"'), events.feed(b': 1}\r\n\r\n')
    ([], [{'a': 1}])
    >>> events.feed(b'data: [DONE]') + events.finish()
    [{'type': '[DONE]'}]
    """

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._rest: list[bytes] = []
        self._data: list[bytes] = []
        self._line_size = self._event_size = 0
        """The size of the incomplete line, and of the lines in the incomplete event, each with one byte for its end."""
        self._has_begun = self._ends_in_cr = False

    def feed(self, chunk: bytes) -> list[dict[str, Any]]:
        """Return the events that `chunk` completes."""
        if self._ends_in_cr and chunk:  # a line may end in \r\n, of which the \n comes now
            self._ends_in_cr, chunk = False, chunk.removeprefix(b"\n")
        if self._line_size + self._event_size + len(chunk) > MAX_EVENT:
            raise errors.ModelError(
                f"{self._provider} sent an event of more than {MAX_EVENT} bytes", provider=self._provider
            )
        if b"\n" not in chunk and b"\r" not in chunk:
            self._rest += [chunk] if chunk else []
            self._line_size += len(chunk)
            return []
        lines = b"".join([*self._rest, chunk]).splitlines(keepends=True)
        self._ends_in_cr = chunk.endswith(b"\r")
        self._rest = [] if lines[-1].endswith((b"\n", b"\r")) else [lines.pop()]
        self._line_size = sum(map(len, self._rest))
        return self._take(lines)

    def finish(self) -> list[dict[str, Any]]:
        """Return the last event if it is whole, although the blank line behind it did not come."""
        try:
            return self.feed(b"\n\n")
        except errors.ModelError:
            return []

    def _take(self, lines: list[bytes]) -> list[dict[str, Any]]:
        if not self._has_begun:
            self._has_begun, lines[0] = True, lines[0].removeprefix(_BYTE_ORDER_MARK)
        events: list[dict[str, Any]] = []
        for line in lines:
            said = line.rstrip(b"\r\n")
            if said.startswith(b"data:"):
                self._data.append(said[5:].removeprefix(b" "))
                self._event_size += len(self._data[-1]) + 1
            elif not said and self._data:
                data, self._data, self._event_size = b"\n".join(self._data), [], 0
                if data.strip() == _DONE:
                    events.append(DONE)
                    continue
                event: Any = parse_json(data)
                if event is None and b"\\u" in data:  # a character may be split between two events
                    event = parse_json(without_lone_escapes(data.decode(errors="replace")))
                if not isinstance(event, dict):
                    told = f"an event that is no JSON object came: {data[:80].decode(errors='replace')!r}"
                    raise errors.ModelError(told, provider=self._provider, retryable=True)
                events.append(cast("dict[str, Any]", event))
        return events
