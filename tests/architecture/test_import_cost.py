"""`import suture` is cheap: it loads little, and what it loads is loaded quickly."""

import json
import os
import subprocess
import sys
from pathlib import Path

LIMIT_MS = 60
PROCESSES = 5
KEPT_OUT = {"asyncio", "inspect", "sqlite3"}

NEW_MODULES = """
import sys
before = set(sys.modules)
import suture
new = set(sys.modules) - before
import json
print(json.dumps(sorted(new)))
"""

OF_THE_AGENT = """
import sys, asyncio, msgspec
before = set(sys.modules)
from suture import ChatModelAgent
new = set(sys.modules) - before
import json
print(json.dumps(sorted(new)))
"""

TIMED = """
import time
start = time.process_time()
import suture
STATEMENT
print((time.process_time() - start) * 1000)
"""


def run(script: str, **environment: str) -> str:
    """Run a script in a fresh interpreter that keeps bytecode, whatever this machine is set to."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    result = subprocess.run(
        [sys.executable, "-c", script],
        env=inherited | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def best_cpu_time(bytecode: Path, statement: str = "") -> float:
    """Return the least CPU time, in milliseconds, that importing took once the bytecode was there."""
    script = TIMED.replace("STATEMENT", statement)
    run(script, PYTHONPYCACHEPREFIX=str(bytecode))
    return min(float(run(script, PYTHONPYCACHEPREFIX=str(bytecode))) for _ in range(PROCESSES))


def new_packages() -> set[str]:
    return {name.partition(".")[0] for name in json.loads(run(NEW_MODULES))}


def test_importing_suture_loads_no_third_party_package_but_msgspec():
    assert new_packages() - set(sys.stdlib_module_names) - {"msgspec"} == {"suture"}


def test_importing_suture_loads_no_asyncio_no_inspect_and_no_sqlite3():
    assert new_packages() & KEPT_OUT == set()


def test_the_agent_loads_few_modules_beside_asyncio_and_msgspec():
    """At this number it costs about 1.4 times what these two do."""
    modules = json.loads(run(OF_THE_AGENT))
    ours = [name for name in modules if name.startswith("suture")]
    assert set(modules) - set(ours) <= {"_bisect", "bisect"}
    assert len(ours) <= 52


def test_importing_suture_takes_less_than_60_ms_of_cpu_time(tmp_path: Path):
    plain = best_cpu_time(tmp_path)
    resolved = best_cpu_time(tmp_path, "suture.repair")
    print(f"import suture: {plain:.1f} ms; with suture.repair resolved: {resolved:.1f} ms")
    assert plain < LIMIT_MS
