"""Items of Responses, each beside the native messages that say the same."""

from typing import Any

from suture.messages import (
    AgenticMessage,
    ContentBlock,
    FunctionToolCall,
    FunctionToolResult,
    MCPToolApprovalResponse,
    ServerToolResult,
    UserInputAudio,
    UserInputFile,
    UserInputImage,
    UserInputText,
)
from tests.codecs.openai_responses.marks import WIRE, kept, part, unknown
from tests.codecs.openai_responses.served import SERVED
from tests.codecs.openai_responses.spoken import HEADS, SPOKEN

__all__ = ["CALLED", "GIVEN", "MADE", "PARTS", "WIRE", "kept"]


PARTS: dict[str, tuple[dict[str, Any], ContentBlock]] = {
    "text with a cache mark": (
        {"type": "input_text", "text": "hi", "prompt_cache_breakpoint": {"mode": "explicit"}},
        UserInputText("hi", extra=kept(prompt_cache_breakpoint={"mode": "explicit"})),
    ),
    "text of another type": ({"type": "text", "text": "hi"}, UserInputText("hi", extra=kept(type="text"))),
    "image by address": (
        {"type": "input_image", "image_url": "https://example.com/cat.png", "detail": "high"},
        UserInputImage(url="https://example.com/cat.png", detail="high"),
    ),
    "image by value": (
        {"type": "input_image", "image_url": "data:image/webp;base64,UklG"},
        UserInputImage(base64_data="UklG", mime_type="image/webp"),
    ),
    "image by value without a type": (
        {"type": "input_image", "image_url": "data:;base64,UklG"},
        UserInputImage(url="data:;base64,UklG"),
    ),
    "image by file id": ({"type": "input_image", "file_id": "file-1"}, UserInputImage(extra=kept(file_id="file-1"))),
    "file by value": (
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"},
        UserInputFile(base64_data="JVBE", mime_type="application/pdf", name="a.pdf"),
    ),
    "file by bare value": (
        {"type": "input_file", "filename": "a.pdf", "file_data": "JVBE"},
        UserInputFile(base64_data="JVBE", name="a.pdf"),
    ),
    "file by data address": (
        {"type": "input_file", "file_data": "data:text/plain,hello", "filename": "hello.txt"},
        UserInputFile(url="data:text/plain,hello", name="hello.txt"),
    ),
    "file by address": (
        {"type": "input_file", "file_url": "https://example.com/a.pdf", "detail": "low"},
        UserInputFile(url="https://example.com/a.pdf", extra=kept(detail="low")),
    ),
    "file by id": ({"type": "input_file", "file_id": "file-1"}, UserInputFile(extra=kept(file_id="file-1"))),
    "audio": (
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
        UserInputAudio(base64_data="AAAA", mime_type="audio/mp3", extra=kept(type="input_audio")),
    ),
    "unknown part": ({"type": "hologram", "beam": 7}, part({"type": "hologram", "beam": 7})),
}
"""Parts of a message for the model."""

CALLED = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
ASKED = AgenticMessage.assistant([FunctionToolCall("a", "f", "{}")])
GIVEN: dict[str, tuple[dict[str, Any], AgenticMessage]] = {
    "a question": ({"role": "user", "content": "hi"}, AgenticMessage.user("hi")),
    "a question with fields": (
        {"type": "message", "id": "msg_9f", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        AgenticMessage("user", [UserInputText("hi")], extra=kept(type="message", id="msg_9f")),
    ),
    "no question": ({"role": "user", "content": []}, AgenticMessage("user")),
    "a system message": ({"role": "system", "content": "Be brief."}, AgenticMessage.system("Be brief.")),
    "a developer's message": (
        {"role": "developer", "content": "Be brief."},
        AgenticMessage("system", [UserInputText("Be brief.")], extra=kept(role="developer")),
    ),
    "an output": (
        {"type": "function_call_output", "call_id": "b", "output": "42"},
        AgenticMessage.tool_result("b", "", "42"),
    ),
    "an empty output": (
        {"type": "function_call_output", "call_id": "b", "output": ""},
        AgenticMessage.tool_result("b", "", ""),
    ),
    "an output of parts": (
        {
            "type": "function_call_output",
            "id": "fco_9f",
            "call_id": "b",
            "output": [
                {"type": "input_text", "text": "see"},
                {"type": "input_image", "image_url": "data:image/png;base64,iVBO"},
                {"type": "hologram"},
            ],
        },
        AgenticMessage(
            "user",
            [
                FunctionToolResult(
                    "b",
                    "",
                    [
                        UserInputText("see"),
                        UserInputImage(base64_data="iVBO", mime_type="image/png"),
                        part({"type": "hologram"}),
                    ],
                    extra=kept(id="fco_9f"),
                )
            ],
        ),
    ),
    "an output of a custom tool": (
        {"type": "custom_tool_call_output", "call_id": "b", "output": "42"},
        AgenticMessage(
            "user",
            [FunctionToolResult("b", "", [UserInputText("42")], extra=kept("custom"))],
        ),
    ),
    "an output of the local shell": (
        {"type": "local_shell_call_output", "id": "b", "output": "a.txt"},
        AgenticMessage(
            "user",
            [FunctionToolResult("b", "local_shell", [UserInputText("a.txt")], extra=kept("local_shell"))],
        ),
    ),
    "an output of the shell": (
        {
            "type": "shell_call_output",
            "call_id": "b",
            "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
            "max_output_length": 9,
        },
        AgenticMessage(
            "user",
            [
                FunctionToolResult(
                    "b",
                    "shell",
                    [UserInputText('[{"stdout":"a","stderr":"","outcome":{"type":"exit","exit_code":0}}]')],
                    extra=kept("shell", max_output_length=9),
                )
            ],
        ),
    ),
    "an output of a patch": (
        {"type": "apply_patch_call_output", "call_id": "b", "status": "failed", "output": "no such file"},
        AgenticMessage(
            "user",
            [
                FunctionToolResult(
                    "b",
                    "apply_patch",
                    [UserInputText("no such file")],
                    is_error=True,
                    extra=kept("apply_patch"),
                )
            ],
        ),
    ),
    "a screenshot": (
        {
            "type": "computer_call_output",
            "call_id": "b",
            "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,iVBO"},
        },
        AgenticMessage(
            "user",
            [
                ServerToolResult(
                    call_id="b",
                    name="computer",
                    content={"type": "computer_screenshot", "image_url": "data:image/png;base64,iVBO"},
                    extra=kept(type="computer_call_output"),
                )
            ],
        ),
    ),
    "tools that were found": (
        {"type": "tool_search_output", "call_id": "b", "tools": [], "execution": "client"},
        AgenticMessage(
            "user",
            [
                ServerToolResult(
                    call_id="b",
                    name="tool_search",
                    content=[],
                    extra=kept(type="tool_search_output", execution="client"),
                )
            ],
        ),
    ),
    "an answer to an MCP server": (
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_9f", "approve": False, "reason": "no"},
        AgenticMessage("user", [MCPToolApprovalResponse(approval_request_id="mcpr_9f", reason="no")]),
    ),
    "an event from outside": (
        {"type": "function_call_output", "name": "doorbell", "output": "ding"},
        AgenticMessage("user", [unknown({"type": "function_call_output", "name": "doorbell", "output": "ding"})]),
    ),
    "a reference": (
        {"type": "item_reference", "id": "msg_9f"},
        AgenticMessage("system", [unknown({"type": "item_reference", "id": "msg_9f"})]),
    ),
}
"""What the model is given: one message each."""

MADE = {
    name: (items, AgenticMessage("assistant", blocks, extra=kept(item=HEADS[name]) if name in HEADS else {}))
    for name, (items, blocks) in {**SPOKEN, **SERVED}.items()
}
"""What the model made: one assistant message each."""
