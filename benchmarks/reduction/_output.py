"""Item 12: truncating large output, against writing the same bytes to a file."""

import asyncio
import gc
import os
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from _measure import Goal, Section, Settings, Timings, say

from suture.kernel.requests import Collector
from suture.messages import TextPart, ToolResult
from suture.middleware import ToolCallRequest, ToolReduction
from suture.stores import LocalBackend

__all__ = ["measure_output"]

_PIECE = 65_536
_HALF = Goal(0.5, at_least=True)
_LINE = "GET /harbour/tides?port=Dover 200 1.3 ms; the answer is 4,211 bytes long\n"
_OTHER_LINE = "GET /港口/潮汐?port=Dover 200 1,3 ms – die Antwort ist 4.211 Bytes groß ✓\n"

Work = Callable[[Path], Awaitable[None]]


def measure_output(settings: Settings) -> Section:
    """Measure a streaming tool and one that returns its output whole."""
    size = settings.megabytes
    rows = []
    for name, line in (("ASCII", _LINE), ("not ASCII", _OTHER_LINE)):
        say(f"truncating {size} MB, {name}")
        pieces = _pieces(line, size * 1_000_000)
        contestants = {
            "written": _writing(pieces, ready=line is _LINE),
            "streamed": _streaming(pieces),
            "written at once": _writing(["".join(pieces)], ready=line is _LINE),
            "whole": _returning("".join(pieces)),
        }
        wall, cpu = asyncio.run(_interleave(contestants, settings.writes))
        goal = _HALF if line is _LINE else None
        for ours, other in (("streamed", "written"), ("whole", "written at once")):
            rows.append(wall.row(f"{size} MB {ours}, {name}", ours, other, goal=goal, speed=True))
            rows.append(cpu.row(f"{size} MB {ours}, {name}: CPU", ours, other, speed=True))
    notes = (
        f"Streamed in pieces of {_PIECE:,} characters into a LocalBackend. `written`: the same pieces are written to",
        "a file in the same directory; ASCII is encoded beforehand, other text, which takes longer to encode than to",
        "write, on the way. Neither waits for the disk (fsync). Ratio: our speed over that. Wall time, the best of all",
        "rounds; `CPU`: that of all threads.",
    )
    return Section("12. Truncating large output, against writing it to a file alone", rows, notes)


def _pieces(line: str, size: int) -> list[str]:
    """Return a text of about `size` bytes in pieces; each is a string of its own."""
    per = len(line.encode()) / len(line)
    piece = (line * (_PIECE // len(line) + 1))[:_PIECE]
    return [piece[at % _PIECE :] + piece[: at % _PIECE] for at in range(max(1, round(size / (_PIECE * per))))]


async def _interleave(contestants: dict[str, Work], rounds: int) -> tuple[Timings, Timings]:
    """Return the wall times and the CPU times."""
    names = list(contestants)
    wall: dict[str, list[float]] = {name: [] for name in names}
    cpu: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds + 1):
        for place in range(len(names)):
            name = names[(turn + place) % len(names)]
            seconds = await _clock(contestants[name])
            if turn:  # the first is for the caches
                wall[name].append(seconds[0])
                cpu[name].append(seconds[1])
    return Timings(wall), Timings(cpu)


async def _clock(work: Work) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        gc.collect()
        gc.disable()
        try:
            start, busy = time.perf_counter(), time.process_time()
            await work(Path(folder))
            return time.perf_counter() - start, time.process_time() - busy
        finally:
            gc.enable()


def _writing(pieces: Sequence[str], *, ready: bool) -> Work:
    """Return the yardstick; `ready`: it has the bytes already."""
    encoded = [piece.encode() for piece in pieces] if ready else []

    async def work(folder: Path) -> None:
        with open(folder / "alone", "wb", buffering=0) as file:  # noqa: ASYNC230, PTH123 - nothing else runs
            file.writelines(encoded or map(str.encode, pieces))

    return work


_calls = count()


def _streaming(pieces: Sequence[str]) -> Work:
    results = [ToolResult((TextPart(piece),)) for piece in pieces]

    async def proceed(call: ToolCallRequest) -> ToolResult:
        sink: Any = call.sink
        await sink.open()
        for piece in results:
            await sink.write(piece)
        return await sink.close()

    async def work(folder: Path) -> None:
        call = ToolCallRequest("log", f"call_{next(_calls)}", "{}", "streamable", Collector())
        result = await ToolReduction(LocalBackend(folder)).wrap_tool_call(call, proceed)
        _see(folder, sum(map(len, pieces)), result.text)

    return work


def _returning(text: str) -> Work:
    async def proceed(_: ToolCallRequest) -> ToolResult:
        return ToolResult((TextPart(text),))

    async def work(folder: Path) -> None:
        call = ToolCallRequest("log", f"call_{next(_calls)}", "{}")
        result = await ToolReduction(LocalBackend(folder)).wrap_tool_call(call, proceed)
        _see(folder, len(text), result.text)

    return work


def _see(folder: Path, length: int, kept: str) -> None:
    """Refuse output that was not truncated, or not saved."""
    sizes = [(Path(at) / name).stat().st_size for at, _, names in os.walk(folder) for name in names]
    if len(kept) > 60_000 or len(sizes) != 1 or sizes[0] < length:
        raise SystemExit(f"{length} characters came to {len(kept)}, and {sizes} bytes were saved")
