"""Every rule of every profile: broken on purpose on each wire that can break it, told, and mended or left as told.

A rule without a case here fails the last test: a rule is a claim about a provider, and has to be seen to act.
"""

from typing import Any

import pytest

import suture
from suture.messages import AgenticMessage, FunctionToolCall, FunctionToolResult, UserInputText
from suture.profiles import PROFILES, Operation, Profile, Rule, get_profile
from suture.wires import WIRES, get_wire
from tests.histories import Step, write

CALL = ("a", "f", "{}")
USER: Step = ("user", "hi")
OPEN: Step = ("turn", [CALL])
DONE: Step = ("result", "a", "f", "42")
TWO: Step = ("turn", [CALL, ("b", "g", "{}")])

STEPS: dict[str, list[Step]] = {
    "dangling": [USER, OPEN, USER],
    "orphan": [USER, ("result", "z", "f", "42")],
    "duplicate": [USER, OPEN, DONE, ("result", "a", "f", "43")],
    "late": [USER, OPEN, USER, DONE],
    "early": [USER, DONE, OPEN],
    "out-of-order": [USER, TWO, ("mixed", [("a", "f", "1")], "by the way"), ("result", "b", "g", "2")],
    "illegal-id": [USER, ("turn", [("x." * 100, "f", "{}")]), ("result", "x." * 100, "f", "42")],
    "missing-id": [USER, ("turn", [("", "f", "{}")]), ("result", "", "f", "42")],
    "wrong-id": [USER, OPEN, ("result", "z", "f", "42")],
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
    "results-order": [USER, TWO, ("result", "b", "g", "2"), DONE],
    "lone-surrogate": [("user", "caf\ud83d")],
    "split-turn": [USER, OPEN, ("turn", [("b", "g", "{}")]), DONE, ("result", "b", "g", "2")],
    "turn-order": [USER, OPEN, ("say", "and"), ("turn", [("b", "g", "{}")]), DONE, ("result", "b", "g", "2")],
    "empty-message": [USER, ("say", ""), USER],
    "model-first": [("say", "well"), USER],
    "same-role": [USER, USER],
    "tool-then-user": [USER, OPEN, DONE, USER],
    "late-system": [USER, ("say", "well"), ("system", "be brief"), USER],
    "trailing-text": [USER, OPEN, ("mixed", [("a", "f", "42")], "and now?")],
    "split-results": [USER, TWO, DONE, ("result", "b", "g", "2")],
    "missing-field": [USER, OPEN, DONE],
    "text-between-calls": [USER, OPEN, ("say", "well"), ("turn", [("b", "g", "{}")]), DONE, ("result", "b", "g", "2")],
}

PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
SERVER_USE = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
SERVER_RESULT = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}


def blocks(role: str, *content: Any) -> dict[str, Any]:
    """Return a message of Anthropic's or Bedrock's."""
    return {"role": role, "content": list(content)}


def said(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


CHAT = write("openai-chat", [USER, OPEN])
ASKED, ANSWERED = write("anthropic", [USER, OPEN]), write("anthropic", [DONE])[0]["content"][0]
USED, TOLD = write("bedrock", [USER, OPEN]), write("bedrock", [DONE])[0]["content"][0]
WANTED, GOT = write("gemini", [USER, OPEN]), write("gemini", [DONE])[0]["parts"][0]
SPECIAL: dict[tuple[str, str], list[Any]] = {
    ("empty-calls", "openai-chat"): [{"role": "assistant", "content": "well", "tool_calls": []}],
    ("no-content", "openai-chat"): [*CHAT, {"role": "tool", "tool_call_id": "a", "content": None}],
    ("no-content", "bedrock"): [*USED, blocks("user", {"toolResult": {"toolUseId": "a"}})],
    ("media-in-result", "openai-chat"): [*CHAT, {"role": "tool", "tool_call_id": "a", "content": [PICTURE]}],
    ("media-in-error", "anthropic"): [
        *ASKED,
        blocks("user", {**ANSWERED, "content": [{"type": "image", "source": {}}], "is_error": True}),
    ],
    ("missing-result-name", "openai-chat"): [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "", "content": "42"},
    ],
    ("illegal-result-name", "openai-chat"): [
        *CHAT,
        {"role": "tool", "tool_call_id": "a", "name": "not.a.name", "content": "42"},
    ],
    ("thought-field", "openai-chat"): [
        *write("openai-chat", [USER]),
        {"role": "assistant", "content": "Hello.", "reasoning_content": "Hm."},
    ],
    ("developer-role", "openai-chat"): [{"role": "developer", "content": "be brief"}, *write("openai-chat", [USER])],
    ("custom-call", "openai-chat"): [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "a23456789", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}],
        },
        {"role": "tool", "tool_call_id": "a23456789", "content": "1"},
    ],
    ("results-not-first", "anthropic"): [*ASKED, blocks("user", said("so"), ANSWERED)],
    ("results-not-first", "bedrock"): [*USED, blocks("user", {"text": "so"}, TOLD)],
    ("results-not-first", "gemini"): [*WANTED, {"role": "user", "parts": [{"text": "so"}, GOT]}],
    ("result-in-model-message", "anthropic"): [*ASKED, blocks("assistant", ANSWERED)],
    ("result-in-model-message", "bedrock"): [*USED, blocks("assistant", TOLD)],
    ("result-in-model-message", "gemini"): [*WANTED, {"role": "model", "parts": [GOT]}],
    ("result-in-model-message", "agentic"): [
        AgenticMessage.assistant(
            [FunctionToolCall("a", "f", "{}"), FunctionToolResult("a", "f", (UserInputText("42"),))]
        ),
    ],
    ("text-after-calls", "anthropic"): [
        ASKED[0],
        blocks("assistant", *ASKED[1]["content"], said("looking")),
        blocks("user", ANSWERED),
    ],
    ("text-after-calls", "bedrock"): [
        USED[0],
        blocks("assistant", *USED[1]["content"], {"text": "looking"}),
        blocks("user", TOLD),
    ],
    ("blank-text", "anthropic"): [blocks("user", said(" "), said("hi"))],
    ("blank-text", "gemini"): [
        {"role": "user", "parts": [{"text": ""}, {"text": "hi"}]},
        {"role": "model", "parts": [{"text": ""}, {"functionCall": {"name": "f", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]},
    ],
    ("blank-text", "bedrock"): [blocks("user", {"text": " "}, {"text": "hi"})],
    ("empty-error", "anthropic"): [*ASKED, blocks("user", {**ANSWERED, "content": "", "is_error": True})],
    ("empty-error", "bedrock"): [
        *USED,
        blocks("user", {"toolResult": {"toolUseId": "a", "content": [], "status": "error"}}),
    ],
    ("unsigned-thinking", "anthropic"): [blocks("assistant", {**THOUGHT, "signature": ""}, said("well"))],
    ("trailing-thinking", "anthropic"): [blocks("assistant", said("well"), THOUGHT), *write("anthropic", [USER])],
    ("open-server-tool", "anthropic"): [blocks("assistant", said("well"), SERVER_USE), *write("anthropic", [USER])],
    ("trailing-thinking", "bedrock"): [
        *write("bedrock", [USER]),
        blocks("assistant", {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}}),
        *write("bedrock", [USER]),
    ],
    ("split-server-tool", "anthropic"): [
        blocks("assistant", SERVER_USE),
        *write("anthropic", [USER]),
        blocks("assistant", SERVER_RESULT),
    ],
    ("bad-response", "gemini"): [
        *WANTED,
        {"role": "user", "parts": [{"functionResponse": {"id": "a", "name": "f", "response": "42"}}]},
    ],
    ("repeated-document", "bedrock"): [
        blocks("user", *[{"document": {"format": "txt", "name": "notes", "source": {"bytes": b"x"}}}] * 2)
    ],
    ("repeated-item", "openai-responses"): [
        {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "1"},
        {"type": "function_call", "id": "fc_1", "call_id": "b", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "b", "output": "2"},
    ],
    ("illegal-item-id", "openai-responses"): [
        {"type": "function_call", "id": "call_1", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "1"},
    ],
    ("lone-reasoning", "openai-responses"): [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"role": "user", "content": "hi"},
    ],
}
BLOCKS = ("agentic", "anthropic", "gemini", "bedrock")
"""The wires where one message may hold results and text, or calls and results, and a result may be an error."""


def broken(problem: str, wire: str) -> list[Any]:
    """Return a history that breaks a rule in this way."""
    return SPECIAL[problem, wire] if (problem, wire) in SPECIAL else write(wire, STEPS[problem])


def can_be(problem: str, wire: str, profile: Profile) -> bool:
    """Tell whether there is a way to break a rule so on this wire."""
    if problem in {"out-of-order", "result-in-model-message", "empty-error"}:
        return wire in BLOCKS
    # On a set-like wire an output may stand anywhere after its call, unless the profile wants it adjacent.
    if problem == "late" and wire == "openai-responses":
        return profile.adjacent
    return problem in get_wire(wire).operations


CASES = [
    pytest.param(profile, rule, problem, wire, id=f"{rule.id}-{problem}-{wire}")
    for profile in PROFILES
    for rule in get_profile(profile).rules
    for problem in rule.problems
    for wire in (rule.wires or get_profile(profile).wires)
    if wire in WIRES and can_be(problem, wire, get_profile(profile))
]
FOR_GUESTS = {
    "openai-chat.results-first",
    "mistral.results-first",
    "mistral.results-alone",
    "deepseek.results-first",
    "groq.results-first",
    "kimi.results-first",
}
"""Rules that only the messages of other frameworks can break: a tool message of Chat holds nothing but its result."""


@pytest.mark.parametrize(("profile", "rule", "problem", "wire"), CASES)
def test_a_broken_rule_is_told_and_mended_as_it_says(profile: str, rule: Rule, problem: str, wire: str) -> None:
    """The finding cites the rule; afterwards it is gone, unless the rule says that nothing can be done."""
    messages = broken(problem, wire)
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
    assert {rule.id for rule in rules} - {rule.id for rule in seen} == FOR_GUESTS


def profile_of(rule: Rule) -> str:
    """Return the profile that a rule's id names."""
    return rule.id.rpartition(".")[0]


@pytest.mark.parametrize("wire", WIRES)
def test_a_wire_has_its_own_providers_profile_by_default(wire: str) -> None:
    """Native messages have no provider: structure alone."""
    expected = "pairing" if wire in {"message", "agentic"} else wire
    assert suture.check([], wire=wire).profile == expected
