"""What is told of the proxy's work: counts for Prometheus, and a line for each repair. No contents, no keys."""

import logging
import os
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec

from suture.errors import ConfigError
from suture.repair import Report

__all__ = ["Records"]

_LOG = logging.getLogger("suture.proxy")
_HELP = {
    "requests_total": "Requests that were answered, by wire and class of status.",
    "repaired_requests_total": "Requests whose history was repaired, by wire.",
    "findings_total": "What was found in histories, by rule.",
    "reduced_requests_total": "Requests whose history was shortened, by wire.",
    "retried_requests_total": "Requests that were repaired by a stricter rule and sent once more, by lesson.",
    "failures_total": "What went wrong, by kind; a failed repair sends the original.",
    "request_seconds": "How long requests took.",
    "repair_seconds": "How long looks at requests took.",
}


class Records:
    """Counts, and the file for reports.

    >>> records = Records()
    >>> records.count("failures_total", kind="repair")
    >>> [line for line in records.text().splitlines() if "kind=" in line]
    ['suture_failures_total{kind="repair"} 1']
    """

    def __init__(self, report: str | None = None) -> None:
        self._counts: dict[str, Counter[tuple[tuple[str, str], ...]]] = {name: Counter() for name in _HELP}
        self._seconds: Counter[str] = Counter()
        self.in_flight = 0
        self._file: int | None = None
        if report is not None:
            try:
                self._file = os.open(report, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            except OSError as error:
                raise ConfigError(f"the report cannot be written to {report}: {error.strerror}") from None

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def count(self, name: str, **labels: str) -> None:
        """Count one."""
        self._counts[name][tuple(labels.items())] += 1

    def time(self, name: str, started: float) -> None:
        """Count one, and the seconds since it started."""
        self._counts[name][()] += 1
        self._seconds[name] += time.perf_counter() - started  # pyright: ignore[reportArgumentType]

    def found(self, reports: Iterable[Report]) -> None:
        """Count what was found."""
        for report in reports:
            for finding in report.findings:
                self.count("findings_total", rule=finding.rule or finding.problem)

    def write(self, **facts: Any) -> None:
        """Write a line to the report: facts that are not empty, and when it was."""
        if self._file is None:
            return
        kept = {name: value for name, value in facts.items() if value not in (None, "", (), [])}
        line = msgspec.json.encode({"time": round(time.time(), 3), **kept}) + b"\n"
        try:
            os.write(self._file, line)
        except OSError:
            self.count("failures_total", kind="report")

    def failed(self, kind: str, error: BaseException | None = None) -> None:
        """Count a failure, and log what kind of error it was; never what it says, which may quote the request."""
        self.count("failures_total", kind=kind)
        _LOG.warning("failure: %s%s", kind, "" if error is None else f" ({type(error).__name__})")

    def text(self) -> str:
        """Return the counts in Prometheus' format."""
        lines = ["# HELP suture_requests_in_flight Requests that are being answered."]
        lines += ["# TYPE suture_requests_in_flight gauge", f"suture_requests_in_flight {self.in_flight}"]
        for name, about in _HELP.items():
            timed = name.endswith("_seconds")
            lines += [f"# HELP suture_{name} {about}", f"# TYPE suture_{name} {'summary' if timed else 'counter'}"]
            for labels, number in sorted(self._counts[name].items()):
                told = ",".join(f'{label}="{_escape(value)}"' for label, value in labels)
                lines.append(f"suture_{name}{'_count' if timed else ''}{f'{{{told}}}' if told else ''} {number}")
            if timed:
                lines.append(f"suture_{name}_sum {self._seconds[name]:.6f}")
        return "\n".join(lines) + "\n"


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
