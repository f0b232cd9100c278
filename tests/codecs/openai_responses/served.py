"""What the service did on its side: its items, each beside the native blocks."""

from typing import Any

from suture.messages import (
    AssistantGenImage,
    ContentBlock,
    MCPListToolsResult,
    MCPToolApprovalRequest,
    MCPToolCall,
    MCPToolCallError,
    MCPToolResult,
    ServerToolCall,
    ServerToolResult,
    ToolInfo,
)
from tests.codecs.openai_responses.marks import kept

HTTP_ERROR = {"type": "http_error", "code": 502, "message": "gone"}

SERVED: dict[str, tuple[list[dict[str, Any]], list[ContentBlock]]] = {
    "a search of the web": (
        [
            {
                "type": "web_search_call",
                "id": "ws_9f",
                "status": "completed",
                "action": {"type": "search", "query": "tides"},
            }
        ],
        [
            ServerToolCall(
                call_id="ws_9f",
                name="web_search",
                arguments={"type": "search", "query": "tides"},
                extra=kept(type="web_search_call", status="completed"),
            )
        ],
    ),
    "a search of files": (
        [
            {
                "type": "file_search_call",
                "id": "fs_9f",
                "status": "completed",
                "queries": ["tides"],
                "results": [{"file_id": "file-1", "text": "high"}],
            }
        ],
        [
            ServerToolCall(
                call_id="fs_9f",
                name="file_search",
                arguments=["tides"],
                extra=kept(type="file_search_call", status="completed"),
            ),
            ServerToolResult(call_id="fs_9f", name="file_search", content=[{"file_id": "file-1", "text": "high"}]),
        ],
    ),
    "code that was run": (
        [
            {
                "type": "code_interpreter_call",
                "id": "ci_9f",
                "status": "completed",
                "container_id": "cntr_1",
                "code": "1 + 1",
                "outputs": [{"type": "logs", "logs": "2"}],
            }
        ],
        [
            ServerToolCall(
                call_id="ci_9f",
                name="code_interpreter",
                arguments="1 + 1",
                extra=kept(type="code_interpreter_call", status="completed", container_id="cntr_1"),
            ),
            ServerToolResult(call_id="ci_9f", name="code_interpreter", content=[{"type": "logs", "logs": "2"}]),
        ],
    ),
    "the computer": (
        [
            {
                "type": "computer_call",
                "id": "cu_9f",
                "call_id": "a",
                "status": "completed",
                "action": {"type": "screenshot"},
                "pending_safety_checks": [],
            }
        ],
        [
            ServerToolCall(
                call_id="a",
                name="computer",
                arguments={"type": "screenshot"},
                extra=kept(type="computer_call", id="cu_9f", status="completed", pending_safety_checks=[]),
            )
        ],
    ),
    "a search for tools": (
        [
            {"type": "tool_search_call", "id": "ts_9f", "arguments": {"q": "tides"}, "execution": "server"},
            {"type": "tool_search_output", "id": "tso_9f", "tools": [], "execution": "server"},
        ],
        [
            ServerToolCall(
                name="tool_search",
                arguments={"q": "tides"},
                extra=kept(type="tool_search_call", id="ts_9f", execution="server"),
            ),
            ServerToolResult(
                name="tool_search", content=[], extra=kept(type="tool_search_output", id="tso_9f", execution="server")
            ),
        ],
    ),
    "an image": (
        [
            {
                "type": "image_generation_call",
                "id": "ig_9f",
                "status": "completed",
                "result": "UklG",
                "output_format": "webp",
            }
        ],
        [
            AssistantGenImage(
                base64_data="UklG",
                mime_type="image/webp",
                extra=kept(type="image_generation_call", id="ig_9f", status="completed", output_format="webp"),
            )
        ],
    ),
    "an image that failed": (
        [{"type": "image_generation_call", "id": "ig_9f", "status": "failed", "error": {"message": "no"}}],
        [
            ServerToolCall(
                call_id="ig_9f",
                name="image_generation",
                extra=kept(type="image_generation_call", status="failed", error={"message": "no"}),
            )
        ],
    ),
    "a call of an MCP server": (
        [
            {
                "type": "mcp_call",
                "id": "mcp_9f",
                "name": "f",
                "arguments": "{}",
                "server_label": "docs",
                "approval_request_id": "mcpr_9f",
                "output": "42",
                "status": "completed",
            }
        ],
        [
            MCPToolCall(
                call_id="mcp_9f",
                name="f",
                arguments="{}",
                server_label="docs",
                approval_request_id="mcpr_9f",
                extra=kept(type="mcp_call", status="completed"),
            ),
            MCPToolResult(call_id="mcp_9f", name="f", content="42", server_label="docs"),
        ],
    ),
    "a failed call of an MCP server": (
        [
            {
                "type": "mcp_call",
                "id": "mcp_9f",
                "name": "f",
                "arguments": "{}",
                "server_label": "docs",
                "error": HTTP_ERROR,
            }
        ],
        [
            MCPToolCall(call_id="mcp_9f", name="f", arguments="{}", server_label="docs", extra=kept(type="mcp_call")),
            MCPToolResult(
                call_id="mcp_9f",
                name="f",
                server_label="docs",
                error=MCPToolCallError(code=502, message="gone"),
                extra=kept(error=HTTP_ERROR),
            ),
        ],
    ),
    "a tool of an MCP server that failed": (
        [
            {
                "type": "mcp_call",
                "id": "mcp_9f",
                "name": "f",
                "arguments": "{}",
                "server_label": "docs",
                "error": {"type": "mcp_tool_execution_error", "content": ["no"]},
            }
        ],
        [
            MCPToolCall(call_id="mcp_9f", name="f", arguments="{}", server_label="docs", extra=kept(type="mcp_call")),
            MCPToolResult(
                call_id="mcp_9f",
                name="f",
                server_label="docs",
                error=MCPToolCallError(message='["no"]'),
                extra=kept(error={"type": "mcp_tool_execution_error", "content": ["no"]}),
            ),
        ],
    ),
    "the tools of an MCP server": (
        [
            {
                "type": "mcp_list_tools",
                "id": "mcpl_9f",
                "server_label": "docs",
                "tools": [{"name": "f", "description": "Do.", "input_schema": {"type": "object"}, "annotations": {}}],
            }
        ],
        [
            MCPListToolsResult(
                server_label="docs",
                tools=[ToolInfo("f", "Do.", {"type": "object"})],
                extra=kept(
                    type="mcp_list_tools",
                    id="mcpl_9f",
                    tools=[{"name": "f", "description": "Do.", "input_schema": {"type": "object"}, "annotations": {}}],
                ),
            )
        ],
    ),
    "a question of an MCP server": (
        [{"type": "mcp_approval_request", "id": "mcpr_9f", "name": "f", "arguments": "{}", "server_label": "docs"}],
        [MCPToolApprovalRequest(id="mcpr_9f", name="f", arguments="{}", server_label="docs")],
    ),
}
"""What the service did on its side."""
