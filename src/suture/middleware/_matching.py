"""Lines that contain a text, in files of any size: bytes come in bit by bit, rows of bounded length come out."""

import re
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias, cast

from suture.middleware._windows import counted, decode, numbered, plain, shown

__all__ = ["GrepView", "LineSearch", "Matches", "Refused", "SearchView", "checked", "fitting"]

_WIDTH = 400
"""How many characters of a line are shown; of a longer one, what surrounds the match."""
_MOST_COUNTED = 10_000
"""How many matches are counted that are not shown."""
_LONGEST_PATTERN = 1_000

Find: TypeAlias = Callable[[str], "re.Match[str] | None"]


class Row(NamedTuple):
    """A line to show: one that holds what is looked for, or stands near it."""

    number: int
    text: str
    matches: bool


class LineSearch:
    r"""Finds the lines that hold a text, from line `first` on, and up to `context` lines around each.

    Of a line longer than `width` only what surrounds the first match is shown, and kept.

    >>> search = LineSearch("two")
    >>> [(row.number, row.text) for row in (*search.feed(b"one\ntwo\nthr"), *search.end())]
    [(2, 'two')]
    """

    def __init__(
        self, pattern: str, *, ignore_case: bool = False, first: int = 1, context: int = 0, width: int = _WIDTH
    ) -> None:
        pattern = decode(pattern.encode("utf-8", "surrogatepass"))
        self._find: Find = re.compile(re.escape(pattern), re.IGNORECASE if ignore_case else 0).search
        self._first, self._context, self._width = first, context, min(width, _WIDTH)
        self._keep = self._width // 2 + len(pattern)
        self._start = self._owed = 0
        self._line: _Line | None = None
        self._recent: deque[str] = deque(maxlen=context)
        self.lines = 0
        """How many lines there have been so far."""

    def feed(self, data: bytes) -> list[Row]:
        """Take the next bytes, cut at a `boundary`; return the rows whose lines are complete."""
        beginning, newline, rest = decode(data).partition("\n")
        self._extend(beginning)
        if not newline:
            return []
        rows = self._close()
        between, newline, rest = rest.rpartition("\n")
        if newline:
            rows += self._take(between)
        if rest:
            self._extend(rest)
        return rows

    def end(self) -> list[Row]:
        """Return the rows that a last line without a newline brings."""
        return [] if self._line is None else self._close()

    def _extend(self, text: str) -> None:
        """Take more of the line at hand."""
        if self._line is None:
            self._line = _Line(self._width)
        self._line.add(text, self._find if self.lines + 1 >= self._first else None, self._keep)

    def _close(self) -> list[Row]:
        """End the line at hand; return what is to be shown because of it."""
        line, self._line = cast("_Line", self._line), None
        text = line.text(self._start)
        self.lines += 1
        self._start += line.length + 1
        if line.found:
            recent = list(enumerate(self._recent, self.lines - len(self._recent)))
            self._recent.clear()
            self._owed = self._context
            return [*[Row(number, near, matches=False) for number, near in recent], Row(self.lines, text, matches=True)]
        if self._owed:
            self._owed -= 1
            return [Row(self.lines, text, matches=False)]
        self._recent.append(text)
        return []

    def _take(self, text: str) -> list[Row]:
        """Take whole lines: one by one only if something is to be shown of them."""
        count = text.count("\n") + 1
        if not self._owed and (self.lines + count < self._first or self._find(text) is None):
            lines = text.rsplit("\n", self._context)[-self._context :] if self._context else []
            self.lines += count - len(lines)
            self._start += len(text) + 1 - sum(map(len, lines)) - len(lines)
        else:
            lines = text.split("\n")
        rows: list[Row] = []
        for line in lines:
            self._extend(line)
            rows += self._close()
        return rows


class _Line:
    """A line of any length as it comes: its beginning, and what surrounds the first match."""

    __slots__ = ("_around", "_end", "_from", "_head", "_match", "_missing", "_width", "length")

    def __init__(self, width: int) -> None:
        self._width = width
        self._head = self._end = self._around = ""
        self._from = self._match = self._missing = self.length = 0

    @property
    def found(self) -> bool:
        """Whether it holds what is looked for."""
        return bool(self._around)

    def add(self, text: str, find: Find | None, keep: int) -> None:
        """Take more of the line; `keep` characters of it are enough to find what is cut in two."""
        self._head += text[: self._width - len(self._head)]
        if self._missing:
            more = text[: self._missing]
            self._around += more
            self._missing -= len(more)
        elif find is not None and not self._around:
            known = self._end + text
            found = find(known)
            if found is not None:
                side, before = self._width // 2, self.length - len(self._end)
                begin, end = max(0, found.start() - side), found.end() + side
                self._around, self._missing = known[begin:end], max(0, end - len(known))
                self._from, self._match = before + begin, before + found.start()
            self._end = known[-keep:]
        self.length += len(text)

    def text(self, start: int) -> str:
        """Return the line, or if it is long a part of it; `start` characters are before it."""
        if self.length <= self._width:
            return self._head
        if not self._around:
            return f"{self._head}…"
        left = "…" if self._from else ""
        right = "…" if self._from + len(self._around) < self.length else ""
        return f"{left}{self._around}{right} [cut; the match is at char_offset={start + self._match}]"


class Refused(Exception):
    """What is asked for cannot be read; the text tells the model."""


class SearchView:
    """The lines of one file that contain a text, numbered."""

    def __init__(self, pattern: str, first: int, count: int, room: int) -> None:
        self._search = LineSearch(pattern, first=first, width=room // 2)
        self._first, self._count, self._left = first, count, room
        self._pattern = pattern
        self._rows: list[str] = []
        self._next = 0

    def feed(self, data: bytes, /) -> bool:
        """Take the next bytes; the first match that is not shown is enough."""
        return self._take(self._search.feed(data))

    def show(self, *, ended: bool) -> str:
        """Return the lines, and how to go on."""
        if ended:
            self._take(self._search.end())
        rows, lines = "".join(self._rows), counted(self._search.lines, "line")
        if self._next:
            return f"{rows}[more lines contain it; go on with offset={self._next}]"
        if self._rows:
            return f"{rows}[end of file, {lines}; no more of them contain it]"
        return f"[no line from {self._first} on contains {shown(self._pattern)}; the file has {lines}]"

    def _take(self, rows: Sequence[Row]) -> bool:
        for row in rows:
            text = numbered(row.number, row.text)
            if self._rows and (len(self._rows) == self._count or len(text) > self._left):
                self._next = row.number
                return False
            text = fitting(text, self._left)
            self._rows.append(text)
            self._left -= len(text)
        return True


class Matches:
    """What grep has found, over all files; `grouped` where lines stand around the matches."""

    def __init__(self, room: int, read_name: str, *, grouped: bool) -> None:
        self._left, self._read_name, self._grouped = room, read_name, grouped
        self._rows: list[str] = []
        self._full = False
        self._shown = self._hidden = 0
        self._last: tuple[str, int] | None = None
        self.problems: list[str] = []
        """Why files could not be read."""

    @property
    def uncounted(self) -> bool:
        """Whether there are more than anybody counts."""
        return self._hidden >= _MOST_COUNTED

    def take(self, path: str, rows: Sequence[Row]) -> None:
        """Take what was found in a file."""
        for row in rows:
            mark = ":" if row.matches else "-"
            text = f"{path}{mark}{row.number}{mark}{row.text}\n"
            if self._grouped and self._last not in (None, (path, row.number - 1)):
                text = f"--\n{text}"
            self._full = self._full or (bool(self._rows) and len(text) > self._left)
            if self._full:
                self._hidden += row.matches
                continue
            text = fitting(text, self._left)
            self._rows.append(text)
            self._left -= len(text)
            self._shown += row.matches
            self._last = (path, row.number)

    def show(self, pattern: str, files: int) -> str:
        """Return the lines of so many files, and how many more there are."""
        if len(self.problems) == files:
            raise Refused(f"none of {counted(files, 'file')} can be read: {self.problems[0]}")
        where = counted(files - len(self.problems), "file")
        unread = f"; {counted(len(self.problems), 'file')} could not be read: " if self.problems else ""
        unread += "; ".join(self.problems[:3])
        if not self._shown:
            return f"[no line contains {shown(pattern)} in {where}{unread}]"
        found = f"{''.join(self._rows)}[{counted(self._shown, 'matching line')}"
        if not self._hidden:
            return f"{found} in {where}{unread}]"
        more = f"at least {self._hidden} more" if self.uncounted else f"{self._hidden} more"
        return f"{found}, {more} in {where}; {self._read_name} with search and offset shows them{unread}]"


class GrepView:
    """What grep sees of one file."""

    def __init__(self, path: str, search: LineSearch, matches: Matches) -> None:
        self._path, self._search, self._matches = plain(path), search, matches

    def feed(self, data: bytes, /) -> bool:
        """Take the next bytes."""
        self._matches.take(self._path, self._search.feed(data))
        return not self._matches.uncounted

    def show(self, *, ended: bool) -> str:
        """Take what the end brings."""
        if ended:
            self._matches.take(self._path, self._search.end())
        return ""


def fitting(row: str, room: int) -> str:
    """Return a row, cut if it is longer than there is room."""
    return row if len(row) <= room else f"{row[: max(0, room - 2)]}…\n"


def checked(pattern: str) -> str:
    """Return a text that can be looked for."""
    if not pattern:
        raise Refused("the text to look for is empty")
    if "\n" in pattern:
        raise Refused("a text is looked for within lines; this one has a line break, so no line contains it")
    if len(pattern) > _LONGEST_PATTERN:
        raise Refused(f"the text to look for has {len(pattern)} characters; {_LONGEST_PATTERN} are the most")
    return pattern
