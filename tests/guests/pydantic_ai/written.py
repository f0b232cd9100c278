"""Histories as pydantic-ai's messages, and what such messages say. What they say is read here without Suture's help."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from tests.histories import Step

WHEN = datetime(2026, 3, 1, 12, tzinfo=UTC)


def user(text: str) -> ModelRequest:
    return ModelRequest([UserPromptPart(text, timestamp=WHEN)])


def says(text: str) -> ModelResponse:
    return ModelResponse([TextPart(text)], timestamp=WHEN)


def asks(*ids: str, name: str = "search", arguments: Any = '{"q":"x"}') -> ModelResponse:
    return ModelResponse([ToolCallPart(name, arguments, each) for each in ids], timestamp=WHEN)


def gives(call_id: str, text: Any, name: str = "search") -> ToolReturnPart:
    return ToolReturnPart(name, text, call_id, timestamp=WHEN)


def results(*parts: Any) -> ModelRequest:
    return ModelRequest(list(parts))


def no(name: str, _call_id: str) -> str:
    """A text for a placeholder."""
    return f"no {name}"


def write(steps: Sequence[Step]) -> list[ModelMessage]:
    """Return the history `steps`, in the notation of `tests.histories`, as messages."""
    return [_message(step) for step in steps]


def _message(step: Step) -> ModelMessage:
    match step:
        case ("user", text):
            return user(text)
        case ("system", text):
            return ModelRequest([SystemPromptPart(text, timestamp=WHEN)])
        case ("say", text):
            return ModelResponse([TextPart(text)] if text else [], timestamp=WHEN)
        case ("think", text):
            thought = ThinkingPart("hm", signature="s", provider_name="anthropic")
            return ModelResponse([thought, TextPart(text)], timestamp=WHEN)
        case ("turn", calls):
            return ModelResponse([ToolCallPart(name, args, call_id) for call_id, name, args in calls], timestamp=WHEN)
        case ("result", call_id, name, text):
            return results(gives(call_id, text, name))
        case ("mixed", carried, text):
            parts = [gives(call_id, said, name) for call_id, name, said in carried]
            return results(*parts, UserPromptPart(text, timestamp=WHEN))
    raise AssertionError(step)


def atoms(messages: Sequence[ModelMessage]) -> list[tuple[Any, ...]]:
    """Return what messages say, part by part: ("call", id, name) · ("result", id, text) · ("text", role, text)."""
    return [_atom(message, part) for message in messages for part in message.parts]


def _atom(message: ModelMessage, part: Any) -> tuple[Any, ...]:
    if isinstance(part, ToolCallPart):
        return ("call", part.tool_call_id, part.tool_name)
    if isinstance(part, ToolReturnPart):
        return ("result", part.tool_call_id, part.content)
    role = "assistant" if isinstance(message, ModelResponse) else "user"
    return ("text", "system" if isinstance(part, SystemPromptPart) else role, part.content)


def shape(messages: Sequence[ModelMessage], names: Mapping[str, str] | None = None) -> list[list[str]]:
    """Return messages in short: a list of parts each, a call as `a?`, its result as `a=text`, and how it went.

    Ids in `names` go by those names.
    """
    return [[_short(part, names or {}) for part in message.parts] for message in messages]


def _short(part: Any, names: Mapping[str, str]) -> str:
    if isinstance(part, ToolCallPart):
        return f"{names.get(part.tool_call_id, part.tool_call_id)}?"
    if isinstance(part, ToolReturnPart):
        went = "" if part.outcome == "success" else f" ({part.outcome})"
        text = f"{part.tool_call_id}={part.content}{went}"
        name = names.get(part.tool_call_id)
        return text if name is None else text.replace(part.tool_call_id, name)
    return str(part.content)
