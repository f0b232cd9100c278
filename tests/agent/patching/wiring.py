"""What the tests of this folder share: how a request is read back, and who judges it."""

from collections.abc import Sequence
from typing import Any

import pytest

import suture
from suture.testing import ScriptedModel
from tests.shapes import validators
from tests.shapes.notation import Outline, Step
from tests.shapes.wires import arguments_of, expect, read, render
from tests.validators import chat_complaint

WIRES = ("message", "agentic", "openai-chat")
on_each_wire = pytest.mark.parametrize("wire", WIRES)


def history(wire: str, *steps: Step) -> list[Any]:
    return render(wire, steps).messages


def one(wire: str, step: Step) -> Any:
    """Return a step that is one message."""
    (message,) = history(wire, step)
    return message


def as_chat(wire: str, messages: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the same history as Chat Completions messages, for the validators that know only these."""
    arguments = iter(arguments_of(wire, messages))
    told: list[dict[str, Any]] = []
    for role, events in read(wire, messages):
        told += [
            {"role": "tool", "tool_call_id": event[1], "content": event[2]}
            for event in events
            if event[0] in {"result", "failed"}
        ]
        text = "".join(event[1] for event in events if event[0] == "text")
        calls = [
            {"id": event[1], "type": "function", "function": {"name": event[2], "arguments": next(arguments)}}
            for event in events
            if event[0] == "call"
        ]
        if calls:
            told.append({"role": role, "content": text or None, "tool_calls": calls})
        elif text:
            told.append({"role": role, "content": text})
    return told


def assert_acceptable(wire: str, messages: Sequence[Any]) -> None:
    """Fail unless our own check and two validators that know nothing of it accept the history."""
    told = as_chat(wire, messages)
    assert chat_complaint(told) == ""
    assert validators.chat(told) == []
    assert suture.check(list(messages), wire=wire).findings == ()


def sent(model: ScriptedModel, number: int = -1) -> list[Any]:
    return list(model.requests[number].messages)


def assert_says(wire: str, messages: Sequence[Any], *steps: Step) -> None:
    """Fail unless the messages are exactly these steps, in this order."""
    outline: Outline = read(wire, messages)
    assert outline == expect(wire, steps)


def assert_sent(model: ScriptedModel, *steps: Step, number: int = -1) -> None:
    """Fail unless the model was sent exactly these steps, and every validator accepts them."""
    messages = sent(model, number)
    assert_says(model.wire, messages, *steps)
    assert_acceptable(model.wire, messages)
