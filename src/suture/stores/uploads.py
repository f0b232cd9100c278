"""Code that all backends share (checked paths, encoding, atomic writes in blocks), and a backend in memory."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterable, Callable
from contextlib import aclosing
from functools import partial
from threading import Lock
from typing import Any, ClassVar, Final, NamedTuple, TypeVar

from suture._aio import LOG, closing, wait_to_the_end
from suture._text import quote
from suture.errors import ConfigError
from suture.stores.protocols import FileBackend, PathNotFoundError, PathTakenError, StoreError, check_seconds

T = TypeVar("T")

BLOCK: Final = 1 << 20
"""The most bytes that a backend reads at once."""

DAY: Final = 86_400
"""How many seconds an unfinished file is left alone, since nobody can tell whether its writer is alive."""

_SLICE: Final = 1 << 18
_LONGEST_PATH: Final = 1000
_LONGEST_SEGMENT: Final = 200


async def run_whole(work: Callable[[], T]) -> T:
    """Run blocking work in a thread, to its end even if the waiting task is cancelled.

    >>> asyncio.run(run_whole(lambda: 6 * 7))
    42
    """
    # This makes no task, because the event loop would cancel one that is left over when it ends.
    return await wait_to_the_end(asyncio.get_running_loop().run_in_executor(None, work))


class Upload:
    """A file that is being written: its name, how many blocks and bytes were written, and its temporary place."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = self.size = 0
        self.place: Any = None


class Files(FileBackend, ABC):
    """A backend that checks its arguments and does the work on its shelf; see `FileBackend` for the guarantees.

    A shelf works synchronously, on checked paths without their leading slash:

    - `find(name)` returns a file, which has a `size`, and `get(file, start, end)` some of its bytes, at most `BLOCK`;
      both raise `PathNotFoundError`.
    - `names(prefix)`, `delete(name)` and `expire(seconds)` do what their namesakes do; `expire` deletes unfinished
      files, too.
    - `add(upload, block)` writes a full block, which nobody sees yet; nothing exists before the first one.
    - `commit(upload, block)` writes the last, shorter block and gives the file its path, or raises.
    - `abort(upload)` removes what was written.
    """

    _block: ClassVar[int] = BLOCK

    @abstractmethod
    async def _do(self, work: Callable[[Any], T], path: str, action: str) -> T:
        """Do `work` on the shelf; an error says that the file was not `action`. A cancelled write still finishes."""

    async def write(self, path: str, content: str | bytes) -> None:
        body = content if isinstance(content, str) else encode_content(content)
        try:
            # For a small file, writing it tells soon enough that the path is taken.
            await self._send(path, _slices(body), look=len(body) >= self._block)
        except PathTakenError:
            if not await self._holds(path, encode_content(body)):
                raise

    async def write_stream(self, path: str, chunks: AsyncIterable[bytes]) -> int:
        return await self._send(path, chunks, look=True)

    async def read(self, path: str, start: int = 0, stop: int | None = None) -> AsyncGenerator[bytes, None]:
        name = check_path(path)
        check_range(start, stop)

        def open_file(shelf: Any) -> tuple[Any, int, bytes]:
            file = shelf.find(name)
            end = file.size if stop is None else min(stop, file.size)
            return file, end, shelf.get(file, start, end) if start < end else b""

        def read_on(shelf: Any) -> bytes:
            return shelf.get(file, start, end)

        file, end, piece = await self._do(open_file, path, "read")
        while piece:
            yield piece
            start += len(piece)
            piece = await self._do(read_on, path, "read") if start < end else b""

    async def size(self, path: str) -> int:
        name = check_path(path)
        return await self._do(lambda shelf: shelf.find(name).size, path, "read")

    async def delete(self, path: str) -> None:
        name = check_path(path)
        await self._do(lambda shelf: shelf.delete(name), path, "deleted")

    async def paths(self, prefix: str = "") -> list[str]:
        within = check_prefix(prefix)
        return sorted([f"/{name}" for name in await self._do(lambda shelf: shelf.names(within), prefix, "listed")])

    async def expire(self, seconds: float) -> int:
        check_seconds("seconds", seconds)
        return await self._do(lambda shelf: shelf.expire(seconds), "", "expired")

    async def _send(self, path: str, chunks: AsyncIterable[bytes], *, look: bool) -> int:
        """Write a stream block by block; with `look`, check first whether the path is free."""
        stream: Any = chunks
        if not hasattr(stream, "__aiter__"):
            raise ConfigError(f"what is to be written is an async iterable of bytes, not {type(stream).__name__}")
        block, upload = bytearray(), None

        async def do(step: str, *given: Any) -> None:
            await self._do(lambda shelf: getattr(shelf, step)(upload, *given), path, "written")

        try:
            async with closing(aiter(chunks)) as source:
                name = check_path(path)
                if look:
                    await self._do(partial(_check_free, name=name), path, "written")
                upload = Upload(name)
                async for chunk in source:
                    if not isinstance(chunk, bytes):  # pyright: ignore[reportUnnecessaryIsInstance]
                        found = type(chunk).__name__
                        raise ConfigError(f"a stream to be written yields bytes, not {found}")  # noqa: TRY301
                    start = 0
                    while start < len(chunk):
                        end = start + self._block - len(block)
                        block += memoryview(chunk)[start:end]
                        start = end
                        if len(block) == self._block:
                            await do("add", block)
                            upload.count, upload.size = upload.count + 1, upload.size + len(block)
                            block = bytearray()
                            await asyncio.sleep(0)  # a cancellation that came meanwhile takes effect here
            await do("commit", block)
        except BaseException:
            try:
                if upload is not None and upload.place is not None:
                    await do("abort")
            except Exception as error:  # noqa: BLE001 - the first error is the one to raise
                LOG.warning("what was written of %s was not removed: %s", label(path), error)
            raise
        return upload.size + len(block)

    async def _holds(self, path: str, content: bytes) -> bool:
        """Return whether a file has exactly this content."""
        start = 0
        try:
            if await self.size(path) != len(content):
                return False
            async with aclosing(self.read(path)) as pieces:
                async for piece in pieces:
                    if content[start : start + len(piece)] != piece:
                        return False
                    start += len(piece)
        except PathNotFoundError:
            return False
        return start == len(content)


def _check_free(shelf: Any, name: str) -> None:
    try:
        shelf.find(name)
    except PathNotFoundError:
        return
    raise PathTakenError(f"/{name}")


def label(path: str) -> str:
    """Return the name of a file in an error; without a path, all files are meant.

    >>> label("/run-1/a"), label("")
    ("'/run-1/a'", 'what is in it')
    """
    return quote(path, 80) if path else "what is in it"


async def _slices(content: str | bytes) -> AsyncGenerator[bytes, None]:
    """Yield content as bytes, in slices, so that a text is never in memory twice as a whole."""
    if isinstance(content, str):
        for start in range(0, len(content), _SLICE):
            yield encode_text(content[start : start + _SLICE])
    else:
        yield content


def encode_text(text: str) -> bytes:
    r"""Encode a text as a backend keeps it: UTF-8, with three bytes for a lone surrogate.

    Different texts always become different bytes.

    >>> encode_text("höher"), encode_text("\ud800")
    (b'h\xc3\xb6her', b'\xed\xa0\x80')
    """
    return text.encode("utf-8", "surrogatepass")


def encode_content(content: str | bytes) -> bytes:
    """Return the bytes to be written, or raise `ConfigError`.

    >>> encode_content(7)
    Traceback (most recent call last):
        ...
    suture.errors.ConfigError: the content of a file is str or bytes, not int
    """
    if isinstance(content, str):
        return encode_text(content)
    if not isinstance(content, bytes):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"the content of a file is str or bytes, not {type(content).__name__}")
    return content


def check_path(path: str) -> str:
    """Return a path without its leading slash, or raise `StoreError`.

    >>> check_path("/run-1/trunc/call_1")
    'run-1/trunc/call_1'
    >>> check_path("/run-1/../call_1")
    Traceback (most recent call last):
        ...
    suture.stores.protocols.StoreError: '/run-1/../call_1' cannot be a path: a segment is '..'
    """
    if not isinstance(path, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise StoreError(f"{quote(path, 80)} cannot be a path: it is {type(path).__name__}, not str")
    name = path.removeprefix("/")
    faults = ["it is empty"] if not name else [fault for fault in map(_find_fault, name.split("/")) if fault]
    if len(name) > _LONGEST_PATH:
        faults = [f"it has {len(name)} characters, the most is {_LONGEST_PATH}"]
    if faults:
        raise StoreError(f"{quote(path, 80)} cannot be a path: {faults[0]}")
    return name


def check_prefix(prefix: str) -> str:
    """Return a prefix of paths without slashes around it, or raise `StoreError`.

    >>> check_prefix("/run-1/"), check_prefix("/"), check_prefix("")
    ('run-1', '', '')
    """
    if prefix in ("", "/"):
        return ""
    return check_path(prefix.removesuffix("/") if isinstance(prefix, str) else prefix)  # pyright: ignore[reportUnnecessaryIsInstance]


def is_segment(name: str) -> bool:
    """Return whether a name can stand between the slashes of a path.

    >>> is_segment("call_1"), is_segment("a/b"), is_segment("..")
    (True, False, False)
    """
    return "/" not in name and not _find_fault(name)


def check_range(start: int, stop: int | None) -> None:
    """Raise `ConfigError` unless `start` and `stop` count bytes from the beginning of a file.

    >>> check_range(-5, None)
    Traceback (most recent call last):
        ...
    suture.errors.ConfigError: bytes are counted from 0, so one cannot read from -5 to None
    """
    if type(start) is not int or start < 0 or (stop is not None and (type(stop) is not int or stop < 0)):
        raise ConfigError(f"bytes are counted from 0, so one cannot read from {start!r} to {stop!r}")


def _find_fault(segment: str) -> str:
    """Return why a text cannot be a segment of a path, or an empty text if it can."""
    if segment in ("", ".", ".."):
        return f"a segment is {segment!r}" if segment else "a segment is empty"
    if "\\" in segment:
        return "it has a backslash"
    try:
        length = len(segment.encode())
    except UnicodeEncodeError:
        return "it has a lone surrogate"
    if length > _LONGEST_SEGMENT:
        return f"a segment has {length} bytes, the most is {_LONGEST_SEGMENT}"
    if not segment.isprintable() and any(letter < " " or "\x7f" <= letter < "\xa0" for letter in segment):
        return "it has a control character"
    return ""


# --- in memory --------------------------------------------------------------------------------


class _File(NamedTuple):
    content: bytes
    written: float

    @property
    def size(self) -> int:
        return len(self.content)


class MemoryBackend(Files):
    """A backend in memory, which ends with the process.

    Tasks, event loops and threads can share it.

    >>> import asyncio
    >>> from suture.stores import MemoryBackend
    >>> backend = MemoryBackend()
    >>> asyncio.run(backend.write("/run-1/trunc/call_1", "what the tool said"))
    >>> asyncio.run(backend.size("/run-1/trunc/call_1"))
    18
    """

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._lock = Lock()
        self._shelf = _Shelf(clock)

    async def write(self, path: str, content: str | bytes) -> None:
        """Write a file; text as UTF-8. In memory it needs no blocks."""
        name, file = check_path(path), _File(encode_content(content), self._shelf.clock())
        with self._lock:
            if self._shelf.files.setdefault(name, file).content != file.content:
                raise PathTakenError(path)

    def fill(self, path: str, content: str | bytes) -> None:
        """Store a file that was written before, replacing any other."""
        self._shelf.files[check_path(path)] = _File(encode_content(content), self._shelf.clock())

    def __repr__(self) -> str:
        return f"<MemoryBackend: {len(self._shelf.files)} files>"

    def _file(self, path: str) -> _File:
        return self._shelf.find(check_path(path))

    async def _do(self, work: Callable[["_Shelf"], T], path: str, action: str) -> T:
        with self._lock:
            return work(self._shelf)


class _Shelf:
    """Files in memory by their names; the caller holds the lock."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.files: dict[str, _File] = {}

    def find(self, name: str) -> _File:
        if name not in self.files:
            raise PathNotFoundError(f"/{name}")
        return self.files[name]

    def get(self, file: _File, start: int, end: int) -> bytes:
        return file.content[start : min(end, start + BLOCK)]

    def names(self, prefix: str) -> list[str]:
        return [name for name in self.files if not prefix or f"{name}/".startswith(f"{prefix}/")]

    def delete(self, name: str) -> None:
        self.files.pop(name, None)

    def expire(self, seconds: float) -> int:
        stale = [name for name, file in self.files.items() if file.written <= self.clock() - seconds]
        for name in stale:
            del self.files[name]
        return len(stale)

    def add(self, upload: Upload, block: bytearray) -> None:
        upload.place = [*(upload.place or ()), bytes(block)]

    def commit(self, upload: Upload, block: bytearray) -> None:
        file = _File(b"".join([*(upload.place or ()), block]), self.clock())
        if self.files.setdefault(upload.name, file) is not file:
            raise PathTakenError(f"/{upload.name}")

    def abort(self, upload: Upload) -> None:
        upload.place = None
