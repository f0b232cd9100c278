"""agent-framework's `Agent`, over a chat client of our own: a history as messages, the next prompt at its end."""

import os

os.environ["ENABLE_INSTRUMENTATION"] = "false"
os.environ["AGENT_FRAMEWORK_USER_AGENT_DISABLED"] = "true"

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from _cases import PROMPT, TOOL, Step
from _guest import ANSWER, WITH, Guest, Run, Script
from _judge import Atom
from _judge import Message as Sent
from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
    tool,
)
from agent_framework.observability import ChatTelemetryLayer

from suture.integrations.agent_framework import wrap


class _Client(FunctionInvocationLayer, ChatMiddlewareLayer, ChatTelemetryLayer, BaseChatClient):
    script: ClassVar[Script]  # of the class: the wrapped client is a copy
    sent: ClassVar[Any]

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Any:
        _Client.sent = messages
        return self._answer()

    async def _answer(self) -> ChatResponse:
        return self.script.reply()


_client = _Client(function_invocation_configuration={"max_iterations": 1_000_000})


@tool(approval_mode="never_require")
async def weather(city: str) -> str:
    """Say how the weather is."""
    return _Client.script.run(city)


def _call(name: str, city: str) -> Content:
    return Content.from_function_call(name, TOOL, arguments=json.dumps({"city": city}))


def _write(step: Step) -> Message:
    match step:
        case ("user", text):
            return Message("user", [text])
        case ("say", text):
            return Message("assistant", [text])
        case ("result", name, text):
            return Message("tool", [Content.from_function_result(name, result=text)])
        case (_, *calls):
            return Message("assistant", [_call(*each) for each in calls])
    raise AssertionError(step)


def _read(message: Message) -> Sent:
    return str(message.role), [*_atoms(message)]


def _atoms(message: Message) -> Iterator[Atom]:
    for content in message.contents:
        match content.type:
            case "function_call":
                yield "call", content.call_id, content.name
            case "function_result":
                yield "result", content.call_id, str(content.result)
            case _:
                yield "text", content.text


def _received() -> list[Sent]:
    return [_read(message) for message in _Client.sent]


def _begin(kind: str, script: Script, steps: Sequence[Step]) -> Run:
    calls = [Message("assistant", [_call(f"new_{n}", f"city {n}")]) for n in range(script.steps)]
    script.replies = [ChatResponse(messages=[message]) for message in [*calls, Message("assistant", [ANSWER])]]
    agent = Agent(wrap(_client) if kind == WITH else _client, name="fake", tools=[weather])
    given = [*map(_write, steps), Message("user", [PROMPT])]

    async def run() -> str:
        _Client.script = script
        return (await agent.run(given)).messages[-1].text

    return run


GUESTS = (
    Guest(
        title="agent-framework `Agent`",
        package="agent-framework-core",
        provider="Anthropic",
        begin=_begin,
        received=_received,
    ),
)
MEASURED = tuple(replace(guest, title="agent-framework") for guest in GUESTS)
