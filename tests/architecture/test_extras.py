"""A package that is missing or too old is named with its extra, and with the command that installs it where it runs."""

import os
import re
import subprocess
import sys
import tomllib
import venv
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import pytest

import suture
from suture._extras import import_extra
from suture.errors import ConfigError

ROOT = Path(__file__).parents[2]
EXTRAS: Mapping[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
    "optional-dependencies"
]
PYTHON = f"{sys.executable} -m pip install"
ASK = """
import sys
from suture._extras import import_extra
try:
    import_extra(sys.argv[1], sys.argv[2])
except Exception as error:
    print(type(error).__name__, error)
else:
    print("found")
"""


def needs(extra: str) -> str:
    (requirement,) = EXTRAS[extra]
    return requirement


class Packages:
    """Packages in a folder that comes first on the path: what they need, and modules that may fail."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, name: str, version: str, *requires: str, module: str = "", code: str = "") -> None:
        about = self.folder / f"{name.replace('-', '_')}-{version}.dist-info"
        about.mkdir(parents=True)
        lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
        (about / "METADATA").write_text("\n".join([*lines, *(f"Requires-Dist: {line}" for line in requires), ""]))
        if module:
            (self.folder / f"{module}.py").write_text(code)

    def ask(self, module: str, extra: str, python: str | Path = sys.executable, *options: str) -> str:
        sources = str(Path(suture.__file__).parents[1])
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(self.folder), sources])}
        command = [str(python), *options, *([] if "-c" in options else ["-c", ASK]), module, extra]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env=environment)
        return done.stdout.strip()


@pytest.fixture
def packages(tmp_path: Path) -> Packages:
    found = Packages(tmp_path / "packages")
    found.folder.mkdir()
    return found


def about_suture(packages: Packages, *extras: str) -> None:
    lines = [f"{requirement}; extra == '{extra}'" for extra in extras for requirement in EXTRAS[extra]]
    packages.add("suture", "0.1.0", "msgspec>=0.21", *lines)


def test_an_old_release_is_named_with_the_one_that_is_needed(packages: Packages):
    packages.add("openai", "1.109.1", module="openai")
    told = f"ConfigError this needs {needs('openai')} (extra openai), and openai 1.109.1 is installed: "
    assert packages.ask("openai", "openai") == f"{told}{PYTHON} '{needs('openai')}'"


def test_an_old_release_whose_import_fails_is_named_too(packages: Packages):
    packages.add("strands-agents", "0.0.1", module="strands", code="import no_such_dependency")
    told = packages.ask("strands", "strands")
    assert told.startswith(f"ConfigError this needs {needs('strands')} (extra strands), and strands-agents 0.0.1 is ")


def test_an_error_of_a_release_that_is_new_enough_is_its_own(packages: Packages):
    packages.add("strands-agents", "999", module="strands", code="import no_such_dependency")
    assert packages.ask("strands", "strands") == "ModuleNotFoundError No module named 'no_such_dependency'"


def test_a_release_that_is_new_enough_passes(packages: Packages):
    packages.add("openai", needs("openai").partition(">=")[2], module="openai")
    assert packages.ask("openai", "openai") == "found"


def test_a_module_without_metadata_passes(packages: Packages):
    (packages.folder / "strands.py").touch()
    assert packages.ask("strands", "strands") == "found"


def test_of_an_extra_of_several_packages_only_those_that_are_missing_are_named(packages: Packages):
    about_suture(packages, "proxy")
    packages.add("uvicorn", "0.40.1", module="uvicorn")
    told = packages.ask("aiohttp", "proxy", sys.executable, "-S")
    named = [line.partition(";")[0] for line in EXTRAS["proxy"] if not line.startswith("uvicorn")]
    assert told.startswith(f"ConfigError this needs {', '.join(named)} (extra proxy), and httptools is not installed, ")


def test_without_metadata_of_its_own_the_package_still_names_the_extra(packages: Packages):
    told = packages.ask("openai", "openai", sys.executable, "-S")
    assert told == "ConfigError this needs openai (extra openai), which is not installed"


# --- what other packages allow --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("demand", "within"),
    [
        ("openai<99,>=1.60", {"<99"}),
        ("openai~=50.1", {"~=50.1"}),
        ("openai==50.*", {"==50.*"}),
        ("OpenAI (<99,!=7.0)", {"<99", "!=7.0"}),
        ("openai<99; extra == 'more'", {"<99"}),
        ("openai>=1", set[str]()),
        ("openai>2", set[str]()),
        ("openai!=2.0", {"!=2.0"}),
        ("openai[realtime]<99", {"<99"}),
        ("openai<1; extra == 'old'", set[str]()),
        ("openai<1; python_version < '3.9'", set[str]()),
        ("openai-agents<1", set[str]()),
    ],
)
def test_the_advice_is_within_what_other_packages_allow(packages: Packages, demand: str, within: set[str]):
    packages.add("openai", "1.2", module="openai")
    packages.add("somebody", "3.1", demand)
    advised = packages.ask("openai", "openai").rpartition(" install ")[2].strip("'")
    assert set(advised.removeprefix("openai").split(",")) == {needs("openai").removeprefix("openai"), *within}


def test_no_release_is_advised_that_an_installed_package_forbids(packages: Packages):
    packages.add("openai", "1.109.1", module="openai")
    packages.add("somebody", "3.1", "openai<2,>=1.68.2")
    told = packages.ask("openai", "openai")
    assert "install '" not in told
    assert "which somebody 3.1 (openai<2,>=1.68.2) demands" in told


# --- the way that fits where the program runs -----------------------------------------------------


@pytest.mark.parametrize(
    "demand", ["openai<2", "openai<2.0", "openai==1.*", "openai==1.109.1", "openai~=1.60", "openai~=1.60.1"]
)
def test_what_forbids_a_release_is_named_in_an_environment_without_any_other_package(
    environment: Path, packages: Packages, demand: str
):
    packages.add("openai", "1.109.1", module="openai")
    packages.add("somebody", "3.1", demand)
    told = packages.ask("openai", "openai", environment / "bin" / "python")
    assert f"openai 1.109.1 is installed, which somebody 3.1 ({demand}) demands: " in told


@pytest.fixture
def environment(tmp_path: Path, packages: Packages) -> Path:
    """Return a project's environment without pip, in which the package and what it needs are found."""
    (packages.folder / "msgspec").symlink_to(Path(import_module("msgspec").__file__ or "").parent)
    about_suture(packages, "openai")
    venv.create(tmp_path / "a project" / ".venv", symlinks=True)
    return tmp_path / "a project" / ".venv"


def ask_in(environment: Path, packages: Packages) -> str:
    python = environment / "bin" / "python"
    told = packages.ask("openai", "openai", python).removesuffix(f" '{needs('openai')}'")
    return told.rpartition(" is not installed: ")[2].replace(str(python), "PYTHON")


def test_pip_is_told_which_python(environment: Path, packages: Packages):
    (packages.folder / "pip.py").touch()
    assert ask_in(environment, packages) == "'PYTHON' -m pip install"


def test_without_pip_uv_installs_into_the_environment(environment: Path, packages: Packages):
    assert ask_in(environment, packages) == "uv pip install --python 'PYTHON'"


@pytest.mark.parametrize(
    ("lock", "command"), [("uv.lock", "uv add"), ("poetry.lock", "poetry add"), ("pdm.lock", "pdm add")]
)
def test_a_project_with_a_lock_file_adds_the_package_itself(
    environment: Path, packages: Packages, lock: str, command: str
):
    (environment.parent / lock).touch()
    assert ask_in(environment, packages) == command


def test_a_program_that_pipx_installed_is_injected_into(environment: Path, packages: Packages):
    (environment / "pipx_metadata.json").touch()
    assert ask_in(environment, packages) == "pipx inject .venv"


def test_a_frozen_program_is_built_again(packages: Packages):
    told = packages.ask("strands", "strands", sys.executable, "-c", "import sys; sys.frozen = True\n" + ASK)
    assert told.endswith(f"is not installed: build this program again with '{needs('strands')}'")


# --- the guests ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("extra", "module"),
    [
        ("langchain", "langchain.PatchToolCallsMiddleware"),
        ("pydantic-ai", "pydantic_ai.PatchToolCalls"),
        ("openai-agents", "openai_agents.PatchToolCalls"),
        ("google-adk", "google_adk.PatchToolCallsPlugin"),
        ("strands", "strands.PatchToolCalls"),
        ("agent-framework", "agent_framework.wrap"),
    ],
)
def test_a_guest_without_its_framework_says_what_to_install(extra: str, module: str):
    room, name = module.split(".")
    with pytest.raises(ConfigError, match=re.escape(f"is not installed: {PYTHON} '{needs(extra)}'")):
        getattr(import_module(f"suture.integrations.{room}"), name)


def test_what_is_there_is_returned():
    assert import_extra("msgspec.json", "none").decode(b"1") == 1
