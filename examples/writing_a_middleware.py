"""A middleware of one's own: how long everything took, in the order in which it happened.

Instances are shared by all runs of an agent. What belongs to one run is in its run-local values, which are stored
with the run, or in its scratch, which is not.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

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
    ToolArgument,
    ToolCall,
    ToolContext,
    ToolResult,
    get_run_local_value,
    replace,
    run_scratch,
    send_event,
    set_run_local_value,
    tool,
)
from suture.events import Custom
from suture.middleware import EnhancedStreamableEndpoint, closing
from suture.testing import ScriptedModel


class Timing(ChatModelAgentMiddleware[Message]):
    """Logs every model turn and tool call, tells the model to be brief, and sends the times as an event."""

    def before_agent(self, context: ChatModelAgentContext[Message], /) -> ChatModelAgentContext[Message]:
        # Once per run. What it changes holds for the whole run.
        print(f"before_agent: tools {', '.join(each.name for each in context.tools)}")
        return replace(context, instruction=f"{context.instruction} Be brief.")

    def before_model_rewrite_state(self, state: ChatModelAgentState[Message], model_context: ModelContext, /) -> None:
        # Before each turn. Returning nothing changes nothing.
        print(f"before turn {model_context.turn}: {len(state.messages)} messages")

    def wrap_model(self, model: Model[Message], model_context: ModelContext, /) -> Model[Message]:
        # Around one attempt. What it changes is for that attempt alone.
        return _TimedModel(model)

    def after_model_rewrite_state(self, state: ChatModelAgentState[Message], model_context: ModelContext, /) -> None:
        # After each turn: the reply is the last message.
        reply = state.messages[-1]
        print(f"after turn {model_context.turn}: {', '.join(call.name for call in reply.tool_calls) or reply.content}")

    def wrap_tool_call(
        self, endpoint: EnhancedStreamableEndpoint, context: ToolContext, /
    ) -> EnhancedStreamableEndpoint:
        # Around one call of a tool of any kind.
        async def call(argument: ToolArgument, /, **options: Any) -> AsyncIterator[ToolResult]:
            started = time.perf_counter()
            async with closing(endpoint(argument, **options)) as pieces:  # who iterates a stream closes it
                async for piece in pieces:
                    yield piece
            _note("tool", context.name, started)

        return call

    async def after_agent(self, state: ChatModelAgentState[Message], outcome: Outcome, /) -> None:
        # Once per run, however it ended.
        count, _ = get_run_local_value("timing.calls")
        print(f"after_agent: {outcome}, {count} timed")
        send_event(Custom("timing", run_scratch(_times)))


class _TimedModel(ModelWrapper[Message]):
    """A model around another one, with a clock."""

    async def stream(self, request: ModelRequest[Message], /) -> AsyncIterator[Delta | Message]:
        started = time.perf_counter()
        async with closing(self.inner.stream(request)) as pieces:
            async for piece in pieces:
                yield piece
        _note("model", request.message_id, started)


def _times() -> list[tuple[str, float]]:
    """Make the list of times that a run keeps."""
    return []


def _note(kind: str, name: str, started: float) -> None:
    took = time.perf_counter() - started
    run_scratch(_times).append((f"{kind} {name}", took))
    count, found = get_run_local_value("timing.calls")
    set_run_local_value("timing.calls", count + 1 if found else 1)
    print(f"  {kind} {name}: {took * 1000:.0f} ms")


@tool
async def tides(port: str) -> str:
    """Look up today's high tide."""
    await asyncio.sleep(0.02)
    return f"06:12 in {port}"


model = ScriptedModel(
    [Message.assistant(tool_calls=[ToolCall("call_1", "tides", '{"port": "Dover"}')]), "At 06:12 in Dover."]
)
agent = ChatModelAgent(
    name="harbour", instruction="You know the tides.", model=model, tools=[tides], middlewares=[Timing()]
)


async def main() -> None:
    agent.describe()
    async for event in agent.run("When is high tide?"):
        if isinstance(event, Custom):
            print(f"event {event.name}: {', '.join(name for name, _ in event.data)}")
    print(f"the model was told: {model.requests[0].instruction}")


if __name__ == "__main__":
    asyncio.run(main())
