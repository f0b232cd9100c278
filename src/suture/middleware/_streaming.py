"""Truncating output while it comes: the beginning goes on at once, the rest straight to the backend.

Nothing but the beginning and one notice's length is ever held in memory.
"""

from collections.abc import AsyncIterator
from typing import Any, Protocol

from msgspec.structs import replace

from suture.kernel import closing
from suture.messages import TextPart, ToolResult

__all__ = ["Sink", "Tee", "stream_truncated"]


class Sink(Protocol):
    """Where the whole output goes once it is too long."""

    async def notice_length(self, head: str) -> int:
        """Return how long the notice will be; `head` is how the output begins."""
        ...

    async def save(self, texts: AsyncIterator[str]) -> None:
        """Save a text as it comes."""
        ...

    def notice(self, failure: Exception | None) -> str:
        """Return what is said in the place of the rest; `failure` is what the tool ended with."""
        ...


async def stream_truncated(source: AsyncIterator[ToolResult], limit: int, sink: Sink) -> AsyncIterator[ToolResult]:
    """Pass on the first `limit` characters of text and all that is no text; save the whole if there is more.

    A little past the limit is held back: an output that ends there passes whole, because a notice is no shorter.
    """
    flow = _Flow(source, limit)
    async with closing(source):
        while not flow.ended and (not flow.held or flow.held_length <= await sink.notice_length(flow.head_text)):
            piece = await flow.take()
            if piece is not None:
                yield piece
        if flow.held and flow.held_length > await sink.notice_length(flow.head_text):
            async with closing(flow.everything()) as texts:
                await sink.save(texts)
            await flow.drain()
            yield replace(ToolResult((*flow.media, TextPart(sink.notice(flow.failure)))), **flow.flags)
        elif flow.held:
            yield replace(ToolResult((TextPart("".join(flow.held)),)), **flow.flags)
        flow.raise_failure()


class _Flow:
    """A stream of results, read bit by bit; an error of the tool's own is kept until all is said."""

    def __init__(self, source: AsyncIterator[ToolResult], limit: int) -> None:
        self._source, self._limit = source, limit
        self.head: list[str] = []
        self.held: list[str] = []
        self.sent = self.held_length = 0
        self.media: list[Any] = []
        self.flags: dict[str, Any] = {}
        self.ended = False
        self.failure: Exception | None = None

    @property
    def head_text(self) -> str:
        """The text that was passed on."""
        return "".join(self.head)

    async def take(self) -> ToolResult | None:
        """Read one piece; return what of it may pass. Text beyond the limit is held back."""
        piece = await self._next()
        return self._split(piece) if piece is not None else None

    async def everything(self) -> AsyncIterator[str]:
        """Yield the text from its beginning, and then as it comes."""
        for text in (*self.head, *self.held):
            yield text
        self.head, self.held = [], []
        text = await self._more()
        while text is not None:
            yield text
            text = await self._more()

    async def drain(self) -> None:
        """Let the tool come to its end, even where its output can no longer be saved."""
        while await self._more() is not None:
            pass

    def raise_failure(self) -> None:
        """Raise what the tool ended with."""
        if self.failure is not None:
            raise self.failure

    async def _more(self) -> str | None:
        """Return the text of the next piece; all that is no text is kept for the end."""
        piece = await self._next()
        if piece is None:
            return None
        self._note_flags(piece)
        self.media += [part for part in piece.parts if not isinstance(part, TextPart)]
        return "".join([part.text for part in piece.parts if isinstance(part, TextPart)])

    async def _next(self) -> ToolResult | None:
        if self.ended:
            return None
        try:
            return await anext(self._source)
        except StopAsyncIteration:
            self.ended = True
        except Exception as error:  # noqa: BLE001 - kept until what came before it is said
            self.ended, self.failure = True, error
        return None

    def _split(self, piece: ToolResult) -> ToolResult | None:
        """Return what of `piece` may pass; text beyond the limit is held back."""
        passed: list[Any] = []
        for part in piece.parts:
            if not isinstance(part, TextPart):
                passed.append(part)
                continue
            room = self._limit - self.sent
            text, rest = (part.text, "") if len(part.text) <= room else (part.text[:room], part.text[room:])
            if rest:
                self.held.append(rest)
                self.held_length += len(rest)
            if text or not part.text:
                self.head.append(text)
                self.sent += len(text)
                passed.append(part if not rest else replace(part, text=text))
        if not self.held:
            return piece
        self._note_flags(piece)
        return replace(piece, parts=passed) if passed else None

    def _note_flags(self, piece: ToolResult) -> None:
        """Remember what a piece says of the whole, for the last one."""
        if piece.is_error or piece.return_directly or piece.extra:
            flags = self.flags
            flags["is_error"] = flags.get("is_error", False) or piece.is_error
            flags["return_directly"] = flags.get("return_directly", False) or piece.return_directly
            flags["extra"] = {**flags.get("extra", {}), **piece.extra}


class Tee:
    """A stream for two readers: a handler looks first, and afterwards everything can be read from the beginning."""

    def __init__(self, source: AsyncIterator[ToolResult]) -> None:
        self._source = source
        self._seen: list[ToolResult] = []
        self._failure: Exception | None = None
        self._ended = False

    async def look(self) -> AsyncIterator[ToolResult]:
        """Yield the stream, remembering it."""
        for piece in self._seen:
            yield piece
        while not self._ended:
            try:
                piece = await anext(self._source)
            except StopAsyncIteration:
                self._ended = True
                return
            except Exception as error:
                self._ended, self._failure = True, error
                raise
            self._seen.append(piece)
            yield piece

    async def read(self) -> AsyncIterator[ToolResult]:
        """Yield the stream from its beginning, forgetting it on the way."""
        while self._seen:
            yield self._seen.pop(0)
        if self._failure is not None:
            raise self._failure
        if not self._ended:
            async with closing(self._source) as source:
                async for piece in source:
                    yield piece

    async def close(self) -> None:
        """Close the source."""
        async with closing(self._source):
            pass
