"""Real conversations and recorded verdicts: what providers accepted is left alone, what they refused is found."""

import json
from typing import Any

import pytest
import yaml

import suture
from tests.corpus import ROOT, conversations, messages_of, needs_corpus, recorded_requests
from tests.histories import flat

pytestmark = needs_corpus

OWN_ROLES = {"exit"}
"""A role that one agent writes at the end of its log; no provider knows it."""


@pytest.mark.parametrize("name", ["tau-bench", "swe-agent"])
def test_valid_conversations_come_back_as_the_same_list(name: str) -> None:
    """Also those that reuse ids: nothing is deduplicated, renamed or moved."""
    count = reused = 0
    for conversation in conversations(name):
        messages = conversation["messages"]
        fixed = suture.repair(messages)
        assert fixed.messages is messages, f"{conversation['id']}: {fixed.report}"
        ids = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
        reused += len(set(ids)) < len(ids)
        count += 1
    assert count > 0
    assert reused > 0


def test_conversations_with_a_dangling_tail_differ_by_exactly_the_inserted_placeholders() -> None:
    """57 of these runs end in a call that was never answered."""
    dangling = 0
    for conversation in conversations("mini-swe-agent"):
        messages = [message for message in conversation["messages"] if message["role"] not in OWN_ROLES]
        fixed = suture.repair(messages)
        open_calls = messages[-1].get("tool_calls") or []
        assert list(fixed.messages[: len(messages)]) == messages
        assert [message["tool_call_id"] for message in fixed.messages[len(messages) :]] == [
            call["id"] for call in open_calls
        ]
        assert fixed.changed == bool(open_calls)
        assert [finding.problem for finding in fixed.report.findings] == ["dangling"] * len(open_calls)
        dangling += bool(open_calls)
    assert dangling > 0


def test_a_role_that_no_provider_knows_is_told_with_its_place() -> None:
    """The same logs as they lie on disk."""
    conversation = next(iter(conversations("mini-swe-agent")))
    last = len(conversation["messages"]) - 1
    with pytest.raises(suture.InputError, match="unknown role 'exit'") as caught:
        suture.repair(conversation["messages"])
    assert caught.value.index == last


def test_every_recorded_request_that_was_accepted_passes_check() -> None:
    """And the one that was refused does not."""
    verdicts: dict[bool, int] = {True: 0, False: 0}
    for name, wire, messages, status in recorded_requests():
        recognised = suture.check(messages)
        report = suture.check(messages, wire=wire)
        assert report.acceptable == (status == 200), f"{name}: {report}"
        assert recognised.acceptable == report.acceptable
        verdicts[report.acceptable] += 1
    assert min(verdicts.values()) > 0


def test_repairing_the_refused_recording_gives_what_was_accepted_in_the_other() -> None:
    """The provider's own answer to both orders of text and call was recorded."""
    bodies: dict[int, list[Any]] = {}
    for path in ROOT.glob("verdicts/*-malformed-assistant-tool-order-*.json"):
        exchange = json.loads(path.read_text(encoding="utf-8"))["interactions"][0]
        bodies[exchange["response"]["status"]] = messages_of(json.loads(exchange["request"]["body"]))
    fixed = suture.repair(bodies[400])
    assert flat(fixed.messages) == flat(bodies[200])


def test_each_recorded_verdict_agrees_with_the_profile() -> None:
    """What the history had nothing to do with (a tool choice, a schema) is not ours to find."""
    seen: list[tuple[str, int, bool]] = []
    for path in sorted(ROOT.glob("verdicts/*.yaml")):
        for exchange in yaml.safe_load(path.read_text(encoding="utf-8"))["interactions"]:
            messages = messages_of(exchange["request"]["parsed_body"])
            profile = "deepseek" if "deepseek" in path.name else None
            status = exchange["response"]["status"]["code"]
            body = json.dumps(exchange["response"].get("parsed_body", ""))
            about_the_history = status == 200 or "tool_use_failed" not in body
            report = suture.check(messages, profile=profile)
            assert report.acceptable == (status == 200 or not about_the_history), f"{path.name}: {report}"
            seen.append((path.name, status, report.acceptable))
    assert {acceptable for _, _, acceptable in seen} == {True, False}


def test_what_the_strict_responses_endpoint_refused_is_mended() -> None:
    """Its calls end up together, its outputs right behind them."""
    path = ROOT / "verdicts" / "test_deepseek_responses_rejects_interleaved_function_calls.yaml"
    messages = messages_of(
        yaml.safe_load(path.read_text(encoding="utf-8"))["interactions"][0]["request"]["parsed_body"]
    )
    fixed = suture.repair(messages, profile="deepseek")
    kinds = [message.get("type", message.get("role")) for message in fixed.messages]
    outputs = ["function_call_output", "function_call_output"]
    assert kinds == ["assistant", "assistant", "function_call", "function_call", *outputs, "user"]
    assert suture.check(fixed.messages, profile="deepseek").acceptable
