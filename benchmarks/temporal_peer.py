"""pydantic-ai's agent on Temporal, as its documentation has it; a module of its own, for the sandbox of workflows."""

from typing import Any

from pydantic_ai import Agent
from pydantic_ai.durable_exec.temporal import PydanticAIWorkflow, TemporalDurability
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import UsageLimits
from temporalio import workflow


def _reply(messages: list[Any], _: Any) -> ModelResponse:
    calls, size = map(int, str(messages[0].parts[-1].content).split())
    taken = sum(isinstance(message, ModelResponse) for message in messages)
    part = TextPart("done") if taken == calls else ToolCallPart("read", {"size": size}, f"c{taken}")
    return ModelResponse(parts=[part])


agent = Agent(FunctionModel(_reply), name="peer", capabilities=[TemporalDurability()])


@agent.tool_plain
async def read(size: int) -> str:
    """Return a page."""
    return "x" * size


@workflow.defn
class PeerWorkflow(PydanticAIWorkflow):
    """One run of the agent: the input says how many calls, of how many bytes."""

    __pydantic_ai_agents__ = [agent]  # noqa: RUF012 - as their documentation has it

    @workflow.run
    async def run(self, prompt: str) -> str:
        """Run the agent."""
        return (await agent.run(prompt, usage_limits=UsageLimits(request_limit=None))).output
