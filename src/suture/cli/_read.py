"""Files and pipes to conversations, one by one, so that only the one at hand is in memory.

**Which form a file has is decided by its first line that is not blank.** If that line by itself is a JSON
value, the file is JSON Lines: an object with a message's fields (`role`, `type`, `kind` or `parts`) means
that every line is a message and the whole file one conversation; anything else means that every line is a
conversation. (A file with only one such line is a document on one line, which is the same thing.) If that
line is the beginning of a JSON value, the file is one document, as pretty-printed JSON is. If it is
neither, the file is refused there.

A line, and a document, may have at most `max_bytes` bytes; a larger one is refused before it is read whole.
"""

import os
import stat
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any, BinaryIO, NoReturn, TypeAlias

from suture.cli._conversation import Conversation, Layout, is_message, open_conversation
from suture.cli._decode import decode
from suture.cli._refusal import CutOff, Refusal, kind_of
from suture.errors import InputError

__all__ = ["MAX_BYTES", "Source", "open_source", "read_conversations"]

MAX_BYTES = 256 * 1024 * 1024
"""How large one JSON document may be, unless the user says otherwise."""

_BOM = b"\xef\xbb\xbf"
_CHUNK = 1024 * 1024
_Numbered: TypeAlias = tuple[int, bytes]


class Source:
    """An open file or pipe: its lines, its rest, and how far it has been read."""

    def __init__(self, file: BinaryIO, name: str, max_bytes: int = MAX_BYTES) -> None:
        self.name = name
        self.position = 0
        self.size = _size(file)
        self._file, self._max_bytes = file, max_bytes

    def lines(self) -> Iterator[_Numbered]:
        """Yield the lines that are not blank, with their numbers."""
        number = 0
        while line := self._file.readline(self._max_bytes + 2):
            number += 1
            self.position += len(line)
            if number == 1:
                line = line.removeprefix(_BOM)
            line = line.rstrip(b"\r\n")
            if len(line) > self._max_bytes:
                self._refuse_size(f"line {number}")
            if line and not line.isspace():
                yield number, line

    def document(self, first: bytes) -> bytearray:
        """Return the whole document that begins with the line `first`, which was read already."""
        if self.size is not None and self.size > self._max_bytes:
            self._refuse_size()
        data = bytearray(first + b"\n")
        while chunk := self._file.read(min(_CHUNK, max(1, self._max_bytes + 1 - len(data)))):
            self.position += len(chunk)
            data += chunk
            if len(data) > self._max_bytes:
                self._refuse_size()
        return data

    def _refuse_size(self, place: str = "") -> NoReturn:
        raise Refusal(f"larger than --max-bytes {self._max_bytes}", place)


@contextmanager
def open_source(path: str, max_bytes: int = MAX_BYTES) -> Generator[Source]:
    """Open a file, or standard input for `-`."""
    if path == "-":
        if sys.stdin is None:  # so it is, where a shell closed it
            raise Refusal("is closed", "standard input")
        yield Source(sys.stdin.buffer, "standard input", max_bytes)
        return
    try:
        file = open(path, "rb")  # noqa: PTH123, SIM115 - closed below; a path from the command line is a string
    except (OSError, ValueError) as error:
        raise _unreadable(error, path) from None
    with file:
        yield Source(file, path, max_bytes)


def read_conversations(source: Source) -> Iterator[Conversation]:
    """Yield the conversations of a file one by one; raise `Refusal` at the first that cannot be read."""
    try:
        for conversation in _read(source):
            yield conversation._replace(file=source.name)
    except Refusal as refusal:
        raise refusal.within(source.name) from None
    except OSError as error:
        raise _unreadable(error, source.name) from None


def _read(source: Source) -> Iterator[Conversation]:
    lines = source.lines()
    first = next(lines, None)
    if first is None:
        raise Refusal("there is nothing in it")
    number, data = first
    try:
        value = _decoded(number, data)
    except CutOff:
        yield open_conversation(_document(source, number, data), line=number, layout=Layout.PRETTY)
        return
    if is_message(value):
        yield _message_lines(number, value, lines)
        return
    second = next(lines, None)
    yield open_conversation(value, line=number, many=second is not None)
    if second is not None:
        yield from _conversation_lines(chain([second], lines), number)


def _message_lines(number: int, message: Any, lines: Iterator[_Numbered]) -> Conversation:
    """Return the conversation whose first message was read from line `number`."""
    messages, numbers = [message], [number]
    for line, data in lines:
        value = _decoded(line, data)
        if not is_message(value):
            found = "a conversation" if isinstance(value, list | dict) else kind_of(value)
            raise Refusal(f"expected a message, as in line {number}, found {found}", f"line {line}")
        messages.append(value)
        numbers.append(line)
    return Conversation(messages, number, layout=Layout.LINES, lines=numbers)


def _conversation_lines(lines: Iterator[_Numbered], first: int) -> Iterator[Conversation]:
    for number, data in lines:
        value = _decoded(number, data)
        if is_message(value):
            reason = f"expected a conversation, as in line {first}, found a single message"
            raise Refusal(reason, f"line {number}")
        yield open_conversation(value, line=number, many=True)


def _document(source: Source, number: int, first: bytes) -> Any:
    try:
        return decode(source.document(first), number)
    except InputError as error:
        raise _located(error) from None


def _decoded(number: int, data: bytes) -> Any:
    try:
        return decode(data, number)
    except InputError as error:
        raise _located(error).within(f"line {number}") from None


def _located(error: InputError) -> Refusal:
    message = "" if error.index is None else f"message {error.index}"
    return Refusal(error.reason, message, error.path)


def _unreadable(error: OSError | ValueError, name: str) -> Refusal:
    reason = error.strerror if isinstance(error, OSError) else None
    return Refusal(f"cannot be read: {(reason or str(error)).lower()}", name)


def _size(file: BinaryIO) -> int | None:
    """Return how many bytes are left in a regular file, `None` where nobody can know."""
    try:
        status = os.fstat(file.fileno())
        left = status.st_size - file.tell()
    except (OSError, ValueError):
        return None
    return left if stat.S_ISREG(status.st_mode) and left > 0 else None
