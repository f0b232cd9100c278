"""What OpenAI Chat and Anthropic accept, written a second time and independently, to hold our own check in check."""

import json
import re
from typing import Any


def chat_complaint(messages: list[dict[str, Any]]) -> str:
    """Return why Chat Completions would refuse `messages`, or nothing."""
    index = 0
    while index < len(messages):
        message = messages[index]
        index += 1
        if message["role"] == "tool":
            return f"tool message {index - 1} without a call"
        if message["role"] != "assistant":
            continue
        calls = message.get("tool_calls")
        if calls is None:
            if not message.get("content"):
                return f"assistant {index - 1} says nothing"
            continue
        ids = [call["id"] for call in calls]
        if not ids or len(set(ids)) != len(ids) or not all(0 < len(call_id) <= 40 for call_id in ids):
            return f"ids of {index - 1}: {ids}"
        for call in calls:
            if not call["function"]["name"] or not isinstance(json.loads(call["function"]["arguments"]), dict):
                return f"call of {index - 1}"
        answers = messages[index : index + len(ids)]
        if sorted(answer.get("tool_call_id", "") for answer in answers) != sorted(ids):
            return f"answers of {index - 1}"
        index += len(ids)
    return ""


def anthropic_complaint(messages: list[dict[str, Any]]) -> str:
    """Return why the Messages API would refuse `messages`, or nothing. Neighbours of one role count as one message."""
    turns: list[tuple[str, list[dict[str, Any]]]] = []
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not blocks or any(block["type"] == "text" and not block["text"].strip() for block in blocks):
            return f"empty content in {message}"
        if turns and turns[-1][0] == message["role"]:
            turns[-1][1].extend(blocks)
        else:
            turns.append((message["role"], list(blocks)))
    seen: set[str] = set()
    open_ids: list[str] = []
    for role, blocks in turns:
        kinds = [block["type"] for block in blocks]
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if sorted(results) != sorted(open_ids) or kinds[: len(results)] != ["tool_result"] * len(results):
            return f"results {results} for {open_ids}"
        uses = [block for block in blocks if block["type"] == "tool_use"]
        if (uses and role != "assistant") or kinds[len(kinds) - len(uses) :] != ["tool_use"] * len(uses):
            return f"calls not last: {kinds}"
        for use in uses:
            if (
                not re.fullmatch(r"[a-zA-Z0-9_-]+", use["id"])
                or use["id"] in seen
                or not isinstance(use["input"], dict)
            ):
                return f"call {use}"
            seen.add(use["id"])
        open_ids = [use["id"] for use in uses]
    return f"open at the end: {open_ids}" if open_ids else ""
