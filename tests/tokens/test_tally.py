"""Histories as they grow: each message is counted once, and what was reported is not estimated."""

import gc
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from suture.errors import ConfigError, InputError
from suture.messages import AgenticMessage, History, Message, ResponseMeta, TokenUsage, ToolCall, ToolInfo
from suture.tokens import CharacterCounter, ExactCounter, Tally, UsageCounter
from suture.wires import get_wire


class Recorder:
    """Counts ten a message, and keeps which it was asked about."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def count(self, message: Any) -> int:
        self.asked.append(message)
        return 10


def chat(text: str = "a", role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": text}


# Each message once


def test_a_thousand_growing_histories_ask_about_each_message_once():
    counter = Recorder()
    tally = Tally("openai-chat", counter)
    history: History[Any] = History()
    for length in range(1, 1_001):
        history = history.continue_with([chat(str(length))])
        assert tally.total(history) == 10 * length
    assert [message["content"] for message in counter.asked] == [str(length) for length in range(1, 1_001)]


class Watched(History[Any]):
    """A history that notes which of its messages are read."""

    __slots__ = ("read",)

    def __init__(self, messages: Sequence[Any]) -> None:
        super().__init__(messages)
        self.read: list[Any] = []

    def grown(self, *messages: Any) -> "Watched":
        made = Watched(())
        made.log, made.length = (grown := self.continue_with(messages)).log, grown.length
        return made

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        self.read += found if isinstance(index, slice) else [found]
        return found

    def __iter__(self) -> Iterator[Any]:
        for message in super().__iter__():
            self.read.append(message)
            yield message


def test_of_a_history_that_grew_only_what_is_new_is_looked_at():
    tally = Tally("openai-chat", CharacterCounter())
    history = Watched([chat(str(number)) for number in range(5_000)])
    tally.total(history)
    assert len(history.read) == 5_000
    for step in range(100):
        new = [chat(f"new {step}"), chat(f"more {step}")]
        history = history.grown(*new)
        tally.total(history)
        assert history.read == new
    history.read.clear()
    tally.total(history)
    assert history.read == []


def test_a_list_asks_about_each_message_once_as_well():
    counter = Recorder()
    tally = Tally("openai-chat", counter)
    messages: list[Any] = []
    for length in range(1, 101):
        messages.append(chat(str(length)))
        assert tally.total(messages) == tally.total(tuple(messages)) == 10 * length
    assert counter.asked == messages


def test_a_history_that_was_rewritten_asks_only_about_what_it_has_not_seen():
    counter = Recorder()
    tally = Tally("openai-chat", counter)
    history = History([chat(str(number)) for number in range(10)])
    tally.total(history)
    other = chat("other")
    assert tally.total(History([*history[:4], other, *history[5:]])) == 100
    assert tally.total(history[:3]) == 30
    assert counter.asked == [*history, other]


def test_what_was_counted_as_a_history_grew_is_known_when_it_is_rewritten():
    counter = Recorder()
    tally = Tally("openai-chat", counter)
    history = History([chat("1")])
    tally.total(history)
    history = history.continue_with([chat("2"), chat("3")])
    tally.total(history)
    assert tally.total(history[1:]) == 20
    assert counter.asked == [*history]


def test_a_history_that_branched_off_is_not_taken_for_one_that_grew():
    tally = Tally("openai-chat", Recorder())
    first = History([chat("1")])
    left = first.continue_with([chat("2"), chat("3")])
    right = first.continue_with([chat("4")])
    assert [tally.total(each) for each in (first, left, right, left, first)] == [10, 30, 20, 30, 10]


def test_a_message_that_stands_there_twice_counts_twice_and_is_asked_about_once():
    counter = Recorder()
    tally = Tally("openai-chat", counter)
    message = chat()
    assert tally.total([message, message]) == 20
    assert tally.total(History([message, message])) == 20
    assert len(counter.asked) == 1


def test_equal_messages_are_not_the_same_message():
    counter = Recorder()
    assert Tally("openai-chat", counter).total([chat(), chat()]) == 20
    assert len(counter.asked) == 2


def test_what_is_no_longer_in_the_history_is_forgotten():
    tally = Tally("message", CharacterCounter())
    old, kept = Message.user("old"), Message.user("kept")
    tally.total([old, kept])
    assert {id(each) for each in (old, kept)} == set(tally._known)
    tally.total([kept])
    assert set(tally._known) == {id(kept)}
    tally.of(old)
    assert set(tally._loose) == {id(old)}
    tally.total([kept])
    assert not tally._loose


class Loose(dict[str, Any]):
    """A message that can be referred to weakly."""


def test_a_message_that_was_counted_is_held_so_that_no_other_has_its_identity():
    counter = Recorder()
    tally = Tally("openai-chat", counter)
    message = Loose(chat())
    seen = weakref.ref(message)
    tally.total([message])
    counter.asked.clear()
    del message
    gc.collect()
    assert seen() is not None
    tally.total([chat()])
    counter.asked.clear()
    gc.collect()
    assert seen() is None


def test_one_message_is_counted_once_before_and_in_the_history():
    counter = Recorder()
    tally = Tally("openai-chat", counter)
    message = chat()
    assert (tally.of(message), tally.of(message), tally.total([message]), tally.of(message)) == (10, 10, 10, 10)
    assert counter.asked == [message]


def test_an_empty_history_counts_nothing():
    tally = Tally("message", CharacterCounter())
    empty: History[Any] = History()
    assert [tally.total(each) for each in ([], empty, empty.continue_with([Message.user("x" * 40)]))] == [0, 0, 11]


def test_a_failure_changes_nothing_in_what_was_counted():
    class Choosy(Recorder):
        def count(self, message: Any) -> int:
            if message["content"] == "bad":
                raise ValueError
            return super().count(message)

    counter = Choosy()
    tally = Tally("openai-chat", counter)
    history = History([chat("1")])
    tally.total(history)
    for messages in (history.continue_with([chat("2"), chat("bad")]), [chat("3"), chat("bad")]):
        with pytest.raises(ConfigError):
            tally.total(messages)
    assert tally.total(history) == 10
    assert tally.total(history.continue_with([chat("4")])) == 20


@pytest.mark.parametrize("counter", [CharacterCounter(), ExactCounter(), UsageCounter(ExactCounter())])
def test_a_tally_adds_up_what_the_counter_gives(counter: Any):
    messages = [
        Message.system("Answer briefly."),
        Message.user("hello world"),
        Message.assistant("", [ToolCall("a", "search", '{"q": "x"}')]),
        Message.tool("3 pages", "a", "search"),
    ]
    assert Tally("message", counter).total(messages) == sum(counter.count(message, "message") for message in messages)


# Tools


TOOLS = (
    ToolInfo("search", "Search the docs.", {"type": "object", "properties": {"q": {}}}),
    ToolInfo("now", extra={"cost": "x" * 999}),
)
TOOL_TEXTS = [
    '{"name":"search","description":"Search the docs.","parameters":{"type":"object","properties":{"q":{}}}}',
    '{"name":"now"}',
]


def test_tools_count_the_characters_of_their_json():
    characters = sum(map(len, TOOL_TEXTS)) // 4
    for counter in (CharacterCounter(), UsageCounter(), Recorder()):
        assert Tally("openai-chat", counter).total([], TOOLS) == characters


def test_tools_count_exactly_with_an_exact_counter():
    exact = ExactCounter()
    for counter in (exact, UsageCounter(exact)):
        assert Tally("openai-chat", counter).total([], TOOLS) == sum(map(exact.count_text, TOOL_TEXTS))


def test_the_same_tools_are_counted_once():
    class Texts(Recorder):
        def count_text(self, text: str) -> int:
            self.asked.append(text)
            return 5

    counter = Texts()
    tally = Tally("openai-chat", counter)
    assert [tally.total([], tools) for tools in (TOOLS, TOOLS, list(TOOLS), [*TOOLS])] == [10] * 4
    assert counter.asked == TOOL_TEXTS
    assert [tally.total([], tools) for tools in (TOOLS[:1], TOOLS[::-1], ())] == [5, 10, 0]
    growing = [TOOLS[0]]
    assert tally.total([], growing) == 5
    growing.append(TOOLS[1])
    assert tally.total([], growing) == 10


def test_other_tools_are_counted_though_they_are_as_many():
    tally = Tally("openai-chat", CharacterCounter())
    assert [tally.total([], [tool]) for tool in TOOLS] == [len(text) // 4 for text in TOOL_TEXTS]


def test_tools_that_are_dicts_count_as_well():
    assert Tally("openai-chat", CharacterCounter()).total([], [{"name": "f"}]) == len('{"name":"f"}') // 4  # pyright: ignore[reportArgumentType]


# By report


def replied(text: str, usage: TokenUsage | None = None) -> Message:
    return Message("assistant", text, response_meta=ResponseMeta(usage=usage))


REPORT = TokenUsage(
    prompt_tokens=900, completion_tokens=100, total_tokens=1_000, cached_tokens=800, reasoning_tokens=60
)
ASK, LONG = Message.user("hi"), Message.user("x" * 400)


def test_what_was_reported_covers_everything_up_to_the_last_reply_and_the_tools():
    tally = Tally("message", UsageCounter())
    assert tally.total([ASK, replied("a"), LONG, LONG], TOOLS, REPORT) == 1_000 + 2 * 101
    assert tally.total([ASK, replied("a"), LONG, replied("b")], TOOLS, REPORT) == 1_000
    assert tally.total([ASK, replied("a"), LONG, replied("b"), LONG], TOOLS, REPORT) == 1_000 + 101


def test_a_history_that_grows_goes_by_the_latest_report():
    tally = Tally("message", UsageCounter())
    history = History([ASK])
    assert tally.total(history) == 2
    history = history.continue_with([replied("a")])
    assert tally.total(history, usage=REPORT) == 1_000
    history = history.continue_with([LONG])
    assert tally.total(history, usage=REPORT) == 1_101
    history = history.continue_with([replied("b")])
    assert tally.total(history, usage=TokenUsage(prompt_tokens=1_200)) == 1_200
    assert tally.total(history.continue_with([LONG]), usage=TokenUsage(prompt_tokens=1_200)) == 1_301


def test_without_a_report_everything_is_estimated():
    messages = [ASK, replied("a"), LONG]
    expected = Tally("message", CharacterCounter()).total(messages, TOOLS)
    for usage in (None, TokenUsage()):
        assert Tally("message", UsageCounter()).total(messages, TOOLS, usage) == expected


def test_a_report_without_a_reply_in_the_history_covers_nothing():
    assert Tally("message", UsageCounter()).total([LONG], TOOLS, REPORT) == Tally("message", CharacterCounter()).total(
        [LONG], TOOLS
    )


@pytest.mark.parametrize("kind", ["message", "agentic"])
def test_the_last_reply_that_carries_its_report_is_used_if_none_is_given(kind: str):
    def said(role: Any, text: str, usage: TokenUsage | None = None) -> Any:
        meta = ResponseMeta(usage=usage)
        if kind == "message":
            return Message(role, text, response_meta=meta)
        made = AgenticMessage.user(text) if role == "user" else AgenticMessage.assistant(text)
        return AgenticMessage(made.role, made.content_blocks, response_meta=meta)

    first = said("assistant", "a", TokenUsage(total_tokens=500))
    second = said("assistant", "b", REPORT)
    third = said("assistant", "c" * 389)
    long = said("user", "x" * 400, TokenUsage(total_tokens=7))
    tally = Tally(kind, UsageCounter())
    assert tally.total([long, first, long], TOOLS) == 500 + 101
    assert tally.total([long, first, long, second, long], TOOLS) == 1_000 + 101
    assert tally.total([long, first, long, second, long, third, long], TOOLS) == 1_000 + 101 + 100 + 101
    assert tally.total([long, first, long, second, long, third, long], TOOLS, TokenUsage(total_tokens=9)) == 9 + 101


def test_a_report_that_gives_only_the_total_is_used():
    assert Tally("message", UsageCounter()).total([ASK, replied("a")], usage=TokenUsage(total_tokens=70)) == 70
    given = TokenUsage(prompt_tokens=60, completion_tokens=5, total_tokens=99)
    assert Tally("message", UsageCounter()).total([ASK, replied("a")], usage=given) == 65


WRITTEN = {
    "openai-chat": [chat(), chat("b", "assistant"), chat("x" * 400)],
    "openai-responses": [
        chat(),
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "x" * 400},
    ],
    "anthropic": [chat(), chat("b", "assistant"), chat("x" * 400)],
    "gemini": [
        {"role": "user", "parts": [{"text": "a"}]},
        {"role": "model", "parts": [{"text": "b"}]},
        {"role": "user", "parts": [{"text": "x" * 400}]},
    ],
    "bedrock": [
        {"role": "user", "content": [{"text": "a"}]},
        {"role": "assistant", "content": [{"text": "b"}]},
        {"role": "user", "content": [{"text": "x" * 400}]},
    ],
}


@pytest.mark.parametrize("wire", WRITTEN)
def test_a_report_covers_what_the_model_made_last_on_any_wire(wire: str):
    for given in (wire, get_wire(wire)):
        assert Tally(given, UsageCounter()).total(WRITTEN[wire], TOOLS, REPORT) == 1_000 + 101


def test_other_counters_do_not_go_by_reports():
    messages = [ASK, replied("a", REPORT), LONG]
    assert Tally("message", CharacterCounter()).total(messages, usage=REPORT) == 2 + 3 + 101


# Counters that cannot be used


class Wrong:
    def __init__(self, gives: Any) -> None:
        self.gives = gives

    def count(self, message: Any) -> Any:
        if isinstance(self.gives, Exception):
            raise self.gives
        return self.gives


@pytest.mark.parametrize(
    ("gives", "said"),
    [(-1, "-1"), (True, "True"), (1.5, "1.5"), (None, "None"), ("7", "'7'"), ([], "a list"), (1j, "a complex")],
)
@pytest.mark.parametrize("wrap", [lambda counter: counter, UsageCounter], ids=["alone", "as an estimate"])
def test_a_counter_that_gives_no_number_of_tokens_is_named(gives: Any, said: str, wrap: Any):
    tally = Tally("openai-chat", wrap(Wrong(gives)))
    for ask in (lambda: tally.total([chat()]), lambda: tally.of(chat())):
        with pytest.raises(ConfigError, match=rf"^the token counter Wrong gave {said}; expected an integer"):
            ask()


def test_a_counter_that_raises_is_named_and_the_cause_is_kept():
    cause = KeyError("content")
    with pytest.raises(ConfigError, match=r"^the token counter Wrong failed: KeyError: 'content'$") as caught:
        Tally("openai-chat", Wrong(cause)).total([chat()])
    assert caught.value.__cause__ is cause


def test_a_method_count_that_is_async_is_refused():
    class Later:
        async def count(self, message: Any) -> int:
            return 7

    with pytest.raises(ConfigError, match="the token counter Later gave a coroutine"):
        Tally("openai-chat", Later()).total([chat()])  # pyright: ignore[reportArgumentType]


def test_a_count_of_texts_is_checked_as_well():
    class Texts(Recorder):
        def count_text(self, text: str) -> int:
            return -1

    with pytest.raises(ConfigError, match="the token counter Texts gave -1"):
        Tally("openai-chat", Texts()).total([], TOOLS)


def test_a_message_that_is_malformed_is_the_messages_fault():
    with pytest.raises(InputError, match="unknown role 'nobody'"):
        Tally("openai-chat", CharacterCounter()).total([chat(role="nobody")])


def test_a_function_that_counts_whole_histories_is_refused():
    def whole(messages: Any, tool_infos: Any) -> int:
        return len(messages) + len(tool_infos)

    with pytest.raises(ConfigError, match=r"whole counts whole histories, .* call it with \(messages, tool_infos\)"):
        Tally("openai-chat", whole)  # pyright: ignore[reportArgumentType]


def test_a_counter_derived_from_ours_counts_in_its_own_way():
    class Doubled(CharacterCounter):
        def count(self, message: Any, wire: Any = None) -> int:
            return 2 * super().count(message, wire)

    class Flat(CharacterCounter):
        def count(self, message: Any) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
            return 5

    assert Tally("message", Doubled()).total([LONG]) == 202
    assert Tally("message", Flat()).total([LONG]) == 5


def test_an_unknown_wire_is_refused():
    with pytest.raises(ConfigError, match="unknown wire"):
        Tally("chat", CharacterCounter())
