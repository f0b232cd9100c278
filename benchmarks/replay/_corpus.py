"""The recorded runs, where they are at hand."""

import gzip
import json
import os
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Chat", "Recording", "corpus_file", "read_corpus"]

Chat = dict[str, Any]
"""A message of the wire `openai-chat`."""

_ROOT = Path(__file__).parents[2]
_NAME = "mini-swe-agent.openai-chat.jsonl.gz"
_ROLES = {"system", "user", "assistant", "tool"}
"""What a provider is sent; the agent's own record of its end is not."""


class Recording(NamedTuple):
    """One run as it was recorded."""

    id: str
    messages: tuple[Chat, ...]

    @staticmethod
    def of(data: Mapping[str, Any]) -> "Recording":
        return Recording(data["id"], tuple([message for message in data["messages"] if message["role"] in _ROLES]))


def corpus_file() -> Path | None:
    """Return where the runs are: in `$SUTURE_CORPUS`, or beside the project; `None` where they are not."""
    folder = Path(os.environ.get("SUTURE_CORPUS") or _ROOT.parent / "shared" / "corpus")
    return folder / _NAME if (folder / _NAME).is_file() else None


def read_corpus(file: Path, most: int = 0) -> list[Recording]:
    """Read the runs in which the model was asked at all; the first `most` of them, or all."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        runs = map(Recording.of, map(json.loads, lines))
        asked = (run for run in runs if any(message["role"] == "assistant" for message in run.messages))
        return list(islice(asked, most or None))
