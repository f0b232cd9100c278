"""What an agent says about itself."""

from typing import Any

import pytest

from suture import ChatModelAgent, ChatModelAgentMiddleware, Compaction, tool
from suture.middleware import ToolReduction
from suture.stores import MemoryBackend
from suture.testing import ScriptedModel


class Base(ChatModelAgentMiddleware[Any]):
    def wrap_invokable_tool_call(self, endpoint: Any, context: Any) -> Any:
        return endpoint


class Alpha(Base):
    pass


class Zeta(Base):
    async def wrap_tool_call(self, call: Any, proceed: Any) -> Any:
        return await proceed(call)


@tool
async def look() -> str:
    """Look."""
    return "seen"


def test_wrappers_of_tool_calls_are_described_in_the_order_in_which_they_run():
    agent = ChatModelAgent(model=ScriptedModel([]), tools=[look], middlewares=[Zeta(), Alpha()])
    ring = "Zeta.wrap_tool_call > Zeta.wrap_invokable_tool_call > Alpha.wrap_invokable_tool_call"
    assert f"event sender > {ring} > callbacks > tool" in agent.describe()


@pytest.mark.parametrize(
    "middlewares",
    [
        [ToolReduction(MemoryBackend())],
        [Compaction(max_tokens=9_000)],
        [ToolReduction(MemoryBackend()), Compaction(max_tokens=9_000)],
        [Compaction(max_tokens=9_000), ToolReduction(MemoryBackend())],
    ],
    ids=["reduction", "compaction", "both", "the other way round"],
)
@pytest.mark.parametrize("name", ["look", "read_file"])
def test_the_default_repair_and_the_tools_that_a_middleware_adds_are_described(middlewares: Any, name: str):
    async def read() -> str:
        """Read."""
        return "read"

    model = ScriptedModel(["done"])
    agent = ChatModelAgent(model=model, tools=[tool(name=name)(read)], middlewares=middlewares)
    assert "model turn: PatchToolCalls.before_model_rewrite_state > " in agent.describe()
    agent.run_sync("go")
    told = ", ".join(info.name for info in model.requests[0].tool_infos)
    assert agent.describe().endswith(f"tools:      {told}")
