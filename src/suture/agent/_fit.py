"""Fit, innermost: what a model is sent is acceptable to its provider, whatever happened to the history before."""

from collections.abc import Sequence
from typing import Any

from suture.errors import HistoryError
from suture.kernel import Fit, Model
from suture.language import Language
from suture.messages import History
from suture.middleware import PatchToolCalls
from suture.repair import Follower
from suture.wires import get_wire

__all__ = ["make_fit"]


def make_fit(patch: PatchToolCalls | None, model: Model[Any], language: Language) -> Fit:
    """Return the fit for one model in one run. It follows the history, so a turn looks only at what is new.

    It goes by what the agent's `PatchToolCalls` was told about orphans and placeholders.
    """
    options: dict[str, Any] = {}
    if patch is not None:
        options = {"orphans": patch.orphans, "is_placeholder": patch.is_synthetic}
    profile = "pairing" if get_wire(model.wire).native else model.profile
    follower = Follower(wire=model.wire, profile=profile, language=language, **options)

    def fit(history: History[Any]) -> Sequence[Any]:
        fixed = follower.follow(history)
        unresolved = fixed.unresolved
        if unresolved:
            first = unresolved[0]
            raise HistoryError(
                f"{model.profile} would refuse this history, and {len(unresolved)} of its faults cannot be mended; "
                f"the first: message {first.index}, {first.problem} ({first.says or 'no rule'})",
                unresolved=unresolved,
            )
        return fixed.messages

    return fit
