"""Reduction: tool output that cannot overflow the context. Plan, then save, then apply.

The engine is pure: `plan` says what is to be truncated or cleared, what must be saved first and what that frees.
`suture.middleware.ToolReduction` does it inside an agent.
"""

from suture.reduction._clear import Cleared, Meter, clear, clearable
from suture.reduction._draft import Draft
from suture.reduction._engine import plan
from suture.reduction._handlers import Terms, content_of, offload_place, text_length, text_measure, truncate_one
from suture.reduction._paths import folded, safe_name
from suture.reduction._plan import Change, Plan, Save
from suture.reduction._rounds import PROCESSED, SAVED, mark_saved, read_saved, rounds_of
from suture.reduction._settings import Rewriter, Settings
from suture.reduction._steps import Steps, carry_through_async
from suture.reduction._texts import persisted_text, streamed_text
from suture.reduction._truncate import truncate
from suture.reduction._values import (
    ClearHandler,
    ClearResult,
    Ledger,
    PathMaker,
    Saved,
    ToolDetail,
    ToolReductionConfig,
    TruncHandler,
    TruncResult,
    Writer,
)

__all__ = [
    "PROCESSED",
    "SAVED",
    "Change",
    "ClearHandler",
    "ClearResult",
    "Cleared",
    "Draft",
    "Ledger",
    "Meter",
    "PathMaker",
    "Plan",
    "Rewriter",
    "Save",
    "Saved",
    "Settings",
    "Steps",
    "Terms",
    "ToolDetail",
    "ToolReductionConfig",
    "TruncHandler",
    "TruncResult",
    "Writer",
    "carry_through_async",
    "clear",
    "clearable",
    "content_of",
    "folded",
    "mark_saved",
    "offload_place",
    "persisted_text",
    "plan",
    "read_saved",
    "rounds_of",
    "safe_name",
    "streamed_text",
    "text_length",
    "text_measure",
    "truncate",
    "truncate_one",
]
