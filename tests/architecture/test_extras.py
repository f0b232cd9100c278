"""A package that is missing or too old is named with its extra, and with the command that installs it where it runs."""

import os
import re
import shlex
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
PYTHON = f"{shlex.quote(sys.executable)} -m pip install"
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

    def ask(
        self, module: str, extra: str, python: str | Path = sys.executable, *options: str, where: Path | None = None
    ) -> str:
        sources = str(Path(suture.__file__).parents[1])
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(self.folder), sources])}
        command = [str(python), *options, *([] if "-c" in options else ["-c", ASK]), module, extra]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=True, env=environment, cwd=where
        )
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


@pytest.mark.parametrize("about", ["", "Name: openai\n", "Name: openai\nAuthor: \udcff\n"])
def test_metadata_without_a_readable_version_is_as_good_as_none(packages: Packages, about: str):
    folder = packages.folder / "openai-1.2.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(about, errors="surrogateescape")
    (packages.folder / "openai.py").touch()
    assert packages.ask("openai", "openai") == "found"


def test_zeros_at_the_end_of_a_release_count_for_nothing(packages: Packages):
    assert needs("agent-framework").endswith(">=1.0")
    packages.add("agent-framework-core", "1", module="agent_framework")
    assert packages.ask("agent_framework", "agent-framework") == "found"
    packages.add("openai", "10", module="openai")
    assert packages.ask("openai", "openai") == "found"


@pytest.mark.parametrize("end", ["KeyboardInterrupt", "SystemExit"])
def test_what_ends_the_program_while_an_old_release_is_imported_ends_it(packages: Packages, end: str):
    packages.add("strands-agents", "0.0.1", module="strands", code=f"raise {end}")
    for way in ("import_extra('strands', 'strands')", "import suture.integrations.strands"):
        code = f"from suture._extras import import_extra\ntry: {way}\nexcept BaseException as error: print(repr(error))"
        assert packages.ask("", "", sys.executable, "-c", code) == f"{end}()"


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
        ("openai>99", set[str]()),
        ("openai!=2", {"!=2"}),
        ("openai!=2.*", {"!=2.*"}),
        ("openai>=2.0rc1,!=2.0", {"!=2.0"}),
        ("openai==2.7", {"==2.7"}),
        ("openai>=dog", set[str]()),
        ("openai @ https://packages.example/openai.whl", set[str]()),
        ("openai<99; platform_release ~= 'x'", {"<99"}),
        ("other<99; platform_release ~= 'x'", set[str]()),
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


def test_of_a_package_that_is_there_twice_the_one_that_is_imported_counts(packages: Packages):
    packages.add("openai", "1.109.1", module="openai")
    packages.add("somebody", "4.0", "openai>=1")
    later = Packages(packages.folder / "later")
    later.add("Somebody", "3.1", "openai<2")
    code = f"import sys; sys.path.append({str(later.folder)!r})\n{ASK}"
    assert packages.ask("openai", "openai", sys.executable, "-c", code).endswith(f"{PYTHON} '{needs('openai')}'")


def test_a_package_whose_metadata_cannot_be_read_demands_nothing(packages: Packages):
    packages.add("openai", "1.109.1", module="openai")
    packages.add("somebody", "3.1", "openai<2")
    (packages.folder / "somebody-3.1.dist-info" / "METADATA").write_bytes(b"Name: \xff")
    assert packages.ask("openai", "openai").endswith(f"{PYTHON} '{needs('openai')}'")


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


def ask_in(environment: Path, packages: Packages, where: Path | None = None) -> str:
    python = environment / "bin" / "python"
    told = packages.ask("openai", "openai", python, where=where).removesuffix(f" '{needs('openai')}'")
    return told.rpartition(" is not installed: ")[2].replace(str(python), "PYTHON")


def test_pip_is_told_which_python(environment: Path, packages: Packages):
    (packages.folder / "pip.py").touch()
    assert ask_in(environment, packages) == "'PYTHON' -m pip install"


def test_without_pip_uv_installs_into_the_environment(environment: Path, packages: Packages):
    assert ask_in(environment, packages) == "uv pip install --python 'PYTHON'"


@pytest.mark.parametrize(
    ("lock", "command", "option"),
    [
        ("uv.lock", "uv add", "--project"),
        ("poetry.lock", "poetry add", "--directory"),
        ("pdm.lock", "pdm add", "--project"),
    ],
)
def test_a_project_with_a_lock_file_adds_the_package_itself(
    environment: Path, packages: Packages, lock: str, command: str, option: str
):
    (environment.parent / lock).touch()
    (environment.parent / "src").mkdir()
    assert ask_in(environment, packages, environment.parent / "src") == command
    assert ask_in(environment, packages, packages.folder) == f"{command} {option} '{environment.parent}'"


def test_another_environment_in_a_project_with_a_lock_file_is_not_the_project_s(environment: Path, packages: Packages):
    (environment.parent / "uv.lock").touch()
    other = environment.rename(environment.with_name("other"))
    assert ask_in(other, packages, other.parent) == "uv pip install --python 'PYTHON'"


def test_a_program_that_pipx_installed_is_injected_into(environment: Path, packages: Packages):
    (environment / "pipx_metadata.json").touch()
    assert ask_in(environment, packages) == "pipx inject .venv"


def test_a_frozen_program_is_built_again(packages: Packages):
    told = packages.ask("strands", "strands", sys.executable, "-c", "import sys; sys.frozen = True\n" + ASK)
    assert told.endswith(f"is not installed: build this program again with '{needs('strands')}'")


@pytest.mark.parametrize("path", ["''", "None"])
def test_a_program_that_does_not_know_its_python_names_the_usual_one(packages: Packages, path: str):
    told = packages.ask("strands", "strands", sys.executable, "-c", f"import sys; sys.executable = {path}\n" + ASK)
    assert told.endswith(f"is not installed: python -m pip install '{needs('strands')}'")


def test_a_path_is_quoted_for_the_shell(packages: Packages):
    path = "/home/o'hara/$me/python"
    told = packages.ask("strands", "strands", sys.executable, "-c", f"import sys; sys.executable = {path!r}\n" + ASK)
    command = told.partition("is not installed: ")[2]
    assert shlex.split(command) == [path, "-m", "pip", "install", needs("strands")]


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
