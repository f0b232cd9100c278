"""What LangChain takes for a message: its own objects, and dicts, pairs and texts in their place."""

from collections.abc import Mapping
from typing import Any, cast

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)

from suture.errors import InputError
from suture.integrations._langchain_blocks import decoded
from suture.wires.fields import get, is_list, is_map

__all__ = ["as_message", "role_of"]

_ROLES = {
    "system": "system",
    "developer": "system",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
}
_LIKE: Any = (str, tuple, list, dict)


def as_message(message: Any, index: int | None = None) -> BaseMessage:
    """Return `message` as LangChain's object, itself if it is one; raise `InputError` where it cannot be read.

    >>> as_message({"role": "user", "content": "hi"}).type, as_message(("ai", "hi")).type
    ('human', 'ai')
    """
    if isinstance(message, BaseMessage):
        if isinstance(message, RemoveMessage):
            raise InputError(
                "a RemoveMessage is an instruction to the state, not a message; apply it first, with add_messages",
                index=index,
            )
        return message
    if not isinstance(message, _LIKE):
        raise InputError(f"expected a LangChain message, found {type(message).__name__}", index=index)
    try:
        if is_map(message) and is_list(message.get("tool_calls")):
            return _with_calls(message)
        made = convert_to_messages([cast("Any", {"content": "", **message} if is_map(message) else message)])[0]
    except (ValueError, TypeError, NotImplementedError, KeyError, AttributeError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"LangChain does not take this for a message: {reason}", index=index) from None
    return as_message(made, index)


def role_of(message: BaseMessage) -> str:
    """Return whose a message is: system, user, assistant or tool.

    >>> role_of(ChatMessage(role="model", content="hi")), role_of(SystemMessage("hi"))
    ('assistant', 'system')
    """
    if isinstance(message, AIMessage):
        return "assistant"
    if isinstance(message, ToolMessage | FunctionMessage):
        return "tool"
    if isinstance(message, SystemMessage):
        return "system"
    return _ROLES.get(message.role, "user") if isinstance(message, ChatMessage) else "user"


def _with_calls(message: Mapping[str, Any]) -> BaseMessage:
    """Return a dict with calls as a message; calls whose arguments are no object are kept as invalid ones."""
    calls: list[dict[str, Any]] = []
    invalid: list[dict[str, Any]] = []
    for entry in message["tool_calls"]:
        function = get(entry, "function")
        holder = entry if function is None else function
        arguments = decoded(get(holder, "args" if function is None else "arguments"))
        call_id, name = get(entry, "id"), get(holder, "name")
        if is_map(arguments):
            calls.append({"name": name or "", "args": dict(arguments), "id": call_id, "type": "tool_call"})
        else:
            text = arguments if isinstance(arguments, str) else None
            invalid.append({"name": name, "args": text, "id": call_id, "error": None, "type": "invalid_tool_call"})
    rest = {"content": "", **{name: value for name, value in message.items() if name != "tool_calls"}}
    made = as_message(rest)
    more = made.invalid_tool_calls if isinstance(made, AIMessage) else []
    return made.model_copy(update={"tool_calls": calls, "invalid_tool_calls": [*more, *invalid]})
