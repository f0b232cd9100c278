"""Output on its way to a backend: whatever that can do, and whatever goes wrong."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from typing import IO, Any

from suture.errors import OffloadError
from suture.kernel import closing, settled
from suture.messages import ToolContext
from suture.reduction import Save, Writer
from suture.stores import FileBackend, PathTakenError, encode_text

__all__ = ["ATTEMPTS", "is_taken", "save_all", "save_stream", "unsaved"]

ATTEMPTS = 8
"""How many paths are tried where each of them is taken."""


async def save_all(saves: Sequence[Save], backend_of: Callable[[str], Writer | None]) -> None:
    """Write all of `saves`, or none: what was written before one failed is deleted again, where the backend can.

    Raises `PathTakenError` where a path holds something else already, `OffloadError` where one cannot be written.
    """
    written: list[Save] = []
    try:
        for save in saves:
            backend = backend_of(save.name)
            there = backend is not None and await is_taken(backend, save.path)
            await _write(backend, save)
            if not there:  # what was there before is another history's, too
                written.append(save)
    except BaseException:
        for save in written:
            await _delete(backend_of(save.name), save.path)
        raise


async def _write(backend: Writer | None, save: Save) -> None:
    if backend is None:
        raise OffloadError([(save.name, save.call_id)], "there is no backend for it")
    try:
        await settled(backend.write(save.path, save.content))
    except PathTakenError:
        raise
    except Exception as error:
        raise unsaved(ToolContext(save.name, save.call_id), error) from error


async def _delete(backend: Any, path: str) -> None:
    """Delete what was written for nothing; whoever only writes cannot."""
    delete = getattr(backend, "delete", None)
    if delete is not None:
        with suppress(Exception):
            await asyncio.shield(asyncio.ensure_future(settled(delete(path))))


async def is_taken(backend: Writer, path: str) -> bool:
    """Tell whether a path holds something, if the backend can say so."""
    if not isinstance(backend, FileBackend):
        return False
    try:
        await backend.size(path)
    except Exception:  # noqa: BLE001 - nothing there, or nobody can say: writing will tell
        return False
    return True


async def save_stream(backend: Writer, path: str, texts: AsyncIterator[str]) -> int:
    """Write a text as it comes; return its length. A backend that takes only whole texts gets it from a spool."""
    length = 0

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal length
        async with closing(texts) as coming:
            async for text in coming:
                length += len(text)
                yield encode_text(text)

    if isinstance(backend, FileBackend):
        async with closing(chunks()) as coming:
            await backend.write_stream(path, coming)
        return length
    import tempfile  # noqa: PLC0415 - only a backend that cannot stream pays for it

    with tempfile.TemporaryFile() as spool:
        async with closing(chunks()) as coming:
            async for chunk in coming:
                spool.write(chunk)
        await settled(backend.write(path, _read_back(spool)))
    return length


def _read_back(spool: IO[bytes]) -> str:
    spool.seek(0)
    return spool.read().decode("utf-8", "surrogatepass")


def unsaved(context: ToolContext, error: Exception) -> OffloadError:
    """Return the error that says whose output was not saved, and why."""
    if isinstance(error, OffloadError):
        return error
    told = OffloadError([(context.name, context.call_id)], str(error)[:1_000] or type(error).__name__)
    told.__cause__ = error
    return told
