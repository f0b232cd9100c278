"""Repair: make a history acceptable to its provider, and say what was done.

Pairing (the same for every provider) and fit (what one profile demands) come together here.
"""

from suture.repair._cursor import is_in_order, take_as_in_order
from suture.repair._engine import Asks, AsksCause, Generator, Repaired, check, repair, takes_cause
from suture.repair._fit import Fitter
from suture.repair._follower import Followed, Follower
from suture.repair._repairer import Repairer

__all__ = [
    "Asks",
    "AsksCause",
    "Fitter",
    "Followed",
    "Follower",
    "Generator",
    "Repaired",
    "Repairer",
    "check",
    "is_in_order",
    "repair",
    "take_as_in_order",
    "takes_cause",
]
