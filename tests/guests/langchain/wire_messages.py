"""Histories of the neutral notation as LangChain's messages, and what such messages say."""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from tests.histories import Step, arguments_value

FORMS = ("lists", "tool_use", "tool_call", "function_call", "raw")
"""Where the calls of a turn stand: LangChain's lists, blocks of three kinds, or OpenAI's raw form."""


def write(steps: Sequence[Step], form: str = "lists") -> list[BaseMessage]:
    """Return the history `steps`, with the calls in one of `FORMS`."""
    return [message for step in steps for message in _step(step, form)]


def _step(step: Step, form: str) -> list[BaseMessage]:
    match step:
        case ("user", text):
            return [HumanMessage(text)]
        case ("system", text):
            return [SystemMessage(text)]
        case ("say", text):
            return [AIMessage(text)]
        case ("think", text):
            thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
            return [AIMessage([thought, {"type": "text", "text": text}])]
        case ("turn", calls):
            return [turn(calls, form)]
        case ("result", call_id, name, text):
            return [ToolMessage(text, tool_call_id=call_id, name=name or None)]
        case ("mixed", results, text):
            tools = [ToolMessage(t, tool_call_id=i, name=n or None) for i, n, t in results]
            return [*tools, HumanMessage(text)]
    raise AssertionError(step)


def turn(calls: Sequence[tuple[str, str, str]], form: str = "lists") -> AIMessage:
    """Return a turn with these calls: (id, name, text of the arguments)."""
    if form == "lists":
        valid, invalid = [], []
        for call_id, name, text in calls:
            value = arguments_value(text)
            if isinstance(value, dict):
                valid.append({"id": call_id or None, "name": name, "args": value, "type": "tool_call"})
            else:
                broken = {"id": call_id or None, "name": name, "args": text, "error": None}
                invalid.append(broken | {"type": "invalid_tool_call"})
        return AIMessage("", tool_calls=valid, invalid_tool_calls=invalid)
    if form == "raw":
        raw = [{"id": i, "type": "function", "function": {"name": n, "arguments": a}} for i, n, a in calls]
        return AIMessage("").model_copy(update={"additional_kwargs": {"tool_calls": raw}})
    return AIMessage([_block(form, *call) for call in calls])


def _block(form: str, call_id: str, name: str, text: str) -> dict[str, Any]:
    if form == "function_call":
        return {"type": form, "call_id": call_id, "name": name, "arguments": text}
    return {"type": form, "id": call_id, "name": name, "input" if form == "tool_use" else "args": arguments_value(text)}


def structure(wire: Any, messages: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return what the engines see of messages: role, calls (id, name), results (id, text)."""
    seen: list[tuple[Any, ...]] = []
    for message in messages:
        view = wire.view(message)
        calls = tuple((call.id, call.name) for call in view.calls)
        results = tuple((result.id, wire.result_text(result)[0]) for result in view.results)
        words = () if view.results else tuple(sorted(wire.words(message).texts))
        seen.append((view.role, calls, results, () if calls else words))
    return seen
