"""`Compaction` in pydantic-ai's agents: no request is over the limit."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic_ai import Agent, exceptions
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

import suture
from suture.integrations.pydantic_ai import Compaction, PatchToolCalls
from suture.stores import MemoryBackend
from suture.tokens import CharacterCounter

LIMIT = 2_000
SUMMARY = "They read the log."
TASK = "Read the log of every day. The password is 4711."


def size(messages: list[ModelMessage]) -> int:
    return sum(CharacterCounter().count(message, "pydantic-ai") for message in messages)


def fail(prompt: str) -> str:
    raise RuntimeError(prompt[:5])


def turn(day: int) -> ModelResponse:
    return ModelResponse([TextPart(f"Day {day} comes next. " * 50), ToolCallPart("log", {"day": day}, f"call_{day}")])


class Reader:
    """A model that reads the log of 20 days; `judge` may refuse what it is sent."""

    def __init__(self, judge: Callable[[list[ModelMessage]], None] = lambda _: None) -> None:
        self.sent: list[list[ModelMessage]] = []
        self.day = 0
        self.prompts: list[str] = []
        self.judge = judge
        self.model = FunctionModel(self.answer)

    def answer(self, messages: list[ModelMessage], info: Any) -> ModelResponse:
        last: Any = messages[-1].parts[-1]
        if "Summarise the conversation" in str(getattr(last, "content", "")):
            self.prompts.append(str(last.content))
            return ModelResponse([TextPart(SUMMARY)])
        self.sent.append(list(messages))
        self.judge(messages)
        self.day += 1
        return turn(self.day) if self.day <= 20 else ModelResponse([TextPart("done")])


def run(reader: Reader, compaction: Compaction) -> Any:
    agent = Agent(reader.model, capabilities=[compaction, PatchToolCalls()], instructions="Be brief.")

    @agent.tool_plain
    def log(day: int) -> str:
        """Read the log of a day."""
        return f"day {day}: all quiet. " * 10

    return agent.run_sync(TASK)


@pytest.mark.parametrize("summarizer", [None, lambda _: SUMMARY, fail])
def test_no_request_is_over_the_limit_and_the_run_goes_on_with_what_is_left(summarizer: Any):
    reader = Reader()
    result = run(reader, Compaction(LIMIT, summarizer=summarizer))
    assert result.output == "done"
    assert len(reader.sent) == 21
    assert max(map(size, reader.sent)) <= LIMIT
    assert size(result.all_messages()) <= LIMIT + 300
    for sent in reader.sent:
        assert "4711" in str(sent[0])
        assert suture.check(sent, wire="pydantic-ai", profile="openai-chat").acceptable
    assert (SUMMARY in str(result.all_messages())) == (summarizer is not fail)
    texts = [prompt.partition("The conversation:")[2] for prompt in reader.prompts]
    shown = [day for text in texts for day in range(1, 21) if f"Day {day} comes" in text]
    assert len(shown) == len(set(shown))


@pytest.mark.skipif(not hasattr(exceptions, "RetryModelRequest"), reason="this release makes one attempt")
def test_a_model_that_says_too_long_is_asked_once_more_with_less():
    refused: list[int] = []

    def judge(messages: list[ModelMessage]) -> None:
        if size(messages) > 1_500:
            refused.append(size(messages))
            raise exceptions.ModelContextWindowExceededError("m", f"prompt is too long: {refused[-1]} tokens > 1500")

    reader = Reader(judge)
    assert run(reader, Compaction(summarizer=lambda _: SUMMARY)).output == "done"
    assert len(refused) == 1  # the limit that it named holds from then on


def test_words_that_leave_the_history_are_saved():
    backend = MemoryBackend()
    said = " ".join(f"word{number}" for number in range(3_000))
    reader = Reader()
    reader.day = 20
    agent = Agent(reader.model, capabilities=[Compaction(LIMIT, backend=backend, root_dir="/saved")])
    assert agent.run_sync(said).output == "done"
    assert size(reader.sent[0]) <= LIMIT
    assert "saved to: /saved/compact/cut-" in str(reader.sent[0])
