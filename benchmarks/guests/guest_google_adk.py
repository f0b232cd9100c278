"""google-adk's `LlmAgent`, over a model of our own: a session that holds the history, and the next message."""

import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import replace
from typing import Any

from _cases import PROMPT, TOOL, Step
from _guest import ANSWER, WITH, Guest, Run, Script
from _judge import Atom, Message
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.apps import App
from google.adk.events import Event
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types

from suture.integrations.google_adk import PatchToolCallsPlugin


class _Model(BaseLlm):
    script: Any = None
    sent: Any = None

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: FBT001, FBT002
    ) -> AsyncGenerator[LlmResponse, None]:
        self.sent = llm_request.contents
        yield self.script.reply()


_model = _Model(model="gemini-fake")


async def weather(city: str) -> dict[str, str]:
    """Say how the weather is."""
    return {"result": _model.script.run(city)}


def _text(role: str, text: str) -> types.Content:
    return types.Content(role=role, parts=[types.Part(text=text)])


def _calls(*calls: tuple[str, str]) -> types.Content:
    made = [types.FunctionCall(id=name, name=TOOL, args={"city": city}) for name, city in calls]
    return types.Content(role="model", parts=[types.Part(function_call=each) for each in made])


def _write(step: Step) -> types.Content:
    match step:
        case ("user", text):
            return _text("user", text)
        case ("say", text):
            return _text("model", text)
        case ("result", name, text):
            response = types.FunctionResponse(id=name, name=TOOL, response={"result": text})
            return types.Content(role="user", parts=[types.Part(function_response=response)])
        case (_, *calls):
            return _calls(*calls)
    raise AssertionError(step)


def _read(content: types.Content) -> Message:
    return "assistant" if content.role == "model" else "user", [*_atoms(content)]


def _atoms(content: types.Content) -> Iterator[Atom]:
    for part in content.parts or ():
        if part.function_call:
            yield "call", part.function_call.id, part.function_call.name
        elif part.function_response:
            response = part.function_response.response or {}
            text = response["result"] if list(response) == ["result"] else json.dumps(response)
            yield "result", part.function_response.id, text
        else:
            yield "text", part.text or ""


def _received() -> list[Message]:
    return [_read(content) for content in _model.sent]


def _begin(kind: str, script: Script, steps: Sequence[Step]) -> Run:
    calls = [LlmResponse(content=_calls((f"new_{n}", f"city {n}"))) for n in range(script.steps)]
    script.replies = [*calls, LlmResponse(content=_text("model", ANSWER))]
    agent = LlmAgent(name="fake", model=_model, tools=[weather])
    plugins: list[Any] = [PatchToolCallsPlugin()] if kind == WITH else []
    runner = InMemoryRunner(app=App(name="fake", root_agent=agent, plugins=plugins))
    events = [
        Event(author="user" if step[0] == "user" else "fake", invocation_id="earlier", content=_write(step))
        for step in steps
    ]

    async def run() -> str:
        _model.script = script
        session = await runner.session_service.create_session(app_name="fake", user_id="user")
        for event in events:
            await runner.session_service.append_event(session, event)
        told = ""
        given = {"new_message": _text("user", PROMPT), "run_config": RunConfig(max_llm_calls=1_000_000)}
        async for event in runner.run_async(user_id="user", session_id=session.id, **given):
            parts = event.content.parts if event.content else None
            told = (parts[0].text if parts else None) or ""
        return told

    return run


GUESTS = (
    Guest(
        title="google-adk `LlmAgent`, session",
        package="google-adk",
        provider="Gemini",
        begin=_begin,
        received=_received,
    ),
)
MEASURED = tuple(replace(guest, title="google-adk") for guest in GUESTS)
