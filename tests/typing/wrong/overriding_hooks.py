"""Wrong hooks and wrappers."""

from typing import Any

from suture import (
    AgenticMessage,
    ChatModelAgentContext,
    ChatModelAgentMiddleware,
    ChatModelAgentState,
    Message,
    Model,
    ModelContext,
    Outcome,
    ToolArgument,
    ToolCallRequest,
    ToolContext,
    ToolResult,
)
from suture.middleware import CallTool, EnhancedStreamableEndpoint, InvokableEndpoint, PatchToolCalls


class WrongTypes(ChatModelAgentMiddleware[Message]):
    def before_agent(self, context: ChatModelAgentState[Message]) -> None:  # wrong: it is given a context
        print(context)

    def before_model_rewrite_state(self, state: ChatModelAgentState[Message]) -> None:  # wrong: it is given two things
        print(state)

    async def wrap_model(self, model: Model[Message], model_context: ModelContext) -> str:  # wrong: it gives a model
        return f"{model.wire} {model_context.wire}"

    def after_agent(self, state: ChatModelAgentState[Message], outcome: Outcome) -> str:  # wrong: it gives nothing
        return f"{state} {outcome}"


class NoCoroutine(ChatModelAgentMiddleware[Any]):
    def wrap_tool_call(self, call: ToolCallRequest, proceed: CallTool) -> ToolResult:  # wrong: it must be async
        raise NotImplementedError


class WrongMessages(ChatModelAgentMiddleware[Message]):
    def after_model_rewrite_state(self, state: ChatModelAgentState[AgenticMessage], model_context: ModelContext) -> None:  # wrong: messages of another wire  # noqa: E501  # fmt: skip
        print(state, model_context)


class WrongWrappers(ChatModelAgentMiddleware[Any]):
    def wrap_invokable_tool_call(self, endpoint: InvokableEndpoint, context: ToolContext) -> InvokableEndpoint:
        def call(arguments: str, **options: Any) -> str:
            print(endpoint, options)
            return context.nam + arguments  # wrong: it is called name

        return call  # wrong: it cannot be awaited

    async def wrap_tool_call(self, call: ToolCallRequest, proceed: CallTool) -> ToolResult:
        result = await proceed(call.arguments)  # wrong: it takes the call
        call.arguments = "{}"  # wrong: a call does not change
        call.argument  # wrong: it is called arguments  # noqa: B018
        if result.is_error:
            return result.text  # wrong: a text is no result
        return proceed(call)  # wrong: it is awaited

    def wrap_enhanced_streamable_tool_call(
        self, endpoint: EnhancedStreamableEndpoint, context: ToolContext
    ) -> EnhancedStreamableEndpoint:
        async def call(argument: ToolArgument, **options: Any) -> ToolResult:
            async for result in endpoint(argument, **options):
                return result
            return ToolResult()

        return call  # wrong: it gives one result, not an iterator


def changed(state: ChatModelAgentState[Message], context: ChatModelAgentContext[Message]) -> None:
    state.messages = []  # wrong: a state does not change
    context.messages.append(Message.user("hi"))  # wrong: a history does not change
    context.tools["search"]  # wrong: tools come one after another, not by name
    ModelContext(turn="1")  # wrong: a text is no number


def one(name: str) -> str:
    return name


async def number(name: str, call_id: str) -> int:
    return len(name + call_id)


PatchToolCalls(generator=one)  # wrong: it is asked with a name and an id
PatchToolCalls(generator=number)  # wrong: it gives a number
PatchToolCalls(tail="drop")  # wrong: neither cancel nor keep
PatchToolCalls(orphans="keep")  # wrong: neither text nor drop
PatchToolCalls(is_placeholder=one)  # wrong: it gives a text
