"""`send`: a stream into a file, in blocks, whole or not at all; the same for every backend."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, Protocol

from suture.errors import ConfigError

__all__ = ["Upload", "send"]


class Upload(Protocol):
    """A file that is being written. None of its methods is through before what it began is, cancelled or not."""

    async def begin(self) -> None:
        """Check the path: raise `PathTakenError` if it is known to be taken. Nothing is made yet."""
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


async def send(chunks: AsyncIterable[bytes], upload: Upload, size: int) -> int:
    """Write a stream in blocks of `size` bytes; return how many bytes it had. If it raises, nothing is left."""
    written = 0
    try:
        async with aclosing(_blocks(chunks, upload, size)) as blocks:
            async for block in blocks:
                if len(block) == size:
                    await upload.add(block)
                    # A cancellation that came while it was written takes effect here.
                    await asyncio.sleep(0)
                else:
                    await upload.commit(block)
                written += len(block)
    except BaseException:
        with suppress(Exception):
            await upload.abort()
        raise
    return written


async def _blocks(chunks: AsyncIterable[bytes], upload: Upload, size: int) -> AsyncGenerator[bytearray, None]:
    """Yield what comes in blocks of `size` bytes, and then a last one that is shorter, if need be empty."""
    block, filled = bytearray(size), 0
    async with _closing(chunks) as source:
        await upload.begin()
        async for chunk in source:
            if not isinstance(chunk, bytes):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ConfigError(f"a stream to be written yields bytes, not {type(chunk).__name__}")
            start = 0
            with memoryview(chunk) as given, memoryview(block) as room:
                while start < len(given):
                    count = min(size - filled, len(given) - start)
                    room[filled : filled + count] = given[start : start + count]
                    start, filled = start + count, filled + count
                    if filled == size:
                        yield block
                        filled = 0
    yield block[:filled]


@asynccontextmanager
async def _closing(chunks: AsyncIterable[bytes]) -> AsyncGenerator[AsyncIterator[bytes], None]:
    """Iterate, and close what can be closed."""
    given: Any = chunks
    if not hasattr(given, "__aiter__"):
        raise ConfigError(f"what is to be written is an async iterable of bytes, not {type(given).__name__}")
    source = aiter(chunks)
    try:
        yield source
    finally:
        close = getattr(source, "aclose", None)
        if close is not None:
            await close()
