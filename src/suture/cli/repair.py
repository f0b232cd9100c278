"""`suture check` says what a provider would refuse; `suture repair` writes the history repaired, in its old form.

Exit status 0 if nothing was found, or all was mended; else 1. What `check` finds is shown as it is found on a terminal;
in a pipe nothing is written unless the whole input could be read. What `repair` does is shown on standard output if the
history goes to a file (with a view of before and after, on a terminal), else on standard error, if that is a terminal.
"""

import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import msgspec

from suture._text import plural, visible
from suture.cli.files import Conversation, Refusal, Source, open_source, read_conversations
from suture.cli.outline import compare
from suture.cli.output import Outputs, Screen, complain, is_terminal, progress_on
from suture.repair import Repaired, check, repair, visible_json

_VIEWS = 10
"""How many conversations of one file are shown before and after."""


def run_check(asked: Namespace) -> int:
    """Check every conversation of a file and print what was found."""
    found = 0
    with ExitStack() as stack:
        source = stack.enter_context(open_source(asked.file, asked.max_bytes))
        outputs = Outputs(stack)
        output = outputs.open()
        screen = outputs.screen(output)
        progress = stack.enter_context(progress_on(source))
        many = False
        for conversation in read_conversations(source):
            with conversation.located():
                messages, wire = conversation.take(asked.wire)
                report = check(messages, wire=wire, profile=asked.profile, tail=asked.tail)
            many = conversation.many
            found += not report.acceptable
            if asked.json:
                line = visible_json({"line": conversation.line, "report": report.to_dict()})
                output.write(line.encode() + b"\n")
            elif not (many and report.acceptable):
                with progress.paused():
                    screen.report(report, conversation.title)
            progress.step()
        progress.close()
        if many and not asked.json:
            count = progress.count
            screen.say(f"{plural(count, 'conversation')}: {count - found} acceptable, {found} with findings")
        outputs.publish()
    return 1 if found else 0


def run_repair(asked: Namespace) -> int:
    """Repair every conversation of a file and write them all."""
    if asked.output == "-":
        asked.output = None
    _check_paths(asked)
    with ExitStack() as stack:
        source = stack.enter_context(open_source(asked.file, asked.max_bytes))
        job = _Job(asked, source, stack)
        for conversation in read_conversations(source):
            job.repair(conversation)
        job.finish()
    if job.unresolved:
        line = f"suture: {source.name}, {job.first_unresolved}"
        if job.unresolved > 1:
            line += f" (and {job.unresolved - 1} more)"
        complain(visible(line))
    return 1 if job.unresolved else 0


class _Job:
    """The repair of one file: where everything goes, and what has been counted so far."""

    def __init__(self, asked: Namespace, source: Source, stack: ExitStack) -> None:
        self._asked = asked
        self._outputs = Outputs(stack)
        self._history = self._outputs.open(asked.output)
        self._report = self._outputs.open(asked.report) if asked.report is not None else None
        self._screen = None if asked.report == "-" else self._outputs.screen_beside(asked.output)
        self._progress = stack.enter_context(progress_on(source))
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
            self._history.write(conversation.encode(conversation.give(taken, repaired.messages)))
        if self._report is not None:
            self._report.write(_record(conversation, repaired))
        if self._screen is not None and not repaired.report.acceptable:
            with self._progress.paused():
                self._show(self._screen, conversation.title, taken, repaired)
        self._count(conversation, repaired)
        self._progress.step()

    def finish(self) -> None:
        """Let everything be seen at once."""
        self._progress.close()
        if self._screen is not None:
            count = self._progress.count
            line = f"{plural(count, 'conversation')}, {self.changed} changed"
            self._screen.say(f"{line}; written to {self._asked.output}" if self._asked.output else line)
        self._outputs.publish()

    def _show(self, screen: Screen, title: str, before: Sequence[Any], repaired: Repaired[Any]) -> None:
        screen.report(repaired.report, title)
        viewed = repaired.changed and self.changed < _VIEWS
        if viewed and self._asked.output is not None and is_terminal(sys.stdout):
            old, new = compare(before, repaired.messages, repaired.report.wire)
            screen.history("before", old)
            screen.history("after", new)

    def _count(self, conversation: Conversation, repaired: Repaired[Any]) -> None:
        self.changed += repaired.changed
        if repaired.unresolved and not self.unresolved:
            finding = repaired.unresolved[0]
            places = [place for place in (conversation.title, f"message {finding.index}") if place]
            self.first_unresolved = f"{', '.join(places)}: not mended: {finding.problem}; {finding.says}"
        self.unresolved += len(repaired.unresolved)


def _record(conversation: Conversation, repaired: Repaired[Any]) -> bytes:
    record = {
        "line": conversation.line,
        "changed": repaired.changed,
        "report": repaired.report.to_dict(),
        "pending": msgspec.to_builtins(repaired.pending),
    }
    return msgspec.json.encode(record) + b"\n"


def _check_paths(asked: Namespace) -> None:
    """Refuse to write two things to one place, or the report over the history."""
    if asked.report is None:
        return
    if asked.report == "-":
        if asked.output is None:
            raise Refusal("the history and the report cannot both go to standard output; give -o")
        return
    report = os.path.realpath(asked.report)
    for other in (asked.output, asked.file):
        if other is not None and other != "-" and os.path.realpath(other) == report:
            raise Refusal("the report would be written over the history", asked.report)
