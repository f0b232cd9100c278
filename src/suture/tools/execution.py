"""Running a tool: its context, and the four endpoints that bind arguments, call the function and make a result."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, MutableMapping
from contextlib import AsyncExitStack
from functools import partial
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, cast, get_args

import msgspec
from msgspec.structs import replace

from suture._aio import Worker, closing, run_in_thread, settle
from suture._text import replace_surrogates
from suture.errors import SutureError
from suture.messages import Part, TextPart, TokenUsage, ToolResult

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

_PARTS: tuple[type, ...] = get_args(Part)
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
        """Count tokens that your own code has used for this run; they count for the result's usage and the budget."""
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


def make_endpoint(kind: Kind, bind: Bind, *, threaded: bool, tool: str) -> Callable[..., Any]:
    """Make an endpoint of the given kind."""
    plain = not kind.startswith("enhanced")
    convert: Callable[[Any, str], Any] = _as_text if plain else _as_result

    async def invoke(argument: Any, /, **options: Any) -> Any:
        call = bind(argument, options)
        try:
            value: Any = await run_in_thread(call) if threaded else call()
            if value.__class__ is CoroutineType or hasattr(value, "__await__"):
                value = await value
        except SystemExit as end:
            raise _failure(end) from end
        return value if plain and value.__class__ is str and value.isascii() else convert(value, tool)

    async def stream(argument: Any, /, **options: Any) -> AsyncIterator[Any]:
        try:
            async with closing(_pieces(bind(argument, options), threaded=threaded)) as pieces:
                async for piece in pieces:
                    yield convert(piece, tool)
        except SystemExit as end:
            raise _failure(end) from end

    return stream if kind.endswith("streamable") else invoke


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


# --- from a value to a result -------------------------------------------------------------------


def _plain_form(value: Any) -> Any:
    """Return the JSON form of a pydantic model, which msgspec does not know."""
    dump: Callable[..., Any] | None = getattr(value, "model_dump", None)
    if dump is None or isinstance(value, type):
        raise TypeError(f"{type(value).__name__} has no JSON form")
    return dump(mode="json")


_encode = msgspec.json.Encoder(enc_hook=_plain_form).encode


def _as_text(value: Any, tool: str) -> str:
    """Return the value of a plain tool as text: a text unchanged, `None` as an empty one, the rest as JSON."""
    if isinstance(value, str):
        text = value if type(value) is str else str.__str__(value)
        return text if text.isascii() else replace_surrogates(text)
    if value is None:
        return ""
    first: object = next(iter(cast("list[object]", value)), None) if isinstance(value, list | tuple) else value
    if isinstance(first, (ToolResult, *_PARTS)):
        raise TypeError(
            f"tool {tool!r} gave a {type(first).__name__} but does not say so; annotate it -> ToolResult "
            "(a stream: -> AsyncIterator[ToolResult]), or make it with kind="
        )
    try:
        try:
            return _encode(value).decode()
        except UnicodeEncodeError:
            return _encode(_storable(msgspec.to_builtins(value, enc_hook=_plain_form, str_keys=True))).decode()
    except (TypeError, ValueError, RecursionError) as error:
        kind = type(cast("object", value)).__name__
        raise TypeError(
            f"tool {tool!r} gave a {kind} that JSON cannot carry ({error}); return text or plain values"
        ) from error


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, dict):
        mapping = cast("dict[str, Any]", value)
        return {replace_surrogates(name): _storable(each) for name, each in mapping.items()}
    return [_storable(each) for each in cast("list[Any]", value)] if isinstance(value, list | tuple) else value


def _as_result(value: Any, tool: str) -> ToolResult:
    if isinstance(value, ToolResult):
        return clean_result(value)
    if value is None:
        return ToolResult()
    if isinstance(value, str):
        return ToolResult((TextPart(replace_surrogates(str.__str__(value))),))
    parts: tuple[Any, ...] = tuple(cast("list[Any]", value)) if isinstance(value, list | tuple) else (value,)
    for part in parts:
        if not isinstance(part, _PARTS):
            raise TypeError(
                f"tool {tool!r} gave a {type(part).__name__}; an enhanced tool gives a ToolResult, a part, "
                "a list of parts, or text"
            )
    return clean_result(ToolResult(parts))


def clean_result(result: ToolResult) -> ToolResult:
    """Return a result whose texts hold no lone surrogates, which could be neither stored nor sent."""
    for at, part in enumerate(result.parts):
        if isinstance(part, TextPart) and not part.text.isascii():
            text = replace_surrogates(part.text)
            if text != part.text:
                result = replace(result, parts=(*result.parts[:at], replace(part, text=text), *result.parts[at + 1 :]))
    return result
