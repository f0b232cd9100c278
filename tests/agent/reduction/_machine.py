"""A program for a process of its own: one agent on a disk that is full, forbidden or no directory, or a flood.

It prints what was seen as one line of JSON.
"""

import asyncio
import json
import os
import resource
import sys
from collections.abc import AsyncIterator
from itertools import product
from pathlib import Path
from typing import Any

from suture import ToolResult, tool
from suture.errors import OffloadError
from suture.messages import TextPart
from suture.middleware import ToolReduction
from suture.stores import LocalBackend
from tests.agent.reduction._backends import tree
from tests.agent.reduction._tooling import KINDS, Seen, drive, made

LIMIT = 1_000
CHUNK = "0123456789abcde\n" * 4_096  # 64 KiB


def peak() -> int:
    """Return the most memory that this process had so far, in bytes.

    On Linux `ru_maxrss` begins with what the process that started this one had, which would hide what is measured.
    """
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
        return int(line.split()[1]) * 1_024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1_024)


def flood(kind: str, chunks: int, ended: list[str]) -> Any:
    """Return a tool that streams so many chunks."""

    async def streamable() -> AsyncIterator[str]:
        for _ in range(chunks):
            yield CHUNK
        ended.append("ended")

    async def enhanced() -> AsyncIterator[ToolResult]:
        for _ in range(chunks):
            yield ToolResult([TextPart(CHUNK)])
        ended.append("ended")

    function = streamable if kind == "streamable" else enhanced
    return tool(name="dump", description="Dump.")(function)


async def once(backend: Any, one_tool: Any, **settings: Any) -> Seen:
    """Run an agent that calls the tool once."""
    reduction = ToolReduction(backend, root_dir="/r", max_length_for_trunc=LIMIT, **settings)
    return await drive(reduction, [one_tool], [("c0", "dump")])


async def faults(directory: Path, prepare: str) -> dict[str, Any]:
    """Run all kinds of tools, with either setting, where nothing can be written."""
    place = directory / "files"
    await once(LocalBackend(directory / "warm"), made("streamable", CHUNK))  # what is loaded when it is used
    match prepare:
        case "full":
            resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
        case "denied":
            os.chmod(directory, 0o555)  # noqa: PTH101 - beside the others
            if os.getuid() == 0:
                os.setgid(65_534)
                os.setuid(65_534)
        case _:
            place.write_text("I am a file.")
    told: dict[str, Any] = {}
    for kind, on_error in product(KINDS, ("raise", "continue")):
        ended: list[str] = []
        one_tool = flood(kind, 64, ended) if "stream" in kind else made(kind, CHUNK * 64)
        seen = await once(LocalBackend(place), one_tool, on_backend_error=on_error)
        error = seen.error
        told[f"{kind} {on_error}"] = {
            "ended": ended,
            "error": f"{type(error).__name__}: {error}" if error else "",
            "calls": error.calls if isinstance(error, OffloadError) else (),
            "requests": len(seen.model.requests),
            "whole": seen.kept == [CHUNK * 64],
            "text": seen.kept[0][:3_000],
            "events": [event.name for event in seen.custom()],
        }
    return told


async def measured(directory: Path, kind: str, megabytes: int) -> dict[str, Any]:
    """Stream so much through a backend on disk and say how much memory that took."""
    ended: list[str] = []
    await once(LocalBackend(directory / "warm"), flood(kind, 64, []))
    backend = LocalBackend(directory / "files")
    before = peak()
    seen = await once(backend, flood(kind, megabytes * 16, ended))
    return {
        "grown": peak() - before,
        "ended": ended,
        "size": await backend.size("/r/trunc/c0"),
        "text": seen.text,
        "files": tree(directory / "files"),
        "last": b"".join([c async for c in backend.read("/r/trunc/c0", start=megabytes * (1 << 20) - 16)]).decode(),
    }


async def hoarded(directory: Path, megabytes: int) -> dict[str, Any]:
    """Let a tool keep so much in memory and say how much that took."""
    await once(LocalBackend(directory / "warm"), flood("streamable", 64, []))
    held: list[bytes] = []

    @tool
    async def dump() -> str:
        """Hoard."""
        held.extend(bytes([number % 256]) * (1 << 20) for number in range(megabytes))
        return "done"

    before = peak()
    await once(LocalBackend(directory / "files"), dump)
    return {"grown": peak() - before, "held": len(held)}


if __name__ == "__main__":
    what, where, *rest = sys.argv[1:]
    if what == "faults":
        answer = asyncio.run(faults(Path(where), *rest))
    elif what == "hoard":
        answer = asyncio.run(hoarded(Path(where), int(rest[0])))
    else:
        answer = asyncio.run(measured(Path(where), rest[0], int(rest[1])))
    print(json.dumps(answer))
