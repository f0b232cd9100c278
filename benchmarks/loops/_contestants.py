"""The contestants, each a process that waits to be asked for a run."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from _measure import say
from _program import Failed, Program, peer_python

from loops._contest import WINDOW

__all__ = ["OURS", "Contestant", "Failed", "Sample", "contestants"]

OURS = "ours"
_HERE = Path(__file__).parent
_PEERS = ("agent-framework", "langchain", "pydantic-ai")


class Sample(NamedTuple):
    """CPU seconds of a step: of all, of the first ones, of the last ones; and until the model is first asked."""

    step: float
    first: float
    last: float
    begin: float


class Contestant(Program):
    """A program that runs an agent for so many steps."""

    def run(self, variant: str, steps: int, *, least: bool = False) -> Sample:
        """Return what a step costs; `least`: the cheapest ones of one run, not the mean."""
        answer = self.ask(variant=variant, steps=steps, least=least)
        return Sample(answer["step"], answer["first"], answer["last"], answer["begin"])


@contextmanager
def contestants() -> Iterator[tuple[dict[str, Contestant], list[str]]]:
    """Start all contestants; give also what is to be said of those that could not start."""
    with ExitStack() as stack:
        running = {
            name: Contestant(name, sys.executable, _HERE / program, stack)
            for name, program in ((OURS, "ours.py"), ("hand-written", "hand_written.py"))
        }
        absent: list[str] = []
        for name in _PEERS:
            python = peer_python(name)
            say(f"starting {name}")
            if python is None:
                absent.append(f"{name}: not installed")
                continue
            try:
                peer = Contestant(name, python, _HERE / f"peer_{name.replace('-', '_')}.py", stack)
                for variant in ("noops", "bare"):
                    peer.run(variant, WINDOW)
            except Failed:  # what is installed is the newest release, which may not be what was written for
                absent.append(f"{name}: fails; its own words are on standard error")
            else:
                running[name] = peer
        yield running, absent
