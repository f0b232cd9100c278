"""Running a tool: its context, and the four endpoints that bind arguments and call the function."""

from asyncio import Future
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from contextlib import AsyncExitStack
from functools import partial
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, cast

from suture._aio import Worker, closing, run_in_thread, settle
from suture.errors import SutureError
from suture.messages import TokenUsage
from suture.tools.results import can, is_iterator, join_pieces, read_parts, read_result

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Deps = TypeVar("Deps", default=Any)
else:
    from typing import TypeVar

    Deps = TypeVar("Deps")

T = TypeVar("T")
Kind: TypeAlias = Literal["invokable", "streamable", "enhanced_invokable", "enhanced_streamable"]
"""The four kinds of endpoints: text or `ToolResult`, at once or in pieces."""

Call: TypeAlias = Callable[[], Any]
"""A function with all its arguments bound."""

Bind: TypeAlias = Callable[[Any, dict[str, Any]], Call]
"""Returns the call for an endpoint's argument and options, or raises `ToolArgumentsError`."""

_END = object()


class RunContext(Generic[Deps]):
    """The context of one run. A tool gets it through a parameter annotated `RunContext[Deps]`.

    The model never sees that parameter. Hooks and wrappers call `current_run()`.

    >>> async def search(ctx: RunContext[dict], query: str) -> str:
    ...     return ctx.deps[query]
    """

    __slots__ = ()

    deps: Deps
    """What was passed as `deps=` to the run."""
    values: MutableMapping[str, Any]
    """Values of this run: stored when they are set, so they survive an interrupt and a crash."""
    session: MutableMapping[str, Any]
    """Values that this run shares with the agents inside it; stored, too."""
    cache: dict[Any, Any]
    """A cache of this process for the run; never stored."""
    agent: str
    """The name of the agent that runs."""
    model: Any
    """The model that is being asked, or will be asked next."""
    usage: TokenUsage
    """What the run and the agents inside it have used so far."""
    run_id: str
    address: str
    """The address of the agent: its name, and inside another run the address of the call in front of it."""
    conversation_id: str
    """The id of the whole conversation: the checkpoint or session id if there is one, else the run's id."""
    turn: int
    """The number of the current model turn, from 1."""
    language: str
    wire: str
    """The name of the wire of all messages."""
    call_id: str
    """The id of the current tool call; empty outside of one."""
    idempotency_key: str
    """A key that all attempts at this tool call share, in any process, and no other call: for services that take one.

    It is made from the run, the turn and the call, and is empty outside of a call.
    """
    tool: str
    """The name of the current tool; empty outside of a call."""

    def redact(self, value: Any) -> Any:
        """Return a message, result or text after the agent's `redact`, as it may leave the run."""
        raise NotImplementedError

    def spend(self, usage: TokenUsage) -> None:
        """Count tokens that your own code has used for this run; they count for the result's usage and the budget.

        What agents have used that your code ran is counted already.
        """
        raise NotImplementedError

    def send(self, event: Any) -> None:
        """Send a custom event, such as `Custom(name, data)`, to the reader of the run."""
        raise NotImplementedError

    async def interrupt(self, info: Any, *, state: Any = None, expects: str | type = "") -> Any:
        """Stop the run here until somebody answers; return the answer. See `suture.interrupt`."""
        raise NotImplementedError


class ToolArgumentsError(SutureError, ValueError):
    """The arguments that a model wrote for a tool do not fit; the function was not called.

    The text is for the model: it names every problem that was found, so that the next attempt can solve them all.

    >>> ToolArgumentsError("arguments.limit: expected int, got str", "arguments.query: missing").problems
    ('arguments.limit: expected int, got str', 'arguments.query: missing')
    """

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        self.reason = "; ".join(problems)
        super().__init__(*problems)

    def __str__(self) -> str:
        return self.reason


def make_endpoint(kind: Kind, bind: Bind, *, threaded: bool) -> Callable[..., Any]:
    """Make an endpoint of the given kind."""
    plain = not kind.startswith("enhanced")
    convert: Callable[[Any], Any] = read_result if plain else read_parts

    async def invoke(argument: Any, /, **options: Any) -> Any:
        call = bind(argument, options)
        try:
            value: Any = await run_in_thread(partial(_finish, call, convert)) if threaded else call()
            if type(value) is CoroutineType or can(value, "__await__"):
                value = await value  # pyright: ignore[reportUnknownVariableType] - a cast would be paid for each call
                if type(value) is not str:  # pyright: ignore[reportUnknownArgumentType]
                    value = await _await_nested(value)
            if plain and type(value) is str and value.isascii():
                return value
            return convert(await _collect(value))
        except SystemExit as end:
            raise _failure(end) from end

    async def stream(argument: Any, /, **options: Any) -> AsyncIterator[Any]:
        try:
            async with closing(_pieces(bind(argument, options), threaded=threaded)) as pieces:
                async for piece in pieces:
                    yield convert(piece)
        except SystemExit as end:
            raise _failure(end) from end

    return stream if kind.endswith("streamable") else invoke


def _finish(call: Call, convert: Callable[[Any], Any]) -> Any:
    """Call a function and make its result in the same thread; an awaitable or async iterator comes back as it is."""
    value = call()
    if can(value, "__await__") or can(value, "__anext__"):
        return value
    return convert(join_pieces(list(value)) if is_iterator(value) else value)


_NESTED = (CoroutineType, Future)
"""What a function that is awaited may give by mistake: work that nobody awaited."""


async def _await_nested(value: Any) -> Any:
    """Return what was awaited; if that is work of asyncio in its turn, await that."""
    while issubclass(type(value), _NESTED):
        value = await cast("Awaitable[Any]", value)
    return value


async def _collect(value: Any) -> Any:
    """Return all that an iterator gives, as one value; any other value as it is."""
    if can(value, "__anext__"):
        async with closing(value) as pieces:
            return join_pieces([piece async for piece in pieces])
    return join_pieces(list(value)) if is_iterator(value) else value


def _failure(end: SystemExit) -> RuntimeError:
    """Return the error for a tool that exits, as argparse and click do: a tool must not end the program."""
    code = end.code or 0
    return RuntimeError(f"the tool ended with exit code {code}" if isinstance(code, int) else f"the tool ended: {code}")


async def _pieces(call: Call, *, threaded: bool) -> AsyncGenerator[Any, None]:
    """Yield what a call streams: from an iterator, an async iterator, or an awaitable of one.

    Anything else that the call returns is one piece. The iterator is closed in the end, in the thread that it ran in.
    """
    async with AsyncExitStack() as stack:
        worker = await stack.enter_async_context(Worker()) if threaded else None

        async def run(function: Callable[[], T]) -> T:
            return await worker.run(function) if worker else function()

        source: Any = await settle(await run(call))
        if hasattr(source, "__aiter__"):
            async with closing(aiter(source)) as pieces:
                async for piece in pieces:
                    yield piece
        elif isinstance(source, Iterator):
            step = partial(next, cast("Iterator[Any]", source), _END)
            close = getattr(cast("Any", source), "close", lambda: None)
            try:
                while (piece := await run(step)) is not _END:
                    yield piece
            finally:
                if worker and worker.busy:
                    # Abandoned in mid-step, which cannot be stopped: the thread closes the iterator after it.
                    worker.stop(close)
                else:
                    await run(close)
        else:
            yield source
