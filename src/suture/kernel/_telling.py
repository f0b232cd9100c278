"""Telling callbacks: the one place where they are called."""

from typing import Any, Literal

from suture.kernel._awaiting import settled
from suture.kernel._policies import Callbacks, Component

__all__ = ["tell"]


async def tell(
    callbacks: Callbacks | None, moment: Literal["on_start", "on_end", "on_error"], about: Component, value: Any
) -> None:
    """Tell of one moment of a component, if anybody wants to know."""
    if callbacks is not None and about.kind in callbacks.kinds:
        function = getattr(callbacks, moment)
        if function is not None:
            await settled(function(about, value))
