"""Blocks of Anthropic's Messages API into native blocks."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from suture.codecs._contents import arguments_text
from suture.codecs._kept import unknown
from suture.errors import InputError
from suture.messages import (
    AssistantGenText,
    ContentBlock,
    FunctionToolCall,
    FunctionToolResult,
    MCPListToolsResult,
    MCPToolCall,
    MCPToolCallError,
    MCPToolResult,
    Reasoning,
    ServerToolCall,
    ServerToolResult,
    ToolInfo,
    UserInputText,
)
from suture.providers.anthropic.fields import WIRE, kept_beside, list_in, map_in, text_in
from suture.providers.anthropic.media import read_media

__all__ = ["read_content"]

_SERVER_RESULT = "_tool_result"
_OF_TEXT = ("type", "text", "parsed_output")
"""The last is what the SDK puts beside a text for its user; the API does not take it."""


def read_content(holder: Mapping[str, Any], *, made: bool = False) -> list[ContentBlock]:
    """Return the blocks in `holder["content"]`: of the model's making, or what it is given.

    >>> read_content({"content": "hi"})
    [UserInputText(text='hi')]
    """
    content = holder.get("content")
    if content is None:
        return []
    if isinstance(content, str):
        return [AssistantGenText(content) if made else UserInputText(content)] if content else []
    return [_read(block, place, made=made) for place, block in enumerate(list_in(holder, "content"))]


def _read(block: Mapping[str, Any], place: int, *, made: bool) -> ContentBlock:
    try:
        return _reader(text_in(block, "type"), made=made)(block)
    except InputError as error:
        raise InputError(error.reason, path=f"content[{place}].{error.path}") from None


def _reader(kind: str, *, made: bool) -> Callable[[Mapping[str, Any]], ContentBlock]:
    """Return what reads blocks of type `kind`."""
    if kind == "text":
        return _made_text if made else _given_text
    if not kind:
        raise InputError("expected a type, found nothing", path="type")
    return _READERS.get(kind) or (_server_result if kind.endswith(_SERVER_RESULT) else _unknown)


def _given_text(block: Mapping[str, Any]) -> UserInputText:
    return UserInputText(text_in(block, "text"), extra=kept_beside(block, _OF_TEXT))


def _made_text(block: Mapping[str, Any]) -> AssistantGenText:
    return AssistantGenText(text_in(block, "text"), extra=kept_beside(block, _OF_TEXT))


def _unknown(block: Mapping[str, Any]) -> ContentBlock:
    return unknown(WIRE, block)


def _thinking(block: Mapping[str, Any]) -> Reasoning:
    extra = kept_beside(block, ("type", "thinking", "signature"))
    if "signature" not in block:
        extra = {WIRE: {**extra.get(WIRE, {}), "signature": None}}
    return Reasoning(text_in(block, "thinking"), text_in(block, "signature"), extension={"wire": WIRE}, extra=extra)


def _redacted(block: Mapping[str, Any]) -> Reasoning:
    extension = {"wire": WIRE, "data": text_in(block, "data")}
    return Reasoning(extension=extension, extra=kept_beside(block, ("type", "data")))


def _call(block: Mapping[str, Any]) -> FunctionToolCall:
    extra = kept_beside(block, ("type", "id", "name", "input"))
    arguments = arguments_text(block.get("input"))
    return FunctionToolCall(text_in(block, "id"), text_in(block, "name"), arguments, extra=extra)


def _result(block: Mapping[str, Any]) -> FunctionToolResult:
    content = tuple(cast("list[Any]", read_content(block)))
    extra = kept_beside(block, ("type", "tool_use_id", "content", "is_error"))
    return FunctionToolResult(
        text_in(block, "tool_use_id"), content=content, is_error=bool(block.get("is_error")), extra=extra
    )


# What the provider ran on its side: the type is kept, so that it is known whose it was.


def _server_call(block: Mapping[str, Any]) -> ServerToolCall:
    extra = kept_beside(block, ("id", "name", "input"))
    return ServerToolCall(
        call_id=text_in(block, "id"), name=text_in(block, "name"), arguments=block.get("input"), extra=extra
    )


def _server_result(block: Mapping[str, Any]) -> ServerToolResult:
    extra = kept_beside(block, ("tool_use_id", "content"))
    name = str(block["type"]).removesuffix(_SERVER_RESULT)
    return ServerToolResult(call_id=text_in(block, "tool_use_id"), name=name, content=block.get("content"), extra=extra)


def _mcp_call(block: Mapping[str, Any]) -> MCPToolCall:
    return MCPToolCall(
        call_id=text_in(block, "id"),
        name=text_in(block, "name"),
        arguments=arguments_text(block.get("input")),
        server_label=text_in(block, "server_name"),
        extra=kept_beside(block, ("id", "name", "input", "server_name")),
    )


def _mcp_result(block: Mapping[str, Any]) -> MCPToolResult:
    """Return what an MCP server's tool gave, as one text; content in several blocks is kept beside it."""
    held = read_content(block)
    text = "\n".join([part.text for part in held if isinstance(part, UserInputText)])
    known = {"tool_use_id", "is_error"} | ({"content"} if isinstance(block.get("content"), str) else set[str]())
    extra = kept_beside(block, known)
    absent = {name: None for name in ("content", "is_error") if block.get(name) is None}
    failed = bool(block.get("is_error"))
    return MCPToolResult(
        call_id=text_in(block, "tool_use_id"),
        content="" if failed else text,
        error=MCPToolCallError(message=text) if failed else None,
        extra={WIRE: {**extra[WIRE], **absent}},
    )


def _mcp_tools(block: Mapping[str, Any]) -> MCPListToolsResult:
    """Return the tools that an MCP server has; their list is kept, since it must go back as it came."""
    tools = [
        ToolInfo(text_in(tool, "name"), text_in(tool, "description"), map_in(tool, "input_schema"))
        for tool in list_in(block, "tools")
    ]
    extra = kept_beside(block, ("mcp_server_name",))
    return MCPListToolsResult(server_label=text_in(block, "mcp_server_name"), tools=tools, extra=extra)


_READERS: Mapping[str, Callable[[Mapping[str, Any]], ContentBlock]] = {
    "thinking": _thinking,
    "redacted_thinking": _redacted,
    "image": read_media,
    "document": read_media,
    "tool_use": _call,
    "tool_result": _result,
    "server_tool_use": _server_call,
    "mcp_tool_use": _mcp_call,
    "mcp_tool_result": _mcp_result,
    "mcp_tool_listing": _mcp_tools,
}
