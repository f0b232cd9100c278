"""`RunContext`: all that belongs to a run, for tools and hooks."""

from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any, Generic

from suture.messages import TokenUsage

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
    agent: str
    """The name of the agent whose run it is."""
    model: Any
    """The model that is being asked, or will be next."""
    usage: TokenUsage
    """What the run has used so far, with the agents inside it."""
    run_id: str
    address: str
    """Where the agent stands: its name; inside another run, behind the address of the call that runs it."""
    conversation_id: str
    """The checkpoint or session id, if there is one, else the run's id: the whole conversation has it."""
    turn: int
    """The model turn that the code runs in, from 1."""
    language: str
    wire: str
    """The name of the wire of all messages."""
    call_id: str
    """The id of the tool call that the code runs in; empty elsewhere."""
    idempotency_key: str
    """The same for each attempt at this tool call, in whatever process, and for no other: for services that take one.

    It is made of the run, the turn and the call; empty outside of a call.
    """
    tool: str
    """The name of the tool that is being called; empty elsewhere."""

    def redact(self, value: Any) -> Any:
        """Return a message, result or text as it may leave the run: as the agent's `redact` gives it."""
        raise NotImplementedError

    def spend(self, usage: TokenUsage) -> None:
        """Count tokens that your own work for this run has used; they are in the result's usage, and in its budget."""
        raise NotImplementedError

    def send(self, event: Any) -> None:
        """Send an event of your own, such as `Custom(name, data)`, to whoever reads the run."""
        raise NotImplementedError

    async def interrupt(self, info: Any, *, state: Any = None, expects: str | type = "") -> Any:
        """Stop the run here until somebody answers; return the answer. See `suture.interrupt`."""
        raise NotImplementedError
