"""`suture chat`: an agent in the terminal. Ctrl-C stops its turn, not the program, and the conversation goes on.

On a terminal the exit status is 0. Through a pipe it is the last turn's: 0, 1 if it failed, 130 if it was stopped.
"""

import sys
from argparse import Namespace
from concurrent.futures import Future, wait
from contextlib import ExitStack
from os import urandom
from signal import SIGINT
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from suture.cli._chat_commands import Commands
from suture.cli._chat_input import Lines
from suture.cli._chat_load import load_model, load_tools, make_agent
from suture.cli._chat_show import Show
from suture.cli._chat_signals import Signals
from suture.cli._chat_talk import Talk
from suture.cli._chat_turn import Background, Turn
from suture.cli._refusal import Refusal, told
from suture.cli._streams import complain, is_terminal
from suture.cli._visible import shorten
from suture.events import Interrupt
from suture.kernel import Approval, Outcome, Run, RunResult
from suture.stores import MemoryStore
from suture.wires import get_chat_wire

__all__ = ["run"]

_FAILED, _STOPPED = 1, 128 + SIGINT
_LONGEST_ERROR = 400
_PATIENCE = 5.0
"""How many seconds a turn has to end when the program is told to."""


def run(asked: Namespace) -> int:
    """Talk until there is nothing more to say."""
    with ExitStack() as stack:
        return _Chat(asked, stack).go()


class _Chat:
    """One conversation: the terminal on one side, the agent on the other."""

    def __init__(self, asked: Namespace, stack: ExitStack) -> None:
        self._lines = Lines()
        model, tools = load_model(asked.model), load_tools(asked.tools)
        self._talk = Talk(get_chat_wire(model.wire), asked.history)
        self._commands = Commands(self._talk, model.profile, [tool.info for tool in tools])
        if asked.history is None:
            outputs = stack.enter_context(TemporaryDirectory(prefix="suture-chat-"))
        else:
            outputs = f"{asked.history}.outputs"
        self._store = MemoryStore()
        self._agent = make_agent(asked, model, tools, self._talk, self._store, outputs)
        self._options = {} if asked.max_reply is None else {"max_tokens": asked.max_reply}
        self._show = Show(sys.stdout, sys.stdout if is_terminal(sys.stdout) else sys.stderr)
        self._background = Background()
        stack.callback(self._background.close)
        self._signals = stack.enter_context(Signals(self._lines.interrupt, self._background.loop))
        self._turn: Turn | None = None
        self._presses = self._leaves_with = self._status = 0
        self._deadline = 0.0
        if self._lines.is_typed:
            self._greet(asked.model, len(tools))

    def _greet(self, model: str, tools: int) -> None:
        parts = [model, f"{tools} tool{'s' * (tools != 1)}"]
        if self._talk.path is not None:
            count = len(self._talk.messages)
            parts.append(f"{count} message{'s' * (count != 1)} in {self._talk.path}")
        self._show.note(f"{', '.join(parts)}. /help shows the commands, Ctrl-D leaves.", "")

    def go(self) -> int:
        """Read and answer until the end; return the exit status."""
        while True:
            try:
                if not self._step():
                    return 0 if self._lines.is_typed else self._status
            except KeyboardInterrupt:
                if not self._lines.is_typed:
                    raise
                if self._lines.clear():
                    return 0
                if self._lines.may_leave:
                    self._show.note("(Ctrl-C once more, or Ctrl-D, leaves)", "")

    def _step(self) -> bool:
        """Read one message and do what it asks; tell whether there may be more."""
        try:
            said = self._lines.next()
        except UnicodeError:
            self._fail("that is not UTF-8, and was not sent")
            return True
        if said is None:
            return False
        try:
            if said.startswith("/") and not said.startswith("//"):
                return self._commands.obey(said)
            if said.strip():
                self._answer(said[1:] if said.startswith("//") else said)
        except Refusal as refusal:
            self._fail(str(refusal))
        return True

    def _answer(self, said: str) -> None:
        """Let the agent answer, and ask back as often as it wants to know something."""
        history = [*self._talk.messages, self._talk.wire.user(said)]
        checkpoint = urandom(8).hex()
        run = self._agent.run(history, checkpoint_id=checkpoint, options=self._options)
        self._status = 0
        while (result := self._watch(run)) is not None and result.outcome is Outcome.INTERRUPTED:
            answers = {asked.id: self._ask(asked) for asked in result.interrupts}
            run = self._agent.resume(checkpoint, answers, options=self._options)
        self._background.begin(self._store.delete(checkpoint)).result()
        if result is None:
            return
        self._talk.spend(result.usage)
        if result.outcome is Outcome.CANCELLED:
            self._show.note("(stopped)")
            self._status = _STOPPED
        elif result.error is not None:
            self._fail(f"{told(result.error)} (go on as you like, or take your message back with /undo)")

    def _watch(self, run: Run[Any]) -> RunResult[Any] | None:
        """See a run to its end and keep what came of it. Nothing interrupts this; a signal asks for the end."""
        self._turn, self._presses = Turn(run, self._show, self._background.loop), 0
        try:
            with self._signals.sent_to(self._signalled):
                running = self._background.begin(self._turn.go())
                self._wait_for(running)
                if run.result is not None:
                    self._keep(run.result)
                if running.done():
                    running.result()  # raises what could not be shown
                    self._show.end_line()
        finally:
            if self._leaves_with:
                sys.exit(self._leaves_with)
        return run.result

    def _keep(self, result: RunResult[Any]) -> None:
        try:
            self._talk.keep(result.messages)
        except Refusal as refusal:
            self._fail(str(refusal))

    def _wait_for(self, running: "Future[Any]") -> None:
        while not running.done() and not (self._leaves_with and monotonic() > self._deadline):
            wait([running], timeout=0.5)

    def _signalled(self, number: int) -> None:
        """Ask the turn to stop; leave if it does not, and somebody insists."""
        self._presses += number == SIGINT
        if number != SIGINT or self._presses > 2:
            self._leaves_with = 128 + number
            self._deadline = monotonic() + (0 if number == SIGINT else _PATIENCE)
        elif self._presses == 2:
            self._show.note("(still stopping; Ctrl-C once more leaves)")
        if self._turn is not None:
            self._turn.stop()

    def _ask(self, asked: Interrupt) -> Any:
        """Return what somebody answers to a tool that asks; only a yes is one."""
        info = asked.info
        approves = isinstance(info, dict) and {"tool", "arguments"} <= info.keys()
        if not self._lines.is_typed:
            return Approval(approved=False, reason="nobody was there to ask") if approves else ""
        self._show.question(f"run {info['tool']} {info['arguments']}" if approves else f"{asked.name} asks: {info}")
        try:
            said = (self._lines.ask("yes or no? " if approves else "answer> ") or "").strip()
        except (KeyboardInterrupt, UnicodeError):
            said = ""
        if not approves:
            return said
        yes = said.lower() in {"y", "yes"}
        return Approval(approved=yes, reason="" if yes or said.lower() in {"n", "no"} else said)

    def _fail(self, text: str) -> None:
        self._status = _FAILED
        self._show.end_line()
        complain(f"suture: {shorten(text, _LONGEST_ERROR)}")
