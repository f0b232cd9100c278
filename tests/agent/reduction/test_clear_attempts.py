"""A turn that is tried again, or on another model, is cleared once; streamed output is whole in its file."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from suture import ModelFailoverConfig, ModelRetryConfig, RetryDecision, ToolResult, tool
from suture.messages import TextPart
from suture.middleware import ToolReductionConfig
from suture.testing import ScriptedModel
from tests.agent.durability.scenes import play, seen
from tests.agent.reduction._clear_scenes import (
    Counting,
    asks,
    files,
    make,
    on_each_wire,
    placed,
    reducing,
    rewrites,
    said,
    sent,
    whole,
)
from tests.reduction.planning import Letters
from tests.reduction.rounds import long, saved_at

LOST = ConnectionError("no line")


@on_each_wire
def test_a_turn_that_is_tried_again_is_cleared_once(wire: str):
    async def scene() -> None:
        backend, counter = Counting(), Letters()
        script = [asks(wire, "a"), LOST, asks(wire, "b"), LOST, LOST, asks(wire, "c"), LOST, "done"]
        retry = ModelRetryConfig(max_retries=3, backoff=lambda _attempt: 0)
        agent, model = make(wire, script, reducing(backend, token_counter=counter), model_retry_config=retry)
        events, _ = await seen(agent.stream("go"))
        assert backend.written == ["/r/clear/a", "/r/clear/b"]
        assert [event.turn for event in rewrites(events)] == [3, 4]
        third, fourth = [sent(model, number) for number in (3, 4, 5)], [sent(model, number) for number in (6, 7)]
        assert third[0] == third[1] == third[2]
        assert fourth[0] == fourth[1]
        assert said(wire, fourth[0]) == placed("a", "b") | whole("c")
        counted = [id(message) for message in counter.asked]
        assert len(set(counted)) == len(counted)

    play(scene())


@on_each_wire
def test_an_input_that_a_retry_changes_for_good_is_cleared_like_any_other(wire: str):
    async def scene() -> None:
        backend = Counting()

        def judge(attempt: Any) -> RetryDecision:
            lost = attempt.error is not None
            return RetryDecision(
                retry=lost,
                modified_input_messages=list(attempt.messages) if lost else None,
                persist_modified_input_messages=lost,
                backoff=0,
            )

        script = [asks(wire, "a"), asks(wire, "b"), LOST, asks(wire, "c"), "done"]
        retry = ModelRetryConfig(max_retries=3, should_retry=judge)
        agent, model = make(wire, script, reducing(backend), model_retry_config=retry)
        await agent.run("go")
        assert said(wire, sent(model)) == placed("a", "b") | whole("c")
        assert backend.written == ["/r/clear/a", "/r/clear/b"]

    play(scene())


@on_each_wire
def test_another_model_that_takes_over_is_sent_the_same(wire: str):
    async def scene() -> None:
        backend = Counting()
        spare: ScriptedModel[Any] = ScriptedModel([asks(wire, "c"), "done"], wire=wire)
        failover = ModelFailoverConfig(models=[spare])
        script = [asks(wire, "a"), asks(wire, "b"), LOST]
        agent, model = make(wire, script, reducing(backend), failover=failover)
        events, _ = await seen(agent.stream("go"))
        assert sent(spare, 0) == sent(model)
        assert said(wire, sent(spare, 0)) == placed("a") | whole("b")
        assert said(wire, sent(spare, 1)) == placed("a", "b") | whole("c")
        assert backend.written == ["/r/clear/a", "/r/clear/b"]
        assert [event.turn for event in rewrites(events)] == [3, 4]

    play(scene())


def of_kind(kind: str) -> Any:
    """Return a tool `dump` of a kind that gives a long text, if it can in three pieces."""

    async def invokable(label: str) -> str:
        return long(label, 900)

    async def streamable(label: str) -> AsyncIterator[str]:
        for start in (0, 300, 600):
            yield long(label, 900)[start : start + 300]

    async def enhanced_invokable(label: str) -> ToolResult:
        return ToolResult((TextPart(long(label, 900)),))

    async def enhanced_streamable(label: str) -> AsyncIterator[ToolResult]:
        for start in (0, 300, 600):
            yield ToolResult((TextPart(long(label, 900)[start : start + 300]),))

    made: Sequence[Any] = (invokable, streamable, enhanced_invokable, enhanced_streamable)
    return next(tool(each, name="dump", description="Dump.") for each in made if each.__name__ == kind)


@pytest.mark.parametrize("kind", ["invokable", "streamable", "enhanced_invokable", "enhanced_streamable"])
@on_each_wire
def test_what_was_streamed_is_whole_in_its_file(wire: str, kind: str):
    """eino#1090: streamed results were lost."""

    async def scene() -> None:
        backend = Counting()
        script = [asks(wire, "s", name="dump"), asks(wire, "b"), "done"]
        agent, model = make(wire, script, reducing(backend), tools=[of_kind(kind)])
        await agent.run("go")
        assert said(wire, sent(model)) == {"s": saved_at("/r/clear/s")} | whole("b")
        assert await files(backend) == {"/r/clear/s": long("s", 900)}

    play(scene())


@on_each_wire
def test_what_was_truncated_when_it_came_is_cleared_to_the_file_that_is_there(wire: str):
    async def scene() -> None:
        backend = Counting()
        reduction = reducing(backend, skip_truncation=False, max_length_for_trunc=400, max_tokens_for_clear=0)
        agent, model = make(wire, [asks(wire, "a"), asks(wire, "b"), asks(wire, "c"), "done"], reduction)
        await agent.run("go")
        texts = said(wire, sent(model))
        assert (texts["a"], texts["b"]) == (saved_at("/r/trunc/a"), saved_at("/r/trunc/b"))
        assert texts["c"].startswith("<persisted-output>\nOutput too large (800). Full output saved to: /r/trunc/c\n")
        assert await files(backend) == {f"/r/trunc/{label}": long(label) for label in "abc"}
        assert sorted(backend.written) == ["/r/trunc/a", "/r/trunc/b", "/r/trunc/c"]

    play(scene())


def test_entries_are_copied_so_that_a_later_change_changes_nothing():
    async def scene() -> None:
        entries = {"look": ToolReductionConfig(skip_clear=True)}
        excluded = ["peek"]
        reduction = reducing(Counting(), tool_config=entries, clear_exclude_tools=excluded)
        entries["look"] = ToolReductionConfig()
        excluded.append("look")
        entries.clear()
        agent, model = make("message", [asks("message", "a"), asks("message", "b"), "done"], reduction)
        await agent.run("go")
        assert said("message", sent(model)) == whole("a", "b")

    play(scene())
