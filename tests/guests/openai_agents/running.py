"""Runs of real agents with scripted models, in each way that the SDK has. Nothing is traced."""

import asyncio
from collections.abc import Sequence
from typing import Any

from agents import Agent, RunConfig, Runner, Session, SessionSettings, SQLiteSession

from tests.guests.openai_agents.scripted import ScriptedModel, assistant_message
from tests.guests.openai_agents.written import Item

WAYS = ("run", "run_streamed", "run_sync")


def scripted(*steps: Sequence[Any]) -> ScriptedModel:
    """Return a model that gives the outputs `steps`, then says "done"."""
    return ScriptedModel([*steps, [assistant_message("done")]])


async def arun(agent: Agent[Any], given: Any, way: str = "run", *, model_filter: Any = None, **choices: Any) -> Any:
    """Run `agent` and return the result."""
    config = RunConfig(tracing_disabled=True, call_model_input_filter=model_filter, **choices.pop("config", {}))
    if way == "run":
        return await Runner.run(agent, given, run_config=config, **choices)
    result = Runner.run_streamed(agent, given, run_config=config, **choices)
    async for _ in result.stream_events():
        pass
    return result


def run(agent: Agent[Any], given: Any, way: str = "run", *, model_filter: Any = None, **choices: Any) -> Any:
    """Run `agent` from a program that is not async, and return the result."""
    if way != "run_sync":
        return asyncio.run(arun(agent, given, way, model_filter=model_filter, **choices))
    config = RunConfig(tracing_disabled=True, call_model_input_filter=model_filter, **choices.pop("config", {}))
    loop = asyncio.new_event_loop()  # the SDK would make one, and leave it open
    asyncio.set_event_loop(loop)
    try:
        return Runner.run_sync(agent, given, run_config=config, **choices)
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def sent(model: ScriptedModel, step: int = -1) -> list[Item]:
    """Return what the model was sent with one of its calls, the last if not said."""
    items = model.inputs[step]
    assert isinstance(items, list)
    return items


class Shelf:
    """A session of one's own: the four methods of the protocol, and a list."""

    session_settings: SessionSettings | None = None

    def __init__(self, items: Sequence[Item] = ()) -> None:
        self.session_id = "shelf"
        self.items: list[Any] = list(items)

    async def get_items(self, limit: int | None = None) -> list[Any]:
        return self.items if limit is None else self.items[-limit:] if limit else []

    async def add_items(self, items: list[Any]) -> None:
        self.items.extend(items)

    async def pop_item(self) -> Any:
        return self.items.pop() if self.items else None

    async def clear_session(self) -> None:
        self.items.clear()


def in_memory(items: Sequence[Any] = (), kind: type[SQLiteSession] = SQLiteSession) -> SQLiteSession:
    """Return a session of the SDK's own that holds `items`."""
    session = kind("conversation")
    asyncio.run(session.add_items(list(items)))
    return session


def stored(session: Session) -> list[Any]:
    """Return what a session holds."""
    return asyncio.run(session.get_items())
