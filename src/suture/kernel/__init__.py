"""The kernel: the loop, its two units with effects (the model turn and the tool call), and the hooks around them.

Start with `loop.py` (it decides the next step and does it), then `model_call.py` and `tool_call.py`. `state.py` has
the state of a run, `lifecycle.py` its beginning and end, `run.py` the object that a user holds.
"""

from suture._aio import closing
from suture.kernel.config import (
    Budget,
    Callbacks,
    Component,
    FailoverContext,
    ModelFailoverConfig,
    ModelRetryConfig,
    RetryContext,
    RetryDecision,
    ToolsConfig,
)
from suture.kernel.middleware import (
    AgentMiddleware,
    ChatModelAgentContext,
    ChatModelAgentMiddleware,
    ChatModelAgentState,
    ModelContext,
    Outcome,
    replace,
)
from suture.kernel.requests import AskModel, CallTool, Model, ModelRequest, ModelWrapper, Sink, ToolCallRequest
from suture.kernel.run import Run, RunBlock, SyncRun
from suture.kernel.run_state import Approval, InterruptSignal, RunResult
from suture.kernel.state import (
    current_run,
    delete_run_local_value,
    get_run_local_value,
    interrupt,
    interrupt_state,
    send_event,
    set_run_local_value,
)
from suture.kernel.values import UnregisteredTypeError, register_type

__all__ = [
    "AgentMiddleware",
    "Approval",
    "AskModel",
    "Budget",
    "CallTool",
    "Callbacks",
    "ChatModelAgentContext",
    "ChatModelAgentMiddleware",
    "ChatModelAgentState",
    "Component",
    "FailoverContext",
    "InterruptSignal",
    "Model",
    "ModelContext",
    "ModelFailoverConfig",
    "ModelRequest",
    "ModelRetryConfig",
    "ModelWrapper",
    "Outcome",
    "RetryContext",
    "RetryDecision",
    "Run",
    "RunBlock",
    "RunResult",
    "Sink",
    "SyncRun",
    "ToolCallRequest",
    "ToolsConfig",
    "UnregisteredTypeError",
    "closing",
    "current_run",
    "delete_run_local_value",
    "get_run_local_value",
    "interrupt",
    "interrupt_state",
    "register_type",
    "replace",
    "send_event",
    "set_run_local_value",
]
