"""`ObjectBackend`: files in the bucket of an object store, through `obstore`."""

from collections.abc import AsyncGenerator, AsyncIterable, Callable
from contextlib import aclosing, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from suture.errors import ConfigError
from suture.stores._backend import check_path, check_prefix, check_range, encode_content
from suture.stores._errors import PathNotFoundError, PathTakenError
from suture.stores._store import check_seconds
from suture.stores._threads import in_thread
from suture.stores._upload import send

if TYPE_CHECKING:
    from obstore.store import ObjectStore

__all__ = ["ObjectBackend"]

_Result = TypeVar("_Result")
_NEEDED = ("delete", "get", "head", "list", "put")


class ObjectBackend:
    """A backend in an object store: S3 and what speaks like it, Google Cloud Storage, Azure.

    Give a store of `obstore.store`, or a URL such as `s3://bucket/prefix` with the options of
    `obstore.store.from_url`. With a URL a store that is down is given up after half a minute or so; a store of your
    own is as patient as you made it. `prefix` is put before every path. The store must be able to put an object only
    where there is none (`If-None-Match: *`), as all of those above are.

    >>> import asyncio
    >>> from suture.stores import ObjectBackend
    >>> backend = ObjectBackend("memory:///", prefix="outputs")
    >>> asyncio.run(backend.write("/run-1/trunc/call_1", "what the tool said"))
    >>> asyncio.run(backend.paths())
    ['/run-1/trunc/call_1']
    """

    def __init__(self, store: "ObjectStore | str", *, prefix: str = "", **options: Any) -> None:
        try:
            # The extra is paid for by those who use it.
            from suture.stores._objects import PART, Objects, Upload  # noqa: PLC0415
        except ImportError as error:
            missing = "an ObjectBackend needs obstore, which is not installed: pip install 'suture[object-stores]'"
            raise ConfigError(missing) from error
        if isinstance(store, str):
            store = _from_url(store, options)
        elif options:
            raise ConfigError(f"{', '.join(options)}: options go with a URL; a store has its own")
        elif not all(hasattr(store, name) for name in _NEEDED):
            raise ConfigError(f"an ObjectBackend takes a store of obstore or a URL, not {type(store).__name__}")
        self._objects = Objects(store, check_prefix(prefix))
        self._part, self._upload = PART, Upload

    async def write(self, path: str, content: str | bytes) -> None:
        """Write a file; text as UTF-8. It appears at once, whole, and is never overwritten."""
        body = encode_content(content)
        upload = self._upload(self._objects, path, look=len(body) >= self._part)
        try:
            await send(_chunks(body), upload, self._part)
        except PathTakenError:
            if not await self._holds(path, body):
                raise

    async def write_stream(self, path: str, chunks: AsyncIterable[bytes]) -> int:
        """Write a file piece by piece; return how many bytes it has. It appears when it is whole."""
        return await send(chunks, self._upload(self._objects, path, look=True), self._part)

    async def read(self, path: str, start: int = 0, stop: int | None = None) -> AsyncGenerator[bytes, None]:
        """Yield the bytes from `start` up to `stop`, as a slice would, in pieces of 1 MiB at most."""
        name = check_path(path)
        check_range(start, stop)
        found = await self._do(partial(self._objects.find, name), path, "read")
        end = found.size if stop is None else min(stop, found.size)
        while start < end:
            piece = await self._do(partial(self._objects.get, found, start, end), path, "read")
            yield piece
            start += len(piece)

    async def size(self, path: str) -> int:
        """Return how many bytes a file has."""
        return (await self._do(partial(self._objects.find, check_path(path)), path, "read")).size

    async def delete(self, path: str) -> None:
        """Delete a file, if it is there."""
        name = check_path(path)
        try:
            found = await self._do(partial(self._objects.find, name), path, "read")
        except PathNotFoundError:
            return
        await self._do(partial(self._objects.delete, name, found), path, "deleted")

    async def paths(self, prefix: str = "") -> list[str]:
        """Return the paths of all files in order; only those at or below `prefix`."""
        within = check_prefix(prefix)
        return sorted(f"/{name}" for name in await self._do(partial(self._objects.names, within), prefix, "listed"))

    async def expire(self, seconds: float) -> int:
        """Delete the files that were written `seconds` ago or earlier, by the store's clock; return how many.

        What has been unfinished for a day goes, too: its writer was killed.
        """
        check_seconds("seconds", seconds)
        return await self._do(partial(self._objects.expire, seconds), "", "expired")

    def __repr__(self) -> str:
        return f"ObjectBackend({self._objects!r})"

    async def _holds(self, path: str, content: bytes) -> bool:
        """Tell whether a file has just this content."""
        start = 0
        with suppress(PathNotFoundError):
            if await self.size(path) != len(content):
                return False
            async with aclosing(self.read(path)) as pieces:
                async for piece in pieces:
                    if content[start : start + len(piece)] != piece:
                        return False
                    start += len(piece)
            return start == len(content)
        return False

    async def _do(self, request: Callable[[], _Result], path: str, done: str) -> _Result:
        with self._objects.explained(path, done):
            return await in_thread(request)


async def _chunks(content: bytes) -> AsyncGenerator[bytes, None]:
    yield content


def _from_url(url: str, options: dict[str, Any]) -> "ObjectStore":
    from datetime import timedelta  # noqa: PLC0415

    from obstore.exceptions import BaseError  # noqa: PLC0415
    from obstore.store import from_url  # noqa: PLC0415

    if not url.startswith(("memory:", "file:")):
        options = {"retry_config": {"max_retries": 3, "retry_timeout": timedelta(seconds=30)}, **options}
    try:
        return from_url(url, **options)
    except (BaseError, TypeError, ValueError) as error:
        shown, options_shown = url.partition("?")[0], ", ".join(options) or "no options"
        reason = str(error).partition("\n")[0].replace(url, shown)
        # Without the cause, which shows all of the URL: there may be a key in it.
        raise ConfigError(f"{shown} with {options_shown} leads to no store: {reason}") from None
