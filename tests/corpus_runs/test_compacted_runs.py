"""Recorded runs sent once more with `compact`: no request is over the limit."""

from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest

import suture
from suture.reduction import compact
from suture.tokens import CharacterCounter
from tests.corpus import conversations, needs_corpus

pytestmark = needs_corpus

ROLES = {"system", "user", "assistant", "tool"}
COUNTER = CharacterCounter()


def count(message: Any) -> int:
    return COUNTER.count(message, "openai-chat")


def replay(messages: list[Any], limit: int) -> tuple[int, int, int]:
    """Return how many requests there are, how many compactions they need, and how many are over the limit."""
    history: list[Any] = []
    tokens = requests = compactions = over = 0
    for message in messages:
        if message["role"] == "assistant":
            if tokens > limit:
                history = list(compact(history, max_tokens=limit, wire="openai-chat").messages)
                tokens = sum(map(count, history))
                compactions += 1
                assert suture.check(history, wire="openai-chat", profile="pairing").acceptable
            requests += 1
            over += tokens > limit
        history.append(message)
        tokens += count(message)
    return requests, compactions, over


def replay_all(most: int | None, limit: int, covered: Callable[[str], None]) -> None:
    totals = [0, 0, 0]
    for name in ("mini-swe-agent", "swe-agent", "tau-bench"):
        for conversation in islice(conversations(name), most):
            sent = [message for message in conversation["messages"] if message["role"] in ROLES]
            messages = list(suture.repair(sent, wire="openai-chat", profile="pairing", tail="keep").messages)
            totals = [one + other for one, other in zip(totals, replay(messages, limit), strict=True)]
    requests, compactions, over = totals
    covered(f"{requests} requests at {limit} tokens: {compactions} compactions, {over} over the limit")
    assert compactions > 0
    assert over == 0


@pytest.mark.parametrize("limit", [8_000, 16_000])
def test_no_request_of_some_recorded_runs_is_over_the_limit(limit: int, covered: Callable[[str], None]):
    replay_all(20, limit, covered)


@pytest.mark.soak
@pytest.mark.parametrize("limit", [8_000, 16_000, 32_000])
def test_no_request_of_the_recorded_runs_is_over_the_limit(limit: int, covered: Callable[[str], None]):
    replay_all(None, limit, covered)
