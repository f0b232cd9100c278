"""What a command writes and shows: outputs that appear only when they are complete, the screen, and outlines.

A file is written beside its target and then moved over it, so that it is never there in part; a pipe or a terminal
gets its bytes from a temporary file at the end. Control characters in a history are made visible before it is shown.
"""

import errno
import os
import shutil
import stat
import sys
import tempfile
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from textwrap import wrap
from typing import IO, TYPE_CHECKING, Any, BinaryIO, TextIO

from suture._text import escape_json, shorten_line, visible
from suture.cli.refusals import Refusal, is_terminal, refusing, show, writing
from suture.repair import Report
from suture.wires import Call, Result, Wire, argument_json, get_wire
from suture.wires.fields import is_map
from suture.wires.parts import Telling

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from suture.reduction import Plan

IN_MEMORY = 8 * 1024 * 1024
"""How many bytes are kept in memory before they go to a temporary file."""
_NEW_FILE = 0o666
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_RULE = "the provider's rule, and its source"
_LABEL, _TEXT, _ARGUMENTS = 40, 72, 48
_USUAL_WIDTH, _HANG = 80, 4
"""How wide a terminal is that does not say so, and how far the rest of a line that is folded is indented."""
_CONTEXT = 2
"""How many messages are shown before and after a change."""


# --- bytes ----------------------------------------------------------------------------------------


class Output:
    """Bytes for a file, a pipe, a terminal or a device, which are all delivered at the end by `publish`.

    A file replaces its target in one step. A `live` output is standard output, and gets its bytes as they come.
    """

    def __init__(self, path: str | None = None, *, live: bool = False) -> None:
        self._name = "" if path is None or path == "-" else path
        self._is_live = self._is_published = live
        self._target = self._part = ""
        self._file: IO[bytes]
        with self._refused():
            if live:
                self._file = _standard_output()
            elif self._name and _is_file(self._name):
                self._target = os.path.realpath(self._name)
                folder = os.path.dirname(self._target)  # noqa: PTH120 - a path from the command line is a string
                number, self._part = tempfile.mkstemp(prefix=".suture-", suffix=".part", dir=folder)
                self._file = os.fdopen(number, "wb")
            else:
                self._file = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 - closed by `discard`

    def write(self, data: bytes) -> None:
        """Keep `data`, or show it at once."""
        self.write_pieces([data])

    def write_pieces(self, pieces: Iterable[bytes]) -> None:
        """Keep the pieces as they come, or show them at once."""
        with self._refused():
            if self._is_live:
                _show(pieces, self._file)
            else:
                self._file.writelines(pieces)

    def finish(self) -> None:
        """Finish writing; if the disk is full, it fails here, before anything is published."""
        with self._refused():
            if self._part:
                self._file.close()
                os.chmod(self._part, _mode_of(self._target))  # noqa: PTH101
            elif not self._is_live:
                self._file.seek(0)

    def publish(self) -> None:
        """Deliver the bytes."""
        with self._refused():
            if self._part:
                os.replace(self._part, self._target)  # noqa: PTH105
            elif self._name:
                with open(self._name, "wb") as device:  # noqa: PTH123
                    shutil.copyfileobj(self._file, device)
            elif not self._is_live:
                _show(self._file, _standard_output())
        self._is_published = True

    @property
    def published(self) -> bool:
        """Whether the bytes were delivered, even by a `publish` that was interrupted then; valid until `discard`."""
        return not os.path.lexists(self._part) if self._part else self._is_published

    def discard(self) -> None:
        """Close the file, and delete it unless it was published."""
        if not self._is_live:
            with suppress(OSError):
                self._file.close()
        if self._part:
            with suppress(OSError):
                os.unlink(self._part)  # noqa: PTH108

    def _refused(self) -> AbstractContextManager[None]:
        return refusing(self._name or "standard output", verb="written")


def _is_file(path: str) -> bool:
    """Return whether a path is a regular file or does not exist yet; raise `OSError` for a directory."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116
    except OSError:
        return True  # not there yet, or not reachable: creating it will tell
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    return stat.S_ISREG(mode)


def _mode_of(path: str) -> int:
    try:
        return stat.S_IMODE(os.stat(path).st_mode)  # noqa: PTH116
    except OSError:  # there is no file yet: those of any new file
        mask = os.umask(0)
        os.umask(mask)
        return _NEW_FILE & ~mask


def _show(pieces: Iterable[bytes], out: IO[bytes]) -> None:
    """Write lines or values to standard output; on a terminal, invisible characters are escaped."""
    out.writelines(map(escape_json, pieces) if is_terminal(sys.stdout) else pieces)
    out.flush()


def _standard_output() -> BinaryIO:
    if sys.stdout is None:  # a shell can close it
        raise Refusal("is closed", "standard output")
    return sys.stdout.buffer


def keep_apart(what: str, path: str | None, output: str | None, file: str) -> None:
    """Refuse to write something else over the input or the output history, or both to standard output.

    >>> keep_apart("report", "report.jsonl", None, "-")
    """
    if path == "-" and output in (None, "-"):
        raise Refusal(f"the history and the {what} cannot both go to standard output; give -o")
    if path in (None, "-"):
        return
    for other in (output, file):
        if other not in (None, "-") and os.path.realpath(other) == os.path.realpath(path):
            raise Refusal(f"the {what} would be written over the history", path)


class Outputs(ExitStack):
    """The outputs of a command, in the order in which they are published; if the command fails, none is."""

    def __init__(self) -> None:
        super().__init__()
        self._all: list[Output] = []

    def open(self, path: str | None = None, *, live: bool = False) -> Output:
        """Add an output: standard output without a path, or for `-`. A `live` one shows its bytes at once."""
        output = Output(path, live=live)
        self.callback(output.discard)
        self._all.append(output)
        return output

    def screen(self, output: Output | None = None) -> "Screen":
        """Return a screen on standard output. If that is a pipe, its lines are held back and go to `output`."""
        held = output or self.open()
        return Screen(sys.stdout, lambda line: held.write(f"{line}\n".encode(errors="backslashreplace")))

    def screen_beside(self, history: str | None) -> "Screen | None":
        """Return the screen that says what was done to a history.

        It is standard output if the history goes to a file, else standard error if that is a terminal, else none.
        """
        if history is not None:
            return self.screen()
        return Screen(sys.stderr) if is_terminal(sys.stderr) else None

    def publish(self) -> None:
        """Publish all outputs, after the last bytes of each were written."""
        for output in self._all:
            output.finish()
        for output in self._all:
            output.publish()


# --- the screen -----------------------------------------------------------------------------------


class Screen:
    """Shows reports, plans and histories: in colours and tables on a terminal with `rich`, else as plain text.

    >>> Screen(None, print).report(Report(wire="gemini", profile="gemini"), "line 3")
    line 3: gemini, profile gemini: acceptable
    """

    def __init__(self, stream: TextIO | None, write_line: Callable[[str], object] | None = None) -> None:
        self._console = _console(stream) if is_terminal(stream) or "FORCE_COLOR" in os.environ else None
        self._stream = stream
        self._write_line: Callable[[str], object] = write_line or (lambda line: show(stream, f"{line}\n"))
        self._width = _width(stream) if stream is not None and stream.isatty() else sys.maxsize

    def say(self, text: str, style: str = "") -> None:
        """Show a line."""
        self._print((visible(text), style))

    def diff(self, lines: Iterable[str]) -> None:
        """Show the lines of a unified diff."""
        for line in lines:
            style = "bold" if line.startswith(("+++", "---")) else _DIFF_STYLES.get(line[:1], "")
            self._print((visible(line), style), soft_wrap=True)

    def report(self, report: Report, title: str = "") -> None:
        """Show the findings of a report."""
        rows = self._say_head(str(report), title, "bold red")
        if self._console is None or not rows:
            return
        table = _table({"#": 0, "what was wrong": 18, _RULE: None, "what a repair does": 22})
        known: set[str] = set()
        for finding in report.findings:
            who = " ".join(visible(part)[:64] for part in (finding.name, finding.call_id) if part)
            wrong = _text((finding.problem, "yellow"), (f"\n{who}" if who else "", "dim"))
            source = "" if finding.rule in known else f" [{finding.source}]"
            known.add(finding.rule)
            rule = _text((finding.says, ""), (f"\n{finding.rule}{source}", "dim")) if finding.rule else ""
            done = (visible(finding.done), "green") if finding.mended else ("NOT REPAIRED", "bold red")
            table.add_row(str(finding.index), wrong, rule, _text(done))
        self._paint(table)
        for item in report.displaced:
            self.say(str(item), "dim")

    def plan(self, plan: "Plan[Any]", title: str = "") -> None:
        """Show what leaves a history, where it goes, and what that frees."""
        rows = self._say_head(str(plan), title, "bold")
        if self._console is None or not rows:
            return
        table = _table({"#": 0, "what is done": 0, "tool and call": 40, "tokens": 0, "saved to": None})
        for change in plan.changes:
            who = _text((visible(change.name)[:64], ""), (f"\n{visible(change.call_id)[:64]}", "dim"))
            tokens = f"{change.tokens_before} -> {change.tokens_after}"
            place = (visible(change.path), "green") if change.path else ("nowhere", "red")
            table.add_row(str(change.index), _text((change.action, "yellow")), who, tokens, _text(place))
        self._paint(table)

    def history(self, title: str, *places: Sequence[str]) -> None:
        """Show the outline of a history, or of several places in it, separated by dots."""
        self._print((title if self._console else f"{title}:", "bold"))
        for number, place in enumerate(places):
            if number:
                self._print(("    …", "dim"))
            for line in place:
                self._print((f"  {line}", _DIFF_STYLES.get(line[0], "")), no_wrap=True, overflow="ellipsis")

    def _say_head(self, text: str, title: str, style: str) -> list[str]:
        """Show the first line of a text, and on a plain screen the others; return the others, empty if all is well."""
        head, *rows = map(visible, (f"{title}: {text}" if title else text).split("\n"))
        before, sign, verdict = head.rpartition(": ")
        self._print((before + sign, "bold"), (verdict, style if rows else "bold green"))
        if self._console is None:
            for row in rows:
                self._write_plain(row)
        return rows

    def _print(self, *parts: tuple[str, str], **layout: Any) -> None:
        """Show a line that consists of texts, each with its style."""
        if self._console is None:
            self._write_plain("".join(text for text, _ in parts), folds=not layout.get("soft_wrap"))
        else:
            self._paint(_text(*parts), **layout)

    def _write_plain(self, line: str, *, folds: bool = True) -> None:
        """Write a line without a console; one that is wider than the terminal goes on below, indented."""
        if folds and len(line) > self._width:
            indent = " " * (len(line) - len(line.lstrip()) + _HANG)
            for row in wrap(line, self._width, subsequent_indent=indent, break_on_hyphens=False):
                self._write_line(row)
        else:
            self._write_line(line)

    def _paint(self, what: "Table | Text", **layout: Any) -> None:
        """Show something with the console, if there is one."""
        if self._console is not None:
            with writing(self._stream):
                self._console.print(what, **layout)


def _console(stream: TextIO | None) -> "Console | None":
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(file=stream, highlight=False, markup=False, emoji=False)


def _width(terminal: TextIO) -> int:
    """Return how many columns a terminal has; a user can say so, as to `rich`."""
    width = 0
    with suppress(OSError, ValueError):  # a value that is no number, or a terminal that has gone
        width = int(os.environ.get("COLUMNS") or os.get_terminal_size(terminal.fileno()).columns)
    return width if width > 0 else _USUAL_WIDTH


def _text(*parts: tuple[str, str]) -> "Text":
    from rich.text import Text

    return Text.assemble(*parts)


def _table(columns: Mapping[str, int | None]) -> "Table":
    """Return a table with these columns and their greatest widths; a column of width 0 is never wrapped."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for header, width in columns.items():
        side = "right" if header in {"#", "tokens"} else "left"
        table.add_column(header, justify=side, no_wrap=width == 0, overflow="fold", max_width=width or None)
    return table


# --- a history in outline -------------------------------------------------------------------------


def outline(messages: Sequence[Any], wire: str) -> list[str]:
    """Return a line for each message.

    >>> outline([{"role": "user", "content": "hi"}], "openai-chat")
    ['    0  user       "hi"']
    """
    speaker = get_wire(wire)
    return [_outline_message(speaker, message, index) for index, message in enumerate(messages)]


def compare(before: Sequence[Any], after: Sequence[Any], wire: str) -> list[list[str]]:
    """Return the outlines of the places where a history and its repair differ, each with its neighbours.

    `-` marks a message that a repair has moved, changed or removed, `+` what is there instead. A message is unchanged
    if the same object comes back in the same order.

    >>> user = {"role": "user", "content": "hi"}
    >>> (place,) = compare([user], [user, {"role": "assistant", "content": "hello"}], "openai-chat")
    >>> [line[0] for line in place]
    [' ', '+']
    """
    rows, done, made = list[tuple[str, int]](), 0, 0
    for old, new in [*_find_kept(before, after), (len(before), len(after))]:
        rows += [*[("-", at) for at in range(done, old)], *[("+", at) for at in range(made, new)], (" ", new)]
        done, made = old + 1, new + 1
    rows.pop()
    changed = [place for place, (mark, _) in enumerate(rows) if mark != " "]
    near = {place + step for place in changed for step in range(-_CONTEXT, _CONTEXT + 1)} & set(range(len(rows)))
    speaker, places = get_wire(wire), list[list[str]]()
    for place in sorted(near):
        if place - 1 not in near:
            places.append([])
        mark, index = rows[place]
        places[-1].append(_outline_message(speaker, (before if mark == "-" else after)[index], index, mark))
    return places


def _find_kept(before: Sequence[Any], after: Sequence[Any]) -> list[tuple[int, int]]:
    """Return the old and new index of the messages that kept their order: the longest such sequence."""
    stood: dict[int, list[int]] = {}
    for place in range(len(before) - 1, -1, -1):
        stood.setdefault(id(before[place]), []).append(place)
    pairs = [(stood[id(message)].pop(), index) for index, message in enumerate(after) if stood.get(id(message))]
    ends, chains = list[int](), list[Any]()  # for each length of a rising sequence: its lowest end, and the sequence
    for pair in pairs:
        length = bisect_left(ends, pair[0])
        chain = (pair, chains[length - 1] if length else None)
        ends[length : length + 1], chains[length : length + 1] = [pair[0]], [chain]
    found, kept = chains[-1] if chains else None, list[tuple[int, int]]()
    while found is not None:
        pair, found = found
        kept.append(pair)
    return kept[::-1]


def _outline_message(wire: Wire, message: Any, index: int, mark: str = " ") -> str:
    view = wire.view(message)
    telling = Telling(view.role)
    wire.tell(message, telling)
    carries = [_describe_call(call) for call in view.calls] + [_describe_result(result) for result in view.results]
    said = [" ".join(telling.texts[1:]), *[wire.result_text(result)[0] for result in view.results]]
    kind = message.get("type") if is_map(message) else None
    if not carries and isinstance(kind, str) and kind != "message":
        carries = [f"({shorten_line(kind, _LABEL)})"]
    text = shorten_line(" / ".join(part for part in said if part.strip()), _TEXT)
    rest = "  ".join(part for part in (", ".join(carries), f'"{text}"' if text else "") if part)
    return f"{mark} {index:>3}  {view.role:<9}  {rest}".rstrip()


def _describe_call(call: Call) -> str:
    arguments = shorten_line(argument_json(call.arguments), _ARGUMENTS)
    parts = ["calls", shorten_line(call.name, _LABEL) or "(no name)", arguments]
    return " ".join(part for part in (*parts, "as", _id(call.id)) if part)


def _describe_result(result: Result) -> str:
    return f"answers {_id(result.id) if result.id or not result.name else shorten_line(result.name, _LABEL)}"


def _id(text: str) -> str:
    return shorten_line(text, _LABEL) or "(no id)"
