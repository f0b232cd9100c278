"""Reduction: keeps tool output and long histories from overflowing the context. Plan, then save, then apply.

The engine is pure: `plan` says what to truncate or clear, what must be saved first, and how many tokens that frees.
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
