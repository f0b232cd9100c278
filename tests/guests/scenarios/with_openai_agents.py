"""The OpenAI Agents SDK's `Runner`, with a session."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    SQLiteSession,
    function_tool,
)
from agents.run import CallModelData, ModelInputData

from suture.integrations.openai_agents import PatchedSession, PatchToolCalls
from tests.guests.scenarios.clients import close, openai_client
from tests.guests.scenarios.talking import Setting
from tests.histories import Step
from tests.histories import write as write_items


def cut(data: CallModelData[Any]) -> ModelInputData:
    """Keep the last item alone."""
    return ModelInputData(input=data.model_data.input[-1:], instructions=data.model_data.instructions)


class AgentsTalk:
    """A session."""

    apis = ("chat", "responses")

    def __init__(self, setting: Setting, name: str = "harbour", **more: Any) -> None:
        self.setting = setting
        self.client = openai_client(setting.url)
        kind = OpenAIChatCompletionsModel if setting.api == "chat" else OpenAIResponsesModel
        tools = [
            function_tool(each, needs_approval=setting.asks and each.__name__ == "pay", failure_error_function=None)
            for each in setting.shop.tools()
        ]
        model = kind(model="gpt", openai_client=self.client)
        self.agent: Agent[Any] = Agent(name="harbour", model=model, tools=[*tools], **more)
        self.store = SQLiteSession(name, setting.folder / "sessions.db" if setting.folder else ":memory:")
        first = cut if setting.cuts else None
        self.filter: Any = PatchToolCalls(after=first, stateful=False, **setting.options) if setting.ours else first
        self.session: Any = PatchedSession(self.store, **setting.options) if setting.ours else self.store
        self.state: Any = None

    @property
    def given(self) -> dict[str, Any]:
        config = RunConfig(call_model_input_filter=self.filter, tracing_disabled=True)
        return {"session": self.session, "run_config": config}

    async def say(self, text: str, history: Sequence[Step] = ()) -> str:
        if history:
            await self.store.add_items(write_items("openai-responses", history))
        result = await Runner.run(self.agent, text, **self.given)
        if result.interruptions:
            self.state = result.to_state()
        return result.final_output

    async def events(self, text: str) -> AsyncGenerator[Any, None]:
        result = Runner.run_streamed(self.agent, text, **self.given)
        try:
            async for event in result.stream_events():
                yield event
        finally:
            result.cancel()

    async def decide(self, *, approve: bool) -> str:
        [call] = self.state.get_interruptions()
        (self.state.approve if approve else self.state.reject)(call)
        return (await Runner.run(self.agent, self.state, **self.given)).final_output

    async def settle(self) -> None: ...

    async def close(self) -> None:
        self.store.close()
        await close(self.client)
