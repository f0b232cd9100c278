"""The histories as items of OpenAI's Responses, which two of the guests send."""

import json
from typing import Any

from _cases import TOOL, Step
from _judge import Message

__all__ = ["Item", "read_item", "write_items"]

Item = dict[str, Any]


def write_items(step: Step) -> list[Item]:
    """Return a step as the items that say it."""
    match step:
        case ("user", text):
            return [{"role": "user", "content": text}]
        case ("say", text):
            return [{"role": "assistant", "content": text}]
        case ("result", name, text):
            return [{"type": "function_call_output", "call_id": name, "output": text}]
        case (_, *calls):
            return [
                {"type": "function_call", "call_id": name, "name": TOOL, "arguments": json.dumps({"city": city})}
                for name, city in calls
            ]
    raise AssertionError(step)


def read_item(item: Item) -> Message:
    """Return what an item says."""
    match item.get("type"):
        case "function_call":
            return "assistant", [("call", item["call_id"], item["name"])]
        case "function_call_output":
            return "tool", [("result", item["call_id"], item["output"])]
    content = item["content"]
    text = content if isinstance(content, str) else "".join(part["text"] for part in content)
    return item["role"], [("text", text)]
