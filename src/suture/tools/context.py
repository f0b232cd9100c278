"""`RunContext`: all that belongs to a run, for tools and hooks."""

from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any, Generic

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Deps = TypeVar("Deps", default=Any)
else:
    from typing import TypeVar

    Deps = TypeVar("Deps")

__all__ = ["RunContext"]


class RunContext(Generic[Deps]):
    """What belongs to one run. A tool asks for it with a parameter annotated `RunContext[Deps]`.

    The model never sees that parameter. Hooks and wrappers call `current_run()`.

    >>> async def search(ctx: RunContext[dict], query: str) -> str:
    ...     return ctx.deps[query]
    """

    __slots__ = ()

    deps: Deps
    """What was passed as `deps=` to the run."""
    values: MutableMapping[str, Any]
    """Values of this run: stored when they are set, there again after an interrupt and a crash."""
    session: MutableMapping[str, Any]
    """Values that this run shares with the agents that run inside it; stored, too."""
    cache: dict[Any, Any]
    """What this process alone keeps for the run; never stored."""
    run_id: str
    conversation_id: str
    """The checkpoint or session id, if there is one, else the run's id: the whole conversation has it."""
    turn: int
    """The model turn that the code runs in, from 1."""
    language: str
    wire: str
    """The name of the wire of all messages."""
    call_id: str
    """The id of the tool call that the code runs in; empty elsewhere."""
    tool: str
    """The name of the tool that is being called; empty elsewhere."""

    def send(self, event: Any) -> None:
        """Send an event of your own, such as `Custom(name, data)`, to whoever reads the run."""
        raise NotImplementedError

    async def interrupt(self, info: Any, *, state: Any = None, expects: str | type = "") -> Any:
        """Stop the run here until somebody answers; return the answer. See `suture.interrupt`."""
        raise NotImplementedError
