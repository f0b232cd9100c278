"""The yardstick: for each wire a plain loop that reads roles, calls and results, and pairs their ids with a dict.

This is the cheapest check that an expert would write by hand. It sees a missing result and a stray one, and nothing
else: not where they stand, not what is in them.
"""

from collections.abc import Callable
from typing import Any

from suture.messages import FunctionToolCall, FunctionToolResult

__all__ = ["BARE"]

_STRAY = object()


def _message(messages: list[Any]) -> bool:
    unanswered: dict[str, Any] = {}
    for message in messages:
        role = message.role
        if role == "assistant":
            for call in message.tool_calls:
                unanswered[call.id] = call
        elif role == "tool" and unanswered.pop(message.tool_call_id, _STRAY) is _STRAY:
            return False
    return not unanswered


def _agentic(messages: list[Any]) -> bool:
    unanswered: dict[str, Any] = {}
    for message in messages:
        _ = message.role
        for block in message.content_blocks:
            kind = type(block)
            if kind is FunctionToolCall:
                unanswered[block.call_id] = block
            elif kind is FunctionToolResult and unanswered.pop(block.call_id, _STRAY) is _STRAY:
                return False
    return not unanswered


def _openai_chat(messages: list[Any]) -> bool:
    unanswered: dict[str, Any] = {}
    for message in messages:
        role = message["role"]
        if role == "assistant":
            for call in message.get("tool_calls") or ():
                unanswered[call["id"]] = call
        elif role == "tool" and unanswered.pop(message["tool_call_id"], _STRAY) is _STRAY:
            return False
    return not unanswered


def _openai_responses(items: list[Any]) -> bool:
    unanswered: dict[str, Any] = {}
    for item in items:
        kind = item.get("type")
        if kind == "function_call":
            unanswered[item["call_id"]] = item
        elif kind == "function_call_output":
            if unanswered.pop(item["call_id"], _STRAY) is _STRAY:
                return False
        else:
            _ = item["role"]
    return not unanswered


def _anthropic(messages: list[Any]) -> bool:
    unanswered: dict[str, Any] = {}
    for message in messages:
        _ = message["role"]
        content = message["content"]
        if type(content) is list:
            for block in content:
                kind = block["type"]
                if kind == "tool_use":
                    unanswered[block["id"]] = block
                elif kind == "tool_result" and unanswered.pop(block["tool_use_id"], _STRAY) is _STRAY:
                    return False
    return not unanswered


def _gemini(contents: list[Any]) -> bool:
    unanswered: dict[str, Any] = {}
    for content in contents:
        _ = content["role"]
        for part in content["parts"]:
            if "functionCall" in part:
                unanswered[part["functionCall"].get("id")] = part
            elif "functionResponse" in part and unanswered.pop(part["functionResponse"].get("id"), _STRAY) is _STRAY:
                return False
    return not unanswered


def _bedrock(messages: list[Any]) -> bool:
    unanswered: dict[str, Any] = {}
    for message in messages:
        _ = message["role"]
        for block in message["content"]:
            if "toolUse" in block:
                unanswered[block["toolUse"]["toolUseId"]] = block
            elif "toolResult" in block and unanswered.pop(block["toolResult"]["toolUseId"], _STRAY) is _STRAY:
                return False
    return not unanswered


BARE: dict[str, Callable[[list[Any]], bool]] = {
    "message": _message,
    "agentic": _agentic,
    "openai-chat": _openai_chat,
    "openai-responses": _openai_responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "bedrock": _bedrock,
}
