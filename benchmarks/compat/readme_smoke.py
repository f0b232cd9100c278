"""The programs of README.md that need no framework; the agent with each model that it names and whose SDK is installed.

A server on the loopback stands for the provider, and what is printed must be what the page shows.
"""

import re
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from os import environ
from typing import Any, NamedTuple

from _smoke import is_installed, run_checks

from tests.docs.pages import ROOT, Block, blocks
from tests.docs.running import shown_output
from tests.models.loopback import serving
from tests.models.providers import address, call_reply, streamed, text_reply

LOCAL = '"local"'
WIRES = {"openai": "openai-chat", "anthropic": "anthropic"}


class Program(NamedTuple):
    """A program of the page, and what it prints."""

    block: Block
    output: str


def main() -> int:
    found = list(blocks(ROOT / "README.md"))
    programs = [
        Program(block, shown_output(following))
        for block, following in zip(found, [*found[1:], None], strict=True)
        if block.info == "python"
    ]
    checks: dict[str, Callable[[], object]] = {}
    for number, program in enumerate(programs, 1):
        if LOCAL not in program.block.body:
            checks[f"README {number}"] = partial(run, program.block.body, program.output)
            continue
        for model in re.findall(r'"([\w-]+:[\w.-]+)"', program.block.body):
            if is_installed(model.partition(":")[0]):
                checks[f"README {number} with {model.partition(':')[0]}"] = partial(run_with, model, program)
    return run_checks(checks)


def run(body: str, expected: str) -> None:
    with redirect_stdout(StringIO()) as printed:
        exec(body, {"__name__": "__main__"})
    assert printed.getvalue() == expected, f"it printed {printed.getvalue()!r}"


def run_with(model: str, program: Program) -> None:
    """Run a program that has the local model with another one."""
    provider = model.partition(":")[0]
    wire = WIRES[provider]
    call: Any = call_reply(("call_1", "tides", '{"port": "Dover"}'))
    with serving([streamed(wire, call), streamed(wire, text_reply())]) as server:
        name = provider.upper()
        environ.update({f"{name}_API_KEY": "none", f"{name}_BASE_URL": address(wire, server.url)})
        run(program.block.body.replace(LOCAL, f'"{model}"'), program.output)


if __name__ == "__main__":
    raise SystemExit(main())
