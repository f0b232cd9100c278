"""`CompactionMiddleware` in LangChain's agents and in deepagents: no request is over the limit."""

from random import Random
from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import add_messages

import suture
from suture.errors import ContextOverflowError as TooLarge
from suture.integrations.langchain import CompactionMiddleware, PatchToolCallsMiddleware, ToolReductionMiddleware
from suture.integrations.langchain.compaction import _replace
from suture.stores import MemoryBackend
from suture.tokens import CharacterCounter
from tests.guests.langchain.recording import RecordingModel, asks, call
from tests.guests.langchain.reducing import WAYS, agent, invoke, log, reads, results, saved_in, say, text_of

LIMIT = 2_000
SUMMARY = "They read the log."
TASK = "Read the log of every day. The password is 4711."


def size(messages: list[BaseMessage]) -> int:
    return sum(CharacterCounter().count(message, "langchain") for message in messages)


def fail(prompt: str) -> str:
    raise RuntimeError(prompt[:5])


def turns(count: int) -> list[Any]:
    """Return turns of about 300 tokens each, most of them words that no clearing takes out."""
    return [
        asks(call(f"call_{day}", "log", lines=5, day=day), text=f"Day {day} comes next. " * 50)
        for day in range(1, count + 1)
    ]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("summarizer", [lambda _: SUMMARY, RecordingModel(replies=[AIMessage(SUMMARY)] * 99), fail])
def test_no_request_is_over_the_limit_and_the_thread_stays_short(way: str, summarizer: Any):
    middleware = CompactionMiddleware(LIMIT, summarizer=summarizer)
    made, model = agent(turns(20), [PatchToolCallsMiddleware(), middleware])
    messages = invoke(way, made, say(TASK))
    assert text_of(messages[-1]) == "done"
    assert len(model.sent) == 21
    assert max(map(size, model.sent)) <= LIMIT
    assert size(messages) <= LIMIT + 300
    for sent in model.sent:
        assert text_of(sent[0]) == TASK
        assert suture.check(sent, wire="langchain", profile="openai-chat").acceptable
    assert any(SUMMARY in text_of(message) for message in messages) == (summarizer is not fail)
    assert text_of(invoke(way, made, say("And now?"))[-1]) == "done"


def test_the_agents_own_model_summarises_and_nothing_is_summarised_twice():
    prompts: list[str] = []
    days = iter(turns(20))

    def reply(messages: Any) -> Any:
        if "Summarise the conversation" in text_of(messages[-1]):
            prompts.append(text_of(messages[-1]))
            return AIMessage(SUMMARY)
        return next(days, AIMessage("done"))

    made, _ = agent([reply] * 99, [CompactionMiddleware(LIMIT)])
    assert text_of(invoke("sync", made, say(TASK))[-1]) == "done"
    shown = [
        day for prompt in prompts for day in range(1, 21) if f"Day {day} comes" in prompt.partition("conversation:")[2]
    ]
    assert len(prompts) > 1
    assert len(shown) == len(set(shown))


@pytest.mark.parametrize("way", WAYS)
def test_a_model_that_says_too_long_is_asked_once_more_with_less(way: str):
    refused: list[int] = []

    def reply(messages: Any) -> Any:
        if size(messages) > 1_500:
            refused.append(size(messages))
            raise ContextOverflowError(f"prompt is too long: {size(messages)} tokens > 1500 maximum")
        return next(days, AIMessage("done"))

    days = iter(turns(20))
    made, model = agent([reply] * 99, [CompactionMiddleware(summarizer=lambda _: SUMMARY)])
    assert text_of(invoke(way, made, say(TASK))[-1]) == "done"
    assert len(refused) == 1  # the limit that it named holds from then on
    assert len(model.sent) == 22


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_compacted_if_it_is_the_reply_that_does_not_fit(way: str):
    def reply(_: Any) -> Any:
        raise ContextOverflowError("input length and `max_tokens` exceed context limit: 12 + 300000 > 200000")

    made, model = agent([reply] * 9, [CompactionMiddleware()])
    with pytest.raises(ContextOverflowError, match=r"12 \+ 300000"):
        invoke(way, made, say(TASK))
    assert len(model.sent) == 1


def test_a_model_that_always_says_too_long_ends_the_run_with_what_it_said():
    def reply(_: Any) -> Any:
        raise ContextOverflowError("too long")

    made, model = agent([reply] * 9, [CompactionMiddleware()])
    with pytest.raises((ContextOverflowError, TooLarge)):
        invoke("sync", made, say(TASK))
    assert len(model.sent) <= 2


@pytest.mark.parametrize("way", WAYS)
def test_what_left_the_history_is_saved_and_can_be_read(way: str):
    backend = MemoryBackend()
    said = " ".join(f"word{number}" for number in range(3_000))

    def read(messages: Any) -> Any:
        path = text_of(messages[0]).partition("saved to: ")[2].partition(". Use")[0]
        return asks(call("read_1", "read_file", path=path, char_offset=9_000, char_limit=60))

    made, model = agent([read], [CompactionMiddleware(LIMIT, backend=backend)])
    messages = invoke(way, made, say(said))
    assert said[9_000:9_060] in text_of(results(messages)[0])
    assert said in saved_in(backend).values()
    assert max(map(size, model.sent)) <= LIMIT


def test_beside_tool_reduction_each_does_its_own_and_one_tool_reads_both():
    backend = MemoryBackend()
    middleware = [
        ToolReductionMiddleware(backend, max_length_for_trunc=1_000),
        CompactionMiddleware(2_500, backend=backend),
    ]
    made, model = agent([reads(400, day) for day in range(1, 9)], middleware)
    assert text_of(invoke("sync", made, say(TASK))[-1]) == "done"
    assert model.tool_names.count("read_file") == 1
    assert max(map(size, model.sent)) <= 2_500
    assert {path.split("/")[3] for path in saved_in(backend)} >= {"trunc"}


@pytest.mark.parametrize("name", ["CompactionMiddleware", "SummarizationMiddleware"])
def test_in_deepagents_it_stands_beside_their_summarisation_or_in_its_place(name: str):
    model = RecordingModel(replies=turns(20))
    middleware = CompactionMiddleware(9_000, summarizer=lambda _: SUMMARY, name=name)
    made = create_deep_agent(model, [log], middleware=[middleware], checkpointer=InMemorySaver())
    messages = invoke("sync", made, say(TASK))
    assert text_of(messages[-1]) == "done"
    for sent in model.sent:
        assert any(text_of(message) == TASK for message in sent)
        assert suture.check(sent, wire="langchain", profile="openai-chat").acceptable


def test_what_takes_the_places_of_messages_makes_any_shorter_history():
    draw = Random(7)
    for _ in range(300):
        before = [HumanMessage(str(number), id=f"m{number}") for number in range(draw.randint(1, 9))]
        after: list[BaseMessage] = [message for message in before if draw.random() < 0.5]
        for number in range(draw.randint(0, len(before) - len(after))):
            after.insert(draw.randint(0, len(after)), AIMessage(f"new {number}"))
        update: Any = _replace(before, after)
        made: Any = add_messages(list(before), update)
        assert [text_of(message) for message in made] == [text_of(message) for message in after]
