"""The content of messages: the parts of a `Message` and of tool results, the blocks of an `AgenticMessage`.

Both are tagged unions whose members often have the same fields, so each set (`Text`, `Thought`, `Media`, …) is written
once. Only `FunctionToolCall` asks the program to do something. Server and MCP blocks record what the provider did
itself; they are kept and sent back, not acted upon.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

from suture.errors import InputError
from suture.messages.values import EMPTY, Value


class Streamed(Value, kw_only=True):
    """Something that a model may send in pieces: `index` is its place in the reply, `extra` holds any other data."""

    index: int | None = None
    extra: Mapping[str, Any] = EMPTY


class Piece(Streamed, tag_field="type"):
    """A part or a block."""


class Text(Piece):
    """A text."""

    text: str = ""


class Thought(Piece):
    """A thought of the model: its text, or a summary, and the signature by which the provider recognises it."""

    text: str = ""
    signature: str = ""


class Media(Piece, kw_only=True):
    """An image, audio, a video or a file: a `url` or `base64_data`, and its `mime_type`."""

    url: str = ""
    base64_data: str = ""
    mime_type: str = ""


class Image(Media, kw_only=True):
    """An image for the model; `detail` says how closely to look at it (`high`, `low`, `auto`)."""

    detail: str = ""


class File(Media, kw_only=True):
    """A file, with its `name`."""

    name: str = ""


class ToolInfo(Value):
    """A tool as the model sees it.

    `parameters` is the JSON Schema of its arguments, or `None` for a tool without arguments.

    >>> ToolInfo("search", "Search the docs.", {"type": "object", "properties": {"query": {}}}).name
    'search'
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Any] | None = None
    extra: Mapping[str, Any] = EMPTY


OPAQUE = "suture.opaque"
"""The reserved tag of `Opaque`. It is never stored: the data are written in its place."""


class Opaque(Value, tag_field="type", tag=OPAQUE):
    """A part or block of an unknown type, kept and written back unchanged.

    `data` is the whole JSON object, with a `type` that this version does not know.

    >>> from suture.messages import Opaque, from_json, to_json
    >>> stored = b'[{"kind":"agentic","role":"user","content_blocks":[{"type":"hologram","beam":7}]}]'
    >>> from_json(stored)[0].content_blocks
    (Opaque(data={'type': 'hologram', 'beam': 7}),)
    >>> stored[1:-1] in to_json(from_json(stored))
    True
    """

    data: Mapping[str, Any]

    def __post_init__(self) -> None:
        super().__post_init__()
        kind = self.data.get("type")
        if not isinstance(kind, str) or kind == OPAQUE:
            raise InputError("Opaque takes an object with a type of its own here", path="data")

    @property
    def type(self) -> str:
        """The type that this version does not know."""
        return self.data["type"]

    @property
    def index(self) -> int | None:
        """Its place in a streamed reply, if the data has it."""
        index = self.data.get("index")
        return index if type(index) is int else None

    @property
    def extra(self) -> Mapping[str, Any]:
        """The `extra` in the data; empty if there is none."""
        extra = self.data.get("extra")
        return cast("Mapping[str, Any]", extra) if isinstance(extra, Mapping) else EMPTY


# The parts of a `Message` or `ToolResult`


class TextPart(Text, tag="text"):
    """A piece of text.

    >>> TextPart("What is in this picture?")
    TextPart(text='What is in this picture?')
    """

    def __post_init__(self) -> None:
        if type(self.text) is not str or self.index is not None or self.extra is not EMPTY:
            super().__post_init__()


class ImagePart(Image, tag="image"):
    """An image, by `url` or as `base64_data` with its `mime_type`.

    >>> ImagePart(url="https://example.com/cat.png", detail="high").detail
    'high'
    """


class AudioPart(Media, tag="audio"):
    """Audio."""


class VideoPart(Media, tag="video"):
    """A video."""


class FilePart(File, tag="file"):
    """A file, with its `name`."""


class ReasoningPart(Thought, tag="reasoning"):
    """What the model thought before it answered; send it back with its `signature` untouched."""


class ToolSearchPart(Piece, tag="tool_search_result"):
    """The tools that a tool search found."""

    tools: Sequence[ToolInfo] = ()


Part: TypeAlias = TextPart | ImagePart | AudioPart | VideoPart | FilePart | ReasoningPart | ToolSearchPart | Opaque
"""One part of a multimodal message."""


# Blocks that the model made


class Reasoning(Thought, tag="reasoning"):
    """What the model thought before it answered; send it back with its `signature` untouched."""

    extension: Mapping[str, Any] = EMPTY


class AssistantGenText(Text, tag="assistant_gen_text"):
    """Text that the model wrote; `extension` holds a provider's citations, annotations or refusal."""

    extension: Mapping[str, Any] = EMPTY


class AssistantGenImage(Media, tag="assistant_gen_image"):
    """An image that the model made."""


class AssistantGenAudio(Media, tag="assistant_gen_audio"):
    """Audio that the model made."""


class AssistantGenVideo(Media, tag="assistant_gen_video"):
    """A video that the model made."""


# Blocks for the model


class UserInputText(Text, tag="user_input_text"):
    """Text for the model, in user and system messages and in tool results.

    >>> UserInputText("hello")
    UserInputText(text='hello')
    """


class UserInputImage(Image, tag="user_input_image"):
    """An image for the model."""


class UserInputAudio(Media, tag="user_input_audio"):
    """Audio for the model."""


class UserInputVideo(Media, tag="user_input_video"):
    """A video for the model."""


class UserInputFile(File, tag="user_input_file"):
    """A file for the model, with its `name`."""


UserInputBlock: TypeAlias = UserInputText | UserInputImage | UserInputAudio | UserInputVideo | UserInputFile | Opaque
"""A block that a user message may hold beside tool results, and a tool result inside."""


# Tools: the program's, the provider's, and those of MCP servers that the provider calls


class _CallPiece(Piece):
    """A call or its result, with the call's id and the tool's name."""

    call_id: str = ""
    name: str = ""


class FunctionToolCall(_CallPiece, tag="function_tool_call"):
    """A call of one of the program's tools; `arguments` is JSON text.

    >>> FunctionToolCall("call_1", "search", '{"query": "pairing"}').name
    'search'
    """

    arguments: str = ""


class FunctionToolResult(_CallPiece, tag="function_tool_result"):
    """The result of one of the program's tools, in a user message.

    >>> FunctionToolResult("call_1", "search", [UserInputText("3 pages")]).content
    (UserInputText(text='3 pages'),)
    """

    content: Sequence[UserInputBlock] = ()
    is_error: bool = False


class ToolSearchResult(_CallPiece, tag="tool_search_result"):
    """The result of a tool search: the tools that it found, which the model may now call."""

    tools: Sequence[ToolInfo] = ()


class ServerToolCall(_CallPiece, tag="server_tool_call", kw_only=True):
    """A call of a tool that the provider ran itself; `arguments` is any JSON value."""

    arguments: Any = None


class ServerToolResult(_CallPiece, tag="server_tool_result", kw_only=True):
    """The result of a tool that the provider ran itself; `content` is any JSON value."""

    content: Any = None


class MCPToolCall(_CallPiece, tag="mcp_tool_call", kw_only=True):
    """A call of an MCP server's tool by the provider; `arguments` is JSON text."""

    arguments: str = ""
    server_label: str = ""
    approval_request_id: str = ""


class MCPToolCallError(Value, kw_only=True):
    """Why an MCP server failed to run a tool."""

    code: int | None = None
    message: str = ""


class MCPToolResult(_CallPiece, tag="mcp_tool_result", kw_only=True):
    """The result of an MCP server's tool: `content` as text, or the `error`."""

    content: str = ""
    server_label: str = ""
    error: MCPToolCallError | None = None


class MCPListToolsResult(Piece, tag="mcp_list_tools_result", kw_only=True):
    """The tools of an MCP server, or the `error` from listing them."""

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
    """The answer to an `MCPToolApprovalRequest`."""

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
