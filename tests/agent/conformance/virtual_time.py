"""An event loop whose clock jumps: what would be slept is only counted, so that long waits can be measured at once."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any


class _Jumping(selectors.DefaultSelector):
    """A selector that never waits; instead it moves the clock forward."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if not ready and timeout:
            self.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop with such a clock."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def run_at_once(main: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine without waiting for any of its sleeps."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
