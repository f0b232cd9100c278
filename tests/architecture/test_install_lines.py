"""What users are told to install: its releases stand in the package's metadata alone, and pages have one form."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.version import Version

from tests.docs.pages import DOCS, PAGES, ROOT, code, name, table

EXTRAS: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
    "optional-dependencies"
]
READ_BY_USERS = [page for page in PAGES if page.name != "CONTRIBUTING.md"]
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))


def test_no_source_repeats_the_release_that_an_extra_needs():
    sources = {path: path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")}
    assert sources
    assert not {
        line
        for text in sources.values()
        for line in re.findall(r"[\"'(` ]([\w-]+(?:\[[\w,-]+\])?>=[0-9.]+)[\"'`]", text)
    }
    # The name on the index may be somebody else's one day.
    assert not [path for path, text in sources.items() if "pip install suture" in text or "suture[" in text]


@pytest.mark.parametrize("page", [*READ_BY_USERS, *EXAMPLES], ids=name)
def test_users_install_from_a_clone_a_path_or_an_address_and_never_the_bare_name(page: Path):
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"pip install[^`\n]* -e\b.*", text) == []
    assert re.findall(r"pip install [^`\n]*(?<![/\w.])suture\b.*", text) == []
    assert re.findall(r"(?<!/)\bsuture\[[a-z,-]+\](?! @ ).*", text) == []


@pytest.mark.parametrize("page", READ_BY_USERS, ids=name)
def test_every_extra_that_a_page_installs_is_one_of_the_package(page: Path):
    asked = re.findall(r"(?:\.|/?\bsuture|\.whl)\[([a-z,-]+)\]", page.read_text(encoding="utf-8"))
    assert {extra for extras in asked for extra in extras.split(",")} <= set(EXTRAS)


def test_every_extra_is_explained_with_the_packages_that_it_brings():
    told = {code(row[0]): re.findall("`([^`]+)`", row[1]) for row in table(DOCS / "installing.md", "extra")}
    brought = {extra: [re.split(r"[^\w-]", one)[0] for one in needed] for extra, needed in EXTRAS.items()}
    assert told == {extra: packages for extra, packages in brought.items() if extra != "dev"}


def allowed(*extras: str) -> dict[str, Version]:
    """Return the lowest release of each package that these extras bring."""
    needs = [re.match(r"([\w-]+)>=([\d.]+)", need) for extra in extras for need in EXTRAS[extra]]
    return {need[1]: Version(need[2]) for need in needs if need}


SDKS = ("openai", "anthropic", "google", "bedrock", "mcp")
GUESTS = ("langchain", "pydantic-ai", "google-adk", "strands", "agent-framework")


@pytest.mark.parametrize(
    ("file", "extras", "others"),
    [
        ("oldest.txt", SDKS, set[str]()),
        # The lowest openai-agents has no openai in common with pydantic-ai: one that has it is tested instead.
        ("guests/lowest.txt", GUESTS, {"msgspec", "deepagents", "openai-agents"}),
    ],
)
def test_what_is_tested_as_the_lowest_release_is_what_its_extra_allows(
    file: str, extras: tuple[str, ...], others: set[str]
):
    text = (ROOT / "tests" / file).read_text("utf-8")
    pinned = dict(re.findall(r"^([\w-]+)(?:\[.*?\])?==(\S+)", text, re.MULTILINE))
    assert {name: Version(release) for name, release in pinned.items() if name not in others} == allowed(*extras)


@pytest.mark.parametrize(
    ("page", "words", "extras"),
    [
        (
            "models.md",
            r"from openai (\S+), anthropic (\S+) and google-genai (\S+) on",
            ("openai", "anthropic", "google"),
        ),
        ("mcp.md", r"the official SDK: (\S+) or later", ("mcp",)),
        ("mcp.md", r"Every release of `mcp` from (\S+) gives", ("mcp",)),
        *((f"guests/{guest}.md", r"from [\w-]+ ([\d.]+) on", (guest,)) for guest in (*GUESTS, "openai-agents")),
    ],
)
def test_the_lowest_release_that_a_page_names_is_what_its_extra_allows(page: str, words: str, extras: tuple[str, ...]):
    (found,) = re.finditer(words.replace(" ", r"\s"), (DOCS / page).read_text("utf-8"))
    assert [Version(release) for release in found.groups()] == list(allowed(*extras).values())
