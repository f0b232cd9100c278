"""Histories from one wire into another, through `AgenticMessage`."""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from suture.codecs._native import from_agentic, to_agentic
from suture.codecs._registry import get_codec
from suture.codecs._values import Loss
from suture.errors import ConfigError, InputError
from suture.messages import AgenticMessage, Message
from suture.wires import WIRES, check_list

__all__ = ["Converted", "convert", "decode", "encode"]


class Converted(NamedTuple):
    """Messages of another wire, and what they could not say.

    >>> Converted([], ()).losses
    ()
    """

    messages: list[Any]
    losses: tuple[Loss, ...] = ()


def convert(messages: Sequence[Any], source: str, target: str) -> Converted:
    """Return `messages` of the wire `source` as messages of the wire `target`.

    Nothing is repaired: a call without its result stays one.

    >>> from suture.messages import Message
    >>> convert([Message.user("hi")], "message", "anthropic").messages
    [{'role': 'user', 'content': [{'type': 'text', 'text': 'hi'}]}]
    """
    return encode(decode(messages, source), target)


def decode(messages: Sequence[Any], wire: str) -> list[AgenticMessage]:
    """Return messages of any wire as `AgenticMessage`s.

    >>> decode([{"role": "user", "content": "hi"}], "openai-chat")[0].role
    'user'
    """
    _check(wire)
    if wire not in _NATIVE:
        return get_codec(wire).decode_messages(messages)
    check_list(messages)
    kind = _NATIVE[wire]
    for index, message in enumerate(messages):
        if not isinstance(message, kind):
            raise InputError(f"expected {kind.__name__}, found {type(message).__name__}", index=index)
    if wire == "agentic":
        return list(messages)
    return [to_agentic(message) for message in cast("Sequence[Message]", messages)]


def encode(messages: Sequence[AgenticMessage], wire: str) -> Converted:
    """Return `messages` as those of the wire `wire`.

    >>> encode([AgenticMessage.user("hi")], "message").messages
    [Message(role='user', content='hi')]
    """
    _check(wire)
    if wire == "agentic":
        return Converted(list(messages))
    if wire == "message":
        return Converted([made for message in messages for made in from_agentic(message)])
    return Converted(*get_codec(wire).encode_messages(messages))


_NATIVE: dict[str, type] = {"message": Message, "agentic": AgenticMessage}


def _check(wire: str) -> None:
    if wire not in WIRES:
        raise ConfigError(f"unknown wire {wire!r}; known: {', '.join(WIRES)}")
