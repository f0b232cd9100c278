"""Sessions, and models that keep what they are sent."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.events import Event
from google.adk.models import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions import BaseSessionService, InMemorySessionService, Session
from google.genai import types
from pydantic import Field, PrivateAttr

from tests.guests.releases import since

APP, USER, SESSION, AGENT = "bank", "ann", "talk", "teller"
Atom = tuple[Any, ...]
"""What one part says: ("text", text), ("call", name, id) or ("answer", name, id, response)."""


class Recorder(BaseLlm):
    """A model that gives its replies one after the other, and keeps the requests."""

    model: str = "gemini-recorder"
    replies: list[types.Content] = Field(default_factory=list)
    _requests: list[list[types.Content]] = PrivateAttr(default_factory=list)
    _streamed: list[bool] = PrivateAttr(default_factory=list)

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self._requests.append([content.model_copy() for content in llm_request.contents])
        self._streamed.append(stream)
        reply = self.replies.pop(0) if self.replies else said("Done.")
        if stream:
            yield LlmResponse(content=reply, partial=True)
        yield LlmResponse(content=reply, partial=False if stream else None)

    @property
    def requests(self) -> list[list[tuple[str, list[Atom]]]]:
        return [[told(content) for content in contents] for contents in self._requests]

    @property
    def raw(self) -> list[list[types.Content]]:
        return self._requests

    @property
    def streamed(self) -> list[bool]:
        return self._streamed


def told(content: types.Content) -> tuple[str, list[Atom]]:
    """Return who speaks, and what each part says."""
    return content.role or "", [_atom(part) for part in content.parts or []]


drops_open_calls = since("google-adk", "2.10", "a request without the calls that are open")


def _atom(part: types.Part) -> Atom:
    if part.function_call:
        return "call", part.function_call.name, part.function_call.id
    if part.function_response:
        answer = part.function_response
        return "answer", answer.name, answer.id, answer.response
    return "text", part.text


def said(text: str, role: str = "model") -> types.Content:
    return types.Content(role=role, parts=[types.Part(text=text)])


def asks(*ids: str | None, name: str = "pay") -> types.Content:
    """Return a turn with calls."""
    return types.Content(
        role="model",
        parts=[types.Part(function_call=types.FunctionCall(id=each, name=name, args={"to": "Bo"})) for each in ids],
    )


def answers(name: str = "pay", **responses: Any) -> types.Content:
    """Return the answers to calls, by their ids."""
    return types.Content(
        role="user",
        parts=[
            types.Part(function_response=types.FunctionResponse(id=each, name=name, response={"result": response}))
            for each, response in responses.items()
        ],
    )


def canceled(call_id: str, name: str = "pay") -> dict[str, str]:
    text = (
        f"Tool call {name} with id {call_id} has no recorded result - it may or may not have run. "
        "Check before running it again."
    )
    return {"error": text}


def unknown(call_id: str, name: str = "pay") -> dict[str, str]:
    text = (
        f"Tool call {name}{f' with id {call_id}' * bool(call_id)} has no recorded result - it may or may not have run."
        " Check before running it again."
    )
    return {"error": text}


def event(content: types.Content | None, author: str = AGENT, invocation: str = "before", **fields: Any) -> Event:
    """Return an event; what a user says in it is the user's, what answers a call the agent's."""
    is_users = (
        content is not None and content.role == "user" and not any(p.function_response for p in content.parts or ())
    )
    return Event(author="user" if is_users else author, invocation_id=invocation, content=content, **fields)


async def keep(service: BaseSessionService, events: Iterable[Event]) -> Session:
    """Make the session that has these events."""
    session = await service.create_session(app_name=APP, user_id=USER, session_id=SESSION)
    for each in events:
        await service.append_event(session, each)
    return session


async def stored(service: BaseSessionService) -> list[Event]:
    session = await service.get_session(app_name=APP, user_id=USER, session_id=SESSION)
    assert session is not None
    return session.events


def runner(
    agent: LlmAgent | Any, service: BaseSessionService, plugins: Sequence[BasePlugin] = (), **settings: Any
) -> Runner:
    return Runner(app=App(name=APP, root_agent=agent, plugins=list(plugins), **settings), session_service=service)


async def run(with_runner: Runner, message: str | types.Content | None = "Go on.", **settings: Any) -> list[Event]:
    """Send a message, and return the events that come back."""
    content = said(message, "user") if isinstance(message, str) else message
    stream = with_runner.run_async(user_id=USER, session_id=SESSION, new_message=content, **settings)
    return [each async for each in stream]


def sent(events: Iterable[Event], plugins: Sequence[BasePlugin], make: Callable[[Recorder], Any] | None = None) -> Any:
    """Return what the model is sent when a message comes in after these events."""

    async def main() -> list[tuple[str, list[Atom]]]:
        model, service = Recorder(), InMemorySessionService()
        await keep(service, events)
        agent = make(model) if make else LlmAgent(name=AGENT, model=model)
        await run(runner(agent, service, plugins))
        return model.requests[-1]

    return asyncio.run(main())
