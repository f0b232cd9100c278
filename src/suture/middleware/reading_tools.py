r"""The tools that read saved output: bounded windows on files of any size, but only on files of this history.

Lines end at `\n`; everything else, including `\r`, belongs to a line. Every result says how to continue; following
that reads the file exactly. Files are read piece by piece, and only what is shown is kept in memory.
"""

import asyncio
import re
from bisect import bisect
from collections import ChainMap
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from itertools import accumulate
from typing import Annotated, Any, cast

from suture._aio import closing
from suture._text import visible
from suture.messages import TextPart, ToolResult
from suture.middleware.record import RECORDS, BackendOf, Record, is_taken
from suture.reduction import Saved
from suture.reduction.texts import folded
from suture.stores import FileBackend, PathNotFoundError
from suture.tools import Tool, tool

_MARGIN = 128
"""The greatest length of the text that a window adds to what it shows."""
_LEAST = _MARGIN + 32
"""How many characters a result may always have: with fewer, a part of a line and the hint to continue do not fit."""
_BIT = 32 * 1024
"""How many bytes are read before other tasks may run."""
_AHEAD = 16 * 2**20
"""How many characters are read after a window, to find out how long the file is."""
_MOST = 10**12
"""Larger numbers are reduced to this one."""
_LINES = 200
_WIDTH = 400
"""How many characters of a line a search shows; of a longer line, those around the match."""
_LONGEST_PATTERN = 1_000
_PHASES = {"trunc": "truncated", "clear": "cleared"}
_NOTHING = "[nothing was saved in this conversation so far]"
_EMPTY = "[the file is empty]"
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")


# What models are told stands in no docstring, which `python -OO` would remove.
_READ = "Read tool output that was saved, as numbered lines. The last line of the result says how to go on."
_LIST = "List the tool output of this conversation that was saved: path, tool, length, and why it was saved."
_GREP = "Find lines in tool output that was saved; gives path:line:text."


def reading_tools(
    record: Callable[[], Record], backend_of: BackendOf, read_name: str, limit: int
) -> tuple[Tool[..., Any], ...]:
    """Return the tools that read what the current history has saved, `limit` characters at a time.

    >>> tools = reading_tools(lambda: ..., lambda name: None, "read_file", 20_000)
    >>> [tool.name for tool in tools]
    ['read_file', 'ls', 'grep']
    """
    shelf = _Shelf(record, backend_of, read_name, max(limit, _LEAST))
    read = tool(shelf.read_file, name=read_name, description=_READ, idempotent=True)
    others = [
        tool(shelf.ls, name="ls", description=_LIST, idempotent=True),
        tool(shelf.grep, name="grep", description=_GREP, idempotent=True),
    ]
    return (read, *[each for each in others if each.name != read_name])


class _Refused(Exception):
    """The request cannot be fulfilled; the text is for the model."""


class _Shelf:
    """The saved output of the current history; no other file can be read."""

    def __init__(self, record: Callable[[], Record], backend_of: BackendOf, read_name: str, most: int) -> None:
        self._record, self._backend_of = record, backend_of
        self._read_name, self._most = read_name, most

    async def read_file(
        self,
        path: Annotated[str, "Where it was saved, as a notice or ls says."],
        offset: Annotated[int, "The first line to read, from 1."] = 1,
        limit: Annotated[int, "How many lines to read."] = _LINES,
        tail: Annotated[int, "Read so many of the last lines instead."] = 0,
        char_offset: Annotated[
            int | None, "Read by characters instead, leaving out so many at the beginning; for endless lines."
        ] = None,
        char_limit: Annotated[int | None, "How many characters to read."] = None,
        search: Annotated[str | None, "Show only lines that contain this text, from offset on."] = None,
    ) -> ToolResult:
        most, first = self._most_of(self._read_name), _bound(offset, 1)
        room = max(most - _MARGIN, _LEAST - _MARGIN)
        count = _bound(limit, 1) if limit > 0 else _LINES

        async def window() -> str:
            texts = self._texts(self._find(path))
            if char_offset is not None or char_limit is not None:
                wanted = room if char_limit is None or char_limit <= 0 else min(char_limit, room)
                return await _show_characters(texts, _bound(char_offset or 0, 0), wanted)
            if search and tail > 0:
                raise _Refused("tail and search do not go together; give one of them")
            if search:
                found = _LineSearch(_checked(search), first=first, width=room // 2)
                return await _show_matches(found, texts, count, room)
            if tail > 0:
                return await _show_tail(texts, _bound(tail, 1), room)
            return await _show_lines(texts, first, count, room)

        return await _answer(window(), most)

    async def ls(self, offset: Annotated[int, "The first entry to list, from 1."] = 1) -> ToolResult:
        most = self._most_of("ls")
        return ToolResult((TextPart(_list(self._all(), _bound(offset, 1), _room(most))[:most]),))

    async def grep(
        self,
        pattern: Annotated[str, "The text to look for; plain text, not a regular expression."],
        path: Annotated[str | None, "Where to look; in all that was saved, if not given."] = None,
        ignore_case: Annotated[bool, "Whether upper and lower case are the same."] = False,  # noqa: FBT002 - passed by name
    ) -> ToolResult:
        most, problems = self._most_of("grep"), list[str]()

        async def rows(files: Sequence[Saved], wanted: str) -> AsyncIterator[str]:
            for saved in files:
                search = _LineSearch(wanted, ignore_case=ignore_case, width=_room(most) // 2)
                try:
                    async with closing(search.rows(self._texts(saved))) as found:
                        async for number, line in found:
                            yield f"{visible(saved.path)}:{number}:{line}\n"
                except _Refused as refusal:
                    if path:
                        raise
                    problems.append(str(refusal))

        async def window() -> str:
            wanted, files = _checked(pattern), [self._find(path)] if path else self._all()
            shown, more = await _take_rows(rows(files, wanted), _MOST, _room(most))
            if not files:
                return _NOTHING
            if len(problems) == len(files):
                raise _Refused(f"none of {_count(len(files), 'file')} can be read: {problems[0]}")
            unread = f"; {_count(len(problems), 'file')} could not be read: " if problems else ""
            unread += "; ".join(problems[:3])
            told = f"{''.join(shown)}[{_count(len(shown), 'matching line')}"
            if more:
                return f"{told}, and more; {self._read_name} with search and offset shows them{unread}]"
            where = _count(len(files) - len(problems), "file")
            return f"{told} in {where}{unread}]" if shown else f"[no line contains {_quote(wanted)} in {where}{unread}]"

        return await _answer(window(), most)

    def _most_of(self, name: str) -> int:
        """Return how long a result of a tool may be without being truncated itself."""
        settings = [record.settings for record, _ in self._records()]
        return min([self._most, *[each.max_length_for_trunc for each in settings if each.truncates(name)]])

    def _records(self) -> list[tuple[Record, BackendOf]]:
        """Return the records of this reader's middleware and then of others; a model sees no difference."""
        own = self._record()
        return [(own, self._backend_of), *[each for each in own.run().cache.get(RECORDS, ()) if each[0] is not own]]

    def _recorded(self) -> Mapping[str, Saved]:
        """Return all saved output, by folded path; that of the reader's own middleware takes precedence."""
        return ChainMap(*[cast("dict[str, Saved]", record.recorded()) for record, _ in self._records()])

    def _find(self, path: str) -> Saved:
        """Return the saved output at a path; refuse any other path."""
        saved = self._recorded().get(folded(path))
        if saved is None:
            raise _Refused(f"no output of this conversation was saved at {_quote(path)}; ls lists what was")
        return saved

    def _all(self) -> list[Saved]:
        """Return all that was saved, by path."""
        return sorted(self._recorded().values(), key=lambda saved: saved.path)

    async def _texts(self, saved: Saved) -> AsyncIterator[str]:
        """Yield a file piece by piece, as text; other tasks run in between."""
        found = [each for _, backend_of in self._records() if (each := backend_of(saved.name)) is not None]
        backends = [backend for backend in found if isinstance(backend, FileBackend)]
        gone = f"{_quote(saved.path)} is gone: it was deleted, or has expired"
        if len(backends) < len(found) or not found:
            gone = f"{_quote(saved.path)} was saved where it can be written only; no tool here can read it"
        if not backends:
            raise _Refused(gone)
        rest = b""
        try:
            others = [each for each in backends[1:] if await is_taken(each, saved.path)]
            is_own = not others or await is_taken(backends[0], saved.path)
            backend = backends[0] if is_own else others[0]
            async with closing(backend.read(saved.path)) as chunks:
                async for chunk in chunks:
                    for start in range(0, len(chunk), _BIT):
                        data = rest + chunk[start : start + _BIT]
                        end = _boundary(data)
                        rest = data[end:]
                        if end:
                            yield _decode(data[:end])
                        await asyncio.sleep(0)
        except PathNotFoundError as error:
            raise _Refused(gone) from error
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            raise _Refused(f"{_quote(saved.path)} cannot be read just now: {why}") from error
        if rest:
            yield _decode(rest)


async def _answer(work: Awaitable[str], most: int) -> ToolResult:
    """Return a result of at most `most` characters; a refusal becomes an error result."""
    try:
        return ToolResult((TextPart((await work)[:most]),))
    except _Refused as refusal:
        return ToolResult((TextPart(str(refusal)[:most]),), is_error=True)


# Windows: a stream of texts comes in, a text of bounded length comes out


def _count_lines(newlines: int, last: str) -> tuple[int, str]:
    """Return how many lines a file has that ends in `last`, and the text for its end."""
    total = newlines + (last != "\n")
    return total, f"end of file, {_count(total, 'line')}{'' if last == chr(10) else ', no final newline'}"


async def _show_lines(texts: AsyncIterator[str], first: int, count: int, room: int) -> str:
    """Return `count` lines from line `first` on, numbered, at most `room` characters."""
    skip, kept, last = first - 1, "", "\n"
    before = ahead = newlines = 0
    async with closing(texts) as bits:
        async for text in bits:
            found = text.count("\n")
            newlines, last = newlines + found, text[-1]
            if found < skip:
                skip -= found
                before += len(text)
                continue
            if skip:
                *_, rest = text.split("\n", skip)
                before += len(text) - len(rest)
                text, skip = rest, 0  # noqa: PLW2901 - what is left of it
            if len(kept) < room and kept.count("\n") < count:  # a line of which only a part is kept never fits
                kept += text
            else:
                ahead += len(text)
            if ahead >= _AHEAD:
                break
    total, end = _count_lines(newlines, last)
    if not total:
        return _EMPTY
    if not kept:
        return f"[offset {first} is behind the end; the file has {_count(total, 'line')}]"
    found_lines = kept.removesuffix("\n").split("\n")[:count]
    numbered = [_number(number, line) for number, line in enumerate(found_lines, first)]
    rows = numbered[: bisect(list(accumulate(map(len, numbered))), room)]
    until, is_whole = first + len(rows) - 1, ahead < _AHEAD
    if not rows:
        prefix = len(_number(first, ""))
        on = f"[line {first} goes on; read it with char_offset={before + room - prefix}"
        skipping = "" if is_whole and first == total else f", skip it with offset={first + 1}"
        return f"{_number(first, found_lines[0][: room - prefix])}{on}{skipping}]"
    if is_whole and until == total:
        return f"{''.join(rows)}[{end}]"
    of = f" of {total}" if is_whole else ", there is more"
    return f"{''.join(rows)}[line {until}{of}; go on with offset={until + 1}]"


async def _show_tail(texts: AsyncIterator[str], count: int, room: int) -> str:
    """Return the last `count` lines, numbered, at most `room` characters."""
    kept, last = "", "\n"
    start = length = newlines = 0
    async with closing(texts) as bits:
        async for text in bits:
            begin = text.rfind("\n", 0, -1) + 1
            if begin or last == "\n":
                start = length + begin
            newlines, last = newlines + text.count("\n"), text[-1]
            length += len(text)
            kept = (kept + text)[-room - 2 :]  # no row fits of a line that this cuts
    total, end = _count_lines(newlines, last)
    if not total:
        return _EMPTY
    found = kept.removesuffix("\n").split("\n")
    first = max(1, total - count + 1)
    rows: list[str] = []
    left, number = room, total
    while number >= first and len(row := _number(number, found[number - total - 1])) <= left:
        rows.append(row)
        left -= len(row)
        number -= 1
    if number < first:
        more = ""
    elif rows:
        more = f"; for more begin with offset={first}"
    else:
        rows.append(_number(total, found[-1][len(_number(total, "")) - room :]))
        more = f"; line {total} is cut, read it with char_offset={start}"
    return f"{''.join(reversed(rows))}[{end}{more}]"


async def _show_characters(texts: AsyncIterator[str], first: int, count: int) -> str:
    """Return `count` characters, without the first `first` ones; line ends are characters, too."""
    kept, taken, length, ahead = list[str](), 0, 0, 0
    async with closing(texts) as bits:
        async for text in bits:
            start = max(0, first - length)
            length += len(text)
            if taken == count:
                ahead += len(text)
            elif start < len(text):
                kept.append(text[start : start + count - taken])
                taken += len(kept[-1])
            if ahead >= _AHEAD:
                break
    if not length:
        return _EMPTY
    if not taken:
        return f"[char_offset {first} is behind the end; the file has {_count(length, 'character')}]"
    end, is_whole = first + taken, ahead < _AHEAD
    head = f"[characters {first} to {end}]\n{''.join(kept)}\n"
    if is_whole and end == length:
        return f"{head}[end of file, {_count(end, 'character')}]"
    of = f" of {length} characters" if is_whole else " characters, there is more"
    return f"{head}[{end}{of}; go on with char_offset={end}]"


# Searches


class _LineSearch:
    """Finds the lines that hold a text, from line `first` on.

    Of a line longer than `width` only what surrounds the first match is shown, and no more of it is kept.
    """

    def __init__(self, pattern: str, *, ignore_case: bool = False, first: int = 1, width: int = _WIDTH) -> None:
        # No regular expression: some patterns, in any case, would keep one busy for minutes.
        self._fold = _fold if ignore_case else str
        self._pattern = self._fold(_decode(pattern.encode("utf-8", "surrogatepass")))
        self.pattern, self.first, self._width = pattern, first, min(width, _WIDTH)
        self._start = self._length = 0
        """How many characters are before the line at hand, and in it so far."""
        self._held = self._row = ""
        """The end of the line, as much as may be shown of it; and its row, once that is known."""
        self.lines = 0
        """How many lines there have been so far."""

    async def rows(self, texts: AsyncIterator[str]) -> AsyncIterator[tuple[int, str]]:
        """Yield the number and the text of each line that is found."""
        async with closing(texts) as bits:
            async for text in bits:
                for row in self._feed(text):
                    yield row
        for row in self._close() if self._length else ():
            yield row

    def _find(self, text: str) -> int:
        return self._fold(text).find(self._pattern)

    def _feed(self, text: str) -> list[tuple[int, str]]:
        beginning, *lines = text.split("\n")
        self._extend(beginning)
        if not lines:
            return []
        rows, end = self._close(), lines.pop()
        if self.lines + len(lines) < self.first or self._find(text) < 0:  # none of them is to be shown
            self.lines += len(lines)
            self._start += sum(map(len, lines)) + len(lines)
            lines = []
        for line in lines:
            self._extend(line)
            rows += self._close()
        self._extend(end)
        return rows

    def _extend(self, text: str) -> None:
        """Take more of the line. Of a long one the end is kept, since a match may be cut in two."""
        self._length += len(text)
        if self._row or self.lines + 1 < self.first:
            return
        self._held += text
        if self._length > self._width:
            found = self._find(self._held)
            if found >= 0 and found + len(self._pattern) + self._width // 2 < len(self._held):
                self._row = self._cut(found)
            keep = found if found >= 0 else len(self._held) - len(self._pattern)
            self._held = self._held[max(0, keep - self._width // 2) :]

    def _cut(self, found: int) -> str:
        """Return what surrounds a match in the text that is held."""
        before, side = self._length - len(self._held), self._width // 2
        begin, end = max(0, found - side), found + len(self._pattern) + side
        left, right = "…" if before + begin else "", "…" if end < len(self._held) else ""
        place = self._start + before + found
        return f"{left}{self._held[begin:end]}{right} [cut; the match is at char_offset={place}]"

    def _close(self) -> list[tuple[int, str]]:
        """End the line; return it if it is to be shown."""
        row, found = self._row, -1 if self._row else self._find(self._held)
        if found >= 0:
            row = self._held if self._length <= self._width else self._cut(found)
        self.lines += 1
        self._start += self._length + 1
        self._length, self._held, self._row = 0, "", ""
        return [(self.lines, row)] if row else []


async def _take_rows(rows: AsyncIterator[str], count: int, room: int) -> tuple[list[str], str]:
    """Return the rows that there is room for, `count` at most, and the next one, if any."""
    shown: list[str] = []
    async with closing(rows) as found:
        async for row in found:
            if shown and (len(shown) == count or len(row) > room):
                return shown, row
            shown.append(_fit(row, room))
            room -= len(shown[-1])
    return shown, ""


async def _show_matches(search: _LineSearch, texts: AsyncIterator[str], count: int, room: int) -> str:
    """Return the lines of one file that are found, numbered, and how to go on."""

    async def rows() -> AsyncIterator[str]:
        async with closing(search.rows(texts)) as found:
            async for number, line in found:
                yield _number(number, line)

    shown, more = await _take_rows(rows(), count, room)
    if more:
        return f"{''.join(shown)}[more lines contain it; go on with offset={more.split()[0]}]"
    lines = _count(search.lines, "line")
    if shown:
        return f"{''.join(shown)}[end of file, {lines}; no more of them contain it]"
    return f"[no line from {search.first} on contains {_quote(search.pattern)}; the file has {lines}]"


def _checked(pattern: str) -> str:
    """Return the pattern in the form that is searched for, or refuse it."""
    if not pattern:
        raise _Refused("the text to look for is empty")
    if "\n" in pattern:
        raise _Refused("a text is looked for within lines; this one has a line break, so no line contains it")
    if len(pattern) > _LONGEST_PATTERN:
        raise _Refused(f"the text to look for has {len(pattern)} characters; {_LONGEST_PATTERN} are the most")
    return pattern


# Texts


def _list(files: Sequence[Saved], first: int, room: int) -> str:
    """Return a list of what was saved, from one entry on."""
    if not files:
        return _NOTHING
    if first > len(files):
        return f"[offset {first} is behind the end; {_count(len(files), 'output')} saved]"
    rows: list[str] = []
    for saved in files[first - 1 :]:
        why = visible(_PHASES.get(saved.phase, saved.phase))
        row = f"{visible(saved.path)}  {visible(saved.name)}  {_count(saved.length, 'character')}  {why}\n"
        if rows and len(row) > room:
            break
        rows.append(_fit(row, room))
        room -= len(row)
    last = first + len(rows) - 1
    if last == len(files):
        return f"{''.join(rows)}[{_count(last, 'output')} saved]"
    return f"{''.join(rows)}[{last} of {len(files)}; go on with offset={last + 1}]"


def _decode(data: bytes) -> str:
    """Decode bytes; invalid ones and lone surrogates become U+FFFD."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _SURROGATE.sub(b"\xef\xbf\xbd", data).decode("utf-8", "replace")


def _boundary(data: bytes) -> int:
    """Return where bytes can be cut without splitting a character that may continue in the next piece."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(data) - back if length > back else len(data)
        if byte < 0x80:
            break
    return len(data)


def _fold(text: str) -> str:
    """Return a text in lower case, character by character: a place in it is the same place in `text`."""
    return text.replace("İ", "i").lower().replace("ς", "σ")


def _number(number: int, text: str) -> str:
    return f"{number:6d}\t{text}\n"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _quote(text: str) -> str:
    """Return a text in quotes, on one line, and shortened."""
    text = visible(text)
    return f"'{text}'" if len(text) <= 60 else f"'{text[:40]} … {text[-15:]}'"


def _fit(row: str, room: int) -> str:
    """Return a row, cut if it is longer than there is room."""
    return row if len(row) <= room else f"{row[: max(0, room - 2)]}…\n"


def _bound(number: int, least: int, most: int = _MOST) -> int:
    return max(least, min(number, most))


def _room(most: int) -> int:
    """Return how many characters are left for rows; in a very short result they matter more than the hints."""
    return max(most - _MARGIN, most // 2)
