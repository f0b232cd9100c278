"""A middleware with every hook as a plain function, typed for `Message`."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, assert_type

from suture import (
    ChatModelAgent,
    ChatModelAgentContext,
    ChatModelAgentMiddleware,
    ChatModelAgentState,
    Delta,
    Message,
    Model,
    ModelContext,
    ModelRequest,
    ModelWrapper,
    Outcome,
    Tool,
    ToolArgument,
    ToolCall,
    ToolCallRequest,
    ToolContext,
    ToolInfo,
    ToolResult,
    replace,
    tool,
)
from suture.messages import TextPart
from suture.middleware import (
    CallTool,
    EnhancedInvokableEndpoint,
    EnhancedStreamableEndpoint,
    InvokableEndpoint,
    PatchToolCalls,
    StreamableEndpoint,
    closing,
)
from suture.testing import ScriptedModel


@tool
async def look(query: str) -> str:
    """Look something up."""
    return query


class Quiet(ModelWrapper[Message]):
    """A model that is told to be brief."""

    async def stream(self, request: ModelRequest[Message]) -> AsyncIterator[Delta | Message]:
        brief = replace(request, instruction=f"{request.instruction} Be brief.")
        async with closing(self.inner.stream(brief)) as stream:
            async for item in stream:
                assert_type(item, Delta | Message)
                yield item


class Everything(ChatModelAgentMiddleware[Message]):
    def __init__(self) -> None:
        self.seen: list[str] = []

    def before_agent(self, context: ChatModelAgentContext[Message]) -> ChatModelAgentContext[Message]:
        self.seen.append("before_agent")
        assert_type(context.tools, tuple[Tool[..., Any], ...])
        assert_type(context.return_directly, frozenset[str])
        return replace(
            context,
            instruction=context.instruction + " Cite.",
            tools=(*context.tools, look),
            return_directly=context.return_directly | {"exit"},
        )

    def before_model_rewrite_state(
        self, state: ChatModelAgentState[Message], model_context: ModelContext
    ) -> ChatModelAgentState[Message]:
        self.seen.append("before_model")
        assert_type(state.tool_infos, tuple[ToolInfo, ...])
        assert_type(model_context.turn, int)
        kept = [message for message in state.messages if message.content != "ignore this"]
        return replace(state, messages=kept)

    def after_model_rewrite_state(
        self, state: ChatModelAgentState[Message], model_context: ModelContext
    ) -> ChatModelAgentState[Message] | None:
        self.seen.append("after_model")
        reply = state.messages[-1]
        assert_type(reply, Message)
        if reply.tool_calls:
            return None
        return replace(state, messages=[*state.messages[:-1], replace(reply, content=reply.content.strip())])

    def wrap_model(self, model: Model[Message], model_context: ModelContext) -> Model[Message]:
        self.seen.append("wrap_model")
        return Quiet(model)

    def wrap_invokable_tool_call(self, endpoint: InvokableEndpoint, context: ToolContext) -> InvokableEndpoint:
        async def call(arguments: str, **options: Any) -> str:
            self.seen.append(context.name)
            result = await endpoint(arguments, **options)
            assert_type(result, str)
            return result.upper()

        return call

    def wrap_streamable_tool_call(self, endpoint: StreamableEndpoint, context: ToolContext) -> StreamableEndpoint:
        async def call(arguments: str, **options: Any) -> AsyncIterator[str]:
            async with closing(endpoint(arguments, **options)) as pieces:
                async for piece in pieces:
                    assert_type(piece, str)
                    yield piece.upper()

        return call

    def wrap_enhanced_invokable_tool_call(
        self, endpoint: EnhancedInvokableEndpoint, context: ToolContext
    ) -> EnhancedInvokableEndpoint:
        async def call(argument: ToolArgument, **options: Any) -> ToolResult:
            result = await endpoint(argument, **options)
            assert_type(result, ToolResult)
            return replace(result, extra={**result.extra, "call": context.call_id})

        return call

    def wrap_enhanced_streamable_tool_call(
        self, endpoint: EnhancedStreamableEndpoint, context: ToolContext
    ) -> EnhancedStreamableEndpoint:
        async def call(argument: ToolArgument, **options: Any) -> AsyncIterator[ToolResult]:
            async for piece in endpoint(argument, **options):
                assert_type(piece, ToolResult)
                yield piece

        return call

    async def wrap_tool_call(self, call: ToolCallRequest, proceed: CallTool) -> ToolResult:
        if call.name == "forbidden":
            return ToolResult([TextPart("You may not.")], is_error=True)
        return await proceed(call)

    def after_agent(self, state: ChatModelAgentState[Message], outcome: Outcome) -> None:
        self.seen.append(f"after_agent {outcome}")


async def main() -> None:
    calls = [ToolCall("1", "look", '{"query": "tides"}'), ToolCall("2", "forbidden", "{}")]
    everything = Everything()
    agent = ChatModelAgent(
        name="worker",
        model=ScriptedModel([Message.assistant(tool_calls=calls), " done "]),
        middlewares=[PatchToolCalls(), everything],
    )
    result = await agent.run("work")
    assert result.output == "done"
    assert everything.seen[-1] == "after_agent finished"


if __name__ == "__main__":
    asyncio.run(main())
