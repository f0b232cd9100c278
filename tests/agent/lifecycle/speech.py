"""How each chat wire says what these tests need, written from its format and not from the code under test."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from suture import AgenticMessage, Message, ToolCall
from suture.messages import AssistantGenText, FunctionToolCall

Call = tuple[str, str, str]
"""A call's id, the tool's name and its arguments as JSON text."""


@dataclass(frozen=True)
class Speech:
    """What a user, a model and a tool say on one wire."""

    wire: str
    user: Callable[[str], Any]
    says: Callable[[str], Any]
    calls: Callable[..., Any]
    result: Callable[..., Any]


def _message_calls(*calls: Call, text: str = "") -> Message:
    return Message.assistant(text, tool_calls=[ToolCall(*call) for call in calls])


def _message_result(call_id: str, name: str, text: str, *, is_error: bool = False) -> Message:
    return Message("tool", text, tool_call_id=call_id, tool_name=name, is_error=is_error)


def _agentic_calls(*calls: Call, text: str = "") -> AgenticMessage:
    said = [AssistantGenText(text)] if text else []
    return AgenticMessage.assistant([*said, *(FunctionToolCall(*call) for call in calls)])


def _chat_calls(*calls: Call, text: str = "") -> dict[str, Any]:
    asked = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for call_id, name, arguments in calls
    ]
    return {"role": "assistant", "content": text or None, "tool_calls": asked}


def _chat_result(call_id: str, _name: str, text: str, **_flags: bool) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


MESSAGE = Speech("message", Message.user, Message.assistant, _message_calls, _message_result)
AGENTIC = Speech("agentic", AgenticMessage.user, AgenticMessage.assistant, _agentic_calls, AgenticMessage.tool_result)
CHAT = Speech(
    "openai-chat",
    lambda text: {"role": "user", "content": text},
    lambda text: {"role": "assistant", "content": text},
    _chat_calls,
    _chat_result,
)
WIRES: Sequence[Speech] = (MESSAGE, AGENTIC, CHAT)


def wire_name(speech: Speech) -> str:
    """Return what a parametrised case is called."""
    return speech.wire
