"""Every cell of the page of scenarios, against a strict provider: with Suture in place, and without it."""

import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from shutil import copytree

import pytest

from tests.docs.pages import DOCS, ROOT, table
from tests.guests.scenarios.frameworks import FRAMEWORKS
from tests.guests.scenarios.playing import HANG, PAY, SCENARIOS, Scenario, play, talked
from tests.guests.scenarios.talking import Setting
from tests.guests.strict_provider import StrictServer

PAGE = DOCS / "guests" / "scenarios.md"
APIS = {"Chat": "chat", "Responses": "responses", "Anthropic": "messages", "Gemini": "gemini", "Bedrock": "bedrock"}
ROWS = {row[0]: dict(zip(FRAMEWORKS, row[1:], strict=False)) for row in table(PAGE, "scenario")}
RELEASES = dict(row for row in table(PAGE, "package"))
KILLED = "killed in a call"


def as_on_the_page() -> bool:
    """Tell whether the frameworks are those of the page: what another release does by itself is its own affair."""
    try:
        return all(version(package) == release for package, release in RELEASES.items())
    except PackageNotFoundError:
        return False


def cell(row: str, framework: str, api: str) -> tuple[str, str]:
    """Return what a cell says of an interface, without Suture and with it."""
    parts = [part.strip().rpartition(": ") for part in ROWS[row][framework].split(";")]
    [said] = [said for names, _, said in parts if not names or api in [APIS[name] for name in names.split(", ")]]
    without, _, with_it = said.partition(" / ")
    return without, with_it


UNHURT = {"approved", "refused by a person"}
"""Nothing goes wrong there, so one interface of each framework is enough before the soak."""
CELLS = [
    pytest.param(row, name, api, marks=[pytest.mark.soak] if row in UNHURT and api != kind.apis[0] else [])
    for row in SCENARIOS
    for name, kind in FRAMEWORKS.items()
    for api in kind.apis
]


@pytest.mark.parametrize(("row", "framework", "api"), CELLS)
def test_what_the_page_says_is_what_the_provider_says(row: str, framework: str, api: str, strict: StrictServer):
    scenario, (without, with_it) = SCENARIOS[row], cell(row, framework, api)
    script = strict.script(*scenario.replies)
    setting = Setting(api, script.url, ours=True, **scenario.setting)
    # A release that is not the page's may lose more by itself; then the model is told that it is not known.
    expected = {with_it} if as_on_the_page() else {with_it, "unknown"}
    assert play(FRAMEWORKS[framework], scenario, script, setting) in expected
    assert len(setting.shop.paid) <= 1
    if as_on_the_page():
        assert setting.heard or with_it == without
        script = strict.script(*scenario.replies)
        setting = Setting(api, script.url, ours=False, **scenario.setting)
        assert play(FRAMEWORKS[framework], scenario, script, setting) == without


@pytest.mark.filterwarnings("ignore:.*FileHistoryProvider is experimental")
def test_a_process_is_killed_in_a_call_and_another_goes_on(strict: StrictServer, tmp_path: Path):
    """One process with all frameworks, and one kill: what each had on disk is what the next process has."""
    for name in FRAMEWORKS:
        (tmp_path / name).mkdir()
    program = [sys.executable, "-m", "tests.guests.scenarios.killed", strict.script(say=lambda _: [PAY, HANG]).url]
    with subprocess.Popen([*program, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "hanging\n"
        process.kill()
    going_on = Scenario(talked, [], ("pay", "hang"))
    seen: dict[str, tuple[str, ...]] = {}
    for name, kind in FRAMEWORKS.items():
        for ours in (False, True):
            folder, script = tmp_path / f"{name} {ours}", strict.script()
            copytree(tmp_path / name, folder)
            setting = Setting(kind.apis[0], script.url, ours, folder=folder)
            setting.shop.paid.append(5)
            seen[name] = (*seen.get(name, ()), play(kind, going_on, script, setting))
    wanted = {name: cell(KILLED, name, kind.apis[0]) for name, kind in FRAMEWORKS.items()}
    if not as_on_the_page():
        seen, wanted = ({name: (cells[1],) for name, cells in each.items()} for each in (seen, wanted))
    assert seen == wanted
