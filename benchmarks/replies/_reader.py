"""Read replies with one framework, each from an address of its own, and print what it got as JSON lines.

python benchmarks/replies/_reader.py MODULE < ROWS
"""

import asyncio
import json
import logging
import os
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

_LIMIT = 20.0
"""How many seconds a framework may take over one reply."""
Ran = list[tuple[str, dict[str, Any]]]
Read = Callable[["Reply", Ran], Any]


class Reply(NamedTuple):
    """Where a reply comes from, how it is asked for, and which tools the program has."""

    number: int
    wire: str
    url: str
    streamed: bool
    tools: list[str]


async def main(name: str) -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    for variable in list(os.environ):
        if variable.startswith(("OPENAI_", "ANTHROPIC_", "GOOGLE_", "GEMINI_", "AWS_")):
            del os.environ[variable]
    os.environ.update(
        AWS_ACCESS_KEY_ID="none",
        AWS_SECRET_ACCESS_KEY="none",
        AWS_DEFAULT_REGION="us-east-1",
        OPENAI_AGENTS_DISABLE_TRACING="1",
    )
    readers: dict[str, Read] = import_module(name).READERS
    for row in json.load(sys.stdin):
        reply = Reply(*row)
        if reply.wire in readers:
            print(json.dumps([reply.number, *await _read(readers[reply.wire], reply)]), flush=True)


async def _read(read: Read, reply: Reply) -> tuple[str, Ran, str]:
    ran: Ran = []
    try:
        return await asyncio.wait_for(read(reply, ran), _LIMIT), ran, ""
    except Exception as error:  # noqa: BLE001
        return "", ran, f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
