"""The middleware interface: the arguments of hooks, the base class, and the compiler for a list of middlewares.

A hook may be `async` or plain. Methods that are not overridden cost nothing. Instances are shared by all runs of an
agent, so the data of one run belongs into `current_run().values` or `.cache`.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, cast

import msgspec

from suture.errors import ConfigError
from suture.kernel.config import ModelFailoverConfig, ModelRetryConfig
from suture.kernel.requests import AskModel, CallTool, Model, ModelRequest, ToolCallRequest
from suture.messages import M, TokenUsage, ToolArgument, ToolContext, ToolInfo, ToolResult
from suture.tools import AnyTool, Tool

S = TypeVar("S", bound=msgspec.Struct)
T = TypeVar("T")
A_contra = TypeVar("A_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)
MaybeAwaitable: TypeAlias = T | Awaitable[T]


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


class _Fields:
    """The fields of a struct in the form of a dataclass, made on first use."""

    def __get__(self, value: object, kind: type[msgspec.Struct]) -> Mapping[str, Any]:
        from dataclasses import make_dataclass  # noqa: PLC0415 - only who replaces fields that way pays for it

        return make_dataclass(kind.__name__, kind.__struct_fields__).__dataclass_fields__  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


def replaceable(kind: type[S]) -> type[S]:
    """Make `dataclasses.replace` and `copy.replace` work on this struct, too."""
    kind.__dataclass_fields__ = _Fields()  # pyright: ignore[reportAttributeAccessIssue]
    kind.__replace__ = replace
    return kind


@replaceable
class ChatModelAgentContext(msgspec.Struct, Generic[M], frozen=True, kw_only=True):
    """The instruction, tools and history of a run, which `before_agent` may change for the whole run.

    >>> ChatModelAgentContext(instruction="Answer briefly.").resumed
    False
    """

    instruction: str = ""
    """The agent's instruction with additions of older middlewares and changes of earlier hooks."""
    tools: tuple[Tool[..., Any], ...] = ()
    """The tools without any wrappers. An empty tuple means none."""
    return_directly: frozenset[str] = frozenset()
    """Names of tools whose result ends the run."""
    messages: Sequence[M] = ()
    """The history; read-only if the run is resumed."""
    resumed: bool = False


@replaceable
class ChatModelAgentState(msgspec.Struct, Generic[M], frozen=True, kw_only=True):
    """The state that lasts from turn to turn: the history and the tools that the model sees.

    `report` goes into the `HistoryRewritten` event of the hook that changed `messages`; it is not kept.

    >>> state = ChatModelAgentState(messages=["a"])
    >>> replace(state, messages=[*state.messages, "b"]).messages
    ['a', 'b']
    """

    messages: Sequence[M] = ()
    tool_infos: tuple[ToolInfo, ...] = ()
    deferred_tool_infos: tuple[ToolInfo, ...] = ()
    """Tools that a model with tool search can find by itself."""
    report: Mapping[str, Any] | None = None


@replaceable
class ModelContext(msgspec.Struct, frozen=True, kw_only=True):
    """The context of one model turn.

    >>> ModelContext().model_retry_config is None
    True
    """

    tools: tuple[ToolInfo, ...] = ()
    """The tools that are sent to the model; before the turn's hooks, those that the turn begins with."""
    model_retry_config: ModelRetryConfig | None = None
    failover: ModelFailoverConfig | None = None
    turn: int = 0
    wire: str = ""
    """The wire of the agent's messages."""
    last_usage: TokenUsage | None = None
    """The usage of the turn before, as the provider reported it; `None` if it did not."""
    instruction: str = ""
    """The system prompt."""


class Endpoint(Protocol[A_contra, R_co]):
    """A tool as the hooks of its kind wrap it: from its argument to its output.

    >>> async def shout(arguments: str, **options: object) -> str: return arguments.upper()
    >>> endpoint: InvokableEndpoint = shout
    """

    def __call__(self, argument: A_contra, /, *args: Any, **options: Any) -> R_co:
        """Run the tool."""
        ...


InvokableEndpoint: TypeAlias = Endpoint[str, Awaitable[str]]
"""A plain tool: JSON text in, text out."""
StreamableEndpoint: TypeAlias = Endpoint[str, AsyncIterator[str]]
"""A streaming tool: JSON text in, pieces of text out."""
EnhancedInvokableEndpoint: TypeAlias = Endpoint[ToolArgument, Awaitable[ToolResult]]
"""A multimodal tool."""
EnhancedStreamableEndpoint: TypeAlias = Endpoint[ToolArgument, AsyncIterator[ToolResult]]
"""A multimodal streaming tool: pieces of a result come out."""


class ChatModelAgentMiddleware(Generic[M]):
    """The base class of all middlewares. Override the methods you need.

    >>> class Loud(ChatModelAgentMiddleware):
    ...     async def wrap_tool_call(self, call, proceed):
    ...         result = await proceed(call)
    ...         print(call.name, result.text)
    ...         return result
    """

    def before_agent(self, context: ChatModelAgentContext[M]) -> MaybeAwaitable[ChatModelAgentContext[M] | None]:
        """Change what the run works with. Once per run, and again when it is resumed."""

    def before_model_rewrite_state(
        self, state: ChatModelAgentState[M], model_context: ModelContext
    ) -> MaybeAwaitable[ChatModelAgentState[M] | None]:
        """Change the state before a model turn; the change lasts."""

    def after_model_rewrite_state(
        self, state: ChatModelAgentState[M], model_context: ModelContext
    ) -> MaybeAwaitable[ChatModelAgentState[M] | None]:
        """Change the state after a model turn, the reply last in it; the change lasts and decides the next step."""

    async def wrap_model_call(self, request: ModelRequest[M], proceed: AskModel) -> M:
        """Wrap one attempt to ask the model; `await proceed(request)` returns its whole reply."""
        return await proceed(request)

    async def wrap_tool_call(self, call: ToolCallRequest, proceed: CallTool) -> ToolResult:
        """Wrap one call of any tool; `await proceed(call)` returns its whole result.

        It may be awaited again, which starts the call again, but not twice at the same time.
        """
        return await proceed(call)

    def wrap_model(self, model: Model[M], model_context: ModelContext) -> MaybeAwaitable[Model[M]]:
        """Wrap the model for one attempt. Changes are not kept."""
        del model_context
        return model

    def wrap_invokable_tool_call(
        self, endpoint: InvokableEndpoint, context: ToolContext
    ) -> MaybeAwaitable[InvokableEndpoint]:
        """Wrap one call of a plain tool."""
        del context
        return endpoint

    def wrap_streamable_tool_call(
        self, endpoint: StreamableEndpoint, context: ToolContext
    ) -> MaybeAwaitable[StreamableEndpoint]:
        """Wrap one call of a streaming tool."""
        del context
        return endpoint

    def wrap_enhanced_invokable_tool_call(
        self, endpoint: EnhancedInvokableEndpoint, context: ToolContext
    ) -> MaybeAwaitable[EnhancedInvokableEndpoint]:
        """Wrap one call of a multimodal tool."""
        del context
        return endpoint

    def wrap_enhanced_streamable_tool_call(
        self, endpoint: EnhancedStreamableEndpoint, context: ToolContext
    ) -> MaybeAwaitable[EnhancedStreamableEndpoint]:
        """Wrap one call of a multimodal streaming tool."""
        del context
        return endpoint

    def after_agent(self, state: ChatModelAgentState[M], outcome: Outcome) -> MaybeAwaitable[None]:
        """Clean up: once per run or resume, however it ended. An error here never replaces the outcome."""


ToolCallMiddleware: TypeAlias = Callable[[ToolCallRequest, CallTool], Awaitable[ToolResult]]
"""`async (call, proceed) -> result`, as `wrap_tool_call`."""


class AgentMiddleware(msgspec.Struct, frozen=True, kw_only=True):
    """The older form of a middleware: a record of functions. New ones derive from `ChatModelAgentMiddleware`.

    >>> AgentMiddleware(additional_instruction="Cite sources.").additional_tools
    ()
    """

    additional_instruction: str = ""
    additional_tools: Sequence[AnyTool] = ()
    before_chat_model: Callable[[ChatModelAgentState[Any]], Any] | None = None
    after_chat_model: Callable[[ChatModelAgentState[Any]], Any] | None = None
    wrap_tool_call: ToolCallMiddleware | None = None


SPECIFIC_HOOKS = {
    "invokable": "wrap_invokable_tool_call",
    "streamable": "wrap_streamable_tool_call",
    "enhanced_invokable": "wrap_enhanced_invokable_tool_call",
    "enhanced_streamable": "wrap_enhanced_streamable_tool_call",
}
"""The reference's hook for each kind of tool."""


class Hook(msgspec.Struct, frozen=True, eq=False):
    """One hook of one middleware."""

    owner: str
    """The middleware's name and its place in the list, for the ids of interrupts."""
    name: str
    """The middleware's name."""
    method: str
    call: Callable[..., Any]
    at: int
    """Its middleware's place in the list."""

    def __str__(self) -> str:
        return f"{self.name}.{self.method}"


class Stack(msgspec.Struct, frozen=True, eq=False):
    """The hooks of an agent, each list in the order of the middlewares."""

    before_agent: tuple[Hook, ...]
    before_model: tuple[Hook, ...]
    """The older form's first, then `before_model_rewrite_state`."""
    after_model: tuple[Hook, ...]
    """`after_model_rewrite_state`, then the older form's."""
    around_model: tuple[Hook, ...]
    """The ring of `wrap_model_call` and `wrap_model`, outermost first."""
    around_tools: Mapping[str, tuple[Hook, ...]]
    """For each kind of tool, the ring around its calls, outermost first; "" for calls that reach no tool."""
    after_agent: tuple[Hook, ...]
    sends_model_events: bool
    """Whether a middleware of the list sends the model's events from its own place."""
    sends_tool_events: bool
    size: int
    """How many middlewares there are."""


def compile_stack(
    middlewares: Sequence[Any], tool_call_middlewares: Sequence[ToolCallMiddleware] = (), *, first: int = 0
) -> Stack:
    """Return the hooks of `middlewares` in the order in which they run; `first` is the place of the first item."""
    older: list[tuple[int, AgentMiddleware]] = []
    newer: list[tuple[int, Any]] = []
    for at, item in enumerate(middlewares, first):
        if isinstance(item, AgentMiddleware):
            older.append((at, item))
        elif isinstance(item, ChatModelAgentMiddleware):
            newer.append((at, cast("Any", item)))
            _check_names(newer[-1][1])
        else:
            hint = "; pass an instance, not the class" if isinstance(item, type) else ""
            raise ConfigError(f"middlewares[{at}] is {item!r}, not a ChatModelAgentMiddleware{hint}")
    outside = [
        Hook(f"tool_call_middlewares.{at}", "tool_call_middlewares", "wrap_tool_call", call, -1)
        for at, call in enumerate(tool_call_middlewares)
    ]
    outside += _older(older, "wrap_tool_call")
    return Stack(
        before_agent=_overriding(newer, "before_agent"),
        before_model=(
            *_older(older, "before_chat_model"),
            *_overriding(newer, "before_model_rewrite_state"),
        ),
        after_model=(
            *_overriding(newer, "after_model_rewrite_state"),
            *_older(older, "after_chat_model"),
        ),
        around_model=_overriding(newer, "wrap_model_call", "wrap_model"),
        around_tools={
            kind: (*outside, *_overriding(newer, "wrap_tool_call", specific))
            for kind, specific in {**SPECIFIC_HOOKS, "": "wrap_tool_call"}.items()
        },
        after_agent=_overriding(newer, "after_agent"),
        sends_model_events=any(getattr(item, "sends_model_events", False) for _, item in newer),
        sends_tool_events=any(getattr(item, "sends_tool_events", False) for _, item in newer),
        size=len(middlewares),
    )


def _check_names(middleware: object) -> None:
    """Raise `ConfigError` for a method that looks like a misspelt hook, or has the name of another kit's hook."""
    hooks = vars(ChatModelAgentMiddleware)
    for name in dir(type(middleware)):
        if name.startswith(("before_", "after_", "wrap_")) and name not in hooks:
            from difflib import get_close_matches  # noqa: PLC0415 - hardly any has such a method

            meant = [f"{name}_rewrite_state", *get_close_matches(name, hooks, n=1, cutoff=0.9)][-1]
            if meant in hooks:
                raise ConfigError(f"{type(middleware).__name__}.{name} is no hook and is never called; is it {meant}?")


def _overriding(middlewares: Sequence[tuple[int, Any]], *methods: str) -> tuple[Hook, ...]:
    """Return these hooks of the middlewares that override them, in list order."""
    hooks: dict[tuple[int, str], Hook] = {}
    for at, item in middlewares:
        name, unused = type(item).__name__, getattr(item, "unused_hooks", ())
        for method in methods:
            bound = getattr(item, method)
            overrides = getattr(bound, "__func__", None) is not getattr(ChatModelAgentMiddleware, method)
            if overrides and method not in unused:
                hooks[at, method] = Hook(f"{name}.{at}", name, method, bound, at)
    return tuple(hooks.values())


def _older(middlewares: Sequence[tuple[int, AgentMiddleware]], field: str) -> list[Hook]:
    alone = field != "wrap_tool_call"
    return [
        Hook(f"AgentMiddleware.{at}", "AgentMiddleware", field, state_alone(function) if alone else function, at)
        for at, item in middlewares
        if (function := getattr(item, field)) is not None
    ]


def state_alone(function: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """Turn a hook that takes only the state into one that also takes a context."""

    def call(state: Any, context: Any) -> Any:
        del context
        return function(state)

    return call
