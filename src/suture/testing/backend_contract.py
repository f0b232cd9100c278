"""`BackendContract`: what every backend must do, as tests that any test runner can find."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from itertools import product
from random import Random
from types import NoneType
from typing import Any

from suture._aio import closing
from suture.errors import ConfigError
from suture.stores import FileBackend, MemoryBackend, PathNotFoundError, PathTakenError, StoreError, encode_text
from suture.testing.checks import Step, cancel_after, refused, run_with, same, walk

MEBIBYTE = 1 << 20
WALKS, STEPS = 8, 25
PATHS = ("/a/b", "/a/c/d", "/a/c!", "/a/c0", "/a.b/c", "/ab", "/é")
"""None is a directory of another, which a file system could not store."""
NEAR = ("/a", "/a/c", "/a/b/c", "/a/b/c/d", "/A0", "/never/a")
SIZES = (0, 1, 86, 5000, 262_144, MEBIBYTE, 2 * MEBIBYTE, 4 * MEBIBYTE, 9 * MEBIBYTE + 7)

with_backend = run_with("make_backend")

NONSENSE: Sequence[tuple[Any, ...]] = (
    ("write", ("/a", 7), ("/a", None), ("/a", bytearray(b"x"))),
    ("write_stream", ("/a", [b"a list"])),
    ("read", ("/a", -1), ("/a", 0, -1), ("/a", "0"), ("/a", 0, 1.5)),
    ("expire", (-1,), (float("nan"),)),
)
"""Methods, and arguments that they refuse."""
ODD_PATHS = (
    *("/ä b", "/日本/😀", "/'; DROP TABLE files; --", "/%/_/%2e%2e/%2F", "/...", "/.hidden/..x", "/-rf", "/~/$HOME"),
    *("/a:b|c?d*e<f>\"g'", "/#/&/+/=", "/e\u0301/é", "/ x / y ", "/[a]/{b}/^`!@,;", "/\u200b\u2028\ufeff", "/CON/nul"),
)

NO_PATHS: Mapping[str, Sequence[Any]] = {
    "empty": ["", "/"],
    "a segment is empty": ["//a", "a//b", "a/", "/a/"],
    "a segment is '.'": [".", "/./a", "a/."],
    "a segment is '..'": ["..", "/../a", "a/../b", "a/.."],
    "a control character": ["a\0b", "a\nb", "\x1b[2J", "a/\x7f", "a\x85b"],
    "a backslash": ["a\\b", "..\\a"],
    "201 bytes": ["x" * 201, "a/" + "é" * 100 + "x"],
    "1001 characters": ["a/" * 500 + "b"],
    "a lone surrogate": ["a\ud800b", "\udcff"],
    "it is int, not str": [7],
    "it is bytes, not str": [b"a"],
    "it is NoneType, not str": [None],
}


class BackendContract(ABC):
    """The tests of a backend. Inherit, define `make_backend`, and let pytest or unittest find the tests.

    `make_backend` returns a new, empty backend each time it is called. `make_another` returns a second one with the
    same files; without it the tests of two writers use one backend.

    >>> from suture.stores import MemoryBackend
    >>> from suture.testing import BackendContract
    >>> class TestMemoryBackend(BackendContract):
    ...     def make_backend(self):
    ...         return MemoryBackend()
    >>> TestMemoryBackend().test_text_is_kept_as_utf_8()
    """

    @abstractmethod
    def make_backend(self) -> FileBackend:
        """Return a new, empty backend."""

    def make_another(self, backend: FileBackend) -> FileBackend:
        """Return another backend with the same files."""
        return backend

    @with_backend
    async def test_it_does_what_a_memory_backend_does(self, backend: FileBackend) -> None:
        """Random writes, streams, reads, deletions, listings and expiries give the same, even through two backends."""
        another = self.make_another(backend)
        for number in range(WALKS):
            await walk((backend, another), MemoryBackend(), _choose_steps(Random(number)))  # noqa: S311 - no secret

    @with_backend
    async def test_text_is_kept_as_utf_8(self, backend: FileBackend) -> None:
        """NUL and lone surrogates are kept, too, and different texts are different files."""
        texts = ["", "höher", "\0", "日本", "😀", "\ud83d\ude00", "\ud800", "a\udfffb", "\ufeffx", "\r\n"]
        for number, text in enumerate(texts):
            await backend.write(f"/{number}", text)
            same(await read_all(backend, f"/{number}"), text.encode("utf-8", "surrogatepass"))
        same(len({encode_text(text) for text in texts}), len(texts))

    @with_backend
    async def test_any_other_text_is_a_path(self, backend: FileBackend) -> None:
        """Whatever it means to a shell, a database, a URL or another system; up to 1,000 characters, 200 a segment."""
        long = ["/" + "/".join("abcde"[at] * 199 for at in range(5)) + "f", "/" + "é" * 100 + "/x"]
        for path in (*ODD_PATHS, *long):
            await backend.write(path, path)
            same(await read_all(backend, path), path.encode())
        same(await backend.paths(), sorted([*ODD_PATHS, *long]))

    @with_backend
    async def test_what_cannot_be_a_path_is_refused(self, backend: FileBackend) -> None:
        """Every method names the path and the reason, in a short printable text, and nothing happens."""
        for reason, path in [(reason, path) for reason, paths in NO_PATHS.items() for path in paths]:
            source = Source([b"x"])
            calls: list[Any] = [("write", "x"), ("write_stream", source), ("size",), ("delete",), ("read",), ("paths",)]
            for method, *rest in calls[: -1 if "empty" in reason else None]:  # as a prefix it is everything
                call = getattr(backend, method)(path, *rest)
                error = await refused(anext(call) if method == "read" else call, StoreError)
                text = str(error)
                same((error.__class__, reason in text), (StoreError, True))
                same((text.isprintable(), len(text) < 300), (True, True))
            same((source.given, source.closed), (0, 1))
        same(await backend.paths(), [])

    @with_backend
    async def test_a_file_above_another_is_one_or_is_refused(self, backend: FileBackend) -> None:
        """A file system cannot have a file and a directory of one name; others can."""
        for first, second in (("/a", "/a/b/c"), ("/d/e", "/d")):
            await backend.write(first, "first")
            for content in (b"second", sample(9 * MEBIBYTE)):
                try:
                    await backend.write(second, content)
                except PathTakenError as error:
                    same(error.path, second)
                    await refused(backend.write_stream(second, Source([content])), PathTakenError)
                    await refused(backend.size(second), PathNotFoundError)
                else:
                    same(await read_all(backend, second), content)
                    await backend.delete(second)
            same(await read_all(backend, first), b"first")

    @with_backend
    async def test_letters_of_another_case_are_another_file_or_are_refused(self, backend: FileBackend) -> None:
        """Some file systems cannot tell them apart; then nothing is overwritten."""
        await backend.write("/Case", "upper")
        try:
            await backend.write("/case", "lower")
        except PathTakenError:
            same(await backend.paths(), ["/Case"])
        else:
            same(await read_all(backend, "/case"), b"lower")
        same(await read_all(backend, "/Case"), b"upper")

    @with_backend
    async def test_of_writers_of_one_path_one_wins(self, backend: FileBackend) -> None:
        """Even if they use two backends. The others get an error, and nothing of theirs is stored."""
        another = self.make_another(backend)
        for path, size in (("/small", 10), ("/large", 5 * MEBIBYTE)):
            contents = [bytes([number]) * size for number in range(6)]
            writers: list[Coroutine[Any, Any, Any]] = [
                backend.write(path, contents[0]),
                another.write(path, contents[1]),
                backend.write(path, contents[2]),
                another.write_stream(path, Source([contents[3]])),
                backend.write_stream(path, Source([contents[4]])),
                another.write_stream(path, Source([contents[5]])),
            ]
            results = await asyncio.gather(*writers, return_exceptions=True)
            same([result for result in results if type(result) not in (NoneType, int, PathTakenError)], [])
            outcomes = zip(contents, results, strict=True)
            won = [content for content, result in outcomes if type(result) is not PathTakenError]
            same([await read_all(another, path)], won)
        same(await backend.paths(), ["/large", "/small"])

    @with_backend
    async def test_tasks_may_write_the_same_at_once(self, backend: FileBackend) -> None:
        """That counts as one write that was tried again."""
        another = self.make_another(backend)
        for path, content in (("/small", b"x"), ("/large", sample(5 * MEBIBYTE))):
            await asyncio.gather(*(one.write(path, content) for one in (backend, another)))
            same(await read_all(backend, path), content)

    def test_threads_with_event_loops_of_their_own_share_a_backend(self) -> None:
        """Each file is as its writer wrote it."""
        backend = self.make_backend()

        def write(number: int) -> bytes:
            asyncio.run(backend.write(f"/{number}/a", f"{number}" * 100))
            asyncio.run(backend.write_stream(f"/{number}/b", Source([f"{number}".encode()] * 100)))
            return asyncio.run(read_all(backend, f"/{number}/a")) + asyncio.run(read_all(backend, f"/{number}/b"))

        with ThreadPoolExecutor(4) as threads:
            same([*threads.map(write, range(8))], [f"{number}".encode() * 200 for number in range(8)])

    @with_backend
    async def test_a_cancelled_write_is_whole_or_raises(self, backend: FileBackend) -> None:
        """If it raises, nothing is stored; it may be tried again in any case."""
        for turns in range(8):
            path, content = f"/{turns}", sample(2 * MEBIBYTE)
            returned = await cancel_after(turns, backend.write(path, content))
            same(await backend.paths(path), [path] if returned else [])
            await backend.write(path, content)
            same(await read_all(backend, path), content)

    @with_backend
    async def test_what_makes_no_sense_is_refused(self, backend: FileBackend) -> None:
        """A wrong argument is a `ConfigError`; a stream of anything but bytes leaves nothing."""
        wrong: list[Any] = [["text"], [b"bytes", bytearray(b"more")], [sample(5 * MEBIBYTE), None]]
        for source in map(Source, wrong):
            await refused(backend.write_stream("a", source), ConfigError)
            same(source.closed, 1)
        for method, *calls in NONSENSE:
            for arguments in calls:
                call = getattr(backend, method)(*arguments)
                await refused(anext(call) if method == "read" else call, ConfigError)
        same(await backend.paths(), [])

    @with_backend
    async def test_nobody_sees_a_file_before_it_is_whole(self, backend: FileBackend) -> None:
        """It is not listed, has no size and cannot be read while its stream goes on."""
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

    @with_backend
    async def test_a_stream_that_fails_or_is_cancelled_leaves_nothing(self, backend: FileBackend) -> None:
        """The error comes out as it is, the source is closed, and the path is free."""
        for count, error in product((0, 1, 3), (LookupError("the source failed"), None)):
            source = Source([sample(3 * MEBIBYTE)] * count, error=error, waits=True)
            task = asyncio.ensure_future(backend.write_stream("a/b", source))
            if error is None:
                await source.waiting.wait()
                task.cancel()
            await asyncio.wait([task])
            same((task.cancelled() or task.exception(), source.closed), (error or True, 1))
            same(await backend.paths(), [])
            await refused(backend.size("a/b"), PathNotFoundError)
        await backend.write("a/b", "then it works")

    @with_backend
    async def test_a_stream_that_never_waits_can_be_cancelled(self, backend: FileBackend) -> None:
        """A source that never runs dry does not block the cancellation."""
        source = Source([sample(MEBIBYTE)] * 100)
        task = asyncio.ensure_future(backend.write_stream("a/b", source))
        await source.begun.wait()
        task.cancel()
        await asyncio.wait([task])
        same((task.cancelled(), source.given < 100, source.closed), (True, True, 1))
        same(await backend.paths(), [])

    @with_backend
    async def test_a_path_that_is_taken_while_a_stream_goes_on_stays_as_it_is(self, backend: FileBackend) -> None:
        """The stream is refused in the end, and a later one at once; its source is closed."""
        for path, size in (("small", 10), ("large", 9 * MEBIBYTE)):

            async def pieces(path: str, size: int) -> AsyncGenerator[bytes, None]:
                yield sample(size)
                await backend.write(path, "sooner")

            await refused(backend.write_stream(path, pieces(path, size)), PathTakenError)
            source = Source([b"later"])
            await refused(backend.write_stream(path, source), PathTakenError)
            same((await read_all(backend, path), source.closed), (b"sooner", 1))
        same(await backend.paths(), ["/large", "/small"])

    @with_backend
    async def test_what_is_read_is_one_file_even_if_it_is_replaced_meanwhile(self, backend: FileBackend) -> None:
        """The rest of the old file comes, or an error; never bytes of the new one."""
        for path, size in (("/small", 3 * MEBIBYTE // 2), ("/large", 9 * MEBIBYTE)):
            old, new, read = sample(size), bytes(size), b""
            await backend.write(path, old)
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


async def _choose_steps(chance: Random) -> AsyncIterator[Step]:
    """Yield random steps; at the end everything is read, and expires."""
    for _ in range(STEPS):
        path, size = chance.choice(PATHS)[chance.randint(0, 1) :], chance.choice(SIZES)
        content = sample(size + 1)[chance.choice((0, 0, 1)) :][:size]
        step = chance.choice((size // 2000, 700_001, MEBIBYTE, size)) or 1
        pieces = [b"", *[content[at : at + step] for at in range(0, size, step)]]
        start = max(0, chance.choice(SIZES) + chance.randint(-1, 1))
        stop = chance.choice((None, start, start + 1, start + MEBIBYTE + 1))
        asked = chance.choice((path, path, chance.choice(NEAR)))
        yield chance.choice(
            (
                *[Step("write", (path, content))] * 3,
                *[Step("write_stream", (path, partial(Source, pieces)))] * 2,
                *[Step("read", (asked, start, stop))] * 3,
                Step("delete", (asked,)),
                Step("expire", (3600,)),
            )
        )
        yield chance.choice(
            (Step("size", (asked,)), Step("paths", (asked,)), Step("paths", (chance.choice(("", "/a/")),)))
        )
    for path in PATHS:
        yield Step("read", (path,))
    yield Step("expire", (0,))
    yield Step("paths")


class Source:
    """A stream that counts how many pieces were taken, and how often it was closed."""

    def __init__(self, pieces: Sequence[bytes], *, error: Exception | None = None, waits: bool = False) -> None:
        self._pieces, self._waits, self.error = pieces, waits, error
        self.begun, self.waiting = asyncio.Event(), asyncio.Event()
        self.given = self.closed = 0

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
        """Count the call."""
        self.closed += 1


@cache
def sample(size: int) -> bytes:
    """Return `size` bytes that differ between blocks, so that exchanged blocks are noticed."""
    return (bytes(range(251)) * (size // 251 + 1))[:size]


async def read_all(backend: FileBackend, path: str, start: int = 0, stop: int | None = None) -> bytes:
    """Return the bytes that a backend reads, in one piece."""
    read = bytearray()
    async with closing(backend.read(path, start, stop)) as pieces:
        async for piece in pieces:
            read += piece
    return bytes(read)
