"""`BackendContract`: what every backend must do, as tests that any test runner can find."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from types import NoneType
from typing import Any

from suture.errors import ConfigError
from suture.stores import FileBackend, PathNotFoundError, PathTakenError, StoreError, encode_text
from suture.testing._backend_streams import MEBIBYTE, Source, StreamContract, read_all, sample
from suture.testing._checks import anything, refused, same

__all__ = ["BackendContract"]

ODD_PATHS = (
    *("/ä b", "/日本/😀", "/'; DROP TABLE files; --", "/%/_/%2e%2e/%2F", "/...", "/.hidden/..x", "/-rf", "/~/$HOME"),
    *("/a:b|c?d*e<f>\"g'", "/#/&/+/=", "/e\u0301/é", "/ x / y ", "/[a]/{b}/^`!@,;", "/\u200b\u2028\ufeff", "/CON/nul"),
)

NO_PATHS = {
    "empty": ["", "/"],
    "a segment is empty": ["//a", "a//b", "a/", "/a/"],
    "a segment is '.'": [".", "/./a", "a/."],
    "a segment is '..'": ["..", "/../a", "a/../b", "a/.."],
    "a control character": ["a\0b", "a\nb", "\x1b[2J", "a/\x7f", "a\x85b"],
    "a backslash": ["a\\b", "..\\a"],
    "201 bytes": ["x" * 201, "a/" + "é" * 100 + "x"],
    "1001 characters": ["a/" * 500 + "b"],
    "a lone surrogate": ["a\ud800b", "\udcff"],
    "it is int, not str": [anything(7)],
    "it is bytes, not str": [anything(b"a")],
    "it is NoneType, not str": [anything(None)],
}


class BackendContract(StreamContract):
    """The tests of a backend. Inherit, say how a backend is made, and let pytest or unittest find the tests.

    `make_backend` gives a new, empty backend each time it is called. `make_another` gives a second one that has the
    same files; without it the tests of two writers use one backend.

    >>> from suture.stores import MemoryBackend
    >>> from suture.testing import BackendContract
    >>> class TestMemoryBackend(BackendContract):
    ...     def make_backend(self):
    ...         return MemoryBackend()
    >>> TestMemoryBackend().test_what_was_written_comes_back()
    """

    def make_another(self, backend: FileBackend) -> FileBackend:
        """Return another backend with the same files."""
        return backend

    def test_it_is_a_file_backend(self) -> None:
        """It has all methods."""
        backend = self.make_backend()
        same((backend, isinstance(anything(backend), FileBackend)), (backend, True))

    def test_what_was_written_comes_back(self) -> None:
        """Byte for byte: empty, all byte values, small, large, and what a backend may use itself."""

        async def use(backend: FileBackend) -> None:
            contents = [b"", b"\0", bytes(range(256)), b"\r\n", b"x" * 86, sample(3 * MEBIBYTE + 1)]
            contents += [sample(4 * MEBIBYTE), sample(9 * MEBIBYTE)]
            for number, content in enumerate(contents):
                await backend.write(f"/run/{number}", content)
            for number, content in enumerate(contents):
                same(await read_all(backend, f"/run/{number}"), content)
                same(await backend.size(f"/run/{number}"), len(content))

        asyncio.run(use(self.make_backend()))

    def test_text_is_kept_as_utf_8(self) -> None:
        """NUL and lone surrogates are kept, too, and different texts are different files."""

        async def use(backend: FileBackend) -> None:
            texts = ["", "höher", "\0", "日本", "😀", "\ud83d\ude00", "\ud800", "a\udfffb", "\ufeffx", "\r\n"]
            for number, text in enumerate(texts):
                await backend.write(f"/{number}", text)
                same(await read_all(backend, f"/{number}"), text.encode("utf-8", "surrogatepass"))
            same(len({encode_text(text) for text in texts}), len(texts))

        asyncio.run(use(self.make_backend()))

    def test_a_leading_slash_means_nothing(self) -> None:
        """With and without it is one file."""

        async def use(backend: FileBackend) -> None:
            await backend.write("/a/b", "one")
            await backend.write("c/d", "two")
            same(await read_all(backend, "a/b"), b"one")
            same(await read_all(backend, "/c/d"), b"two")
            await refused(backend.write("a/b", "other"), PathTakenError)
            await backend.delete("a/b")
            same(await backend.paths(), ["/c/d"])
            await backend.delete("/c/d")
            same(await backend.paths(), [])

        asyncio.run(use(self.make_backend()))

    def test_a_saved_file_is_never_overwritten(self) -> None:
        """The error names the path, and the old file is as it was."""

        async def use(backend: FileBackend) -> None:
            for path, old in (("/small", b"old"), ("/empty", b""), ("/large", sample(9 * MEBIBYTE))):
                await backend.write(path, old)
                for new in (b"new", b"ol", b"older", sample(9 * MEBIBYTE + 1), old[:-1] + b"?"):
                    error = await refused(backend.write(path, new), PathTakenError)
                    same((error.path, path in str(error)), (path, True))
                same(await read_all(backend, path), old)
            same(await backend.paths(), ["/empty", "/large", "/small"])

        asyncio.run(use(self.make_backend()))

    def test_the_same_content_may_be_written_again(self) -> None:
        """A write that is tried again is no error, however the file came about."""

        async def use(backend: FileBackend) -> None:
            for number, content in enumerate([b"", b"some", sample(9 * MEBIBYTE)]):
                await backend.write(f"/written/{number}", content)
                await backend.write_stream(f"/streamed/{number}", Source([content]))
                for path in (f"/written/{number}", f"/streamed/{number}"):
                    await backend.write(path, content)
                    same(await read_all(backend, path), content)
            await backend.write("/text", "höher")
            await backend.write("/text", "höher".encode())

        asyncio.run(use(self.make_backend()))

    def test_what_is_not_there_is_not_found(self) -> None:
        """The error names the path. What others are below is no file."""

        async def use(backend: FileBackend) -> None:
            await backend.write("/a/b/c", "one")
            for path in ("/never", "/a", "/a/b", "/a/b/c/d", "/a/b/C2", "/a/b/c/d/e"):
                for bounds in ((), (0, 5), (5, 5)):
                    error = await refused(read_all(backend, path, *bounds), PathNotFoundError)
                    same((error.path, path in str(error)), (path, True))
                error = await refused(backend.size(path), PathNotFoundError)
                same(error.path, path)

        asyncio.run(use(self.make_backend()))

    def test_a_deleted_file_is_gone_and_others_stay(self) -> None:
        """To delete what is not there is no error. The path is free again."""

        async def use(backend: FileBackend) -> None:
            for path in ("/a/b", "/a/bc", "/a/c/d", "/b"):
                await backend.write(path, path)
            await backend.write("/large", sample(9 * MEBIBYTE))
            for path in ("/a/b", "/a/b", "/large", "/never", "/a", "/a/c", "/b/under", "/a/c/d/under"):
                await backend.delete(path)
            same(await backend.paths(), ["/a/bc", "/a/c/d", "/b"])
            await refused(backend.size("/a/b"), PathNotFoundError)
            await backend.write("/a/b", "new")
            await backend.write("/large", "new")
            same(await read_all(backend, "/a/b") + await read_all(backend, "/large"), b"newnew")

        asyncio.run(use(self.make_backend()))

    def test_paths_are_listed_in_order_by_whole_segments(self) -> None:
        """A prefix is a path itself; slashes around it mean nothing."""

        async def use(backend: FileBackend) -> None:
            same(await backend.paths(), [])
            for path in ("/b", "/a/c/d", "/a/b", "/a.b/c", "/ab", "/a/c!", "/é", "/a/c0"):
                await backend.write(path, "")
            below = ["/a/b", "/a/c!", "/a/c/d", "/a/c0"]
            same(await backend.paths(), ["/a.b/c", *below, "/ab", "/b", "/é"])
            for prefix in ("a", "/a", "a/", "/a/"):
                same(await backend.paths(prefix), below)
            same(await backend.paths("/"), await backend.paths(""))
            same(await backend.paths("/a/c"), ["/a/c/d"])
            same(await backend.paths("/a/b"), ["/a/b"])
            for prefix in ("/A0", "/a/b/c", "/never/a"):
                same(await backend.paths(prefix), [])

        asyncio.run(use(self.make_backend()))

    def test_any_other_text_is_a_path(self) -> None:
        """Whatever it means to a shell, a database, a URL or another system."""

        async def use(backend: FileBackend) -> None:
            for path in ODD_PATHS:
                await backend.write(path, path)
                same(await read_all(backend, path), path.encode())
            same(await backend.paths(), sorted(ODD_PATHS))

        asyncio.run(use(self.make_backend()))

    def test_a_path_may_be_long(self) -> None:
        """Segments of 200 bytes, and 1,000 characters altogether."""

        async def use(backend: FileBackend) -> None:
            long = ["/" + "/".join("abcde"[at] * 199 for at in range(5)) + "f", "/" + "é" * 100 + "/x"]
            for path in long:
                await backend.write(path, path)
            same(await backend.paths(), long)

        asyncio.run(use(self.make_backend()))

    def test_what_cannot_be_a_path_is_refused(self) -> None:
        """Every method says which and why, in few visible letters, and nothing happens."""
        backend = self.make_backend()

        async def use(path: str, reason: str) -> None:
            source = Source([b"x"])
            calls: list[Callable[[], Coroutine[Any, Any, Any]]] = [
                lambda: backend.write(path, "x"),
                lambda: backend.write_stream(path, source),
                lambda: backend.size(path),
                lambda: backend.delete(path),
                lambda: read_all(backend, path),
            ]
            if "empty" not in reason:  # as a prefix it is everything
                calls.append(lambda: backend.paths(path))
            for call in calls:
                error = await refused(call(), StoreError)
                told = str(error)
                same((error.__class__, reason in told), (StoreError, True))
                same((told.isprintable(), len(told) < 300), (True, True))
            same((source.given, source.closed), (0, 1))

        for reason, paths in NO_PATHS.items():
            for path in paths:
                asyncio.run(use(path, reason))
        same(asyncio.run(backend.paths()), [])

    def test_a_file_above_another_is_one_or_is_refused(self) -> None:
        """A file system cannot have a file and a directory of one name; others can."""

        async def use(backend: FileBackend) -> None:
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

        asyncio.run(use(self.make_backend()))

    def test_letters_of_another_case_are_another_file_or_are_refused(self) -> None:
        """Some file systems cannot tell them apart; then nothing is overwritten."""

        async def use(backend: FileBackend) -> None:
            await backend.write("/Case", "upper")
            try:
                await backend.write("/case", "lower")
            except PathTakenError:
                same(await backend.paths(), ["/Case"])
            else:
                same(await read_all(backend, "/case"), b"lower")
            same(await read_all(backend, "/Case"), b"upper")

        asyncio.run(use(self.make_backend()))

    def test_files_expire(self) -> None:
        """Only those that were written so long ago; their paths are free again."""

        async def use(backend: FileBackend) -> None:
            same(await backend.expire(0), 0)
            await backend.write("/a/b", "one")
            await backend.write_stream("/a/c", Source([sample(9 * MEBIBYTE)]))
            same(await backend.expire(3600), 0)
            same(await backend.paths(), ["/a/b", "/a/c"])
            same(await backend.expire(0), 2)
            same(await backend.paths(), [])
            await refused(backend.size("/a/b"), PathNotFoundError)
            await backend.write("/a/b", "another")

        asyncio.run(use(self.make_backend()))

    def test_of_writers_of_one_path_one_wins(self) -> None:
        """Also if they use two backends. The others are told, and nothing of theirs is there."""

        async def use(backend: FileBackend) -> None:
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
                won = [
                    content
                    for content, result in zip(contents, results, strict=True)
                    if type(result) is not PathTakenError
                ]
                same([await read_all(another, path)], won)
            same(await backend.paths(), ["/large", "/small"])

        asyncio.run(use(self.make_backend()))

    def test_tasks_may_write_the_same_at_once(self) -> None:
        """That is one write, tried again."""

        async def use(backend: FileBackend) -> None:
            another = self.make_another(backend)
            for path, content in (("/small", b"x"), ("/large", sample(5 * MEBIBYTE))):
                await asyncio.gather(*(one.write(path, content) for one in (backend, another)))
                same(await read_all(backend, path), content)

        asyncio.run(use(self.make_backend()))

    def test_threads_with_event_loops_of_their_own_share_a_backend(self) -> None:
        """Each file is as its writer wrote it."""
        backend = self.make_backend()

        def write(number: int) -> bytes:
            asyncio.run(backend.write(f"/{number}/a", f"{number}" * 100))
            asyncio.run(backend.write_stream(f"/{number}/b", Source([f"{number}".encode()] * 100)))
            return asyncio.run(read_all(backend, f"/{number}/a")) + asyncio.run(read_all(backend, f"/{number}/b"))

        with ThreadPoolExecutor(4) as threads:
            same([*threads.map(write, range(8))], [f"{number}".encode() * 200 for number in range(8)])

    def test_a_cancelled_write_is_whole_or_raises(self) -> None:
        """Whoever sees it raise can rely on nothing being there, and may try again in any case."""

        async def use(backend: FileBackend) -> None:
            for turns in range(8):
                path, outcome, content = f"/{turns}", list[str](), sample(2 * MEBIBYTE)

                async def write(path: str, outcome: list[str], content: bytes) -> None:
                    await backend.write(path, content)
                    outcome.append("returned")

                task = asyncio.ensure_future(write(path, outcome, content))
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                same(await backend.paths(path), [path] if outcome else [])
                await backend.write(path, content)
                same(await read_all(backend, path), content)

        asyncio.run(use(self.make_backend()))

    def test_what_makes_no_sense_is_refused(self) -> None:
        """A wrong argument is the caller's fault, and says so."""
        backend = self.make_backend()
        wrong: list[Callable[[], Coroutine[Any, Any, Any]]] = [
            lambda: backend.write("/a", anything(7)),
            lambda: backend.write("/a", anything(None)),
            lambda: backend.write("/a", anything(bytearray(b"x"))),
            lambda: read_all(backend, "/a", -1),
            lambda: read_all(backend, "/a", 0, -1),
            lambda: read_all(backend, "/a", anything("0")),
            lambda: read_all(backend, "/a", 0, anything(1.5)),
            lambda: backend.expire(-1),
            lambda: backend.expire(float("nan")),
        ]

        async def use() -> None:
            for call in wrong:
                await refused(call(), ConfigError)
            same(await backend.paths(), [])

        asyncio.run(use())
