"""An `ObjectBackend` on a real S3 server: the contract, clients that write at once, and a server that is killed."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest
from obstore.store import S3Store

from suture.stores import FileBackend, ObjectBackend, PathNotFoundError, StoreError
from suture.testing import BackendContract
from tests.stores.processes import finished, hear, program, tell
from tests.stores.servers import BUCKET, Server, s3_server

# One server for all, where the tests are given out by groups.
pytestmark = pytest.mark.xdist_group("s3")

numbers = count()


@pytest.fixture(scope="module")
def server():
    with s3_server() as server:
        yield server


class TestS3(BackendContract):
    @pytest.fixture(autouse=True)
    def _server(self, server: Server):
        self.server = server

    def make_backend(self) -> FileBackend:
        self.prefix = f"contract-{next(numbers)}"
        return self.client()

    def make_another(self, backend: FileBackend) -> FileBackend:
        return self.client()

    def client(self) -> ObjectBackend:
        return ObjectBackend(S3Store(BUCKET, **self.server.options), prefix=self.prefix)


async def read(backend: ObjectBackend, path: str) -> bytes:
    return b"".join([piece async for piece in backend.read(path)])


def test_a_url_leads_to_the_same_files_as_a_store(server: Server):
    url = ObjectBackend(f"s3://{BUCKET}/url", prefix="deeper", **server.options)
    store = ObjectBackend(S3Store(BUCKET, **server.options), prefix="url/deeper")
    asyncio.run(url.write("/a b/ä", "höher"))
    asyncio.run(store.write("/large", b"x" * 5_000_000))
    assert asyncio.run(store.paths()) == asyncio.run(url.paths()) == ["/a b/ä", "/large"]
    assert asyncio.run(read(url, "/large")) == b"x" * 5_000_000


# Waits for the other, and then writes what nobody else writes.
WRITING = """
import json
from suture.stores import ObjectBackend, PathTakenError

async def chunks(content):
    yield content

async def main():
    backend = ObjectBackend("s3://BUCKET/processes", **json.loads(hear()))
    say("ready")
    name = hear()
    for number in range(12):
        content = name.encode() * (5_000_000 if number % 4 == 0 else 10)
        try:
            if number % 2:
                await backend.write(f"/{number}", content)
            else:
                await backend.write_stream(f"/{number}", chunks(content))
        except PathTakenError:
            continue
        say(number)
asyncio.run(main())
"""


def test_of_clients_that_write_the_same_paths_each_is_written_by_one(server: Server, tmp_path: Path):
    with ExitStack() as stack:
        processes = [stack.enter_context(program(WRITING.replace("BUCKET", BUCKET), tmp_path)) for _ in range(2)]
        for process in processes:
            tell(process, json.dumps(server.options))
            assert hear(process) == "ready"
        for name, process in zip("ab", processes, strict=True):
            tell(process, name)
        said = {name: finished(process) for name, process in zip("ab", processes, strict=True)}
    assert sorted(int(number) for lines in said.values() for number in lines) == list(range(12))
    backend = ObjectBackend(f"s3://{BUCKET}/processes", **server.options)
    for name, won in said.items():
        for number in won:
            size = 5_000_000 if int(number) % 4 == 0 else 10
            assert asyncio.run(read(backend, f"/{number}")) == name.encode() * size


def test_a_server_that_is_killed_in_the_middle_of_a_stream_leaves_nothing_at_the_path():
    with s3_server() as server:
        backend = ObjectBackend(f"s3://{BUCKET}", **server.options)

        async def interrupted() -> AsyncIterator[bytes]:
            yield b"x" * 9_000_000
            assert await backend.paths() == ["/before"]
            server.kill()
            while True:
                yield b"x" * 1_000_000

        asyncio.run(backend.write("/before", b"b" * 5_000_000))
        with pytest.raises(StoreError) as caught:
            asyncio.run(backend.write_stream("/a/b", interrupted()))
        assert "'/a/b' was not written: the store did not answer, or refused it; try again" in str(caught.value)
        assert caught.value.__cause__ is not None
        with pytest.raises(StoreError, match="the store did not answer"):
            asyncio.run(backend.size("/before"))
        assert server.start(), server.log()
        assert asyncio.run(backend.paths()) == ["/before"]
        assert asyncio.run(read(backend, "/before")) == b"b" * 5_000_000
        with pytest.raises(PathNotFoundError):
            asyncio.run(backend.size("/a/b"))
        asyncio.run(backend.write("/a/b", "then it works"))
