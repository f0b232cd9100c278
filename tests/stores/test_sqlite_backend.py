"""The file of a `SQLiteBackend`: one of its own, private, in small parts, and errors in words."""

import asyncio
import os
import sqlite3
import stat
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from suture.errors import ConfigError
from suture.stores import PathTakenError, SQLiteBackend, SQLiteStore, StoreError
from tests.stores.processes import hear, program, run, tell

DAY = 24 * 3600


async def chunks(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def read(backend: SQLiteBackend, path: str) -> bytes:
    return b"".join([piece async for piece in backend.read(path)])


def query(path: Path, text: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute(text).fetchall()
        connection.commit()
        return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "outputs.db"


# --- the file ---------------------------------------------------------------------------------


def test_the_file_belongs_to_the_user_alone_and_says_what_it_is(tmp_path: Path):
    path = tmp_path / "new" / "outputs.db"
    before = os.umask(0)
    try:
        with SQLiteBackend(path) as backend:
            asyncio.run(backend.write("/a", b"x" * 3_000_000))
            assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}
            assert len(list(path.parent.iterdir())) == 3
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert query(path, "PRAGMA application_id") == [(0x53757446,)]
    assert query(path, "PRAGMA user_version") == [(1,)]


def test_the_file_of_a_store_is_refused_and_left_alone(path: Path, caplog: pytest.LogCaptureFixture):
    with SQLiteStore(path) as store:
        asyncio.run(store.append("run", 0, [b"0"]))
    before = path.read_bytes()
    with SQLiteBackend(path) as backend:
        for call in (backend.write("/a", "x"), backend.write_stream("/a", chunks()), backend.paths()):
            with pytest.raises(StoreError) as caught:
                asyncio.run(call)
            reason = "it is the file of a SQLiteStore; give the SQLiteBackend a path of its own"
            assert str(caught.value) == f"cannot open the backend {path}: {reason}"
    assert path.read_bytes() == before
    assert caplog.text == ""


def test_a_store_refuses_the_file_of_a_backend(path: Path):
    with SQLiteBackend(path) as backend:
        asyncio.run(backend.write("/a", "x"))
    with SQLiteStore(path) as store, pytest.raises(StoreError) as caught:
        asyncio.run(store.append("run", 0, [b"0"]))
    assert str(caught.value) == (
        f"cannot open the store {path}: it is the file of a SQLiteBackend; give the SQLiteStore a path of its own"
    )
    with SQLiteBackend(path) as backend:
        assert asyncio.run(read(backend, "/a")) == b"x"


def test_the_database_of_another_program_is_refused(path: Path):
    query(path, "CREATE TABLE customers (name)")
    with SQLiteBackend(path) as backend, pytest.raises(StoreError) as caught:
        asyncio.run(backend.paths())
    reason = "it is the SQLite database of another program; give a path of its own"
    assert str(caught.value) == f"cannot open the backend {path}: {reason}"


def test_a_symbolic_link_is_refused(tmp_path: Path, path: Path):
    path.symlink_to(tmp_path / "target.db")
    with SQLiteBackend(path) as backend, pytest.raises(ConfigError, match="is a symbolic link"):
        asyncio.run(backend.write("/a", "x"))
    assert not (tmp_path / "target.db").exists()


def test_a_closed_backend_says_so(path: Path):
    backend = SQLiteBackend(path)
    with backend:
        asyncio.run(backend.write("/a", "x"))
    with pytest.raises(StoreError, match="has been closed; make another SQLiteBackend"):
        asyncio.run(backend.size("/a"))
    assert repr(backend) == f"SQLiteBackend('{path}')"


def test_in_memory_is_another_class():
    with pytest.raises(ConfigError, match=r"a SQLiteBackend keeps a file; in memory use MemoryBackend\(\)"):
        SQLiteBackend(":memory:")


# --- what is in it ----------------------------------------------------------------------------


def test_content_is_in_parts_of_256_kib_at_most(path: Path):
    with SQLiteBackend(path) as backend:
        asyncio.run(backend.write("/written", b"w" * 1_000_000))
        asyncio.run(backend.write_stream("/streamed", chunks(b"s" * 700_000, b"s" * 2_000_000)))
    sizes = query(path, "SELECT key >> 32, length(body) FROM parts ORDER BY key")
    assert sizes == [*[(1, 262_144)] * 3, (1, 213_568), *[(2, 262_144)] * 10, (2, 78_560)]


def test_what_is_deleted_makes_room_for_what_comes(path: Path):
    async def use(backend: SQLiteBackend):
        for number in range(12):
            await backend.write_stream(f"/{number}", chunks(b"x" * 2_000_000))
            await backend.delete(f"/{number}")

    with SQLiteBackend(path) as backend:
        asyncio.run(use(backend))
    assert path.stat().st_size < 6_000_000
    assert query(path, "SELECT count(*) FROM files") == query(path, "SELECT count(*) FROM parts") == [(0,)]


def test_a_stream_that_fails_leaves_no_part(path: Path):
    async def failing(written: list[Any]) -> AsyncIterator[bytes]:
        yield b"x" * 3_000_000
        written += query(path, "SELECT count(*) FROM parts")
        raise LookupError

    async def overtaken(backend: SQLiteBackend) -> AsyncIterator[bytes]:
        yield b"x" * 3_000_000
        await backend.write("/a", "sooner")

    written: list[Any] = []
    with SQLiteBackend(path) as backend:
        with pytest.raises(LookupError):
            asyncio.run(backend.write_stream("/a", failing(written)))
        with pytest.raises(PathTakenError):
            asyncio.run(backend.write_stream("/a", overtaken(backend)))
    assert written == [(8,)]
    assert query(path, "SELECT path FROM files") == [("a",)]
    assert query(path, "SELECT body FROM parts") == [(b"sooner",)]


def test_a_stream_that_takes_its_time_holds_up_nobody(path: Path):
    async def slow(other: SQLiteBackend) -> AsyncIterator[bytes]:
        for number in range(3):
            yield b"x" * 2_000_000
            await other.write(f"/other/{number}", "at once")

    with SQLiteBackend(path) as backend, SQLiteBackend(path, busy_timeout=0) as other:
        assert asyncio.run(backend.write_stream("/slow", slow(other))) == 6_000_000
        assert asyncio.run(backend.paths()) == ["/other/0", "/other/1", "/other/2", "/slow"]


def test_the_log_of_a_long_stream_stays_short(path: Path):
    sizes: list[int] = []

    async def long() -> AsyncIterator[bytes]:
        for _ in range(60):
            yield b"x" * 1_000_000
            sizes.append(os.stat(f"{path}-wal").st_size)  # noqa: PTH116

    with SQLiteBackend(path) as backend:
        asyncio.run(backend.write("/first", ""))
        assert asyncio.run(backend.write_stream("/long", long())) == 60_000_000
    assert max(sizes) < 20_000_000


# --- faults -----------------------------------------------------------------------------------

FULL = """
import logging, resource
from suture.stores import SQLiteBackend

# That nothing can be removed either, while the disk is full, is logged.
logging.getLogger("suture").addHandler(logging.NullHandler())

async def chunks(size):
    for _ in range(size // 1000):
        yield b"x" * 1000

async def attempt(call):
    try:
        say(await call)
    except StoreError as error:
        say(error, repr(error.__cause__))

async def main():
    backend = SQLiteBackend(path)
    await backend.write("/kept", b"k" * 500_000)
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, unlimited[1]))
    await attempt(backend.write("/a", b"x" * 5_000_000))
    await attempt(backend.write_stream("/a", chunks(5_000_000)))
    say(await backend.paths(), await backend.size("/kept"))
    resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    await attempt(backend.write_stream("/a", chunks(5_000_000)))
    say(await backend.paths())
    backend.close()
asyncio.run(main())
"""


def test_what_a_full_disk_does_not_take_is_named_and_not_there_in_part(path: Path):
    *failures, during, size, after = run(FULL, path)
    assert len(failures) == 2
    for failure in failures:
        assert failure.startswith(f"{path}: '/a' was not written: the disk ")
        assert failure.endswith(("OperationalError('disk I/O error')", "OperationalError('database or disk is full')"))
    assert during == "['/kept'] 500000"
    assert size == "5000000"
    assert after == "['/a', '/kept']"


STREAMING = """
from suture.stores import SQLiteBackend

async def endless():
    given = 0
    while True:
        yield b"x" * 1_500_000
        given += 1
        say(given)
        if given == 3:
            hear()

asyncio.run(SQLiteBackend(path).write_stream("/killed", endless()))
"""


def test_what_a_killed_process_leaves_is_not_seen_and_expires_after_a_day(path: Path):
    with program(STREAMING, path) as process:
        for number in ("1", "2", "3"):
            assert hear(process) == number
        process.kill()
        process.wait()
    (left,) = query(path, "SELECT written FROM files WHERE path IS NULL")
    now = left[0]
    with SQLiteBackend(path, clock=lambda: now) as backend:
        assert asyncio.run(backend.paths()) == []
        for seconds, passed, count in ((0, DAY - 1, 1), (2 * DAY, DAY + 1, 1), (2 * DAY, 2 * DAY, 0)):
            now = left[0] + passed
            assert asyncio.run(backend.expire(seconds)) == 0
            assert query(path, "SELECT count(*) FROM files") == [(count,)]
        assert query(path, "SELECT count(*) FROM parts") == [(0,)]
        asyncio.run(backend.write("/killed", "then it works"))


def test_a_stream_that_was_expired_while_it_paused_is_refused(path: Path):
    now = 1_700_000_000.0

    async def pausing(other: SQLiteBackend) -> AsyncIterator[bytes]:
        nonlocal now
        yield b"x" * 3_000_000
        now += DAY
        assert await other.expire(0) == 0
        yield b"x"

    with SQLiteBackend(path, clock=lambda: now) as backend, SQLiteBackend(path, clock=lambda: now) as other:
        with pytest.raises(StoreError, match="'/a' was not written: it paused for so long that it was expired"):
            asyncio.run(backend.write_stream("/a", pausing(other)))
        assert asyncio.run(backend.paths()) == []
    assert query(path, "SELECT count(*) FROM parts") == [(0,)]


HOLDING = """
from suture.stores import SQLiteBackend
backend = SQLiteBackend(path)
def hold(connection):
    connection.execute("BEGIN IMMEDIATE")
    say("holding")
    hear()
backend._use(hold, "", wait=True)
"""


def test_a_lock_that_stays_held_ends_in_an_error(path: Path):
    with SQLiteBackend(path, busy_timeout=0) as backend:
        asyncio.run(backend.write("/a", "x"))
        with program(HOLDING, path) as process:
            assert hear(process) == "holding"
            with pytest.raises(StoreError) as caught:
                asyncio.run(backend.write_stream("/b", chunks(b"x" * 3_000_000)))
            assert str(caught.value) == (
                f"{path}: '/b' was not written: another writer has held the lock of the file for 0 s"
            )
            assert asyncio.run(read(backend, "/a")) == b"x"  # which needs no lock
            tell(process)
            process.wait()
        asyncio.run(backend.write("/b", "x"))
