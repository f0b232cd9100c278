"""The entry: what may be asked, which command does it, and what becomes of its errors.

Every error is one line, never a traceback.
"""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper
from typing import Any, NoReturn, TextIO

from suture._text import visible
from suture.cli.files import MAX_BYTES, Refusal, describe_error
from suture.cli.output import complain
from suture.profiles import PROFILES
from suture.wires import WIRES

_UNREADABLE = 2
_INTERRUPTED = 128 + signal.SIGINT
_TERMINATED = 128 + signal.SIGTERM
_NOBODY_READS = 141
_LONGEST_LINE = 500
_LONGEST_NAME = 200

_ABOUT = """\
Agent histories that never break: find and mend what a provider would refuse in a conversation
with tool calls, take tool output out of it that is too long or too old, or talk to an agent.

FILE holds messages of any provider, as a JSON array, as an object with messages, input or contents,
or as JSON Lines with one message or one conversation a line. - is standard input."""

_COMMANDS = {
    "check": (
        "repair:run_check",
        "Say what a provider would refuse. Nothing is changed.",
        ("0 acceptable", "1 something was found"),
        ("check conversation.json", "check --profile mistral --json log.jsonl"),
    ),
    "repair": (
        "repair:run_repair",
        "Make a history acceptable, and write it in the form it came in.",
        ("0 acceptable now", "1 something could not be mended"),
        (
            "repair conversation.json -o repaired.json",
            "repair --report findings.jsonl - < log.jsonl > repaired.jsonl",
        ),
    ),
    "reduce": (
        "reduce:run",
        "Take tool output that is too long or too old out of a history, and keep it in files.",
        ("0 reduced, or nothing to reduce", "1 a plan has something to reduce"),
        (
            "reduce --max-tokens 50000 conversation.json",
            "reduce --max-tokens 50000 --save-to outputs conversation.json -o reduced.json",
        ),
    ),
    "convert": (
        "convert:run",
        "Write a history as another provider has it, and name what could not cross. Nothing is repaired.",
        ("0 all of it", "1 something was lost"),
        ("convert --from openai-chat --to anthropic conversation.json -o converted.json",),
    ),
    "chat": (
        "chat:run",
        "Talk to an agent in the terminal. Ctrl-C stops its turn, /help shows what else there is.",
        ("0; if the input is no terminal:", "1 the last turn failed", "130 it was stopped"),
        ("chat", "chat --model openai:gpt-5-mini --tools my_tools:search --history talk.json"),
    ),
    "view": (
        "view:run",
        "Look at a history, or at the runs in a store, in a browser: turns, messages, findings, rewrites, tokens.",
        ("0 the page was written, or the server was stopped",),
        ("view conversation.json", "view runs.db", "view conversation.json -o page.html"),
    ),
    "worker": (
        "worker:run",
        "Do the steps of an agent's runs that Temporal keeps going, until it is stopped.",
        ("0 it was stopped",),
        ("worker my_agents:support", "worker my_agents:support --address temporal:7233 --deps my_agents:services"),
    ),
}
"""Each command: what runs it, what it does, what its exit status means, and examples."""

_LIMITS = (
    ("--max-tokens", "max_tokens_for_clear", "clear old output if the history has more tokens (default 160000)"),
    ("--down-to", "clear_down_to_tokens", "clear the oldest only, until so many tokens are left (default: all)"),
    ("--at-least", "clear_at_least_tokens", "clear nothing unless that frees so many tokens (default 0)"),
    ("--keep", "clear_retention_suffix_limit", "never clear the last N rounds of calls (default 1)"),
    ("--max-length", "max_length_for_trunc", "shorten_line output of more characters (default 50000)"),
    ("--max-length-per-turn", "max_length_per_turn", "shorten_line parallel output of more together (default 200000)"),
)
"""The limits of a reduction: the option, the engine's name for it, and what it means."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `suture` with these arguments (the program's own, if not given) and return its exit status.

    >>> main(["check", "--wire", "nonsense", "-"])
    2
    """
    if argv is None:
        _prepare_process()
    try:
        return _run(argv)
    except Refusal as refusal:
        return _fail(str(refusal))
    except BrokenPipeError:
        _let_go(sys.stdout)
        return _NOBODY_READS
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last resort: a user never gets a traceback
        return _fail(f"internal error: {describe_error(error)}; please report")


def _run(argv: Sequence[str] | None) -> int:
    try:
        asked = parse(argv)
        module, _, function = _COMMANDS[asked.command][0].partition(":")
        status: int = getattr(import_module(f"suture.cli.{module}"), function)(asked)
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else 0
    if sys.stdout is not None:  # it is none where a shell closed it
        sys.stdout.flush()
    return status


def _prepare_process() -> None:
    """Set up what belongs to the whole process, which is ours."""
    signal.signal(signal.SIGTERM, _terminate)  # so that it cleans up after itself, as after Ctrl-C
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _terminate(*_: Any) -> NoReturn:
    sys.exit(_TERMINATED)


def _fail(line: str) -> int:
    """Say what is wrong, on one line."""
    shown = visible(line)
    if len(shown) > _LONGEST_LINE:
        shown = shown[:_LONGEST_LINE] + "…"
    try:
        complain(f"suture: {shown}")
    except OSError:
        _let_go(sys.stderr)  # nobody listens there
    try:
        sys.stdout.flush()
    except (OSError, AttributeError):
        _let_go(sys.stdout)  # it was standard output that could not be written
    return _UNREADABLE


def _let_go(stream: TextIO) -> None:
    """Keep the interpreter from complaining, when it ends, about what it could not write to `stream`."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


# --- arguments ------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """A parser that raises instead of printing its usage and leaving."""

    def error(self, message: str) -> NoReturn:
        raise Refusal(f"{message} (see {self.prog} --help)")


class _Version(argparse.Action):
    """Prints the version; what it takes to find out is loaded only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import PackageNotFoundError, version

        try:
            found = version("suture")
        except PackageNotFoundError:
            found = "(not installed)"
        print(f"suture {found}")
        parser.exit()


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Return what was asked; raise `Refusal` where it makes no sense, `SystemExit` after `--help`.

    >>> parse(["check", "--wire", "anthropic", "log.json"]).wire
    'anthropic'
    """
    examples = [example for *_, (example, *_) in _COMMANDS.values()]
    parser = _Parser(prog="suture", **_texts(_ABOUT, (), examples))
    parser.add_argument("-V", "--version", action=_Version, nargs=0, help="show the version and leave")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND")
    for name, (_, about, statuses, examples) in _COMMANDS.items():
        command = commands.add_parser(name, help=about, **_texts(about, statuses, examples))
        _ADDERS[name](command)
    asked = parser.parse_args(argv)
    if asked.command is None:
        parser.print_help()
        parser.exit(_UNREADABLE)
    return asked


def _texts(about: str, statuses: Sequence[str], examples: Sequence[str]) -> dict[str, Any]:
    """Return the texts around the options in a command's help."""
    wrong = "2 the input cannot be read, the output cannot be written, or the command was wrong"
    status = "\n  ".join(["exit status:", *statuses, wrong]) + "\n\n" if statuses else ""
    shown = "\n  suture ".join(["examples:", *examples])
    return {
        "description": about,
        "epilog": f"{status}{shown}",
        "formatter_class": argparse.RawDescriptionHelpFormatter,
        "allow_abbrev": False,
    }


def _add_check(command: argparse.ArgumentParser) -> None:
    _add_file(command)
    _add_rules(command)
    command.add_argument("--json", action="store_true", help="print one JSON object per conversation")


def _add_repair(command: argparse.ArgumentParser) -> None:
    _add_file(command)
    _add_rules(command)
    orphans = "a result without a call is kept as user text (the default) or dropped"
    command.add_argument("--orphans", choices=("text", "drop"), default="text", help=orphans)
    command.add_argument("--report", metavar="FILE", help="write what was done, one JSON object per conversation")
    _add_writing(command)


def _add_reduce(command: argparse.ArgumentParser) -> None:
    _add_file(command)
    add = command.add_argument
    for option, setting, about in _LIMITS:
        add(option, metavar="N", dest=setting, type=_count, help=about)
    add("--exclude", metavar="TOOL", action="append", help="leave the output of this tool alone; may be given again")
    add("--skip-truncation", action="store_true", help="leave long output as it is")
    add("--compact", metavar="N", type=_count, help="bring the whole history under so many tokens, without a model")
    add("--skip-clear", action="store_true", help="leave old output as it is")
    counting = "how tokens are counted: characters (a token has four; the default), or exactly, as o200k_base"
    add("--tokenizer", metavar="T", default="characters", help=counting)
    fate = command.add_mutually_exclusive_group()
    fate.add_argument("--save-to", metavar="DIR", help="save there what leaves the history")
    fate.add_argument("--discard", action="store_true", help="save nothing: old output is cleared for good")
    reading = "the tool that the model is told to read saved output with (default read_file)"
    add("--read-tool", metavar="NAME", dest="read_file_tool_name", type=_tool_name, help=reading)
    add("--root", metavar="DIR", help="how the model is told where DIR is, if not as --save-to has it")
    add("--json", action="store_true", help="print plans as one JSON object per conversation")
    add("--plan", action="store_true", help="print what would be done and change nothing")
    _add_writing(command)


def _add_convert(command: argparse.ArgumentParser) -> None:
    _add_file(command, wire=False)
    form = f"the form it is in: {', '.join(WIRES)}"
    command.add_argument("--from", metavar="W", dest="wire", choices=WIRES, help=form)
    command.add_argument("--to", metavar="W", required=True, choices=WIRES, help="the form to write")
    losses = "write what could not cross, one JSON object per conversation"
    command.add_argument("--losses", metavar="FILE", help=losses)
    _add_output(command)


def _add_chat(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    named = "PROVIDER:NAME, or MODULE:NAME for a model of your own (default local, which needs no key)"
    add("--model", metavar="M", default="local", help=named)
    tools = "a tool, a function, or a list of them; may be given again"
    add("--tools", metavar="MODULE:NAME", action="append", default=[], help=tools)
    add("--instruction", metavar="TEXT", default="", help="what the model is told before everything else")
    add("--history", metavar="FILE", help="go on with the conversation in this file, and keep it there")
    add("--max-tokens", metavar="N", dest="max_tokens_for_clear", type=_count, help=_LIMITS[0][2])
    add("--max-reply", metavar="N", type=_tokens, help="let a reply have no more than N tokens")


def _add_view(command: argparse.ArgumentParser) -> None:
    _add_file(command)
    command.add_argument("--profile", metavar="P", choices=PROFILES, help=f"whose rules hold: {', '.join(PROFILES)}")
    command.add_argument("--port", metavar="N", type=_count, default=0, help="the port to serve it on (default: any)")
    command.add_argument("-o", "--output", metavar="FILE", help="write the page to a file instead of serving it")


def _add_worker(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("agent", metavar="MODULE:AGENT", help="the agent, with the store that all workers share")
    add("--address", metavar="HOST:PORT", default="localhost:7233", help="the Temporal server (default localhost:7233)")
    add("--namespace", metavar="N", default="default", help="the namespace there (default: default)")
    add("--task-queue", metavar="Q", default="", help="the task queue (default suture- and the agent's name)")
    add("--deps", metavar="MODULE:NAME", help="what tools and hooks find as RunContext.deps")


def _add_file(command: argparse.ArgumentParser, *, wire: bool = True) -> None:
    """Add what a command asks that reads a history."""
    command.add_argument("file", metavar="FILE", help="the history; - for standard input")
    limit = f"refuse a JSON document, or a line, above N bytes (default {MAX_BYTES})"
    command.add_argument("--max-bytes", metavar="N", type=_size, default=MAX_BYTES, help=limit)
    if wire:
        form = f"the form of the messages: {', '.join(WIRES)}"
        command.add_argument("--wire", metavar="W", choices=WIRES, help=form)


def _add_rules(command: argparse.ArgumentParser) -> None:
    """Add what a command asks that knows what providers accept."""
    command.add_argument("--profile", metavar="P", choices=PROFILES, help=f"whose rules hold: {', '.join(PROFILES)}")
    tail = "calls at the end without a result are answered (the default) or left open"
    command.add_argument("--tail", choices=("cancel", "keep"), default="cancel", help=tail)


def _add_writing(command: argparse.ArgumentParser) -> None:
    """Add what a command asks that puts texts into a history."""
    command.add_argument("--language", choices=("en", "zh"), help="the language of the texts that are put in")
    _add_output(command)


def _add_output(command: argparse.ArgumentParser) -> None:
    where = "write here instead of standard output; it may be the input"
    command.add_argument("-o", "--output", metavar="FILE", help=where)


def _size(text: str) -> int:
    return _integer(text, 1, "a number of bytes above 0")


def _tokens(text: str) -> int:
    return _integer(text, 1, "a number of tokens above 0")


def _count(text: str) -> int:
    return _integer(text, 0, "a number, 0 or more")


def _integer(text: str, least: int, expected: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise argparse.ArgumentTypeError(f"expected {expected}, found {text!r}")
    return number


def _tool_name(text: str) -> str:
    """Return the name of a tool as it may stand in a text that a model reads."""
    if not text.strip() or not text.isprintable() or len(text) > _LONGEST_NAME:
        raise argparse.ArgumentTypeError(f"expected the name of a tool, found {text!r}")
    return text


_ADDERS = {
    "check": _add_check,
    "repair": _add_repair,
    "reduce": _add_reduce,
    "convert": _add_convert,
    "chat": _add_chat,
    "view": _add_view,
    "worker": _add_worker,
}
