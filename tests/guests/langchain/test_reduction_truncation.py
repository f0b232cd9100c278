"""Tool output that is too long is saved when it comes, and a notice takes its place."""

import asyncio
import logging
from collections.abc import AsyncIterable
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ToolErrorMiddleware
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from suture import OffloadError
from suture.integrations.langchain import PatchToolCallsMiddleware, ToolReductionMiddleware
from suture.messages import TextPart
from suture.middleware import ToolReductionConfig, TruncResult
from suture.reduction.draft import SAVED
from suture.stores import MemoryBackend
from tests.guests.langchain.recording import RecordingModel, asks, call
from tests.guests.langchain.reducing import (
    WAYS,
    agent,
    config,
    invoke,
    log,
    log_of,
    path_in,
    reads,
    results,
    run,
    saved_in,
    say,
    text_of,
    without_thread,
)


@pytest.mark.parametrize("way", WAYS)
class TestOutputThatIsTooLong:
    def test_v1_a_long_result_is_saved_whole_and_a_notice_shows_how_it_begins_and_ends(self, way):
        backend = MemoryBackend()
        (notice,) = results(run(way, [reads(3_000)], backend, max_length_for_trunc=80))
        whole = log_of(3_000)
        assert saved_in(backend) == {"/suture/thread-1/trunc/call_1": whole}
        assert path_in(notice) == "/suture/thread-1/trunc/call_1"
        assert whole[:40] in text_of(notice)
        assert whole[-40:] in text_of(notice)
        assert len(text_of(notice)) < 400

    def test_what_is_exactly_as_long_as_the_limit_passes(self, way):
        backend = MemoryBackend()
        whole = log_of(30)
        (result,) = results(run(way, [reads(30)], backend, max_length_for_trunc=len(whole)))
        assert text_of(result) == whole
        assert saved_in(backend) == {}

    def test_the_model_is_never_sent_the_whole(self, way):
        made, model = agent([reads(3_000)], [ToolReductionMiddleware(MemoryBackend())])
        invoke(way, made, say("go"))
        assert [len(text_of(message)) < 51_000 for message in results(model.sent[1])] == [True]

    def test_id_name_status_artifact_and_the_blocks_that_are_no_text_stay(self, way):
        picture = {"type": "image", "base64": "aGk=", "mime_type": "image/png"}

        @tool
        def look(call_id: Annotated[str, InjectedToolCallId]) -> Any:
            """Look."""
            content: Any = [{"type": "text", "text": "x" * 900}, picture, {"type": "text", "text": "short"}]
            return ToolMessage(
                content, tool_call_id=call_id, name="look", id="mine", status="error", artifact={"raw": 1}
            )

        backend = MemoryBackend()
        made, _ = agent(
            [asks(call("a", "look"))], [ToolReductionMiddleware(backend, max_length_for_trunc=200)], tools=[look]
        )
        (result,) = results(invoke(way, made, say("go")))
        content: Any = result.content
        assert (result.id, result.name, result.status, result.artifact) == ("mine", "look", "error", {"raw": 1})
        assert content[0]["text"].startswith("<persisted-output>")
        assert content[1:] == [picture, {"type": "text", "text": "short"}]
        assert '"aGk="' in next(iter(saved_in(backend).values()))

    def test_messages_that_a_command_carries_are_truncated_and_the_rest_of_the_command_stays(self, way):
        @tool
        def plan(call_id: Annotated[str, InjectedToolCallId]) -> Any:
            """Plan."""
            messages = [ToolMessage("x" * 900, tool_call_id=call_id), HumanMessage("y" * 900, id="human")]
            return Command(update={"messages": messages})

        backend = MemoryBackend()
        made, _ = agent(
            [asks(call("a", "plan"))], [ToolReductionMiddleware(backend, max_length_for_trunc=200)], tools=[plan]
        )
        messages = invoke(way, made, say("go"))
        assert "saved to: /suture/thread-1/trunc/a" in text_of(results(messages)[0])
        assert [text_of(message) for message in messages if message.id == "human"] == ["y" * 900]
        assert saved_in(backend) == {"/suture/thread-1/trunc/a": "x" * 900}

    def test_a_list_of_messages_and_commands_is_truncated_one_by_one(self, way):
        @tool
        def several(call_id: Annotated[str, InjectedToolCallId]) -> Any:
            """Give several things."""
            return [Command(update={"messages": []}), ToolMessage("x" * 900, tool_call_id=call_id)]

        made, _ = agent(
            [asks(call("a", "several"))],
            [ToolReductionMiddleware(MemoryBackend(), max_length_for_trunc=200)],
            tools=[several],
        )
        (result,) = results(invoke(way, made, say("go")))
        assert path_in(result) == "/suture/thread-1/trunc/a"

    def test_v2_ten_parallel_results_that_are_too_long_are_all_truncated(self, way):
        backend = MemoryBackend()
        turn = asks(*[call(f"c{number}", "log", lines=3_000, day=number) for number in range(10)])
        found = results(run(way, [turn], backend, max_length_for_trunc=1_000))
        assert len(saved_in(backend)) == 10
        assert sum(len(text_of(result)) for result in found) < 15_000

    def test_v3_parallel_results_that_are_only_together_too_long_share_a_budget_and_that_stays_in_the_state(self, way):
        backend = MemoryBackend()
        turn = asks(*[call(f"c{number}", "log", lines=100, day=number) for number in range(10)])
        middleware = ToolReductionMiddleware(backend, max_length_for_trunc=3_000, max_length_per_turn=9_000)
        made, model = agent([turn], [middleware])
        found = results(invoke(way, made, say("go")))
        assert sum(len(text_of(result)) for result in found) <= 9_000
        assert len(saved_in(backend)) == 10
        assert [text_of(result) for result in results(model.sent[1])] == [text_of(result) for result in found]

    def test_v4_many_characters_of_chinese_are_as_long_as_they_are(self, way):
        backend = MemoryBackend()

        @tool
        def poem() -> str:
            """Recite."""
            return "港" * 79_000

        made, _ = agent([asks(call("a", "poem"))], [ToolReductionMiddleware(backend)], tools=[poem])
        (result,) = results(invoke(way, made, say("go")))
        assert len(text_of(result)) < 51_000
        assert saved_in(backend) == {"/suture/thread-1/trunc/a": "港" * 79_000}

    def test_v5_an_id_that_comes_again_gets_a_file_of_its_own(self, way):
        backend = MemoryBackend()
        replies = [asks(call("same", "log", lines=100, day=day)) for day in (1, 2)]
        first, second = results(run(way, replies, backend, max_length_for_trunc=100))
        files = saved_in(backend)
        assert (files[path_in(first)], files[path_in(second)]) == (log_of(100, 1), log_of(100, 2))

    def test_v5_an_id_that_two_calls_of_a_turn_share_gets_two_files(self, way):
        backend = MemoryBackend()
        turn = asks(call("same", "log", lines=100, day=1), call("same", "log", lines=100, day=2))
        found = results(run(way, [turn], backend, max_length_for_trunc=100))
        files = saved_in(backend)
        assert sorted(files[path_in(result)] for result in found) == [log_of(100, 1), log_of(100, 2)]

    def test_v6_ids_that_are_made_safe_alike_get_files_of_their_own(self, way):
        backend = MemoryBackend()
        turn = asks(call("a/b", "log", lines=100, day=1), call("a_b", "log", lines=100, day=2))
        first, second = results(run(way, [turn], backend, max_length_for_trunc=100))
        files = saved_in(backend)
        assert (files[path_in(first)], files[path_in(second)]) == (log_of(100, 1), log_of(100, 2))

    def test_v7_an_endless_id_is_no_endless_path(self, way):
        backend = MemoryBackend()
        (result,) = results(run(way, [asks(call("x" * 1_400, "log", lines=100))], backend, max_length_for_trunc=100))
        assert len(path_in(result)) < 120
        assert saved_in(backend)[path_in(result)] == log_of(100)


class Full:
    """A backend that is full, until it is not."""

    def __init__(self) -> None:
        self.room = False
        self.files: dict[str, str] = {}

    def write(self, path: str, content: str) -> None:
        if not self.room:
            raise OSError("no space left on device")
        self.files[path] = content


@pytest.mark.parametrize("way", WAYS)
class TestOutputThatCannotBeSaved:
    def test_v8_the_run_stops_before_the_model_is_asked_and_the_whole_output_is_in_the_state(self, way):
        made, model = agent([reads(100)], [ToolReductionMiddleware(Full(), max_length_for_trunc=100)])
        with pytest.raises(OffloadError, match=r"the output of log \(call_1\) was not saved: no space left on device"):
            invoke(way, made, say("go"))
        kept = made.get_state(config()).values["messages"]
        assert [text_of(result) for result in results(kept)] == [log_of(100)]
        assert len(model.sent) == 1

    def test_v8_a_run_that_stopped_goes_on_when_there_is_room_and_runs_no_tool_again(self, way):
        backend = Full()
        made, model = agent([reads(100)], [ToolReductionMiddleware(backend, max_length_for_trunc=100)])
        with pytest.raises(OffloadError):
            invoke(way, made, say("go"))
        backend.room = True
        messages = invoke(way, made, None)
        assert path_in(results(messages)[0]) in backend.files
        assert (len(model.sent), text_of(messages[-1])) == (2, "done")

    def test_v8_a_run_that_is_to_continue_goes_on_with_the_whole_and_logs_it(self, way, caplog):
        with caplog.at_level(logging.WARNING, "suture.integrations.langchain"):
            messages = run(way, [reads(100)], Full(), max_length_for_trunc=100, on_backend_error="continue")
        assert [text_of(result) for result in results(messages)] == [log_of(100)]
        assert text_of(messages[-1]) == "done"
        assert "the output of log (call_1) was not saved: no space left on device" in caplog.text
        assert "ship" not in caplog.text

    def test_output_that_only_a_handler_wants_saved_stays_whole_and_that_is_logged(self, way, caplog):
        config_ = {"log": ToolReductionConfig(trunc_handler=last_line)}
        (result,) = results(run(way, [reads(100)], Full(), tool_config=config_))
        assert text_of(result) == log_of(100)
        assert "it stays as it is" in caplog.text

    def test_a_failed_write_deletes_what_was_written_for_the_same_plan(self, way):
        class Half(MemoryBackend):
            async def write_stream(self, path: str, chunks: AsyncIterable[bytes]) -> int:
                if path.endswith("c1"):
                    raise OSError("no space left on device")
                return await super().write_stream(path, chunks)

        backend = Half()
        turn = asks(*[call(f"c{number}", "log", lines=100) for number in range(3)])
        with pytest.raises(OffloadError):
            run(way, [turn], backend, max_length_for_trunc=9_000, max_length_per_turn=2_000)
        assert saved_in(backend) == {}


def last_line(detail: Any) -> TruncResult:
    text = detail.tool_result.parts[0].text
    short = type(detail.tool_result)((TextPart(text.splitlines()[-1]),))
    path = f"/mine/{detail.tool_context.call_id}"
    return TruncResult(
        need_trunc=True, tool_result=short, need_offload=True, offload_file_path=path, offload_content=text
    )


@tool
def breaks() -> str:
    """Break."""
    raise RuntimeError("x" * 300_000)


@pytest.mark.parametrize("way", WAYS)
class TestToolsThatFail:
    def test_v9_an_endless_exception_ends_the_run_and_the_thread_is_mended_in_the_next(self, way):
        middleware = [PatchToolCallsMiddleware(), ToolReductionMiddleware(MemoryBackend())]
        made, model = agent([asks(call("a", "breaks"))], middleware, tools=[breaks])
        with pytest.raises(RuntimeError):
            invoke(way, made, say("go"))
        messages = invoke(way, made, say("and now?"))
        assert text_of(messages[-1]) == "done"
        assert [(result.tool_call_id, result.status) for result in results(model.sent[-1])] == [("a", "error")]

    @pytest.mark.parametrize("outside", [True, False])
    def test_v9_an_exception_that_becomes_a_message_is_truncated(self, way, outside):
        backend = MemoryBackend()
        middleware: list[Any] = [
            ToolReductionMiddleware(backend),
            ToolErrorMiddleware(on_error=lambda error, _: str(error)),
        ]
        made, model = agent([asks(call("a", "breaks"))], middleware[::-1] if outside else middleware, tools=[breaks])
        (result,) = results(invoke(way, made, say("go")))
        assert result.status == "error"
        assert len(text_of(result)) < 51_000
        assert saved_in(backend)["/suture/thread-1/trunc/a"] == "x" * 300_000
        assert [text_of(sent) for sent in results(model.sent[1])] == [text_of(result)]


@pytest.mark.parametrize("way", WAYS)
class TestWhoIsTruncated:
    def test_an_excluded_tool_is_left_alone(self, way):
        (result,) = results(run(way, [reads(100)], max_length_for_trunc=100, trunc_exclude_tools=["log"]))
        assert text_of(result) == log_of(100)

    def test_a_tool_can_have_a_backend_a_flag_and_a_handler_of_its_own(self, way):
        mine, common = MemoryBackend(), MemoryBackend()
        run(way, [reads(100)], common, max_length_for_trunc=100, tool_config={"log": ToolReductionConfig(backend=mine)})
        assert (list(saved_in(mine)), list(saved_in(common))) == (["/suture/thread-1/trunc/call_1"], [])
        skips = {"log": ToolReductionConfig(skip_truncation=True)}
        assert text_of(results(run(way, [reads(100)], max_length_for_trunc=100, tool_config=skips))[0]) == log_of(100)
        handled = {"log": ToolReductionConfig(trunc_handler=last_line)}
        (result,) = results(run(way, [reads(30)], skip_truncation=True, tool_config=handled))
        assert text_of(result) == "00030 day 1: ship 30 passed"

    def test_a_handler_may_be_async_and_is_told_the_call(self, way):
        seen: list[Any] = []

        async def handle(detail: Any) -> TruncResult:
            await asyncio.sleep(0)
            seen.append((detail.tool_context.name, detail.tool_context.call_id, detail.tool_argument.text))
            return TruncResult()

        run(way, [reads(30)], tool_config={"log": ToolReductionConfig(trunc_handler=handle)})
        assert seen == [("log", "call_1", '{"lines":30,"day":1}')]

    def test_a_path_maker_names_the_files(self, way):
        backend = MemoryBackend()

        async def place(detail: Any) -> str:
            await asyncio.sleep(0)
            return f"/by-tool/{detail.tool_context.name}.txt"

        run(way, [reads(100)], backend, max_length_for_trunc=100, gen_trunc_offload_file_path=place)
        assert list(saved_in(backend)) == ["/by-tool/log.txt"]

    def test_no_tool_may_claim_that_something_was_saved(self, way):
        @tool
        def liar(call_id: Annotated[str, InjectedToolCallId]) -> Any:
            """Lie."""
            marks = {SAVED: {"path": "/suture/thread-1/x", "phase": "trunc", "length": 1, "name": "liar"}, "kept": 1}
            return ToolMessage("42", tool_call_id=call_id, response_metadata=marks)

        made, _ = agent([asks(call("a", "liar"))], [ToolReductionMiddleware(MemoryBackend())], tools=[liar])
        (result,) = results(invoke(way, made, say("go")))
        assert result.response_metadata == {"kept": 1}


def holds(saver: InMemorySaver, text: str) -> bool:
    """Tell whether a text is anywhere in what a checkpointer keeps."""
    return text.encode() in repr((dict(saver.blobs), dict(saver.storage), dict(saver.writes))).encode()


@pytest.mark.parametrize("way", WAYS)
def test_v11_with_a_store_the_saved_text_is_not_in_the_checkpoints(way):
    saver, store = InMemorySaver(), InMemoryStore()
    made, _ = agent(
        [reads(3_000)],
        [ToolReductionMiddleware("store", max_length_for_trunc=200)],
        checkpointer=saver,
        store=store,
    )
    invoke(way, made, say("go"))
    assert holds(saver, "00001 day 1")
    assert not holds(saver, "01500 day 1")
    (item,) = store.search(("suture", "thread-1"))
    assert item.value == {"content": log_of(3_000)}


@pytest.mark.parametrize("way", WAYS)
def test_output_without_a_thread_is_kept_apart_from_other_conversations(way):
    backend = MemoryBackend()
    model = RecordingModel(replies=[reads(100), AIMessage("done"), reads(100)])
    made = create_agent(model, [log], middleware=[ToolReductionMiddleware(backend, max_length_for_trunc=100)])
    paths = [path_in(results(without_thread(way, made, say("go")))[0]) for _ in range(2)]
    assert set(saved_in(backend)) == set(paths)
    assert len({path.rsplit("/", 2)[0] for path in paths}) == 2
