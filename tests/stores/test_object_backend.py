"""The objects of an `ObjectBackend`: small files as they are, large ones in parts, nothing left over."""

import asyncio
import http.server
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from obstore.store import LocalStore, MemoryStore

from suture.errors import ConfigError
from suture.stores import ObjectBackend, PathNotFoundError, PathTakenError, StoreError
from suture.stores import objects as object_module
from tests.stores.processes import hear, program
from tests.stores.servers import closed_port

MEBIBYTE = 1 << 20
DAY = 24 * 3600


async def chunks(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def read(backend: ObjectBackend, path: str) -> bytes:
    return b"".join([piece async for piece in backend.read(path)])


def objects(store: Any) -> dict[str, int]:
    """Return all objects of a store, with their sizes."""
    return {meta["path"]: meta["size"] for meta in store.list().collect()}


# --- how a file is kept -----------------------------------------------------------------------


def test_a_small_file_is_an_object_that_others_can_read():
    store = MemoryStore()
    backend = ObjectBackend(store, prefix="/some/where/")
    asyncio.run(backend.write("/run-1/a", "höher"))
    asyncio.run(backend.write_stream("/run-1/b", chunks(b"one ", b"two")))
    assert objects(store) == {"some/where/files/run-1/a": 6, "some/where/files/run-1/b": 7}
    assert bytes(store.get("some/where/files/run-1/a").bytes()) == "höher".encode()


def test_a_large_file_is_in_parts_which_go_with_it():
    store = MemoryStore()
    backend = ObjectBackend(store)
    for path in ("/a", "/b"):
        asyncio.run(backend.write_stream(path, chunks(b"x" * (9 * MEBIBYTE))))
    found = objects(store)
    assert sorted(found.values()) == [86, 86, *[MEBIBYTE] * 2, *[2 * MEBIBYTE] * 8]
    assert sum(key.startswith("parts/") for key in found) == 10
    asyncio.run(backend.delete("/a"))
    assert len(objects(store)) == 6
    assert asyncio.run(backend.expire(0)) == 1
    assert objects(store) == {}


def test_backends_with_other_prefixes_have_other_files():
    store = MemoryStore()
    one, two = ObjectBackend(store, prefix="one"), ObjectBackend(store, prefix="one/two")
    asyncio.run(one.write("/a", "1"))
    asyncio.run(two.write("/a", "2"))
    assert asyncio.run(one.paths()) == asyncio.run(two.paths()) == ["/a"]
    assert asyncio.run(two.expire(0)) == 1
    assert asyncio.run(read(one, "/a")) == b"1"


def test_nothing_that_a_tool_says_is_taken_for_a_pointer():
    store = MemoryStore()
    backend = ObjectBackend(store)
    asyncio.run(backend.write("/secret", b"s" * (5 * MEBIBYTE)))
    pointer = bytes(store.get("files/secret").bytes())
    assert pointer.startswith(b"suture: in parts ")
    for number, content in enumerate([pointer, pointer[:-1], pointer + b"0", pointer[:-1] + b"9", pointer[:17]]):
        asyncio.run(backend.write(f"/written/{number}", content))
        asyncio.run(backend.write_stream(f"/streamed/{number}", chunks(content)))
        for path in (f"/written/{number}", f"/streamed/{number}"):
            assert asyncio.run(read(backend, path)) == content
            assert asyncio.run(backend.size(path)) == len(content)
            asyncio.run(backend.write(path, content))
            with pytest.raises(PathTakenError):
                asyncio.run(backend.write(path, content[:-1] + b"?"))
    assert asyncio.run(backend.expire(0)) == 11
    assert objects(store) == {}


def test_a_stream_that_fails_is_cancelled_or_is_refused_leaves_no_object():
    store = MemoryStore()
    backend = ObjectBackend(store)

    async def failing(size: int) -> AsyncIterator[bytes]:
        yield b"x" * size
        assert len(objects(store)) == size // (2 * MEBIBYTE)
        raise LookupError

    async def waiting(begun: asyncio.Event) -> AsyncIterator[bytes]:
        yield b"x" * (9 * MEBIBYTE)
        begun.set()
        await asyncio.Event().wait()

    async def overtaken() -> AsyncIterator[bytes]:
        yield b"x" * (9 * MEBIBYTE)
        await backend.write("/taken", "sooner")

    async def cancel():
        begun = asyncio.Event()
        task = asyncio.ensure_future(backend.write_stream("/a", waiting(begun)))
        await begun.wait()
        assert len(objects(store)) == 4
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    for size in (10, 9 * MEBIBYTE):
        with pytest.raises(LookupError):
            asyncio.run(backend.write_stream("/a", failing(size)))
        assert objects(store) == {}
    asyncio.run(cancel())
    assert objects(store) == {}
    with pytest.raises(PathTakenError):
        asyncio.run(backend.write_stream("/taken", overtaken()))
    assert objects(store) == {"files/taken": 6}


def test_a_file_whose_parts_are_gone_is_not_found_and_not_read_in_part():
    store = MemoryStore()
    backend = ObjectBackend(store)
    asyncio.run(backend.write("/a", b"x" * (9 * MEBIBYTE)))
    store.delete(max(key for key in objects(store) if key.startswith("parts/")))
    with pytest.raises(PathNotFoundError):
        asyncio.run(read(backend, "/a"))


# --- expiry -----------------------------------------------------------------------------------

STREAMING = """
from suture.stores import ObjectBackend

async def endless():
    while True:
        yield b"x" * 5_000_000
        say("given")

asyncio.run(ObjectBackend(f"file://{path}").write_stream("/killed", endless()))
"""


def age(directory: Path, seconds: float) -> None:
    for path in directory.rglob("*"):
        if path.is_file():
            os.utime(path, (0, time.time() - seconds))


def test_what_a_killed_process_leaves_is_not_seen_and_expires_after_a_day(tmp_path: Path):
    store = LocalStore(tmp_path)
    backend = ObjectBackend(store)
    asyncio.run(backend.write("/kept", b"k" * (9 * MEBIBYTE)))
    with program(STREAMING, tmp_path) as process:
        for _ in range(3):
            assert hear(process) == "given"
        process.kill()
        process.wait()
    assert asyncio.run(backend.paths()) == ["/kept"]
    left = len(objects(store)) - 6
    assert left >= 2
    age(tmp_path / "parts", DAY - 60)
    assert asyncio.run(backend.expire(3600)) == 0
    assert len(objects(store)) == 6 + left
    age(tmp_path / "parts", DAY + 60)
    assert asyncio.run(backend.expire(3600)) == 0
    assert len(objects(store)) == 6  # its file is younger than its parts, and keeps them
    assert asyncio.run(read(backend, "/kept")) == b"k" * (9 * MEBIBYTE)
    age(tmp_path / "files", 7200)
    assert asyncio.run(backend.expire(3600)) == 1
    assert objects(store) == {}


def test_parts_of_a_path_that_was_written_again_expire_alone(tmp_path: Path):
    store = LocalStore(tmp_path)
    backend = ObjectBackend(store)
    asyncio.run(backend.write("/a", b"1" * (5 * MEBIBYTE)))
    store.delete("files/a")
    age(tmp_path, 2 * DAY)
    asyncio.run(backend.write("/a", b"2" * (5 * MEBIBYTE)))
    assert len(objects(store)) == 7
    assert asyncio.run(backend.expire(DAY)) == 0
    assert len(objects(store)) == 4
    assert asyncio.run(read(backend, "/a")) == b"2" * (5 * MEBIBYTE)


def test_a_stream_that_paused_for_so_long_that_it_may_be_expired_is_refused(monkeypatch: pytest.MonkeyPatch):
    now = 0.0
    monkeypatch.setattr(object_module, "time", SimpleNamespace(monotonic=lambda: now))
    store = MemoryStore()

    async def pausing(pause: float) -> AsyncIterator[bytes]:
        nonlocal now
        for _ in range(3):
            yield b"x" * (5 * MEBIBYTE)
            now += pause

    backend = ObjectBackend(store)
    assert asyncio.run(backend.write_stream("/a", pausing(DAY / 2))) == 15 * MEBIBYTE
    with pytest.raises(StoreError, match="'/b' was not written: it paused for so long that it may be expired"):
        asyncio.run(backend.write_stream("/b", pausing(DAY / 2 + 1)))
    assert asyncio.run(backend.paths()) == ["/a"]
    assert len(objects(store)) == 9


# --- faults -----------------------------------------------------------------------------------


@contextmanager
def answering(status: int) -> Iterator[str]:
    """Run a server that answers everything with this status, or never if it is 0; yield its address."""
    gone = threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            if not status:
                gone.wait()
            self.send_response(status or 500)
            self.send_header("content-length", "0")
            self.end_headers()

        do_DELETE = do_GET = do_HEAD = do_POST = do_PUT = answer  # noqa: N815 - what the server calls

        def log_message(self, *_: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        gone.set()
        server.shutdown()
        thread.join()
        server.server_close()


def failures(endpoint: str, **options: Any) -> set[str]:
    """Return why nothing works, without the details in parentheses; no key may be in what is said."""
    keys = {"access_key_id": "KEYID", "secret_access_key": "SECRET", "session_token": "TOKEN"}
    client = {"allow_http": True, **options.pop("client_options", {})}
    backend = ObjectBackend(
        "s3://bucket", endpoint=endpoint, region="us-east-1", client_options=client, **keys, **options
    )
    calls = {
        "'/a' was not written": lambda: backend.write("/a", "x"),
        "'/b' was not written": lambda: backend.write_stream("/b", chunks(b"x" * (9 * MEBIBYTE))),
        "'/c' was not read": lambda: backend.size("/c"),
        "'/d' was not listed": lambda: backend.paths("/d"),
        "what is in it was not expired": lambda: backend.expire(0),
    }
    reasons = set[str]()
    for what, call in calls.items():
        with pytest.raises(StoreError) as caught:
            asyncio.run(call())
        said = f"{caught.value} {caught.value.__cause__!r}"
        assert caught.value.__cause__ is not None
        assert not any(key in said for key in keys.values())
        where, reason = str(caught.value).split(f": {what}: ")
        assert where == 'S3Store(bucket="bucket")'
        reasons.add(reason.partition(" (")[0])
    return reasons


def test_credentials_that_are_not_accepted_are_named():
    for status in (401, 403):
        with answering(status) as endpoint:
            assert failures(endpoint) == {
                "the store does not accept the credentials, or not for this; check them and their rights"
            }


def test_a_server_that_is_down_or_broken_or_does_not_answer_is_named():
    down = "the store did not answer, or refused it; try again"
    once = {"retry_config": {"max_retries": 0}}
    with closed_port() as port:
        assert failures(f"http://127.0.0.1:{port}", **once) == {down}
    with answering(501) as endpoint:
        assert failures(endpoint, **once) == {down}
    with answering(0) as endpoint:
        assert failures(endpoint, client_options={"timeout": "50ms"}, **once) == {down}


def test_a_bucket_that_is_not_there_is_named():
    with answering(404) as endpoint:
        options: dict[str, Any] = {"region": "us-east-1", "client_options": {"allow_http": True}}
        backend = ObjectBackend("s3://bucket", endpoint=endpoint, skip_signature=True, **options)
        with pytest.raises(StoreError, match="'/a' was not written: there is no such bucket or container"):
            asyncio.run(backend.write("/a", "x"))
        with pytest.raises(PathNotFoundError):
            asyncio.run(backend.size("/a"))


# --- options ----------------------------------------------------------------------------------


def test_without_obstore_it_is_said_what_to_install():
    script = """
import sys
import suture.stores
print("obstore" in sys.modules)
sys.modules["obstore"] = None  # as if it were not installed
try:
    suture.stores.ObjectBackend("s3://bucket")
except suture.stores.StoreError:
    raise
except Exception as error:
    print(type(error).__name__, error)
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    loaded, told = ended.stdout.splitlines()
    assert loaded == "False"
    assert re.match(r"ConfigError this needs obstore>=\S+ \(extra object-stores\), and obstore\S* is not inst", told)


@pytest.mark.parametrize(
    ("given", "options", "said"),
    [
        ("nowhere", {}, "nowhere with retry_config leads to no store"),
        ("ftp://host/a?password=SECRET", {}, "ftp://host/a with retry_config leads to no store"),
        ("s3://bucket", {"colour": "SECRET"}, "s3://bucket with retry_config, colour leads to no store"),
        ("memory:///", {"region": "SECRET"}, "memory:/// with region leads to no store"),
        (MemoryStore(), {"region": "SECRET"}, "region: options go with a URL; a store has its own"),
        (Path("/tmp"), {}, "an ObjectBackend takes a store of obstore or a URL, not PosixPath"),
        (None, {}, "an ObjectBackend takes a store of obstore or a URL, not NoneType"),
    ],
    ids=["no URL", "another scheme", "an unknown option", "no option", "an option beside a store", "a path", "nothing"],
)
def test_what_leads_to_no_store_is_refused(given: Any, options: dict[str, Any], said: str):
    with pytest.raises(ConfigError) as caught:
        ObjectBackend(given, **options)
    assert str(caught.value).startswith(said)
    assert "SECRET" not in str(caught.value)


def test_a_prefix_is_a_path():
    with pytest.raises(StoreError, match=r"a segment is '\.\.'"):
        ObjectBackend(MemoryStore(), prefix="../other")


def test_it_shows_its_store(tmp_path: Path):
    assert repr(ObjectBackend(LocalStore(tmp_path))) == f'ObjectBackend(LocalStore("{tmp_path}"))'
