"""The page of compatibility is made of what uv answers: read, judged, and held against the clashes that are known."""

import shlex
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks" / "compat"
MODULES = [file.stem for file in FOLDER.glob("*.py")]

PINNED = """\
error: No solution found when resolving dependencies
  cause: Because sailor==4.1.0 depends on charts>=2.20.0,<3.0.0 and you require charts>=3, we can conclude that your requirements and sailor==4.1.0 are incompatible.
         And because you require sailor==4.1.0, we can conclude that your requirements are unsatisfiable.
"""  # noqa: E501 - as uv writes it
CONCLUDED = """\
error: No solution found when resolving dependencies
  cause: Because sailor>=2.12.0 depends on charts[sea]>=2.30,<3 and sailor==2.11.0 depends on charts[sea]>=2.19,<3, we can conclude that sailor>=2.11.0 depends on charts[sea]>=2.19,<3.
         And because you require charts>=3 and sailor>=2.11, we can conclude that your requirements are unsatisfiable.
"""  # noqa: E501
BETWEEN_OTHERS = """\
error: No solution found when resolving dependencies
  cause: Because only pilot<=3 is available and pilot>=1 depends on charts>=3.0.0,<4, we can conclude that pilot>=1 depends on charts>=3.0.0,<=3.9.
         And because sailor==4.1.0 depends on charts>=1,<3 and you require pilot>=1 and sailor==4.1.0, we can conclude that your requirements are unsatisfiable.
"""  # noqa: E501
NOT_THERE = """\
error: No solution found when resolving dependencies
  cause: Because submarine was not found in the package registry and you require submarine>=1, we can conclude that your requirements are unsatisfiable.
"""  # noqa: E501
OFFLINE = "error: Failed to fetch: `charts`\n  cause: Request failed after 3 retries\n"


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    for module in MODULES:
        monkeypatch.delitem(sys.modules, module, raising=False)


def judging() -> Any:
    return import_module("_judging")


def resolving() -> Any:
    return import_module("_resolving")


def resolved(**versions: str) -> Any:
    return resolving().Resolved(versions)


# --- what uv answers --------------------------------------------------------------------------


def test_a_package_has_one_name_however_it_is_written():
    package = import_module("_requirements").package
    assert package("Charts.Sea[all]>=2; python_version > '3'") == package("charts_sea==2.1.0") == "charts-sea"


def test_a_version_is_read_without_its_marker_and_other_lines_are_not():
    printed = "--find-links /wheels\ncharts==2.1.0 ; sys_platform == 'linux'\n"
    assert resolving().read_versions(printed) == {"charts": "2.1.0"}


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (PINNED, "`sailor==4.1.0` needs `charts>=2.20.0,<3.0.0`, and `charts>=3` is asked for"),
        (CONCLUDED, "`sailor>=2.11.0` needs `charts[sea]>=2.19,<3`, and `charts>=3` is asked for"),
        (BETWEEN_OTHERS, "`sailor==4.1.0` needs `charts>=1,<3`, and `pilot>=1` needs `charts>=3.0.0,<=3.9`"),
    ],
    ids=["what is asked for", "what uv concluded", "what two others need"],
)
def test_a_reason_is_the_two_requirements_that_clash(said: str, reason: str):
    assert resolving().read_reason(said) == reason


def test_a_reason_of_another_kind_is_told_as_it_is_and_short():
    reason = resolving().read_reason(NOT_THERE)
    assert reason.startswith("Because submarine was not found in the package registry")
    assert len(resolving().read_reason(NOT_THERE.replace("submarine", "u" * 80))) <= 202


@pytest.fixture
def answer_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Callable[[], list[str]]]:
    """Put a program in the place of uv: its answers one after the other, the last again; what it was asked is kept."""

    def put(*answers: tuple[str, str]) -> Callable[[], list[str]]:
        asked = tmp_path / "asked"
        for number, (printed, said) in enumerate(answers):
            (tmp_path / f"printed{number}").write_text(printed)
            (tmp_path / f"said{number}").write_text(said)
        program, script = tmp_path / "uv", tmp_path / "uv.py"
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(script))} "$@"\n')
        script.write_text(f"""
import os, sys
with open({str(asked)!r}, "a") as file:
    file.write(" ".join([] if "lock" in sys.argv else sys.stdin.read().split()) + "\\n")
with open({str(asked)!r}) as file:
    number = min(len(file.readlines()), {len(answers)}) - 1
sys.stdout.write(open({str(tmp_path)!r} + f"/printed{{number}}").read())
said = open({str(tmp_path)!r} + f"/said{{number}}").read()
sys.stderr.write(said)
sys.exit(1 if said else 0)
""")
        program.chmod(0o755)
        monkeypatch.setattr(resolving(), "UV", str(program))
        return lambda: asked.read_text().splitlines()

    return put


def test_the_same_requirements_are_asked_for_once(answer_with: Any):
    asked = answer_with(("charts==2.1.0\n", ""))
    resolver = resolving().Resolver()
    resolver.learn("pairs", [("charts>=2", "sailor"), ("sailor", "charts>=2"), ("sailor", "sailor", "charts>=2")])
    resolver.learn("pairs", [("charts>=2", "sailor")])
    assert asked() == ["charts>=2 sailor"]
    assert resolver["sailor", "charts>=2"] == resolved(charts="2.1.0")


def test_what_does_not_go_together_is_an_answer(answer_with: Any):
    asked = answer_with(("", PINNED))
    said = resolving().resolve(["charts>=3", "sailor==4.1.0"])
    assert said.reason == "`sailor==4.1.0` needs `charts>=2.20.0,<3.0.0`, and `charts>=3` is asked for"
    assert len(asked()) == 1


def test_a_request_that_failed_is_made_again(answer_with: Any):
    asked = answer_with(("", OFFLINE), ("charts==2.1.0\n", ""))
    assert resolving().resolve(["charts"]) == resolved(charts="2.1.0")
    assert len(asked()) == 2


def test_a_project_that_cannot_be_locked_says_why(answer_with: Any, tmp_path: Path):
    answer_with(("", PINNED), ("", ""))
    said = resolving().find_lock_error(tmp_path)
    assert said == "`sailor==4.1.0` needs `charts>=2.20.0,<3.0.0`, and `charts>=3` is asked for"
    assert resolving().find_lock_error(tmp_path) == ""


def test_a_registry_that_cannot_be_reached_is_no_clash(answer_with: Any):
    answer_with(("", OFFLINE))
    with pytest.raises(SystemExit, match="Request failed after 3 retries"):
        resolving().resolve(["charts"])


# --- what it means ----------------------------------------------------------------------------

ALONE = {"sailor": "4.1.0", "charts": "3.2.0", "rope": "1.10"}


def test_a_product_at_its_newest_release_is_kept_and_what_is_lower_is_named():
    cell = judging().judge_product("sea", "sailor[all]", ALONE, resolved(sailor="4.1.0", charts="2.9", rope="1.10"))
    assert (cell.fate, cell.reason) == ("kept", "")
    assert cell.lower == (judging().Lower("charts", "3.2.0", "2.9"),)


def test_versions_are_compared_as_numbers():
    cell = judging().judge_product("sea", "sailor", ALONE, resolved(sailor="4.1.0", rope="1.9"))
    assert cell.lower == (judging().Lower("rope", "1.10", "1.9"),)


def test_a_product_that_a_pin_would_keep_is_downgraded_without_a_reason():
    loose, pinned = resolved(sailor="1.0", charts="3.2.0"), resolved(sailor="4.1.0", charts="2.9")
    cell = judging().judge_product("sea", "sailor", ALONE, loose, pinned)
    assert (cell.fate, cell.versions["sailor"], cell.reason) == ("downgraded", "1.0", "")
    assert cell.lower == (judging().Lower("charts", "3.2.0", "2.9"),)


def test_a_product_that_no_pin_keeps_is_downgraded_for_a_reason():
    cell = judging().judge_product("sea", "sailor", ALONE, resolved(sailor="1.0"), resolving().Refused("too old"))
    assert (cell.fate, cell.reason) == ("downgraded", "too old")


def test_a_product_that_resolves_with_nothing_is_refused():
    refused = resolving().Refused
    cell = judging().judge_product("sea", "sailor", ALONE, refused("far away"), refused("near"))
    assert (cell.fate, cell.versions, cell.reason) == ("refused", {}, "near")


def test_two_extras_are_judged_alike():
    refused = judging().judge_extras("sea", "sky", ALONE, resolving().Refused("no"))
    assert (refused.fate, refused.pair, refused.reason) == ("refused", ("sea", "[sky]"), "no")
    kept = judging().judge_extras("sea", "sky", {"charts": "3.2.0"}, resolved(charts="2.9"))
    assert (kept.fate, kept.lower) == ("kept", (judging().Lower("charts", "3.2.0", "2.9"),))


# --- what is known ----------------------------------------------------------------------------


def test_a_clash_that_nobody_named_is_new_and_one_that_is_gone_has_vanished():
    cell = judging().Cell
    cells = [cell("sea", "sailor", "kept"), cell("sea", "pilot", "downgraded"), cell("sea", "[sky]", "refused")]
    known = {("sea", "[sky]"): "why", ("sea", "sailor"): "why"}
    assert judging().compare(cells, known) == ((("sea", "pilot"),), (("sea", "sailor"),))
    assert judging().compare(cells[:2], {("sea", "pilot"): "why"}) == ((), ())


def test_a_known_clash_names_what_there_is_once_and_says_why():
    requirements = import_module("_requirements")
    extras = list(requirements.read_project(ROOT / "pyproject.toml").extras)
    clashes = import_module("_clashes")
    pairs = [(clash.extra, beside) for clash in clashes.CLASHES for beside in clash.beside]
    assert len(set(pairs)) == len(pairs)
    for extra, beside in pairs:
        later = [f"[{each}]" for each in extras[extras.index(extra) + 1 :]]
        assert beside in (*requirements.PRODUCTS, *later), (extra, beside)
    assert all(clash.why for clash in clashes.CLASHES)


# --- the whole program ------------------------------------------------------------------------

AGREEABLE = r"""#!/bin/sh
case $* in *compile*) sed -E 's/[^a-z0-9-].*$//; s/$/==1.0/' ;; esac
"""
PROJECT = """
[project]
dependencies = ["msgspec>=0.21"]
optional-dependencies = { openai = ["openai>=2"], dev = ["pytest"] }
"""


@pytest.mark.parametrize("known", [{}, {("openai", "litellm"): "why"}], ids=["nothing is known", "a clash is known"])
def test_it_fails_if_what_is_known_is_not_what_is_found(
    known: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    program, pyproject, made = tmp_path / "uv", tmp_path / "pyproject.toml", tmp_path / "page.md"
    program.write_text(AGREEABLE)
    program.chmod(0o755)
    pyproject.write_text(PROJECT)
    monkeypatch.setattr(resolving(), "UV", str(program))
    table = import_module("table")
    monkeypatch.setattr(table, "read_clashes", lambda: known)
    assert table.main([str(made), "--pyproject", str(pyproject), "--resolve-only"]) == len(known)
    assert ("[openai] and litellm go together: the clash is gone" in capsys.readouterr().err) == bool(known)
    assert "| `litellm` 1.0 | 1.0 | all |" in made.read_text().splitlines()


# --- what is run ------------------------------------------------------------------------------


def project(**extras: tuple[str, ...]) -> Any:
    return import_module("_requirements").Project(("msgspec>=0.21",), extras)


def test_an_sdk_is_run_at_its_lowest_release_and_at_the_newest_of_each_major_version():
    extras = dict.fromkeys(("openai", "google", "mcp", "bedrock", "langchain"), ("charts>=2.1",))
    newest = {**{extra: {"charts": "2.5"} for extra in extras}, "anthropic": {"charts": "2.10.0"}}
    products = {product: {product: "7.0"} for product in ("litellm", "crewai", "google-adk")}
    given, matrix = (
        project(anthropic=("charts>=0.73",), **extras),
        import_module("_matrix").Matrix(newest, products, (), ()),
    )
    found = list(import_module("_environments").find_environments(given, matrix))
    asked = ("charts>=0.73", "charts>=2.1")
    assert [(each.title, each.requirements, each.lowest) for each in found if "charts>=0.73" in each.requirements][
        :4
    ] == [
        ("charts, lowest", asked, True),
        ("charts 0, newest", (*asked, "charts<1"), False),
        ("charts 1, newest", (*asked, "charts<2"), False),
        ("charts, newest", (*asked, "charts<3"), False),
    ]
    assert [each.requirements[0] for each in found[-3:]] == ["litellm==7.0", "crewai==7.0", "google-adk==7.0"]
    assert all("guest langchain" in each.expected for each in found[:-3])
    assert found[-3].expected[-1] == "guest litellm"


def test_what_a_program_says_is_read_line_by_line():
    runs = import_module("_runs")
    old = "ConfigError: too | old"
    checks = runs.read_checks(f"ok one\nwarning: chatter\nfailed two: {old}\nfailed three: {old}\nfailed four: lost\n")
    assert checks == {"one": "", "two": old, "three": old, "four": "lost"}
    run = runs.Run("charts, newest", {"charts": "2.5"}, checks)
    assert run.failed == {"two": old, "three": old, "four": "lost"}
    assert run.shown_result == "**failed**: two, three: ConfigError: too \\| old; four: lost"


def test_a_program_that_fails_before_it_says_anything_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    environments = import_module("_environments")
    monkeypatch.setattr(environments, "_HERE", tmp_path)
    python = tmp_path / "environment" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    (tmp_path / "broken.py").write_text("import no_such_module\n")
    (tmp_path / "half.py").write_text("print('ok one'); import no_such_module\n")
    lost = "ModuleNotFoundError: No module named 'no_such_module'"
    assert environments.run_program(python, "broken.py") == {"broken.py": lost}
    assert environments.run_program(python, "half.py") == {"one": "", "half.py": lost}


def test_a_check_that_fails_is_told_and_the_next_one_runs(capsys: pytest.CaptureFixture[str]):
    def fail() -> None:
        raise ValueError("two\nlines")

    status = import_module("_smoke").run_checks({"bad": fail, "good": lambda: None})
    assert status == 1
    assert capsys.readouterr().out == "failed bad: ValueError: two lines\nok good\n"


# --- the page ---------------------------------------------------------------------------------


def page(beside: Any, pairs: tuple[Any, ...] = (), runs: tuple[Any, ...] = ()) -> list[str]:
    cell = judging().Cell
    extras = {"": {}, "openai": {"openai": "3.51.0"}, "sea": {"charts": "3.2.0"}}
    kept = [cell(extra, "sailor", "kept", {"sailor": "4.1.0", "openai": "3.51.0"}) for extra in extras]
    cells = tuple(beside if each.pair == beside.pair else each for each in kept)
    matrix = import_module("_matrix").Matrix(extras, {"sailor": {"sailor": "4.1.0"}}, pairs, cells)
    given = project(openai=("openai>=2",), sea=("charts>=2",))
    written = import_module("_page").write_page(given, matrix, {("sea", "sailor"): "they differ"}, runs)
    return "\n".join(written).splitlines()


def test_everything_that_does_not_go_together_has_a_row_with_its_reason():
    lines = page(judging().Cell("sea", "sailor", "downgraded", {"sailor": "1.0"}, reason="`a` needs `b`"))
    assert "| `[sea]` | `sailor` | sailor 1.0 | `a` needs `b` | they differ |" in lines
    assert "| `sailor` 4.1.0 | 3.51.0 | not `[sea]` |" in lines
    assert "3 extras beside products, all but 1 keep the product at its" in lines


def test_frameworks_that_clash_stand_behind_the_sdks_and_are_told_to_do_so_without_suture():
    told = (
        "An extra with a framework's name is that framework: where two frameworks clash, they do without Suture, too."
    )
    cell = judging().Cell
    sdk, framework = cell("openai", "[sea]", "refused", reason="no"), cell("sea", "sailor", "refused", reason="no")
    both = page(framework, (cell("sea", "[sky]", "refused", reason="no"), sdk))
    sdks = both.index("| `[openai]` | `[sea]` | an error | no | not known yet |")
    assert both[sdks + 1].startswith("| `[sea]` | `[sky]` |")
    assert told in both[sdks:]
    assert told not in page(cell("", "sailor", "kept", {"sailor": "4.1.0"}), (sdk,))


def test_a_pair_of_extras_that_is_refused_has_a_row():
    lines = page(judging().Cell("", "sailor", "kept"), (judging().Cell("openai", "[sea]", "refused", reason="no"),))
    assert "| `[openai]` | `[sea]` | an error | no | not known yet |" in lines


def test_a_lower_sdk_is_bold_and_anything_else_that_is_lower_has_a_row():
    lower = (judging().Lower("openai", "3.51.0", "2.54.0"), judging().Lower("rope", "1.10", "1.9"))
    lines = page(judging().Cell("openai", "sailor", "kept", {"sailor": "4.1.0", "openai": "2.54.0"}, lower))
    assert "| `sailor` 4.1.0 | **2.54.0** | all |" in lines
    assert "| `[openai]` | `sailor` | rope 1.9 instead of 1.10 |" in lines


def test_without_clashes_the_page_says_that_all_go_together():
    lines = page(judging().Cell("sea", "sailor", "kept"))
    assert "3 extras beside products, all 3 keep the product at its" in lines
    assert not [line for line in lines if "does not go together" in line.lower() and line.startswith("#")]


def test_a_run_has_a_row():
    run = import_module("_runs").Run("charts, newest", {"charts": "2.5"}, {"one": "", "two": ""})
    lines = page(judging().Cell("sea", "sailor", "kept"), runs=(run,))
    assert "| charts, newest | charts 2.5 | one, two | ok |" in lines
