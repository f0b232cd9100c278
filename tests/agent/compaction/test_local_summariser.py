"""A real model, if a small one, summarises a recorded run of 200 messages, and is asked about its beginning."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import suture
from suture import AgenticMessage, ChatModelAgent, Compaction
from suture.codecs import get_codec
from suture.models import LocalModel
from suture.tokens import ExactCounter
from suture.wires import get_wire
from tests.corpus import conversations, needs_corpus
from tests.models.local.asking import ask, needs_model

LIMIT = 3_000
NAME = "sqlfluff__sqlfluff-1733"
ASKED = "Which version of Python does the PR description report?"
VERSIONS = ["Python 2.7.18", "Python 3.6.9", "Python 3.7.5", "Python 3.8.10", "Python 3.11.2"]
CHOICE = {"name": "answer", "schema": {"type": "string", "enum": VERSIONS}}
"""So small a model cannot put it into words of its own, but it can choose."""


class Listening(LocalModel[AgenticMessage]):
    """The local model; it remembers what it was sent."""

    requests: list[Any]

    def stream(self, request: Any) -> Any:
        self.requests.append(request)
        return super().stream(request)


@pytest.mark.soak
@needs_model
@needs_corpus
def test_a_local_model_summarises_a_recorded_run_and_answers_a_question_about_its_beginning(
    covered: Callable[[str], None],
):
    recorded = next(each for each in conversations("mini-swe-agent") if NAME in each["id"])["messages"][:200]
    history = get_codec("openai-chat").decode_messages(recorded)
    assert len(history) == 200
    model = Listening(wire="agentic", context_size=4_096, options={"max_tokens": 200})
    model.requests = []
    counter = ExactCounter()
    agent = ChatModelAgent(model=model, middlewares=[Compaction(LIMIT, token_counter=counter, summarizer_timeout=600)])
    options = {"tool_choice": "none", "response_format": {"type": "json_schema", "json_schema": CHOICE}}
    result = agent.run_sync([*history, AgenticMessage.user(ASKED)], options=options)
    *asked, last = model.requests
    tokens = sum(map(counter.count, last.messages))
    covered(f"{len(asked)} summaries, {tokens} tokens of {LIMIT}, answer {result.output!r}")
    covered("\n".join(get_wire("agentic").words(last.messages[2]).texts))
    assert suture.check(last.messages, profile="openai-chat", wire="agentic").acceptable
    assert tokens <= LIMIT
    assert asked
    assert len(history) - len(last.messages) > 150
    assert "Python 3.7.5" in result.output
    first, _, *rest = last.messages
    assert "Python 3.7.5" not in asyncio.run(ask(model, [first, *rest], **options)).text  # it knows from the beginning
