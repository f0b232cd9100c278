"""Wires: how each message type is seen, changed and made. Nothing else in Suture knows a message's shape.

To add one: write a module beside these, list its instance in `_WIRES`, and give it a row in the tests'
table of wires. A wire for another framework's objects goes to the integrations, with a row in `_guests`.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from suture.errors import ConfigError, InputError, UnknownWireError
from suture.wires._arguments import argument_json
from suture.wires._block_wire import BlockWire
from suture.wires._chat import ChatWire
from suture.wires._contents import Form, text_block, typed_text
from suture.wires._guests import GUEST_WIRES, guest_of, load_guest
from suture.wires._item_wire import ItemWire
from suture.wires._mark import MARK
from suture.wires._parts import RawPart, plain
from suture.wires._wire import Call, CallEdit, Key, Piece, Record, Result, ResultEdit, View, Wire
from suture.wires._words import Words
from suture.wires.agentic import AgenticWire
from suture.wires.message import MessageWire

__all__ = [
    "GUEST_WIRES",
    "MARK",
    "WIRES",
    "BlockWire",
    "Call",
    "CallEdit",
    "ChatWire",
    "Form",
    "ItemWire",
    "Key",
    "Piece",
    "RawPart",
    "Record",
    "Result",
    "ResultEdit",
    "View",
    "Wire",
    "Words",
    "argument_json",
    "check_list",
    "get_chat_wire",
    "get_wire",
    "narrow",
    "plain",
    "recognise",
    "text_block",
    "typed_text",
]

_WIRES: dict[str, Wire] = {wire.name: wire for wire in (MessageWire(), AgenticWire())}

_PROVIDERS = ("openai-chat", "openai-responses", "anthropic", "gemini", "bedrock")
"""Wires that stand with their provider in `suture.providers`; each is loaded when it is asked for."""

_FOR_AGENTS = ("message", "agentic", "openai-chat")

WIRES = (*_WIRES, *_PROVIDERS)
"""The names of all wires but the guests'."""


_NO_MESSAGES: frozenset[Any] = frozenset((type(None), str, bytes, bool, int, float, list, tuple))


def get_wire(name: str) -> Wire:
    """Return the wire called `name`.

    >>> get_wire("anthropic").name
    'anthropic'
    """
    try:
        return _WIRES[name]
    except (KeyError, TypeError):
        if name not in _PROVIDERS and name not in GUEST_WIRES:
            raise ConfigError(f"unknown wire {name!r}; known: {', '.join([*WIRES, *GUEST_WIRES])}") from None
    if name in GUEST_WIRES:
        return _WIRES.setdefault(name, load_guest(name))
    return _WIRES.setdefault(name, import_module(f"suture.providers.{name.replace('-', '_')}.wire").WIRE)


def get_chat_wire(name: str) -> ChatWire:
    """Return the wire called `name`, one that an agent can run on.

    >>> get_chat_wire("message").name
    'message'
    """
    wire = get_wire(name) if name in _FOR_AGENTS else None
    if isinstance(wire, ChatWire):
        return wire
    raise ConfigError(f"an agent cannot run on the wire {name!r}; it can on: {', '.join(_FOR_AGENTS)}")


def recognise(messages: Sequence[Any]) -> tuple[str, ...]:
    """Return the names of the wires that these messages may be of: one where the evidence is certain.

    Plain text messages look alike on several wires, and often the answer is the same on all of them; it is
    for the caller to compare what they would give.

    >>> recognise([{"role": "tool", "tool_call_id": "a", "content": "42"}])
    ('openai-chat',)
    >>> recognise([{"role": "user", "content": "hi"}])
    ('openai-chat', 'openai-responses', 'anthropic')
    """
    check_list(messages)
    guest = guest_of(messages)
    return (guest,) if guest else narrow(WIRES, messages)


def check_list(messages: Any) -> None:
    """Raise `InputError` where `messages` is no list of messages at all.

    >>> check_list([])
    """
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Sequence):
        hint = "; pass the list it holds" if isinstance(messages, Mapping) else ""
        raise InputError(f"expected a list of messages, found {type(messages).__name__}{hint}")  # pyright: ignore[reportUnknownArgumentType]


def narrow(names: Sequence[str], messages: Sequence[Any], start: int = 0) -> tuple[str, ...]:
    """Return those of the wires `names` that `messages[start:]` may be of.

    >>> narrow(("anthropic", "gemini"), [{"role": "user", "parts": [{"text": "hi"}]}])
    ('gemini',)
    """
    candidates: list[Wire] = [get_wire(name) for name in names]
    for index in range(start, len(messages)):
        message: Any = messages[index]
        if message.__class__ in _NO_MESSAGES:
            found = "null" if message is None else message.__class__.__name__
            raise InputError(f"expected a message, found {found}", index=index)
        if len(candidates) == 1:
            break
        verdicts: list[tuple[Wire, bool | None]] = [(wire, wire.claims(message)) for wire in candidates]
        remaining = [wire for wire, verdict in verdicts if verdict is not False]
        if not remaining:
            raise UnknownWireError(_misfit(message, candidates), index=index)
        certain = [wire for wire, verdict in verdicts if verdict]
        candidates = [wire for wire in certain if wire.native] or certain or remaining
    return tuple(wire.name for wire in candidates)


def _misfit(message: Any, candidates: Sequence[Wire]) -> str:
    """Say why no candidate takes `message`: in its own words where there is only one left to ask."""
    for wire in candidates:
        try:
            wire.view(message)
        except InputError as error:
            if len(candidates) == 1 or "role" in error.path:
                return error.reason
    names = ", ".join(wire.name for wire in candidates)
    return f"this is not a message of any wire that fits the ones before it ({names}); say which with wire="
