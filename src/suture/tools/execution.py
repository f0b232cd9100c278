"""Running a tool: its context; arguments bound to its function; four endpoints that call it and make a result."""

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
"""The four shapes of an endpoint: text or `ToolResult`, at once or in pieces."""

Call: TypeAlias = Callable[[], Any]
"""A function with all that it takes."""

Bind: TypeAlias = Callable[[Any, dict[str, Any]], Call]
"""Returns the call for an endpoint's argument and options, or raises `ToolArgumentsError`."""

_PARTS: tuple[type, ...] = get_args(Part)
_END = object()


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


class ToolArgumentsError(SutureError, ValueError):
    """The arguments that a model wrote for a tool do not fit; the function was not called.

    The text is for the model: it names every problem that was found, so that one more try can solve them all.

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
    """Make the endpoint of a kind."""
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
    """Return the error for a tool that ends the program, as argparse and click do: that is not the tool's to decide."""
    code = end.code or 0
    return RuntimeError(f"the tool ended with exit code {code}" if isinstance(code, int) else f"the tool ended: {code}")


async def _pieces(call: Call, *, threaded: bool) -> AsyncGenerator[Any, None]:
    """Yield what a call streams: from an iterator, an async one, or one that is awaited first.

    Anything else that the call returns is one piece. What is iterated is closed in the end, in the thread it ran in.
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
                    # Given up in the midst of a step, which nothing can stop: the thread itself closes up after it.
                    worker.stop(close)
                else:
                    await run(close)
        else:
            yield source


# --- from a value to a result -------------------------------------------------------------------


def _plain_form(value: Any) -> Any:
    """Return a form that JSON can carry, for models of pydantic, which msgspec does not know."""
    dump: Callable[..., Any] | None = getattr(value, "model_dump", None)
    if dump is None or isinstance(value, type):
        raise TypeError(f"{type(value).__name__} has no JSON form")
    return dump(mode="json")


_encode = msgspec.json.Encoder(enc_hook=_plain_form).encode


def _as_text(value: Any, tool: str) -> str:
    """Return what a plain tool gave as text: text as it is, nothing as no text, the rest as JSON."""
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
    """Return a result whose texts hold no half of a surrogate pair: nothing could store or send it."""
    for at, part in enumerate(result.parts):
        if isinstance(part, TextPart) and not part.text.isascii():
            text = replace_surrogates(part.text)
            if text != part.text:
                result = replace(result, parts=(*result.parts[:at], replace(part, text=text), *result.parts[at + 1 :]))
    return result
