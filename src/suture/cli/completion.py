"""`suture completion`: what makes a shell complete commands and options, from the parser itself."""

from argparse import ArgumentParser, Namespace
from typing import Any

from suture.cli.main import make_parser

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


def run(asked: Namespace) -> int:
    """Print the script for a shell."""
    commands = _list_commands()
    if asked.shell == "fish":
        print("\n".join(_write_fish(commands)))
    else:
        cases = "\n".join(f'        {name}) words="{" ".join(options)}" ;;' for name, (_, options) in commands.items())
        script = _BASH.format(cases=cases, commands=" ".join(commands))
        print(("autoload -U +X bashcompinit && bashcompinit\n" if asked.shell == "zsh" else "") + script, end="")
    return 0


def _list_commands() -> dict[str, tuple[str, list[str]]]:
    """Return each command, what it does, and its options."""
    (choices,) = [action for action in make_parser()._actions if isinstance(action.choices, dict)]  # noqa: SLF001
    parsers: dict[str, ArgumentParser] = choices.choices  # pyright: ignore[reportAssignmentType]
    return {name: (str(parser.description), _list_options(parser)) for name, parser in parsers.items()}


def _list_options(parser: Any) -> list[str]:
    return sorted(option for option in parser._option_string_actions if option.startswith("--"))  # noqa: SLF001


def _write_fish(commands: dict[str, tuple[str, list[str]]]) -> list[str]:
    lines: list[str] = []
    for name, (about, options) in commands.items():
        told = about.replace("'", "\\'")
        lines.append(f"complete -c suture -n __fish_use_subcommand -a {name} -d '{told}'")
        lines += [f"complete -c suture -n '__fish_seen_subcommand_from {name}' -l {option[2:]}" for option in options]
    return lines
