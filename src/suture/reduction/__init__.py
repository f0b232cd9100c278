"""Reduction: tool output that cannot overflow the context. Plan, then save, then apply.

The engine is pure: `plan` says what is to be truncated or cleared, what must be saved first and what that frees.
`suture.middleware.ToolReduction` does it inside an agent.
"""

from suture.reduction.compaction import Compactor, Folding, Limits, compact
from suture.reduction.draft import Change, Ledger, Save, Saved
from suture.reduction.plan import Plan, plan
from suture.reduction.settings import (
    ClearHandler,
    ClearResult,
    PathMaker,
    Rewriter,
    Settings,
    ToolDetail,
    ToolReductionConfig,
    TruncHandler,
    TruncResult,
    Writer,
)

__all__ = [
    "Change",
    "ClearHandler",
    "ClearResult",
    "Compactor",
    "Folding",
    "Ledger",
    "Limits",
    "PathMaker",
    "Plan",
    "Rewriter",
    "Save",
    "Saved",
    "Settings",
    "ToolDetail",
    "ToolReductionConfig",
    "TruncHandler",
    "TruncResult",
    "Writer",
    "compact",
    "plan",
]
