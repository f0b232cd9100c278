"""The kernel: the loop, its two units with effects (the model turn and the tool call), and what surrounds them.

Start with `_machine.py` (what comes next, pure), then `_loop.py` (doing it), `_turn.py` and `_batch.py`.
"""

from suture.kernel._attempts import default_backoff
from suture.kernel._awaiting import closing, settled
from suture.kernel._begin import Begin, read_input
from suture.kernel._contexts import ChatModelAgentContext, ChatModelAgentState, ModelContext, Outcome, replace
from suture.kernel._interrupt import Approval, InterruptSignal, Waiting, interrupt, interrupt_state
from suture.kernel._machine import Phase, Position, Step, next_step
from suture.kernel._middleware import (
    AgentMiddleware,
    ChatModelAgentMiddleware,
    EnhancedInvokableEndpoint,
    EnhancedStreamableEndpoint,
    InvokableEndpoint,
    StreamableEndpoint,
)
from suture.kernel._model import Model, ModelRequest, ModelWrapper
from suture.kernel._nested import run_nested
from suture.kernel._policies import (
    Budget,
    Callbacks,
    Component,
    FailoverContext,
    ModelFailoverConfig,
    ModelRetryConfig,
    RetryContext,
    RetryDecision,
    ToolCallMiddleware,
    ToolsConfig,
)
from suture.kernel._result import RunResult
from suture.kernel._run import Run, new_run_id
from suture.kernel._scope import (
    Scope,
    current_frame,
    delete_run_local_value,
    get_run_local_value,
    get_session_value,
    note_on_result,
    run_language,
    run_scratch,
    send_event,
    set_run_local_value,
    set_session_value,
)
from suture.kernel._senders import EventSenderModelWrapper, EventSenderToolWrapper
from suture.kernel._spec import Fit, JournalStore, OutputRule, Spec
from suture.kernel._stack import compile_stack
from suture.kernel._typed import UnregisteredTypeError, register_type

__all__ = [
    "AgentMiddleware",
    "Approval",
    "Begin",
    "Budget",
    "Callbacks",
    "ChatModelAgentContext",
    "ChatModelAgentMiddleware",
    "ChatModelAgentState",
    "Component",
    "EnhancedInvokableEndpoint",
    "EnhancedStreamableEndpoint",
    "EventSenderModelWrapper",
    "EventSenderToolWrapper",
    "FailoverContext",
    "Fit",
    "InterruptSignal",
    "InvokableEndpoint",
    "JournalStore",
    "Model",
    "ModelContext",
    "ModelFailoverConfig",
    "ModelRequest",
    "ModelRetryConfig",
    "ModelWrapper",
    "Outcome",
    "OutputRule",
    "Phase",
    "Position",
    "RetryContext",
    "RetryDecision",
    "Run",
    "RunResult",
    "Scope",
    "Spec",
    "Step",
    "StreamableEndpoint",
    "ToolCallMiddleware",
    "ToolsConfig",
    "UnregisteredTypeError",
    "Waiting",
    "closing",
    "compile_stack",
    "current_frame",
    "default_backoff",
    "delete_run_local_value",
    "get_run_local_value",
    "get_session_value",
    "interrupt",
    "interrupt_state",
    "new_run_id",
    "next_step",
    "note_on_result",
    "read_input",
    "register_type",
    "replace",
    "run_language",
    "run_nested",
    "run_scratch",
    "send_event",
    "set_run_local_value",
    "set_session_value",
    "settled",
]
