"""The tools that read what was saved: bounded windows on files of any size, and on nothing but this history's own."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from functools import lru_cache, partial
from typing import Any, Protocol, cast

from msgspec.structs import replace

from suture.kernel import closing
from suture.messages import TextPart, ToolArgument, ToolResult
from suture.middleware._matching import GrepView, LineSearch, Matches, Refused, SearchView, checked, fitting
from suture.middleware._notebook import Notebook
from suture.middleware._windows import MARGIN, CharWindow, LineWindow, TailWindow, boundary, counted, plain, shown
from suture.reduction import Saved, Writer, folded
from suture.stores import FileBackend, PathNotFoundError
from suture.tools import Injected, Tool, tool

__all__ = ["reading_tools"]

_LEAST = MARGIN + 32
"""How many characters a result may always have: fewer cannot hold a part of a line and how to go on."""
_BIT = 32 * 1024
"""How many bytes are looked at before others may run."""
_MOST = 10**12
"""Numbers beyond this one mean this one."""
_LINES = 200
_MOST_CONTEXT = 20
_PHASES = {"trunc": "truncated", "clear": "cleared"}
_NOTHING = "[nothing was saved in this conversation so far]"


def reading_tools(
    book: Callable[[], Notebook], backend_of: Callable[[str], Writer | None], read_name: str, limit: int
) -> tuple[Tool[..., Any], ...]:
    """Return the tools that read what the history at hand has saved, `limit` characters at once.

    >>> tools = reading_tools(lambda: Notebook(...), lambda name: None, "read_file", 20_000)
    >>> [tool.name for tool in tools]
    ['read_file', 'ls', 'grep']
    """
    shelf = _Shelf(book, backend_of, read_name, max(limit, _LEAST))
    return tuple(_bound(each, shelf) for each in _unbound(read_name))


@lru_cache(maxsize=16)
def _unbound(read_name: str) -> list[Tool[..., Any]]:
    """Return the tools as all middlewares share them: reading signatures takes longer than a short run."""
    read = tool(_read_file, name=read_name, idempotent=True)
    others = [tool(_ls, name="ls", idempotent=True), tool(_grep, name="grep", idempotent=True)]
    return [read, *[each for each in others if each.name != read_name]]


def _bound(shared: Tool[..., Any], shelf: "_Shelf") -> Tool[..., Any]:
    """Return a tool that reads from one shelf."""
    endpoint = shared.endpoint

    async def call(argument: ToolArgument, *, dependencies: Sequence[object] = (), **options: Any) -> ToolResult:
        try:
            return await endpoint(argument, dependencies=(shelf, *dependencies), **options)
        except Refused as refusal:
            return ToolResult((TextPart(str(refusal)[: shelf.most_of(shared.name)]),), is_error=True)

    return replace(shared, endpoint=call, function=partial(cast("Callable[..., Any]", shared.function), shelf))


class _View(Protocol):
    """What looks at a file bit by bit."""

    def feed(self, data: bytes, /) -> bool:
        """Take the next bytes, which hold whole characters; tell whether more are wanted."""
        ...

    def show(self, *, ended: bool) -> str:
        """Return what was seen; `ended` tells whether the file was read to its end."""
        ...


class _Shelf:
    """What the history at hand has saved. Nothing else can be named."""

    def __init__(
        self,
        book: Callable[[], Notebook],
        backend_of: Callable[[str], Writer | None],
        read_name: str,
        most: int,
    ) -> None:
        self._book, self._backend_of = book, backend_of
        self.read_name, self.most = read_name, most

    def most_of(self, name: str) -> int:
        """Return how long a result of a tool may be so that it is not truncated in its turn."""
        settings = self._book().settings
        return min(self.most, settings.max_length_for_trunc) if settings.truncates(name) else self.most

    def find(self, path: str) -> Saved:
        """Return what was saved at a path; a text that merely looks like a path is none."""
        saved = self._book().recorded().get(folded(path))
        if saved is None:
            raise Refused(f"no output of this conversation was saved at {shown(path)}; ls lists what was")
        return saved

    def all(self) -> list[Saved]:
        """Return all that was saved, by path."""
        return sorted(self._book().recorded().values(), key=lambda saved: saved.path)

    async def look(self, saved: Saved, view: _View) -> str:
        """Let a view look at a file until it has seen enough."""
        async with closing(self._bits(saved)) as bits:
            async for bit in bits:
                if not view.feed(bit):
                    return view.show(ended=False)
        return view.show(ended=True)

    async def _bits(self, saved: Saved) -> AsyncIterator[bytes]:
        """Yield a file in small bits that hold whole characters."""
        backend = self._backend_of(saved.name)
        if not isinstance(backend, FileBackend):
            raise Refused(f"{shown(saved.path)} was saved where it can be written only; no tool here can read it")
        try:
            async with closing(_in_bits(backend.read(saved.path))) as bits:
                async for bit in bits:
                    yield bit
        except PathNotFoundError as error:
            raise Refused(f"{shown(saved.path)} is gone: it was deleted, or has expired") from error
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            raise Refused(f"{shown(saved.path)} cannot be read just now: {why}") from error


async def _in_bits(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    held = b""
    async with closing(chunks) as source:
        async for chunk in source:
            for start in range(0, len(chunk), _BIT):
                data = held + chunk[start : start + _BIT]
                end = boundary(data)
                held = data[end:]
                if end:
                    yield data[:end]
                await asyncio.sleep(0)
    if held:
        yield held


async def _read_file(  # noqa: PLR0913, PLR0917 - all that a model may say, by name
    shelf: Injected[_Shelf],
    path: str,
    offset: int = 1,
    limit: int = _LINES,
    tail: int = 0,
    char_offset: int | None = None,
    char_limit: int | None = None,
    search: str | None = None,
) -> ToolResult:
    """Read tool output that was saved, as numbered lines. The last line of the result says how to go on.

    Args:
        path: Where it was saved, as a notice or ls says.
        offset: The first line to read, from 1.
        limit: How many lines to read.
        tail: Read so many of the last lines instead.
        char_offset: Read by characters instead, leaving out so many at the beginning; for endless lines.
        char_limit: How many characters to read.
        search: Show only lines that contain this text, from offset on.
    """
    room, first = shelf.most - MARGIN, _bounded(offset, 1)
    count = _bounded(limit, 1) if limit > 0 else _LINES
    saved = shelf.find(path)
    view: _View
    if char_offset is not None or char_limit is not None:
        most = room if char_limit is None or char_limit <= 0 else min(char_limit, room)
        view = CharWindow(_bounded(char_offset or 0, 0), most)
    elif search and tail > 0:
        raise Refused("tail and search do not go together; give one of them")
    elif search:
        view = SearchView(checked(search), first, count, room)
    elif tail > 0:
        view = TailWindow(_bounded(tail, 1), room)
    else:
        view = LineWindow(first, count, room)
    return _result(await shelf.look(saved, view), shelf.most)


async def _ls(shelf: Injected[_Shelf], offset: int = 1) -> ToolResult:
    """List the tool output of this conversation that was saved: path, tool, length, and why it was saved.

    Args:
        offset: The first entry to list, from 1.
    """
    most = shelf.most_of("ls")
    return _result(_listed(shelf.all(), _bounded(offset, 1), _room(most)), most)


async def _grep(
    shelf: Injected[_Shelf],
    pattern: str,
    path: str | None = None,
    ignore_case: bool = False,  # noqa: FBT001, FBT002 - a model passes it by name
    context: int = 0,
) -> ToolResult:
    """Find lines in tool output that was saved; gives path:line:text.

    Args:
        pattern: The text to look for; plain text, not a regular expression.
        path: Where to look; in all that was saved, if not given.
        ignore_case: Whether upper and lower case are the same.
        context: How many lines to show around each match.
    """
    most, near = shelf.most_of("grep"), _bounded(context, 0, _MOST_CONTEXT)
    matches = Matches(_room(most), shelf.read_name, grouped=near > 0)
    wanted = checked(pattern)
    files = [shelf.find(path)] if path else shelf.all()
    for saved in files:
        search = LineSearch(wanted, ignore_case=ignore_case, context=near, width=_room(most) // 2)
        try:
            await shelf.look(saved, GrepView(saved.path, search, matches))
        except Refused as refusal:
            if path:
                raise
            matches.problems.append(str(refusal))
        if matches.uncounted:
            break
    return _result(matches.show(wanted, len(files)) if files else _NOTHING, most)


def _listed(files: Sequence[Saved], first: int, room: int) -> str:
    """Return a list of what was saved, from one entry on."""
    if not files:
        return _NOTHING
    if first > len(files):
        return f"[offset {first} is behind the end; {counted(len(files), 'output')} saved]"
    rows: list[str] = []
    left = room
    for saved in files[first - 1 :]:
        why = _PHASES.get(saved.phase, saved.phase)
        row = f"{plain(saved.path)}  {plain(saved.name)}  {counted(saved.length, 'character')}  {plain(why)}\n"
        if rows and len(row) > left:
            break
        rows.append(fitting(row, left))
        left -= len(row)
    last = first + len(rows) - 1
    if last == len(files):
        return f"{''.join(rows)}[{counted(last, 'output')} saved]"
    return f"{''.join(rows)}[{last} of {len(files)}; go on with offset={last + 1}]"


def _result(text: str, most: int) -> ToolResult:
    """Return a result that is not longer than may be, whatever happens."""
    return ToolResult((TextPart(text[:most]),))


def _bounded(number: int, least: int, most: int = _MOST) -> int:
    return max(least, min(number, most))


def _room(most: int) -> int:
    """Return what is left for rows; of a very short result the rows matter more than what is said of them."""
    return max(most - MARGIN, most // 2)
