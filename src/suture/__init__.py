"""Suture: an agent kit whose histories never break and whose contexts never overflow.

Public names are loaded when they are first used; importing this package costs next to nothing.

>>> import suture
>>> suture.check([{"role": "user", "content": "hi"}]).acceptable
True
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from suture.errors import AmbiguousWireError as AmbiguousWireError
    from suture.errors import ConfigError as ConfigError
    from suture.errors import HistoryError as HistoryError
    from suture.errors import InputError as InputError
    from suture.errors import SchemaVersionError as SchemaVersionError
    from suture.errors import SutureError as SutureError
    from suture.errors import UnknownWireError as UnknownWireError
    from suture.language import set_language as set_language
    from suture.language import using_language as using_language
    from suture.messages import AgenticMessage as AgenticMessage
    from suture.messages import Message as Message
    from suture.messages import ToolCall as ToolCall
    from suture.pairing import Cause as Cause
    from suture.pairing import Displaced as Displaced
    from suture.pairing import Finding as Finding
    from suture.pairing import Pending as Pending
    from suture.pairing import Report as Report
    from suture.repair import Repaired as Repaired
    from suture.repair import Repairer as Repairer
    from suture.repair import check as check
    from suture.repair import repair as repair

_HOMES = {
    "AgenticMessage": "messages",
    "AmbiguousWireError": "errors",
    "Cause": "pairing",
    "ConfigError": "errors",
    "Displaced": "pairing",
    "Finding": "pairing",
    "HistoryError": "errors",
    "InputError": "errors",
    "Message": "messages",
    "Pending": "pairing",
    "Repaired": "repair",
    "Repairer": "repair",
    "Report": "pairing",
    "SchemaVersionError": "errors",
    "SutureError": "errors",
    "ToolCall": "messages",
    "UnknownWireError": "errors",
    "check": "repair",
    "repair": "repair",
    "set_language": "language",
    "using_language": "language",
}

__all__ = [
    "AgenticMessage",
    "AmbiguousWireError",
    "Cause",
    "ConfigError",
    "Displaced",
    "Finding",
    "HistoryError",
    "InputError",
    "Message",
    "Pending",
    "Repaired",
    "Repairer",
    "Report",
    "SchemaVersionError",
    "SutureError",
    "ToolCall",
    "UnknownWireError",
    "check",
    "repair",
    "set_language",
    "using_language",
]


class _Lazy(ModuleType):
    """Loads public names on first use. `suture.repair` is the function, also after its room was imported."""

    def __getattr__(self, name: str) -> object:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module 'suture' has no attribute {name!r}")
        from importlib import import_module  # noqa: PLC0415 - only a first use pays for it

        value: object = getattr(import_module(f"suture.{home}"), name)
        super().__setattr__(name, value)
        return value

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, ModuleType) and name in _HOMES:
            value = getattr(value, name)
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_HOMES})


sys.modules[__name__].__class__ = _Lazy
