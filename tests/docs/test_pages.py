"""What the pages say is what the code does: rules, words, options, texts, paths and links."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import suture
from suture import messages
from suture.codecs import convert
from suture.language import Language
from suture.profiles import PROBLEMS, PROFILES, get_profile
from suture.repair import Cause, placeholder_text
from suture.repair.texts import FILLERS, is_builtin_text
from suture.wires import WIRES, get_wire
from tests.docs.pages import DOCS, PAGES, ROOT, anchors, code, links, name, prose, table

TEXTS: tuple[tuple[int, Language], ...] = ((1, "en"), (2, "zh"))
REPAIR, LINES, VALUES = DOCS / "repair.md", DOCS / "command-line.md", DOCS / "values.md"


# --- links and paths --------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_into_the_project_leads_somewhere(page: Path):
    for link in links(page):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{name(page)}: {link}"
        assert not anchor or anchor in anchors(target), f"{name(page)}: {link}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_path_that_a_page_names_exists(page: Path):
    named = re.findall(r"`((?:src|tests|docs|examples|benchmarks)/[^`\s]*)`", prose(page))
    assert [path for path in named if "<" not in path and not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=name)
def test_the_readme_leads_to_every_page(page: Path):
    assert name(page) in links(ROOT / "README.md")


def test_every_target_that_a_page_names_is_in_the_makefile():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for page in PAGES:
        named = set(re.findall(r"(?:`|^)make ([a-z]+)", page.read_text(encoding="utf-8"), re.MULTILINE))
        assert named <= targets, name(page)


# --- profiles.md ------------------------------------------------------------------------------


def test_the_page_of_profiles_is_what_the_profiles_say():
    program = DOCS / "generate.py"
    made = subprocess.run([sys.executable, program], capture_output=True, timeout=60, check=True).stdout
    stale = "docs/profiles.md is stale: .venv/bin/python docs/generate.py > docs/profiles.md"
    assert (DOCS / "profiles.md").read_bytes() == made, stale


# --- replies.md -------------------------------------------------------------------------------


def test_the_page_of_servers_is_what_the_rows_say():
    program = DOCS / "replies.py"
    made = subprocess.run([sys.executable, program], capture_output=True, timeout=60, check=True).stdout
    stale = "docs/replies.md is stale: .venv/bin/python docs/replies.py > docs/replies.md"
    assert (DOCS / "replies.md").read_bytes() == made, stale


# --- repair.md --------------------------------------------------------------------------------


def problems_of_profiles() -> set[str]:
    return {problem for one in PROFILES for rule in get_profile(one).rules for problem in rule.problems}


def test_every_problem_that_a_rule_names_is_explained():
    told = {problem for row in table(REPAIR, "before") for problem in re.findall("`([^`]+)`", row[2])}
    told |= {code(row[0]) for row in table(REPAIR, "problem")}
    assert told == problems_of_profiles()


def test_every_problem_is_shown_with_the_operation_that_runs():
    shown = {code(row[0]): code(row[1]) for row in table(REPAIR, "problem")}
    assert shown == {problem: str(PROBLEMS[problem]) for problem in shown}


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}}
RESULTS: dict[str, Any] = {"R": "one", "R'": "another", "I": [IMAGE], "F": min(FILLERS)}


def steps(cell: str) -> list[str]:
    return re.findall(r"[A-Z]+['+]?(?:\[[^\]]*\])?", code(cell))


def step(symbol: str) -> dict[str, Any]:
    """Return the message of Chat Completions that a symbol stands for."""
    kind, _, ids = symbol.rstrip("]").partition("[")
    match kind:
        case "U":
            return {"role": "user", "content": "hi"}
        case "S":
            return {"role": "system", "content": "be brief"}
        case "A" if not ids:
            return {"role": "assistant", "content": "so"}
        case "A" | "A+":
            made = [{"id": i, "type": "function", "function": {"name": "f", "arguments": "{}"}} for i in ids.split()]
            return {"role": "assistant", "content": "so" if kind == "A+" else None, "tool_calls": made}
        case "P":
            return {"role": "tool", "tool_call_id": ids, "content": placeholder_text(Cause.UNKNOWN, "f", ids, "en")}
    return {"role": "tool", "tool_call_id": ids, "content": RESULTS[kind]}


def symbol_of(message: dict[str, Any]) -> str:
    content, calls = message["content"], message.get("tool_calls") or []
    match message["role"]:
        case "user" if "no longer in this conversation" in content:
            return "T[" + "".join(re.findall(r"\(id (\w+)\)", content)) + "]"
        case "assistant":
            return "A[" + " ".join(call["id"] for call in calls) + "]" if calls else "A"
        case "tool" if isinstance(content, list):
            return f"RI[{message['tool_call_id']}]"
        case "tool":
            made = is_builtin_text(content, "f", message["tool_call_id"]) is not None
            kind = "P" if made else next(kind for kind, said in RESULTS.items() if said == content)
            return f"{kind}[{message['tool_call_id']}]"
        case role:
            return {"user": "U", "system": "S"}[role]


@pytest.mark.parametrize("row", table(REPAIR, "before"), ids=lambda row: row[0])
def test_a_breakage_becomes_what_the_page_says(row: list[str]):
    history = [step(symbol) for symbol in steps(row[0])]
    fixed = suture.repair(history, wire="openai-chat", profile="pairing")
    assert [symbol_of(message) for message in fixed.messages] == steps(row[1])
    assert {finding.problem for finding in fixed.report.findings} == set(re.findall("`([^`]+)`", row[2]))


def shape_of(wire: str, message: Any) -> str:
    """Return the symbol of a message of any wire."""
    view = get_wire(wire).view(message)
    if view.results:
        return "R[" + " ".join(result.id for result in view.results) + "]"
    if view.role != "assistant":
        return "U"
    speaks = "so" in get_wire(wire).words(message).texts
    calls = " ".join(call.id for call in view.calls)
    return f"A{'+' if speaks else ''}[{calls}]" if calls else "A"


@pytest.mark.parametrize("place", [1, 2, 3, 4])
@pytest.mark.parametrize("row", table(REPAIR, "history"), ids=lambda row: row[0])
def test_a_turn_in_several_messages_becomes_what_the_page_says(row: list[str], place: int):
    wire = ("openai-chat", "anthropic", "gemini", "bedrock")[place - 1]
    history = convert([step(symbol) for symbol in steps(row[0])], "openai-chat", wire).messages
    fixed = suture.repair(history, wire=wire)
    assert [shape_of(wire, message) for message in fixed.messages] == steps(row[place])
    assert fixed.unresolved == ()


def test_the_texts_on_the_page_are_the_texts_that_are_put_in():
    shown = {(code(row[0]), language): code(row[at]) for row in table(REPAIR, "cause") for at, language in TEXTS}
    assert shown == {
        (str(cause), language): placeholder_text(cause, "{name}", "{id}", language)
        for cause in Cause
        for _, language in TEXTS
    }


# --- the other pages --------------------------------------------------------------------------


def test_every_wire_has_a_row():
    assert [code(row[0]) for row in table(DOCS / "wires.md", "wire")] == list(WIRES)


def test_every_value_that_the_messages_room_offers_is_named():
    assert [value for value in messages.__all__ if f"`{value}" not in prose(VALUES)] == []


@pytest.mark.parametrize("command", ["check", "repair", "reduce", "convert", "chat", "proxy", "run", "doctor"])
def test_every_option_of_a_command_is_explained(command: str):
    shown = subprocess.run(
        [sys.executable, "-m", "suture", command, "--help"], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    offered = set(re.findall(r"^  (?:-\w[^,]*, )?(--[\w-]+)", shown, re.MULTILINE)) - {"--help"}
    rows = {option: row for row in table(LINES, "option") for option in re.findall(r"(--[\w-]+)", row[0])}
    assert len(offered) >= 4
    assert {option for option, row in rows.items() if command in row[1].split(", ")} == offered


# --- README.md --------------------------------------------------------------------------------

README_GUESTS = (
    "LangChain",
    "deepagents",
    "pydantic-ai",
    "OpenAI Agents",
    "google-adk",
    "strands",
    "agent-framework",
    "openai",
    "anthropic",
)


def test_the_readme_counts_what_the_page_of_the_seven_histories_says():
    counts: dict[tuple[str, str], set[int]] = {}
    for row in table(DOCS / "guests" / "seven-histories.md", "guest"):
        guest = next(one for one in README_GUESTS if row[0].replace("`", "").startswith(one))
        counts.setdefault((guest, row[2]), set()).add(sum(cell == "right" for cell in row[3:]))
    without, repaired = table(ROOT / "README.md", "")[0], table(ROOT / "README.md", "")[1]
    for place, guest in enumerate(README_GUESTS, 1):
        assert without[place] == " to ".join(map(str, sorted(counts[guest, "without"]))), guest
        assert {int(repaired[place])} == counts[guest, "with"], guest
