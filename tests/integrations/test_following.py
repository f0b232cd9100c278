"""Histories that come anew with each request: mended as `repair` would, and looked at only where they are new."""

import copy
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suture
from suture.integrations._following import Following
from suture.wires import get_wire
from tests.histories import Step, write
from tests.repair.test_properties import histories

PAIRS = [
    ("message", "pairing"),
    ("openai-chat", "mistral"),
    ("openai-chat", "openai-chat"),
    ("openai-responses", "openai-responses"),
    ("anthropic", "anthropic"),
    ("gemini", "gemini"),
    ("bedrock", "bedrock"),
]


def mended(wire: str, profile: str, messages: Sequence[Any]) -> list[Any]:
    return list(suture.repair(messages, wire=wire, profile=profile).messages)


@pytest.mark.properties
@pytest.mark.parametrize(("wire", "profile"), PAIRS)
@given(history=histories, other=histories, cuts=st.lists(st.integers(0, 9), max_size=4), anew=st.booleans())
@settings(max_examples=40, deadline=None)
def test_each_state_of_a_conversation_is_mended_as_a_whole_one_would_be(
    wire: str, profile: str, history: list[Step], other: list[Step], cuts: list[int], anew: bool
):
    """It grows, is rewound, is another one in between; and the framework may make its messages anew each time."""
    following = Following(wire)
    first, second = write(wire, history), write(wire, other)
    for state in [first[:2], first[:4], second, *(first[:cut] + second[cut:] for cut in cuts), first, second]:
        given_in = copy.deepcopy(state) if anew else state
        before = copy.deepcopy(given_in)
        assert list(following.mend(given_in, profile)) == mended(wire, profile, state)
        assert given_in == before


def test_a_list_that_needs_nothing_is_the_very_same():
    history = write("openai-chat", [("user", "go"), ("turn", [("a", "f", "{}")]), ("result", "a", "f", "42")])
    assert Following("openai-chat").mend(history, "openai-chat") is history
    assert Following("openai-chat").mend([], "openai-chat") == []


def test_a_step_looks_only_at_what_is_new(monkeypatch: pytest.MonkeyPatch):
    seen: list[int] = []
    kind = type(get_wire("openai-chat"))
    view, glance = kind.view, kind.glance

    def viewing(self: Any, message: Any, index: int | None = None) -> Any:
        seen[-1] += 1
        return view(self, message, index)

    def glancing(self: Any, messages: Any, start: int, demands: Any) -> int:
        reached = glance(self, messages, start, demands)
        seen[-1] += reached - start + 1
        return reached

    monkeypatch.setattr(kind, "view", viewing)
    monkeypatch.setattr(kind, "glance", glancing)
    following = Following("openai-chat")
    steps: list[Step] = []
    for number in range(200):
        steps += [("user", "go"), ("turn", [(f"call_{number}", "f", "{}")]), ("result", f"call_{number}", "f", "42")]
        seen.append(0)
        following.mend(write("openai-chat", steps), "openai-chat")
    assert seen[0] > 0
    assert max(seen[1:]) == min(seen[1:])


def test_two_profiles_of_one_conversation_do_not_mix():
    turn = ("turn", [("fn.read:0", "f", "{}")])
    history = write("openai-chat", [("user", "go"), turn, ("result", "fn.read:0", "f", "42")])
    following = Following("openai-chat")
    assert following.mend(history, "openai-chat") is history
    assert list(following.mend(history, "mistral")) == mended("openai-chat", "mistral", history) != history


def test_a_generator_says_what_a_placeholder_says():
    history = write("openai-chat", [("turn", [("a", "f", "{}")]), ("user", "stop")])
    following = Following("openai-chat", generator=lambda name, call_id: f"{name} {call_id} was skipped")
    assert following.mend(history, "openai-chat")[1]["content"] == "f a was skipped"


def test_only_the_last_few_conversations_are_kept_in_mind():
    following = Following("openai-chat")
    for number in range(100):
        following.mend([{"role": "user", "content": f"hello {number}"}], "openai-chat")
    assert len(following._conversations) <= 16


def test_threads_share_one_and_each_gets_its_own_history():
    following = Following("openai-chat")

    def converse(number: int) -> bool:
        steps: list[Step] = []
        right = True
        for turn in range(30):
            steps += [("user", f"{number}"), ("turn", [(f"a{turn}", "f", "{}")])]
            steps += [("result", f"a{turn}", "f", f"{number}-{turn}")] if turn % 3 else []
            history = write("openai-chat", steps)
            right = right and list(following.mend(history, "openai-chat")) == mended(
                "openai-chat", "openai-chat", history
            )
        return right

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(converse, range(24)))


class Table(dict[str, Any]):
    """Like an array: it does not say whether it is the same as another."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("the truth value of a table is ambiguous")

    __hash__ = None


def test_messages_that_cannot_be_compared_are_looked_at_again():
    following = Following("openai-chat")
    for _ in range(2):
        history = [{"role": "user", "content": "hi", "table": Table()}, {"role": "assistant", "content": "hello"}]
        assert following.mend(history[:1], "openai-chat") == history[:1]
        assert following.mend(history, "openai-chat") is history
