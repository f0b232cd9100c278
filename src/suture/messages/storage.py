"""Stores messages as JSON or MessagePack, in the same envelope and without loss.

``{"schema": 1, "messages": [{"kind": "message", ...}, {"kind": "agentic", ...}]}``

What could not be read back unchanged is refused when it is written, and whatever was read can be written again. Field
names are part of the format: to change what a stored field means, raise `SCHEMA_VERSION`.

A piece of unknown type is stored as it is. In memory it is an `Opaque`, to which msgspec gives a tag; so the plain data
of a message that holds one are rewritten, before msgspec reads them and after it has written them.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, NoReturn, TypeAlias, cast, get_args

import msgspec
from msgspec import DecodeError, Raw, Struct, ValidationError

from suture.errors import InputError, SchemaVersionError
from suture.messages.blocks import OPAQUE, ContentBlock, FunctionToolResult, Opaque, Part, UserInputBlock
from suture.messages.message import AgenticMessage, AnyMessage, Message
from suture.messages.values import JSON_INTEGERS, check_plain

SCHEMA_VERSION = 1
"""The version of the stored format that this release writes and reads."""

_Bytes: TypeAlias = bytes | bytearray | memoryview
_KINDS: dict[str, type[AnyMessage]] = {"message": Message, "agentic": AgenticMessage}
_ERROR = r"(?s)(?P<reason>.*) - at `(?:key in )?\$\.?(?P<path>.*)`"
_UNREADABLE = (DecodeError, UnicodeError, RecursionError)


class _Envelope(Struct):
    """The stored envelope; its messages stay raw until the version was checked."""

    schema: int
    messages: Raw = Raw()


class _Format:
    """One encoding: its reader and writer, and the range of its integers."""

    def __init__(self, module: Any, integers: tuple[int, int]) -> None:
        self.encode: Callable[[Any], bytes] = module.Encoder().encode
        self.open: Callable[[Any], _Envelope | list[Raw]] = module.Decoder(_Envelope | list[Raw]).decode
        self.split: Callable[[Any], list[Raw]] = module.Decoder(list[Raw]).decode
        self.read_plain: Callable[[Any], Any] = module.Decoder().decode
        self.integers, self._module = integers, module

    @cached_property
    def read(self) -> Callable[[Any], AnyMessage]:
        """The decoder of one message, which is made on first use because it must know all classes of messages."""
        return self._module.Decoder(AnyMessage).decode


_JSON = _Format(msgspec.json, JSON_INTEGERS)
_MSGPACK = _Format(msgspec.msgpack, (-(2**63), 2**64 - 1))


def to_json(messages: Iterable[AnyMessage]) -> bytes:
    """Return `messages`, which may be of both types, as JSON.

    Raises `InputError` for what JSON cannot restore: NaN, a lone surrogate, a key that is not a string, an object
    in `extra`, a cycle, more than 200 levels. A tuple in `extra` is written as an array, and comes back as a list.

    >>> from suture.messages import Message, from_json, to_json
    >>> to_json([Message.user("hi")])
    b'{"schema":1,"messages":[{"kind":"message","role":"user","content":"hi"}]}'
    >>> from_json(to_json([Message.user("hi")]))
    [Message(role='user', content='hi')]
    """
    return _write(_JSON, messages)


def from_json(data: _Bytes | str) -> list[AnyMessage]:
    """Return the messages in `data`, which is the output of `to_json` or a bare array of messages.

    A message without `kind` is an `AgenticMessage` if it has `content_blocks`, else a `Message`. Raises
    `SchemaVersionError` for another version's envelope, `InputError` for anything malformed.

    >>> from_json('[{"role": "user", "content": "hi"}]')
    [Message(role='user', content='hi')]
    """
    return _read(_JSON, data)


def to_msgpack(messages: Iterable[AnyMessage]) -> bytes:
    """Return `messages` as MessagePack; like `to_json`, but integers must fit into 64 bits.

    >>> from suture.messages import Message, from_msgpack, to_msgpack
    >>> from_msgpack(to_msgpack([Message.user("hi")]))
    [Message(role='user', content='hi')]
    """
    return _write(_MSGPACK, messages)


def from_msgpack(data: _Bytes) -> list[AnyMessage]:
    """Return the messages in `data`, which is the output of `to_msgpack` or a bare array; like `from_json`."""
    return _read(_MSGPACK, data)


def message_to_dict(message: AnyMessage, *, index: int | None = None) -> dict[str, Any]:
    """Return `message` as its JSON form in plain dicts and lists, without fields that have their default.

    >>> from suture.messages import Message, message_to_dict
    >>> message_to_dict(Message.user("hi"))
    {'kind': 'message', 'role': 'user', 'content': 'hi'}
    """
    return _JSON.read_plain(_JSON.encode(_prepare(_JSON, message, index)))


def message_from_dict(mapping: Mapping[str, Any], *, index: int | None = None) -> AnyMessage:
    """Return the message in `mapping`; raise `InputError` that says what is wrong and where.

    Without `kind` it is an `AgenticMessage` if it has `content_blocks`, else a `Message`. `index` is only for
    the error.

    >>> message_from_dict({"role": "user", "content": "hi"})
    Message(role='user', content='hi')
    """
    if not isinstance(mapping, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"a message is an object, not {type(mapping).__name__}", index=index)
    kind = mapping.get("kind", "agentic" if "content_blocks" in mapping else "message")
    if not isinstance(kind, str) or kind not in _KINDS:
        found = repr(kind[:40]) if isinstance(kind, str) else type(kind).__name__
        raise InputError(f"a message is a 'message' or 'agentic', not {found}", index=index, path="kind")
    try:
        message = msgspec.convert(_wrap_unknown(mapping), _KINDS[kind])
    except ValidationError as error:
        _reraise(error, index)
    check_plain(message, index=index)
    return message


def _write(form: _Format, messages: Iterable[AnyMessage]) -> bytes:
    if isinstance(messages, Message | AgenticMessage):
        raise InputError(f"expected a list of messages, found one {type(messages).__name__}")
    stored = [_prepare(form, message, index) for index, message in enumerate(messages)]
    return form.encode({"schema": SCHEMA_VERSION, "messages": stored})


def _prepare(form: _Format, message: AnyMessage, index: int | None) -> AnyMessage | dict[str, Any]:
    if not isinstance(message, Message | AgenticMessage):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"expected a Message or AgenticMessage, found {type(message).__name__}", index=index)
    check_plain(message, index=index, integers=form.integers)
    return _unwrap_unknown(message, index) if _holds_opaque(message) else message


def _read(form: _Format, data: _Bytes | str) -> list[AnyMessage]:
    try:
        opened = form.open(data)
        raws = opened if isinstance(opened, list) else form.split(_messages_of(opened))
    except _UNREADABLE as error:
        _reraise(error, None)
    return [_read_one(form, raw, index) for index, raw in enumerate(raws)]


def _messages_of(envelope: _Envelope) -> Raw:
    if envelope.schema != SCHEMA_VERSION:
        raise SchemaVersionError(
            f"these have schema version {envelope.schema}; this release reads version {SCHEMA_VERSION}", path="schema"
        )
    if not bytes(envelope.messages):
        raise InputError("the envelope holds no messages", path="messages")
    return envelope.messages


def _read_one(form: _Format, raw: Raw, index: int) -> AnyMessage:
    try:
        try:
            message = form.read(raw)
        except ValidationError:
            # It has no kind, has a piece of unknown type, or is wrong: the slow way finds out which.
            return message_from_dict(form.read_plain(raw), index=index)
    except _UNREADABLE as error:
        _reraise(error, index)
    check_plain(message, index=index)
    return message


def _reraise(error: Exception, index: int | None) -> NoReturn:
    if isinstance(error, RecursionError):
        raise InputError("nested too deeply", index=index) from error
    found = re.fullmatch(_ERROR, str(error))
    reason, path = (found["reason"], found["path"]) if found else (str(error), "")
    raise InputError(reason, index=index, path=path) from error


# Pieces of unknown type

# Takes a piece, the tags that are known at its place, and its path.
_Change: TypeAlias = Callable[[Any, frozenset[str], str], Any]


def _tags(union: Any) -> frozenset[str]:
    return frozenset(member.__struct_config__.tag for member in get_args(union))


_KNOWN = {
    "content_blocks": _tags(ContentBlock),
    "user_input_multi_content": _tags(Part),
    "assistant_gen_multi_content": _tags(Part),
}
_KNOWN_IN_RESULT = {"content": _tags(UserInputBlock)}
_RESULT: Any = FunctionToolResult.__struct_config__.tag


def _holds_opaque(message: AnyMessage) -> bool:
    if isinstance(message, AgenticMessage):
        return any(
            Opaque in map(type, block.content) if type(block) is FunctionToolResult else type(block) is Opaque
            for block in message.content_blocks
        )
    return Opaque in map(type, (*message.user_input_multi_content, *message.assistant_gen_multi_content))


def _wrap_unknown(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored message with each piece of unknown type wrapped as an `Opaque`."""

    def change(piece: Any, known: frozenset[str], path: str) -> Any:
        del path
        kind = piece.get("type")
        return {"type": OPAQUE, "data": piece} if isinstance(kind, str) and kind not in known else piece

    return _rewrite(mapping, _KNOWN, change)


def _unwrap_unknown(message: AnyMessage, index: int | None) -> dict[str, Any]:
    """Return `message` as plain data, with each `Opaque` replaced by its data."""

    def change(piece: Any, known: frozenset[str], path: str) -> Any:
        if piece["type"] != OPAQUE:
            return piece
        kind = piece["data"]["type"]
        if kind in known:
            reason = f"an Opaque of the known type {kind!r} would be read back as that; make one of those instead"
            raise InputError(reason, index=index, path=path)
        return piece["data"]

    return _rewrite(msgspec.to_builtins(message), _KNOWN, change)


def _rewrite(
    stored: Mapping[str, Any], fields: Mapping[str, frozenset[str]], change: _Change, path: str = ""
) -> dict[str, Any]:
    """Return `stored` with `change` applied to each piece in `fields`, and first to the content of tool results."""
    rewritten = dict(stored)
    for field, known in fields.items():
        pieces = stored.get(field)
        if isinstance(pieces, list | tuple):
            rewritten[field] = new = list[Any](cast("list[Any]", pieces))
            for place, piece in enumerate(new):
                if isinstance(piece, Mapping):
                    held, at = cast("Mapping[str, Any]", piece), f"{path}{field}[{place}]"
                    if _RESULT in known and held.get("type") == _RESULT:
                        held = _rewrite(held, _KNOWN_IN_RESULT, change, f"{at}.")
                    new[place] = change(held, known, at)
    return rewritten
