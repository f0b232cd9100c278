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

__all__ = [
    "AgentMiddleware",
    "ChatModelAgentContext",
    "ChatModelAgentMiddleware",
    "ChatModelAgentState",
    "EnhancedInvokableEndpoint",
    "EnhancedStreamableEndpoint",
    "EventSenderModelWrapper",
    "EventSenderToolWrapper",
    "InvokableEndpoint",
    "ModelContext",
    "PatchToolCalls",
    "StreamableEndpoint",
    "closing",
]
