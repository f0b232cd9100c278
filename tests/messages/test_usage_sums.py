"""The sum of usages, as a program adds up what its runs cost."""

import pytest

from suture import ChatModelAgent
from suture.messages import TokenUsage
from suture.testing import ScriptedModel


def test_usages_are_added_field_by_field():
    one = TokenUsage(prompt_tokens=7, completion_tokens=5, total_tokens=12, cached_tokens=3)
    assert one + one + TokenUsage() == TokenUsage(
        prompt_tokens=14, completion_tokens=10, total_tokens=24, cached_tokens=6
    )


def test_a_usage_without_a_total_counts_its_parts():
    parts = TokenUsage(prompt_tokens=7, completion_tokens=5)
    assert (parts + TokenUsage(total_tokens=3)).total_tokens == 15
    assert (TokenUsage() + parts).total_tokens == 12


def test_nothing_else_is_added():
    with pytest.raises(TypeError):
        _ = TokenUsage() + 1  # pyright: ignore[reportOperatorIssue]


def test_the_usages_of_runs_are_added():
    agent = ChatModelAgent(model=ScriptedModel(["one", "two"]))
    total = TokenUsage()
    for _ in range(2):
        total += agent.run_sync("hi").usage
    assert total == TokenUsage()
