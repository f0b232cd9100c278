"""Conversion of messages from one wire to another: everything goes through `AgenticMessage`."""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from suture.codecs.codec import CODECS, get_codec
from suture.codecs.guests import read_guests
from suture.codecs.losses import Loss, Losses
from suture.codecs.native import from_agentic, to_agentic
from suture.errors import ConfigError
from suture.messages import AgenticMessage
from suture.wires import GUEST_WIRES, WIRES, check_list, get_wire
from suture.wires.native import NativeWire


class Converted(NamedTuple):
    """Messages of another wire, and what was lost.

    >>> Converted([], ()).losses
    ()
    """

    messages: list[Any]
    losses: tuple[Loss, ...] = ()


def convert(messages: Sequence[Any], source: str, target: str) -> Converted:
    """Return `messages` of the wire `source` as messages of the wire `target`.

    Nothing is repaired: a call without a result stays like that.

    >>> from suture.messages import Message
    >>> convert([Message.user("hi")], "message", "anthropic").messages
    [{'role': 'user', 'content': [{'type': 'text', 'text': 'hi'}]}]
    """
    losses = Losses()
    made = encode(decode(messages, source, losses), target)
    return Converted(made.messages, (*losses.found(), *made.losses))


def decode(messages: Sequence[Any], wire: str, losses: Losses | None = None) -> list[AgenticMessage]:
    """Return messages of any wire as `AgenticMessage`s; what messages of other frameworks lose goes into `losses`.

    >>> decode([{"role": "user", "content": "hi"}], "openai-chat")[0].role
    'user'
    """
    _check(wire, (*WIRES, *GUEST_WIRES))
    check_list(messages)
    if wire in CODECS:
        its_wire = get_wire(wire)
        for index, message in enumerate(messages):
            its_wire.view(message, index)  # it refuses what is another wire's, which would be no call or result here
        return get_codec(wire).decode_messages(messages)
    if wire in GUEST_WIRES:
        return read_guests(get_wire(wire), messages, losses or Losses())
    for index, message in enumerate(messages):
        cast("NativeWire", get_wire(wire)).check(message, index)
    return list(messages) if wire == "agentic" else list(map(to_agentic, messages))


def encode(messages: Sequence[AgenticMessage], wire: str) -> Converted:
    """Return `messages` as messages of the wire `wire`.

    >>> encode([AgenticMessage.user("hi")], "message").messages
    [Message(role='user', content='hi')]
    """
    _check(wire, WIRES)
    if wire == "agentic":
        return Converted(list(messages))
    if wire == "message":
        return Converted([made for message in messages for made in from_agentic(message)])
    return Converted(*get_codec(wire).encode_messages(messages))


def _check(wire: str, known: Sequence[str]) -> None:
    if wire not in known:
        raise ConfigError(f"unknown wire {wire!r}; known: {', '.join(known)}")
