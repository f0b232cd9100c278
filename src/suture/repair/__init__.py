"""Repair: make a history acceptable to its provider, and say what was done.

The engine combines pairing (the same for every provider) and fit (what one profile demands).
"""

from suture.repair.engine import (
    Asks,
    AsksCause,
    Generator,
    Repaired,
    check,
    make_options,
    repair,
    run_repair,
    takes_cause,
)
from suture.repair.pairing import Assignment, Turn, assign, cuts
from suture.repair.rebuild import Paired, PairOptions, pair
from suture.repair.repairer import Follower, Repairer, is_in_order, is_whole, take_as_in_order
from suture.repair.report import Displaced, Finding, Pending, Report, visible_json
from suture.repair.texts import Cause, label, placeholder_text, visible

__all__ = [
    "Asks",
    "AsksCause",
    "Assignment",
    "Cause",
    "Displaced",
    "Finding",
    "Follower",
    "Generator",
    "PairOptions",
    "Paired",
    "Pending",
    "Repaired",
    "Repairer",
    "Report",
    "Turn",
    "assign",
    "check",
    "cuts",
    "is_in_order",
    "is_whole",
    "label",
    "make_options",
    "pair",
    "placeholder_text",
    "repair",
    "run_repair",
    "take_as_in_order",
    "takes_cause",
    "visible",
    "visible_json",
]
