"""The kernel: the loop, its two units with effects (the model turn and the tool call), and what surrounds them.

Start with `loop.py` (what comes next), then `port.py` (doing it), `model_call.py` and `tool_call.py`. `state.py` is
what a run is, `lifecycle.py` its beginning and end, `run.py` what a user holds.
"""

from suture._aio import closing
from suture.kernel.config import (
    Budget,
    Callbacks,
    Component,
    FailoverContext,
    ModelFailoverConfig,
    ModelRetryConfig,
    OutputRule,
    RetryContext,
    RetryDecision,
    ToolsConfig,
    make_output_rule,
)
from suture.kernel.interrupts import Approval, InterruptSignal
from suture.kernel.lease import RunLease, can_lease
from suture.kernel.legacy import EventSenderModelWrapper, EventSenderToolWrapper
from suture.kernel.lifecycle import (
    NOTHING,
    Begin,
    Checkpoint,
    find_run,
    read_checkpoints,
    read_input,
    read_result,
    read_run,
)
from suture.kernel.loop import Port, Standing, advance, drive
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
    ToolCallMiddleware,
    compile_stack,
    replace,
)
from suture.kernel.model_call import compile_ring, default_backoff
from suture.kernel.requests import AskModel, CallTool, Model, ModelRequest, ModelWrapper, Sink, ToolCallRequest
from suture.kernel.result import Out, RunResult
from suture.kernel.run import Go, Run, Work, compact_run, fork_run, new_run_id, run_nested
from suture.kernel.run_state import RunState
from suture.kernel.state import (
    Execution,
    JournalStore,
    Spec,
    current_run,
    delete_run_local_value,
    get_run_local_value,
    interrupt,
    interrupt_state,
    send_event,
    set_run_local_value,
)
from suture.kernel.tool_call import compile_rings
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
    "Checkpoint",
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
    "JournalStore",
    "Model",
    "ModelContext",
    "ModelFailoverConfig",
    "ModelRequest",
    "ModelRetryConfig",
    "ModelWrapper",
    "Out",
    "Outcome",
    "OutputRule",
    "Port",
    "RetryContext",
    "RetryDecision",
    "Run",
    "RunLease",
    "RunResult",
    "RunState",
    "Sink",
    "Spec",
    "Standing",
    "StreamableEndpoint",
    "ToolCallMiddleware",
    "ToolCallRequest",
    "ToolsConfig",
    "UnregisteredTypeError",
    "Work",
    "advance",
    "can_lease",
    "closing",
    "compact_run",
    "compile_ring",
    "compile_rings",
    "compile_stack",
    "current_run",
    "default_backoff",
    "delete_run_local_value",
    "drive",
    "find_run",
    "fork_run",
    "get_run_local_value",
    "interrupt",
    "interrupt_state",
    "make_output_rule",
    "new_run_id",
    "read_checkpoints",
    "read_input",
    "read_result",
    "read_run",
    "register_type",
    "replace",
    "run_nested",
    "send_event",
    "set_run_local_value",
]
