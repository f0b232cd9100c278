"""pydantic-ai's `Agent`, over a model of our own: a message history, and the next prompt."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from _cases import PROMPT, TOOL, Step
from _guest import ANSWER, WITH, Guest, Run, Script
from _judge import Atom, Message
from pydantic_ai import (
    Agent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UsageLimits,
    UserPromptPart,
)
from pydantic_ai.models import Model

from suture.integrations.pydantic_ai import PatchToolCalls


class _Model(Model):
    script: Script
    sent: Any

    @property
    def model_name(self) -> str:
        return "fake"

    @property
    def system(self) -> str:
        return "fake"

    async def request(self, messages: Any, model_settings: Any, model_request_parameters: Any) -> ModelResponse:
        self.sent = messages
        return self.script.reply()


_model = _Model()
_unlimited = UsageLimits(request_limit=None)


async def weather(city: str) -> str:
    """Say how the weather is."""
    return _model.script.run(city)


def _call(name: str, city: str) -> ToolCallPart:
    return ToolCallPart(TOOL, json.dumps({"city": city}), name)


def _write(step: Step) -> ModelMessage:
    match step:
        case ("user", text):
            return ModelRequest(parts=[UserPromptPart(text)])
        case ("say", text):
            return ModelResponse(parts=[TextPart(text)])
        case ("result", name, text):
            return ModelRequest(parts=[ToolReturnPart(TOOL, text, name)])
        case (_, *calls):
            return ModelResponse(parts=[_call(*each) for each in calls])
    raise AssertionError(step)


def _read(message: ModelMessage) -> Message:
    role = "assistant" if isinstance(message, ModelResponse) else "user"
    return role, [*_atoms(message)]


def _atoms(message: ModelMessage) -> Iterator[Atom]:
    for part in message.parts:
        match part:
            case UserPromptPart() | TextPart():
                yield "text", str(part.content)
            case ToolCallPart():
                yield "call", part.tool_call_id, part.tool_name
            case ToolReturnPart():
                yield "result", part.tool_call_id, part.model_response_str()
            case _:
                raise AssertionError(part)


def _received() -> list[Message]:
    return [_read(message) for message in _model.sent]


def _begin(kind: str, script: Script, steps: Sequence[Step]) -> Run:
    calls = [ModelResponse(parts=[_call(f"new_{n}", f"city {n}")]) for n in range(script.steps)]
    script.replies = [*calls, ModelResponse(parts=[TextPart(ANSWER)])]
    agent = Agent(_model, tools=[weather], capabilities=[PatchToolCalls()] if kind == WITH else [])
    history = [_write(step) for step in steps]

    async def run() -> str:
        _model.script = script
        return (await agent.run(PROMPT, message_history=history, usage_limits=_unlimited)).output

    return run


GUESTS = (
    Guest(
        title="pydantic-ai `Agent`",
        package="pydantic-ai-slim",
        provider="Anthropic",
        begin=_begin,
        received=_received,
    ),
)
MEASURED = tuple(replace(guest, title="pydantic-ai") for guest in GUESTS)
