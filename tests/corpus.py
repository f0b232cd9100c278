"""Where the real histories are, if they are there. They are never part of the project."""

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(os.environ.get("SUTURE_CORPUS", Path(__file__).parents[2] / "shared" / "corpus"))
needs_corpus = pytest.mark.skipif(not ROOT.is_dir(), reason="the corpus is not on this machine")

WIRES = {
    "anthropic-messages": "anthropic",
    "bedrock-converse": "bedrock",
    "gemini": "gemini",
    "openai-chat": "openai-chat",
    "openai-compatible-chat": "openai-chat",
    "openai-responses": "openai-responses",
}


def conversations(name: str) -> Iterator[dict[str, Any]]:
    """Yield the conversations of one file."""
    with gzip.open(ROOT / f"{name}.openai-chat.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def recorded_requests() -> Iterator[tuple[str, str, list[Any], int]]:
    """Yield (name, wire, messages, status) of every recorded request."""
    for path in sorted(ROOT.glob("recordings/*/*.json")):
        wire = WIRES[path.parent.name]
        for number, exchange in enumerate(json.loads(path.read_text(encoding="utf-8"))["interactions"]):
            body = json.loads(exchange["request"]["body"])
            yield f"{path.stem}-{number}", wire, messages_of(body), exchange["response"]["status"]


def messages_of(body: dict[str, Any]) -> list[Any]:
    """Return the history in a request's body."""
    return next(body[field] for field in ("messages", "input", "contents") if field in body)
