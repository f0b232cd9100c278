"""What may be asked on the command line. A mistake in it is one line, as every other error is."""

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from suture.cli._read import MAX_BYTES
from suture.cli._refusal import Refusal
from suture.profiles import PROFILES
from suture.wires import WIRES

__all__ = ["parse"]

_ABOUT = """\
Agent histories that never break: find and mend what a provider would refuse in a conversation
with tool calls, take tool output out of it that is too long or too old, or talk to an agent.

FILE holds messages of any provider, as a JSON array, as an object with messages, input or contents,
or as JSON Lines with one message or one conversation a line. - is standard input."""

_ENDING = """\
exit status:
  0  acceptable, or repaired, or reduced, or nothing to reduce
  1  check found something; repair could not mend everything; a plan has something to reduce; convert lost something
  2  the input cannot be read, the output cannot be written, or the command was wrong
  chat: 0; if its input is no terminal, 1 if the last turn failed, 130 if it was stopped

examples:
  suture check conversation.json
  suture check --profile mistral --json log.jsonl
  suture repair conversation.json -o repaired.json
  cat log.jsonl | suture repair --report findings.jsonl - > repaired.jsonl
  suture reduce --max-tokens 50000 conversation.json
  suture reduce --max-tokens 50000 --save-to outputs conversation.json -o reduced.json
  suture convert --from openai-chat --to anthropic conversation.json -o converted.json
  suture chat --tools my_tools:search --history talk.json"""

_LIMITS = (
    ("--max-tokens", "max_tokens_for_clear", "clear old output if the history has more tokens (default 160000)"),
    ("--down-to", "clear_down_to_tokens", "clear the oldest only, until so many tokens are left (default: all)"),
    ("--at-least", "clear_at_least_tokens", "clear nothing unless that frees so many tokens (default 0)"),
    ("--keep", "clear_retention_suffix_limit", "never clear the last N rounds of calls (default 1)"),
    ("--max-length", "max_length_for_trunc", "shorten output of more characters (default 50000)"),
    ("--max-length-per-turn", "max_length_per_turn", "shorten parallel output of more together (default 200000)"),
)
"""The limits of a reduction: the option, the engine's name for it, and what it means."""

_LONGEST_NAME = 200


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
    parser = _Parser(
        prog="suture",
        description=_ABOUT,
        epilog=_ENDING,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and leave")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND")
    _add_check(commands)
    _add_repair(commands)
    _add_reduce(commands)
    _add_convert(commands)
    _add_chat(commands)
    asked = parser.parse_args(argv)
    if asked.command is None:
        parser.error("what is to be done? check, repair, reduce, convert or chat")
    return asked


def _add_check(commands: Any) -> None:
    about = "Say what a provider would refuse. Nothing is changed."
    check = _add_command(commands, "check", about)
    _add_rules(check)
    check.add_argument("--json", action="store_true", help="print one JSON object per conversation")


def _add_repair(commands: Any) -> None:
    about = "Make a history acceptable, and write it in the form it came in."
    repair = _add_command(commands, "repair", about)
    _add_rules(repair)
    repair.add_argument(
        "--orphans",
        choices=("text", "drop"),
        default="text",
        help="a result without a call is kept as user text (the default) or dropped",
    )
    repair.add_argument("--report", metavar="FILE", help="write what was done, one JSON object per conversation")
    _add_writing(repair)


def _add_reduce(commands: Any) -> None:
    about = "Take tool output that is too long or too old out of a history, and keep it in files."
    reduce = _add_command(commands, "reduce", about)
    for option, setting, told in _LIMITS:
        reduce.add_argument(option, metavar="N", dest=setting, type=_count, help=told)
    reduce.add_argument(
        "--exclude", metavar="TOOL", action="append", help="leave the output of this tool alone; may be given again"
    )
    reduce.add_argument("--skip-truncation", action="store_true", help="leave long output as it is")
    reduce.add_argument("--skip-clear", action="store_true", help="leave old output as it is")
    reduce.add_argument(
        "--tokenizer",
        metavar="T",
        default="characters",
        help="how tokens are counted: characters (a token has four; the default), or exactly, as o200k_base",
    )
    fate = reduce.add_mutually_exclusive_group()
    fate.add_argument("--save-to", metavar="DIR", help="save there what leaves the history")
    fate.add_argument("--discard", action="store_true", help="save nothing: old output is cleared for good")
    reduce.add_argument(
        "--read-tool",
        metavar="NAME",
        dest="read_file_tool_name",
        type=_plain_name,
        help="the tool that the model is told to read saved output with (default read_file)",
    )
    reduce.add_argument("--root", metavar="DIR", help="how the model is told where DIR is, if not as --save-to has it")
    reduce.add_argument("--json", action="store_true", help="print plans as one JSON object per conversation")
    reduce.add_argument("--plan", action="store_true", help="print what would be done and change nothing")
    _add_writing(reduce)


def _add_convert(commands: Any) -> None:
    about = "Write a history as another provider has it, and name what could not cross. Nothing is repaired."
    convert = _add_parser(commands, "convert", about)
    _add_file(convert)
    wires = ", ".join(WIRES)
    convert.add_argument("--from", metavar="W", dest="wire", choices=WIRES, help=f"the form it is in: {wires}")
    convert.add_argument("--to", metavar="W", required=True, choices=WIRES, help="the form to write")
    convert.add_argument(
        "--losses", metavar="FILE", help="write what could not cross, one JSON object per conversation"
    )
    _add_output(convert)


def _add_chat(commands: Any) -> None:
    about = "Talk to an agent in the terminal. Ctrl-C stops its turn, /help shows what else there is."
    chat = _add_parser(commands, "chat", about)
    chat.add_argument(
        "--model",
        metavar="M",
        default="local",
        help="PROVIDER:NAME, or MODULE:NAME for a model of your own (default local, which needs no key)",
    )
    chat.add_argument(
        "--tools",
        metavar="MODULE:NAME",
        action="append",
        default=[],
        help="a tool, a function, or a list of them; may be given again",
    )
    chat.add_argument("--instruction", metavar="TEXT", default="", help="what the model is told before everything else")
    chat.add_argument("--history", metavar="FILE", help="go on with the conversation in this file, and keep it there")
    chat.add_argument("--max-tokens", metavar="N", dest="max_tokens_for_clear", type=_count, help=_LIMITS[0][2])
    chat.add_argument("--max-reply", metavar="N", type=_tokens, help="let a reply have no more than N tokens")


def _add_command(commands: Any, name: str, about: str) -> argparse.ArgumentParser:
    command = _add_parser(commands, name, about)
    _add_file(command)
    command.add_argument("--wire", metavar="W", choices=WIRES, help=f"the form of the messages: {', '.join(WIRES)}")
    return command


def _add_file(command: argparse.ArgumentParser) -> None:
    """Add what a command asks that reads a history."""
    command.add_argument("file", metavar="FILE", help="the history; - for standard input")
    command.add_argument(
        "--max-bytes",
        metavar="N",
        type=_size,
        default=MAX_BYTES,
        help=f"refuse a JSON document, or a line, above N bytes (default {MAX_BYTES})",
    )


def _add_parser(commands: Any, name: str, about: str) -> argparse.ArgumentParser:
    return commands.add_parser(
        name,
        help=about,
        description=about,
        epilog=_ENDING,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def _add_rules(command: argparse.ArgumentParser) -> None:
    """Add what a command asks that knows what providers accept."""
    command.add_argument("--profile", metavar="P", choices=PROFILES, help=f"whose rules hold: {', '.join(PROFILES)}")
    command.add_argument(
        "--tail",
        choices=("cancel", "keep"),
        default="cancel",
        help="calls at the end without a result are answered (the default) or left open",
    )


def _add_writing(command: argparse.ArgumentParser) -> None:
    """Add what a command asks that writes a history."""
    command.add_argument("--language", choices=("en", "zh"), help="the language of the texts that are put in")
    _add_output(command)


def _add_output(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-o", "--output", metavar="FILE", help="write here instead of standard output; it may be the input"
    )


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


def _plain_name(text: str) -> str:
    """Return the name of a tool as it may stand in a text that a model reads."""
    if not text.strip() or not text.isprintable() or len(text) > _LONGEST_NAME:
        raise argparse.ArgumentTypeError(f"expected the name of a tool, found {text!r}")
    return text
