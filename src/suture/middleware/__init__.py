"""Middlewares that come with Suture, and the interface to write your own."""

from importlib import import_module
from typing import TYPE_CHECKING

from suture.kernel import (
    AgentMiddleware,
    AskModel,
    CallTool,
    ChatModelAgentContext,
    ChatModelAgentMiddleware,
    ChatModelAgentState,
    ModelContext,
    Sink,
    ToolCallRequest,
    closing,
    current_run,
)
from suture.kernel.middleware import (
    EnhancedInvokableEndpoint,
    EnhancedStreamableEndpoint,
    InvokableEndpoint,
    StreamableEndpoint,
)
from suture.kernel.ring import EventSenderModelWrapper, EventSenderToolWrapper
from suture.middleware.patch_tool_calls import PatchToolCalls

if TYPE_CHECKING:
    from suture.middleware.compaction import Compaction
    from suture.middleware.tool_reduction import ToolReduction
    from suture.reduction import ClearResult, ToolDetail, ToolReductionConfig, TruncResult

__all__ = [
    "AgentMiddleware",
    "AskModel",
    "CallTool",
    "ChatModelAgentContext",
    "ChatModelAgentMiddleware",
    "ChatModelAgentState",
    "ClearResult",
    "Compaction",
    "EnhancedInvokableEndpoint",
    "EnhancedStreamableEndpoint",
    "EventSenderModelWrapper",
    "EventSenderToolWrapper",
    "InvokableEndpoint",
    "ModelContext",
    "PatchToolCalls",
    "Sink",
    "StreamableEndpoint",
    "ToolCallRequest",
    "ToolDetail",
    "ToolReduction",
    "ToolReductionConfig",
    "TruncResult",
    "closing",
    "current_run",
]


_LATER = {
    "Compaction": "suture.middleware.compaction",
    "ToolReduction": "suture.middleware.tool_reduction",
    **dict.fromkeys(("ClearResult", "ToolDetail", "ToolReductionConfig", "TruncResult"), "suture.reduction"),
}


def __getattr__(name: str) -> object:  # an agent without a reduction does not import it
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
