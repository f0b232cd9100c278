"""The files of a `LocalBackend`: private, never reached through a symbolic link, and errors in words."""

import asyncio
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from suture.errors import ConfigError
from suture.stores import LocalBackend, PathNotFoundError, PathTakenError, StoreError, files
from tests.stores.processes import PRELUDE, run


async def chunks(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def read(backend: LocalBackend, path: str) -> bytes:
    return b"".join([piece async for piece in backend.read(path)])


USES: dict[str, Callable[[LocalBackend, str], Awaitable[Any]]] = {
    "write": lambda backend, path: backend.write(path, "new"),
    "write_stream": lambda backend, path: backend.write_stream(path, chunks(b"new")),
    "read": read,
    "size": lambda backend, path: backend.size(path),
    "delete": lambda backend, path: backend.delete(path),
    "paths": lambda backend, path: backend.paths(path),
}


def do(use: str, backend: LocalBackend, path: str = "/a/b") -> Any:
    async def main():
        return await USES[use](backend, path)

    return asyncio.run(main())


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def tree(path: Path) -> list[str]:
    return sorted(str(each.relative_to(path)) for each in path.rglob("*"))


# --- permissions ------------------------------------------------------------------------------


@pytest.mark.parametrize("umask", [0, 0o022, 0o277], ids=oct)
def test_files_and_new_directories_belong_to_the_user_alone_whatever_the_umask(tmp_path: Path, umask: int):
    tmp_path.chmod(0o755)
    directory = tmp_path / "new" / "newer"
    before = os.umask(umask)
    try:
        backend = LocalBackend(directory)
        assert tree(tmp_path) == []  # nothing is made before it is needed
        assert asyncio.run(backend.paths()) == []
        assert tree(tmp_path) == []
        do("write", backend, "/run-1/trunc/written")
        do("write_stream", backend, "/run-1/trunc/streamed")
    finally:
        os.umask(before)
    assert tree(directory) == ["run-1", "run-1/trunc", "run-1/trunc/streamed", "run-1/trunc/written"]
    for path in (directory.parent, directory, directory / "run-1", directory / "run-1" / "trunc"):
        assert mode(path) == 0o700
    for path in (directory / "run-1" / "trunc").iterdir():
        assert mode(path) == 0o600
    assert mode(tmp_path) == 0o755


def test_a_file_is_private_from_the_beginning(tmp_path: Path):
    backend = LocalBackend(tmp_path)

    async def looking() -> AsyncIterator[bytes]:
        yield b"x" * 1_500_000
        assert [mode(tmp_path / path) for path in tree(tmp_path)] == [0o600]
        yield b"x"

    before = os.umask(0)
    try:
        asyncio.run(backend.write_stream("a", looking()))
    finally:
        os.umask(before)


# --- symbolic links ---------------------------------------------------------------------------


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory beside that of the backend, with a file that nobody may reach."""
    (tmp_path / "inside").mkdir()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "b").write_text("secret")
    return outside


@pytest.mark.parametrize("use", USES)
def test_a_directory_that_is_a_symbolic_link_is_not_followed(tmp_path: Path, outside: Path, use: str):
    backend = LocalBackend(tmp_path / "inside")
    (tmp_path / "inside" / "a").symlink_to(outside)
    with pytest.raises(StoreError) as caught:
        do(use, backend, "/a/b")
    assert str(caught.value) == (f"{tmp_path}/inside: 'a' is a symbolic link there, and none is followed; remove it")
    assert (outside / "b").read_text() == "secret"
    assert tree(outside) == ["b"]
    assert asyncio.run(backend.paths()) == []


@pytest.mark.parametrize("target", ["b", "missing"])
@pytest.mark.parametrize("use", USES)
def test_a_file_that_is_a_symbolic_link_is_not_followed(tmp_path: Path, outside: Path, use: str, target: str):
    backend = LocalBackend(tmp_path / "inside")
    (tmp_path / "inside" / "a").mkdir()
    (tmp_path / "inside" / "a" / "b").symlink_to(outside / target)
    with pytest.raises(StoreError) as caught:
        do(use, backend, "/a/b")
    assert str(caught.value) == (f"{tmp_path}/inside: 'a/b' is a symbolic link there, and none is followed; remove it")
    assert (tmp_path / "inside" / "a" / "b").is_symlink()
    assert tree(outside) == ["b"]
    assert (outside / "b").read_text() == "secret"
    assert asyncio.run(backend.paths()) == []
    assert asyncio.run(backend.expire(0)) == 0
    assert (outside / "b").read_text() == "secret"


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("target", ["outside", "missing"])
def test_the_directory_itself_may_not_be_a_symbolic_link(tmp_path: Path, outside: Path, target: str, use: str):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / target)
    with pytest.raises(StoreError) as caught:
        do(use, LocalBackend(link), "/b")
    assert str(caught.value) == f"{link} is a symbolic link, and none is followed; give its target"
    assert tree(outside) == ["b"]
    assert not (tmp_path / "missing").exists()


def test_the_directory_may_be_in_one_that_is_reached_through_a_symbolic_link(tmp_path: Path, outside: Path):
    (tmp_path / "link").symlink_to(outside)
    do("write", LocalBackend(tmp_path / "link" / "mine"), "/a")
    assert (outside / "mine" / "a").read_text() == "new"


def test_what_is_no_regular_file_is_taken_and_not_found(tmp_path: Path):
    backend = LocalBackend(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for path in ("/pipe", "/folder"):
        for use in ("write", "write_stream"):
            with pytest.raises(PathTakenError):
                do(use, backend, path)
        for use in ("read", "size"):
            with pytest.raises(PathNotFoundError):
                do(use, backend, path)
        do("delete", backend, path)
    assert asyncio.run(backend.paths()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "pipe"]


# --- what is left behind ----------------------------------------------------------------------


def test_directories_go_with_their_last_file(tmp_path: Path):
    backend = LocalBackend(tmp_path / "files")
    for path in ("/a/b/c", "/a/b/d", "/e/f"):
        do("write", backend, path)
    do("delete", backend, "/a/b/c")
    assert tree(tmp_path / "files") == ["a", "a/b", "a/b/d", "e", "e/f"]
    do("delete", backend, "/a/b/d")
    assert tree(tmp_path / "files") == ["e", "e/f"]
    assert asyncio.run(backend.expire(0)) == 1
    assert tree(tmp_path) == ["files"]


def test_a_stream_that_fails_or_is_refused_leaves_no_file_and_no_directory(tmp_path: Path):
    backend = LocalBackend(tmp_path)

    async def failing() -> AsyncIterator[bytes]:
        yield b"x" * 3_000_000
        assert len(tree(tmp_path)) == 3  # what was written so far is in its directory
        raise LookupError

    with pytest.raises(LookupError):
        asyncio.run(backend.write_stream("/a/b/c", failing()))
    assert tree(tmp_path) == []
    do("write", backend, "/a/b")
    for size in (10, 3_000_000):
        with pytest.raises(PathTakenError):
            asyncio.run(backend.write("/a/b", b"x" * size))
        with pytest.raises(PathTakenError):
            asyncio.run(backend.write_stream("/a/b", chunks(b"x" * size)))
    assert tree(tmp_path) == ["a", "a/b"]


def test_writers_do_not_mind_if_their_directory_is_removed_because_it_is_empty(tmp_path: Path):
    backend = LocalBackend(tmp_path)

    async def one(number: int):
        for _ in range(40):
            await backend.write(f"/a/b/{number}", f"{number}")
            assert await read(backend, f"/a/b/{number}") == f"{number}".encode()
            await backend.delete(f"/a/b/{number}")

    async def all_of_them():
        await asyncio.gather(*(one(number) for number in range(8)))

    asyncio.run(all_of_them())
    assert tree(tmp_path) == []


@pytest.mark.parametrize("use", ["write", "write_stream"])
@pytest.mark.parametrize("times", [1, 99, 100])
def test_a_directory_that_is_removed_before_anything_is_in_it_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int, use: str
):
    random, removed = os.urandom, list[int]()

    def removing(size: int) -> bytes:  # it is asked for when the directory is there, and nothing in it
        if len(removed) < times:
            (tmp_path / "a" / "b").rmdir()
            removed.append(size)
        return random(size)

    monkeypatch.setattr(files.os, "urandom", removing)
    backend = LocalBackend(tmp_path)
    if times < 100:
        do(use, backend, "/a/b/c")
        assert tree(tmp_path) == ["a", "a/b", "a/b/c"]
    else:
        with pytest.raises(StoreError, match="the directory of 'a/b/c' was removed each time it was made"):
            do(use, backend, "/a/b/c")
    assert len(removed) == times


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")
def test_no_file_stays_open(tmp_path: Path):
    backend = LocalBackend(tmp_path)

    async def use():
        await backend.write("a", b"x" * 3_000_000)
        pieces = backend.read("a")
        await anext(pieces)
        await pieces.aclose()
        for use_it in USES.values():
            for path in ("/a", "/never/a", "/a/b", "/b"):
                with suppress(StoreError):
                    await use_it(backend, path)
        begun = asyncio.Event()
        task = asyncio.ensure_future(backend.write_stream("c", endless(begun)))
        await begun.wait()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    async def endless(begun: asyncio.Event) -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 5_000_000
            begun.set()

    before = len(list(Path("/proc/self/fd").iterdir()))
    asyncio.run(use())
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert tree(tmp_path) == []


# --- expiry -----------------------------------------------------------------------------------


def test_a_file_expires_by_the_time_it_was_written(tmp_path: Path):
    backend = LocalBackend(tmp_path)
    for name, age in (("old", 7200), ("new", 1800)):
        do("write", backend, f"/a/{name}")
        os.utime(tmp_path / "a" / name, (0, (tmp_path / "a" / name).stat().st_mtime - age))
    do("read", backend, "/a/old")
    assert asyncio.run(backend.expire(7300)) == 0
    assert asyncio.run(backend.expire(3600)) == 1
    assert asyncio.run(backend.paths()) == ["/a/new"]


def test_what_is_not_the_backends_is_not_listed_and_does_not_expire(tmp_path: Path):
    backend = LocalBackend(tmp_path)
    names = ["back\\slash", "new\nline", os.fsdecode(b"\xff\xfe"), "x" * 220]
    for name in names:
        (tmp_path / name).write_text("somebody's")
    assert asyncio.run(backend.paths()) == []
    assert asyncio.run(backend.expire(0)) == 0
    assert sorted(os.listdir(tmp_path)) == sorted(names)  # noqa: PTH208 - names that are no text


# --- faults -----------------------------------------------------------------------------------


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("where", ["file", "file/deeper/still"])
def test_a_file_where_the_directory_should_be_is_named(tmp_path: Path, where: str, use: str):
    (tmp_path / "file").write_text("something")
    with pytest.raises(StoreError) as caught:
        do(use, LocalBackend(tmp_path / where))
    assert type(caught.value) is StoreError
    assert str(caught.value) == f"{tmp_path / where} is not a directory, or not in one; give another one"
    assert (tmp_path / "file").read_text() == "something"


USED = """
from suture.stores import LocalBackend

async def chunks(size):
    for _ in range(size // 1000):
        yield b"x" * 1000

async def read(backend, path):
    return b"".join([piece async for piece in backend.read(path)])

async def attempt(call):
    try:
        say(await call)
    except StoreError as error:
        say(type(error).__name__, error, repr(error.__cause__))

def inside():
    return sorted(os.path.relpath(os.path.join(folder, name), path)
        for folder, folders, files in os.walk(path) for name in folders + files)
"""

UNPRIVILEGED = (
    USED
    + """
import concurrent.futures.thread, suture.stores.files  # while they can be read
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)

async def main():
    backend = LocalBackend(path)
    await attempt(backend.write("/a/b", "new"))
    await attempt(backend.write_stream("/a/b", chunks(2000)))
    await attempt(read(backend, "/private"))
    await attempt(backend.size("/closed/file"))
    await attempt(backend.delete("/private"))
    await attempt(backend.paths("/closed"))
    await attempt(backend.expire(0))
asyncio.run(main())
"""
)


def test_what_this_process_may_not_do_is_named():
    with tempfile.TemporaryDirectory() as name:  # others may enter it, unlike `tmp_path`
        directory = Path(name)
        (directory / "private").write_text("secret")
        (directory / "private").chmod(0o600)
        (directory / "closed").mkdir(0o700)
        directory.chmod(0o555)
        said = run(UNPRIVILEGED, directory)
        directory.chmod(0o755)
        assert tree(directory) == ["closed", "private"]
    reason = "this process has no permission; give it a directory of its own PermissionError(13, 'Permission denied')"
    whats = [
        "'/a/b' was not written",
        "'/a/b' was not written",
        "'/private' was not read",
        "'/closed/file' was not read",
    ]
    whats += ["'/private' was not deleted", "'/closed' was not listed", "what is in it was not expired"]
    assert said == [f"StoreError {directory}: {what}: {reason}" for what in whats]


FULL = (
    USED
    + """
import resource

async def main():
    backend = LocalBackend(path)
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_500_000, unlimited[1]))
    await attempt(backend.write("/a/b", b"x" * 3_000_000))
    await attempt(backend.write_stream("/a/b", chunks(3_000_000)))
    await attempt(backend.write_stream("/a/b", chunks(50_000_000)))
    say(inside(), await backend.paths())
    resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    await attempt(backend.write_stream("/a/b", chunks(3_000_000)))
    say(inside())
asyncio.run(main())
"""
)


def test_a_file_that_is_too_large_for_the_system_is_not_written_in_part(tmp_path: Path):
    reason = "the file would be larger than the system lets this process write OSError(27, 'File too large')"
    assert run(FULL, tmp_path) == [
        *[f"StoreError {tmp_path}: '/a/b' was not written: {reason}"] * 3,
        "[] []",
        "3000000",
        "['a', 'a/b']",
    ]


SMALL_DISK = (
    USED
    + """
async def main():
    backend = LocalBackend(path)
    await attempt(backend.write("/kept", b"k" * 1000))
    await attempt(backend.write("/a/b", b"x" * 5_000_000))
    await attempt(backend.write_stream("/a/b", chunks(5_000_000)))
    say(inside())
    await attempt(backend.write_stream("/a/b", chunks(1_500_000)))
    os.system(f"mount -o remount,ro {path}")
    await attempt(backend.write("/c", "x"))
    await attempt(backend.write_stream("/c", chunks(3_000_000)))
    await attempt(backend.delete("/a/b"))
    await attempt(backend.size("/a/b"))
asyncio.run(main())
"""
)


def on_small_disk(command: list[str], directory: Path) -> subprocess.CompletedProcess[str]:
    """Run a command that has a file system of 2 MiB at this place, for itself alone."""
    script = 'mount -t tmpfs -o size=2m tmpfs "$0" && exec "$@"'
    own = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, str(directory)]
    return subprocess.run([*own, *command], capture_output=True, text=True, timeout=120, check=False)


def test_a_full_disk_and_a_read_only_one_are_named_and_nothing_is_written_in_part(tmp_path: Path):
    if not shutil.which("unshare") or on_small_disk(["true"], tmp_path).returncode:
        pytest.skip("this user may not mount anything")
    ended = on_small_disk([sys.executable, "-c", PRELUDE + SMALL_DISK, str(tmp_path)], tmp_path)
    assert ended.stderr == ""
    full = "the disk is full; make room on it OSError(28, 'No space left on device')"
    read_only = "the file system is read-only; give another directory OSError(30, 'Read-only file system')"
    assert ended.stdout.splitlines() == [
        "None",
        *[f"StoreError {tmp_path}: '/a/b' was not written: {full}"] * 2,
        "['kept']",
        "1500000",
        *[f"StoreError {tmp_path}: '/c' was not written: {read_only}"] * 2,
        f"StoreError {tmp_path}: '/a/b' was not deleted: {read_only}",
        "1500000",
    ]


# --- options ----------------------------------------------------------------------------------


@pytest.mark.parametrize("directory", ["", "a\0b", b"bytes"])
def test_what_is_no_directory_is_refused(directory: Any):
    with pytest.raises(ConfigError, match="the directory of a LocalBackend"):
        LocalBackend(directory)


def test_a_directory_is_taken_as_it_was_when_the_backend_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    backend = LocalBackend("outputs")
    monkeypatch.chdir(tmp_path / "elsewhere")
    do("write", backend, "/a")
    assert backend.directory == str(tmp_path / "outputs")
    assert repr(backend) == f"LocalBackend('{tmp_path}/outputs')"
    assert (tmp_path / "outputs" / "a").is_file()


def test_a_system_that_cannot_keep_links_out_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "supports_dir_fd", set[Any]())
    with pytest.raises(ConfigError, match="use a SQLiteBackend"):
        LocalBackend(tmp_path)


@pytest.mark.parametrize("asked", [True, False])
def test_files_and_directories_are_brought_to_the_disk_if_that_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: bool
):
    synchronised: list[str] = []

    def noting(descriptor: int):
        synchronised.append("directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")

    monkeypatch.setattr(files.os, "fsync", noting)
    backend = LocalBackend(tmp_path / "new", fsync=asked)
    do("write", backend, "/a/b")
    # What holds "new", what holds "a", the file itself, what holds "b".
    assert synchronised == (["directory", "directory", "file", "directory"] if asked else [])
    do("write_stream", backend, "/a/c")
    assert synchronised[4:] == (["file", "directory"] if asked else [])
    do("delete", backend, "/a/b")
    assert synchronised[6:] == (["directory"] if asked else [])


def test_a_file_whose_name_does_not_come_to_the_disk_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def failing(descriptor: int):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(files.os, "fsync", failing)
    backend = LocalBackend(tmp_path, fsync=True)
    for use in ("write", "write_stream"):
        with pytest.raises(StoreError, match="'/a' was not written: the disk did not take or give it"):
            do(use, backend, "/a")
    assert tree(tmp_path) == []
