"""Old results leave a history that is too long, for good, and what was sent before stays as it was."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import StructuredTool
from pydantic import BaseModel

from suture import ConfigError, OffloadError
from suture.integrations.langchain import ToolReductionMiddleware
from suture.messages import ToolArgument
from suture.middleware import ClearResult, ToolReductionConfig
from suture.reduction.draft import PROCESSED
from suture.stores import MemoryBackend
from suture.tokens import CharacterCounter, Tally, UsageCounter
from tests.guests.langchain.reducing import (
    LIMIT,
    MOSTLY_ASYNC,
    ROUNDS,
    agent,
    config,
    invoke,
    log_of,
    path_in,
    payload,
    reads,
    results,
    saved_in,
    say,
    shown,
    text_of,
)


@pytest.mark.parametrize("way", MOSTLY_ASYNC)
class TestClearing:
    def test_old_results_are_saved_and_replaced_by_their_paths(self, way):
        backend = MemoryBackend()
        made, model = agent(ROUNDS, [ToolReductionMiddleware(backend, max_tokens_for_clear=LIMIT)])
        messages = invoke(way, made, say("go"))
        assert [shown(sent) for sent in model.sent[-2:]] == [
            ["1", "2", "3", "4"],
            ["cleared", "cleared", "cleared", "cleared", "5"],
        ]
        assert saved_in(backend) == {f"/suture/thread-1/clear/call_{day}": log_of(100, day) for day in range(1, 5)}
        assert [path_in(result) for result in results(messages)[:4]] == list(saved_in(backend))

    def test_what_was_cleared_is_so_in_the_state_and_in_the_next_run_of_the_thread(self, way):
        backend = MemoryBackend()
        made, model = agent(ROUNDS, [ToolReductionMiddleware(backend, max_tokens_for_clear=LIMIT)])
        messages = invoke(way, made, say("go"))
        kept = made.get_state(config()).values["messages"]
        assert shown(kept) == shown(messages) == ["cleared"] * 4 + ["5"]
        assert [message.response_metadata.get(PROCESSED) for message in kept if message.type == "ai"][:5] == [
            True,
            True,
            True,
            True,
            None,
        ]
        invoke(way, made, say("and then?"))
        assert shown(model.sent[-1]) == ["cleared"] * 4 + ["5"]
        assert len(saved_in(backend)) == 4

    def test_the_beginning_of_each_request_is_that_of_the_last_one_until_something_is_cleared(self, way):
        made, model = agent(
            [reads(100, number) for number in range(1, 12)],
            [ToolReductionMiddleware(MemoryBackend(), max_tokens_for_clear=LIMIT)],
        )
        invoke(way, made, say("go"))
        invoke(way, made, say("and then?"))
        sent = [payload(messages) for messages in model.sent]
        before = [[], *sent]
        breaks = [number for number, each in enumerate(sent) if each[: len(before[number])] != before[number]]
        counts = [0, *[shown(messages).count("cleared") for messages in model.sent]]
        clears = [number for number in range(len(sent)) if counts[number + 1] > counts[number]]
        assert breaks == clears
        assert len(clears) == 2

    def test_what_was_cleared_is_never_touched_again(self, way):
        backend = MemoryBackend()
        made, model = agent(
            [reads(100, number) for number in range(1, 12)],
            [ToolReductionMiddleware(backend, max_tokens_for_clear=LIMIT)],
        )
        invoke(way, made, say("go"))
        first = {text_of(message) for message in results(model.sent[5])[:4]}
        assert {text_of(message) for message in results(model.sent[-1])[:4]} == first
        assert len(saved_in(backend)) == 8

    def test_nothing_happens_unless_enough_is_freed(self, way):
        backend = MemoryBackend()
        settings: dict[str, Any] = {"max_tokens_for_clear": 1_000, "clear_at_least_tokens": 2_500}
        made, model = agent(ROUNDS, [ToolReductionMiddleware(backend, **settings)])
        invoke(way, made, say("go"))
        assert [shown(sent) for sent in model.sent[4:]] == [["1", "2", "3", "4"], ["cleared"] * 4 + ["5"]]

    def test_clearing_stops_where_it_is_told_to(self, way):
        made, model = agent(
            ROUNDS,
            [ToolReductionMiddleware(MemoryBackend(), max_tokens_for_clear=LIMIT, clear_down_to_tokens=2_800)],
        )
        invoke(way, made, say("go"))
        assert shown(model.sent[-1]) == ["cleared", "cleared", "3", "4", "5"]

    def test_the_latest_rounds_and_excluded_tools_stay(self, way):
        made, model = agent(
            ROUNDS,
            [ToolReductionMiddleware(MemoryBackend(), max_tokens_for_clear=LIMIT, clear_retention_suffix_limit=3)],
        )
        invoke(way, made, say("go"))
        assert shown(model.sent[-1]) == ["cleared", "cleared", "3", "4", "5"]
        made, model = agent(
            ROUNDS,
            [ToolReductionMiddleware(MemoryBackend(), max_tokens_for_clear=LIMIT, clear_exclude_tools=["log"])],
        )
        invoke(way, made, say("go"))
        assert shown(model.sent[-1]) == ["1", "2", "3", "4", "5"]

    def test_without_a_backend_old_results_are_gone_for_good(self, way):
        made, model = agent(ROUNDS, [ToolReductionMiddleware(skip_truncation=True, max_tokens_for_clear=3_000)])
        messages = invoke(way, made, say("go"))
        assert text_of(results(messages)[0]) == "[Old tool result content cleared]"
        assert model.tool_names == ["log"]

    def test_a_result_that_was_truncated_keeps_its_file(self, way):
        backend = MemoryBackend()
        made, model = agent(
            [reads(1_000, number) for number in range(1, 4)],
            [ToolReductionMiddleware(backend, max_length_for_trunc=4_000, max_tokens_for_clear=2_500)],
        )
        invoke(way, made, say("go"))
        assert path_in(results(model.sent[-1])[0]) == "/suture/thread-1/trunc/call_1"
        assert len(saved_in(backend)) == 3

    def test_a_handler_changes_arguments_and_the_state_has_them(self, way):
        def forget(detail: Any) -> ClearResult:
            short = ToolArgument('{"lines": 1}')
            return ClearResult(need_clear=True, tool_argument=short, tool_result=detail.tool_result)

        settings: dict[str, Any] = {
            "max_tokens_for_clear": 100,
            "tool_config": {"log": ToolReductionConfig(clear_handler=forget)},
        }
        made, _ = agent(ROUNDS[:2], [ToolReductionMiddleware(MemoryBackend(), **settings)])
        turns = [message for message in invoke(way, made, say("go")) if isinstance(message, AIMessage)]
        assert [turn.tool_calls[0]["args"] for turn in turns[:2]] == [{"lines": 1}, {"lines": 100, "day": 2}]

    def test_whoever_wants_to_know_is_told_the_state(self, way):
        told: list[Any] = []

        async def tell(state: Any) -> None:
            await asyncio.sleep(0)
            told.append(shown(state["messages"]))

        made, _ = agent(
            ROUNDS, [ToolReductionMiddleware(MemoryBackend(), max_tokens_for_clear=LIMIT, clear_post_process=tell)]
        )
        invoke(way, made, say("go"))
        assert told == [["cleared"] * 4 + ["5"]]

    def test_a_failed_write_leaves_the_history_as_it_is(self, way, caplog):
        class Full:
            def write(self, path: str, content: str) -> None:
                raise OSError("no space left on device")

        made, model = agent(ROUNDS, [ToolReductionMiddleware(Full(), max_tokens_for_clear=3_000)])
        with pytest.raises(OffloadError):
            invoke(way, made, say("go"))
        assert shown(made.get_state(config()).values["messages"]) == ["1", "2", "3", "4", "5"]
        assert len(model.sent) == 5
        settings: dict[str, Any] = {"max_tokens_for_clear": 3_000, "on_backend_error": "continue"}
        made, model = agent(ROUNDS, [ToolReductionMiddleware(Full(), **settings)])
        assert shown(invoke(way, made, say("go"))) == ["1", "2", "3", "4", "5"]
        assert "was not saved" in caplog.text


@pytest.mark.parametrize("way", MOSTLY_ASYNC)
class TestCounting:
    def test_a_function_counts_the_whole_history_and_is_told_the_tools(self, way):
        seen: list[Any] = []

        async def count(messages: Any, tool_infos: Any) -> int:
            await asyncio.sleep(0)
            seen.append([info.name for info in tool_infos])
            return 100 * len(messages)

        made, model = agent(
            ROUNDS, [ToolReductionMiddleware(MemoryBackend(), max_tokens_for_clear=1_000, token_counter=count)]
        )
        invoke(way, made, say("go"))
        assert shown(model.sent[-1]) == ["cleared"] * 4 + ["5"]
        assert seen[0] == ["log", "read_file", "ls", "grep"]

    def test_tools_of_every_form_are_counted(self, way):
        class Odd(BaseModel):
            function: Callable[[], int]

        odd = StructuredTool(name="odd", description="x" * 400, args_schema=Odd, func=print)
        served: Any = {"type": "web_search", "name": "web_search", "note": "y" * 400}
        totals: list[int] = []
        for tools in ([], [odd], [odd, served]):
            middleware = ToolReductionMiddleware(MemoryBackend())
            made, model = agent([], [middleware], tools=tools)
            invoke(way, made, say("go"))
            infos = middleware._counts.infos_of(model.tools)
            totals.append(Tally("langchain", CharacterCounter()).total([], infos))
        assert totals[0] + 100 < totals[1] < totals[2] - 100

    def test_each_message_is_counted_once_in_a_run(self, way):
        class Words:
            def __init__(self) -> None:
                self.counted: list[Any] = []

            def count(self, message: Any) -> int:
                self.counted.append(message.id)
                return 1

        counter = Words()
        made, _ = agent(ROUNDS, [ToolReductionMiddleware(MemoryBackend(), token_counter=counter)])
        messages = invoke(way, made, say("go"))
        assert counter.counted == [message.id for message in messages[:-1]]

    def test_what_the_provider_reported_counts(self, way):
        usage: Any = {"input_tokens": 9_000, "output_tokens": 10, "total_tokens": 9_010}

        def reported(turn: AIMessage) -> AIMessage:
            return turn.model_copy(update={"usage_metadata": usage})

        made, model = agent(
            [reads(10, 1), reported(reads(10, 2)), reads(10, 3)],
            [ToolReductionMiddleware(MemoryBackend(), max_tokens_for_clear=5_000, token_counter=UsageCounter())],
        )
        invoke(way, made, say("go"))
        assert [shown(sent) for sent in model.sent] == [[], ["1"], ["cleared", "2"], ["cleared", "2", "3"]]
        assert CharacterCounter().count(model.sent[-1][0]) < 5


@pytest.mark.parametrize("way", MOSTLY_ASYNC)
class TestRewriting:
    def test_a_round_gives_way_to_fewer_messages_in_its_place(self, way):
        def rewrite(turn: Any, _: Any) -> list[Any]:
            return [HumanMessage(f"the log of day {turn.tool_calls[0]['args']['day']} was read")]

        settings: dict[str, Any] = {"max_tokens_for_clear": LIMIT, "clear_message_rewriter": rewrite}
        made, model = agent(ROUNDS, [ToolReductionMiddleware(MemoryBackend(), **settings)])
        messages = invoke(way, made, say("go"))
        expected = ["go", *[f"the log of day {day} was read" for day in range(1, 5)]]
        assert [text_of(message) for message in model.sent[-1][:5]] == expected
        assert [text_of(message) for message in messages[:5]] == expected
        kept = made.get_state(config()).values["messages"]
        assert [text_of(message) for message in kept[:5]] == expected
        assert shown(kept) == ["5"]

    def test_a_round_can_be_removed(self, way):
        settings: dict[str, Any] = {"max_tokens_for_clear": LIMIT, "clear_message_rewriter": lambda *_: []}
        made, _ = agent(ROUNDS, [ToolReductionMiddleware(MemoryBackend(), **settings)])
        messages = invoke(way, made, say("go"))
        assert [message.type for message in messages] == ["human", "ai", "tool", "ai"]

    def test_more_messages_than_a_round_has_are_refused_and_nothing_has_changed(self, way):
        settings: dict[str, Any] = {
            "max_tokens_for_clear": LIMIT,
            "clear_message_rewriter": lambda turn, answers: [turn, *answers, HumanMessage("!")],
        }
        made, _ = agent(ROUNDS, [ToolReductionMiddleware(MemoryBackend(), **settings)])
        with pytest.raises(ConfigError, match="replaced by as many messages as it has, or by fewer"):
            invoke(way, made, say("go"))
        assert shown(made.get_state(config()).values["messages"]) == ["1", "2", "3", "4", "5"]
