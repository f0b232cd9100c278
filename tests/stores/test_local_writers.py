"""Several writers in one directory, some of which are killed, and file systems without hard links."""

import asyncio
import fcntl
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from suture.stores import LocalBackend
from tests.stores.processes import finished, hear, program, run, tell

# Writes a stream without end to the path it is told, and says each time how much it has given away.
STREAMING = """
from suture.stores import LocalBackend

async def endless():
    given = 0
    while True:
        yield b"x" * 300_000
        given += 300_000
        say(given)

asyncio.run(LocalBackend(path).write_stream(hear(), endless()))
"""

# Waits for the others, and then writes what nobody else writes.
WRITING = """
from suture.stores import LocalBackend, PathTakenError

async def chunks(content):
    for start in range(0, len(content), 400_000):
        yield content[start : start + 400_000]

async def main():
    backend = LocalBackend(path)
    say("ready")
    name = hear()
    for number in range(30):
        content = f"{name} {number} ".encode() * (200_000 if number % 3 == 0 else 5)
        try:
            if number % 2:
                await backend.write(f"/runs/{number}", content)
            else:
                await backend.write_stream(f"/runs/{number}", chunks(content))
        except PathTakenError:
            continue
        say(number, len(content))
asyncio.run(main())
"""

# From here on the kernel refuses to make hard links, as some file systems do.
WITHOUT_LINKS = """
import ctypes, platform, struct
linkat = {"x86_64": 265, "aarch64": 37}[platform.machine()]
filters = [(0x20, 0, 0, 0), (0x15, 0, 1, linkat), (0x06, 0, 0, 0x0005_0001), (0x06, 0, 0, 0x7FFF_0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in filters))
filters = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(filters), ctypes.addressof(code)))
kernel = ctypes.CDLL(None, use_errno=True)
assert kernel.prctl(38, 1, 0, 0, 0) == 0
assert kernel.prctl(22, 2, ctypes.c_void_p(ctypes.addressof(filters)), 0, 0) == 0, ctypes.get_errno()
"""

needs_seccomp = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"), reason="needs seccomp of Linux"
)


def unfinished(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.name.endswith("\\unfinished")]


def age(path: Path, seconds: float) -> None:
    """Let a file have been changed so long ago."""
    then = time.time() - seconds
    os.utime(path, (then, then))


def read(backend: LocalBackend, path: str) -> bytes:
    async def main() -> bytes:
        return b"".join([piece async for piece in backend.read(path)])

    return asyncio.run(main())


def test_a_process_that_is_killed_leaves_no_file_and_what_it_leaves_expires(tmp_path: Path):
    backend = LocalBackend(tmp_path)
    with program(STREAMING, tmp_path) as process:
        tell(process, "/run-1/killed")
        while int(hear(process)) < 3_000_000:
            pass
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert asyncio.run(backend.paths()) == []
    assert asyncio.run(backend.expire(0)) == 0
    (left,) = unfinished(tmp_path)
    age(left, 86_000)
    assert asyncio.run(backend.expire(0)) == 0
    assert unfinished(tmp_path) == [left]
    age(left, 86_500)
    assert asyncio.run(backend.expire(100_000)) == 0
    assert unfinished(tmp_path) == [left]
    assert asyncio.run(backend.expire(0)) == 0  # it never was a file
    assert list(tmp_path.iterdir()) == []
    asyncio.run(backend.write("/run-1/killed", "then it works"))


def test_a_stream_of_this_process_outlives_an_expiry(tmp_path: Path):
    backend = LocalBackend(tmp_path)

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"x" * 1_500_000
            assert await LocalBackend(tmp_path).expire(0) == 0

    assert asyncio.run(backend.write_stream("/a/b", pieces())) == 4_500_000
    assert read(backend, "/a/b") == b"x" * 4_500_000


@pytest.mark.parametrize(
    "prelude", ["", pytest.param(WITHOUT_LINKS, marks=needs_seccomp)], ids=["with links", "without links"]
)
def test_of_processes_that_write_the_same_paths_each_is_written_by_one(tmp_path: Path, prelude: str):
    with ExitStack() as stack:
        processes = [stack.enter_context(program(prelude + WRITING, tmp_path)) for _ in range(3)]
        for process in processes:
            assert hear(process) == "ready"
        for name, process in zip("abc", processes, strict=True):
            tell(process, name)
        said = {name: finished(process) for name, process in zip("abc", processes, strict=True)}
    won = {int(line.split()[0]): name for name, lines in said.items() for line in lines}
    assert sum(len(lines) for lines in said.values()) == len(won) == 30
    backend = LocalBackend(tmp_path)
    assert asyncio.run(backend.paths()) == sorted(f"/runs/{number}" for number in range(30))
    for number, name in won.items():
        content = f"{name} {number} ".encode() * (200_000 if number % 3 == 0 else 5)
        assert read(backend, f"/runs/{number}") == content
    assert unfinished(tmp_path) == []


@needs_seccomp
def test_without_hard_links_nothing_is_overwritten_either(tmp_path: Path):
    script = """
from suture.stores import LocalBackend, PathTakenError

async def chunks():
    yield b"streamed" * 400_000
    await LocalBackend(path).write("/c", "sooner")

async def main():
    backend = LocalBackend(path)
    await backend.write("/a/b", "old")
    await backend.write("/a/b", "old")
    for call in (backend.write("/a/b", "new"), backend.write("/a", "new"), backend.write_stream("/c", chunks())):
        try:
            say(await call)
        except PathTakenError as error:
            say(error.path)
asyncio.run(main())
try:
    os.link(path + "/c", path + "/link", src_dir_fd=os.open("/", os.O_RDONLY))
except PermissionError:
    say("no links")
"""
    assert run(WITHOUT_LINKS + script, tmp_path) == ["/a/b", "/a", "/c", "no links"]
    assert (tmp_path / "a" / "b").read_text() == "old"
    assert (tmp_path / "c").read_text() == "sooner"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "b", "c"]


# Has all but the last byte of a file written, and then waits before it gives it its name.
LATE = """
from suture.stores import LocalBackend, PathTakenError

async def chunks():
    yield b"late" * 400_000
    say("ready")
    hear()

try:
    say(asyncio.run(LocalBackend(path).write_stream("/a", chunks())))
except PathTakenError:
    say("taken")
"""


def is_waiting(process: subprocess.Popen[str]) -> bool:
    """Tell whether a process waits for a lock on a file."""
    return f" -> FLOCK  ADVISORY  WRITE {process.pid} " in Path("/proc/locks").read_text()


@needs_seccomp
def test_without_hard_links_writers_wait_for_each_other(tmp_path: Path):
    directory = os.open(tmp_path, os.O_RDONLY)
    with program(WITHOUT_LINKS + LATE, tmp_path) as process:
        assert hear(process) == "ready"
        fcntl.flock(directory, fcntl.LOCK_EX)
        tell(process)
        while not is_waiting(process) and process.poll() is None:
            time.sleep(0.01)  # between two looks; nothing relies on it
        (tmp_path / "a").write_text("sooner")
        os.close(directory)
        assert finished(process) == ["taken"]
    assert (tmp_path / "a").read_text() == "sooner"
    assert unfinished(tmp_path) == []
