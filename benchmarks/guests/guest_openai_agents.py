"""The OpenAI Agents SDK, over a model of our own: a history as the input list, and as a session."""

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

from _cases import PROMPT, TOOL, Step
from _guest import ANSWER, WITH, Guest, Run, Script
from _judge import Message
from _responses import read_item, write_items
from agents import Agent, Model, ModelResponse, RunConfig, Runner, SQLiteSession, Usage, function_tool
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from suture.integrations.openai_agents import PatchedSession, PatchToolCalls


class _Model(Model):
    script: Script
    sent: Any

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:  # noqa: A002
        self.sent = input
        return self.script.reply()

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


_model = _Model()


@function_tool
async def weather(city: str) -> str:
    """Say how the weather is."""
    return _model.script.run(city)


def _received() -> list[Message]:
    return [read_item(item) for item in _model.sent]


def _replies(steps: int) -> list[ModelResponse]:
    def reply(*output: Any) -> ModelResponse:
        return ModelResponse(output=[*output], usage=Usage(), response_id=None)

    def call(n: int) -> ResponseFunctionToolCall:
        arguments = json.dumps({"city": f"city {n}"})
        return ResponseFunctionToolCall(call_id=f"new_{n}", name=TOOL, arguments=arguments, type="function_call")

    said = ResponseOutputText(text=ANSWER, type="output_text", annotations=[], logprobs=[])
    message = ResponseOutputMessage(id="msg_1", type="message", role="assistant", status="completed", content=[said])
    return [*(reply(call(n)) for n in range(steps)), reply(message)]


def _begin_with_list(kind: str, script: Script, steps: Sequence[Step]) -> Run:
    script.replies = _replies(script.steps)
    agent = Agent("fake", model=_model, tools=[weather])
    config = RunConfig(tracing_disabled=True, call_model_input_filter=PatchToolCalls() if kind == WITH else None)
    given: Any = [item for step in (*steps, ("user", PROMPT)) for item in write_items(step)]

    async def run() -> str:
        _model.script = script
        return (await Runner.run(agent, given, run_config=config, max_turns=1_000_000)).final_output

    return run


def _begin_with_session(kind: str, script: Script, steps: Sequence[Step]) -> Run:
    script.replies = _replies(script.steps)
    agent = Agent("fake", model=_model, tools=[weather])
    config = RunConfig(tracing_disabled=True)

    async def run() -> str:
        _model.script = script
        session: Any = SQLiteSession("conversation")
        await session.add_items([item for step in steps for item in write_items(step)])
        taken = PatchedSession(session) if kind == WITH else session
        answer = await Runner.run(agent, PROMPT, session=taken, run_config=config, max_turns=1_000_000)
        session.close()
        return answer.final_output

    return run


_guest = partial(Guest, package="openai-agents", provider="OpenAI, Responses", received=_received)
GUESTS = (
    _guest(title="OpenAI Agents, input list", begin=_begin_with_list),
    _guest(title="OpenAI Agents, session", begin=_begin_with_session),
)
MEASURED = (
    _guest(title="openai-agents", begin=_begin_with_list),
    _guest(title="openai-agents, session", begin=_begin_with_session),
)
