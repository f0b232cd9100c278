"""`suture chat`: an agent in the terminal. Ctrl-C stops the agent's turn, not the program.

On a terminal the exit status is 0. Through a pipe it is the last turn's: 0, 1 if it failed, 130 if it was stopped.
"""

import asyncio
import os
import shutil
import signal
import sys
from argparse import Namespace
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from io import IncrementalNewlineDecoder
from shutil import get_terminal_size
from tempfile import TemporaryDirectory
from threading import Timer
from typing import Any, NoReturn, TextIO

from suture import events
from suture._extras import check_extra
from suture._text import plural, replace_surrogates, shorten_line, visible, visible_lines
from suture.cli.output import Screen, outline
from suture.cli.refusals import Refusal, Unwritten, complain, describe_error, is_terminal, show
from suture.cli.talk import Talk, load_model, load_tools, make_agent
from suture.kernel import Approval, Outcome, Run, RunResult
from suture.repair import check
from suture.stores import MemoryStore
from suture.tokens import CharacterCounter, Tally
from suture.wires import get_chat_wire

try:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.input import DummyInput
    from prompt_toolkit.output import DummyOutput, create_output
    from rich.console import Console
    from rich.text import Text
finally:
    check_extra("cli", "prompt_toolkit")
    check_extra("cli", "rich")

_PROMPT, _MORE = "you> ", "...> "
_FAILED, _STOPPED = 1, 128 + signal.SIGINT
_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
_LONGEST_ERROR, _QUOTED = 400, 60
_GRACE_PERIOD = 5.0
"""How many seconds a turn, or a task that a tool started, has to end when the program ends."""
_REMINDER_DELAY = 0.5


def run(asked: Namespace) -> int:
    """Read messages and answer them until the input ends."""
    with ExitStack() as stack:
        chat = _Chat(asked, stack)
        status = chat.go()
        chat.end(status)
    return status


# --- what is typed --------------------------------------------------------------------------------


class _Lines:
    """Messages from standard input: edited at a terminal, read line by line otherwise.

    A line that ends in an odd number of backslashes goes on in the next.
    """

    def __init__(self, loop: asyncio.Runner) -> None:
        stream: Any = sys.stdin
        if stream is None:  # a shell can close it
            raise Refusal("is closed", "standard input")
        self._loop, self._presses = loop, 0
        self.is_typed = is_terminal(stream)
        streams: dict[str, Any] = {"input": DummyInput(), "output": DummyOutput()}
        if self.is_typed:
            streams = {"output": create_output(always_prefer_tty=True)}
        self._session, self._answers = PromptSession[str](**streams), PromptSession[str](**streams)

    def next(self) -> str | None:
        """Return the next message; `None` at the end, `""` after a Ctrl-C. Raise `UnicodeError` if it is not UTF-8."""
        lines: list[str] = []
        while True:
            try:
                line = self._read(_MORE if lines else _PROMPT)
            except KeyboardInterrupt:
                if not self.is_typed:
                    raise
                return self._clear(is_empty=not lines)
            if line is None:
                return "\n".join(lines) if lines else None
            self._presses = 0
            if (len(line) - len(line.rstrip("\\"))) % 2 == 0:
                return "\n".join([*lines, line])
            lines.append(line[:-1])

    async def ask(self, prompt: str) -> str:
        """Return the user's answer in the middle of a turn; `""` after Ctrl-C, Ctrl-D, or input that is not UTF-8."""
        try:
            said = await self._answers.prompt_async(prompt)
            said.encode()
        except (KeyboardInterrupt, EOFError, UnicodeError):
            return ""
        return said.strip()

    def _read(self, prompt: str) -> str | None:
        if not self.is_typed:
            data = sys.stdin.buffer.readline()
            return data.decode().rstrip("\r\n") if data else None
        try:
            line = self._loop.run(self._session.prompt_async(prompt))  # tasks that tools started go on meanwhile
        except EOFError:
            return None
        line.encode()  # bytes that are not UTF-8 arrive as surrogates
        return line

    def _clear(self, *, is_empty: bool) -> str | None:
        """Drop the lines typed so far after a Ctrl-C; a second one in a row, with nothing typed, ends the chat."""
        is_empty = is_empty and not self._session.default_buffer.text
        self._presses = self._presses + 1 if is_empty else 0
        if self._presses == 1:
            print("(Ctrl-C once more, or Ctrl-D, leaves)", flush=True)
        return None if self._presses > 1 else ""


# --- what is seen ---------------------------------------------------------------------------------


class _Show:
    """Writes the reply as it streams, and notes about what else happens: to standard error, if output is a pipe."""

    def __init__(self) -> None:
        self._out: TextIO | None = sys.stdout
        self._console = Console(highlight=False, markup=False, emoji=False) if is_terminal(self._out) else None
        self._spinner = self._console.status(Text("thinking", "dim")) if self._console is not None else None
        self._shown_calls: set[str] = set()
        self._in_line = False
        self._newlines = IncrementalNewlineDecoder(None, translate=True)
        self._streamed = ""

    def begin(self) -> None:
        """Begin a turn."""
        self._shown_calls.clear()

    def rest(self) -> None:
        """Remove the spinner."""
        if self._spinner is not None:
            self._spinner.stop()

    def event(self, event: events.AnyEvent) -> None:
        """Show an event, if it matters to somebody who waits for an answer."""
        self.rest()
        outermost = len(event.run_path) < 2
        indent = "  " * len(event.run_path)
        match event:
            case events.MessageDelta() if outermost:
                self._streamed = event.message_id
                self.say(event.text)
            case events.MessageFinished() if outermost:
                self._finish(event)
            case events.ModelStarted() if outermost and self._spinner is not None:
                self._spinner.start()
            case events.ToolStarted() if event.call_id not in self._shown_calls:
                self._shown_calls.add(event.call_id)  # a call that waited for approval starts again
                self.note(f"-> {event.name} {event.arguments}", indent)
            case events.ToolFinished():
                self.note(f"<- {event.name}{' failed:' if event.result.is_error else ''} {event.text}", indent)
            case events.RetryScheduled():
                self.note(f"(trying again in {event.delay:.1f} s: {event.error or event.reason})", indent)
            case events.HistoryRewritten():
                self.note(f"({event.by} changed the history: {event.before} -> {event.after} messages)", indent)
            case _:
                pass

    def say(self, text: str, *, is_last: bool = False) -> None:
        """Write a piece of the reply; `is_last` flushes a trailing carriage return."""
        text = self._newlines.decode(text, is_last)
        if text:
            show(self._out, visible_lines(replace_surrogates(text)))
            self._in_line = not text.endswith("\n")

    def end_line(self) -> None:
        """Make sure that the next output begins on a new line."""
        self.say("", is_last=True)
        if self._in_line:
            show(self._out, "\n")
            self._in_line = False

    def note(self, text: str, indent: str = "  ") -> None:
        """Write one line, shortened to the width of the terminal."""
        self.end_line()
        self._write_note(f"{indent}{shorten_line(text, _width(indent))}")

    def question(self, text: str, indent: str = "  ") -> None:
        """Write the whole of a text that the user has to decide about, indented and in as many lines as it takes."""
        self.end_line()
        width = _width(indent)
        for line in map(visible, text.split("\n")):
            for start in range(0, len(line) or 1, width):
                self._write_note(f"{indent}{line[start : start + width]}")

    def _write_note(self, line: str) -> None:
        if self._console is None:
            show(sys.stderr, f"{line}\n")
        else:
            self._console.print(Text(line, "dim"), soft_wrap=True)

    def _finish(self, event: events.MessageFinished) -> None:
        if event.message_id != self._streamed:
            self.say(event.text)
        self.end_line()
        meta: Any = getattr(event.message, "response_meta", None)
        if meta is not None and meta.finish_reason == "length":
            self.note("(cut off: the reply reached its limit of tokens)")


def _width(indent: str) -> int:
    return max(get_terminal_size((100, 24)).columns - len(indent) - 1, 20)


# --- the conversation -----------------------------------------------------------------------------


class _Chat:
    """One conversation: the terminal on one side, the agent on the other, both in one event loop."""

    def __init__(self, asked: Namespace, stack: ExitStack) -> None:
        runner = stack.enter_context(asyncio.Runner())
        self._runner, self._loop = runner, runner.get_loop()
        self._lines = _Lines(runner)
        model, tools = load_model(asked.model), load_tools(asked.tools)
        self._profile, self._tool_infos = model.profile, [tool.info for tool in tools]
        self._talk = Talk(get_chat_wire(model.wire), asked.history)
        self._scratch = ""
        if asked.history is None:
            self._scratch = stack.enter_context(TemporaryDirectory(prefix="suture-chat-", ignore_cleanup_errors=True))
        self._store = MemoryStore()
        outputs = self._scratch or f"{asked.history}.outputs"
        self._agent = make_agent(asked, model, tools, self._talk, self._store, outputs)
        self._options = {} if asked.max_reply is None else {"max_tokens": asked.max_reply}
        self._show = _Show()
        self._stops: list[asyncio.Task[Any]] = []
        self._signal_status = self._status = 0
        if self._lines.is_typed:
            parts = [asked.model, plural(len(tools), "tool")]
            if self._talk.path is not None:
                parts.append(f"{plural(len(self._talk.messages), 'message')} in {self._talk.path}")
            self._show.note(f"{', '.join(parts)}. /help shows the commands, Ctrl-D leaves.", "")

    def go(self) -> int:
        """Read and answer until the end; return the exit status."""
        while True:
            try:
                said = self._lines.next()
            except UnicodeError:
                self._fail("that is not UTF-8, and was not sent")
                continue
            if said is None or said.split() == ["/quit"]:
                return 0 if self._lines.is_typed else self._status
            try:
                if said.startswith("/") and not said.startswith("//"):
                    self._run_command(said)
                elif said.strip():
                    self._runner.run(self._answer(said[1:] if said.startswith("//") else said))
            except Unwritten:
                raise
            except Refusal as refusal:
                self._fail(str(refusal))
            if self._signal_status:
                return self._signal_status

    def end(self, status: int) -> None:
        """Cancel the tasks that tools started, and leave without those that do not end in time."""
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        if left and self._runner.run(_wait(left)):
            self._leave(status)

    async def _answer(self, said: str) -> None:
        """Let the agent answer, and ask the user whenever it interrupts."""
        history = [*self._talk.messages, self._talk.wire.user(said)]
        checkpoint = os.urandom(8).hex()
        run = self._agent.stream(history, checkpoint_id=checkpoint, options=self._options)
        self._status = 0
        self._show.begin()
        while (result := await self._watch(run)) is not None and result.outcome is Outcome.INTERRUPTED:
            answers = {asked.id: await self._ask(asked) for asked in result.interrupts}
            run = self._agent.stream(resume=checkpoint, answers=answers, options=self._options)
        await self._store.delete(checkpoint)
        if result is None:
            return
        self._talk.spend(result.usage)
        if result.outcome is Outcome.CANCELLED:
            self._show.note("(stopped)")
            self._status = _STOPPED
        elif result.error is not None:
            hint = " (go on as you like, or take your message back with /undo)" if self._lines.is_typed else ""
            self._fail(f"{describe_error(result.error)}{hint}")

    async def _watch(self, run: Run[Any, Any]) -> RunResult[Any, Any] | None:
        """Show a run to its end and keep its messages. A signal cancels the run; it never interrupts this method."""
        self._stops.clear()
        try:
            with self._cancel_on_signals(run.cancel):
                try:
                    async with run:
                        async for event in run:
                            self._show.event(event)
                except Exception as error:
                    if run.final_result is None or run.final_result.error is not error:
                        raise  # showing it failed, not the run
                await asyncio.gather(*self._stops)
        finally:
            self._show.rest()
            if run.final_result is not None:
                self._keep(run.final_result)
        self._show.end_line()
        return run.final_result

    def _keep(self, result: RunResult[Any, Any]) -> None:
        try:
            self._talk.keep(result.messages)
        except Refusal as refusal:
            self._fail(str(refusal))

    async def _ask(self, asked: events.Interrupt) -> Any:
        """Ask the user what an interrupt asks; a tool is approved only by "y" or "yes"."""
        info = asked.info
        approves = isinstance(info, dict) and {"tool", "arguments"} <= info.keys()
        if not self._lines.is_typed:
            return Approval(approved=False, reason="nobody was there to ask") if approves else ""
        self._show.question(f"run {info['tool']} {info['arguments']}" if approves else f"{asked.name} asks: {info}")
        said = await self._lines.ask("yes or no? " if approves else "answer> ")
        if not approves:
            return said
        yes = said.lower() in {"y", "yes"}
        return Approval(approved=yes, reason="" if yes or said.lower() in {"n", "no"} else said)

    def _fail(self, text: str) -> None:
        self._status = _FAILED
        self._show.end_line()
        complain(f"suture: {shorten_line(text, _LONGEST_ERROR)}")

    # --- signals: the first cancels the turn, a second Ctrl-C leaves --------------------------------

    @contextmanager
    def _cancel_on_signals(self, cancel: Callable[[], Any]) -> Generator[None]:
        """Let signals cancel the turn instead of raising in the middle of it.

        The event loop does not handle them, because a tool that blocks it must not hold the terminal.
        """

        def stop() -> None:
            if not self._stops:
                self._stops.append(asyncio.ensure_future(cancel()))
                self._loop.call_later(_REMINDER_DELAY, remind)

        def remind() -> None:
            if not all(task.done() for task in self._stops):
                self._show.rest()
                self._show.note("(stopping; Ctrl-C once more leaves)")

        def take(number: int, _: object) -> None:
            if number != signal.SIGINT:
                self._signal_status = 128 + number
                timer = Timer(_GRACE_PERIOD, self._leave, [self._signal_status])
                timer.daemon = True
                timer.start()
            elif asked:
                self._leave(_STOPPED)
            asked.append(number)
            self._loop.call_soon_threadsafe(stop)

        asked: list[int] = []
        before = {number: signal.getsignal(number) for number in _SIGNALS}
        for number in (number for number in _SIGNALS if before[number] is not signal.SIG_IGN):
            signal.signal(number, take)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _leave(self, status: int) -> NoReturn:
        """Leave at once, without waiting for anything that still runs."""
        self._show.rest()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):
                stream.flush()
        if self._scratch:
            shutil.rmtree(self._scratch, ignore_errors=True)
        os._exit(status)

    # --- commands: none of this is sent to the model ------------------------------------------------

    def _run_command(self, line: str) -> None:
        name, *rest = line.split()
        screen = Screen(sys.stdout)
        if name not in _COMMANDS:
            screen.say(f"there is no {shorten_line(name, _QUOTED)}; /help lists the commands, and // sends a slash")
        elif rest:
            screen.say(f"{name} takes nothing after it; //… sends a message that begins with a slash")
        else:
            _COMMANDS[name][1](self, screen)

    def show_history(self, screen: Screen) -> None:
        if self._talk.messages:
            screen.history("history", outline(self._talk.messages, self._talk.wire.name))
        else:
            screen.say("nothing was said so far")

    def check(self, screen: Screen) -> None:
        screen.report(check(self._talk.messages, wire=self._talk.wire.name, profile=self._profile))

    def undo(self, screen: Screen) -> None:
        taken = self._talk.undo()
        if not taken:
            screen.say("there is nothing to take back")
            return
        said = shorten_line(self._talk.wire.text(taken[0]), _QUOTED)
        behind = f" and {plural(len(taken) - 1, 'message')} after it" if len(taken) > 1 else ""
        screen.say(f'taken back: "{said}"{behind}')

    def count(self, screen: Screen) -> None:
        used, messages = self._talk.usage, self._talk.messages
        total = Tally(self._talk.wire, CharacterCounter()).total(messages, self._tool_infos)
        sums = f"{used.prompt_tokens} tokens read, {used.completion_tokens} written, {used.total_tokens} together"
        screen.say(f"used: {sums}" if used.total_tokens else "used: the model reported nothing so far")
        screen.say(f"history: {plural(len(messages), 'message')}, about {total} tokens with the tools")

    def help(self, screen: Screen) -> None:
        for name, (about, _) in _COMMANDS.items():
            screen.say(f"{name:<10}{about}")
        screen.say("//…       send a message that begins with a slash")
        screen.say("A line that ends in \\ continues. Ctrl-C stops an answer, or clears the line. Ctrl-D leaves.")


_COMMANDS: Mapping[str, tuple[str, Callable[[_Chat, Screen], Any]]] = {
    "/history": ("show the conversation, one line a message", _Chat.show_history),
    "/check": ("say what the provider would refuse in it", _Chat.check),
    "/undo": ("take back your last message and all that followed", _Chat.undo),
    "/tokens": ("say how many tokens were used, and how many the history has", _Chat.count),
    "/help": ("show this", _Chat.help),
    "/quit": ("leave", _Chat.help),
}


async def _wait(tasks: set[asyncio.Task[Any]]) -> bool:
    """Wait for tasks, but not for ever; return whether some still run."""
    _, running = await asyncio.wait(tasks, timeout=_GRACE_PERIOD)
    return bool(running)
