"""Output on its way to a backend: at once or while it comes, whatever the backend can do, and whatever goes wrong."""

import asyncio
import tempfile
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

from suture._aio import LOG, closing, run_to_the_end, settle, wait_to_the_end
from suture.errors import ConfigError, OffloadError
from suture.reduction import Save, Writer
from suture.reduction.texts import folded
from suture.stores import FileBackend, PathNotFoundError, PathTakenError, encode_text

T = TypeVar("T")
BackendOf = Callable[[str], Writer | None]
"""The name of a tool to where its output is saved."""

ATTEMPTS = 8
"""How many paths are tried where each of them is taken."""
_CHUNK = 64 * 1024
"""How many characters of a stream are gathered before they are written."""
_CLAIMS: set[tuple[int, str]] = set()
"""Paths, each with its backend, that streams of this process go to, or may: a file is there only when one has ended."""


def check_saving(by: Any, wanted: str = "") -> None:
    """Refuse what makes no sense among the settings of a middleware that saves output; `wanted`: what a backend is."""
    if by.on_backend_error not in {"raise", "continue"}:
        raise ConfigError(f"unknown on_backend_error {by.on_backend_error!r}; known: raise, continue")
    if type(by.max_length_for_read) is not int or by.max_length_for_read <= 0:
        raise ConfigError(f"max_length_for_read must be more than 0, found {by.max_length_for_read!r}")
    missing = "backend must be set when not skipping truncation"
    if not by.skip_truncation and by.backend is None:
        raise ConfigError(f"{missing}{wanted}; or pass skip_truncation=True")
    for name, config in by.tool_config.items():
        without = by.backend is None and config.backend is None
        if config.skip_truncation is False and config.trunc_handler is None and without:
            raise ConfigError(f"tool_config[{name!r}]: {missing}")


async def save_all(saves: Sequence[Save], backend_of: BackendOf) -> None:
    """Write all of `saves`, or none: what this call has created is deleted again if a later one fails.

    Raises `PathTakenError` where a path holds something else already, `OffloadError` where one cannot be written.
    """
    created: list[Save] = []
    try:
        for save in saves:
            try:
                if await _write(backend_of(save.name), save, exclusive=len(saves) > 1):
                    created.append(save)
            except PathTakenError:
                raise
            except Exception as error:
                raise unsaved(save.name, save.call_id, error) from error
    except BaseException:
        for save in created:  # it was written for nothing; a backend that only writes cannot delete
            delete: Any = getattr(backend_of(save.name), "delete", None)
            try:
                if delete is not None:
                    await run_to_the_end(until_done(delete(save.path)))
            except Exception:  # noqa: BLE001 - what it is deleted for matters more
                LOG.warning("%r was written for nothing and could not be deleted", save.path, exc_info=True)
        raise


async def _write(backend: Any, save: Save, *, exclusive: bool) -> bool:
    """Write a file; tell whether this call created it, so that it may delete it again.

    `write` takes a file with the same content for its own, which may be another run's. `write_stream` never does.
    """
    if backend is None:
        raise OffloadError([(save.name, save.call_id)], "there is no backend for it")
    if exclusive and isinstance(backend, FileBackend):
        with suppress(PathTakenError):
            await until_done(backend.write_stream(save.path, _once(encode_text(save.content))))
            return True
        await until_done(backend.write(save.path, save.content))
        return False
    await until_done(backend.write(save.path, save.content))
    return not isinstance(backend, FileBackend)


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def until_done(work: T | Awaitable[T]) -> T:
    """Await what a backend does. If something of its own was cancelled, and not this task, that is an error of its."""
    try:
        return await settle(work)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise RuntimeError("the backend's own work was cancelled") from error


async def claim(backend: Writer, path: str) -> bool:
    """Take a path for a stream, unless it holds something or another stream goes there; tell whether it was free."""
    claimed = (id(backend), folded(path))
    if claimed in _CLAIMS:
        return False
    _CLAIMS.add(claimed)
    if await is_taken(backend, path):
        _CLAIMS.discard(claimed)
        return False
    return True


def release(backend: Writer | None, path: str) -> None:
    """Give a path back: the stream has ended, or never began."""
    _CLAIMS.discard((id(backend), folded(path)))


async def is_taken(backend: Writer, path: str) -> bool:
    """Tell whether a path holds something, if the backend can say so."""
    if not isinstance(backend, FileBackend):
        return False
    try:
        await until_done(backend.size(path))
    except PathNotFoundError:
        return False
    except Exception:  # noqa: BLE001 - writing will tell
        LOG.debug("a backend cannot say whether %r is taken", path, exc_info=True)
        return False
    return True


def unsaved(name: str, call_id: str, error: Exception) -> OffloadError:
    """Return the error that says whose output was not saved, and why."""
    if isinstance(error, OffloadError):
        return error
    made = OffloadError([(name, call_id)], str(error)[:1_000] or type(error).__name__)
    made.__cause__ = error
    return made


class Pipe(Generic[T]):
    """Carries items from one task to another; whoever writes waits while whoever reads is behind."""

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._waiting: asyncio.Future[None] | None = None
        self._ended = False
        self._abandoned = False

    async def put(self, item: T) -> None:
        """Write an item; it is dropped if nobody will read it."""
        while self._items and not self._abandoned:
            await self._wait()
        if not self._abandoned:
            self._items.append(item)
            self._wake()

    def end(self) -> None:
        """Say that no more will come."""
        self._ended = True
        self._wake()

    def abandon(self, _: object = None) -> None:
        """Say that nobody reads any more."""
        self._abandoned = True
        self._wake()

    def clear(self) -> None:
        """Drop what was not read."""
        self._items.clear()
        self._wake()

    def __aiter__(self) -> "Pipe[T]":
        return self

    async def __anext__(self) -> T:
        while not self._items:
            if self._ended:
                raise StopAsyncIteration
            await self._wait()
        item = self._items.popleft()
        self._wake()
        return item

    async def _wait(self) -> None:
        self._waiting = asyncio.get_running_loop().create_future()
        await self._waiting

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


class Upload:
    """A text that is written while it comes, by a task of its own. A backend that takes whole texts gets a spool's."""

    def __init__(self, backend: Writer, path: str) -> None:
        self.length = 0
        self._pipe: Pipe[bytes] = Pipe()
        self._held: list[str] = []
        self._size = 0
        self._task = asyncio.ensure_future(self._write(backend, path))
        self._task.add_done_callback(self._pipe.abandon)

    async def write(self, text: str) -> None:
        """Take more of the text."""
        self.length += len(text)
        self._held.append(text)
        self._size += len(text)
        if self._size >= _CHUNK:
            await self._flush()

    async def close(self) -> None:
        """Wait until all is written; raise what kept it from that."""
        if self._held:
            await self._flush()
        self._pipe.end()
        await until_done(self._task)

    async def abort(self) -> None:
        """Give up: nothing is left of it."""
        self._task.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await wait_to_the_end(self._task)

    async def _flush(self) -> None:
        data = encode_text("".join(self._held))
        self._held, self._size = [], 0
        await self._pipe.put(data)

    async def _write(self, backend: Any, path: str) -> None:
        if isinstance(backend, FileBackend):
            await backend.write_stream(path, self._pipe)
            return
        with tempfile.TemporaryFile() as spool:
            async with closing(self._pipe) as chunks:
                async for data in chunks:
                    spool.write(data)
            spool.seek(0)
            await settle(backend.write(path, spool.read().decode("utf-8", "surrogatepass")))
