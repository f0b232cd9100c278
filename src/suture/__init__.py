"""Suture: repairs broken LLM agent histories, and runs agents whose histories do not break.

Public names are loaded when they are first used; importing this package costs next to nothing.

>>> import suture
>>> suture.check([{"role": "user", "content": "hi"}]).acceptable
True
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING

from suture import errors
from suture.errors import *  # noqa: F403 - all of them are public, and cost nothing

if TYPE_CHECKING:
    from suture import codecs as codecs
    from suture import events as events
    from suture import integrations as integrations
    from suture import messages as messages
    from suture import middleware as middleware
    from suture import models as models
    from suture import profiles as profiles
    from suture import reduction as reduction
    from suture import stores as stores
    from suture import testing as testing
    from suture import tokens as tokens
    from suture import tools as tools
    from suture import wires as wires
    from suture.agent import ChatModelAgent as ChatModelAgent
    from suture.kernel import AgentMiddleware as AgentMiddleware
    from suture.kernel import Approval as Approval
    from suture.kernel import Budget as Budget
    from suture.kernel import Callbacks as Callbacks
    from suture.kernel import ChatModelAgentContext as ChatModelAgentContext
    from suture.kernel import ChatModelAgentMiddleware as ChatModelAgentMiddleware
    from suture.kernel import ChatModelAgentState as ChatModelAgentState
    from suture.kernel import Component as Component
    from suture.kernel import FailoverContext as FailoverContext
    from suture.kernel import Model as Model
    from suture.kernel import ModelContext as ModelContext
    from suture.kernel import ModelFailoverConfig as ModelFailoverConfig
    from suture.kernel import ModelRequest as ModelRequest
    from suture.kernel import ModelRetryConfig as ModelRetryConfig
    from suture.kernel import ModelWrapper as ModelWrapper
    from suture.kernel import Outcome as Outcome
    from suture.kernel import RetryContext as RetryContext
    from suture.kernel import RetryDecision as RetryDecision
    from suture.kernel import Run as Run
    from suture.kernel import RunResult as RunResult
    from suture.kernel import Sink as Sink
    from suture.kernel import ToolCallRequest as ToolCallRequest
    from suture.kernel import ToolsConfig as ToolsConfig
    from suture.kernel import UnregisteredTypeError as UnregisteredTypeError
    from suture.kernel import current_run as current_run
    from suture.kernel import delete_run_local_value as delete_run_local_value
    from suture.kernel import get_run_local_value as get_run_local_value
    from suture.kernel import interrupt as interrupt
    from suture.kernel import interrupt_state as interrupt_state
    from suture.kernel import register_type as register_type
    from suture.kernel import replace as replace
    from suture.kernel import send_event as send_event
    from suture.kernel import set_run_local_value as set_run_local_value
    from suture.language import set_language as set_language
    from suture.language import using_language as using_language
    from suture.messages import AgenticMessage as AgenticMessage
    from suture.messages import Delta as Delta
    from suture.messages import History as History
    from suture.messages import Message as Message
    from suture.messages import TokenUsage as TokenUsage
    from suture.messages import ToolArgument as ToolArgument
    from suture.messages import ToolCall as ToolCall
    from suture.messages import ToolContext as ToolContext
    from suture.messages import ToolInfo as ToolInfo
    from suture.messages import ToolResult as ToolResult
    from suture.middleware import Compaction as Compaction
    from suture.middleware import PatchToolCalls as PatchToolCalls
    from suture.middleware import ToolReduction as ToolReduction
    from suture.repair import Cause as Cause
    from suture.repair import Displaced as Displaced
    from suture.repair import Finding as Finding
    from suture.repair import Pending as Pending
    from suture.repair import Repaired as Repaired
    from suture.repair import Repairer as Repairer
    from suture.repair import Report as Report
    from suture.repair import check as check
    from suture.repair import cuts as cuts
    from suture.repair import repair as repair
    from suture.sessions import Session as Session
    from suture.sessions import recover as recover
    from suture.stores import MemoryStore as MemoryStore
    from suture.stores import SQLiteStore as SQLiteStore
    from suture.tools import RunContext as RunContext
    from suture.tools import Tool as Tool
    from suture.tools import exit_tool as exit_tool
    from suture.tools import tool as tool

_NAMES = {
    "agent": "ChatModelAgent",
    "errors": " ".join(errors.__all__),
    "kernel": (
        "AgentMiddleware Approval Budget Callbacks ChatModelAgentContext ChatModelAgentMiddleware "
        "ChatModelAgentState Component FailoverContext Model ModelContext ModelFailoverConfig ModelRequest "
        "ModelRetryConfig ModelWrapper Outcome RetryContext RetryDecision Run RunResult Sink ToolCallRequest "
        "ToolsConfig UnregisteredTypeError current_run delete_run_local_value get_run_local_value interrupt "
        "interrupt_state register_type replace send_event set_run_local_value"
    ),
    "language": "set_language using_language",
    "messages": (
        "AgenticMessage Delta History Message TokenUsage ToolArgument ToolCall ToolContext ToolInfo ToolResult"
    ),
    "middleware": "Compaction PatchToolCalls ToolReduction",
    "repair": "Cause Displaced Finding Pending Repaired Repairer Report check cuts repair",
    "sessions": "Session recover",
    "stores": "MemoryStore SQLiteStore",
    "tools": "RunContext Tool exit_tool tool",
}
_ROOMS = (
    *("codecs", "events", "integrations", "messages", "middleware", "models", "profiles"),
    *("reduction", "stores", "testing", "tokens", "tools", "wires"),
)
"""The rooms with public names of their own, which load on first use, too."""
_HOMES = dict(sorted((name, room) for room, names in _NAMES.items() for name in names.split()))

if not TYPE_CHECKING:  # type checkers read the imports above
    __all__ = list(_HOMES)


class _Lazy(ModuleType):
    """Loads public names on first use. `suture.repair` stays the function, even after its room was imported."""

    def __getattr__(self, name: str) -> object:
        home = _HOMES.get(name)
        if name == "__version__":
            from importlib.metadata import version  # noqa: PLC0415 - only a first use pays for it

            return version("suture")
        if home is None and name not in _ROOMS:
            raise AttributeError(f"module 'suture' has no attribute {name!r}")
        from importlib import import_module  # noqa: PLC0415 - only a first use pays for it

        value: object = (
            import_module(f"suture.{name}") if home is None else getattr(import_module(f"suture.{home}"), name)
        )
        super().__setattr__(name, value)
        return value

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, ModuleType) and name in _HOMES:
            value = getattr(value, name)
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_HOMES})


sys.modules[__name__].__class__ = _Lazy
