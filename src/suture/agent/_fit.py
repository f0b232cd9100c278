"""Fit, innermost: what a model is sent is acceptable to its provider, whatever happened to the history before."""

from collections.abc import Sequence
from typing import Any

from suture.errors import HistoryError
from suture.kernel import Fit, Model
from suture.language import Language
from suture.messages import History
from suture.profiles import get_profile
from suture.repair import Cursor, Repairer
from suture.wires import get_wire

__all__ = ["make_fit"]


def make_fit(model: Model[Any], language: Language) -> Fit:
    """Return the fit for one model in one run."""
    return _Fit(model.wire, model.profile, language)


class _Fit:
    """Repairs what is sent. It follows the history, so a turn looks only at what is new."""

    def __init__(self, wire: str, profile: str, language: Language) -> None:
        self.wire, self.profile, self.language = wire, profile, language
        self._cursor = Cursor(get_wire(wire))
        self._pairs_only = not get_profile(profile).has_fit
        self._repairer: Repairer[Any] | None = None
        self._fed: History[Any] = History()

    def __call__(self, history: History[Any]) -> Sequence[Any]:
        """Return `history` itself if it is acceptable, else what is."""
        if self._pairs_only and self._cursor.is_whole(history):
            return history
        repairer = self._follow(history)
        unresolved = repairer.unresolved
        if unresolved:
            first = unresolved[0]
            raise HistoryError(
                f"{self.profile} would refuse this history, and {len(unresolved)} of its faults cannot be mended; "
                f"the first: message {first.index}, {first.problem} ({first.says or 'no rule'})",
                unresolved=unresolved,
            )
        return History(repairer.messages) if repairer.changed else history

    def _follow(self, history: History[Any]) -> Repairer[Any]:
        """Return the repair of `history`: gone on with where it only grew, begun anew where not."""
        repairer = self._repairer
        if repairer is None or not history.follows(self._fed):
            self._repairer = repairer = Repairer(history, wire=self.wire, profile=self.profile, language=self.language)
        else:
            repairer.extend(history[len(self._fed) :])
        self._fed = history
        return repairer
