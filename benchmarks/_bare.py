"""The yardstick: for each wire a plain loop that only reads roles, tool calls and ids, and keeps nothing.

This is the least that any program does which looks at a history at all. It checks nothing.
"""

from collections.abc import Callable
from typing import Any

from suture.messages import FunctionToolCall, FunctionToolResult

__all__ = ["BARE"]


def _message(messages: list[Any]) -> None:
    for message in messages:
        role = message.role
        if role == "assistant":
            for call in message.tool_calls:
                _ = call.id
        elif role == "tool":
            _ = message.tool_call_id


def _agentic(messages: list[Any]) -> None:
    for message in messages:
        _ = message.role
        for block in message.content_blocks:
            kind = type(block)
            if kind is FunctionToolCall or kind is FunctionToolResult:
                _ = block.call_id


def _openai_chat(messages: list[Any]) -> None:
    for message in messages:
        role = message["role"]
        if role == "assistant":
            for call in message.get("tool_calls") or ():
                _ = call["id"]
        elif role == "tool":
            _ = message["tool_call_id"]


def _openai_responses(items: list[Any]) -> None:
    for item in items:
        kind = item.get("type")
        if kind == "function_call" or kind == "function_call_output":  # noqa: PLR1714 - faster than `in`
            _ = item["call_id"]
        elif kind is None or kind == "message":
            _ = item["role"]


def _anthropic(messages: list[Any]) -> None:
    for message in messages:
        _ = message["role"]
        content = message["content"]
        if type(content) is list:
            for block in content:
                kind = block["type"]
                if kind == "tool_use":
                    _ = block["id"]
                elif kind == "tool_result":
                    _ = block["tool_use_id"]


def _gemini(contents: list[Any]) -> None:
    for content in contents:
        _ = content["role"]
        for part in content["parts"]:
            if "functionCall" in part:
                _ = part["functionCall"].get("id")
            elif "functionResponse" in part:
                _ = part["functionResponse"].get("id")


def _bedrock(messages: list[Any]) -> None:
    for message in messages:
        _ = message["role"]
        for block in message["content"]:
            if "toolUse" in block:
                _ = block["toolUse"]["toolUseId"]
            elif "toolResult" in block:
                _ = block["toolResult"]["toolUseId"]


BARE: dict[str, Callable[[list[Any]], None]] = {
    "message": _message,
    "agentic": _agentic,
    "openai-chat": _openai_chat,
    "openai-responses": _openai_responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "bedrock": _bedrock,
}
