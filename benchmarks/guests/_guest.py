"""What a guest is here: a framework's real agent over a fake model, with Suture in it or without."""

import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _cases import Step
from _judge import Message

sys.path.append(str(Path(__file__).parents[1]))

from loops._contest import ANSWER, Script, serve

__all__ = ["ANSWER", "MODULES", "WITH", "WITHOUT", "Begin", "Guest", "Run", "Script", "serve"]

MODULES = (
    "guest_langchain",
    "guest_pydantic_ai",
    "guest_openai_agents",
    "guest_google_adk",
    "guest_strands",
    "guest_agent_framework",
    "guest_clients",
)
"""A file for each framework. `GUESTS` there are the rows of the table, `MEASURED` those whose steps are measured."""

WITHOUT, WITH = "without", "with"

Run = Callable[[], Coroutine[Any, Any, str]]
"""Runs the agent to its end, and returns the text of its last message."""
Begin = Callable[[str, Script, Sequence[Step]], Run]
"""Makes all that a run needs: an agent of this kind, what its model will reply, and the history so far."""


@dataclass(frozen=True, kw_only=True)
class Guest:
    """An agent that can be run, and a model that says what it was sent."""

    title: str
    package: str
    """The distribution whose release counts."""
    provider: str
    """Whose rules hold for what the model receives, a key of `PROVIDERS`."""
    begin: Begin
    received: Callable[[], list[Message]]
    """Returns what the model was sent last."""
