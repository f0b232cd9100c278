"""The kernel: the loop, its two units with effects (the model turn and the tool call), and what surrounds them.

Start with `loop.py` (what comes next, and doing it), then `model_call.py` and `tool_call.py`. `state.py` is what a run
is, `lifecycle.py` its beginning and end, `run.py` what a user holds.
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
    make_output_rule,
)
from suture.kernel.lifecycle import NOTHING, Begin, read_input, read_result
from suture.kernel.loop import Standing, advance, drive
from suture.kernel.middleware import (
    AgentMiddleware,
    ChatModelAgentContext,
    ChatModelAgentMiddleware,
    ChatModelAgentState,
    EnhancedInvokableEndpoint,
    EnhancedStreamableEndpoint,
    InvokableEndpoint,
    ModelContext,
    Outcome,
    StreamableEndpoint,
    compile_stack,
    replace,
)
from suture.kernel.requests import AskModel, CallTool, Model, ModelRequest, ModelWrapper, Sink, ToolCallRequest
from suture.kernel.ring import EventSenderModelWrapper, EventSenderToolWrapper, compile_rings
from suture.kernel.run import Go, Run, Work, run_nested
from suture.kernel.run_state import Approval, InterruptSignal, Out, RunResult, RunState
from suture.kernel.state import (
    Execution,
    Spec,
    current_run,
    delete_run_local_value,
    get_run_local_value,
    interrupt,
    interrupt_state,
    new_run_id,
    send_event,
    set_run_local_value,
)
from suture.kernel.values import UnregisteredTypeError, register_type

__all__ = [
    "NOTHING",
    "AgentMiddleware",
    "Approval",
    "AskModel",
    "Begin",
    "Budget",
    "CallTool",
    "Callbacks",
    "ChatModelAgentContext",
    "ChatModelAgentMiddleware",
    "ChatModelAgentState",
    "Component",
    "EnhancedInvokableEndpoint",
    "EnhancedStreamableEndpoint",
    "EventSenderModelWrapper",
    "EventSenderToolWrapper",
    "Execution",
    "FailoverContext",
    "Go",
    "InterruptSignal",
    "InvokableEndpoint",
    "Model",
    "ModelContext",
    "ModelFailoverConfig",
    "ModelRequest",
    "ModelRetryConfig",
    "ModelWrapper",
    "Out",
    "Outcome",
    "RetryContext",
    "RetryDecision",
    "Run",
    "RunResult",
    "RunState",
    "Sink",
    "Spec",
    "Standing",
    "StreamableEndpoint",
    "ToolCallRequest",
    "ToolsConfig",
    "UnregisteredTypeError",
    "Work",
    "advance",
    "closing",
    "compile_rings",
    "compile_stack",
    "current_run",
    "delete_run_local_value",
    "drive",
    "get_run_local_value",
    "interrupt",
    "interrupt_state",
    "make_output_rule",
    "new_run_id",
    "read_input",
    "read_result",
    "register_type",
    "replace",
    "run_nested",
    "send_event",
    "set_run_local_value",
]
