"""Item 6: what importing the package costs a fresh process, with everything already compiled to bytecode."""

import os
import subprocess
import sys
import tempfile
from dataclasses import replace

from _measure import Goal, Row, Section, Settings, Timings, say

__all__ = ["measure_imports"]

_CODES = {
    "import msgspec": "import msgspec",
    "import suture": "import suture",
    "… and suture.Message": "import suture; suture.Message",
    "… and suture.repair": "import suture; suture.repair",
}
_OTHER = "import msgspec"
_LIMIT = Goal(25, unit=" ms")


def measure_imports(settings: Settings) -> list[Section]:
    """Measure the CPU time of imports, in fresh processes that take turns."""
    say("imports")
    times: dict[str, list[float]] = {name: [] for name in _CODES}
    with tempfile.TemporaryDirectory() as cache:
        for code in _CODES.values():
            _run(code, cache)  # compiles
        for _ in range(settings.starts):
            for name, code in _CODES.items():
                times[name].append(_run(code, cache))
    timings = Timings(times)
    rows = [_row(name, timings) for name in _CODES if name != _OTHER]
    notes = (
        "CPU of the import alone, the interpreter's start left out; bytecode in a fresh cache.",
        "The goal is for what it adds to msgspec, the only dependency: the number behind the colon.",
    )
    return [Section("6. Importing", rows, notes)]


def _row(name: str, timings: Timings) -> Row:
    added = 1e3 * (timings.best(name) - timings.best(_OTHER))
    row = timings.row(f"{name}: {added:+.1f} ms", name, _OTHER)
    return replace(row, goal=str(_LIMIT), met=_LIMIT.is_met(added))


def _run(code: str, cache: str) -> float:
    program = f"import time\nstart = time.process_time()\n{code}\nprint(time.process_time() - start)"
    command = [sys.executable, "-X", f"pycache_prefix={cache}", "-c", program]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return float(done.stdout)
