"""The content blocks of an `AgenticMessage`. The shapes they share with parts are in `_shapes.py`.

Only `FunctionToolCall` asks the program to do something. Server and MCP blocks tell what the provider did on
its side; they are kept and sent back, not acted upon.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from suture.messages._frozen import EMPTY
from suture.messages._opaque import Opaque
from suture.messages._shapes import File, Image, Media, Piece, Text, Thought
from suture.messages._tool_info import ToolInfo
from suture.messages._value import Value

__all__ = [
    "AssistantGenAudio",
    "AssistantGenImage",
    "AssistantGenText",
    "AssistantGenVideo",
    "ContentBlock",
    "FunctionToolCall",
    "FunctionToolResult",
    "MCPListToolsResult",
    "MCPToolApprovalRequest",
    "MCPToolApprovalResponse",
    "MCPToolCall",
    "MCPToolCallError",
    "MCPToolResult",
    "Reasoning",
    "ServerToolCall",
    "ServerToolResult",
    "ToolSearchResult",
    "UserInputAudio",
    "UserInputBlock",
    "UserInputFile",
    "UserInputImage",
    "UserInputText",
    "UserInputVideo",
]


# What the model thought and made


class Reasoning(Thought, tag="reasoning"):
    """What the model thought before it answered; send it back with its `signature` untouched."""

    extension: Mapping[str, Any] = EMPTY


class AssistantGenText(Text, tag="assistant_gen_text"):
    """Text the model wrote; `extension` holds a provider's citations, annotations or refusal."""

    extension: Mapping[str, Any] = EMPTY


class AssistantGenImage(Media, tag="assistant_gen_image"):
    """An image the model made."""


class AssistantGenAudio(Media, tag="assistant_gen_audio"):
    """A sound the model made."""


class AssistantGenVideo(Media, tag="assistant_gen_video"):
    """A film the model made."""


# What the model is given


class UserInputText(Text, tag="user_input_text"):
    """Text for the model, in user and system messages and in tool results.

    >>> from suture.messages import UserInputText
    >>> UserInputText("hello")
    UserInputText(text='hello')
    """


class UserInputImage(Image, tag="user_input_image"):
    """An image for the model."""


class UserInputAudio(Media, tag="user_input_audio"):
    """A sound for the model."""


class UserInputVideo(Media, tag="user_input_video"):
    """A film for the model."""


class UserInputFile(File, tag="user_input_file"):
    """A file for the model, with its `name`."""


UserInputBlock: TypeAlias = UserInputText | UserInputImage | UserInputAudio | UserInputVideo | UserInputFile | Opaque
"""What may stand in a user message beside tool results, and inside a tool result."""


# Tools: the program's own, the provider's, and those of MCP servers the provider talks to


class _OfCall(Piece):
    """A call or its result: the call's id and the tool's name."""

    call_id: str = ""
    name: str = ""


class FunctionToolCall(_OfCall, tag="function_tool_call"):
    """A call of one of the program's tools; `arguments` is JSON text.

    >>> from suture.messages import FunctionToolCall
    >>> FunctionToolCall("call_1", "search", '{"query": "pairing"}').name
    'search'
    """

    arguments: str = ""


class FunctionToolResult(_OfCall, tag="function_tool_result"):
    """What one of the program's tools gave, in a user message.

    >>> from suture.messages import FunctionToolResult, UserInputText
    >>> FunctionToolResult("call_1", "search", [UserInputText("3 pages")]).content
    (UserInputText(text='3 pages'),)
    """

    content: Sequence[UserInputBlock] = ()
    is_error: bool = False


class ToolSearchResult(_OfCall, tag="tool_search_result"):
    """The result of a call that searched for tools: those it found, which the model may now call."""

    tools: Sequence[ToolInfo] = ()


class ServerToolCall(_OfCall, tag="server_tool_call", kw_only=True):
    """A tool the provider ran on its side; `arguments` is any JSON value."""

    arguments: Any = None


class ServerToolResult(_OfCall, tag="server_tool_result", kw_only=True):
    """What a tool on the provider's side gave; `content` is any JSON value."""

    content: Any = None


class MCPToolCall(_OfCall, tag="mcp_tool_call", kw_only=True):
    """A tool of an MCP server that the provider called; `arguments` is JSON text."""

    arguments: str = ""
    server_label: str = ""
    approval_request_id: str = ""


class MCPToolCallError(Value, kw_only=True):
    """Why an MCP server failed to run a tool."""

    code: int | None = None
    message: str = ""


class MCPToolResult(_OfCall, tag="mcp_tool_result", kw_only=True):
    """What a tool of an MCP server gave: `content` as text, or the `error`."""

    content: str = ""
    server_label: str = ""
    error: MCPToolCallError | None = None


class MCPListToolsResult(Piece, tag="mcp_list_tools_result", kw_only=True):
    """The tools an MCP server has, or the `error` that kept it from saying so."""

    server_label: str = ""
    tools: Sequence[ToolInfo] = ()
    error: str = ""


class MCPToolApprovalRequest(Piece, tag="mcp_tool_approval_request", kw_only=True):
    """The provider asks whether it may call a tool of an MCP server; `arguments` is JSON text."""

    id: str = ""
    name: str = ""
    arguments: str = ""
    server_label: str = ""


class MCPToolApprovalResponse(Piece, tag="mcp_tool_approval_response", kw_only=True):
    """The answer to such a request."""

    approval_request_id: str = ""
    approve: bool = False
    reason: str = ""


ContentBlock: TypeAlias = (
    UserInputBlock
    | Reasoning
    | AssistantGenText
    | AssistantGenImage
    | AssistantGenAudio
    | AssistantGenVideo
    | FunctionToolCall
    | FunctionToolResult
    | ToolSearchResult
    | ServerToolCall
    | ServerToolResult
    | MCPToolCall
    | MCPToolResult
    | MCPListToolsResult
    | MCPToolApprovalRequest
    | MCPToolApprovalResponse
)
"""One block of an `AgenticMessage`."""
