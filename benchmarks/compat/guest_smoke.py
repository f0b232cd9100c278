"""Suture and what else is installed: MCP servers, and the frameworks with the programs of their pages."""

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from os import environ
from pathlib import Path
from typing import Any

from _smoke import is_installed, run_checks

from tests.docs.pages import DOCS, blocks
from tests.docs.running import run_python
from tests.guests.strict_provider import strict_provider

PAGES = {"google.adk": "google-adk", "strands": "strands", "agents": "openai-agents"}
"""The module of each framework whose page runs without a provider, and the page."""
OTHERS = ("litellm", "llama_index.llms.openai")
"""The modules of frameworks on docs/guests/others.md, whose samples are marked with them."""


def main() -> int:
    checks: dict[str, Callable[[], Any]] = {
        f"guest {page}": partial(run_python, DOCS / "guests" / f"{page}.md")
        for module, page in PAGES.items()
        if is_installed(module)
    }
    if is_installed("langchain"):  # the rest of that page needs deepagents
        checks["guest langchain"] = partial(run_python, DOCS / "guests" / "langchain.md", 1)
    for module in OTHERS:
        if is_installed(module):
            checks[f"guest {module}"] = partial(run_samples, module)
    if is_installed("mcp"):
        checks["MCP servers"] = call_servers
    return run_checks(checks)


def call_servers() -> None:
    """Call the tools of servers over stdio and HTTP, in a program of its own: it is its servers, too."""
    program = Path(__file__).with_name("mcp_smoke.py")
    ended = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, (ended.stderr.strip().splitlines() or ["it said nothing"])[-1]


def run_samples(module: str) -> None:
    """Run the samples of a framework against a provider that refuses what a real one refuses."""
    found = list(blocks(DOCS / "guests" / "others.md"))
    (history,) = [block.body for block in found if block.info == "python others"]
    for block in found:
        if block.info != f"python others {module}":
            continue
        with strict_provider("Very well.") as server:
            url = f"{server.url}/v1"
            environ.update(OPENAI_BASE_URL=url, OPENAI_API_BASE=url, OPENAI_API_KEY="none")
            environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
            exec(history + block.body, {"__name__": "sample"})
            assert server.refused == [], f"refused: {server.refused}"
            assert server.bodies, "nothing was sent"


if __name__ == "__main__":
    raise SystemExit(main())
