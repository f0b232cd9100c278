"""`import suture` is cheap: it loads little. What that costs is in `make bench`."""

import json
import subprocess
import sys

KEPT_OUT = {"asyncio", "inspect", "sqlite3"}

PROGRAM = """
import json, sys
{before}
known = set(sys.modules)
{after}
print(json.dumps(sorted(set(sys.modules) - known)))
"""


def new_modules(after: str, before: str = "") -> list[str]:
    """Return the modules that `after` loads in a fresh interpreter, beside those of `before`."""
    program = PROGRAM.format(before=before, after=after)
    return json.loads(subprocess.check_output([sys.executable, "-c", program], text=True))


def new_packages() -> set[str]:
    return {name.partition(".")[0] for name in new_modules("import suture")}


def test_importing_suture_loads_no_third_party_package_but_msgspec():
    assert new_packages() - set(sys.stdlib_module_names) - {"msgspec"} == {"suture"}


def test_importing_suture_loads_no_asyncio_no_inspect_and_no_sqlite3():
    assert new_packages() & KEPT_OUT == set()


def test_the_agent_loads_few_modules_beside_asyncio_and_msgspec():
    """At this number it costs about 1.4 times what these two do."""
    modules = new_modules("from suture import ChatModelAgent", "import asyncio, msgspec")
    ours = [name for name in modules if name.startswith("suture")]
    assert set(modules) - set(ours) <= {"_bisect", "bisect"}
    assert len(ours) <= 54


def test_repair_loads_few_modules_beside_msgspec():
    modules = new_modules("import suture; suture.repair", "import msgspec")
    assert len([name for name in modules if name.startswith("suture")]) <= 30
