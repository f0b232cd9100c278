"""Pairing: every call gets its result. The same for every provider; what one provider demands beyond is fit's."""

from suture.pairing._assign import Assignment, OutsideError, Reference, Slot, Turn, assign, match_call
from suture.pairing._causes import UNKNOWN_TOOL, Cause, is_builtin_text, label, placeholder_text, visible
from suture.pairing._plan import Paired, PairOptions, pair
from suture.pairing._report import Displaced, Finding, Pending, Report
from suture.pairing._whole import is_whole

__all__ = [
    "UNKNOWN_TOOL",
    "Assignment",
    "Cause",
    "Displaced",
    "Finding",
    "OutsideError",
    "PairOptions",
    "Paired",
    "Pending",
    "Reference",
    "Report",
    "Slot",
    "Turn",
    "assign",
    "is_builtin_text",
    "is_whole",
    "label",
    "match_call",
    "pair",
    "placeholder_text",
    "visible",
]
