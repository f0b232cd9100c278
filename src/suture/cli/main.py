"""The entry point: parses the arguments, runs the command, and reports its errors.

Every error is one line, never a traceback.
"""

import argparse
import math
import os
import re
import signal
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from io import TextIOWrapper
from textwrap import fill
from typing import Any, NoReturn, TextIO

from suture._text import visible
from suture.cli.files import MAX_BYTES
from suture.cli.refusals import Refusal, complain, describe_error, show
from suture.errors import SutureError
from suture.profiles import PROFILES
from suture.wires import WIRES

_UNREADABLE = 2
_INTERRUPTED = 128 + signal.SIGINT
_TERMINATED = 128 + signal.SIGTERM
_BROKEN_PIPE = 141
_LONGEST_LINE = 500
_LONGEST_NAME = 200

_ABOUT = """\
Agent histories that never break: find and repair what a provider would refuse
in a conversation with tool calls, take out tool output that is too long or too
old, or talk to an agent.

FILE holds the messages of any provider: a JSON array, an object with messages,
input or contents, or JSON Lines with one message or one conversation a line.
- is standard input."""

_LIMITS = (
    ("--max-tokens", "max_tokens_for_clear", "clear old output if the history has more tokens (default 160000)"),
    ("--down-to", "clear_down_to_tokens", "clear the oldest only, until so many tokens are left (default: all)"),
    ("--at-least", "clear_at_least_tokens", "clear nothing unless that frees so many tokens (default 0)"),
    ("--keep", "clear_retention_suffix_limit", "never clear the last N rounds of calls (default 1)"),
    ("--max-length", "max_length_for_trunc", "shorten output of more characters (default 50000)"),
    ("--max-length-per-turn", "max_length_per_turn", "shorten parallel output of more together (default 200000)"),
)
"""The limits of a reduction: the option, the engine's name for it, and what it means."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `suture` with these arguments (by default the program's own) and return the exit status.

    >>> main(["check", "--wire", "nonsense", "-"])
    2
    """
    if argv is None:  # the whole process is ours
        signal.signal(signal.SIGTERM, _terminate)  # cleans up, as Ctrl-C does
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
    try:
        return _run(argv)
    except (Refusal, SutureError) as refusal:
        return _fail(str(refusal))
    except MemoryError:
        return _fail("there is not enough memory for this: give it more")
    except BrokenPipeError:
        _redirect_to_null(sys.stdout)
        return _BROKEN_PIPE
    except KeyboardInterrupt:
        if argv is None:
            _silence_finalisers()
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
    show(sys.stdout, "")
    return status


def _silence_finalisers() -> None:
    """Silence finalisers of what a signal interrupted, such as an event loop that was closing."""
    sys.unraisablehook = lambda _: None
    warnings.simplefilter("ignore")


def _terminate(*_: Any) -> NoReturn:
    _silence_finalisers()
    sys.exit(_TERMINATED)


def _fail(line: str) -> int:
    shown = visible(line)
    if len(shown) > _LONGEST_LINE:
        shown = shown[:_LONGEST_LINE] + "…"
    try:
        complain(f"suture: {shown}")
    except OSError:
        _redirect_to_null(sys.stderr)  # nobody reads it
    try:
        sys.stdout.flush()
    except (OSError, AttributeError):
        _redirect_to_null(sys.stdout)  # it was standard output that could not be written
    return _UNREADABLE


def _redirect_to_null(stream: TextIO) -> None:
    """Keep the interpreter from complaining, when it ends, about what it could not write to `stream`."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


# --- arguments ------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """A parser that raises instead of printing its usage and leaving."""

    def parse_known_args(self, *args: Any, **options: Any) -> Any:
        found, left = super().parse_known_args(*args, **options)
        if left:  # said here, because only this command's parser knows whose help to point to
            self.error(f"unrecognized arguments: {' '.join(left)}")
        return found, left

    def error(self, message: str) -> NoReturn:
        suggestion = _suggest(message, self._option_string_actions)
        if suggestion:  # the list of all choices would hide it
            message = message.partition(" (choose from")[0]
        raise Refusal(f"{message}{suggestion} (see {self.prog} --help)")

    def _print_message(self, message: str, file: Any = None) -> None:
        show(file, message)  # argparse would keep silent about help that cannot be written


def _suggest(message: str, options: Iterable[str]) -> str:
    """Return what an unknown word was probably meant to be.

    >>> _suggest("unrecognized arguments: --profle x", ["--profile", "--wire"])
    '; did you mean --profile?'
    """
    chosen = re.search(r"invalid choice: '([^']+)'? \(choose from (.+)\)", message)
    word = chosen or re.search(r"arguments: (--[\w-]+)", message)
    near = get_close_matches(word[1], re.findall(r"[\w-]+", chosen[2]) if chosen else options, 1) if word else []
    return f"; did you mean {near[0]}?" if near else ""


class _Version(argparse.Action):
    """Prints the version; `importlib.metadata` is slow to import, so only this option does it."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import PackageNotFoundError, version

        try:
            found = version("suture")
        except PackageNotFoundError:
            found = "(not installed)"
        show(sys.stdout, f"suture {found}\n")
        parser.exit()


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the arguments; raise `Refusal` if they are wrong, `SystemExit` after `--help`.

    >>> parse(["check", "--wire", "anthropic", "log.json"]).wire
    'anthropic'
    """
    if argv is None:
        argv = sys.argv[1:]
    if argv and argv[0] == "help":  # `suture help repair`, as in git
        argv = [*argv[1:2], "--help"]
    parser = make_parser()
    asked = parser.parse_args(argv)
    if asked.command is None:
        parser.print_help()
        parser.exit(_UNREADABLE)
    if getattr(asked, "output", None) == "/dev/stdout":  # as a path, the file behind it would be replaced
        asked.output = "-"
    if getattr(asked, "color", "auto") != "auto":  # `rich` and other programs read these
        os.environ["FORCE_COLOR" if asked.color == "always" else "NO_COLOR"] = "1"
        os.environ.pop("NO_COLOR" if asked.color == "always" else "FORCE_COLOR", None)
    return asked


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    examples = [command[3][0] for command in _COMMANDS.values()]
    parser = _Parser(prog="suture", **_texts(_ABOUT, (), examples))
    parser.add_argument("-V", "--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND")
    for name, (_, about, statuses, examples, *options) in _COMMANDS.items():
        usage = "suture run [OPTION ...] -- CMD" if name == "run" else None  # argparse writes it as dots
        command = commands.add_parser(name, help=about, usage=usage, **_texts(about, statuses, examples))
        groups: defaultdict[str, Any] = defaultdict(command.add_mutually_exclusive_group)
        for flags, settings in options:
            holder = groups[settings["group"]] if "group" in settings else command
            holder.add_argument(*flags, **{key: value for key, value in settings.items() if key != "group"})
    return parser


def _texts(about: str, statuses: Sequence[str], examples: Sequence[str]) -> dict[str, Any]:
    wrong = "2 wrong arguments, or a file that cannot be read or written"
    status = "\n  ".join(["exit status:", *statuses, wrong]) + "\n\n" if statuses else ""
    shown = "\n  suture ".join(["examples:", *examples])
    return {
        "description": "\n".join(fill(line, 79) for line in about.splitlines()),
        "epilog": f"{status}{shown}",
        "formatter_class": argparse.RawDescriptionHelpFormatter,
        "allow_abbrev": False,
    }


def _integer(text: str, least: int, expected: str, most: float = math.inf) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if not least <= number <= most:
        raise argparse.ArgumentTypeError(f"expected {expected}, found {text!r}")
    return number


_tokens = partial(_integer, least=1, expected="a number of tokens above 0")
_count = partial(_integer, least=0, expected="a number, 0 or more")
_port = partial(_integer, least=0, most=65535, expected="a port, 0 to 65535")
_seconds = partial(_integer, least=1, expected="whole seconds, 1 or more")


def _size(text: str) -> int:
    return min(_integer(text, 1, "a number of bytes above 0"), sys.maxsize - 2)  # no file is larger


def _tool_name(text: str) -> str:
    """Return the name of a tool; refuse one that could not stand in a text for a model."""
    if not text.strip() or not text.isprintable() or len(text) > _LONGEST_NAME:
        raise argparse.ArgumentTypeError(f"expected the name of a tool, found {text!r}")
    return text


_Option = tuple[tuple[str, ...], dict[str, Any]]


def _option(names: str, about: str, **settings: Any) -> _Option:
    """Return an option such as `--wire W`, or a switch such as `--json`; options of one `group` exclude each other."""
    words = names.split()
    flags = tuple(word for word in words if word.startswith("-")) or (words[0],)
    if len(words) > len(flags):
        settings = {"metavar": words[-1], **settings}
    elif not settings.keys() - {"group"}:
        settings["action"] = "store_true"
    return flags, {"help": about, **settings}


_HISTORIES = "histories, folders of them, or patterns; standard input for - and without FILE"
_TAIL = "calls at the end without a result are answered (the default) or left open"
_COUNTING = "how tokens are counted: characters (a token has four; the default), or exactly, as o200k_base"
_READING = "the tool with which the model can read saved output (default read_file)"
_MODEL = "PROVIDER:NAME, or MODULE:NAME for a model of your own (default local, which needs no key)"
_UPSTREAM = "where requests go, or those below PATH; may be given again (default: /openai, /anthropic and /gemini)"
_WHOSE = f"whose rules hold, if not those of the upstream and the model: {', '.join(PROFILES)}"
_SESSIONS = "session files, or folders of them (default: those of Claude Code, Codex, pi and opencode)"
_BODIES = 64 * 1024 * 1024
_MANY: dict[str, Any] = {"action": "append", "default": []}
_ORPHANS: dict[str, Any] = {"choices": ("text", "drop"), "default": "text"}
_COLOURS: dict[str, Any] = {"choices": ("auto", "always", "never"), "default": "auto"}

_FILE = _option("file FILE", "the history; - for standard input")
_REFUSED = f"refuse a JSON document, or a line, above N bytes (default {MAX_BYTES})"
_LARGEST = _option("--max-bytes N", _REFUSED, type=_size, default=MAX_BYTES)
_FILES = (
    _option("files FILE", _HISTORIES, nargs="*", default=["-"]),
    _LARGEST,
    _option("--keep-going", "report lines that cannot be read, and go on with the next"),
    _option("-q --quiet", "show errors only"),
    _option("--color", "colours (default: on a terminal)", **_COLOURS),
)
_WIRE = _option("--wire W", f"the form of the messages: {', '.join(WIRES)}", choices=WIRES)
_PROFILE = _option("--profile P", f"whose rules hold: {', '.join(PROFILES)}", choices=PROFILES)
_RULES = (_PROFILE, _option("--tail", _TAIL, choices=("cancel", "keep"), default="cancel"))
_DEPS = _option("--deps MODULE:NAME", "what tools and hooks find as RunContext.deps")
_LANGUAGE = _option("--language", "the language of the texts that suture adds", choices=("en", "zh"))
_OUTPUT = _option("-o --output FILE", "write here instead of standard output; it may be the input")
_ROUTES = (
    _option("--upstream [PATH=]URL", _UPSTREAM, **_MANY),
    _option("--profile [PATH=]P", _WHOSE, **_MANY),
    _option("--clear [PATH=]N", "clear old tool results above so many tokens", **_MANY),
    _option("--compact [PATH=]N", "send no more than so many tokens", **_MANY),
    _option("--learn FILE", "on a refusal, repair by a stricter rule, send again, and remember the rule here"),
    _option("--report FILE", "add a line of JSON for each repair, without contents"),
    _LANGUAGE,
    _option("--timeout S", "how long an upstream may be silent (default 600)", type=_seconds, default=600.0),
    _option("--max-bytes N", f"pass on a body above N bytes unread (default {_BODIES})", type=_size, default=_BODIES),
)
"""The options of the commands that pass requests on."""

_COMMANDS: dict[str, tuple[Any, ...]] = {
    "check": (
        "repair:run_check",
        "Say what a provider would refuse. Nothing is changed.",
        ("0 acceptable", "1 something was found"),
        ("check conversation.json", "check --profile mistral --json log.jsonl", "check logs/ 'more/*.jsonl'"),
        *(*_FILES, _WIRE, *_RULES),
        _option("--json", "print one JSON object per conversation"),
    ),
    "repair": (
        "repair:run_repair",
        "Make a history acceptable, and write it in the form it came in.",
        ("0 acceptable now", "1 something could not be repaired"),
        (
            "repair conversation.json -o repaired.json",
            "repair --report findings.jsonl - < log.jsonl > repaired.jsonl",
            "repair --diff conversation.json",
            "repair --in-place logs/",
        ),
        *(*_FILES, _WIRE, *_RULES),
        _option("--diff", "print what would change as a diff for reading, and write nothing"),
        _option("--in-place", "write each file over itself"),
        _option("--orphans", "a result without a call is kept as user text (the default) or dropped", **_ORPHANS),
        _option("--report FILE", "write what was done, one JSON object per conversation"),
        *(_LANGUAGE, _OUTPUT),
    ),
    "reduce": (
        "reduce:run",
        "Take out tool output that is too long or too old, and keep it in files.",
        ("0 reduced, or nothing to reduce", "1 a plan has something to reduce"),
        ("reduce --max-tokens 50000 conversation.json", "reduce --save-to outputs conversation.json -o reduced.json"),
        *(_FILE, _LARGEST, _WIRE),
        *(_option(f"{name} N", about, dest=setting, type=_count) for name, setting, about in _LIMITS),
        _option("--exclude TOOL", "leave the output of this tool alone; may be given again", action="append"),
        _option("--skip-truncation", "leave long output as it is"),
        _option("--compact N", "bring the whole history under so many tokens, without a model", type=_count),
        _option("--skip-clear", "leave old output as it is"),
        _option("--tokenizer T", _COUNTING, default="characters"),
        _option("--save-to DIR", "save there what leaves the history", group="fate"),
        _option("--discard", "save nothing: old output is cleared for good", group="fate"),
        _option("--read-tool NAME", _READING, dest="read_file_tool_name", type=_tool_name),
        _option("--root DIR", "the path of DIR as the model sees it (default: that of --save-to)"),
        _option("--json", "print plans as one JSON object per conversation"),
        _option("--plan", "print what would be done and change nothing"),
        *(_LANGUAGE, _OUTPUT),
    ),
    "convert": (
        "convert:run",
        "Write a history for another provider, and name what its format cannot express. Nothing is repaired.",
        ("0 all of it", "1 something was lost"),
        ("convert --to anthropic conversation.json -o converted.json",),
        *(_FILE, _LARGEST),
        _option("--from W", f"the form it is in: {', '.join(WIRES)}", dest="wire", choices=WIRES),
        _option("--to W", "the form to write", required=True, choices=WIRES),
        _option("--losses FILE", "write what could not cross, one JSON object per conversation"),
        _OUTPUT,
    ),
    "chat": (
        "chat:run",
        "Talk to an agent in the terminal. Ctrl-C stops its turn, /help shows what else there is.",
        ("0", "1 the last turn failed (only if the input is no terminal)", "130 it was stopped (likewise)"),
        ("chat", "chat --model openai:gpt-5-mini --tools my_tools:search"),
        _option("--model M", _MODEL, default="local"),
        _option("--tools MODULE:NAME", "a tool, a function, or a list of them; may be given again", **_MANY),
        _option("--instruction TEXT", "the system prompt", default=""),
        _option("--history FILE", "go on with the conversation in this file, and keep it there"),
        _option("--max-tokens N", _LIMITS[0][2], dest="max_tokens_for_clear", type=_count),
        _option("--max-reply N", "let a reply have no more than N tokens", type=_tokens),
    ),
    "completion": (
        "main:print_completion",
        "Print a script that lets your shell complete commands and options.",
        ("0",),
        ("completion bash > ~/.local/share/bash-completion/completions/suture", "completion fish | source"),
        _option("shell", "the shell", choices=("bash", "zsh", "fish")),
    ),
    "view": (
        "services:view",
        "Look at a history, or at the runs in a store, in a browser.",
        ("0 the page was written, or the server was stopped",),
        ("view conversation.json", "view runs.db", "view conversation.json -o page.html"),
        _option("file FILE", "a history (- for standard input), or a store's database"),
        *(_LARGEST, _WIRE, _PROFILE),
        _option("--port N", "the port to serve it on (default: any)", type=_port, default=0),
        _option("-o --output FILE", "write the page to a file instead of serving it"),
    ),
    "worker": (
        "services:work",
        "Do the steps of an agent's runs that Temporal schedules, until you stop it.",
        ("0 it was stopped",),
        ("worker my_agents:support", "worker my_agents:support --address temporal:7233"),
        _option("agent MODULE:AGENT", "the agent, with the store that all workers share"),
        _option("--address HOST:PORT", "the Temporal server (default localhost:7233)", default="localhost:7233"),
        _option("--namespace N", "the namespace there (default: default)", default="default"),
        _option("--task-queue Q", "the task queue (default suture- and the agent's name)", default=""),
        _DEPS,
    ),
    "recover": (
        "services:recover_runs",
        "Resume the runs of these agents that dead processes left. Runs that are alive or wait are left alone.",
        ("0 every run has ended or waits", "1 a run failed"),
        ("recover my_agents:support", "recover my_agents:support my_agents:sales --deps my_agents:services"),
        _option("agents MODULE:AGENT", "the agents, each with the store of its runs", nargs="+"),
        _DEPS,
    ),
    "proxy": (
        "services:run_proxy",
        "Repair the histories in requests on their way to a provider, for programs in any language.",
        ("0 it was stopped",),
        ("proxy --upstream https://api.openai.com", "proxy --upstream /claude=https://api.anthropic.com --port 9000"),
        _option("--host H", "where to listen (default 127.0.0.1: this machine alone)", default="127.0.0.1"),
        _option("--port N", "the port (default 8787; 0 takes any)", type=_port, default=8787),
        *_ROUTES,
    ),
    "run": (
        "services:run_command",
        "Run a command, and send its requests to a provider through a proxy of its own.",
        ("the command's own",),
        ("run -- python agent.py", "run --report repairs.jsonl -- claude --continue"),
        *_ROUTES,
        _option("arguments", "the command", metavar="-- CMD", nargs=argparse.REMAINDER),
    ),
    "doctor": (
        "doctor:run",
        "Say what is broken in the sessions that coding agents left on this machine.",
        ("0 all are sound", "1 something is broken"),
        ("doctor", "doctor --fix ~/.claude/projects/-home-me-project/session.jsonl"),
        _option("paths PATH", _SESSIONS, nargs="*"),
        _option("--fix", "write a repaired copy beside each broken file, as FILE.repaired"),
        _option("--json", "print one JSON object per session"),
        *(_LANGUAGE, _LARGEST),
    ),
}
"""Each command: the function that runs it, what it does, its exit statuses, examples, and its options."""


# --- completion -----------------------------------------------------------------------------------

_BASH = """\
_suture() {{
    local words
    case "${{COMP_WORDS[1]}}" in
{cases}
        *) words="{commands}" ;;
    esac
    [ "$COMP_CWORD" = 1 ] && words="{commands}"
    COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _suture suture
"""


def print_completion(asked: argparse.Namespace) -> int:
    """Print a script that makes a shell complete commands and options."""
    from suture.cli.output import Outputs

    options = {
        name: sorted(["--help", *(flag for flags, _ in command[4:] for flag in flags if flag.startswith("--"))])
        for name, command in _COMMANDS.items()
    }
    if asked.shell == "fish":
        script = ""
        for name, command in _COMMANDS.items():
            summary = command[1].replace("'", "\\'")
            script += f"complete -c suture -n __fish_use_subcommand -a {name} -d '{summary}'\n"
            for option in options[name]:
                script += f"complete -c suture -n '__fish_seen_subcommand_from {name}' -l {option[2:]}\n"
    else:
        cases = "\n".join(f'        {name}) words="{" ".join(options[name])}" ;;' for name in _COMMANDS)
        script = "autoload -U +X bashcompinit && bashcompinit\n" if asked.shell == "zsh" else ""
        script += _BASH.format(cases=cases, commands=" ".join(_COMMANDS))
    with Outputs() as outputs:
        outputs.open().write(script.encode())
        outputs.publish()
    return 0
