"""What a command writes and shows: outputs that are seen only when they are whole, and the screen.

A file is written beside its target and then put in its place, so that there is never a part of one; a pipe or a
terminal gets its bytes from a temporary file at the end. Text from a history is neutralised before it is shown.
"""

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import accumulate, chain
from typing import IO, TYPE_CHECKING, Any, BinaryIO, TextIO

from suture._text import escape_json, plural, visible
from suture.cli.files import Refusal, is_terminal, refuse_system
from suture.cli.outline import Line
from suture.repair import Report

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from suture.reduction import Plan

IN_MEMORY = 8 * 1024 * 1024
"""How many bytes are kept in memory before they go to a temporary file."""
_NEW_FILE = 0o666
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


# --- bytes ----------------------------------------------------------------------------------------


class Output:
    """Bytes for a pipe, a terminal or a device, which gets all of them at the end, when it is published."""

    def __init__(self, name: str, file: IO[bytes] | None = None) -> None:
        self.name = name
        self._file = file or tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - closed by `discard`
        self._is_published = False

    def write(self, data: bytes) -> None:
        """Keep `data`."""
        with self._refused():
            self._file.write(data)

    def finish(self) -> None:
        """Make sure that all is there; the last step that may fail for want of space."""
        with self._refused():
            self._file.seek(0)

    def publish(self) -> None:
        """Let the world see it."""
        with self._refused():
            if self.name:
                with open(self.name, "wb") as device:  # noqa: PTH123
                    shutil.copyfileobj(self._file, device)
            else:
                out = _standard_output()
                if is_terminal(sys.stdout):
                    out.writelines(escape_json(line) for line in self._file)
                else:
                    shutil.copyfileobj(self._file, out)
                out.flush()
        self._is_published = True

    @property
    def published(self) -> bool:
        """Whether the world has seen it, until `discard`: also if `publish` was interrupted right behind that."""
        return self._is_published

    def discard(self) -> None:
        """Leave no trace; after `publish`, do nothing."""
        self._file.close()

    @contextmanager
    def _refused(self) -> Generator[None]:
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:
            raise refuse_system("written", error, self.name or "standard output") from None


class _FileOutput(Output):
    """A file that takes its target's place in one step."""

    def __init__(self, path: str) -> None:
        self._target = os.path.realpath(path)
        try:
            folder = os.path.dirname(self._target)  # noqa: PTH120 - a path from the command line is a string
            number, self._part = tempfile.mkstemp(prefix=".suture-", suffix=".part", dir=folder)
        except OSError as error:
            raise refuse_system("written", error, path) from None
        super().__init__(path, os.fdopen(number, "wb"))

    def finish(self) -> None:
        try:
            rights = stat.S_IMODE(os.stat(self._target).st_mode)  # noqa: PTH116
        except OSError:  # there is none: as any new file has it
            mask = os.umask(0)
            os.umask(mask)
            rights = _NEW_FILE & ~mask
        with self._refused():
            self._file.close()
            os.chmod(self._part, rights)  # noqa: PTH101

    def publish(self) -> None:
        with self._refused():
            os.replace(self._part, self._target)  # noqa: PTH105

    @property
    def published(self) -> bool:
        return not os.path.lexists(self._part)  # the disk knows, whatever came in between

    def discard(self) -> None:
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            os.unlink(self._part)  # noqa: PTH108


class _LiveOutput(Output):
    """Standard output, which gets its bytes as they come: whoever reads it need not wait for the end."""

    def __init__(self) -> None:
        super().__init__("", _standard_output())
        self._is_published = True

    def write(self, data: bytes) -> None:
        with self._refused():
            if is_terminal(sys.stdout):
                data = b"".join(map(escape_json, data.splitlines(keepends=True)))
            self._file.write(data)
            self._file.flush()

    def finish(self) -> None:
        """Nothing is held back."""

    publish = discard = finish


def _standard_output() -> BinaryIO:
    if sys.stdout is None:  # so it is, where a shell closed it
        raise Refusal("is closed", "standard output")
    return sys.stdout.buffer


def _open_output(path: str | None) -> Output:
    """Return the output for `path`; standard output for none, and for `-`."""
    if path is None or path == "-":
        return Output("")
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116
    except OSError:
        return _FileOutput(path)  # it is not there yet, or cannot be: making it will tell
    except ValueError as error:
        raise Refusal(f"cannot be written: {error}", path) from None
    if stat.S_ISDIR(mode):
        raise Refusal("cannot be written: is a directory", path)
    return _FileOutput(path) if stat.S_ISREG(mode) else Output(path)


def keep_apart(what: str, path: str | None, output: str | None, file: str) -> None:
    """Refuse to write something else over a history, as it was or will be, or both to standard output.

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
    """The outputs of a command, in the order in which they will be seen. Those of a command that fails never are."""

    def __init__(self) -> None:
        super().__init__()
        self._all: list[Output] = []

    def open(self, path: str | None = None, *, live: bool = False) -> Output:
        """Return one more; standard output for no path, and for `-`. One that is `live` shows its bytes at once."""
        output = _LiveOutput() if live else _open_output(path)
        self.callback(output.discard)
        self._all.append(output)
        return output

    def screen(self, output: Output | None = None) -> "Screen":
        """Return a screen on standard output. In a pipe its lines are kept back, as those of `output`."""
        held = output or self.open()
        return Screen(sys.stdout, lambda line: held.write(f"{line}\n".encode(errors="backslashreplace")))

    def screen_beside(self, history: str | None) -> "Screen | None":
        """Return where a person reads what becomes of a history.

        That is standard output, if the history goes to a file, else standard error, if somebody looks at it.
        """
        if history is not None:
            return self.screen()
        return Screen(sys.stderr) if is_terminal(sys.stderr) else None

    def publish(self) -> None:
        """Let everything be seen at once."""
        for output in self._all:
            output.finish()
        for output in self._all:
            output.publish()


# --- the screen -----------------------------------------------------------------------------------


class Screen:
    """Shows reports, plans and histories: in colours and tables on a terminal, if `rich` is there, else as plain text.

    >>> Screen(None, print).report(Report(wire="gemini", profile="gemini"), "line 3")
    line 3: gemini, profile gemini: acceptable
    """

    def __init__(self, stream: TextIO | None, write_line: Callable[[str], object] | None = None) -> None:
        self._console = _console(stream) if is_terminal(stream) or "FORCE_COLOR" in os.environ else None
        self._write_line: Callable[[str], object] = write_line or partial(print, file=stream)

    def say(self, text: str, style: str = "") -> None:
        """Show a line."""
        if self._console is None:
            self._write_line(visible(text))
        else:
            self._console.print(_text(visible(text), style))

    def diff(self, lines: Iterable[str]) -> None:
        """Show the lines of a unified diff."""
        for line in lines:
            if self._console is None:
                self._write_line(line)
                continue
            style = "bold" if line.startswith(("+++", "---")) else _DIFF_STYLES.get(line[:1], "")
            self._console.print(_text(visible(line), style), soft_wrap=True)

    def report(self, report: Report, title: str = "") -> None:
        """Show what was found."""
        if self._console is None:
            self._write_text(str(report), title)
            return
        before = f"{title}: " if title else ""
        line = _text(f"{before}{report.wire}, profile {report.profile}: ", "bold")
        count = len(report.findings)
        style = "bold green" if report.acceptable else "bold red"
        self._console.print(line.append(plural(count, "finding") if count else "acceptable", style))
        if count:
            self._console.print(_table_of_findings(report))
        for item in report.displaced:
            self.say(str(item), "dim")

    def plan(self, plan: "Plan[Any]", title: str = "") -> None:
        """Show what leaves a history, where it goes, and what that frees."""
        if self._console is None:
            self._write_text(str(plan), title)
            return
        before = f"{title}: " if title else ""
        line = _text(f"{before}{plan.wire}: {plan.tokens_before} tokens", "bold")
        if not plan.changed:
            self._console.print(line.append(", nothing to do", "bold green"))
            return
        line.append(f" -> {plan.tokens_after}", "bold green")
        line.append(f", {plural(len(plan.changes), 'change')}, {plural(len(plan.saves), 'file')}")
        self._console.print(line)
        self._console.print(_table_of_changes(plan))

    def history(self, title: str, *places: Sequence[Line]) -> None:
        """Show a history in outline, or several places in it, with something between them."""
        rows = [(f"  {line.mark} {_as_text(line)}", _DIFF_STYLES.get(line.mark, "")) for line in chain(*places)]
        for place in reversed(list(accumulate(map(len, places[:-1])))):
            rows.insert(place, ("    …", "dim"))
        if self._console is None:
            for text in (f"{title}:", *[row for row, _ in rows]):
                self._write_line(text)
            return
        self._console.print(_text(title, "bold"))
        for text, style in rows:
            self._console.print(_text(text, style), no_wrap=True, overflow="ellipsis")

    def _write_text(self, text: str, title: str) -> None:
        text = f"{title}: {text}" if title else text
        self._write_line("\n".join(map(visible, text.split("\n"))))


def _console(stream: TextIO | None) -> "Console | None":
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(file=stream, highlight=False, markup=False, emoji=False)


def _text(text: str, style: str = "") -> "Text":
    from rich.text import Text

    return Text(text, style)


def _table(*columns: dict[str, Any]) -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(**column)
    return table


def _table_of_findings(report: Report) -> "Table":
    table = _table(
        {"header": "#", "justify": "right", "no_wrap": True},
        {"header": "what was wrong", "overflow": "fold", "max_width": 18},
        {"header": "the provider's rule, and its source", "overflow": "fold"},
        {"header": "what a repair does", "overflow": "fold", "max_width": 22},
    )
    known: set[str] = set()
    for finding in report.findings:
        wrong = _text(finding.problem, "yellow")
        who = " ".join(visible(part)[:64] for part in (finding.name, finding.call_id) if part)
        if who:
            wrong.append(f"\n{who}", "dim")
        rule = _text(finding.says)
        source = "" if finding.rule in known else f" [{finding.source}]"
        rule.append(f"\n{finding.rule}{source}", "dim")
        known.add(finding.rule)
        done = _text(visible(finding.done), "green") if finding.mended else _text("NOT REPAIRED", "bold red")
        table.add_row(str(finding.index), wrong, rule if finding.rule else "", done)
    return table


def _table_of_changes(plan: "Plan[Any]") -> "Table":
    table = _table(
        {"header": "#", "justify": "right", "no_wrap": True},
        {"header": "what is done", "no_wrap": True},
        {"header": "tool and call", "overflow": "fold", "max_width": 40},
        {"header": "tokens", "justify": "right", "no_wrap": True},
        {"header": "saved to", "overflow": "fold"},
    )
    for change in plan.changes:
        who = _text(visible(change.name)[:64])
        who.append(f"\n{visible(change.call_id)[:64]}", "dim")
        tokens = f"{change.tokens_before} -> {change.tokens_after}"
        place = _text(visible(change.path), "green") if change.path else _text("nowhere", "red")
        table.add_row(str(change.index), _text(change.action, "yellow"), who, tokens, place)
    return table


def _as_text(line: Line) -> str:
    said = f'"{line.text}"' if line.text else ""
    rest = "  ".join(part for part in (line.carries, said) if part)
    return f"{line.index:>3}  {line.role:<9}  {rest}".rstrip()
