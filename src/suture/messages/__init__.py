"""Suture's own messages, and the values that tools take and give.

Two message types: `Message`, the chat shape, and `AgenticMessage`, made of content blocks. Everything here is
a frozen value; nothing here reads a clock, a disk or the network. `to_json` and `from_json` keep every value
exactly.
"""

from suture.messages._blocks import (
    AssistantGenAudio,
    AssistantGenImage,
    AssistantGenText,
    AssistantGenVideo,
    ContentBlock,
    FunctionToolCall,
    FunctionToolResult,
    MCPListToolsResult,
    MCPToolApprovalRequest,
    MCPToolApprovalResponse,
    MCPToolCall,
    MCPToolCallError,
    MCPToolResult,
    Reasoning,
    ServerToolCall,
    ServerToolResult,
    ToolSearchResult,
    UserInputAudio,
    UserInputBlock,
    UserInputFile,
    UserInputImage,
    UserInputText,
    UserInputVideo,
)
from suture.messages._codec import (
    SCHEMA_VERSION,
    from_json,
    from_msgpack,
    message_from_dict,
    message_to_dict,
    to_json,
    to_msgpack,
)
from suture.messages._delta import Delta
from suture.messages._frozen import FrozenMap
from suture.messages._generic import M, NativeM
from suture.messages._history import History
from suture.messages._messages import AgenticMessage, AgenticRole, AnyMessage, Message, Role, ToolCall
from suture.messages._meta import LogProb, ResponseMeta, TokenUsage, TopLogProb
from suture.messages._opaque import Opaque
from suture.messages._parts import (
    AudioPart,
    FilePart,
    ImagePart,
    Part,
    ReasoningPart,
    TextPart,
    ToolSearchPart,
    VideoPart,
)
from suture.messages._plain import check_plain
from suture.messages._tool_info import ToolInfo
from suture.messages._tools import ToolArgument, ToolContext, ToolResult

__all__ = [
    "SCHEMA_VERSION",
    "AgenticMessage",
    "AgenticRole",
    "AnyMessage",
    "AssistantGenAudio",
    "AssistantGenImage",
    "AssistantGenText",
    "AssistantGenVideo",
    "AudioPart",
    "ContentBlock",
    "Delta",
    "FilePart",
    "FrozenMap",
    "FunctionToolCall",
    "FunctionToolResult",
    "History",
    "ImagePart",
    "LogProb",
    "M",
    "MCPListToolsResult",
    "MCPToolApprovalRequest",
    "MCPToolApprovalResponse",
    "MCPToolCall",
    "MCPToolCallError",
    "MCPToolResult",
    "Message",
    "NativeM",
    "Opaque",
    "Part",
    "Reasoning",
    "ReasoningPart",
    "ResponseMeta",
    "Role",
    "ServerToolCall",
    "ServerToolResult",
    "TextPart",
    "TokenUsage",
    "ToolArgument",
    "ToolCall",
    "ToolContext",
    "ToolInfo",
    "ToolResult",
    "ToolSearchPart",
    "ToolSearchResult",
    "TopLogProb",
    "UserInputAudio",
    "UserInputBlock",
    "UserInputFile",
    "UserInputImage",
    "UserInputText",
    "UserInputVideo",
    "VideoPart",
    "check_plain",
    "from_json",
    "from_msgpack",
    "message_from_dict",
    "message_to_dict",
    "to_json",
    "to_msgpack",
]
