"""MCP servers that the service talks to: their tools, its calls, and its questions whether it may call."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from suture.codecs._contents import arguments_text
from suture.codecs._values import Losses
from suture.messages import (
    MCPListToolsResult,
    MCPToolApprovalRequest,
    MCPToolApprovalResponse,
    MCPToolCall,
    MCPToolCallError,
    MCPToolResult,
    ToolInfo,
)
from suture.providers.openai_responses.fields import NEEDS, WIRE, beside, list_in, map_of, own_fields, returned, text_in

__all__ = [
    "read_approval",
    "read_approval_request",
    "read_mcp_call",
    "read_mcp_tools",
    "write_approval",
    "write_approval_request",
    "write_mcp_call",
    "write_mcp_result",
    "write_mcp_tools",
]


def read_mcp_call(item: Mapping[str, Any], needs: str = "") -> list[Any]:
    """Return a call of an MCP server's tool, and what it gave where it gave something.

    >>> [type(block).__name__ for block in read_mcp_call({"type": "mcp_call", "id": "mcp_1", "output": "4"})]
    ['MCPToolCall', 'MCPToolResult']
    """
    call_id, name, label = text_in(item, "id"), text_in(item, "name"), text_in(item, "server_label")
    known = ("id", "name", "server_label", "arguments", "approval_request_id", "output", "error")
    call = MCPToolCall(
        call_id=call_id,
        name=name,
        arguments=arguments_text(item.get("arguments")),
        server_label=label,
        approval_request_id=text_in(item, "approval_request_id"),
        extra=beside(item, known, **{NEEDS: needs}),
    )
    error: Any = item.get("error")
    if error is None and item.get("output") is None:
        return [call]
    result = MCPToolResult(
        call_id=call_id,
        name=name,
        content=text_in(item, "output"),
        server_label=label,
        error=None if error is None else _error(error),
        extra={} if error is None else {WIRE: {"error": error}},
    )
    return [call, result]


def write_mcp_call(block: MCPToolCall, losses: Losses, path: str) -> dict[str, Any]:
    """Return the item of a call of an MCP server's tool, without what it gave.

    >>> write_mcp_call(read_mcp_call({"type": "mcp_call", "id": "mcp_1"})[0], Losses(), "")["id"]
    'mcp_1'
    """
    item = {"type": "mcp_call", "id": block.call_id, "name": block.name, "arguments": block.arguments}
    item["server_label"] = block.server_label
    if block.approval_request_id:
        item["approval_request_id"] = block.approval_request_id
    return returned(item, block.extra, losses, path)


def write_mcp_result(item: dict[str, Any], block: MCPToolResult) -> bool:
    """Put what an MCP server's tool gave into the item of its call; tell whether it belongs there.

    >>> item = {"type": "mcp_call", "id": "mcp_1"}
    >>> write_mcp_result(item, MCPToolResult(call_id="mcp_1", content="4")), item["output"]
    (True, '4')
    """
    if item.get("type") != "mcp_call" or item.get("id") != block.call_id:
        return False
    if block.content or block.error is None:
        item["output"] = block.content
    if block.error is not None:
        told = {"type": "mcp_protocol_error", "code": block.error.code or 0, "message": block.error.message}
        item["error"] = own_fields(block.extra).get("error", told)
    return True


def read_mcp_tools(item: Mapping[str, Any], needs: str = "") -> MCPListToolsResult:
    """Return the tools of an MCP server.

    >>> read_mcp_tools({"type": "mcp_list_tools", "tools": [{"name": "f", "input_schema": {}}]}).tools[0].name
    'f'
    """
    tools = [
        ToolInfo(
            text_in(tool, "name"),
            text_in(tool, "description"),
            None if tool.get("input_schema") is None else map_of(tool["input_schema"], "input_schema"),
            extra=beside(tool, ("name", "description", "input_schema")),
        )
        for tool in list_in(item, "tools")
    ]
    extra = beside(item, ("server_label", "tools", "error"), **{NEEDS: needs})
    label, error = text_in(item, "server_label"), text_in(item, "error")
    return MCPListToolsResult(server_label=label, tools=tuple(tools), error=error, extra=extra)


def write_mcp_tools(block: MCPListToolsResult, losses: Losses, path: str) -> dict[str, Any]:
    """Return the item of an MCP server's tools.

    >>> write_mcp_tools(read_mcp_tools({"type": "mcp_list_tools", "server_label": "s"}), Losses(), "")["tools"]
    []
    """
    tools: list[dict[str, Any]] = []
    for place, tool in enumerate(block.tools):
        said: dict[str, Any] = {"name": tool.name, "input_schema": dict(tool.parameters or {})}
        if tool.description:
            said["description"] = tool.description
        tools.append(returned(said, tool.extra, losses, f"{path}.tools[{place}]"))
    item: dict[str, Any] = {"type": "mcp_list_tools", "server_label": block.server_label, "tools": tools}
    if block.error:
        item["error"] = block.error
    return returned(item, block.extra, losses, path)


def read_approval_request(item: Mapping[str, Any]) -> MCPToolApprovalRequest:
    """Return the service's question whether it may call a tool.

    >>> read_approval_request({"id": "mcpr_1", "name": "drop", "arguments": "{}"}).name
    'drop'
    """
    known = ("type", "id", "name", "arguments", "server_label")
    return MCPToolApprovalRequest(
        id=text_in(item, "id"),
        name=text_in(item, "name"),
        arguments=arguments_text(item.get("arguments")),
        server_label=text_in(item, "server_label"),
        extra=beside(item, known),
    )


def write_approval_request(block: MCPToolApprovalRequest, losses: Losses, path: str) -> dict[str, Any]:
    """Return the item of such a question.

    >>> write_approval_request(MCPToolApprovalRequest(id="mcpr_1"), Losses(), "")["type"]
    'mcp_approval_request'
    """
    item = {"type": "mcp_approval_request", "id": block.id, "name": block.name, "arguments": block.arguments}
    return returned({**item, "server_label": block.server_label}, block.extra, losses, path)


def read_approval(item: Mapping[str, Any]) -> MCPToolApprovalResponse:
    """Return the answer to such a question.

    >>> read_approval({"approval_request_id": "mcpr_1", "approve": True}).approve
    True
    """
    return MCPToolApprovalResponse(
        approval_request_id=text_in(item, "approval_request_id"),
        approve=item.get("approve", False),
        reason=text_in(item, "reason"),
        extra=beside(item, ("type", "approval_request_id", "approve", "reason")),
    )


def write_approval(block: MCPToolApprovalResponse, losses: Losses, path: str) -> dict[str, Any]:
    """Return the item of such an answer.

    >>> write_approval(MCPToolApprovalResponse(approval_request_id="mcpr_1", approve=True), Losses(), "")["approve"]
    True
    """
    item = {"type": "mcp_approval_response", "approval_request_id": block.approval_request_id, "approve": block.approve}
    return returned({**item, "reason": block.reason} if block.reason else item, block.extra, losses, path)


def _error(error: Any) -> MCPToolCallError:
    held = cast("dict[str, Any]", error) if isinstance(error, dict) else {"message": error}
    code, message = held.get("code"), held.get("message")
    said = message if isinstance(message, str) else msgspec.json.encode(held.get("content", message)).decode()
    return MCPToolCallError(code=code if type(code) is int else None, message=said)
