"""What all backends do alike: check paths, encode, and write a stream block by block, whole or not at all."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable
from contextlib import aclosing
from functools import partial
from typing import Any, ClassVar, Final, Protocol, TypeVar

from suture._aio import LOG, closing, wait_to_the_end
from suture._text import quote
from suture.errors import ConfigError
from suture.stores.protocols import PathNotFoundError, PathTakenError, StoreError

T = TypeVar("T")

BLOCK: Final = 1 << 20
"""How many bytes a backend reads at once, at most."""

DAY: Final = 86_400
"""For how many seconds an unfinished file is left alone, where nobody can tell whether its writer is alive."""

_SLICE: Final = 1 << 18
_LONGEST_PATH: Final = 1000
_LONGEST_SEGMENT: Final = 200


async def run_whole(work: Callable[[], T]) -> T:
    """Run blocking work in a thread, to its end even if the waiting task is cancelled.

    >>> asyncio.run(run_whole(lambda: 6 * 7))
    42
    """
    # No task of its own: one that is left over when the event loop ends would be cancelled with the others.
    return await wait_to_the_end(asyncio.get_running_loop().run_in_executor(None, work))


class Upload(Protocol):
    """A file that is being written. None of its methods is through before what it began is, cancelled or not."""

    async def begin(self, *, look: bool) -> None:
        """Check the path; if it may `look`, raise `PathTakenError` where a file is. Nothing is made yet."""
        ...

    async def add(self, block: bytearray) -> None:
        """Write a block of full size. Nobody sees it yet. Afterwards its bytes change: it is used again."""
        ...

    async def commit(self, last: bytearray) -> None:
        """Write the last block, which is shorter than the others, and give the file its path; or raise."""
        ...

    async def abort(self) -> None:
        """Remove what was written."""
        ...


class UploadBackend(ABC):
    """A backend that writes files block by block."""

    _block: ClassVar[int] = BLOCK

    @abstractmethod
    def _upload(self, path: str) -> Upload:
        """Return a new upload to a path, which is not checked yet."""

    @abstractmethod
    def read(self, path: str, start: int = 0, stop: int | None = None) -> AsyncGenerator[bytes, None]:
        """Yield the bytes from `start` up to `stop`, as a slice would, in pieces of 1 MiB at most."""

    @abstractmethod
    async def size(self, path: str) -> int:
        """Return how many bytes a file has."""

    async def write(self, path: str, content: str | bytes) -> None:
        """Write a file; text as UTF-8. It appears at once, whole, and is never overwritten."""
        body = content if isinstance(content, str) else encode_content(content)
        try:
            # To write a small file finds out by itself whether the path is taken.
            await self._send(path, _slices(body), look=len(body) >= self._block)
        except PathTakenError:
            if not await self._holds(path, encode_content(body)):
                raise

    async def write_stream(self, path: str, chunks: AsyncIterable[bytes]) -> int:
        r"""Write a file piece by piece; return how many bytes it has. It appears when it is whole.

        >>> import asyncio, tempfile
        >>> from suture.stores import LocalBackend
        >>> async def lines():
        ...     for number in range(100_000):
        ...         yield f"line {number}\n".encode()
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     asyncio.run(LocalBackend(directory).write_stream("/run-1/log", lines()))
        1088890
        """
        return await self._send(path, chunks, look=True)

    async def _send(self, path: str, chunks: AsyncIterable[bytes], *, look: bool) -> int:
        upload, size = self._upload(path), 0
        try:
            async with aclosing(cut_blocks(chunks, self._block, partial(upload.begin, look=look))) as blocks:
                async for block in blocks:
                    if len(block) == self._block:
                        await upload.add(block)
                    else:
                        await upload.commit(block)
                    size += len(block)
        except BaseException:
            try:
                await upload.abort()
            except Exception:  # noqa: BLE001 - the first error is the one to raise
                LOG.warning("what was written of %s was not removed", quote(path), exc_info=True)
            raise
        return size

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


async def cut_blocks(
    chunks: AsyncIterable[bytes], size: int, begin: Callable[[], Awaitable[None]]
) -> AsyncGenerator[bytearray, None]:
    """Yield a stream in blocks of `size` bytes, and then a last one that is shorter, if need be empty.

    `begin` is called first, and the stream is closed in any case. A full block is reused for the next one.
    """
    source: Any = chunks
    if not hasattr(source, "__aiter__"):
        raise ConfigError(f"what is to be written is an async iterable of bytes, not {type(source).__name__}")
    block, filled = bytearray(size), 0
    async with closing(aiter(chunks)) as source:
        await begin()
        async for chunk in source:
            if not isinstance(chunk, bytes):
                raise ConfigError(f"a stream to be written yields bytes, not {type(chunk).__name__}")
            start = 0
            with memoryview(chunk) as new, memoryview(block) as room:
                while start < len(new):
                    count = min(size - filled, len(new) - start)
                    room[filled : filled + count] = new[start : start + count]
                    start, filled = start + count, filled + count
                    if filled == size:
                        yield block
                        filled = 0
                        # A cancellation that came while it was written takes effect here.
                        await asyncio.sleep(0)
    yield block[:filled]


async def _slices(content: str | bytes) -> AsyncGenerator[bytes, None]:
    """Yield content as bytes, so that a text is never in memory a second time as a whole."""
    if isinstance(content, str):
        for start in range(0, len(content), _SLICE):
            yield encode_text(content[start : start + _SLICE])
    else:
        yield content


def encode_text(text: str) -> bytes:
    r"""Return a text as a backend keeps it: UTF-8, in which a lone surrogate has its own three bytes.

    So different texts are always different bytes.

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
    """Return what paths are to begin with, without slashes around it, or raise `StoreError`.

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
    """Return what keeps a text from being a segment of a path, if anything does."""
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
