"""`suture reduce`: take long and old tool output out of a history, and keep it elsewhere.

Unless it is said what becomes of that output, only the plan is printed, as `check` prints its findings: exit status
0 if there is nothing to do, 1 if there is something. Else the output is saved and the history is written, in the
container and wire it came in. Both are done, or neither.
"""

from argparse import Namespace
from contextlib import ExitStack
from dataclasses import fields
from typing import Any

import msgspec

from suture.cli._conversation import Conversation
from suture.cli._outputs import Outputs
from suture.cli._progress import progress_on
from suture.cli._read import Source, open_source, read_conversations
from suture.cli._refusal import Refusal
from suture.cli._shelf import Shelf
from suture.errors import ConfigError
from suture.reduction import Plan, Settings, plan
from suture.tokens import CharacterCounter, ExactCounter

__all__ = ["run"]


def run(asked: Namespace) -> int:
    """Plan how every conversation of a file is reduced, and do it if that was asked."""
    applies = _applies(asked)
    if asked.output == "-":
        asked.output = None
    settings = _settings(asked)
    with ExitStack() as stack:
        source = stack.enter_context(open_source(asked.file, asked.max_bytes))
        job = _Job(asked, settings, source, stack, applies=applies)
        for conversation in read_conversations(source):
            job.reduce(conversation.sendable())
        job.finish()
    return 1 if job.changed and not applies else 0


class _Job:
    """The reduction of one file: where everything goes, and what has been counted so far."""

    def __init__(
        self, asked: Namespace, settings: Settings, source: Source, stack: ExitStack, *, applies: bool
    ) -> None:
        self._asked, self._settings, self._applies = asked, settings, applies
        self._outputs = Outputs(stack)
        self._history = self._outputs.open(asked.output) if applies else None
        self._shelf = Shelf(asked.save_to, asked.root)
        stack.callback(self._close_shelf)  # comes before the history is discarded, which must tell if it was seen
        self._shelf.probe()
        self._plans = self._outputs.open() if asked.json else None
        if asked.json:
            self._screen = None
        else:
            self._screen = self._outputs.screen_beside(asked.output) if applies else self._outputs.screen()
        self._progress = stack.enter_context(progress_on(source))
        self._many = False
        self._before = self._after = 0
        self.changed = 0

    def reduce(self, conversation: Conversation) -> None:
        """Plan what becomes of one conversation, do it if that is asked, and tell of it."""
        asked = self._asked
        below = f"line-{conversation.line}/" if conversation.many else ""
        with conversation.located():
            taken, wire = conversation.take(asked.wire)
            made = plan(
                taken,
                self._settings,
                wire=wire,
                offload=not asked.discard,
                language=asked.language,
                **self._shelf.makers(below),
            )
            if self._history is not None:
                self._shelf.save(made.saves, asked.output)
                self._history.write(conversation.encode(conversation.give(taken, made.messages)))
        self._tell(conversation, made)
        self._many = conversation.many
        self._before += made.tokens_before
        self._after += made.tokens_after
        self.changed += made.changed
        self._progress.step()

    def finish(self) -> None:
        """Let everything be seen at once."""
        self._progress.close()
        if self._screen is not None and (self._applies or self._many):
            self._screen.say(self._sum())
        self._outputs.publish()

    def _tell(self, conversation: Conversation, made: Plan[Any]) -> None:
        if self._plans is not None:
            record = {"line": conversation.line, "plan": made.to_dict()}
            self._plans.write(msgspec.json.encode(record) + b"\n")
        elif self._screen is not None and (made.changed or not (self._applies or conversation.many)):
            with self._progress.paused():
                self._screen.plan(made, conversation.title)

    def _sum(self) -> str:
        asked, count, files = self._asked, self._progress.count, self._shelf.count
        told = f"{count} conversation{'s' * (count != 1)}, {self.changed} {'changed' if self._applies else 'to reduce'}"
        if self.changed:
            told += f", {self._before} -> {self._after} tokens"
        if files:
            told += f"; {files} file{'s' * (files != 1)} saved in {asked.save_to}"
        return f"{told}; written to {asked.output}" if self._applies and asked.output is not None else told

    def _close_shelf(self) -> None:
        self._shelf.close(keep=self._history is None or self._history.published)


def _applies(asked: Namespace) -> bool:
    """Tell whether the plan is also to be carried out; refuse what does not say how."""
    if asked.plan:
        return False
    if asked.save_to is None and not asked.discard:
        if asked.output is not None:
            raise Refusal("give --save-to DIR to keep what leaves the history, or --discard to clear it for good")
        return False
    if asked.json and asked.output in (None, "-"):
        raise Refusal("the history and the plan cannot both go to standard output; give -o, or --plan")
    return True


def _settings(asked: Namespace) -> Settings:
    """Return what was asked as the engine takes it; the options have the names of the settings."""
    given = {field.name: value for field in fields(Settings) if (value := getattr(asked, field.name, None)) is not None}
    given["skip_truncation"] = asked.skip_truncation or asked.discard  # what is truncated must be saved
    excluded = asked.exclude or ()
    try:
        counter = CharacterCounter() if asked.tokenizer == "characters" else ExactCounter(asked.tokenizer)
        return Settings(**given, token_counter=counter, trunc_exclude_tools=excluded, clear_exclude_tools=excluded)
    except ConfigError as error:
        raise Refusal(str(error)) from None
