"""Who counts tokens, how often, and what is not counted at all (defect 17)."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

import suture
from suture import ChatModelAgent, Message, TokenUsage, ToolCall
from suture.messages import ResponseMeta
from suture.stores import MemoryBackend
from suture.testing import ScriptedModel
from suture.tokens import CharacterCounter, ExactCounter, Tally, UsageCounter
from tests.agent.durability.scenes import play, start
from tests.agent.reduction._clear_scenes import (
    asks,
    history,
    make,
    on_each_wire,
    placed,
    reducing,
    said,
    sent,
    whole,
)
from tests.reduction.planning import Letters, letters

LABELS = [f"n{number}" for number in range(12)]


def rounds(wire: str, labels: Sequence[str] = LABELS) -> list[Any]:
    return [*(asks(wire, label) for label in labels), "done"]


@on_each_wire
def test_while_nothing_is_cleared_each_message_is_counted_once_in_the_run(wire: str):
    async def scene() -> None:
        counter = Letters()
        reduction = reducing(MemoryBackend(), token_counter=counter, max_tokens_for_clear=1_000_000)
        agent, model = make(wire, rounds(wire), reduction)
        await agent.run("go")
        assert [id(message) for message in counter.asked] == [id(message) for message in sent(model)]

    play(scene())


@on_each_wire
def test_a_turn_that_clears_nothing_looks_at_nothing_old(wire: str):
    async def scene() -> None:
        counter, looked = Letters(), list[int]()

        def noting(_messages: Sequence[Any]) -> Any:
            looked.append(len(counter.asked))
            number = len(looked)
            return asks(wire, f"n{number}") if number < 8 else "done"

        reduction = reducing(MemoryBackend(), token_counter=counter, max_tokens_for_clear=1_000_000)
        agent, _ = make(wire, noting, reduction)
        await agent.run(history(wire, *LABELS))
        new = [after - before for before, after in pairwise(looked)]
        assert looked[0] == 1 + 2 * len(LABELS)
        assert new == [2] * 7

    play(scene())


@on_each_wire
def test_with_clearing_no_message_is_counted_twice_either(wire: str):
    async def scene() -> None:
        counter = Letters()
        agent, model = make(wire, rounds(wire), reducing(MemoryBackend(), token_counter=counter))
        await agent.run("go")
        assert said(wire, sent(model)) == placed(*LABELS[:-1]) | whole(LABELS[-1])
        counted = [id(message) for message in counter.asked]
        assert len(set(counted)) == len(counted)

    play(scene())


@on_each_wire
def test_an_unmet_minimum_does_not_count_everything_again_each_turn(wire: str):
    """The reference copies and counts the whole history at each turn then."""

    async def scene() -> None:
        counter = Letters()
        reduction = reducing(MemoryBackend(), token_counter=counter, clear_at_least_tokens=1_000_000)
        agent, model = make(wire, rounds(wire), reduction)
        await agent.run("go")
        assert said(wire, sent(model)) == whole(*LABELS)
        own = {id(message) for message in sent(model)}
        counted = [id(message) for message in counter.asked if id(message) in own]
        assert len(set(counted)) == len(counted)

    play(scene())


@pytest.mark.parametrize("later", [False, True], ids=["plain", "async"])
@on_each_wire
def test_a_function_sees_the_whole_history_and_the_tools_at_each_turn(wire: str, later: bool):
    async def scene() -> None:
        asked: list[tuple[int, list[str]]] = []

        def plain(messages: Sequence[Any], tool_infos: Sequence[Any]) -> int:
            asked.append((len(messages), [info.name for info in tool_infos]))
            return letters(list(messages))

        async def awaited(messages: Sequence[Any], tool_infos: Sequence[Any]) -> int:
            return plain(messages, tool_infos)

        counter = awaited if later else plain
        reduction = reducing(MemoryBackend(), token_counter=counter, max_tokens_for_clear=2_000)
        agent, model = make(wire, rounds(wire, LABELS[:4]), reduction)
        await agent.run("go")
        names = [info.name for info in model.requests[0].tool_infos]
        assert asked[:3] == [(1, names), (3, names), (5, names)]
        assert said(wire, sent(model, 3)) == placed(*LABELS[:2]) | whole(LABELS[2])

    play(scene())


@on_each_wire
def test_the_default_is_a_quarter_of_the_characters(wire: str):
    """A threshold that the estimate just reaches, and one that it just exceeds."""

    async def scene() -> None:
        quiet = {"add_reading_tools": False}
        agent, model = make(wire, rounds(wire, "ab"), reducing(MemoryBackend(), max_tokens_for_clear=10**6, **quiet))
        await agent.run("go")
        request = model.requests[-1]
        total = Tally(wire, CharacterCounter()).total(list(request.messages), request.tool_infos)
        assert 400 < total < 800
        for counter in (None, CharacterCounter()):
            for threshold, wanted in ((total, whole("a", "b")), (total - 1, placed("a") | whole("b"))):
                choices = {"token_counter": counter, "max_tokens_for_clear": threshold, **quiet}
                agent, model = make(wire, rounds(wire, "ab"), reducing(MemoryBackend(), **choices))
                await agent.run("go")
                assert said(wire, sent(model)) == wanted

    play(scene())


@on_each_wire
def test_an_exact_counter_decides_by_its_own_numbers(wire: str):
    async def scene() -> None:
        messages = history(wire, "a", "b")
        for counter in (ExactCounter(), CharacterCounter()):
            total = Tally(wire, counter).total(messages)
            for threshold, wanted in ((total, whole("a", "b")), (total - 1, placed("a") | whole("b"))):
                choices = {"token_counter": counter, "max_tokens_for_clear": threshold, "add_reading_tools": False}
                model: ScriptedModel[Any] = ScriptedModel(["done"], wire=wire)
                agent = ChatModelAgent(model=model, middlewares=[reducing(MemoryBackend(), **choices)])
                await agent.run(messages)
                assert said(wire, sent(model)) == wanted

    play(scene())


def test_the_two_counters_above_do_not_agree():
    messages = history("message", "a", "b")
    assert Tally("message", ExactCounter()).total(messages) != Tally("message", CharacterCounter()).total(messages)


def reported(call_id: str, total: int) -> Message:
    """Return a turn that looks something up, and tells what it cost."""
    usage = TokenUsage(prompt_tokens=total - 10, completion_tokens=10, total_tokens=total)
    made = [ToolCall(call_id, "look", f'{{"label": "{call_id}"}}')]
    return Message("assistant", tool_calls=made, response_meta=ResponseMeta(usage=usage))


@pytest.mark.parametrize(("cost", "clears"), [(50_000, True), (100, False)], ids=["dear", "cheap"])
def test_a_usage_counter_believes_the_provider_and_estimates_only_what_is_new(cost: int, clears: bool):
    async def scene() -> None:
        # About 450 tokens by estimate; the provider says more, or less, up to its last reply.
        threshold = 40_000 if clears else 400
        reduction = reducing(MemoryBackend(), token_counter=UsageCounter(), max_tokens_for_clear=threshold)
        agent, model = make("message", [reported("a", 90), reported("b", cost), "done"], reduction)
        await agent.run("go")
        assert said("message", sent(model)) == (placed("a") | whole("b") if clears else whole("a", "b"))

    play(scene())


@on_each_wire
def test_a_usage_counter_without_a_report_is_its_estimate(wire: str):
    async def scene() -> None:
        for estimate, cleared in ((CharacterCounter(), False), (Letters(), True)):
            counter = UsageCounter(estimate)
            reduction = reducing(MemoryBackend(), token_counter=counter, max_tokens_for_clear=1_500)
            agent, model = make(wire, rounds(wire, "ab"), reduction)
            await agent.run("go")
            assert said(wire, sent(model)) == (placed("a") | whole("b") if cleared else whole("a", "b"))

    play(scene())


@pytest.mark.parametrize("wrong", [-1, True, 1.5, None, "7"], ids=repr)
@pytest.mark.parametrize("form", ["object", "function", "async function"])
def test_a_counter_that_gives_no_count_ends_the_run_and_is_named(form: str, wrong: Any):
    class Crooked:
        def count(self, _message: Any) -> int:
            return wrong

    def crooked(_messages: Any, _tools: Any) -> int:
        return wrong

    async def crooked_later(_messages: Any, _tools: Any) -> int:
        return wrong

    async def scene() -> None:
        counter: Any = {"object": Crooked(), "function": crooked, "async function": crooked_later}[form]
        agent, _ = make("message", rounds("message", "ab"), reducing(MemoryBackend(), token_counter=counter))
        with pytest.raises(suture.ConfigError, match=r"(?i)crooked"):
            await agent.run("go")

    play(scene())


def test_two_runs_at_once_do_not_share_their_counts():
    async def scene() -> None:
        counter = Letters()
        reduction = reducing(MemoryBackend(), token_counter=counter, max_tokens_for_clear=2_000, root_dir=None)

        def script(messages: Sequence[Any]) -> Any:
            label = messages[0].content
            number = sum(message.role == "tool" for message in messages)
            return asks("message", f"{label}{number}") if number < 5 else "done"

        agent, _ = make("message", script, reduction)
        results = await asyncio.gather(start(agent.stream("one")), start(agent.stream("two")))
        for label, result in zip(("one", "two"), results, strict=True):
            texts = said("message", result.messages)
            assert list(texts) == [f"{label}{number}" for number in range(5)]
            assert texts[f"{label}4"].startswith(f"{label}4: what")

    play(scene())
