"""google-adk's `LlmAgent` in a `Runner`, with a session service."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.apps import App
from google.adk.events import Event
from google.adk.models import Gemini
from google.adk.models.anthropic_llm import AnthropicLlm
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.tools.function_tool import FunctionTool
from google.genai import types

from suture.integrations.google_adk import PatchToolCallsPlugin
from tests.guests.scenarios.clients import anthropic_client, close, google_client
from tests.guests.scenarios.talking import Setting
from tests.histories import Step, write

APP, USER = "bank", "ann"


class Cutting(BasePlugin):
    """Sends the last content alone."""

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        llm_request.contents[:-1] = []


def said(*parts: types.Part) -> types.Content:
    return types.Content(role="user", parts=list(parts))


class AdkTalk:
    """A session of an app."""

    apis = ("gemini", "messages")

    def __init__(self, setting: Setting, name: str = "talk", **more: Any) -> None:
        self.setting, self.name = setting, name
        self.client: Any = (google_client if setting.api == "gemini" else anthropic_client)(setting.url)
        if setting.api == "gemini":
            model: Any = Gemini(model="gemini-3-pro")
            vars(model)["api_client"] = self.client
        else:
            model = AnthropicLlm(model="claude", client=self.client)
        tools: list[Any] = [
            FunctionTool(each, require_confirmation=setting.asks and each.__name__ == "pay")
            for each in setting.shop.tools()
        ]
        plugins: list[Any] = [Cutting("cutting")] if setting.cuts else []
        if setting.ours:
            plugins.append(PatchToolCallsPlugin(**setting.options))
        agent = LlmAgent(name="teller", model=model, tools=tools, **more)
        folder = setting.folder
        self.service: Any = SqliteSessionService(str(folder / "sessions.db")) if folder else InMemorySessionService()
        self.runner = Runner(app=App(name=APP, root_agent=agent, plugins=plugins), session_service=self.service)

    async def _session(self) -> Any:
        named = {"app_name": APP, "user_id": USER, "session_id": self.name}
        return await self.service.get_session(**named) or await self.service.create_session(**named)

    async def _run(self, content: types.Content, **settings: Any) -> AsyncGenerator[Event, None]:
        await self._session()
        running = self.runner.run_async(user_id=USER, session_id=self.name, new_message=content, **settings)
        async with aclosing(running) as events:
            async for event in events:
                yield event

    async def _answer(self, content: types.Content) -> str:
        text = ""
        async for event in self._run(content):
            text = "".join(part.text or "" for part in (event.content and event.content.parts) or ()) or text
        return text

    async def say(self, text: str, history: Sequence[Step] = ()) -> str:
        session = await self._session()
        for each in write("gemini", history):
            content = types.Content.model_validate(each)
            author = "user" if content.role == "user" and (content.parts or [])[0].text else "teller"
            await self.service.append_event(session, Event(author=author, invocation_id="before", content=content))
        return await self._answer(said(types.Part(text=text)))

    async def events(self, text: str) -> AsyncGenerator[Any, None]:
        config = RunConfig.model_validate({"streaming_mode": "sse"})
        async with aclosing(self._run(said(types.Part(text=text)), run_config=config)) as events:
            async for event in events:
                yield event

    async def decide(self, *, approve: bool) -> str:
        events = (await self._session()).events
        calls = [call for event in events for call in event.get_function_calls()]
        [request] = [call for call in calls if call.name == "adk_request_confirmation"]
        response = types.FunctionResponse(id=request.id, name=request.name, response={"confirmed": approve})
        return await self._answer(said(types.Part(function_response=response)))

    async def settle(self) -> None: ...

    async def close(self) -> None:
        await self.runner.close()
        await close(self.client)
