"""What people see: reports, plans and outlines, plain in a pipe, in colour on a terminal.

Two screens with the same methods. Text that comes from a history is neutralised before it gets here
(outlines) or here (reports and plans), so that no screen ever passes a control character on.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from suture.cli._outline import CHANGED, GONE, INSERTED, MERGED, MOVED, SAME, Line
from suture.cli._visible import visible
from suture.repair import Finding, Report

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from suture.reduction import Change, Plan

__all__ = ["PlainScreen", "RichScreen", "Screen", "screen_for"]

_SHORT = 12
_STYLES = {SAME: "", INSERTED: "green", MOVED: "cyan", CHANGED: "yellow", MERGED: "yellow", GONE: "red"}
_LEGEND = {
    INSERTED: "inserted",
    MOVED: "moved",
    CHANGED: "changed",
    MERGED: "merged with the one before",
    GONE: "gone",
}


class Screen(ABC):
    """Shows reports, plans and histories to a person."""

    @abstractmethod
    def say(self, text: str) -> None:
        """Show a line of our own."""

    @abstractmethod
    def head(self, text: str) -> None:
        """Show the title of what follows."""

    @abstractmethod
    def report(self, report: Report, title: str = "") -> None:
        """Show what was found."""

    @abstractmethod
    def plan(self, plan: "Plan[Any]", title: str = "") -> None:
        """Show what leaves a history, where it goes, and what that frees."""

    @abstractmethod
    def history(self, title: str, lines: Sequence[Line], *, whole: bool = False) -> None:
        """Show a history in outline: what is marked and its neighbours, or the `whole`."""


class PlainScreen(Screen):
    """Text without colours, for pipes and for terminals without `rich`.

    >>> PlainScreen(print).report(Report(wire="gemini", profile="gemini"), "line 3")
    line 3: gemini, profile gemini: acceptable
    """

    def __init__(self, write_line: Callable[[str], object]) -> None:
        self._write_line = write_line

    def say(self, text: str) -> None:
        """Write a line."""
        self._write_line(visible(text))

    def head(self, text: str) -> None:
        """Write a line that is underlined."""
        shown = visible(text)
        self._write_line(f"{shown}\n{'=' * len(shown)}")

    def report(self, report: Report, title: str = "") -> None:
        """Write the report as it prints itself."""
        self._write_text(str(report), title)

    def plan(self, plan: "Plan[Any]", title: str = "") -> None:
        """Write the plan as it prints itself."""
        self._write_text(str(plan), title)

    def history(self, title: str, lines: Sequence[Line], *, whole: bool = False) -> None:
        """Write one line a message, and what the marks mean."""
        self._write_line(f"{title}:")
        for line in _excerpt(lines, whole=whole):
            self._write_line(line if isinstance(line, str) else f"  {line.mark} {_told(line)}")
        legend = _legend(lines)
        if legend:
            self._write_line(f"  ({legend})")

    def _write_text(self, text: str, title: str) -> None:
        text = f"{title}: {text}" if title else text
        self._write_line("\n".join(map(visible, text.split("\n"))))


class RichScreen(Screen):
    """Colours and tables, on a terminal."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console

        self._console = Console(file=stream, highlight=False, markup=False, emoji=False)

    def say(self, text: str) -> None:
        """Print a line."""
        self._console.print(visible(text))

    def head(self, text: str) -> None:
        """Print a title."""
        self._console.rule(_text(visible(text), "bold"), align="left")

    def report(self, report: Report, title: str = "") -> None:
        """Print the findings as a table."""
        before = f"{title}: " if title else ""
        told = _text(f"{before}{report.wire}, profile {report.profile}: ", "bold")
        count = len(report.findings)
        style = "bold green" if report.acceptable else "bold red"
        told.append(_many(count, "finding") if count else "acceptable", style)
        self._console.print(told)
        if count:
            self._console.print(_table(report.findings))
        for item in report.displaced:
            self._console.print(_text(f"displaced: {item!r}", "dim"))

    def plan(self, plan: "Plan[Any]", title: str = "") -> None:
        """Print the changes as a table."""
        before = f"{title}: " if title else ""
        told = _text(f"{before}{plan.wire}: {plan.tokens_before} tokens", "bold")
        if not plan.changed:
            told.append(", nothing to do", "bold green")
        else:
            told.append(f" -> {plan.tokens_after}", "bold green")
            told.append(f", {_many(len(plan.changes), 'change')}, {_many(len(plan.saves), 'file')}")
        self._console.print(told)
        if plan.changed:
            self._console.print(_table_of_changes(plan.changes))

    def history(self, title: str, lines: Sequence[Line], *, whole: bool = False) -> None:
        """Print one line a message, coloured by its mark."""
        self._console.print(_text(title, "bold"))
        for line in _excerpt(lines, whole=whole):
            told = line if isinstance(line, str) else f"  {line.mark} {_told(line)}"
            style = "dim" if isinstance(line, str) else _STYLES[line.mark]
            self._console.print(_text(told, style), no_wrap=True, overflow="ellipsis")
        legend = _legend(lines)
        if legend:
            self._console.print(_text(f"  ({legend})", "dim"))


def screen_for(stream: TextIO | None, write_line: Callable[[str], object] | None = None) -> Screen:
    """Return the screen for `stream`: a rich one on a terminal, if `rich` is there, else a plain one."""
    if stream is not None and stream.isatty():
        try:
            return RichScreen(stream)
        except ImportError:
            pass

    return PlainScreen(write_line or (lambda line: print(line, file=stream)))


def _text(text: str, style: str = "") -> "Text":
    from rich.text import Text

    return Text(text, style)


def _table(findings: Sequence[Finding]) -> "Table":
    """Return the findings as rows: where, what was wrong, the provider's rule, what was done."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("what was wrong", overflow="fold", max_width=18)
    table.add_column("the provider's rule, and its source", overflow="fold")
    table.add_column("what is done", overflow="fold", max_width=22)
    known: set[str] = set()
    for finding in findings:
        wrong = _text(finding.problem, "yellow")
        who = " ".join(visible(part)[:64] for part in (finding.name, finding.call_id) if part)
        if who:
            wrong.append(f"\n{who}", "dim")
        rule = _text(finding.says)
        source = "" if finding.rule in known else f" [{finding.source}]"
        rule.append(f"\n{finding.rule}{source}", "dim")
        known.add(finding.rule)
        done = _text(visible(finding.done), "green") if finding.mended else _text("NOT MENDED", "bold red")
        table.add_row(str(finding.index), wrong, rule if finding.rule else "", done)
    return table


def _table_of_changes(changes: "Sequence[Change]") -> "Table":
    """Return the changes of a plan as rows: where, what is done, to which call, what that frees, where it goes."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("what is done", no_wrap=True)
    table.add_column("tool and call", overflow="fold", max_width=40)
    table.add_column("tokens", justify="right", no_wrap=True)
    table.add_column("saved to", overflow="fold")
    for change in changes:
        who = _text(visible(change.name)[:64])
        who.append(f"\n{visible(change.call_id)[:64]}", "dim")
        tokens = f"{change.tokens_before} -> {change.tokens_after}"
        place = _text(visible(change.path), "green") if change.path else _text("nowhere", "red")
        table.add_row(str(change.index), _text(change.action, "yellow"), who, tokens, place)
    return table


def _many(count: int, thing: str) -> str:
    return f"{count} {thing}{'s' * (count != 1)}"


def _told(line: Line) -> str:
    said = f'"{line.text}"' if line.text else ""
    rest = "  ".join(part for part in (line.carries, said) if part)
    return f"{line.index:>3}  {line.role:<9}  {rest}".rstrip()


def _excerpt(lines: Sequence[Line], *, whole: bool) -> Iterator[Line | str]:
    """Yield the lines beside a change, and how many were left out between."""
    skipped = 0
    for line in lines:
        if not (whole or line.near or len(lines) <= _SHORT):
            skipped += 1
            continue
        if skipped:
            yield _left_out(skipped)
            skipped = 0
        yield line
    if skipped:
        yield _left_out(skipped)


def _left_out(count: int) -> str:
    return f"    …  {count} message{'s' * (count > 1)} as before"


def _legend(lines: Sequence[Line]) -> str:
    met = {line.mark for line in lines}
    return ", ".join(f"{mark} {meaning}" for mark, meaning in _LEGEND.items() if mark in met)
