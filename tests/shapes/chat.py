"""The messages of Chat Completions, as the tests write them."""

from typing import Any

WIRE = "openai-chat"


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def call(id_: Any, name: str = "search", arguments: Any = "{}") -> dict[str, Any]:
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


def model(*calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **more}


def says(text: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **more}


def tool(id_: Any, content: Any = "1", **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id_, "content": content, **more}


def old_result(content: str, name: str = "search") -> dict[str, Any]:
    return {"role": "function", "name": name, "content": content}


GO = user("go")
NEXT = user("next")
