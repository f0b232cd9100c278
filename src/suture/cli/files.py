"""Reads conversations from files and pipes, one by one, and turns them back into bytes in the form they came in.

**The first line that is not blank decides the form of a file.** If that line by itself is a JSON value, the file is
JSON Lines: an object with a message's fields (`role`, `type`, `kind` or `parts`) means that every line is a message
and the whole file one conversation; anything else means that every line is a conversation. If that line is the
beginning of a JSON value, the file is one document, such as pretty-printed JSON. If it is neither, it is refused.

A line, and a document, may have at most `max_bytes` bytes; a larger one is refused before it is read whole.
"""

import json
import math
import operator
import os
import re
import sys
from argparse import Namespace
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from glob import glob
from itertools import chain
from pathlib import Path
from secrets import token_hex
from time import monotonic
from typing import Any, BinaryIO, NamedTuple, NoReturn, TypeAlias, cast

import msgspec

from suture._text import plural, visible
from suture.cli.refusals import Refusal, complain, is_terminal, refusing
from suture.cli.transcripts import Line, recognise_format
from suture.errors import ConfigError, InputError, SchemaVersionError, UnknownWireError
from suture.messages import SCHEMA_VERSION, check_plain, message_from_dict, message_to_dict
from suture.wires import sendable
from suture.wires.fields import is_map

HOLDERS = ("messages", "input", "contents")
"""Where an object may hold a list of messages."""
MAX_BYTES = 256 * 1024 * 1024
"""How large one JSON document may be, unless the user says otherwise."""

_BOM = b"\xef\xbb\xbf"
_MEGABYTE = _CHUNK = 1024 * 1024
_LONGEST_INTEGER = 4300
_NATIVE = ("message", "agentic")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_SUFFIXES = (".json", ".jsonl")
_MANY, _LARGE, _INTERVAL = 100, 8 * _MEGABYTE, 0.1
"""How many conversations or bytes are read before progress is shown, and how many seconds pass between two updates."""
_SIGNS = ("role", "type", "kind", "parts")
_Numbered: TypeAlias = tuple[int, bytes]
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class _CutOff(Refusal):
    """The JSON ends too early, so it may go on in the next line."""


def _kind_of(value: object) -> str:
    if value is None:
        return "null"
    return "object" if isinstance(value, dict) else type(value).__name__


# --- JSON -----------------------------------------------------------------------------------------
# The strict decoder is fast and keeps every number, but it reports a lone surrogate as input that was cut off, and NaN
# as a wrong character. So what it refuses is read again with the standard library's lenient decoder: to say what is
# wrong and where, or to accept a lone surrogate.


def _read_json(data: bytes, line: int, *, is_line: bool = True) -> Any:
    """Decode `data`, which is the line numbered `line` or begins there.

    Raises `Refusal` with line and column if it is not JSON, `_CutOff` if it only ends too early, and `Refusal` with
    the message and the place in it if it holds a value that JSON cannot carry.
    """
    try:
        try:
            return _decode(data)
        except (msgspec.MsgspecError, UnicodeError, ValueError):
            return _read_leniently(data, line, f"line {line}" if is_line else "")
    except RecursionError:
        raise Refusal("nested too deeply", f"line {line}") from None


def _read_leniently(data: bytes, line: int, place: str) -> Any:
    try:
        text = data.decode()
        # This value is only searched for faults, so a valid number can become any number.
        value = json.loads(
            text,
            parse_int=lambda number: math.inf if len(number.lstrip("-")) > _LONGEST_INTEGER else 0,
            parse_constant=lambda _: math.nan,
        )
    except UnicodeDecodeError as error:
        reason = f"byte 0x{data[error.start]:02x} is not UTF-8"
        below = data.count(b"\n", 0, error.start)
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise Refusal(reason, f"line {line + below}", f"byte {column}") from None
    except json.JSONDecodeError as error:
        reason, whole = error.msg.removesuffix(" at").removesuffix(" starting"), error.doc.rstrip()
        if error.pos >= len(whole) or reason == "Unterminated string":
            places = (f"line {line + whole.count(chr(10))}", f"column {len(whole) - whole.rfind(chr(10))}")
            raise _CutOff("the JSON ends before it is complete", *places) from None
        places = (f"line {line + error.lineno - 1}", f"column {error.colno}")
        raise Refusal(f"not JSON: {reason[0].lower()}{reason[1:]}", *places) from None
    _find_fault(value, place)
    return json.loads(text)


def _find_fault(value: Any, place: str) -> None:
    """Raise `Refusal` if `value` holds a fault that the lenient decoder accepted."""
    key = _holder_key(value)
    messages: Any = value[key] if key else value
    try:
        if isinstance(messages, list):
            for index, message in enumerate(cast("list[Any]", messages)):
                check_plain(sendable(message), index=index)
        check_plain(sendable(value))
    except InputError as error:
        reason = error.reason
        if reason.startswith("nan "):
            reason = "NaN and Infinity are not JSON"
        elif reason.startswith(("inf ", "-inf ")):
            reason = "a number out of range"
        raise Refusal(reason, place, "" if error.index is None else f"message {error.index}", error.path) from None


def _holder_key(value: Any) -> str:
    """Return the field under which an object holds a list of messages; no wire's message has a list in such a field."""
    if not isinstance(value, dict):
        return ""
    holder = cast("dict[str, Any]", value)
    return next((key for key in HOLDERS if isinstance(holder.get(key), list)), "")


# --- one conversation -----------------------------------------------------------------------------


class Conversation(NamedTuple):
    """A list of messages, the object that held it, and where it was read.

    Suture's own messages are decoded before the engine sees them. A message that comes back unchanged is written as it
    stood in the file.
    """

    stored: list[Any]
    """The messages as they stand in the file."""
    line: int
    """The line on which it begins."""
    holder: dict[str, Any] | None = None
    key: str = ""
    pretty: bool = False
    """Whether it is a document over several lines."""
    many: bool = False
    """Whether it is one of several in the file."""
    lines: Sequence[int] = ()
    """The line of each message, if each has its own."""
    file: str = ""
    raw: Sequence[bytes] = ()
    """The bytes it was read from: those of the whole, or those of each message."""

    def take(self, wire: str | None) -> tuple[list[Any], str | None]:
        """Return the messages as the engine takes them, and their wire if it is given or they name it."""
        kinds = (message.get("kind") for message in self.stored if is_map(message))
        wire = wire or next((kind for kind in kinds if kind in _NATIVE), None)
        if wire not in _NATIVE:
            return self.stored, wire
        schema = (self.holder or {}).get("schema", SCHEMA_VERSION)
        if isinstance(schema, int) and schema != SCHEMA_VERSION:
            reason = f"these have schema version {schema}; this release reads version {SCHEMA_VERSION}"
            raise SchemaVersionError(reason, path="schema")
        taken: list[Any] = []
        for index, message in enumerate(self.stored):
            if not isinstance(message, dict):
                raise InputError(f"expected a message, found {_kind_of(message)}", index=index)
            taken.append(message_from_dict(sendable(message), index=index))
        return taken, wire

    def give(self, taken: Sequence[Any], messages: Sequence[Any]) -> list[Any]:
        """Return `messages` as they go into the file; those among `taken` are written as they were."""
        if taken is self.stored:
            return list(messages)
        stood = {id(message): stored for message, stored in zip(taken, self.stored, strict=True)}
        return [stood.get(id(message)) or message_to_dict(message) for message in messages]

    def encode(self, plain: list[Any]) -> Iterator[bytes]:
        """Yield the bytes of this conversation with other messages, in pieces; unchanged lines keep their bytes.

        A large document is never there as a whole a second time.
        """
        if self.lines:
            raw = {id(message): line for message, line in zip(self.stored, self.raw, strict=False) if _is_sound(line)}
            for message in plain:
                yield from _end_line(raw.get(id(message)) or _to_json(message))
        elif (
            self.raw
            and _is_sound(self.raw[0])
            and len(plain) == len(self.stored)
            and all(map(operator.is_, plain, self.stored))
        ):
            yield from _end_line(self.raw[0])
        elif plain:
            yield from self._encode_each(plain)
        else:
            yield self.encode_value(self._hold(plain))

    def _encode_each(self, plain: list[Any]) -> Iterator[bytes]:
        """Yield what `encode_value` would return for the whole, message by message."""
        mark = token_hex()  # stands for the messages
        before, after = self.encode_value(self._hold([mark])).split(_encode(mark))
        indent = before[before.rindex(b"\n") :] if self.pretty else b""
        for number, message in enumerate(plain):
            data = _to_json(message)
            yield b"," + indent if number else before
            yield msgspec.json.format(data, indent=2).replace(b"\n", indent) if self.pretty else data
        yield after

    def _hold(self, plain: list[Any]) -> Any:
        """Return messages as the value of a document: alone, or in the object that held them."""
        return plain if self.holder is None else {**self.holder, self.key: plain}

    def encode_value(self, value: Any) -> bytes:
        """Return the bytes of a value with the indentation of this conversation, newline included."""
        data = _to_json(value)
        return (msgspec.json.format(data, indent=2) if self.pretty else data) + b"\n"

    def sendable(self) -> "Conversation":
        """Return it with each lone surrogate replaced by U+FFFD."""
        return self._replace(stored=sendable(self.stored), holder=sendable(self.holder), raw=())

    @property
    def title(self) -> str:
        """The line, if there are several conversations to tell apart."""
        return f"line {self.line}" if self.many else ""

    @property
    def name(self) -> str:
        """The file, and the line if it holds several conversations."""
        return ", ".join(filter(None, (self.file, self.title)))

    def refuse(self, error: Exception, option: str = "--wire") -> Refusal:
        """Return an error of the engine with its file, line and message; a user names the wire with `option`."""
        if isinstance(error, RecursionError):
            return Refusal("nested too deeply", self.file, self.title)
        if not isinstance(error, InputError):
            return Refusal(str(error).replace("with wire=", f"with {option}"), self.file, self.title)
        line, message = self.title, "" if error.index is None else f"message {error.index}"
        if error.index is not None and error.index < len(self.lines):
            line = f"line {self.lines[error.index]}"
        if isinstance(error, UnknownWireError):
            agent = recognise_format([Line(0, dict(each)) for each in self.stored if is_map(each)])
            if agent:
                return Refusal(f"this is a session of {agent.name}; use suture doctor", self.file)
        return Refusal(error.reason.replace("with wire=", f"with {option}"), self.file, line, message, error.path)


def _is_sound(data: bytes) -> bool:
    """Return whether JSON that could be read holds no lone surrogate."""
    if not _SURROGATE.search(data):
        return True
    try:
        _decode(data)
    except msgspec.DecodeError:
        return False
    return True


def _end_line(line: bytes) -> Iterator[bytes]:
    yield line
    if not line.endswith(b"\n"):
        yield b"\n"


def _to_json(value: Any) -> bytes:
    """Return `value` as JSON; a lone surrogate, which no file can hold, becomes U+FFFD."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return _encode(sendable(value))


def _is_message(value: Any) -> bool:
    """Return whether a line is one message, not a conversation."""
    return isinstance(value, dict) and not _holder_key(value) and any(sign in value for sign in _SIGNS)


def _open_conversation(value: Any, *, line: int, raw: bytes, pretty: bool = False, many: bool = False) -> Conversation:
    """Return the conversation in a JSON value; raise `Refusal` if it holds none."""
    if isinstance(value, list):
        return Conversation(cast("list[Any]", value), line, pretty=pretty, many=many, raw=[raw])
    place = f"line {line}" if many else ""
    if not isinstance(value, dict):
        reason = f"expected a list of messages, or an object that holds one, found {_kind_of(value)}"
        raise Refusal(reason, place)
    holder = cast("dict[str, Any]", value)
    key = _holder_key(holder)
    if key:
        return Conversation(holder[key], line, holder, key, pretty, many, raw=[raw])
    if _is_message(holder):
        raise Refusal("expected a list of messages, found a single message", place)
    for name in HOLDERS:
        if name in holder:
            raise Refusal(f"expected a list of messages, found {_kind_of(holder[name])}", place, name)
    raise Refusal("an object without messages, input or contents", place)


# --- files ----------------------------------------------------------------------------------------


class Bad(NamedTuple):
    """A line that could not be read."""

    data: bytes
    refusal: Refusal
    torn: bool
    """Whether it is the last line and was cut off, as after a crash."""


class Source:
    """The conversations in an open file or pipe, one by one; progress is shown on a terminal."""

    def __init__(self, file: BinaryIO, name: str, asked: Namespace | None) -> None:
        options: dict[str, Any] = vars(asked) if asked else {}
        self.name, self._keeps_going = name, options.get("keep_going", False)
        self._file, self._max_bytes = file, options.get("max_bytes", MAX_BYTES)
        self.current: Conversation | None = None
        self.count = 0
        """How many conversations were read and handled."""
        self.bad: list[Bad] = []
        """The lines that could not be read, and were left out."""
        self._size, self._position, self._number = _size(file), 0, 0
        self._shows = not options.get("quiet") and is_terminal(sys.stderr) and os.environ.get("TERM") != "dumb"
        self._shown_at = 0.0

    def __iter__(self) -> Iterator[Conversation]:
        """Yield the conversations; raise `Refusal` at the first that cannot be read."""
        with refusing(self.name, verb="read"):
            try:
                for conversation in self._read():
                    self.current = conversation._replace(file=self.name)
                    if self._position >= _LARGE and not conversation.many:
                        self._show(f"{self._megabytes} MB read: {plural(len(conversation.stored), 'message')}")
                    yield self.current
                    self._step()
            except Refusal as refusal:
                raise refusal.within(self.name) from None
            finally:
                self.pause()

    @contextmanager
    def skipping(self, conversation: Conversation) -> Generator[None]:
        """Leave one of many conversations out if the engine refuses it and `--keep-going` was given."""
        try:
            yield
        except (InputError, ConfigError, RecursionError) as error:
            if not (self._keeps_going and conversation.many):
                raise
            self.bad.append(Bad(conversation.raw[0], conversation.refuse(error), torn=False))
            self.count -= 1  # `_step` will count it

    def tell_bad(self, fate: str = "") -> int:
        """Report the lines that could not be read, and return the exit status.

        A last line that was cut off, as after a crash, is left out; that is no error.
        """
        for bad in self.bad:
            what = "left out: only its beginning was written" if bad.torn else fate
            complain(visible(f"suture: {bad.refusal}; {what}"))
        return 2 if any(not bad.torn for bad in self.bad) else 0

    def pause(self) -> None:
        """Remove the progress line before something else is printed."""
        if self._shown_at:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._shown_at = 0.0

    def _step(self) -> None:
        """Count one conversation, and show the progress."""
        self.count += 1
        if self.count >= _MANY and self._is_due:
            self._show(f"{plural(self.count, 'conversation')}{self._part}")

    def _show(self, progress: str) -> None:
        if self._shows:
            print(f"\r{progress}\x1b[K", end="", file=sys.stderr, flush=True)
            self._shown_at = monotonic()

    @property
    def _is_due(self) -> bool:
        return self._shows and monotonic() - self._shown_at >= _INTERVAL

    @property
    def _part(self) -> str:
        """How much of the file was read, if its size is known."""
        return f", {100 * self._position // self._size} %" if self._size else ""

    @property
    def _megabytes(self) -> int:
        return -(-self._position // _MEGABYTE)

    def _read(self) -> Iterator[Conversation]:
        lines = self._lines()
        for number, data in lines:
            try:
                value = _read_json(data, number)
                break
            except _CutOff:
                whole = self._document(data)
                value = _read_json(whole, number, is_line=False)
                yield _open_conversation(value, line=number, raw=whole, pretty=True)
                return
            except Refusal as refusal:
                self._skip(data, refusal)
        else:
            if not self.bad:
                raise Refusal("there is nothing in it")
            return
        if _is_message(value):
            yield self._collect((number, value, data), lines)
            return
        second = next(lines, None)
        rest = self._values(chain([second], lines) if second else ())
        for line, each, raw in chain([(number, value, data)], rest):
            try:
                conversation = _open_conversation(each, line=line, raw=raw, many=second is not None)
            except Refusal as refusal:
                alone = Refusal(f"expected a conversation, as in line {number}, found a single message", f"line {line}")
                self._skip(raw, alone if _is_message(each) else refusal)
            else:
                yield conversation

    def _collect(self, first: tuple[int, Any, bytes], lines: Iterator[_Numbered]) -> Conversation:
        """Return the conversation whose first message was read already."""
        numbers, messages, raw = [first[0]], [first[1]], [first[2]]
        for line, value, data in self._values(lines):
            if _is_message(value):
                if self._position >= _LARGE and self._is_due:
                    self._show(f"{plural(len(numbers), 'message')}{self._part}")
                numbers.append(line)
                messages.append(value)
                raw.append(data)
                continue
            found = "a conversation" if isinstance(value, list | dict) else _kind_of(value)
            reason = f"expected a message, as in line {first[0]}, found {found}"
            self._skip(data, Refusal(reason, f"line {line}"))
        return Conversation(messages, first[0], lines=numbers, raw=raw)

    def _lines(self) -> Iterator[_Numbered]:
        """Yield the lines that are not blank, unchanged, with their numbers."""
        while line := self._file.readline(min(_CHUNK, self._max_bytes + 2)):
            self._number += 1
            self._position += len(line)
            if len(line) == _CHUNK:
                line = self._read_on(line, self._file.readline, b"\n")
            if self._number == 1:
                line = line.removeprefix(_BOM)
            if len(line.rstrip(b"\r\n")) > self._max_bytes:
                self._refuse_size(f"line {self._number}")
            if line and not line.isspace():
                yield self._number, line

    def _values(self, lines: Iterable[_Numbered]) -> Iterator[tuple[int, Any, bytes]]:
        """Yield the values of lines, without those that `_skip` leaves out."""
        for number, data in lines:
            try:
                yield number, _read_json(data, number), data
            except Refusal as refusal:
                self._skip(data, refusal)

    def _skip(self, data: bytes, refusal: Refusal) -> None:
        """Leave out a bad line if `--keep-going` was given, or if it is the last and was cut off; else raise."""
        torn = isinstance(refusal, _CutOff) and not data.endswith(b"\n")
        if not (torn or self._keeps_going):
            raise refusal
        self.bad.append(Bad(data, refusal.within(self.name), torn))

    def _document(self, first: bytes) -> bytes:
        """Return the whole document that begins with the line `first`, which was read already."""
        data = self._read_on(first, self._file.read)
        if len(data) > self._max_bytes:
            self._refuse_size()
        return data

    def _read_on(self, first: bytes, read: Callable[[int], bytes], end: bytes = b"") -> bytes:
        """Return `first` and what follows it, up to `end`, but not much more than is allowed."""
        data, most = bytearray(first), self._max_bytes + 2
        while len(data) < most and not (end and data.endswith(end)) and (piece := read(min(_CHUNK, most - len(data)))):
            data += piece
            self._position += len(piece)
            if len(data) >= _LARGE and self._is_due:
                self._show(f"{self._megabytes} MB read{self._part}")
        if len(data) >= _LARGE:
            self._show(f"{self._megabytes} MB read")  # decoding it takes longer than reading it
        return bytes(data)

    def lack_memory(self) -> Refusal:
        """Return why the conversation that is being read or handled cannot be held."""
        many = self.current is not None and self.current.many
        what = "one of its conversations" if many else f"a conversation of {self._megabytes} MB or more"
        hint = "" if many else "; several conversations are read one by one as JSON Lines, with one a line"
        reason = f"there is not enough memory for {what}, which takes 2 to 6 times its size: give it more{hint}"
        return Refusal(reason, self.name, f"line {self._number}" if many else "")

    def _refuse_size(self, place: str = "") -> NoReturn:
        raise Refusal(f"larger than --max-bytes {self._max_bytes}", place)


@contextmanager
def open_source(path: str, asked: Namespace | None = None, *, option: str = "--wire") -> Generator[Source]:
    """Open a file, or standard input for `-`; an error of the engine inside the block becomes a `Refusal`.

    `option` is the option with which a user names the wire of a history.
    """
    if path == "-" and sys.stdin is None:  # a shell can close it
        raise Refusal("is closed", "standard input")
    with refusing(path, verb="read"):
        file: Any = nullcontext(sys.stdin.buffer) if path == "-" else open(path, "rb")  # noqa: PTH123, SIM115
    with file as opened:
        source = Source(opened, "standard input" if path == "-" else path, asked)
        try:
            yield source
        except (InputError, ConfigError, RecursionError) as error:
            if source.current is None:
                raise
            raise source.current.refuse(error, option) from None
        except MemoryError as error:
            error.__traceback__ = None  # lets go of what could not be finished: saying so needs some memory
            raise source.lack_memory() from None
        finally:
            source.pause()


def find_files(paths: Sequence[str]) -> list[str]:
    """Return the files that are asked for: each path, the matches of a pattern, and the JSON files in a directory.

    Hidden files and folders in a directory are left out: a virtual environment, say, has JSON of its own.

    >>> find_files(["-"])
    ['-']
    """
    found: list[str] = []
    for path in paths:
        if path != "-" and os.path.isdir(path):  # noqa: PTH112 - one that cannot be read is reported when it is opened
            below = sorted(_find_below(path))
            if not below:
                raise Refusal(f"there is no {' or '.join(_SUFFIXES)} file below it", path)
            found += below
        elif any(sign in path for sign in "*?") and not os.path.exists(path):  # noqa: PTH110 - as above
            matched = sorted(glob(path, recursive=True))  # noqa: PTH207 - a path from the command line is a string
            if not matched:
                raise Refusal("nothing matches it", path)
            found += find_files(matched)
        else:
            found.append(path)
    return list(dict.fromkeys(found))


def _find_below(folder: str) -> Iterator[str]:
    unread: list[str] = []  # what cannot be listed, or disappears meanwhile, is reported when it is opened
    for place, folders, names in os.walk(folder, onerror=lambda error: unread.append(error.filename)):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for path in [Path(place, name) for name in names if not name.startswith(".")]:
            if path.suffix in _SUFFIXES and (os.path.isfile(path) or not os.path.lexists(path)):  # noqa: PTH113 - as above
                yield str(path)
    yield from unread


def _size(file: BinaryIO) -> int:
    """Return how many bytes a file has, 0 if that is unknown."""
    try:
        return os.fstat(file.fileno()).st_size
    except OSError:
        return 0
