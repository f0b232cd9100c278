"""Environments with an SDK at a certain release, or with Suture's extras beside a product, and what runs there."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from _matrix import Matrix
from _requirements import Project, package, release
from _resolving import QUIET, UV, show
from _runs import Run, read_checks

ROOT = Path(__file__).parents[2]
_HERE = Path(__file__).parent
_ROOM = Path(sys.prefix) / "environments"
LINES = {
    "openai": (
        "README 2 with openai",
        "OpenAIChatModel with a client",
        "OpenAIResponsesModel with a client",
        "wrap chat",
    ),
    "anthropic": ("README 2 with anthropic", "AnthropicModel with a client", "wrap messages"),
    "google": ("GeminiModel with a client",),
    "mcp": ("MCP servers",),
    "bedrock": ("BedrockModel with a client",),
}
"""The extras whose SDKs are tried at their lowest release and at the newest of each major version; what must run."""
GUEST = "langchain"
"""The extra that stands beside each SDK, since its framework wants none of them."""
BESIDE = {"litellm": ("guest litellm",), "crewai": (), "google-adk": ("guest google-adk",)}
"""The products that are tried at their newest release, with the extras of `TOGETHER`; what else must run."""
TOGETHER = ("openai", "anthropic", "google", "mcp")
PROGRAMS = ("readme_smoke.py", "model_smoke.py", "client_smoke.py", "guest_smoke.py")
_SHOWN = ("openai", "anthropic", "google-genai", "mcp", "boto3", *BESIDE)
_SECONDS = 300
"""How long a program may take, which is far more than it needs."""
_AWS = {"AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none", "AWS_DEFAULT_REGION": "us-east-1"}
"""What boto3 needs to sign a request."""
_OURS = ("_API_KEY", "_BASE_URL", "_PROXY", "_proxy")
"""The ends of variables that would have a say in what runs."""


class Environment(NamedTuple):
    """What is installed into an environment of its own."""

    title: str
    requirements: tuple[str, ...]
    expected: tuple[str, ...]
    """The checks that must run there."""
    lowest: bool = False


def find_environments(project: Project, matrix: Matrix) -> Iterator[Environment]:
    """Yield the environments: the matrix has the versions that each extra and each product brings."""
    for extra, checks in LINES.items():
        asked, expected = project.extras[extra], (*checks, f"guest {GUEST}")
        sdk = package(asked[0])
        low, high = release(asked[0].partition(">=")[2])[0], release(matrix.extras[extra][sdk])[0]
        asked = (*asked, *project.extras[GUEST])
        yield Environment(f"{sdk}, lowest", asked, expected, lowest=True)
        for major in range(low, high + 1):
            title = f"{sdk} {major}, newest" if major < high else f"{sdk}, newest"
            yield Environment(title, (*asked, f"{sdk}<{major + 1}"), expected)
    together = tuple(requirement for extra in TOGETHER for requirement in project.extras[extra])
    for product, checks in BESIDE.items():
        expected = (*(check for extra in TOGETHER for check in LINES[extra]), *checks)
        yield Environment(f"beside {product}", (f"{product}=={matrix.products[product][product]}", *together), expected)


def run_all(project: Project, matrix: Matrix) -> Iterator[Run]:
    for environment in find_environments(project, matrix):
        run = run_in(environment)
        show(f"{run.title}: {run.shown_versions}; {run.shown_checks}: {run.shown_result}")
        yield run


def run_in(environment: Environment) -> Run:
    """Make an environment, and run in it every program that finds there what it is about."""
    show(f"{environment.title}: installing", last=False)
    folder = _ROOM / "".join(letter if letter.isalnum() or letter == "." else "-" for letter in environment.title)
    python = folder / "bin" / "python"
    resolution = ["--resolution", "lowest-direct"] if environment.lowest else []
    for command in (
        ["venv", "--quiet", "--clear", "--python", sys.executable, str(folder)],
        ["pip", "install", "--quiet", "--python", str(python), *resolution, "-e", str(ROOT), *environment.requirements],
    ):
        made = subprocess.run([UV, *command], env={**os.environ, **QUIET}, capture_output=True, text=True, check=False)
        if made.returncode:
            return Run(environment.title, {}, {"installing": _last_line(made.stderr)})
    checks: dict[str, str] = {}
    for program in PROGRAMS:
        show(f"{environment.title}: {program}", last=False)
        checks |= run_program(python, program)
    checks |= {name: "it did not run" for name in environment.expected if name not in checks}
    return Run(environment.title, find_versions(python), checks)


def run_program(python: Path, program: str) -> dict[str, str]:
    """Run a program; return what it says that it did, and how that ended."""
    around = {name: value for name, value in os.environ.items() if not name.endswith(_OURS)}
    command = [str(python), "-W", "ignore", str(_HERE / program)]
    try:
        ended = subprocess.run(
            command,
            env={**around, **_AWS, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"},
            cwd=python.parents[1],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {program: f"not done after {_SECONDS} seconds"}
    checks = read_checks(ended.stdout)
    if ended.returncode and not any(checks.values()):
        checks[program] = _last_line(ended.stderr)
    return checks


def find_versions(python: Path) -> dict[str, str]:
    """Return the versions of the SDKs and products in an environment."""
    command = [UV, "pip", "freeze", "--quiet", "--python", str(python)]
    frozen = subprocess.run(command, env={**os.environ, **QUIET}, check=True, capture_output=True, text=True).stdout
    versions = dict(line.split("==") for line in frozen.splitlines() if "==" in line)
    return {name: versions[name] for name in _SHOWN if name in versions}


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["it said nothing"])[-1].strip()[:200]
