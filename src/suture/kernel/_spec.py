"""An agent as the kernel sees it: settings that never change, shared by all of its runs."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from suture.kernel._model import Model
from suture.kernel._policies import Budget, Callbacks, ModelFailoverConfig, ModelRetryConfig
from suture.kernel._stack import Stack
from suture.language import Language
from suture.messages import FrozenMap, History
from suture.tools import Tool
from suture.wires import ChatWire

__all__ = ["Fit", "JournalStore", "OutputRule", "Spec"]

Fit = Callable[[History[Any]], Sequence[Any]]
"""A history to what one model is sent; it keeps a cursor, so a turn looks only at what is new."""


class JournalStore(Protocol):
    """Where journals are kept: bytes under (run, sequence)."""

    async def append(self, run: str, first: int, records: Sequence[bytes], /) -> None:
        """Write records number `first` and up, all or none."""
        ...

    async def load(self, run: str, /) -> list[bytes]:
        """Return the records of a run in order; none if it is unknown."""
        ...


class OutputRule(NamedTuple):
    """What a final answer must be: how the model is told, how it is read, what to say if it does not fit."""

    instruction: str
    schema: FrozenMap
    read: Callable[[str], Any]
    """Text to value; raises `ValueError` with what is wrong."""


class Spec(NamedTuple):
    """All that the kernel needs to know of an agent."""

    name: str
    instruction: str
    model: Model[Any]
    wire: ChatWire
    tools: tuple[Tool[..., Any], ...]
    return_directly: frozenset[str]
    stack: Stack
    fit: Callable[[Model[Any], Language], Fit]
    max_iterations: int = 20
    answers_at_limit: bool = False
    budget: Budget | None = None
    retry: ModelRetryConfig | None = None
    failover: ModelFailoverConfig | None = None
    sequential: bool = False
    raises_tool_errors: bool = False
    format_tool_error: Callable[[Exception], str] | None = None
    callbacks: Callbacks | None = None
    output_key: str | None = None
    output: OutputRule | None = None
    input_builder: Callable[[str, Sequence[Any]], Any] | None = None
    store: JournalStore | None = None
    redact: Callable[[Any], Any] | None = None

    def shown(self, value: Any) -> Any:
        """Return `value` as it may leave the run, in an event or to a store."""
        return value if self.redact is None else self.redact(value)
