"""Asking uv for a set of requirements, without installing anything, and reading what it answers."""

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

from _requirements import package

UV = str(Path(sys.executable).with_name("uv"))
PYTHON = "3.12"
"""The Python that requirements are resolved for, whichever runs this."""
AT_ONCE = 4
QUIET = {"NO_COLOR": "1", "UV_NO_PROGRESS": "1", "UV_PYTHON_DOWNLOADS": "never"}
_COMPILE = ("pip", "compile", "-", "--python-version", PYTHON, "--quiet", "--no-header", "--no-annotate")
_REQUIREMENT = r"[a-z0-9][\w.-]*(?:\[[^\]]*\])?(?:[<>=!~]=?[^\s,]+(?:,[<>=!~]=?[^\s,]+)*)?"
_NEED = re.compile(rf"(?P<who>{_REQUIREMENT}) depends on (?P<what>{_REQUIREMENT})")
_ASKED = re.compile(rf"you require (?P<what>{_REQUIREMENT}(?: and {_REQUIREMENT})*)")
_LONGEST = 200


class Resolved(NamedTuple):
    """The versions that go together."""

    versions: dict[str, str]


class Refused(NamedTuple):
    """Nothing goes together; the reason in a line."""

    reason: str


Answer = Resolved | Refused


class Resolver:
    """Asks uv, the same set of requirements once."""

    def __init__(self) -> None:
        self.known: dict[frozenset[str], Answer] = {}

    def learn(self, what: str, asked: Iterable[Iterable[str]]) -> None:
        """Resolve all sets that are not known yet, a few at once; `what` they are is shown while it lasts."""
        new = list({frozenset(each) for each in asked} - self.known.keys())
        with ThreadPoolExecutor(AT_ONCE) as threads:
            waiting = {threads.submit(resolve, each): each for each in new}
            for number, done in enumerate(as_completed(waiting), 1):
                self.known[waiting[done]] = done.result()
                show(f"{what}: {number} of {len(new)}", last=number == len(new))

    def __getitem__(self, asked: Iterable[str]) -> Answer:
        return self.known[frozenset(asked)]


def show(text: str, *, last: bool = True) -> None:
    """Say how far it is: on a terminal in one line, elsewhere only at the end."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="\n" if last else "", file=sys.stderr, flush=True)
    elif last:
        print(text, file=sys.stderr, flush=True)


def resolve(asked: Iterable[str]) -> Answer:
    """Ask uv once, and again if it was not the requirements that it failed on."""
    for attempt in (1, 2):
        ended = subprocess.run(
            [UV, *_COMPILE],
            input="\n".join(sorted(asked)),
            env={**os.environ, **QUIET},
            capture_output=True,
            text=True,
            check=False,
        )
        if ended.returncode == 0:
            return Resolved(read_versions(ended.stdout))
        if is_refusal(ended.stderr):
            return Refused(read_reason(ended.stderr))
        if attempt == 2:
            raise SystemExit(f"uv could not resolve {', '.join(sorted(asked))}: {ended.stderr.strip()}")
    raise AssertionError


def find_lock_error(folder: Path) -> str:
    """Return why `uv lock` fails for the project in a folder, which it does not touch; nothing if it succeeds."""
    command = [UV, "lock", "--dry-run", "--upgrade", "--quiet", "--project", str(folder)]
    ended = subprocess.run(command, env={**os.environ, **QUIET}, capture_output=True, text=True, check=False)
    return read_reason(ended.stderr) if ended.returncode else ""


def is_refusal(said: str) -> bool:
    """Tell whether uv found no solution, or fell back to a release so old that it cannot be built."""
    return "No solution found" in said or "Failed to build" in said or "Failed to download and build" in said


def read_versions(printed: str) -> dict[str, str]:
    found = re.findall(r"^([a-z0-9][\w.-]*)==([^\s;]+)", printed, re.MULTILINE)
    return {package(name): version for name, version in found}


def read_reason(said: str) -> str:
    """Return the two requirements that clash, of what uv says why nothing goes together.

    These are the last two on the same package: uv draws its conclusions from the first to the last.
    """
    text = re.sub(r"\.(?= |$)", "", " ".join(said.split()))
    needs = [(found["who"], found["what"]) for found in _NEED.finditer(text)]
    asked = [what for found in _ASKED.finditer(text) for what in found["what"].split(" and ")]
    for who, what in reversed(needs):
        for other in reversed(asked):
            if package(other) == package(what):
                return f"`{who}` needs `{what}`, and `{other}` is asked for"
    for place, (who, what) in reversed(list(enumerate(needs))):
        for other, others in reversed(needs[:place]):
            if package(others) == package(what) and package(other) != package(who):
                return f"`{who}` needs `{what}`, and `{other}` needs `{others}`"
    plain = re.sub(r"^error: No solution found when resolving dependencies:? ?(cause:|╰─▶)? ?", "", text)
    return plain if len(plain) <= _LONGEST else plain[:_LONGEST].rsplit(" ", 1)[0] + " …"
