"""Middlewares that come with Suture, and the interface to write your own."""

from suture.kernel import (
    AgentMiddleware,
    ChatModelAgentContext,
    ChatModelAgentMiddleware,
    ChatModelAgentState,
    EnhancedInvokableEndpoint,
    EnhancedStreamableEndpoint,
    EventSenderModelWrapper,
    EventSenderToolWrapper,
    InvokableEndpoint,
    ModelContext,
    StreamableEndpoint,
    closing,
)
from suture.middleware.patch_tool_calls import PatchToolCalls
from suture.middleware.tool_reduction import ToolReduction
from suture.reduction import ClearResult, ToolDetail, ToolReductionConfig, TruncResult

__all__ = [
    "AgentMiddleware",
    "ChatModelAgentContext",
    "ChatModelAgentMiddleware",
    "ChatModelAgentState",
    "ClearResult",
    "EnhancedInvokableEndpoint",
    "EnhancedStreamableEndpoint",
    "EventSenderModelWrapper",
    "EventSenderToolWrapper",
    "InvokableEndpoint",
    "ModelContext",
    "PatchToolCalls",
    "StreamableEndpoint",
    "ToolDetail",
    "ToolReduction",
    "ToolReductionConfig",
    "TruncResult",
    "closing",
]
