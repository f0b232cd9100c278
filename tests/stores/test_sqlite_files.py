"""The file of a `SQLiteStore`: private, never a symbolic link, never another program's, and errors in words."""

import asyncio
import gc
import os
import random
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from suture.errors import ConfigError
from suture.stores import DamagedJournalError, SQLiteStore, StoreError
from tests.stores.processes import run


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def write(path: Path, *records: bytes) -> None:
    with SQLiteStore(path) as store:
        asyncio.run(store.append("run", 0, records or [b"0"]))


def refusal(path: Path, kind: type[Exception] = StoreError) -> str:
    """Return what a store says when this file is read; reading and writing say the same."""
    said = set[str]()
    with SQLiteStore(path) as store:
        uses: list[Callable[[], Any]] = [lambda: store.load("run"), lambda: store.append("run", 0, [b"0"])]
        for use in uses:
            with pytest.raises(kind) as caught:
                asyncio.run(use())
            assert caught.value.__suppress_context__ or caught.value.__context__ is None
            said.add(str(caught.value))
    assert len(said) == 1
    begins = f"cannot open the store {path}: "
    (text,) = said
    assert text.startswith(begins)
    return text.removeprefix(begins)


def test_files_and_new_directories_belong_to_the_user_alone(tmp_path: Path):
    tmp_path.chmod(0o755)
    path = tmp_path / "new" / "newer" / "runs.db"
    before = os.umask(0)
    try:
        with SQLiteStore(path) as store:
            assert list(tmp_path.iterdir()) == []  # nothing is made before it is needed
            asyncio.run(store.append("run", 0, [b"0"]))
            assert sorted(file.name for file in path.parent.iterdir()) == ["runs.db", "runs.db-shm", "runs.db-wal"]
            assert {mode(file) for file in path.parent.iterdir()} == {0o600}
    finally:
        os.umask(before)
    assert [file.name for file in path.parent.iterdir()] == ["runs.db"]
    assert mode(path.parent) == mode(path.parent.parent) == 0o700
    assert mode(tmp_path) == 0o755


@pytest.mark.parametrize("dangling", [True, False])
def test_a_symbolic_link_is_refused_and_not_followed(tmp_path: Path, dangling: bool):
    target, link = tmp_path / "target.db", tmp_path / "link.db"
    if not dangling:
        target.write_bytes(b"")
    link.symlink_to(target)
    assert refusal(link, ConfigError) == "it is a symbolic link; give the path of the file itself"
    assert target.exists() is not dangling
    assert dangling or target.read_bytes() == b""


def test_a_directory_may_be_reached_through_a_symbolic_link(tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write(tmp_path / "link" / "runs.db")
    assert (tmp_path / "real" / "runs.db").is_file()


def test_what_is_no_regular_file_is_refused(tmp_path: Path):
    assert "is not a regular file" in refusal(tmp_path, ConfigError)
    os.mkfifo(tmp_path / "pipe")
    assert "is not a regular file" in refusal(tmp_path / "pipe", ConfigError)


def test_a_file_where_a_directory_should_be_is_named(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"")
    path = tmp_path / "file" / "runs.db"
    assert refusal(path) == f"Not a directory ({path}); give a path where this process may write files"


def test_an_empty_file_becomes_a_store(tmp_path: Path):
    path = tmp_path / "runs.db"
    path.write_bytes(b"")
    write(path)
    with SQLiteStore(path) as store:
        assert asyncio.run(store.load("run")) == [b"0"]


@pytest.mark.parametrize(
    "content", [b"a text file\n" * 500, b"SQLite format 3\0" + b"\xff" * 5000, b"x", b"xy", b"x" * 511]
)
def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path, content: bytes):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    reason = "it is not a SQLite database; give a path of its own"
    assert refusal(path) in (reason, f"{reason} (SQLITE_NOTADB)")
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "statement", ["CREATE TABLE customers (name)", "PRAGMA application_id = 7", "PRAGMA user_version = 1"]
)
def test_the_database_of_another_program_is_refused_and_left_alone(tmp_path: Path, statement: str):
    path = tmp_path / "other.db"
    other = sqlite3.connect(path)
    other.execute(statement)
    other.commit()
    other.close()
    before = path.read_bytes()
    assert refusal(path) == "it is the SQLite database of another program; give a path of its own"
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_version_that_this_release_does_not_know_is_refused_and_left_alone(tmp_path: Path):
    path = tmp_path / "runs.db"
    write(path)
    later = sqlite3.connect(path)
    later.execute("PRAGMA user_version = 9")
    later.commit()
    later.close()
    before = path.read_bytes()
    known = "this release of Suture knows version 3 only; use the release that made it, or another path"
    assert refusal(path) == f"it has version 9, and {known}"
    assert path.read_bytes() == before


# --- damage -----------------------------------------------------------------------------------

JOURNALS = {f"run-{number}": [f"{number} {at} ".encode() * (at % 7 * 9 + 1) for at in range(40)] for number in range(5)}


def flip(content: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(content))
    content[at] ^= 1 << chance.randrange(8)


def fill(content: bytearray, chance: random.Random) -> None:
    at = chance.randrange(0, len(content), 512)
    content[at : at + 512] = bytes(512) if chance.random() < 0.5 else chance.randbytes(512)


def cut(content: bytearray, chance: random.Random) -> None:
    del content[chance.randrange(len(content)) :]


@pytest.fixture(scope="module")
def journals(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A file with journals, keys, a fork and a lease."""
    path = tmp_path_factory.mktemp("damage") / "runs.db"

    async def write() -> None:
        with SQLiteStore(path) as store:
            for run, records in JOURNALS.items():
                await store.append(run, 0, records)
            await store.fork("run-0", 30, "fork")
            await store.claim("run-1", "key", b"under a key")
            await store.acquire("run-1", "owner", 3600)

    asyncio.run(write())
    return path.read_bytes()


def examine(path: Path) -> int:
    """Read all that can be read, and return how often damage was noticed; anything wrong fails."""

    async def main(store: SQLiteStore) -> int:
        noticed = 0
        for name, records in {**JOURNALS, "fork": JOURNALS["run-0"][:30]}.items():
            try:
                found = await store.load(name)
            except StoreError:
                noticed += 1
            else:
                # What was at the end may be gone, but nothing is another than it was.
                assert found[: len(records)] == records[: len(found)]
        uses: list[Callable[[], Any]] = [
            store.runs,
            lambda: store.lease("run-1"),
            lambda: store.claim("run-1", "key", b"again"),
            lambda: store.fork("run-2", 3, "new"),
            lambda: store.append("run-3", 40, [b"more"], owner="me"),
            lambda: store.delete("run-0"),
            lambda: store.expire(3600),
        ]
        for use in uses:
            try:
                await use()
            except StoreError:
                noticed += 1
        return noticed

    with SQLiteStore(path, busy_timeout=0) as store:
        return asyncio.run(main(store))


@pytest.mark.parametrize("damage", [flip, fill, cut])
@pytest.mark.parametrize("count", [15, pytest.param(1000, marks=pytest.mark.soak)])
def test_damage_is_an_error_of_the_store_and_no_record_is_another_than_it_was(
    tmp_path: Path, journals: bytes, damage: Callable[[bytearray, random.Random], None], count: int
):
    path, noticed = tmp_path / "runs.db", 0
    path.write_bytes(journals)
    assert examine(path) == 0
    for seed in range(count):
        content = bytearray(journals)
        damage(content, random.Random(seed))
        path.write_bytes(content)
        noticed += examine(path) > 0
    assert noticed > count // 3


def test_what_kind_of_damage_it_is_makes_no_difference(tmp_path: Path, journals: bytes):
    path = tmp_path / "runs.db"
    for statement in (
        "UPDATE records SET body = x'00' WHERE key & 4294967295 = 1",
        "UPDATE records SET body = 'text'",
        "UPDATE records SET body = 7",
        "UPDATE records SET checksum = NULL",
        "UPDATE records SET checksum = 'x'",
        "DELETE FROM records WHERE key & 4294967295 = 3",
        "UPDATE records SET key = key + 7 WHERE key & 4294967295 = 39",
        "UPDATE runs SET base = 'x'",
        "UPDATE runs SET base = NULL",
        "UPDATE runs SET parent = 99, base = 5",
        "UPDATE runs SET parent = id, base = 5",
        "ALTER TABLE records DROP COLUMN checksum",
        "DROP TABLE runs",
    ):
        path.write_bytes(journals)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute(statement)
        with SQLiteStore(path) as store, pytest.raises(DamagedJournalError) as caught:
            asyncio.run(store.load("run-2"))
        assert str(caught.value).startswith(f"{path}: run 'run-2' was not read: ")
    path.write_bytes(journals)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("UPDATE runs SET run = CAST(x'ff' AS TEXT) WHERE run = 'run-4'")
    with SQLiteStore(path) as store, pytest.raises(DamagedJournalError):
        asyncio.run(store.runs())


def test_a_damaged_file_is_named(tmp_path: Path):
    path = tmp_path / "runs.db"
    write(path, *(b"x" * 3000 for _ in range(200)))
    content = path.read_bytes()
    for damaged, what in (
        (content[:20480] + b"\xa5" * (len(content) - 20480), f"{path}: run 'run' was not read"),
        (content[:-40960], f"cannot open the store {path}"),
    ):
        path.write_bytes(damaged)
        with SQLiteStore(path) as store, pytest.raises(DamagedJournalError) as caught:
            asyncio.run(store.load("run"))
        reason = "the file is damaged; move it away, or bring back a copy (SQLITE_CORRUPT)"
        assert str(caught.value) == f"{what}: {reason}"


# The process gives up what a superuser may do, where it is one.
UNPRIVILEGED = """
import concurrent.futures.thread, sqlite3, suture.stores.sqlite
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
for use in (lambda store: store.load("run"), lambda store: store.append("run", 1, [b"1"])):
    with SQLiteStore(path) as store:
        try:
            say(asyncio.run(use(store)))
        except SutureError as error:
            say(error)
"""


@pytest.fixture
def shared_directory():
    """A directory that others may enter, unlike `tmp_path`."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory)
        path.chmod(0o755)
        yield path
        path.chmod(0o755)


def test_a_file_that_may_not_be_read_is_named(shared_directory: Path):
    path = shared_directory / "runs.db"
    write(path)
    path.chmod(0)
    reason = "this process may not open the file, or not make files beside it"
    where = "give a path where this process may write files"
    assert run(UNPRIVILEGED, path) == [f"cannot open the store {path}: {reason}; {where} (SQLITE_CANTOPEN)"] * 2


def test_a_file_that_may_not_be_written_is_named(shared_directory: Path):
    path = shared_directory / "runs.db"
    write(path)
    path.chmod(0o444)
    shared_directory.chmod(0o555)
    said = run(UNPRIVILEGED, path)
    assert len(said) == 2
    for line in said:
        assert line.startswith(f"cannot open the store {path}: ")
        assert "may not open the file" in line or "read-only" in line


def test_a_directory_that_may_not_be_written_is_named(shared_directory: Path):
    path = shared_directory / "deeper" / "runs.db"
    shared_directory.chmod(0o555)
    reason = f"Permission denied ({path.parent}); give a path where this process may write files"
    assert run(UNPRIVILEGED, path) == [f"cannot open the store {path}: {reason}"] * 2
    assert list(shared_directory.iterdir()) == []


FULL_DISK = """
import resource

async def main():
    store = SQLiteStore(path)
    await store.append("run", 0, [b"first"])
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (AT_MOST, unlimited[1]))
    written = 1
    try:
        while True:
            records = [b"%d" % (written + part) + b"x" * 2000 for part in range(AT_ONCE)]
            await store.append("run", written, records)
            written += len(records)
    except StoreError as error:
        say(written, error)
    say(len(await store.load("run")))
    resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    for number in range(written, written + 5):
        await store.append("run", number, [b"%d" % number])
    say(len(await store.load("run")))
    os._exit(0)  # without another word to the file

asyncio.run(main())
"""


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize(
    "limit",
    [60_000, 1_000_000, *(pytest.param(limit, marks=pytest.mark.soak) for limit in (120_000, 6_000_000))],
)
def test_what_a_full_disk_does_not_take_is_named_and_not_written_in_part(tmp_path: Path, limit: int, count: int):
    path = tmp_path / "runs.db"
    failure, during, after = run(FULL_DISK.replace("AT_MOST", str(limit)).replace("AT_ONCE", str(count)), path)
    written = int(failure.split()[0])
    assert written > 1
    what = f"record {written} of" if count == 1 else f"records {written} to {written + 2} of"
    assert failure.startswith(f"{written} {path}: {what} run 'run' w")
    assert "not written: the disk " in failure
    assert int(during) == written
    assert int(after) == written + 5
    with SQLiteStore(path) as store:
        journal = asyncio.run(store.load("run"))
    assert [record.rstrip(b"x") for record in journal] == [b"first", *(b"%d" % n for n in range(1, written + 5))]


@pytest.mark.parametrize("path", [":memory:", "", "a\0b", b"bytes.db"])
def test_what_is_no_path_is_refused(path: Any):
    with pytest.raises(ConfigError):
        SQLiteStore(path)


def test_a_store_in_memory_is_another_class():
    with pytest.raises(ConfigError, match=r"use MemoryStore\(\)"):
        SQLiteStore(":memory:")


@pytest.mark.parametrize(
    "options", [{"synchronous": "off"}, {"synchronous": None}, {"busy_timeout": -1}, {"busy_timeout": "5"}]
)
def test_wrong_options_are_refused(tmp_path: Path, options: Any):
    with pytest.raises(ConfigError, match=next(iter(options))):
        SQLiteStore(tmp_path / "runs.db", **options)


def test_a_path_is_taken_as_it_was_when_the_store_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with SQLiteStore("file:runs.db?mode=memory") as store:
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        asyncio.run(store.append("run", 0, [b"0"]))
        assert store.path == str(tmp_path / "file:runs.db?mode=memory")
        assert Path(store.path).is_file()


def test_a_closed_store_says_so(tmp_path: Path):
    path = tmp_path / "runs.db"
    store = SQLiteStore(path)
    store.close()
    with pytest.raises(StoreError, match="has been closed"):
        asyncio.run(store.load("run"))
    assert not path.exists()
    with store:
        pass
    write(path)
    with SQLiteStore(path) as store:
        assert asyncio.run(store.load("run")) == [b"0"]
    store.close()
    with pytest.raises(StoreError, match="has been closed"):
        asyncio.run(store.append("run", 1, [b"1"]))


@pytest.mark.parametrize(("given", "number"), [("normal", 1), ("full", 2)])
def test_the_file_is_as_durable_as_was_asked(tmp_path: Path, given: Any, number: int):
    with SQLiteStore(tmp_path / "runs.db", synchronous=given) as store:
        asyncio.run(store.load("run"))
        settings = {
            name: store._use(
                lambda connection, name=name: connection.execute(f"PRAGMA {name}").fetchone()[0], "", wait=True
            )
            for name in ("synchronous", "journal_mode", "application_id", "user_version")
        }
    assert settings == {"synchronous": number, "journal_mode": "wal", "application_id": 0x53757475, "user_version": 3}


def open_files(path: Path) -> list[str]:
    found: list[str] = []
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            found.append(str(link.readlink()))
    return [file for file in found if file.startswith(str(path))]


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")
def test_a_store_that_nobody_holds_closes_its_file(tmp_path: Path):
    path = tmp_path / "runs.db"
    store = SQLiteStore(path)
    asyncio.run(store.append("run", 0, [b"0"]))
    assert open_files(path) != []
    del store
    while open_files(path):  # until the thread that opened it rests
        gc.collect()
    assert list(tmp_path.iterdir()) == [path]  # the log has been worked in


def test_a_store_that_nobody_closes_warns_of_nothing(tmp_path: Path):
    script = """
import warnings
warnings.simplefilter("error")
store = SQLiteStore(path)
asyncio.run(store.append("run", 0, [b"0"]))
"""
    assert run(script, tmp_path / "runs.db") == []
    with SQLiteStore(tmp_path / "runs.db") as store:
        assert asyncio.run(store.load("run")) == [b"0"]


def test_sqlite3_is_imported_by_those_who_use_it():
    script = (
        "import sys, suture.stores; before = 'sqlite3' in sys.modules\n"
        "suture.stores.SQLiteStore('x.db'); print(before, 'sqlite3' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    assert result.stdout == "False True\n"


def test_the_log_is_worked_into_the_file_from_time_to_time(tmp_path: Path):
    path = tmp_path / "runs.db"

    async def write(store: SQLiteStore):
        for number in range(3000):
            await store.append("run", number, [b"x" * 2000])

    with SQLiteStore(path) as store:
        asyncio.run(write(store))
        assert path.stat().st_size > 3_000_000
        assert Path(f"{path}-wal").stat().st_size < 9_000_000
        assert len(asyncio.run(store.load("run"))) == 3000
