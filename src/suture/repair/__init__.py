"""Repair: make a history acceptable to its provider, and say what was done.

Pairing (the same for every provider) and fit (what one profile demands) come together here.
"""

from suture.repair._engine import Repaired, check, repair
from suture.repair._repairer import Repairer

__all__ = ["Repaired", "Repairer", "check", "repair"]
