"""Every rule of every profile: broken on purpose on each wire that can break it, told, and mended or left as told.

A rule without a case here fails the last test: a rule is a claim about a provider, and has to be seen to act.
"""

from typing import Any

import pytest

import suture
from suture.messages import (
    AgenticMessage,
    AssistantGenText,
    FunctionToolCall,
    FunctionToolResult,
    ImagePart,
    Message,
    TextPart,
    UserInputImage,
    UserInputText,
)
from suture.profiles import PROFILES, Operation, Rule, get_profile
from suture.wires import WIRES
from tests.histories import Step, write

CALL = ("a", "f", "{}")
USER: Step = ("user", "hi")
OPEN: Step = ("turn", [CALL])
DONE: Step = ("result", "a", "f", "42")

STEPS: dict[str, list[Step]] = {
    "dangling": [USER, OPEN, USER],
    "orphan": [USER, ("result", "z", "f", "42")],
    "duplicate": [USER, OPEN, DONE, ("result", "a", "f", "43")],
    "late": [USER, OPEN, USER, DONE],
    "early": [USER, DONE, OPEN],
    "out-of-order": [USER, ("turn", [CALL, ("b", "g", "{}")]), ("result", "", "", "2"), ("result", "a", "", "1")],
    "illegal-id": [USER, ("turn", [("x." * 100, "f", "{}")]), ("result", "x." * 100, "f", "42")],
    "missing-id": [USER, ("turn", [("", "f", "{}")]), ("result", "", "f", "42")],
    "wrong-id": [USER, OPEN, ("result", "", "f", "42")],
    "repeated-id": [
        USER,
        ("turn", [("a23456789", "f", "{}"), ("a23456789", "f", "{}")]),
        ("result", "a23456789", "f", "42"),
        ("result", "a23456789", "f", "43"),
    ],
    "bad-arguments": [USER, ("turn", [("a", "f", '{"q": ')]), DONE],
    "missing-name": [USER, ("turn", [("a", "", "{}")]), ("result", "a", "", "42")],
    "illegal-name": [USER, ("turn", [("a", "not.a.name", "{}")]), ("result", "a", "not.a.name", "42")],
    "result-name": [USER, OPEN, ("result", "a", "other", "42")],
    "empty-message": [USER, ("say", ""), USER],
    "model-first": [("say", "well"), USER],
    "same-role": [USER, USER],
    "tool-then-user": [USER, OPEN, DONE, USER],
    "late-system": [USER, ("say", "well"), ("system", "be brief"), USER],
    "trailing-text": [USER, OPEN, ("mixed", [("a", "f", "42")], "and now?")],
    "split-results": [
        USER,
        ("turn", [CALL, ("b", "g", "{}")]),
        ("result", "a", "f", "1"),
        ("result", "b", "g", "2"),
    ],
    "missing-field": [USER, OPEN, DONE],
    "text-between-calls": [USER, OPEN, ("say", "well"), ("turn", [("b", "g", "{}")]), DONE, ("result", "b", "g", "2")],
}

PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
CALLED = write("anthropic", [USER, OPEN])
ASKED = write("bedrock", [USER, OPEN])
SPECIAL: dict[tuple[str, str], list[Any]] = {
    ("empty-calls", "openai-chat"): [{"role": "assistant", "content": "well", "tool_calls": []}],
    ("no-content", "openai-chat"): [
        *write("openai-chat", [USER, OPEN]),
        {"role": "tool", "tool_call_id": "a", "content": None},
    ],
    ("media-in-result", "openai-chat"): [
        *write("openai-chat", [USER, OPEN]),
        {"role": "tool", "tool_call_id": "a", "content": [PICTURE]},
    ],
    ("media-in-result", "message"): [
        *write("message", [USER, OPEN]),
        Message.tool([TextPart(text="see"), ImagePart(url="u")], "a", "f"),
    ],
    ("media-in-result", "agentic"): [
        *write("agentic", [USER, OPEN]),
        AgenticMessage.tool_result("a", "f", [UserInputImage(url="u")]),
    ],
    ("results-not-first", "anthropic"): [
        *CALLED,
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "so"},
                {"type": "tool_result", "tool_use_id": "a", "content": "42"},
            ],
        },
    ],
    ("results-not-first", "bedrock"): [
        *ASKED,
        {"role": "user", "content": [{"text": "so"}, {"toolResult": {"toolUseId": "a", "content": [{"text": "42"}]}}]},
    ],
    ("results-not-first", "gemini"): [
        *write("gemini", [USER, OPEN]),
        {
            "role": "user",
            "parts": [{"text": "so"}, {"functionResponse": {"id": "a", "name": "f", "response": {"result": "42"}}}],
        },
    ],
    ("results-not-first", "agentic"): [
        *write("agentic", [USER, OPEN]),
        AgenticMessage("user", (UserInputText(text="so"), FunctionToolResult(call_id="a", name="f"))),
    ],
    ("text-after-calls", "anthropic"): [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [*CALLED[1]["content"], {"type": "text", "text": "looking"}]},
        *write("anthropic", [DONE]),
    ],
    ("text-after-calls", "bedrock"): [
        ASKED[0],
        {"role": "assistant", "content": [*ASKED[1]["content"], {"text": "looking"}]},
        *write("bedrock", [DONE]),
    ],
    ("text-after-calls", "agentic"): [
        AgenticMessage.user("hi"),
        AgenticMessage.assistant(
            [FunctionToolCall(call_id="a", name="f", arguments="{}"), AssistantGenText(text="look")]
        ),
        *write("agentic", [DONE]),
    ],
    ("blank-text", "anthropic"): [
        {"role": "user", "content": [{"type": "text", "text": " "}, {"type": "text", "text": "hi"}]}
    ],
    ("blank-text", "bedrock"): [{"role": "user", "content": [{"text": " "}, {"text": "hi"}]}],
    ("blank-text", "agentic"): [AgenticMessage("user", (UserInputText(text=" "), UserInputText(text="hi")))],
    ("empty-error", "anthropic"): [
        *CALLED,
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "", "is_error": True}]},
    ],
    ("empty-error", "bedrock"): [
        *ASKED,
        {"role": "user", "content": [{"toolResult": {"toolUseId": "a", "content": [], "status": "error"}}]},
    ],
    ("empty-error", "agentic"): [
        *write("agentic", [USER, OPEN]),
        AgenticMessage("user", (FunctionToolResult(call_id="a", name="f", is_error=True),)),
    ],
    ("empty-error", "message"): [*write("message", [USER, OPEN]), Message.tool("", "a", "f", is_error=True)],
    ("repeated-item", "openai-responses"): [
        {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "1"},
        {"type": "function_call", "id": "fc_1", "call_id": "b", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "b", "output": "2"},
    ],
    ("lone-reasoning", "openai-responses"): [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"role": "user", "content": "hi"},
    ],
}


def broken(problem: str, wire: str) -> list[Any] | None:
    """Return a history that breaks a rule in this way, or nothing where the wire has no way to say it."""
    if (problem, wire) in SPECIAL:
        return SPECIAL[problem, wire]
    return write(wire, STEPS[problem]) if problem in STEPS else None


CASES = [
    pytest.param(profile, rule, problem, wire, id=f"{rule.id}-{problem}-{wire}")
    for profile in PROFILES
    for rule in get_profile(profile).rules
    for problem in rule.problems
    for wire in (rule.wires or get_profile(profile).wires)
    if wire in WIRES
    if get_profile(profile).speaks_of(wire) and broken(problem, wire) is not None
    # On a set-like wire an output may stand anywhere after its call, unless the profile wants it adjacent.
    if not (problem == "late" and wire == "openai-responses" and not get_profile(profile).adjacent)
]


@pytest.mark.parametrize(("profile", "rule", "problem", "wire"), CASES)
def test_a_broken_rule_is_told_and_mended_as_it_says(profile: str, rule: Rule, problem: str, wire: str) -> None:
    """The finding cites the rule; afterwards it is gone, unless the rule says that nothing can be done."""
    messages = broken(problem, wire)
    assert messages is not None
    report = suture.check(messages, wire=wire, profile=profile)
    told = [finding for finding in report.findings if finding.problem == problem]
    assert told, f"not told: {report}"
    assert {(finding.rule, finding.source) for finding in told} == {(rule.id, rule.source)}
    fixed = suture.repair(messages, wire=wire, profile=profile)
    left = [finding.problem for finding in suture.check(fixed.messages, wire=wire, profile=profile).findings]
    if rule.operation is Operation.UNREPAIRABLE:
        assert problem in [finding.problem for finding in fixed.unresolved]
        assert problem in left
    else:
        assert not fixed.unresolved
        assert left == []


def test_every_rule_has_a_case_a_source_and_an_id_of_its_own() -> None:
    """No rule is a claim without evidence."""
    rules = [rule for profile in PROFILES for rule in get_profile(profile).rules]
    assert len({rule.id for rule in rules}) == len(rules)
    assert all(rule.source and rule.says and rule.id.startswith(profile_of(rule)) for rule in rules)
    seen = {case.values[1] for case in CASES if isinstance(case.values[1], Rule)}
    assert {rule.id for rule in rules} == {rule.id for rule in seen}


def profile_of(rule: Rule) -> str:
    """Return the profile that a rule's id names."""
    return rule.id.rpartition(".")[0]


@pytest.mark.parametrize("wire", WIRES)
def test_a_wire_has_its_own_providers_profile_by_default(wire: str) -> None:
    """Native messages have no provider: structure alone."""
    expected = "pairing" if wire in {"message", "agentic"} else wire
    assert suture.check([], wire=wire).profile == expected
