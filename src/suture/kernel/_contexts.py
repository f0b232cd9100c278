"""What hooks are given: frozen values. A hook that wants a change returns a changed copy; `None` changes nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import make_dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

import msgspec

from suture.kernel._policies import ModelFailoverConfig, ModelRetryConfig
from suture.messages import M, TokenUsage, ToolInfo
from suture.tools import Tool

__all__ = ["ChatModelAgentContext", "ChatModelAgentState", "ModelContext", "Outcome", "replace"]

S = TypeVar("S", bound=msgspec.Struct)


class Outcome(StrEnum):
    """How a run ended.

    >>> Outcome.FINISHED == "finished"
    True
    """

    FINISHED = "finished"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    CANCELLED = "cancelled"


def replace(value: S, /, **changes: Any) -> S:
    """Return a frozen value with some fields changed.

    >>> replace(ModelContext(), tools=()).tools
    ()
    """
    return msgspec.structs.replace(value, **changes)


def _replaceable(kind: type[S]) -> type[S]:
    """Let `dataclasses.replace` and `copy.replace` change values of this struct, too."""
    fields = make_dataclass(kind.__name__, kind.__struct_fields__).__dataclass_fields__  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    kind.__dataclass_fields__ = fields  # pyright: ignore[reportAttributeAccessIssue]
    kind.__replace__ = replace
    return kind


@_replaceable
class ChatModelAgentContext(msgspec.Struct, Generic[M], frozen=True, kw_only=True):
    """What a run works with, as `before_agent` sees it and may change it for the whole run.

    >>> ChatModelAgentContext(instruction="Answer briefly.").resumed
    False
    """

    instruction: str = ""
    """Configured, plus what older middlewares add, plus what earlier hooks changed."""
    tools: tuple[Tool[..., Any], ...] = ()
    """The tools themselves, without any wrapper. An empty tuple means none."""
    return_directly: frozenset[str] = frozenset()
    """Names of tools whose result ends the run."""
    messages: Sequence[M] = ()
    """The history; read-only where the run goes on from a checkpoint."""
    resumed: bool = False


@_replaceable
class ChatModelAgentState(msgspec.Struct, Generic[M], frozen=True, kw_only=True):
    """What lasts from turn to turn: the history and what the model is told about tools.

    `report` goes into the `HistoryRewritten` event of the hook that changed `messages`; it is not kept.

    >>> state = ChatModelAgentState(messages=["a"])
    >>> replace(state, messages=[*state.messages, "b"]).messages
    ['a', 'b']
    """

    messages: Sequence[M] = ()
    tool_infos: tuple[ToolInfo, ...] = ()
    deferred_tool_infos: tuple[ToolInfo, ...] = ()
    """Tools that a model with tool search finds by itself."""
    report: Mapping[str, Any] | None = None


@_replaceable
class ModelContext(msgspec.Struct, frozen=True, kw_only=True):
    """What surrounds one model turn.

    >>> ModelContext().model_retry_config is None
    True
    """

    tools: tuple[ToolInfo, ...] = ()
    """The tools that the turn began with; what the model is sent is in the state."""
    model_retry_config: ModelRetryConfig | None = None
    failover: ModelFailoverConfig | None = None
    turn: int = 0
    wire: str = ""
    """The wire of the agent's messages."""
    last_usage: TokenUsage | None = None
    """What the reply before this turn cost: all that was sent, and itself. `None` where nobody said."""
