"""Results with content of every kind, as each wire writes them; what is told of them is in the tests."""

from typing import Any

import pytest

from suture.messages import (
    AgenticMessage,
    FunctionToolResult,
    ImagePart,
    Message,
    Opaque,
    TextPart,
    UserInputImage,
    UserInputText,
)
from suture.wires import WIRES, Wire, get_wire

FOREIGN = ("openai-chat", "openai-responses", "anthropic", "gemini", "bedrock")
NATIVE = ("message", "agentic")
on_every_wire = pytest.mark.parametrize("wire", [*map(get_wire, WIRES)], ids=WIRES)
on_foreign_wires = pytest.mark.parametrize("wire", [*map(get_wire, FOREIGN)], ids=FOREIGN)
on_native_wires = pytest.mark.parametrize("wire", [*map(get_wire, NATIVE)], ids=NATIVE)

IMAGES: dict[str, Any] = {
    "message": ImagePart(base64_data="iVBO" * 100, mime_type="image/png", detail="low", extra={"origin": "camera"}),
    "agentic": UserInputImage(base64_data="iVBO" * 100, mime_type="image/png", index=3, extra={"origin": "camera"}),
    "openai-chat": {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "iVBO" * 100}},
    "openai-responses": {"type": "input_image", "image_url": "data:image/png;base64," + "iVBO" * 100},
    "anthropic": {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "iVBO" * 100},
        "cache_control": {"type": "ephemeral"},
    },
    "gemini": {"inlineData": {"mimeType": "image/png", "data": "iVBO" * 100}},
    "bedrock": {"image": {"format": "png", "source": {"bytes": b"\x89PNG" * 100}}},
}
UNKNOWN: dict[str, Any] = {
    "message": Opaque({"type": "hologram", "beam": 7}),
    "agentic": Opaque({"type": "hologram", "beam": 7}),
    "gemini": {"hologram": {"beam": 7}},
    "bedrock": {"hologram": {"beam": 7}},
}


def unknown_of(wire: Wire) -> Any:
    return UNKNOWN.get(wire.name, {"type": "hologram", "beam": 7})


def text_of(wire: Wire, text: str, **more: Any) -> Any:
    """Return a text as a block of this wire, with fields of its own where they have a place."""
    if wire.name == "message":
        return TextPart(text, extra=more)
    if wire.name == "agentic":
        return UserInputText(text, extra=more)
    if wire.name == "bedrock":
        return {"text": text, **more}
    return {"type": "input_text" if wire.name == "openai-responses" else "text", "text": text, **more}


def result_of(wire: Wire, content: Any) -> Any:
    """Return a message with one result: `content` is a text or a list of blocks; on gemini (response, parts)."""
    match wire.name:
        case "message":
            text, parts = (content, ()) if isinstance(content, str) else ("", content)
            return Message(
                "tool", text, user_input_multi_content=parts, tool_call_id="a", tool_name="f", is_error=True,
                extra={"took": 3},
            )  # fmt: skip
        case "agentic":
            blocks = (UserInputText(content),) if isinstance(content, str) else content
            block = FunctionToolResult("a", "f", blocks, is_error=True, extra={"took": 3})
            return AgenticMessage("user", (block, UserInputText("and more")), extra={"kept": True})
        case "openai-chat":
            return {"role": "tool", "tool_call_id": "a", "content": content, "cache_control": {"type": "ephemeral"}}
        case "openai-responses":
            return {"type": "function_call_output", "id": "fc_1", "call_id": "a", "output": content, "status": "done"}
        case "anthropic":
            block = {
                "type": "tool_result",
                "tool_use_id": "a",
                "content": content,
                "is_error": True,
                "cache_control": {},
            }
            return {"role": "user", "content": [block, {"type": "text", "text": "and more"}]}
        case "gemini":
            response, parts = content
            inside = {"id": "a", "name": "f", "response": response, "scheduling": "IDLE"}
            inside |= {} if parts is None else {"parts": parts}
            return {"role": "user", "parts": [{"functionResponse": inside, "x": 1}, {"text": "and more"}]}
        case _:
            inside = {"toolUseId": "a", "content": content, "status": "error", "x": 1}
            return {"role": "user", "content": [{"toolResult": inside}, {"text": "and more"}]}


def content_of(wire: Wire, blocks: list[Any]) -> Any:
    """Return blocks as `result_of` takes them: on gemini the texts are the response, all else stands beside it."""
    if wire.name != "gemini":
        return blocks
    texts = [block["text"] for block in blocks if block.get("type") == "text"]
    return {"result": "\n".join(texts)} if texts else {}, [block for block in blocks if block.get("type") != "text"]
