"""A middleware of your own: how long everything took, in the order in which it happened.

Instances are shared by all runs of an agent. What belongs to one run is in `current_run()`: in `values`, which are
stored with the run, or in `cache`, which is not.
"""

import asyncio
import time

from suture import (
    ChatModelAgent,
    ChatModelAgentContext,
    ChatModelAgentMiddleware,
    ChatModelAgentState,
    Message,
    ModelContext,
    ModelRequest,
    Outcome,
    ToolCall,
    ToolCallRequest,
    ToolResult,
    current_run,
    replace,
    tool,
)
from suture.events import Custom
from suture.middleware import AskModel, CallTool
from suture.testing import ScriptedModel


class Timing(ChatModelAgentMiddleware[Message]):
    """Logs every model turn and tool call, tells the model to be brief, and sends the times as an event."""

    def before_agent(self, context: ChatModelAgentContext[Message]) -> ChatModelAgentContext[Message]:
        # Once per run. What it changes applies to the whole run.
        print(f"before_agent: tools {', '.join(each.name for each in context.tools)}")
        return replace(context, instruction=f"{context.instruction} Be brief.")

    def before_model_rewrite_state(self, state: ChatModelAgentState[Message], model_context: ModelContext) -> None:
        # Before each turn. Returning nothing changes nothing.
        current_run().values["timing.turns"] = model_context.turn
        print(f"before turn {model_context.turn}: {len(state.messages)} messages")

    async def wrap_model_call(self, request: ModelRequest[Message], proceed: AskModel) -> Message:
        # Around one attempt. A changed request is for that attempt only.
        started = time.perf_counter()
        reply = await proceed(request)
        _note("model", request.message_id, started)
        return reply

    def after_model_rewrite_state(self, state: ChatModelAgentState[Message], model_context: ModelContext) -> None:
        # After each turn: the reply is the last message.
        reply = state.messages[-1]
        print(f"after turn {model_context.turn}: {', '.join(call.name for call in reply.tool_calls) or reply.content}")

    async def wrap_tool_call(self, call: ToolCallRequest, proceed: CallTool) -> ToolResult:
        # Around one call of any tool.
        started = time.perf_counter()
        result = await proceed(call)
        _note("tool", call.name, started)
        return result

    async def after_agent(self, state: ChatModelAgentState[Message], outcome: Outcome) -> None:
        # Once per run, however it ended.
        run = current_run()
        print(f"after_agent: {outcome}, {run.values['timing.turns']} turns, {len(run.cache['timing'])} timed")
        run.send(Custom("timing", run.cache["timing"]))


def _note(kind: str, name: str, started: float) -> None:
    took = time.perf_counter() - started
    # Not in `values`: calls of one turn run side by side, and each sees only the values that it has set itself.
    current_run().cache.setdefault("timing", []).append((f"{kind} {name}", took))
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
    print(agent.describe())
    async with agent.stream("When is high tide?") as run:
        async for event in run:
            if isinstance(event, Custom):
                print(f"event {event.name}: {', '.join(name for name, _ in event.data)}")
    print(f"the model was told: {model.requests[0].instruction}")


if __name__ == "__main__":
    asyncio.run(main())
