"""The middleware interface: nine hooks and `wrap_tool_call`, all optional; and the older form.

A hook may be `async` or plain. What a middleware does not override costs nothing. Instances are shared by all
runs of an agent: what belongs to one run goes into run-local values or `run_scratch`.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import msgspec

from suture.kernel._contexts import ChatModelAgentContext, ChatModelAgentState, ModelContext, Outcome
from suture.kernel._model import Model
from suture.kernel._policies import ToolCallMiddleware
from suture.messages import M, ToolArgument, ToolContext, ToolResult
from suture.tools import AnyTool

__all__ = [
    "AgentMiddleware",
    "ChatModelAgentMiddleware",
    "EnhancedInvokableEndpoint",
    "EnhancedStreamableEndpoint",
    "InvokableEndpoint",
    "StreamableEndpoint",
]

T = TypeVar("T")
MaybeAwaitable: TypeAlias = T | Awaitable[T]


class InvokableEndpoint(Protocol):
    """A plain tool: JSON text in, text out.

    >>> async def shout(arguments: str, **options: object) -> str: return arguments.upper()
    >>> endpoint: InvokableEndpoint = shout
    """

    def __call__(self, arguments: str, /, *args: Any, **options: Any) -> Awaitable[str]:
        """Run the tool."""
        ...


class StreamableEndpoint(Protocol):
    """A streaming tool: JSON text in, pieces of text out.

    >>> async def count(arguments: str, **options: object): yield arguments
    >>> endpoint: StreamableEndpoint = count
    """

    def __call__(self, arguments: str, /, *args: Any, **options: Any) -> AsyncIterator[str]:
        """Run the tool."""
        ...


class EnhancedInvokableEndpoint(Protocol):
    """A multimodal tool: a `ToolArgument` in, a `ToolResult` out.

    >>> async def show(argument: ToolArgument, **options: object) -> ToolResult: return ToolResult()
    >>> endpoint: EnhancedInvokableEndpoint = show
    """

    def __call__(self, argument: ToolArgument, /, *args: Any, **options: Any) -> Awaitable[ToolResult]:
        """Run the tool."""
        ...


class EnhancedStreamableEndpoint(Protocol):
    """A multimodal streaming tool, and the form in which `wrap_tool_call` sees every tool.

    >>> async def show(argument: ToolArgument, **options: object): yield ToolResult()
    >>> endpoint: EnhancedStreamableEndpoint = show
    """

    def __call__(self, argument: ToolArgument, /, *args: Any, **options: Any) -> AsyncIterator[ToolResult]:
        """Run the tool."""
        ...


class ChatModelAgentMiddleware(Generic[M]):
    """The base of all middlewares. Override what you need.

    >>> class Loud(ChatModelAgentMiddleware):
    ...     def before_model_rewrite_state(self, state, model_context):
    ...         print(len(state.messages), "messages")
    """

    def before_agent(self, context: ChatModelAgentContext[M], /) -> MaybeAwaitable[ChatModelAgentContext[M] | None]:
        """Change what the run works with. Once per run, and again when it is resumed."""

    def before_model_rewrite_state(
        self, state: ChatModelAgentState[M], model_context: ModelContext, /
    ) -> MaybeAwaitable[ChatModelAgentState[M] | None]:
        """Change the state before a model turn; the change lasts."""

    def after_model_rewrite_state(
        self, state: ChatModelAgentState[M], model_context: ModelContext, /
    ) -> MaybeAwaitable[ChatModelAgentState[M] | None]:
        """Change the state after a model turn, the reply last in it; the change lasts, and decides what comes next."""

    def wrap_model(self, model: Model[M], model_context: ModelContext, /) -> MaybeAwaitable[Model[M]]:
        """Put something around the model, for one attempt. What is changed there is not kept."""
        del model_context
        return model

    def wrap_invokable_tool_call(
        self, endpoint: InvokableEndpoint, context: ToolContext, /
    ) -> MaybeAwaitable[InvokableEndpoint]:
        """Put something around one call of a plain tool."""
        del context
        return endpoint

    def wrap_streamable_tool_call(
        self, endpoint: StreamableEndpoint, context: ToolContext, /
    ) -> MaybeAwaitable[StreamableEndpoint]:
        """Put something around one call of a streaming tool."""
        del context
        return endpoint

    def wrap_enhanced_invokable_tool_call(
        self, endpoint: EnhancedInvokableEndpoint, context: ToolContext, /
    ) -> MaybeAwaitable[EnhancedInvokableEndpoint]:
        """Put something around one call of a multimodal tool."""
        del context
        return endpoint

    def wrap_enhanced_streamable_tool_call(
        self, endpoint: EnhancedStreamableEndpoint, context: ToolContext, /
    ) -> MaybeAwaitable[EnhancedStreamableEndpoint]:
        """Put something around one call of a multimodal streaming tool."""
        del context
        return endpoint

    def wrap_tool_call(
        self, endpoint: EnhancedStreamableEndpoint, context: ToolContext, /
    ) -> MaybeAwaitable[EnhancedStreamableEndpoint]:
        """Put something around one call of any tool, outside the wrappers for its kind."""
        del context
        return endpoint

    def after_agent(self, state: ChatModelAgentState[M], outcome: Outcome, /) -> MaybeAwaitable[None]:
        """Clean up: once per run or resume, however it ended. An error here never replaces the outcome."""


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
