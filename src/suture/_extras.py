"""Optional packages: imported when they are used, checked for a release that is new enough, and how to install them.

What an extra needs stands in this package's own metadata, and what other installed packages allow stands in theirs.
"""

import os
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from suture.errors import ConfigError

_NEED = re.compile(r"([\w.-]+)(\[[^\]]*\])?\s*>=\s*([^;\s]+)\s*;(.*)")
_FOR_EXTRA = re.compile(r"""\bextra\s*==\s*["']([^"']+)["']""")
_DEMAND = re.compile(r"\s*([\w.-]+)\s*(?:\[[^\]]*\])?([^@]*)")
_CLAUSE = re.compile(r"(===|==|~=|!=|<=|>=|<|>)\s*([^\s,()]+)")
_LOWER = (">=", ">", "==", "===", "~=")
"""The signs of clauses that exclude older releases."""
_LOCKS = {
    "uv.lock": ("uv add", "--project"),
    "poetry.lock": ("poetry add", "--directory"),
    "pdm.lock": ("pdm add", "--project"),
}
"""What adds a package to a project, and to one elsewhere, by the lock file beside its environment."""


def import_extra(module: str, extra: str) -> Any:
    """Import a module that comes with an extra, or say how to install it if it is missing or too old.

    >>> import_extra("no_such_sdk", "none")
    Traceback (most recent call last):
        ...
    suture.errors.ConfigError: this needs no_such_sdk (extra none), which is not installed
    """
    try:
        return import_module(module)
    finally:  # an old release may not have it: its version says more than the ImportError
        check_extra(extra, module)


def check_extra(extra: str, module: str) -> None:
    """Raise `ConfigError` if `module`, which comes with an extra, is missing or too old; say how to install it here.

    >>> check_extra("openai", "openai")
    """
    if not isinstance(sys.exception(), Exception | None):  # such as Ctrl-C during an import
        return
    is_there, needs = _is_there(module), _read_needs(extra)
    faults = {need: fault for need in needs if (fault := _find_fault(need, is_there=is_there))}
    if not faults and not is_there:
        faults = dict.fromkeys(needs, f"{module} is not installed")
    if faults:
        needed, found = ", ".join(need.text for need in faults), ", ".join(dict.fromkeys(faults.values()))
        raise ConfigError(f"this needs {needed} (extra {extra}), and {found}{_advise(list(faults))}") from None
    if not is_there:
        raise ConfigError(f"this needs {module} (extra {extra}), which is not installed") from None


class _Need(NamedTuple):
    """A package that an extra needs, and its lowest release."""

    package: str
    options: str
    """Such as `[binary]`."""
    least: str

    @property
    def text(self) -> str:
        return f"{self.package}{self.options}>={self.least}"


@lru_cache
def _read_needs(extra: str) -> list[_Need]:
    """Return what an extra needs; nothing if this package has no metadata, as in a frozen program."""
    from importlib.metadata import PackageNotFoundError, requires  # noqa: PLC0415 - only where an extra is used

    try:
        lines = requires("suture") or ()
    except PackageNotFoundError:
        return []
    named = [line for line in lines if (found := _FOR_EXTRA.search(line)) and found[1] == extra]
    needs = [need for line in named if (need := _NEED.match(line))]
    return [_Need(need[1], need[2] or "", need[3]) for need in needs if f"!= '{sys.platform}'" not in need[4]]


def _find_fault(need: _Need, *, is_there: bool) -> str:
    """Return what is wrong with a package, if it is missing or too old; a module may be there without metadata."""
    from importlib.metadata import PackageNotFoundError, metadata  # noqa: PLC0415 - as above

    found: str | None = None
    with suppress(PackageNotFoundError, UnicodeDecodeError):
        about: Any = metadata(need.package)
        found = about.get("Version")
    if found is None:
        return "" if is_there else f"{need.package} is not installed"
    return f"{need.package} {found} is installed" if _numbers(found) < _numbers(need.least) else ""


def _is_there(module: str) -> bool:
    from importlib.util import find_spec  # noqa: PLC0415 - as above

    try:
        return sys.modules.get(module) is not None or find_spec(module) is not None
    except ImportError:  # a package above it is missing
        return False


def _numbers(release: str) -> list[int]:
    numbers = [int(number) for number in re.findall(r"\d+", re.split(r"[^\d.]", release)[0])]
    return (numbers + [0] * 9)[:9]  # 2.0 is 2


# --- how to install it here -----------------------------------------------------------------------


def _advise(needs: list[_Need]) -> str:
    """Return the command that installs these packages here, or which installed package forbids it."""
    texts: list[str] = []
    for need in needs:
        text, forbidding = _narrow(need)
        if forbidding:
            return f", which {forbidding} demands: a newer release of that may allow it, or use another environment"
        texts.append(_quote(text))
    return f": {_find_installer()} {' '.join(texts)}"


def _quote(word: str) -> str:
    """Return a word of a command as the shell here takes it."""
    if os.name == "posix":
        return shlex.quote(word)
    return word if re.fullmatch(r"[\w.:\\/-]+", word) else f'"{word}"'


def _narrow(need: _Need) -> tuple[str, str]:
    """Return a requirement that all installed packages allow, or the one that allows no release of it."""
    allowed = [(">=", need.least)]
    for is_optional, who, demanded in sorted(_find_demands(need.package), key=lambda demand: demand[0]):
        both = list(dict.fromkeys([*allowed, *demanded]))
        lowest = max((bound for sign, bound in both if sign in _LOWER), key=_numbers)
        if all(_allows(sign, bound, lowest) for sign, bound in both):
            allowed = both
        elif not is_optional:
            return "", f"{who} ({need.package}{_join(demanded)})"
    ends = [(sign, bound) for sign, bound in allowed if sign not in (">=", ">")]
    return f"{need.package}{need.options}{_join([('>=', need.least), *ends])}", ""


def _join(clauses: list[tuple[str, str]]) -> str:
    return ",".join(sign + bound for sign, bound in clauses)


def _allows(sign: str, bound: str, lowest: str) -> bool:
    """Return whether a clause allows a release from `lowest` on, if the clauses that exclude older ones do."""
    found, limit = _numbers(lowest), _numbers(bound)
    if sign != "!=" and (sign == "~=" or bound.endswith(".*")):
        series = bound.rpartition(".")[0]
        size = series.count(".") + 1
        return found[:size] == _numbers(series)[:size]
    return {"<": found < limit, "<=": found <= limit, "==": found == limit, "===": found == limit}.get(sign, True)


def _find_demands(package: str) -> Iterator[tuple[bool, str, list[tuple[str, str]]]]:
    """Yield each installed package that needs `package`, whether only under a condition, and the releases it allows.

    Nobody knows with which extras a package was installed, so conditions are not read: all count, as far as they can.
    """
    from importlib.metadata import distributions  # noqa: PLC0415 - only for an error

    known = {"suture"}
    for each in distributions():
        with suppress(UnicodeDecodeError):
            about: Any = each.metadata
            name: str = about.get("Name") or ""
            lines = each.requires or () if _normal(name) not in known else ()  # the first of a name is imported
            known.add(_normal(name))
            for line in lines:
                demand, _, condition = line.partition(";")
                named = _DEMAND.match(demand)
                if named and _normal(named[1]) == package:
                    yield bool(condition), f"{name} {each.version}", _CLAUSE.findall(named[2])


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _find_installer() -> str:
    """Return the command that installs packages where this program runs."""
    from importlib.util import find_spec  # noqa: PLC0415 - only for an error

    prefix, python = Path(sys.prefix), _quote(sys.executable or "python")
    if getattr(sys, "frozen", False):
        return "build this program again with"
    if (prefix / "pipx_metadata.json").is_file():
        return f"pipx inject {_quote(prefix.name)}"
    if prefix.name == ".venv" and sys.prefix != sys.base_prefix:  # one of another name is not the project's
        for lock, (command, option) in _LOCKS.items():
            if (prefix.parent / lock).is_file():
                return command if _is_inside(prefix.parent) else f"{command} {option} {_quote(str(prefix.parent))}"
    return f"{python} -m pip install" if find_spec("pip") else f"uv pip install --python {python}"


def _is_inside(folder: Path) -> bool:
    """Return whether the program was started in a folder."""
    try:
        return Path.cwd().is_relative_to(folder)
    except OSError:  # the current one was deleted
        return False
