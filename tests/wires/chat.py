"""The wires that an agent can run on, and what their tests put into messages."""

from typing import Any

import pytest
from hypothesis import strategies as st

from suture.messages import (
    AudioPart,
    FilePart,
    ImagePart,
    Opaque,
    ReasoningPart,
    TextPart,
    ToolInfo,
    ToolSearchPart,
    VideoPart,
)
from suture.wires import Call, get_chat_wire

MESSAGE, AGENTIC, CHAT = map(get_chat_wire, ("message", "agentic", "openai-chat"))
CHAT_WIRES = [MESSAGE, AGENTIC, CHAT]
NATIVE = [MESSAGE, AGENTIC]
on_each_wire = pytest.mark.parametrize("wire", CHAT_WIRES, ids=lambda wire: wire.name)

CALL = Call("call_1", "search", "{}")
TOOLS = (ToolInfo("fetch", "Get a page."),)
PARTS = {
    "text": TextPart("3 pages"),
    "image": ImagePart(url="https://example.com/cat.png", detail="low"),
    "image data": ImagePart(base64_data="iVBO", mime_type="image/jpeg"),
    "audio": AudioPart(base64_data="UklG", mime_type="audio/mpeg"),
    "audio elsewhere": AudioPart(url="https://example.com/a.ogg"),
    "video": VideoPart(url="https://example.com/a.mp4"),
    "file": FilePart(base64_data="JVBE", mime_type="application/pdf", name="a.pdf"),
    "file elsewhere": FilePart(url="https://example.com/a.pdf", name="a.pdf"),
    "thought": ReasoningPart("so", "signed"),
    "tools": ToolSearchPart(tools=TOOLS),
    "unknown": Opaque({"type": "hologram", "beam": 7}),
}
each_part = pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)


def chat_call(id_: str = "call_1", name: str = "search", arguments: str = "{}") -> dict[str, Any]:
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


CHAT_RESULTS = {
    "image": {"type": "image_url", "image_url": {"url": "https://example.com/cat.png", "detail": "low"}},
    "audio": {"type": "input_audio", "input_audio": {"data": "UklG", "format": "mp3"}},
    "video": {"type": "video_url", "video_url": {"url": "https://example.com/a.mp4"}},
    "audio elsewhere": "https://example.com/a.ogg",
    "file elsewhere": "https://example.com/a.pdf",
    "thought": "so",
    "tools": '[{"name":"fetch","description":"Get a page."}]',
    "unknown": '{"type":"hologram","beam":7}',
}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
