"""Wires for the message objects of other frameworks. They live with the integrations, and are loaded when they are met.

A framework is known by the package that its message classes come from; nothing of it is imported before that.
"""

from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple

from suture.errors import ConfigError
from suture.wires._wire import Wire

__all__ = ["GUEST_WIRES", "guest_of", "load_guest"]


class _Guest(NamedTuple):
    package: str
    """Where its message classes come from."""
    module: str
    """Where its wire is, as `WIRE`."""
    extra: str


_GUESTS = {
    "langchain": _Guest("langchain_core", "suture.integrations._langchain_wire", "langchain"),
    "pydantic-ai": _Guest("pydantic_ai", "suture.integrations._pydantic_ai_wire", "pydantic-ai"),
    "agent-framework": _Guest("agent_framework", "suture.integrations._agent_framework_wire", "agent-framework"),
}

GUEST_WIRES = tuple(_GUESTS)
"""The names of the wires for other frameworks' message objects."""


def load_guest(name: str) -> Wire:
    """Return the wire of the guest called `name`; raise `ConfigError` where its framework is not installed."""
    guest = _GUESTS[name]
    try:
        return import_module(guest.module).WIRE
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != guest.package:
            raise
        raise ConfigError(
            f"the wire {name} needs {guest.package}, which is not installed; pip install 'suture[{guest.extra}]'"
        ) from error


def guest_of(messages: Sequence[Any]) -> str:
    """Return the name of the guest that one of `messages` belongs to; the empty string where none does.

    >>> guest_of([{"role": "user", "content": "hi"}])
    ''
    """
    kinds: set[type] = {*map(type, messages)}
    return next((name for name in map(_guest_of_class, kinds) if name), "")


@lru_cache(maxsize=256)
def _guest_of_class(kind: type) -> str:
    packages = {base.__module__.partition(".")[0] for base in kind.__mro__}
    return next((name for name, guest in _GUESTS.items() if guest.package in packages), "")
