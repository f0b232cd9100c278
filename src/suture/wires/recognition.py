"""Lists the wires, and recognises the wire of a list of messages.

Wires for the message objects of other frameworks live with the integrations. A framework is recognised by the package
of its message classes; nothing of it is imported before such a message comes.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

from msgspec import Struct

from suture.errors import ConfigError, InputError, UnknownWireError
from suture.wires.native import AgenticWire, MessageWire
from suture.wires.wire import ChatWire, Wire


class _Guest(Struct, frozen=True):
    package: str
    """The package of its message classes."""
    module: str
    """The module that has its wire as `WIRE`."""


_GUESTS = {
    "langchain": _Guest("langchain_core", "suture.integrations.langchain.wire"),
    "pydantic-ai": _Guest("pydantic_ai", "suture.integrations.pydantic_ai"),
    "agent-framework": _Guest("agent_framework", "suture.integrations.agent_framework"),
}

GUEST_WIRES = tuple(_GUESTS)
"""The names of the wires for other frameworks' message objects."""

_WIRES: dict[str, Wire] = {wire.name: wire for wire in (MessageWire(), AgenticWire())}

_PROVIDERS = ("openai-chat", "openai-responses", "anthropic", "gemini", "bedrock")
"""The wires in `suture.providers`, each of which is loaded on first use."""

_CHAT_WIRES = ("message", "agentic", "openai-chat")

WIRES = (*_WIRES, *_PROVIDERS)
"""The names of all wires except those of guests."""


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
    guest = _GUESTS.get(name)
    try:
        module = import_module(guest.module if guest else f"suture.providers.{name.replace('-', '_')}.wire")
    except ModuleNotFoundError:
        if guest is not None:
            from suture._extras import check_extra  # noqa: PLC0415 - only for an error

            check_extra(name, guest.package)
        raise
    return _WIRES.setdefault(name, module.WIRE)


def get_chat_wire(name: str) -> ChatWire:
    """Return the wire called `name` if an agent can run on it.

    >>> get_chat_wire("message").name
    'message'
    """
    wire = get_wire(name) if name in _CHAT_WIRES else None
    if isinstance(wire, ChatWire):
        return wire
    raise ConfigError(f"an agent cannot run on the wire {name!r}; it can on: {', '.join(_CHAT_WIRES)}")


def recognise(messages: Sequence[Any]) -> tuple[str, ...]:
    """Return the names of the wires that these messages may be of; just one if the evidence is certain.

    Plain text messages look alike on several wires, and often the answer is the same on all of them. The caller must
    compare the answers.

    >>> recognise([{"role": "tool", "tool_call_id": "a", "content": "42"}])
    ('openai-chat',)
    >>> recognise([{"role": "user", "content": "hi"}])
    ('openai-chat', 'openai-responses', 'anthropic')
    """
    check_list(messages)
    kinds: set[type] = {*map(type, messages)}
    guest = next((name for name in map(guest_of, kinds) if name), "")
    return (guest,) if guest else narrow(WIRES, messages)


def check_list(messages: Any) -> None:
    """Raise `InputError` if `messages` is not a list."""
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Sequence):
        hint = "; pass the list it holds" if isinstance(messages, Mapping) else ""
        raise InputError(f"expected a list of messages, found {type(messages).__name__}{hint}")  # pyright: ignore[reportUnknownArgumentType]


def narrow(names: Sequence[str], messages: Sequence[Any], start: int = 0) -> tuple[str, ...]:
    """Return those of `names` whose wires `messages[start:]` may be of.

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
    """Return why no candidate takes `message`; if only one is left, in that wire's words."""
    for wire in candidates:
        try:
            wire.view(message)
        except InputError as error:
            if len(candidates) == 1 or "role" in error.path:
                return error.reason
    names = ", ".join(wire.name for wire in candidates)
    return f"this is not a message of any wire that fits the ones before it ({names}); say which with wire="


@lru_cache(maxsize=256)
def guest_of(kind: type) -> str:
    """Return the name of the guest that a message class belongs to, or an empty text.

    >>> guest_of(dict)
    ''
    """
    packages = {base.__module__.partition(".")[0] for base in kind.__mro__}
    return next((name for name, guest in _GUESTS.items() if guest.package in packages), "")
