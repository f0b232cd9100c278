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
with tool calls.

FILE holds messages of any provider, as a JSON array, as an object with messages, input or contents,
or as JSON Lines with one message or one conversation a line. - is standard input."""

_ENDING = """\
exit status:
  0  acceptable, or repaired
  1  check found something; repair could not mend everything
  2  the input cannot be read, the output cannot be written, or the command was wrong

examples:
  suture check conversation.json
  suture check --profile mistral --json log.jsonl
  suture repair conversation.json -o repaired.json
  cat log.jsonl | suture repair --report findings.jsonl - > repaired.jsonl"""


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
    asked = parser.parse_args(argv)
    if asked.command is None:
        parser.error("what is to be done? check or repair")
    return asked


def _add_check(commands: Any) -> None:
    about = "Say what a provider would refuse. Nothing is changed."
    check = _add_command(commands, "check", about)
    check.add_argument("--json", action="store_true", help="print one JSON object per conversation")


def _add_repair(commands: Any) -> None:
    about = "Make a history acceptable, and write it in the form it came in."
    repair = _add_command(commands, "repair", about)
    repair.add_argument(
        "--orphans",
        choices=("text", "drop"),
        default="text",
        help="a result without a call is kept as user text (the default) or dropped",
    )
    repair.add_argument("--language", choices=("en", "zh"), help="the language of the texts that are put in")
    repair.add_argument("--report", metavar="FILE", help="write what was done, one JSON object per conversation")
    repair.add_argument(
        "-o", "--output", metavar="FILE", help="write here instead of standard output; it may be the input"
    )


def _add_command(commands: Any, name: str, about: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(
        name,
        help=about,
        description=about,
        epilog=_ENDING,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.add_argument("file", metavar="FILE", help="the history; - for standard input")
    command.add_argument("--wire", metavar="W", choices=WIRES, help=f"the form of the messages: {', '.join(WIRES)}")
    command.add_argument("--profile", metavar="P", choices=PROFILES, help=f"whose rules hold: {', '.join(PROFILES)}")
    command.add_argument(
        "--tail",
        choices=("cancel", "keep"),
        default="cancel",
        help="calls at the end without a result are answered (the default) or left open",
    )
    command.add_argument(
        "--max-bytes",
        metavar="N",
        type=_size,
        default=MAX_BYTES,
        help=f"refuse a JSON document, or a line, above N bytes (default {MAX_BYTES})",
    )
    return command


def _size(text: str) -> int:
    try:
        size = int(text)
    except ValueError:
        size = 0
    if size <= 0:
        raise argparse.ArgumentTypeError(f"expected a number of bytes above 0, found {text!r}")
    return size
