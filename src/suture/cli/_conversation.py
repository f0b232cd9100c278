"""One conversation as it stood in the file: taken apart for the engine, put together again for the output.

Three forms: an array of messages, an object that holds one (all its other fields are kept), and one message
a line. Suture's own messages are decoded before the engine sees them; one that comes back as it went in is
written as it stood, so that nothing about it changes.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Any, NamedTuple, cast

import msgspec

from suture.cli._decode import HOLDERS, held_in
from suture.cli._refusal import Refusal, kind_of
from suture.errors import ConfigError, InputError, SchemaVersionError
from suture.messages import SCHEMA_VERSION, message_from_dict, message_to_dict
from suture.wires import sendable

__all__ = ["Conversation", "Layout", "is_message", "open_conversation"]

_NATIVE = ("message", "agentic")
_SIGNS = ("role", "type", "kind", "parts")
_encode = msgspec.json.Encoder().encode


class Layout(Enum):
    """How a conversation is written."""

    PRETTY = "a document over several lines"
    COMPACT = "on one line"
    LINES = "one message a line"


class Conversation(NamedTuple):
    r"""A list of messages, what it stood in, and where.

    >>> conversation = open_conversation({"model": "x", "messages": [{"role": "user"}]}, line=1)
    >>> conversation.encode([{"role": "system"}])
    b'{"model":"x","messages":[{"role":"system"}]}\n'
    """

    stored: list[Any]
    """The messages as they stand in the file."""
    line: int
    """The line on which it begins."""
    holder: dict[str, Any] | None = None
    key: str = ""
    layout: Layout = Layout.COMPACT
    many: bool = False
    """Whether it is one of several in the file."""
    lines: Sequence[int] = ()
    """The line of each message, where each has its own."""
    file: str = ""

    def take(self, wire: str | None) -> tuple[list[Any], str | None]:
        """Return the messages as the engine takes them, and the wire that they say they are of."""
        wire = wire or next(filter(None, map(_native_kind, self.stored)), None)
        if wire not in _NATIVE:
            return self.stored, wire
        schema = (self.holder or {}).get("schema", SCHEMA_VERSION)
        if isinstance(schema, int) and schema != SCHEMA_VERSION:
            raise SchemaVersionError(
                f"these have schema version {schema}; this release reads version {SCHEMA_VERSION}",
                path="schema",
            )
        return [_from_plain(message, index) for index, message in enumerate(self.stored)], wire

    def give(self, taken: Sequence[Any], messages: Sequence[Any]) -> list[Any]:
        """Return `messages` as they are to stand in the file; those that were `taken` stand as they stood."""
        if taken is self.stored:
            return list(messages)
        stood = {id(message): stored for message, stored in zip(taken, self.stored, strict=True)}
        return [stood.get(id(message)) or message_to_dict(message) for message in messages]

    def encode(self, plain: list[Any]) -> bytes:
        """Return the bytes of this conversation with other messages, newline included."""
        if self.layout is Layout.LINES:
            return b"".join(encode_json(message) + b"\n" for message in plain)
        data = encode_json(plain if self.holder is None else {**self.holder, self.key: plain})
        if self.layout is Layout.PRETTY:
            data = msgspec.json.format(data, indent=2)
        return data + b"\n"

    def sendable(self) -> "Conversation":
        """Return it with each lone surrogate replaced by U+FFFD."""
        return self._replace(stored=sendable(self.stored), holder=sendable(self.holder))

    @property
    def title(self) -> str:
        """The line, where there are several conversations to tell apart."""
        return f"line {self.line}" if self.many else ""

    @contextmanager
    def located(self) -> Generator[None]:
        """Turn what the engine refuses inside the block into a `Refusal` that says where."""
        try:
            yield
        except InputError as error:
            raise self.refuse(error) from None
        except ConfigError as error:
            raise Refusal(_as_options(str(error)), self.file, self.title) from None
        except RecursionError:
            raise Refusal("nested too deeply", self.file, self.title) from None

    def refuse(self, error: InputError) -> Refusal:
        """Return `error` with the file and line that it speaks of."""
        line, message = self.title, ""
        if error.index is not None:
            message = f"message {error.index}"
            if error.index < len(self.lines):
                line = f"line {self.lines[error.index]}"
        return Refusal(_as_options(error.reason), self.file, line, message, error.path)


def encode_json(value: Any) -> bytes:
    r"""Return `value` as JSON; a lone surrogate, which no file can hold, becomes U+FFFD.

    >>> encode_json(["caf" + chr(0xD83D)]).decode()
    '["caf\ufffd"]'
    """
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return _encode(sendable(value))


def is_message(value: Any) -> bool:
    """Tell whether a line is one message, not a conversation.

    >>> is_message({"role": "user", "content": "hi"}), is_message({"messages": []}), is_message([])
    (True, False, False)
    """
    return isinstance(value, dict) and not held_in(value) and any(sign in value for sign in _SIGNS)


def open_conversation(value: Any, *, line: int, layout: Layout = Layout.COMPACT, many: bool = False) -> Conversation:
    """Return the conversation that a JSON value is; raise `Refusal` where it is none.

    >>> open_conversation([{"role": "user"}], line=1).stored
    [{'role': 'user'}]
    """
    if isinstance(value, list):
        return Conversation(cast("list[Any]", value), line, layout=layout, many=many)
    place = f"line {line}" if many else ""
    if not isinstance(value, dict):
        reason = f"expected a list of messages, or an object that holds one, found {kind_of(value)}"
        raise Refusal(reason, place)
    holder = cast("dict[str, Any]", value)
    key = held_in(holder)
    if key:
        return Conversation(holder[key], line, holder, key, layout, many)
    if is_message(holder):
        raise Refusal("expected a list of messages, found a single message", place)
    for name in HOLDERS:
        if name in holder:
            raise Refusal(f"expected a list of messages, found {kind_of(holder[name])}", place, name)
    raise Refusal("an object without messages, input or contents", place)


def _native_kind(message: Any) -> str | None:
    kind = cast("dict[str, Any]", message).get("kind") if isinstance(message, dict) else None
    return kind if kind in _NATIVE else None


def _from_plain(stored: Any, index: int) -> Any:
    if not isinstance(stored, dict):
        raise InputError(f"expected a message, found {kind_of(stored)}", index=index)
    return message_from_dict(sendable(cast("dict[str, Any]", stored)), index=index)


def _as_options(reason: str) -> str:
    """Say it with the name that the option has here."""
    return reason.replace("say which with wire=", "say which with --wire")
