"""Blocks of the Messages API, each beside the native block that says the same."""

from typing import Any

from suture.messages import (
    AssistantGenText,
    ContentBlock,
    FunctionToolCall,
    FunctionToolResult,
    Opaque,
    Reasoning,
    ServerToolCall,
    ServerToolResult,
    UserInputFile,
    UserInputImage,
    UserInputText,
)

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PDF = "JVBERi0xLjQK"
MARK = {"cache_control": {"type": "ephemeral"}}
ADDRESS = "https://example.com/a"
CITATION = {"type": "char_location", "cited_text": "six", "document_index": 0, "start_char_index": 0}
SEARCH = {"type": "search_result", "source": ADDRESS, "title": "Tides", "content": [{"type": "text", "text": "six"}]}
OUTPUT = {"type": "code_execution_result", "stdout": "6\n", "stderr": "", "return_code": 0, "content": []}
HIT = {"type": "web_search_result", "url": ADDRESS, "title": "Tides", "encrypted_content": "ZW5j", "page_age": None}
LISTED = [{"name": "tides", "description": "Look up.", "input_schema": {"type": "object"}}]

GIVEN: dict[str, tuple[dict[str, Any], ContentBlock]] = {
    "text": ({"type": "text", "text": "hi"}, UserInputText("hi")),
    "text with a cache mark": (
        {"type": "text", "text": "hi", **MARK},
        UserInputText("hi", extra={"anthropic": MARK}),
    ),
    "image by value": (
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
        UserInputImage(base64_data=PIXEL, mime_type="image/png"),
    ),
    "image by address": (
        {"type": "image", "source": {"type": "url", "url": ADDRESS}, **MARK},
        UserInputImage(url=ADDRESS, extra={"anthropic": MARK}),
    ),
    "image by file": (
        {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
        UserInputImage(extra={"anthropic": {"source": {"type": "file", "file_id": "file_1"}}}),
    ),
    "image of a type that nobody takes": (
        {"type": "image", "source": {"type": "base64", "media_type": "image/bmp", "data": "Qk0="}},
        UserInputImage(
            base64_data="Qk0=",
            mime_type="image/bmp",
            extra={"anthropic": {"source": {"type": "base64", "media_type": "image/bmp", "data": "Qk0="}}},
        ),
    ),
    "document by value": (
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
            "title": "a.pdf",
            "context": "From the harbour.",
            "citations": {"enabled": True},
        },
        UserInputFile(
            base64_data=PDF,
            mime_type="application/pdf",
            name="a.pdf",
            extra={"anthropic": {"context": "From the harbour.", "citations": {"enabled": True}}},
        ),
    ),
    "document by address": (
        {"type": "document", "source": {"type": "url", "url": ADDRESS}},
        UserInputFile(url=ADDRESS, mime_type="application/pdf"),
    ),
    "document of text": (
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "6 Uhr früh"}},
        UserInputFile(base64_data="NiBVaHIgZnLDvGg=", mime_type="text/plain"),
    ),
    "document of blocks": (
        {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "six"}]}},
        UserInputFile(
            base64_data="c2l4",
            mime_type="text/plain",
            extra={"anthropic": {"source": {"type": "content", "content": [{"type": "text", "text": "six"}]}}},
        ),
    ),
    "document of one string": (
        {"type": "document", "source": {"type": "content", "content": "six"}},
        UserInputFile(
            base64_data="c2l4",
            mime_type="text/plain",
            extra={"anthropic": {"source": {"type": "content", "content": "six"}}},
        ),
    ),
    "document by file": (
        {"type": "document", "source": {"type": "file", "file_id": "file_1"}, "title": "a.pdf"},
        UserInputFile(name="a.pdf", extra={"anthropic": {"source": {"type": "file", "file_id": "file_1"}}}),
    ),
    "result": (
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "42"},
        FunctionToolResult("toolu_1", "", (UserInputText("42"),)),
    ),
    "failed result": (
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "no", "is_error": True, **MARK},
        FunctionToolResult("toolu_1", "", (UserInputText("no"),), is_error=True, extra={"anthropic": MARK}),
    ),
    "result without content": ({"type": "tool_result", "tool_use_id": "toolu_1"}, FunctionToolResult("toolu_1")),
    "result that is white space": (
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "\n"},
        FunctionToolResult("toolu_1", "", (UserInputText("\n"),)),
    ),
    "result in blocks": (
        {
            "type": "tool_result",
            "tool_use_id": "toolu_1",
            "content": [
                {"type": "text", "text": "see"},
                {"type": "image", "source": {"type": "url", "url": ADDRESS}},
                {"type": "tool_reference", "tool_name": "tides"},
                SEARCH,
            ],
        },
        FunctionToolResult(
            "toolu_1",
            "",
            (
                UserInputText("see"),
                UserInputImage(url=ADDRESS),
                Opaque({"type": "anthropic.block", "value": {"type": "tool_reference", "tool_name": "tides"}}),
                Opaque({"type": "anthropic.block", "value": SEARCH}),
            ),
        ),
    ),
    "search result": (SEARCH, Opaque({"type": "anthropic.block", "value": SEARCH})),
    "upload": (
        {"type": "container_upload", "file_id": "file_1"},
        Opaque({"type": "anthropic.block", "value": {"type": "container_upload", "file_id": "file_1"}}),
    ),
    "type that nobody knows": (
        {"type": "hologram", "beam": None},
        Opaque({"type": "anthropic.block", "value": {"type": "hologram", "beam": None}}),
    ),
}
"""What stands in user messages."""

MADE: dict[str, tuple[dict[str, Any], ContentBlock]] = {
    "text": ({"type": "text", "text": "hello"}, AssistantGenText("hello")),
    "text with citations": (
        {"type": "text", "text": "six", "citations": [CITATION]},
        AssistantGenText("six", extra={"anthropic": {"citations": [CITATION]}}),
    ),
    "thinking": (
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        Reasoning("hm", "c2ln", extension={"wire": "anthropic"}),
    ),
    "thinking that is not shown": (
        {"type": "thinking", "thinking": "", "signature": "c2ln"},
        Reasoning("", "c2ln", extension={"wire": "anthropic"}),
    ),
    "thinking of a server that does not sign": (
        {"type": "thinking", "thinking": "hm"},
        Reasoning("hm", extension={"wire": "anthropic"}, extra={"anthropic": {"signature": None}}),
    ),
    "redacted thinking": (
        {"type": "redacted_thinking", "data": "ZW5j"},
        Reasoning(extension={"wire": "anthropic", "data": "ZW5j"}),
    ),
    "call": (
        {"type": "tool_use", "id": "toolu_1", "name": "tides", "input": {"port": "Dover"}},
        FunctionToolCall("toolu_1", "tides", '{"port":"Dover"}'),
    ),
    "call with a caller": (
        {"type": "tool_use", "id": "toolu_1", "name": "tides", "input": {}, "caller": {"type": "direct"}},
        FunctionToolCall("toolu_1", "tides", "{}", extra={"anthropic": {"caller": {"type": "direct"}}}),
    ),
    "server call": (
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "tides"}},
        ServerToolCall(
            call_id="srvtoolu_1",
            name="web_search",
            arguments={"query": "tides"},
            extra={"anthropic": {"type": "server_tool_use"}},
        ),
    ),
    "server result": (
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [HIT], "caller": {"type": "direct"}},
        ServerToolResult(
            call_id="srvtoolu_1",
            name="web_search",
            content=[HIT],
            extra={"anthropic": {"type": "web_search_tool_result", "caller": {"type": "direct"}}},
        ),
    ),
    "result of code": (
        {"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_2", "content": OUTPUT},
        ServerToolResult(
            call_id="srvtoolu_2",
            name="code_execution",
            content=OUTPUT,
            extra={"anthropic": {"type": "code_execution_tool_result"}},
        ),
    ),
    "MCP call": (
        {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "tides", "server_name": "sea", "input": {"port": "Dover"}},
        ServerToolCall(
            call_id="mcptoolu_1",
            name="tides",
            arguments={"port": "Dover"},
            extra={"anthropic": {"type": "mcp_tool_use", "server_name": "sea"}},
        ),
    ),
    "MCP result": (
        {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "content": "6:12", "is_error": False},
        ServerToolResult(
            call_id="mcptoolu_1",
            name="mcp",
            content="6:12",
            extra={"anthropic": {"type": "mcp_tool_result", "is_error": False}},
        ),
    ),
    "tools of an MCP server": (
        {"type": "mcp_tool_listing", "mcp_server_name": "sea", "tools": LISTED},
        Opaque(
            {
                "type": "anthropic.block",
                "value": {"type": "mcp_tool_listing", "mcp_server_name": "sea", "tools": LISTED},
            }
        ),
    ),
    "compaction": (
        {"type": "compaction", "content": "So far …", "encrypted_content": "ZW5j"},
        Opaque(
            {
                "type": "anthropic.block",
                "value": {"type": "compaction", "content": "So far …", "encrypted_content": "ZW5j"},
            }
        ),
    ),
}
"""What stands in a model's replies."""
