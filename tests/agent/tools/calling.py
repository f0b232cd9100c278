"""What the tests of this folder share: a model that calls tools, and what it is told of them."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from suture import ChatModelAgent, RunResult
from suture.testing import ScriptedModel
from tests.shapes.notation import Turn, call, turn
from tests.shapes.wires import read, render

WIRES = ("message", "agentic", "openai-chat")
on_each_wire = pytest.mark.parametrize("wire", WIRES)


def calls(*made: tuple[str, Any], text: str = "") -> Turn:
    """Return a turn with these calls, whose ids are c0, c1, …"""
    return turn(*(call(f"c{number}", name, given) for number, (name, given) in enumerate(made)), text=text)


def message(wire: str, step: Any) -> Any:
    (made,) = render(wire, [step]).messages
    return made


def model_that(*made: tuple[str, Any], wire: str = "message", then: Sequence[Any] = ("ok",)) -> ScriptedModel:
    """Return a model that makes these calls in one turn, and answers in the next."""
    return ScriptedModel([message(wire, calls(*made)), *then], wire)


def told(wire: str, messages: Sequence[Any]) -> list[tuple[str, str, str]]:
    """Return every result in a history: (result or failed, call id, text)."""
    events: list[Any] = [event for _, events in read(wire, messages) for event in events]
    return [event for event in events if event[0] in {"result", "failed"}]


def texts(model: ScriptedModel, number: int = -1) -> list[str]:
    """Return the results that the model was sent."""
    return [text for _, _, text in told(model.wire, list(model.requests[number].messages))]


def run(model: ScriptedModel, *tools: Any, **options: Any) -> RunResult[Any]:
    """Run an agent with these tools to its end."""
    choices = {key: options.pop(key) for key in ("deps", "checkpoint_id", "session", "tool_options") if key in options}

    async def at_once() -> RunResult[Any]:
        return await ChatModelAgent(model=model, tools=tools, **options).run("hi", **choices)

    return asyncio.run(at_once())
