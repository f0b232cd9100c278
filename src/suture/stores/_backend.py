"""`Backend` and `FileBackend`, what keeps tool output, and what every backend checks and says alike."""

from collections.abc import AsyncIterable, AsyncIterator, Awaitable
from typing import Final, Protocol, runtime_checkable

from suture.errors import ConfigError
from suture.stores._errors import StoreError, shown

__all__ = [
    "BLOCK",
    "DAY",
    "Backend",
    "FileBackend",
    "check_path",
    "check_prefix",
    "check_range",
    "encode_content",
    "encode_text",
    "is_below",
    "is_segment",
]

BLOCK: Final = 1 << 20
"""How many bytes a backend reads at once, at most."""

DAY: Final = 86_400
"""For how many seconds an unfinished file is left alone, where nobody can tell whether its writer is alive."""

_LONGEST_PATH: Final = 1000
_LONGEST_SEGMENT: Final = 200


class Backend(Protocol):
    """The least that keeps tool output: `write`, plain or async.

    >>> class Folder:
    ...     def __init__(self):
    ...         self.files = {}
    ...     def write(self, path, content):
    ...         self.files[path] = content
    >>> backend: Backend = Folder()
    """

    def write(self, path: str, content: str) -> Awaitable[None] | None:
        """Keep `content` under `path`."""
        ...


@runtime_checkable
class FileBackend(Protocol):
    """Keeps files: bytes under a path such as `/run-1/trunc/call_1`.

    A saved file is never overwritten, and a reader sees all of it or none. A leading slash means nothing. What is
    no path is a `StoreError`, and so is all that goes wrong.

    >>> import asyncio
    >>> from suture.stores import FileBackend, MemoryBackend
    >>> async def keep(backend: FileBackend) -> list[str]:
    ...     await backend.write("/run-1/trunc/call_1", "what the tool said")
    ...     return await backend.paths("/run-1")
    >>> asyncio.run(keep(MemoryBackend()))
    ['/run-1/trunc/call_1']
    """

    async def write(self, path: str, content: str | bytes) -> None:
        """Write a file; text as UTF-8.

        If it raises, the file is not there. Raises `PathTakenError` where one is, unless that is the same byte for
        byte: so a write may be tried again.
        """
        ...

    async def write_stream(self, path: str, chunks: AsyncIterable[bytes]) -> int:
        """Write a file piece by piece, holding little of it in memory; return how many bytes it has.

        If it raises, also because `chunks` does or because it was cancelled, nothing is there. `chunks` is closed
        in any case. Raises `PathTakenError` where a file is, whatever is in it.
        """
        ...

    def read(self, path: str, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        """Yield the bytes from `start` up to `stop`, as a slice would, in pieces of 1 MiB at most.

        Raises `PathNotFoundError` if there is no such file.
        """
        ...

    async def size(self, path: str) -> int:
        """Return how many bytes a file has. Raises `PathNotFoundError` if there is none."""
        ...

    async def delete(self, path: str) -> None:
        """Delete a file, if it is there."""
        ...

    async def paths(self, prefix: str = "") -> list[str]:
        """Return the paths of all files in order, each with a leading slash; only those at or below `prefix`."""
        ...

    async def expire(self, seconds: float) -> int:
        """Delete the files that were written `seconds` ago or earlier, and return how many these were."""
        ...


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
    suture.stores._errors.StoreError: '/run-1/../call_1' cannot be a path: a segment is '..'
    """
    if not isinstance(path, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise StoreError(f"{shown(path)} cannot be a path: it is {type(path).__name__}, not str")
    name = path.removeprefix("/")
    if not name:
        raise StoreError(f"{shown(path)} cannot be a path: it is empty")
    if len(name) > _LONGEST_PATH:
        raise StoreError(f"{shown(path)} cannot be a path: it has {len(name)} characters, the most is {_LONGEST_PATH}")
    for segment in name.split("/"):
        fault = _fault(segment)
        if fault:
            raise StoreError(f"{shown(path)} cannot be a path: {fault}")
    return name


def check_prefix(prefix: str) -> str:
    """Return what paths are to begin with, without slashes around it, or raise `StoreError`.

    >>> check_prefix("/run-1/"), check_prefix("/"), check_prefix("")
    ('run-1', '', '')
    """
    if prefix in ("", "/"):
        return ""
    return check_path(prefix.removesuffix("/") if isinstance(prefix, str) else prefix)  # pyright: ignore[reportUnnecessaryIsInstance]


def is_below(name: str, prefix: str) -> bool:
    """Tell whether a checked path is a checked prefix, or below it.

    >>> is_below("run-1/a", "run-1"), is_below("run-10/a", "run-1")
    (True, False)
    """
    return not prefix or name == prefix or name.startswith(prefix + "/")


def is_segment(name: str) -> bool:
    """Tell whether a name can stand between the slashes of a path.

    >>> is_segment("call_1"), is_segment("a/b"), is_segment("..")
    (True, False, False)
    """
    return "/" not in name and not _fault(name)


def check_range(start: int, stop: int | None) -> None:
    """Raise `ConfigError` unless `start` and `stop` count bytes from the beginning of a file.

    >>> check_range(-5, None)
    Traceback (most recent call last):
        ...
    suture.errors.ConfigError: bytes are counted from 0, so one cannot read from -5 to None
    """
    if type(start) is not int or start < 0 or (stop is not None and (type(stop) is not int or stop < 0)):
        raise ConfigError(f"bytes are counted from 0, so one cannot read from {start!r} to {stop!r}")


def _fault(segment: str) -> str:
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
