"""Requests to models and tools, sinks for the pieces of a stream, and the joining of pieces."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeAlias, cast

import msgspec

from suture.errors import ConfigError
from suture.messages import Delta, FrozenMap, M, TextPart, ToolInfo, ToolResult


class Sink(Protocol):
    """Where the pieces of a stream go while it runs: `open`, any number of `write`s, `close`.

    Whoever produces a stream opens, writes and closes its sink. A wrapper may replace it with its own sink
    (`replace(call, sink=…)`), which forwards all three. The outermost one joins the pieces: `close` returns the whole.

    >>> class Upper:
    ...     def __init__(self, outer): self.outer = outer
    ...     async def open(self): await self.outer.open()
    ...     async def write(self, piece): await self.outer.write(text_result(piece.text.upper()))
    ...     async def close(self): return await self.outer.close()
    >>> sink: Sink = Upper(Collector())
    """

    async def open(self) -> None:
        """Begin; discard what was written before."""
        ...

    async def write(self, piece: Any, /) -> None:
        """Take one piece: a `ToolResult` from a tool, a `Delta` from a model."""
        ...

    async def close(self) -> Any:
        """End, and return the whole `ToolResult`. A model makes its message itself, so its sinks return nothing."""
        ...


class ModelRequest(msgspec.Struct, Generic[M], frozen=True):
    """The request of one model call.

    >>> ModelRequest("Answer briefly.", ["…"]).tool_infos
    ()
    """

    instruction: str = ""
    """The system prompt; never among the messages, because some providers keep it separate."""
    messages: Sequence[M] = ()
    tool_infos: tuple[ToolInfo, ...] = ()
    options: Mapping[str, Any] = FrozenMap()
    deferred_tool_infos: tuple[ToolInfo, ...] = ()
    message_id: str = ""
    """The id that events give the reply."""
    sink: Sink | None = None
    """Where the reply's pieces go; for `wrap_model_call`."""
    streaming: bool = True
    """Whether pieces are wanted; a model that is asked without may ask its provider for the whole reply."""


class ToolCallRequest(msgspec.Struct, frozen=True):
    """One tool call, as `wrap_tool_call` sees it.

    >>> ToolCallRequest("search", "call_1", '{"query": "suture"}').kind
    'invokable'
    """

    name: str
    call_id: str
    arguments: str
    """The JSON text that the model wrote."""
    kind: str = "invokable"
    sink: Sink | None = None
    """Where the pieces of a streaming tool go."""
    options: Mapping[str, Any] = FrozenMap()


class Model(Protocol[M]):
    """A model, with one wire and the profile that applies to its requests.

    `stream` yields `Delta`s as they come, then exactly one whole message, and nothing else; a model that cannot stream
    yields just the message. Whoever stops reading closes the stream.

    >>> from suture.testing import ScriptedModel
    >>> ScriptedModel(["hello"]).wire
    'message'
    """

    @property
    def wire(self) -> str:
        """The wire of its messages."""
        ...

    @property
    def profile(self) -> Any:
        """The profile of its provider, or its name."""
        ...

    def stream(self, request: ModelRequest[M], /) -> AsyncIterator[Delta | M]:
        """Ask the model."""
        ...


class ModelWrapper(Generic[M]):
    """A model around another one, such as `wrap_model` returns; override `stream`.

    >>> from suture.testing import ScriptedModel
    >>> ModelWrapper(ScriptedModel(["hello"], wire="openai-chat")).wire
    'openai-chat'
    """

    def __init__(self, inner: Model[M]) -> None:
        self.inner = inner

    @property
    def wire(self) -> str:
        """The wire of the model inside."""
        return self.inner.wire

    @property
    def profile(self) -> Any:
        """The profile of the model inside."""
        return self.inner.profile

    def stream(self, request: ModelRequest[M], /) -> AsyncIterator[Delta | M]:
        """Ask the model inside."""
        return self.inner.stream(request)


CallTool: TypeAlias = Callable[[ToolCallRequest], Awaitable[ToolResult]]
"""`proceed` of `wrap_tool_call`."""
AskModel: TypeAlias = Callable[[ModelRequest[Any]], Awaitable[Any]]
"""`proceed` of `wrap_model_call`."""


def name_of(model: object) -> str:
    """Return the name of a model in events: its own `name` or that of its class."""
    return cast("str", getattr(model, "name", "")) or type(model).__name__


class Collector(msgspec.Struct, eq=False):
    """The outermost sink of a call: it keeps the pieces in case the stream is cut, sends them, and joins a tool's."""

    sender: Any = None
    emits: bool = False
    joins: bool = True
    pieces: list[Any] = []
    is_open: bool = False

    async def open(self) -> None:
        """Begin; discard what was written before, and announce that what was sent is void."""
        if self.is_open or self.pieces:
            self.pieces = []
            if self.sender is not None:
                self.sender.retried()
        self.is_open = True

    async def write(self, piece: Any, /) -> None:
        """Keep a piece, and send it."""
        if self.joins and not isinstance(piece, ToolResult):
            raise ConfigError(f"a sink takes pieces that are ToolResults, not {type(piece).__name__}")
        self.pieces.append(piece)
        if self.emits and self.sender is not None:
            await self.sender.piece(piece)

    async def close(self) -> Any:
        """Return the joined pieces of a tool; a model makes its message itself."""
        return join_results(self.pieces) if self.joins else None


class HookError(Exception):
    """A hook raised while it wrapped a call; the cause is what it raised."""


def text_result(text: str) -> ToolResult:
    """Return a result that is one text."""
    return ToolResult((TextPart(text),))


def error_result(text: str) -> ToolResult:
    """Return a result that says what went wrong."""
    return ToolResult((TextPart(text),), is_error=True)


def join_results(pieces: Sequence[ToolResult]) -> ToolResult:
    """Join all pieces into one result: a text that continues in the next piece stays one text."""
    if len(pieces) == 1:
        return pieces[0]
    runs: list[Any] = []  # parts, and lists of pieces of one text
    extra: dict[str, Any] = {}
    for piece in pieces:
        extra.update(piece.extra)
        for number, part in enumerate(piece.parts):
            if type(part) is not TextPart or part.extra:
                runs.append(part)
            elif number or not runs or runs[-1].__class__ is not list:  # two texts of one piece stay two
                runs.append([part.text])
            else:
                runs[-1].append(part.text)
    parts = [TextPart("".join(run)) if run.__class__ is list else run for run in runs]
    return ToolResult(
        tuple(parts),
        is_error=any(piece.is_error for piece in pieces),
        return_directly=any(piece.return_directly for piece in pieces),
        extra=FrozenMap(extra),
    )
