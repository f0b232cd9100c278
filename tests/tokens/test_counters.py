"""What a message counts: estimated, exact, and by a counter of the user's own."""

from typing import Any

import pytest

from suture.errors import ConfigError, InputError, UnknownWireError
from suture.messages import AgenticMessage, FunctionToolCall, ImagePart, Message, Reasoning, TextPart, ToolCall
from suture.tokens import (
    MEDIA_TOKENS,
    CharacterCounter,
    Counter,
    ExactCounter,
    UsageCounter,
    WholeCounter,
    is_incremental,
)
from suture.wires import get_wire

CHARACTERS, EXACT = CharacterCounter(), ExactCounter()


# Four characters a token


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        ({"role": "user", "content": ""}, (4 + 1) // 4),
        ({"role": "user", "content": "x" * 400}, (4 + 400 + 2) // 4),
        ({"role": "user", "content": "中" * 400}, (4 + 400 + 2) // 4),
        (Message.user("x" * 400), (4 + 400 + 2) // 4),
        (Message("assistant", "a" * 10, reasoning_content="b" * 20, tool_calls=[ToolCall("i" * 99, "name", "{}")]),
         (9 + 10 + 20 + 4 + 2 + 5) // 4),
        (AgenticMessage.assistant([Reasoning("r" * 20, "s" * 999), FunctionToolCall("i", "name", "{}")]),
         (9 + 20 + 4 + 2 + 4) // 4),
        (Message.user([TextPart("x" * 6), ImagePart(url="u" * 999), ImagePart(base64_data="u" * 999)]), 3 + 2 * 1_600),
    ],
)  # fmt: skip
def test_characters_are_counted_four_a_token_with_one_more_for_each_text(message: Any, tokens: int):
    assert CHARACTERS.count(message) == tokens


def test_an_image_counts_what_providers_charge_for_a_full_size_one():
    assert MEDIA_TOKENS == 1_600
    photo = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "iVBO" * 99_999}}
    assert CHARACTERS.count({"role": "user", "content": [photo]}) == 1 + 1_600


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("中" * 8, 2)])
def test_a_text_counts_a_quarter_of_its_characters_rounded_up(text: str, tokens: int):
    assert CHARACTERS.count_text(text) == tokens


# The wire of a message


def test_a_message_counts_the_same_whether_its_wire_is_given_named_or_recognised():
    message = {"role": "tool", "tool_call_id": "a", "content": "x" * 40}
    for counter in (CHARACTERS, EXACT, UsageCounter()):
        counts = {counter.count(message, wire) for wire in (None, "openai-chat", get_wire("openai-chat"))}
        assert len(counts) == 1


def test_where_several_wires_may_have_made_a_message_the_first_that_can_view_it_counts():
    # An item of a type that is not known: Responses takes it, and Chat does not.
    assert CHARACTERS.count({"type": "hologram_call", "id": "x"}) == CHARACTERS.count(
        {"type": "hologram_call", "id": "x"}, "openai-responses"
    )
    message = {"role": "assistant", "content": [{"type": "text", "text": "x"}], "name": 7}
    assert CHARACTERS.count(message) == CHARACTERS.count(message, "openai-chat")


def test_a_wire_that_recognises_a_message_and_cannot_view_it_is_passed_over(monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: Any) -> Any:
        raise InputError("no")

    message = {"role": "user", "content": "x" * 40}
    monkeypatch.setattr(get_wire("openai-chat"), "view", refuse)
    assert CHARACTERS.count(message) == CHARACTERS.count(message, "openai-responses")
    for name in ("openai-responses", "anthropic"):
        monkeypatch.setattr(get_wire(name), "view", refuse)
    with pytest.raises(InputError, match="no"):
        CHARACTERS.count(message)


def test_what_is_no_message_is_refused():
    with pytest.raises(UnknownWireError):
        CHARACTERS.count({"role": "nobody"})
    with pytest.raises(InputError, match="expected a message, found str"):
        CHARACTERS.count("hello")
    with pytest.raises(ConfigError, match="unknown wire 'chat'"):
        CHARACTERS.count({"role": "user", "content": "a"}, "chat")


# By report


def test_of_a_single_message_a_usage_counter_gives_the_estimate():
    message = {"role": "user", "content": "hello world"}
    assert UsageCounter().count(message) == CHARACTERS.count(message) == 4
    assert UsageCounter(EXACT).count(message) == EXACT.count(message) == 6
    assert UsageCounter().count_text("hello") == 2
    assert UsageCounter(EXACT).count_text("hello") == 1
    assert UsageCounter(Own()).count(message) == 7
    assert UsageCounter(Own()).count_text("hello") == 2


class Own:
    def count(self, message: Any) -> int:
        return 7


def whole(messages: Any, tool_infos: Any) -> int:
    return len(messages) + len(tool_infos)


async def whole_later(messages: Any, tool_infos: Any) -> int:
    return len(messages) + len(tool_infos)


@pytest.mark.parametrize("estimate", [whole, UsageCounter()])
def test_a_usage_counter_estimates_message_by_message(estimate: Any):
    with pytest.raises(ConfigError, match=r"estimates with an object with count\(message\), not (whole|UsageCounter)$"):
        UsageCounter(estimate)


# What is a counter


def test_a_counter_is_incremental_if_it_counts_message_by_message():
    assert [is_incremental(counter) for counter in (CHARACTERS, EXACT, UsageCounter(), Own())] == [True] * 4
    assert [is_incremental(counter) for counter in (whole, whole_later, lambda *_: 0)] == [False] * 3


def test_an_object_with_both_counts_message_by_message():
    class Both(Own):
        def __call__(self, messages: Any, tool_infos: Any) -> int:
            raise AssertionError

    assert is_incremental(Both())


@pytest.mark.parametrize("slip", ["o200k_base", b"x", [1], (), 7, None, {"count": 7}])
def test_what_cannot_count_is_refused(slip: Any):
    with pytest.raises(ConfigError, match=rf"a token counter is an object .*, not {type(slip).__name__}$"):
        is_incremental(slip)


def test_a_class_that_was_not_called_is_refused_with_a_hint():
    with pytest.raises(ConfigError, match=r"not CharacterCounter; make one: CharacterCounter\(\)"):
        is_incremental(CharacterCounter)


def test_the_protocols_are_what_the_counters_are():
    counters: list[Counter] = [CHARACTERS, EXACT, UsageCounter(), Own()]
    functions: list[WholeCounter] = [whole, whole_later]
    assert [isinstance(counter, Counter) for counter in (*counters, *functions)] == [True] * 4 + [False] * 2


def test_a_counter_says_what_it_is():
    assert repr(UsageCounter(ExactCounter("cl100k_base"))) == "UsageCounter(ExactCounter('cl100k_base'))"
    assert repr(UsageCounter()) == "UsageCounter(CharacterCounter())"
