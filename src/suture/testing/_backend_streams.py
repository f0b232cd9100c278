"""`StreamContract`: the part of `BackendContract` that is about streams."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager

from suture.errors import ConfigError
from suture.stores import FileBackend, PathNotFoundError, PathTakenError, StoreError
from suture.testing._checks import anything, refused, same

__all__ = ["MEBIBYTE", "Source", "StreamContract", "read_all", "sample"]

MEBIBYTE = 1 << 20


class StreamContract(ABC):
    """The tests of `write_stream` and `read`."""

    @abstractmethod
    def make_backend(self) -> FileBackend:
        """Return a new, empty backend."""

    def test_a_stream_comes_back_as_one_file(self) -> None:
        """However it was cut: empty and tiny pieces, large ones, and sizes at which a backend may cut itself."""

        async def use(backend: FileBackend) -> None:
            content = sample(9 * MEBIBYTE + 7)
            cuts = {
                "nothing": [],
                "nothing twice": [b"", b""],
                "tiny": [bytes([number % 251]) for number in range(3000)],
                "some": [b"one ", b"", b"two"],
                "a block": [content[:MEBIBYTE]],
                "four blocks": [content[: 4 * MEBIBYTE]],
                "eight blocks": [content[: 4 * MEBIBYTE], content[4 * MEBIBYTE : 8 * MEBIBYTE]],
                "one large piece": [content],
                "odd pieces": [content[at : at + 700_001] for at in range(0, len(content), 700_001)],
            }
            for path, pieces in cuts.items():
                whole = b"".join(pieces)
                same(await backend.write_stream(path, Source(pieces)), len(whole))
                same(await backend.size(path), len(whole))
                same(await read_all(backend, path), whole)

        asyncio.run(use(self.make_backend()))

    def test_a_file_is_read_in_pieces_of_a_mebibyte_at_most(self) -> None:
        """And none of them is empty."""

        async def use(backend: FileBackend) -> None:
            await backend.write("large", sample(5 * MEBIBYTE))
            await backend.write("empty", b"")
            async with closing(backend.read("large")) as pieces:
                async for piece in pieces:
                    same((type(piece), len(piece) in range(1, MEBIBYTE + 1)), (bytes, True))
            async with closing(backend.read("empty")) as pieces:
                async for piece in pieces:
                    raise AssertionError(f"an empty file has no piece such as {piece!r}")

        asyncio.run(use(self.make_backend()))

    def test_a_range_of_bytes_is_what_a_slice_would_be(self) -> None:
        """Also where it crosses a mebibyte, is empty, or goes beyond the end."""

        async def use(backend: FileBackend) -> None:
            content = sample(6 * MEBIBYTE)
            await backend.write("large", content)
            edges = [0, 1, 262_144, MEBIBYTE - 1, MEBIBYTE, 4 * MEBIBYTE, 4 * MEBIBYTE + 1, len(content) - 1]
            edges += [len(content), len(content) + 1]
            for start in edges:
                same(await read_all(backend, "large", start), content[start:])
                for stop in (start - 1, start, start + 1, start + MEBIBYTE + 1):
                    if stop >= 0:
                        same(await read_all(backend, "large", start, stop), content[start:stop])

        asyncio.run(use(self.make_backend()))

    def test_nobody_sees_a_file_before_it_is_whole(self) -> None:
        """It is not listed, has no size and cannot be read while its stream goes on."""

        async def use(backend: FileBackend) -> None:
            content = sample(9 * MEBIBYTE)

            async def pieces() -> AsyncGenerator[bytes, None]:
                for at in range(0, len(content), 3 * MEBIBYTE):
                    yield content[at : at + 3 * MEBIBYTE]
                    same(await backend.paths(), [])
                    await refused(backend.size("a/b"), PathNotFoundError)
                    await refused(read_all(backend, "a/b"), PathNotFoundError)

            await backend.write_stream("a/b", pieces())
            same(await backend.paths(), ["/a/b"])
            same(await read_all(backend, "a/b"), content)

        asyncio.run(use(self.make_backend()))

    def test_a_stream_that_fails_leaves_nothing(self) -> None:
        """Its error comes out as it is, and the path is free."""

        async def use(backend: FileBackend) -> None:
            for count in (0, 1, 3):
                source = Source([sample(3 * MEBIBYTE)] * count, error=LookupError("the source failed"))
                error = await refused(backend.write_stream("a/b", source), LookupError)
                same((error is source.error, source.closed), (True, 1))
                same(await backend.paths(), [])
                await refused(backend.size("a/b"), PathNotFoundError)
            await backend.write("a/b", "then it works")

        asyncio.run(use(self.make_backend()))

    def test_a_stream_that_is_cancelled_while_it_waits_leaves_nothing(self) -> None:
        """The source is closed, and the path is free."""

        async def use(backend: FileBackend) -> None:
            for count in (0, 1, 3):
                source = Source([sample(3 * MEBIBYTE)] * count, waits=True)
                task = asyncio.ensure_future(backend.write_stream("a/b", source))
                await source.waiting.wait()
                task.cancel()
                await asyncio.wait([task])
                same((task.cancelled(), source.closed), (True, 1))
                same(await backend.paths(), [])
                await refused(backend.size("a/b"), PathNotFoundError)
            await backend.write("a/b", "then it works")

        asyncio.run(use(self.make_backend()))

    def test_a_stream_that_never_waits_can_be_cancelled(self) -> None:
        """A source that has always more at hand does not keep the cancellation out."""

        async def use(backend: FileBackend) -> None:
            source = Source([sample(MEBIBYTE)] * 100)
            task = asyncio.ensure_future(backend.write_stream("a/b", source))
            await source.begun.wait()
            task.cancel()
            await asyncio.wait([task])
            same((task.cancelled(), source.given < 100, source.closed), (True, True, 1))
            same(await backend.paths(), [])

        asyncio.run(use(self.make_backend()))

    def test_a_stream_to_a_path_that_is_taken_is_refused(self) -> None:
        """Whatever it brings. The source is closed, the old file is as it was."""

        async def use(backend: FileBackend) -> None:
            await backend.write("/a", "old")
            for pieces in ([b"old"], [b"new"], [], [sample(9 * MEBIBYTE)]):
                source = Source(pieces)
                error = await refused(backend.write_stream("/a", source), PathTakenError)
                same((error.path, source.closed), ("/a", 1))
            same(await read_all(backend, "/a"), b"old")
            same(await backend.paths(), ["/a"])

        asyncio.run(use(self.make_backend()))

    def test_a_path_that_is_taken_while_a_stream_goes_on_stays_as_it_is(self) -> None:
        """The stream is refused in the end."""

        async def use(backend: FileBackend) -> None:
            for path, size in (("small", 10), ("large", 9 * MEBIBYTE)):

                async def pieces(path: str, size: int) -> AsyncGenerator[bytes, None]:
                    yield sample(size)
                    await backend.write(path, "sooner")

                await refused(backend.write_stream(path, pieces(path, size)), PathTakenError)
                same(await read_all(backend, path), b"sooner")
            same(await backend.paths(), ["/large", "/small"])

        asyncio.run(use(self.make_backend()))

    def test_what_is_read_is_one_file_even_if_it_is_replaced_meanwhile(self) -> None:
        """The rest of the old one comes, or an error; never something of the new one."""

        async def use(backend: FileBackend, path: str, size: int) -> None:
            old, new = sample(size), bytes(size)
            await backend.write(path, old)
            read = b""
            async with closing(backend.read(path)) as pieces:
                try:
                    async for piece in pieces:
                        if not read:
                            await backend.delete(path)
                            await backend.write(path, new)
                        read += piece
                except StoreError:
                    same(read, old[: len(read)])
                else:
                    same(read, old)
            same(await read_all(backend, path), new)

        backend = self.make_backend()
        asyncio.run(use(backend, "/small", 3 * MEBIBYTE // 2))
        asyncio.run(use(backend, "/large", 9 * MEBIBYTE))

    def test_a_stream_of_anything_but_bytes_is_refused(self) -> None:
        """It is the caller's fault, and nothing is left."""

        async def use(backend: FileBackend) -> None:
            for pieces in (["text"], [b"bytes", bytearray(b"more")], [sample(5 * MEBIBYTE), None]):
                source = Source(anything(pieces))
                await refused(backend.write_stream("a", source), ConfigError)
                same(source.closed, 1)
            await refused(backend.write_stream("a", anything([b"a list"])), ConfigError)
            same(await backend.paths(), [])

        asyncio.run(use(self.make_backend()))


class Source:
    """A stream that knows how much was taken from it, and how often it was closed."""

    def __init__(self, pieces: Sequence[bytes], *, error: Exception | None = None, waits: bool = False) -> None:
        self._pieces = pieces
        self._waits = waits
        self.error = error
        self.begun = asyncio.Event()
        self.waiting = asyncio.Event()
        self.given = 0
        self.closed = 0

    def __aiter__(self) -> "Source":
        return self

    async def __anext__(self) -> bytes:
        """Return the next piece; then raise, wait for ever, or end."""
        if self.given < len(self._pieces):
            self.given += 1
            if self.given == 3:
                self.begun.set()
            return self._pieces[self.given - 1]
        if self.error is not None:
            raise self.error
        if self._waits:
            self.waiting.set()
            await asyncio.Event().wait()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Count."""
        self.closed += 1


def sample(size: int) -> bytes:
    """Return so many bytes, in which no two pieces are alike where somebody might cut."""
    return (bytes(range(251)) * (size // 251 + 1))[:size]


@asynccontextmanager
async def closing(stream: AsyncIterator[bytes]) -> AsyncGenerator[AsyncIterator[bytes], None]:
    """Close a stream that can be closed."""
    try:
        yield stream
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()


async def read_all(backend: FileBackend, path: str, start: int = 0, stop: int | None = None) -> bytes:
    """Return all that a backend reads."""
    read = bytearray()
    async with closing(backend.read(path, start, stop)) as pieces:
        async for piece in pieces:
            read += piece
    return bytes(read)
