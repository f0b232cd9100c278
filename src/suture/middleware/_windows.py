r"""Windows on files of any size: bytes come in bit by bit, a text of bounded length comes out. No I/O here.

Lines end at `\n`; everything else, `\r` too, belongs to a line. Characters are those of the decoded text. Lines are
counted on the bytes, and only what is shown is decoded and kept. Every text says how to go on: following that reads
the file exactly.
"""

import re
from collections import deque

__all__ = [
    "MARGIN",
    "CharWindow",
    "LineWindow",
    "TailWindow",
    "boundary",
    "counted",
    "decode",
    "numbered",
    "plain",
    "shown",
]

MARGIN = 128
"""How long that gets which a window says around what it shows."""
_AHEAD = 16 * 2**20
"""How many bytes are read behind a window, to say how long the file is."""
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
_UNKNOWN = b"\xef\xbf\xbd"
_EMPTY = "[the file is empty]"


def decode(data: bytes) -> str:
    r"""Return the text of bytes, whatever they are; what is no text is U+FFFD, and so is a lone surrogate.

    >>> decode("a\ud800b".encode("utf-8", "surrogatepass") + b"\xff") == "a\ufffdb\ufffd"
    True
    """
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _SURROGATE.sub(_UNKNOWN, data).decode("utf-8", "replace")


def boundary(data: bytes) -> int:
    """Return where bytes can be cut without cutting a character: what is behind may be the beginning of one.

    >>> boundary("né".encode()), boundary("né".encode()[:-1])
    (3, 1)
    """
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(data) - back if length > back else len(data)
        if byte < 0x80:
            break
    return len(data)


def counted(number: int, thing: str) -> str:
    """Return a number of things in words.

    >>> counted(1, "line"), counted(3, "line")
    ('1 line', '3 lines')
    """
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _length(data: bytes) -> int:
    return len(data) if data.isascii() else len(decode(data))


def _behind(data: bytes, lines: int) -> int:
    """Return where the line begins that has so many lines before it."""
    at = 0
    for _ in range(lines):
        at = data.find(b"\n", at) + 1
    return at


def numbered(number: int, text: str) -> str:
    r"""Return a line as it is shown.

    >>> numbered(12, "text")
    '    12\ttext\n'
    """
    return f"{number:6d}\t{text}\n"


def plain(text: str) -> str:
    r"""Return a text as one line, whatever is in it.

    >>> plain("a\nb")
    'a\\nb'
    """
    return text if text.isprintable() else ascii(text)[1:-1]


def shown(text: str) -> str:
    """Return a text in quotes, as one line, and not endless.

    >>> shown("/run/trunc/call_1")
    "'/run/trunc/call_1'"
    """
    text = plain(text)
    return f"'{text}'" if len(text) <= 60 else f"'{text[:40]} … {text[-15:]}'"


class _Lines:
    """Counts the lines of a file."""

    def __init__(self) -> None:
        self._newlines = 0
        self._last = b"\n"

    def count(self, data: bytes) -> int:
        """Take the next bytes; return how many lines end in them."""
        found = data.count(b"\n")
        self._newlines += found
        self._last = data[-1:]
        return found

    @property
    def total(self) -> int:
        """How many lines there are."""
        return self._newlines + (not self.complete)

    @property
    def complete(self) -> bool:
        """Whether the last line has its newline."""
        return self._last == b"\n"

    @property
    def end(self) -> str:
        """What is said at the end of the file."""
        unfinished = "" if self.complete else ", no final newline"
        return f"end of file, {counted(self.total, 'line')}{unfinished}"


class LineWindow:
    r"""`count` lines from line `first` on, numbered, at most `room` characters.

    >>> window = LineWindow(2, 1, 100)
    >>> window.feed(b"one\ntwo\nthree\n")
    True
    >>> window.show(ended=True)
    '     2\ttwo\n[line 2 of 3; go on with offset=3]'
    """

    def __init__(self, first: int, count: int, room: int) -> None:
        self._first, self._count, self._room = first, count, room
        self._lines = _Lines()
        self._skip = first - 1
        self._before = 0
        self._kept: list[bytes] = []
        self._size = self._ends = self._ahead = 0

    def feed(self, data: bytes, /) -> bool:
        """Take the next bytes; tell whether more are wanted."""
        found = self._lines.count(data)
        if found < self._skip:
            self._skip -= found
            self._before += _length(data)
            return True
        if self._skip:
            start = _behind(data, self._skip)
            self._before += _length(data[:start])
            data, found, self._skip = data[start:], found - self._skip, 0
        # Four bytes a character are enough to fill the room, so a line that is kept in part never fits.
        if self._size < 4 * self._room and self._ends < self._count:
            self._kept.append(data)
            self._size += len(data)
            self._ends += found
        else:
            self._ahead += len(data)
        return self._ahead < _AHEAD

    def show(self, *, ended: bool) -> str:
        """Return the lines, and how to go on."""
        lines = decode(b"".join(self._kept)).split("\n")
        if not lines[-1]:
            lines.pop()
        total = self._lines.total
        if not total:
            return _EMPTY
        if not lines:
            return f"[offset {self._first} is behind the end; the file has {counted(total, 'line')}]"
        rows: list[str] = []
        left = self._room
        for number, line in enumerate(lines[: self._count], self._first):
            row = numbered(number, line)
            if len(row) > left:
                break
            rows.append(row)
            left -= len(row)
        if not rows:
            return self._cut(lines[0], ended=ended)
        last = self._first + len(rows) - 1
        if ended and last == total:
            return f"{''.join(rows)}[{self._lines.end}]"
        of = f" of {total}" if ended else ", there is more"
        return f"{''.join(rows)}[line {last}{of}; go on with offset={last + 1}]"

    def _cut(self, line: str, *, ended: bool) -> str:
        """Return the beginning of a line that does not fit."""
        fits = self._room - len(numbered(self._first, ""))
        on = f"[line {self._first} goes on; read it with char_offset={self._before + fits}"
        skip = "" if ended and self._first == self._lines.total else f", skip it with offset={self._first + 1}"
        return f"{numbered(self._first, line[:fits])}{on}{skip}]"


class TailWindow:
    """The last `count` lines, numbered, at most `room` characters."""

    def __init__(self, count: int, room: int) -> None:
        self._count, self._room = count, room
        self._lines = _Lines()
        self._chars = self._start = self._size = 0
        self._kept: deque[bytes] = deque()

    def feed(self, data: bytes, /) -> bool:
        """Take the next bytes: the end is what matters."""
        last = data.rfind(b"\n", 0, -1) + 1
        if last or self._lines.complete:
            self._start = self._chars + _length(data[:last])
        self._lines.count(data)
        self._chars += _length(data)
        self._kept.append(data)
        self._size += len(data)
        while self._size - len(self._kept[0]) > 4 * self._room:
            self._size -= len(self._kept.popleft())
        return True

    def show(self, *, ended: bool) -> str:
        """Return the last lines that fit."""
        total = self._lines.total
        if not total:
            return _EMPTY
        lines = decode(b"".join(self._kept)).removesuffix("\n").split("\n")
        rows: list[str] = []
        left, number, first = self._room, total, max(1, total - self._count + 1)
        while number >= first and len(row := numbered(number, lines[number - total - 1])) <= left:
            rows.append(row)
            left -= len(row)
            number -= 1
        if number < first:
            more = ""
        elif rows:
            more = f"; for more begin with offset={first}"
        else:
            rows.append(numbered(total, lines[-1][len(numbered(total, "")) - self._room :]))
            more = f"; line {total} is cut, read it with char_offset={self._start}"
        return f"{''.join(reversed(rows))}[{self._lines.end}{more}]"


class CharWindow:
    r"""`count` characters, without the first `first` ones; line ends are characters, too.

    >>> window = CharWindow(4, 3)
    >>> window.feed(b"one\ntwo\nthree\n")
    True
    >>> print(window.show(ended=True))
    [characters 4 to 7]
    two
    [7 of 14 characters; go on with char_offset=7]
    """

    def __init__(self, first: int, count: int) -> None:
        self._first, self._count = first, count
        self._kept: list[str] = []
        self._chars = self._taken = self._ahead = 0

    def feed(self, data: bytes, /) -> bool:
        """Take the next bytes; tell whether more are wanted."""
        length = _length(data)
        start = max(0, self._first - self._chars)
        self._chars += length
        if self._taken == self._count:
            self._ahead += len(data)
        elif start < length:
            text = decode(data)[start : start + self._count - self._taken]
            self._kept.append(text)
            self._taken += len(text)
        return self._ahead < _AHEAD

    def show(self, *, ended: bool) -> str:
        """Return the characters, and how to go on."""
        if not self._chars:
            return _EMPTY
        if not self._taken:
            return f"[char_offset {self._first} is behind the end; the file has {counted(self._chars, 'character')}]"
        end = self._first + self._taken
        head = f"[characters {self._first} to {end}]\n{''.join(self._kept)}\n"
        if ended and end == self._chars:
            return f"{head}[end of file, {counted(end, 'character')}]"
        of = f" of {self._chars} characters" if ended else " characters, there is more"
        return f"{head}[{end}{of}; go on with char_offset={end}]"
