"""What backends cost: a stream takes little memory whatever its size, and about the time of writing the file."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from statistics import median

import pytest

from suture.stores import LocalBackend
from tests.stores.processes import run

# Streams so many mebibytes in and out, and says how much the process has grown since it did so with few.
MEASURED = """
from suture.stores import LocalBackend, ObjectBackend, SQLiteBackend

def memory(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith(name))

def forget_peak():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")

async def chunks(mebibytes):
    for _ in range(mebibytes * 128):
        yield bytes(8192)

async def large(mebibytes):
    yield b"x" * (mebibytes << 20)

async def stream(backend, path, mebibytes):
    size = await backend.write_stream(path, chunks(mebibytes))
    async for piece in backend.read(path):
        size -= len(piece)
    assert size == 0
    await backend.delete(path)

async def main():
    backend = MAKE
    await stream(backend, "/a/few", 1)
    forget_peak()
    before = memory("VmRSS")
    await stream(backend, "/a/many", 100)
    say(memory("VmHWM") - before)
    forget_peak()
    before = memory("VmRSS")
    await backend.write_stream("/a/large", large(24))
    say(memory("VmHWM") - before)
asyncio.run(main())
"""

BACKENDS = {
    "local": "LocalBackend(path)",
    "sqlite": "SQLiteBackend(path + '/outputs.db')",
    "object": "ObjectBackend(f'file://{path}')",
}


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_stream_takes_little_memory_whatever_its_size(tmp_path: Path, backend: str):
    many, large = (float(line) for line in run(MEASURED.replace("MAKE", BACKENDS[backend]), tmp_path))
    print(f"{backend}: {many:.1f} MiB more for 100 MiB in small pieces, {large:.1f} MiB more for one piece of 24 MiB")
    assert many < 20
    assert large < 24 + 20  # the piece itself is the caller's


PIECE = os.urandom(8192)
PIECES = 100 * 128


async def pieces() -> AsyncIterator[bytes]:
    for _ in range(PIECES):
        yield PIECE


async def plainly(path: Path) -> None:
    with path.open("wb") as file:
        async for piece in pieces():
            file.write(piece)


async def through_a_backend(path: Path) -> None:
    await LocalBackend(path.parent).write_stream(path.name, pieces())


def seconds(write: Callable[[Path], object], path: Path) -> float:
    begun = time.perf_counter()
    asyncio.run(write(path))  # pyright: ignore[reportArgumentType]
    taken = time.perf_counter() - begun
    path.unlink()
    return taken


@pytest.mark.soak
def test_streaming_100_mib_in_pieces_of_8_kib_is_about_as_fast_as_writing_the_file(tmp_path: Path):
    path = tmp_path / "file"
    # One after the other, so that whatever else this machine does slows down both.
    rounds = [(seconds(plainly, path), seconds(through_a_backend, path)) for _ in range(7)]
    ratio = median(plain / backend for plain, backend in rounds)
    fastest = [min(times) for times in zip(*rounds, strict=True)]
    print(f"{ratio:.0%} of the speed; at best {fastest[0]:.3f} s plainly, {fastest[1]:.3f} s through a LocalBackend")
    assert ratio > 0.7
