"""What pydantic-ai's models post to a provider, judged by somebody else's rules."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage

from suture.integrations.pydantic_ai import PatchToolCalls
from tests.guests.pydantic_ai.posting import Posting
from tests.guests.pydantic_ai.test_seven_histories import HISTORIES
from tests.guests.pydantic_ai.ways import run
from tests.guests.pydantic_ai.written import write
from tests.histories import Step
from tests.repair.test_properties import histories
from tests.validators import anthropic_complaint, chat_complaint

JUDGES: dict[str, Callable[[list[dict[str, Any]]], str]] = {
    "anthropic": anthropic_complaint,
    "openai": chat_complaint,
}
every_provider = pytest.mark.parametrize("provider", JUDGES)


def posted(provider: str, history: list[ModelMessage], capabilities: list[PatchToolCalls]) -> list[dict[str, Any]]:
    posting = Posting(provider)
    run(Agent(posting.model, capabilities=capabilities), "next", message_history=history)
    return posting.posted


REFUSED = {
    "anthropic": ["a result twice", "two results", "a late result", "an id used again"],
    "openai": ["a result twice", "two results", "a late result"],
}


@every_provider
def test_a_provider_would_refuse_what_is_posted_without_suture(provider: str):
    sent = {name: history for name, history in HISTORIES.items() if name != "a call at the end"}
    refused = [name for name, history in sent.items() if JUDGES[provider](posted(provider, history, []))]
    assert refused == REFUSED[provider]


@every_provider
def test_a_provider_accepts_what_is_posted_with_suture(provider: str):
    patch = PatchToolCalls()
    complaints = [JUDGES[provider](posted(provider, history, [patch])) for history in HISTORIES.values()]
    assert complaints == [""] * len(HISTORIES)


@every_provider
@given(history=histories)
def test_a_provider_accepts_any_history(provider: str, history: list[Step]):
    """But for a turn that is signed: there only ids may change."""
    history = [step for step in history if step[0] != "think"]
    assert JUDGES[provider](posted(provider, write(history), [PatchToolCalls()])) == ""


@every_provider
def test_a_call_without_an_id_and_its_result_are_posted_with_the_same_one(provider: str):
    history = write([("user", "ask"), ("turn", [("", "f", "{}")]), ("result", "", "f", "42"), ("say", "ok")])
    assert JUDGES[provider](posted(provider, history, [])) != ""
    assert JUDGES[provider](posted(provider, history, [PatchToolCalls()])) == ""


def test_the_same_bytes_are_posted_each_time():
    """So that a prompt cache holds."""
    history = write([("user", "ask"), ("turn", [("a", "f", "{}"), ("a", "f", "{}")]), ("result", "ghost", "f", "42")])
    once = posted("anthropic", history, [PatchToolCalls()])
    assert posted("anthropic", history, [PatchToolCalls()]) == once
