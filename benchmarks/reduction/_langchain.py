"""LangChain, as a program in its own environment."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from _measure import say
from _program import Failed, Program, peer_python

__all__ = ["langchain"]


@contextmanager
def langchain() -> Iterator[Program | str]:
    """Start it; where it cannot be started, say why."""
    python = peer_python("langchain")
    if python is None:
        yield "langchain: not installed"
        return
    say("starting langchain")
    with ExitStack() as stack:
        try:
            program = Program("langchain", python, Path(__file__).parent / "peer_langchain.py", stack)
        except Failed:  # what is installed is the newest release, which may not be what was written for
            yield "langchain: fails; its own words are on standard error"
        else:
            yield program
