"""What was run in an environment, and how it ended."""

from collections.abc import Mapping
from typing import NamedTuple


class Run(NamedTuple):
    """One environment."""

    title: str
    versions: Mapping[str, str]
    checks: Mapping[str, str]
    """What ran: an empty text if it went well, else what went wrong."""

    @property
    def failed(self) -> dict[str, str]:
        return {name: error for name, error in self.checks.items() if error}

    @property
    def shown_versions(self) -> str:
        return ", ".join(f"{name} {version}" for name, version in self.versions.items())

    @property
    def shown_checks(self) -> str:
        return ", ".join(self.checks) or "nothing"

    @property
    def shown_result(self) -> str:
        errors: dict[str, list[str]] = {}
        for name, error in self.failed.items():
            errors.setdefault(error.replace("|", "\\|"), []).append(name)
        told = "; ".join(f"{', '.join(names)}: {error}" for error, names in errors.items())
        return f"**failed**: {told}" if told else "ok"


def read_checks(printed: str) -> dict[str, str]:
    """Read the lines of a program: `ok NAME`, or `failed NAME: ERROR`."""
    found: dict[str, str] = {}
    for line in printed.splitlines():
        word, _, rest = line.partition(" ")
        if word == "ok":
            found[rest] = ""
        elif word == "failed":
            name, _, error = rest.partition(": ")
            found[name] = error or "failed"
    return found
