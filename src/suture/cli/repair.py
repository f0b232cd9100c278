"""`suture check` says what a provider would refuse; `suture repair` writes the repaired history in the same form.

The exit status is 0 if nothing was found, or all was repaired; else 1. `check` shows its findings at once on a
terminal; to a pipe it writes nothing unless the whole input could be read. `repair` to standard output writes each line
as it comes, and lines that need no repair byte for byte. What it did is shown on standard output if the history goes to
a file (with a view of what changed, on a terminal), else on standard error, if that is a terminal.
"""

import json
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Sequence
from difflib import unified_diff
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Any, TypeVar

import msgspec

from suture._text import plural, visible
from suture.cli.files import Conversation, Source, find_files, open_source
from suture.cli.output import IN_MEMORY, Output, Outputs, Screen, compare, keep_apart
from suture.cli.refusals import Refusal, complain, is_terminal
from suture.repair import check, repair, visible_json

T = TypeVar("T")
_VIEWS = 10
"""For how many conversations of a file a view of the changes is shown."""


def run_check(asked: Namespace) -> int:
    """Check every conversation of the files and print the findings."""
    files = find_files(asked.files)
    several = many = len(files) > 1
    count = found = 0
    with Outputs() as outputs:
        output = outputs.open()
        screen = outputs.screen(output)

        def check_file(file: str) -> int:
            nonlocal count, found, many
            with open_source(file, asked) as source:
                for conversation in source:
                    with source.skipping(conversation):
                        messages, wire = conversation.take(asked.wire)
                        report = check(messages, wire=wire, profile=asked.profile, tail=asked.tail)
                        many |= conversation.many
                        found += not report.acceptable
                        if asked.json:
                            record = {"line": conversation.line, "report": report.to_dict()}
                            record = {"file": file, **record} if several else record
                            output.write(visible_json(record).encode() + b"\n")
                        elif not asked.quiet and not (many and report.acceptable):
                            source.pause()
                            screen.report(report, conversation.name if several else conversation.title)
                count += source.count
            return source.tell_bad("left out")

        status = go_through(files, check_file)
        if many and not asked.json and not asked.quiet:
            screen.say(f"{plural(count, 'conversation')}: {count - found} acceptable, {found} with findings")
        outputs.publish()
    return max(status, 1 if found else 0)


def go_through(files: Sequence[T], work: Callable[[T], int]) -> int:
    """Do the work on each file and return the worst status; of several, a refused one does not stop the rest."""
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
            job = _Job(Namespace(**{**vars(asked), "output": targets[file], "several": len(files) > 1}), report)
            return job.run(file)

        status = go_through(files, work)
        outputs.publish()
    return status


def _choose_targets(asked: Namespace, files: Sequence[str]) -> list[str | None]:
    """Return the path that each repaired file goes to; `None` is standard output, or no file for `--diff`."""
    if asked.diff:
        return [None for _ in files]
    if asked.in_place:
        if asked.output is not None or "-" in files:
            raise Refusal("--in-place writes each file over itself: it takes no -o, and no standard input")
        return list(files)
    if asked.output is not None and os.path.isdir(asked.output):  # noqa: PTH112 - a bad path is reported later
        targets = [str(Path(asked.output, Path(file).name)) for file in files]
        if len(set(targets)) < len(files):
            raise Refusal("two files of one name would be written there", asked.output)
        return list(targets)
    if len(files) > 1:
        raise Refusal("several files need -o DIRECTORY (one that exists) or --in-place")
    return [asked.output for _ in files]


class _Job:
    """The repair of one file: what was asked, and what has been done so far."""

    def __init__(self, asked: Namespace, report: Output | None) -> None:
        self._asked, self._report = asked, report
        self._changed = self._passed = self._unresolved = 0
        self._first_unresolved = ""

    def run(self, file: str) -> int:
        """Repair and write every conversation; the report is written after them."""
        asked = self._asked
        with open_source(file, asked) as source, Outputs() as outputs:
            history = outputs.open(asked.output, live=asked.output is None)
            diff = outputs.screen(history) if asked.diff else None
            done = outputs.enter_context(SpooledTemporaryFile(IN_MEMORY))  # noqa: SIM115 - closed by the stack
            quiet = asked.quiet or asked.diff or asked.report == "-"
            screen = None if quiet else outputs.screen_beside(asked.output)
            for conversation in source:
                self._pass_bad(source, history)
                with source.skipping(conversation):
                    self._repair(conversation, history if diff is None else diff, done, screen, source)
            self._pass_bad(source, history)
            if not asked.in_place or self._changed or self._passed:  # an unchanged file is not rewritten
                if screen is not None:
                    line = f"{plural(source.count, 'conversation')}, {self._changed} changed"
                    screen.say(f"{line}; written to {asked.output}" if asked.output else line)
                outputs.publish()
            done.seek(0)
            for record in done:
                if self._report is not None:
                    self._report.write(record)
        status = source.tell_bad("left as it is")
        if self._unresolved:
            others = f" (and {self._unresolved - 1} more)" if self._unresolved > 1 else ""
            complain(visible(f"suture: {source.name}, {self._first_unresolved}{others}"))
        return max(status, 1 if self._unresolved or (asked.diff and self._changed) else 0)

    def _repair(
        self,
        conversation: Conversation,
        target: Output | Screen,
        done: IO[bytes],
        screen: Screen | None,
        source: Source,
    ) -> None:
        """Repair one conversation, write it, and show what was done."""
        asked = self._asked
        taken, wire = conversation.take(asked.wire)
        options: dict[str, Any] = {name: getattr(asked, name) for name in ("profile", "tail", "orphans", "language")}
        repaired = repair(taken, wire=wire, **options)
        given = conversation.give(taken, repaired.messages)
        if isinstance(target, Screen):
            target.diff(_compare_fields(conversation, given))
        else:
            if asked.output is None and is_terminal(sys.stdout):
                source.pause()
            target.write_pieces(conversation.encode(given))
        if self._report is not None:
            record = {"file": conversation.file} if asked.several else {}
            record |= {"line": conversation.line, "changed": repaired.changed, "report": repaired.report.to_dict()}
            done.write(msgspec.json.encode({**record, "pending": repaired.pending}) + b"\n")
        if screen is not None and not repaired.report.acceptable:
            source.pause()
            screen.report(repaired.report, conversation.name if asked.several else conversation.title)
            viewed = repaired.changed and self._changed < _VIEWS
            if viewed and asked.output is not None and is_terminal(sys.stdout):
                screen.history("what changed", *compare(taken, repaired.messages, repaired.report.wire))
        self._changed += repaired.changed
        if repaired.unresolved and not self._unresolved:
            finding = repaired.unresolved[0]
            place = ", ".join(filter(None, (conversation.title, f"message {finding.index}")))
            self._first_unresolved = f"{place}: not repaired: {finding.problem}; {finding.says}"
        self._unresolved += len(repaired.unresolved)

    def _pass_bad(self, source: Source, history: Output) -> None:
        """Write unreadable lines as they are, except a last line that was cut off."""
        for bad in source.bad[self._passed :]:
            if not (bad.torn or self._asked.diff):
                history.write(bad.data)
        self._passed = len(source.bad)


def _compare_fields(conversation: Conversation, given: list[Any]) -> Iterable[str]:
    """Return the changes of a repair as a unified diff of the messages, one field a line."""
    old, new = (
        [line for each in side for line in json.dumps(each, indent=1, ensure_ascii=False).split("\n")]
        for side in (conversation.stored, given)
    )
    return unified_diff(old, new, f"a/{conversation.name}", f"b/{conversation.name}", lineterm="")
