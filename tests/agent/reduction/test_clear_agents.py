"""The clear phase in agents: catalogue lines 36 to 47, and what a run tells of it, on every chat wire."""

import copy
import json
from typing import Any

import pytest

from suture import ChatModelAgentState
from suture.events import MessageFinished, ToolFinished
from suture.messages import TextPart, ToolArgument, ToolResult
from suture.middleware import ClearResult, ToolDetail, ToolReduction, ToolReductionConfig
from suture.stores import MemoryBackend
from tests.agent.durability.scenes import play, seen
from tests.agent.reduction._clear_scenes import (
    Counting,
    asks,
    filed,
    files,
    history,
    make,
    on_each_wire,
    placed,
    reads,
    reducing,
    rewrites,
    said,
    sent,
    whole,
)
from tests.reduction.rounds import CLEARED, MARK, long, saved_at
from tests.shapes.wires import arguments_of


def rounds(wire: str, *labels: str) -> list[Any]:
    return [*(asks(wire, label) for label in labels), "done"]


@on_each_wire
def test_each_turn_sees_old_results_as_paths_and_the_last_one_whole(wire: str):
    async def scene() -> None:
        backend = Counting()
        agent, model = make(wire, rounds(wire, "a", "b", "c"), reducing(backend))
        result = await agent.run("go")
        assert [said(wire, request.messages) for request in model.requests] == [
            {},
            whole("a"),
            placed("a") | whole("b"),
            placed("a", "b") | whole("c"),
        ]
        assert said(wire, result.messages) == placed("a", "b") | whole("c")
        assert arguments_of(wire, result.messages) == [f'{{"label": "{label}"}}' for label in "abc"]
        assert await files(backend) == filed("a", "b")
        assert backend.written == ["/r/clear/a", "/r/clear/b"]

    play(scene())


@on_each_wire
def test_the_reading_tool_is_named_as_it_is_called(wire: str):
    async def scene() -> None:
        backend = MemoryBackend()
        agent, model = make(wire, rounds(wire, "a", "b"), reducing(backend, read_file_tool_name="cat_file"))
        await agent.run("go")
        assert said(wire, sent(model))["a"] == saved_at("/r/clear/a", "cat_file")

    play(scene())


@on_each_wire
def test_in_the_language_of_the_run(wire: str):
    async def scene() -> None:
        agent, model = make(wire, rounds(wire, "a", "b"), reducing(MemoryBackend()), language="zh")
        await agent.run("go")
        assert said(wire, sent(model))["a"].startswith("<persisted-output>工具结果已保存至: /r/clear/a\n")

    play(scene())


@pytest.mark.parametrize("later", [False, True], ids=["plain", "async"])
@on_each_wire
def test_a_path_maker_may_be_plain_or_async(wire: str, later: bool):
    def plain(detail: ToolDetail) -> str:
        return f"/own/{detail.tool_context.name}/{detail.tool_context.call_id}"

    async def awaited(detail: ToolDetail) -> str:
        return plain(detail)

    async def scene() -> None:
        backend = MemoryBackend()
        maker = awaited if later else plain
        agent, model = make(wire, rounds(wire, "a", "b"), reducing(backend, gen_clear_offload_file_path=maker))
        await agent.run("go")
        assert said(wire, sent(model))["a"] == saved_at("/own/look/a")
        assert await files(backend) == {"/own/look/a": long("a")}

    play(scene())


@on_each_wire
def test_without_a_backend_old_results_are_just_gone(wire: str):
    async def scene() -> None:
        agent, model = make(wire, rounds(wire, "a", "b"), ToolReduction(skip_truncation=True, max_tokens_for_clear=0))
        await agent.run("go")
        assert said(wire, sent(model)) == {"a": CLEARED} | whole("b")
        assert [info.name for info in model.requests[0].tool_infos] == ["look", "peek"]

    play(scene())


@on_each_wire
def test_parallel_calls_are_cleared_together_each_to_its_own_file(wire: str):
    async def scene() -> None:
        backend = MemoryBackend()
        agent, model = make(wire, [asks(wire, "x", "y", "w"), asks(wire, "z"), "done"], reducing(backend))
        await agent.run("go")
        assert said(wire, sent(model)) == placed("x", "y", "w") | whole("z")
        assert await files(backend) == filed("x", "y", "w")

    play(scene())


@pytest.mark.parametrize("later", [False, True], ids=["plain", "async"])
@on_each_wire
def test_a_handler_may_be_plain_or_async_and_take_the_arguments_along(wire: str, later: bool):
    def plain(detail: ToolDetail) -> ClearResult:
        assert detail.tool_argument is not None
        return ClearResult(
            need_clear=True,
            tool_argument=ToolArgument('{"label": "…"}'),
            tool_result=ToolResult((TextPart("gone"),)),
            need_offload=True,
            offload_file_path=f"/own/{detail.tool_context.call_id}",
            offload_content=detail.tool_argument.text,
        )

    async def awaited(detail: ToolDetail) -> ClearResult:
        return plain(detail)

    async def scene() -> None:
        backend = MemoryBackend()
        config = {"look": ToolReductionConfig(clear_handler=awaited if later else plain)}
        agent, model = make(wire, rounds(wire, "a", "b"), reducing(backend, tool_config=config))
        await agent.run("go")
        assert said(wire, sent(model)) == {"a": "gone"} | whole("b")
        assert [json.loads(text) for text in arguments_of(wire, sent(model))] == [{"label": "…"}, {"label": "b"}]
        assert await files(backend) == {"/own/a": '{"label": "a"}'}

    play(scene())


@on_each_wire
def test_an_excluded_tool_keeps_its_results(wire: str):
    async def scene() -> None:
        backend = MemoryBackend()
        agent, model = make(wire, rounds(wire, "a", "b"), reducing(backend, clear_exclude_tools=["look"]))
        await agent.run("go")
        assert said(wire, sent(model)) == whole("a", "b")
        assert await files(backend) == {}

    play(scene())


@on_each_wire
def test_if_too_little_is_freed_there_is_no_file_no_mark_and_no_event(wire: str):
    async def scene() -> None:
        backend, called = Counting(), list[Any]()
        reduction = reducing(backend, clear_at_least_tokens=10_000, clear_post_process=called.append)
        agent, model = make(wire, rounds(wire, "a", "b"), reduction)
        events, result = await seen(agent.stream("go"))
        assert said(wire, sent(model)) == whole("a", "b")
        assert (backend.written, called, rewrites(events)) == ([], [], [])
        assert MARK not in str(list(result.messages))

    play(scene())


@on_each_wire
def test_a_history_that_comes_in_is_cleared_before_the_first_turn(wire: str):
    async def scene() -> None:
        backend = MemoryBackend()
        agent, model = make(wire, ["done"], reducing(backend))
        messages = history(wire, "a", "b", "c")
        before = copy.deepcopy(messages)
        await agent.run(messages)
        assert messages == before
        assert said(wire, sent(model)) == placed("a", "b") | whole("c")
        assert sent(model)[0] is messages[0]
        assert all(mine is theirs for mine, theirs in zip(sent(model)[5:], messages[5:], strict=True))

    play(scene())


@pytest.mark.parametrize("wire", ["message", "agentic"])
def test_the_mark_is_on_the_turns_of_cleared_rounds(wire: str):
    async def scene() -> None:
        agent, _ = make(wire, rounds(wire, "a", "b"), reducing(MemoryBackend()))
        result = await agent.run("go")
        assert [message.extra.get(MARK) for message in result.messages] == [None, True, None, None, None, None]

    play(scene())


@on_each_wire
def test_with_both_phases_skipped_nothing_is_counted_or_called(wire: str):
    class Forbidden:
        def count(self, _message: Any) -> int:
            raise AssertionError("nobody should count")

    def forbidden(*_given: Any) -> Any:
        raise AssertionError("nobody should ask")

    async def scene() -> None:
        reduction = ToolReduction(
            skip_truncation=True,
            skip_clear=True,
            max_tokens_for_clear=0,
            token_counter=Forbidden(),
            clear_message_rewriter=forbidden,
            clear_post_process=forbidden,
        )
        agent, model = make(wire, rounds(wire, "a", "b"), reduction)
        events, result = await seen(agent.stream("go"))
        assert said(wire, sent(model)) == whole("a", "b")
        assert rewrites(events) == []
        assert MARK not in str(list(result.messages))

    play(scene())


@pytest.mark.parametrize("later", [False, True], ids=["plain", "async"])
@on_each_wire
def test_the_post_process_sees_the_cleared_state_and_only_then(wire: str, later: bool):
    states: list[ChatModelAgentState[Any]] = []

    async def awaited(state: ChatModelAgentState[Any]) -> None:
        states.append(state)

    async def scene() -> None:
        reduction = reducing(MemoryBackend(), clear_post_process=awaited if later else states.append)
        agent, _ = make(wire, rounds(wire, "a", "b", "c"), reduction)
        await agent.run("go")
        assert [said(wire, state.messages) for state in states] == [
            placed("a") | whole("b"),
            placed("a", "b") | whole("c"),
        ]

    play(scene())


@on_each_wire
def test_the_error_of_a_post_process_ends_the_run_as_it_is(wire: str):
    failure = RuntimeError("nobody listens")

    def failing(_state: Any) -> None:
        raise failure

    async def scene() -> None:
        agent, _ = make(wire, rounds(wire, "a", "b"), reducing(MemoryBackend(), clear_post_process=failing))
        with pytest.raises(RuntimeError) as caught:
            await agent.run("go")
        assert caught.value is failure

    play(scene())


@on_each_wire
def test_the_event_says_what_was_cleared_and_never_what_it_said(wire: str):
    async def scene() -> None:
        agent, _ = make(wire, rounds(wire, "a", "b"), reducing(MemoryBackend()))
        events, _ = await seen(agent.stream("go"))
        (event,) = rewrites(events)
        assert (event.by, event.turn, event.before, event.after) == ("ToolReduction", 3, 5, 5)
        assert event.report is not None
        (change,) = event.report["changes"]
        assert {key: change[key] for key in ("action", "call_id", "name", "path")} == {
            "action": "clear",
            "call_id": "a",
            "name": "look",
            "path": "/r/clear/a",
        }
        assert event.report["tokens_before"] > event.report["tokens_after"]
        assert long("a")[:40] not in json.dumps(dict(event.report), default=str)

    play(scene())


@on_each_wire
def test_what_events_showed_is_not_changed_behind_their_readers_back(wire: str):
    async def scene() -> None:
        agent, _ = make(wire, rounds(wire, "a", "b", "c"), reducing(MemoryBackend()))
        shown: list[tuple[Any, Any]] = []
        async for event in agent.stream("go"):
            if isinstance(event, MessageFinished):
                shown.append((event.message, copy.deepcopy(event.message)))
            if isinstance(event, ToolFinished):
                shown.append((event.result, copy.deepcopy(event.result)))
        assert len(shown) == 7
        assert [mine for mine, _ in shown] == [theirs for _, theirs in shown]

    play(scene())


@on_each_wire
def test_a_tools_own_backend_is_used_and_can_be_read(wire: str):
    async def scene() -> None:
        shared, own = MemoryBackend(), MemoryBackend()
        config = {"look": ToolReductionConfig(backend=own)}
        script = [asks(wire, "a"), asks(wire, "b"), reads(wire, "/r/clear/a"), "done"]
        agent, model = make(wire, script, reducing(shared, tool_config=config))
        await agent.run("go")
        assert (await files(shared), await files(own)) == ({}, filed("a", "b"))
        assert long("a").splitlines()[0] in said(wire, sent(model))["reader"]

    play(scene())


@on_each_wire
def test_the_flag_of_a_tool_is_heard_although_it_has_a_handler(wire: str):
    def forbidden(_detail: ToolDetail) -> ClearResult:
        raise AssertionError("nobody should ask")

    async def scene() -> None:
        config = {"look": ToolReductionConfig(skip_clear=True, clear_handler=forbidden)}
        agent, model = make(wire, rounds(wire, "a", "b"), reducing(MemoryBackend(), tool_config=config))
        await agent.run("go")
        assert said(wire, sent(model)) == whole("a", "b")

    play(scene())
