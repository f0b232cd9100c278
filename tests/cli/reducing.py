"""Histories with much tool output, and `suture reduce` run on them in this process."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from suture.cli import main
from suture.tokens import CharacterCounter
from tests.cli.program import ANSWER, USER, Done, result, turn

Reduce = Callable[..., Done]


def output(number: int, length: int = 400) -> str:
    """Return the output of a call: no two of one length are the same, and no part of one is in another."""
    return f"{number}é{'abcdefghij'[number % 10]}" * (length // 3) + "." * (length % 3)


def rounds(*lengths: int) -> list[dict[str, Any]]:
    """Return a conversation with one call per round, `call_0` and so on, and output of these lengths."""
    made: list[dict[str, Any]] = [USER]
    for number, length in enumerate(lengths):
        made += [turn(f"call_{number}"), result(f"call_{number}", output(number, length))]
    return [*made, ANSWER]


LONG = rounds(400, 400, 400)
LIMIT = ("--max-tokens", "150")
"""With this limit the first two results of `LONG` are cleared."""


def cleared(path: str, tool: str = "read_file") -> str:
    """Return what stands for a result that was saved."""
    return f"<persisted-output>Tool result saved to: {path}\nUse {tool} to view</persisted-output>"


def results(history: Sequence[dict[str, Any]]) -> list[str]:
    """Return what the results of a chat history say."""
    return [message["content"] for message in history if message["role"] == "tool"]


def files(folder: Path) -> dict[str, str]:
    """Return what is in a directory, by the path below it."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes().decode() for path in found}


def tokens(history: Sequence[Any]) -> int:
    """Return how many tokens a history has, as they are counted unless another way is asked for."""
    return sum(map(CharacterCounter().count, history))


@pytest.fixture
def reduce(capsys: pytest.CaptureFixture[str]) -> Reduce:
    """Return the command, run in this process: as a user's, but quick."""

    def run_it(*arguments: str | Path) -> Done:
        status = main(["reduce", *map(str, arguments)])
        printed = capsys.readouterr()
        return Done(status, printed.out, printed.err)

    return run_it


def plans(done: Done) -> list[dict[str, Any]]:
    """Return the plans that were printed with `--json`."""
    return [json.loads(line)["plan"] for line in done.out.splitlines()]
