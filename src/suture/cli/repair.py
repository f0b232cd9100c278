"""`suture check` says what a provider would refuse; `suture repair` writes the history repaired, in its old form.

Exit status 0 if nothing was found, or all was repaired; else 1. `check` shows what it finds at once on a terminal;
in a pipe nothing is written unless the whole input could be read. `repair` writes each line as it comes if it writes to
standard output, and lines that need no repair byte for byte. What it does is shown on standard output if the history
goes to a file (with a view of what changed, on a terminal), else on standard error, if that is a terminal.
"""

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from difflib import unified_diff
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any, TypeVar

import msgspec

from suture._text import plural, visible
from suture.cli.files import (
    Conversation,
    Refusal,
    Source,
    complain,
    find_files,
    is_terminal,
    open_source,
    read_conversations,
)
from suture.cli.outline import compare
from suture.cli.output import IN_MEMORY, Output, Outputs, Screen, keep_apart
from suture.repair import Repaired, check, repair, visible_json

T = TypeVar("T")
_VIEWS = 10
"""Of how many conversations of one file it is shown what changed."""


def run_check(asked: Namespace) -> int:
    """Check every conversation of the files and print what was found."""
    files = find_files(asked.files)
    several = many = len(files) > 1
    count = found = 0
    with Outputs() as outputs:
        output = outputs.open()
        screen = outputs.screen(output)

        def check_file(file: str) -> int:
            nonlocal count, found, many
            with _open(file, asked) as source:
                for conversation in read_conversations(source):
                    with conversation.located():
                        messages, wire = conversation.take(asked.wire)
                        report = check(messages, wire=wire, profile=asked.profile, tail=asked.tail)
                    many |= conversation.many
                    found += not report.acceptable
                    named = {"file": file} if several else {}
                    source.pause()
                    if asked.json:
                        line = visible_json({**named, "line": conversation.line, "report": report.to_dict()})
                        output.write(line.encode() + b"\n")
                    elif not asked.quiet and not (many and report.acceptable):
                        screen.report(report, ", ".join(filter(None, [*named.values(), conversation.title])))
                count += source.count
            return source.tell_bad("left out")

        status = go_through(files, check_file)
        if many and not asked.json and not asked.quiet:
            screen.say(f"{plural(count, 'conversation')}: {count - found} acceptable, {found} with findings")
        outputs.publish()
    return max(status, 1 if found else 0)


def go_through(files: Sequence[T], work: Callable[[T], int]) -> int:
    """Do the work on each file and return the worst status; of several, one that cannot be read does not stop it."""
    status = 0
    for file in files:
        try:
            status = max(status, work(file))
        except Refusal as refusal:
            if len(files) == 1:
                raise
            complain(visible(f"suture: {refusal}"))
            status = 2
    return status


def _open(file: str, asked: Namespace) -> AbstractContextManager[Source]:
    return open_source(file, asked.max_bytes, keep_going=asked.keep_going, quiet=asked.quiet)


def run_repair(asked: Namespace) -> int:
    """Repair every conversation of the files and write them all."""
    if asked.output == "-":
        asked.output = None
    files = find_files(asked.files)
    targets = dict(zip(files, _choose_targets(asked, files), strict=True))
    for file, target in targets.items():
        keep_apart("report", asked.report, target, file)
    with Outputs() as outputs:
        report = outputs.open(asked.report) if asked.report is not None else None

        def work(file: str) -> int:
            one = Namespace(**{**vars(asked), "file": file, "output": targets[file], "several": len(files) > 1})
            return _repair_file(one, report)

        status = go_through(files, work)
        outputs.publish()
    return status


def _choose_targets(asked: Namespace, files: Sequence[str]) -> list[str | None]:
    """Return where each repaired file goes."""
    if asked.in_place:
        if asked.output is not None or "-" in files:
            raise Refusal("--in-place writes each file over itself: it takes no -o, and no standard input")
        return list(files)
    if asked.output is not None and Path(asked.output).is_dir():
        targets = [str(Path(asked.output, Path(file).name)) for file in files]
        if len(set(targets)) < len(files):
            raise Refusal("two files of one name would be written there", asked.output)
        return list(targets)
    if len(files) > 1 and not asked.diff:
        raise Refusal("several files need -o DIRECTORY (one that exists) or --in-place")
    return [asked.output for _ in files]


def _repair_file(asked: Namespace, report: Output | None) -> int:
    with _open(asked.file, asked) as source, Outputs() as outputs:
        job = _Job(asked, source, outputs, report)
        for conversation in read_conversations(source):
            job.pass_bad(source)
            job.repair(conversation)
        job.pass_bad(source)
        job.finish()
    status = source.tell_bad("left as it is")
    if job.unresolved:
        line = f"suture: {source.name}, {job.first_unresolved}"
        if job.unresolved > 1:
            line += f" (and {job.unresolved - 1} more)"
        complain(visible(line))
    return max(status, 1 if job.unresolved or (asked.diff and job.changed) else 0)


class _Job:
    """The repair of one file: where everything goes, and what has been counted so far."""

    def __init__(self, asked: Namespace, source: Source, outputs: Outputs, report: Output | None) -> None:
        self._asked = asked
        self._outputs = outputs
        self._history = self._outputs.open(asked.output, live=asked.output is None)
        self._diff = self._outputs.screen(self._history) if asked.diff else None
        self._report = report
        self._done = outputs.enter_context(SpooledTemporaryFile(IN_MEMORY))  # noqa: SIM115 - closed by the stack
        quiet = asked.quiet or asked.diff or asked.report == "-"
        self._screen = None if quiet else self._outputs.screen_beside(asked.output)
        self._source = source
        self._passed = 0
        self.changed = self.unresolved = 0
        self.first_unresolved = ""

    def repair(self, conversation: Conversation) -> None:
        """Repair one conversation, write it, and show what was done."""
        asked = self._asked
        with conversation.located():
            taken, wire = conversation.take(asked.wire)
            repaired = repair(
                taken,
                wire=wire,
                profile=asked.profile,
                tail=asked.tail,
                orphans=asked.orphans,
                language=asked.language,
            )
            given = conversation.give(taken, repaired.messages)
            if self._diff is not None:
                self._diff.diff(_compare_fields(conversation, given))
            else:
                self._history.write(conversation.encode(given))
        if self._report is not None:
            record = {"file": conversation.file} if asked.several else {}
            record |= {"line": conversation.line, "changed": repaired.changed, "report": repaired.report.to_dict()}
            self._done.write(msgspec.json.encode({**record, "pending": repaired.pending}) + b"\n")
        if self._screen is not None and not repaired.report.acceptable:
            self._source.pause()
            title = _name(conversation) if asked.several else conversation.title
            self._show(self._screen, title, taken, repaired)
        self._count(conversation, repaired)

    def pass_bad(self, source: Source) -> None:
        """Write lines that could not be read as they are; what a crash has cut off is left out."""
        for bad in source.bad[self._passed :]:
            if not (bad.torn or self._asked.diff):
                self._history.write(bad.data)
        self._passed = len(source.bad)

    def finish(self) -> None:
        """Let everything be seen at once; what was done is reported once it is there."""
        if not self._asked.in_place or self.changed or self._passed:  # else the file stays, and there is nothing to say
            if self._screen is not None:
                line = f"{plural(self._source.count, 'conversation')}, {self.changed} changed"
                self._screen.say(f"{line}; written to {self._asked.output}" if self._asked.output else line)
            self._outputs.publish()
        if self._report is not None:
            self._done.seek(0)
            for record in self._done:
                self._report.write(record)

    def _show(self, screen: Screen, title: str, before: Sequence[Any], repaired: Repaired[Any]) -> None:
        screen.report(repaired.report, title)
        viewed = repaired.changed and self.changed < _VIEWS
        if viewed and self._asked.output is not None and is_terminal(sys.stdout):
            screen.history("what changed", *compare(before, repaired.messages, repaired.report.wire))

    def _count(self, conversation: Conversation, repaired: Repaired[Any]) -> None:
        self.changed += repaired.changed
        if repaired.unresolved and not self.unresolved:
            finding = repaired.unresolved[0]
            places = [place for place in (conversation.title, f"message {finding.index}") if place]
            self.first_unresolved = f"{', '.join(places)}: not repaired: {finding.problem}; {finding.says}"
        self.unresolved += len(repaired.unresolved)


def _name(conversation: Conversation) -> str:
    return ", ".join(part for part in (conversation.file, conversation.title) if part)


def _compare_fields(conversation: Conversation, given: list[Any]) -> Iterable[str]:
    """Return what a repair changes, as a unified diff of the messages, one field a line."""
    name = _name(conversation)
    old, new = (
        [line for each in side for line in json.dumps(each, indent=1, ensure_ascii=False).split("\n")]
        for side in (conversation.stored, given)
    )
    return unified_diff(old, new, f"a/{name}", f"b/{name}", lineterm="")
