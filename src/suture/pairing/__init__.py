"""Pairing: every call gets its result. The same for every provider; what one provider demands beyond is fit's."""

from suture.pairing._assign import OutsideError, match_call
from suture.pairing._causes import UNKNOWN_TOOL, Cause, is_builtin_text, label, placeholder_text
from suture.pairing._plan import Paired, PairOptions, pair
from suture.pairing._report import Displaced, Finding, Pending, Report
from suture.pairing._whole import is_whole

__all__ = [
    "UNKNOWN_TOOL",
    "Cause",
    "Displaced",
    "Finding",
    "OutsideError",
    "PairOptions",
    "Paired",
    "Pending",
    "Report",
    "is_builtin_text",
    "is_whole",
    "label",
    "match_call",
    "pair",
    "placeholder_text",
]
