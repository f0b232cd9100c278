"""Item 6: what importing the package costs a fresh process, with everything already compiled to bytecode."""

import os
import subprocess
import sys
import tempfile

from _measure import Goal, Row, Section, Settings, Timings, say

__all__ = ["measure_imports"]

_CODES = {
    "import msgspec": "import msgspec",
    "import suture": "import suture",
    "… and suture.Message": "import suture; suture.Message",
    "… and suture.repair": "import suture; suture.repair",
}
_LIMIT = Goal(60, unit=" ms")


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
    rows = [
        Row(
            what=name,
            ours=timings.best(name) * 1e3,
            against="import msgspec",
            other=timings.best("import msgspec") * 1e3,
            ratio=timings.ratio(name, "import msgspec"),
            middle=timings.middle(name, "import msgspec"),
            rounds=settings.starts,
            goal=str(_LIMIT),
            met=_LIMIT.is_met(timings.best(name) * 1e3),
        )
        for name in _CODES
        if "suture" in name
    ]
    notes = ("CPU of the import alone, the interpreter's start left out; bytecode in a fresh cache.",)
    return [Section("6. Importing", rows, notes)]


def _run(code: str, cache: str) -> float:
    program = f"import time\nstart = time.process_time()\n{code}\nprint(time.process_time() - start)"
    command = [sys.executable, "-X", f"pycache_prefix={cache}", "-c", program]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return float(done.stdout)
