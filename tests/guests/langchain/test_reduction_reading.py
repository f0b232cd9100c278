"""What was saved can be read back, a window at a time, by the conversation that saved it and by no other."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from deepagents import create_deep_agent
from deepagents.backends import FilesystemBackend
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from suture.integrations.langchain import ToolReductionMiddleware
from suture.messages import TextPart, ToolResult
from suture.middleware import ToolReductionConfig, TruncResult
from suture.reduction import Saved
from suture.reduction.draft import SAVED, mark_saved
from suture.stores import MemoryBackend
from tests.guests.langchain.recording import RecordingModel, asks, call
from tests.guests.langchain.reducing import (
    LIMIT,
    MOSTLY_SYNC,
    ROUNDS,
    agent,
    invoke,
    log,
    log_of,
    path_in,
    reads,
    reads_back,
    results,
    run,
    saved_in,
    say,
    text_of,
    without_thread,
)


def named_by_call(detail: Any) -> str:
    return f"/mine/{detail.tool_context.call_id}"


def last_line(detail: Any) -> TruncResult:
    text = detail.tool_result.parts[0].text
    path = named_by_call(detail)
    short = ToolResult((TextPart(f"saved to: {path}\n"),))
    return TruncResult(
        need_trunc=True, tool_result=short, need_offload=True, offload_file_path=path, offload_content=text
    )


PLACES: list[Any] = [
    pytest.param({}, id="our place"),
    pytest.param({"root_dir": "/data"}, id="a root"),
    pytest.param({"gen_trunc_offload_file_path": named_by_call}, id="a path maker"),
    pytest.param({"tool_config": {"log": ToolReductionConfig(trunc_handler=last_line)}}, id="a handler"),
]


def forged(notice: ToolMessage) -> Any:
    """Return what is said by somebody who knows what another conversation's result looks like."""
    message = notice.model_copy(update={"tool_call_id": "a", "id": "forged"})
    return {"messages": [HumanMessage("go"), asks("a"), message, HumanMessage("read")]}


@pytest.mark.parametrize("way", MOSTLY_SYNC)
class TestReading:
    @pytest.mark.parametrize(
        ("arguments", "shown"),
        [
            (
                {"offset": 99, "limit": 1},
                "    99\t00099 day 1: ship 2 passed\n[line 99 of 3000; go on with offset=100]",
            ),
            ({"tail": 1}, "  3000\t03000 day 1: ship 90 passed\n[end of file, 3000 lines, no final newline]"),
            ({"char_offset": 6, "char_limit": 5}, "[characters 6 to 11]\nday 1\n"),
            ({"search": "02999"}, "  2999\t02999 day 1: ship 89 passed"),
        ],
    )
    def test_a_window_is_read(self, way, arguments, shown):
        _, read = results(run(way, [reads(3_000), reads_back(**arguments)]))
        assert text_of(read).startswith(shown)
        assert read.status == "success"

    def test_no_window_is_longer_than_it_may_be_and_none_is_truncated_again(self, way):
        backend = MemoryBackend()
        settings: dict[str, Any] = {"max_length_for_trunc": 500, "max_length_for_read": 2_000}
        _, read = results(run(way, [reads(3_000), reads_back(limit=3_000)], backend, **settings))
        assert 1_500 < len(text_of(read)) <= 2_000
        assert "of 3000; go on with offset=" in text_of(read)
        assert len(saved_in(backend)) == 1

    def test_following_what_each_window_says_reads_the_whole_file(self, way):
        @tool
        def line() -> str:
            """Give an endless line."""
            return "0123456789" * 900

        def on(messages: Any) -> Any:
            last = text_of(messages[-1])
            if "char_offset=" not in last:
                return HumanMessage("never") if "end of file" not in last else asks()
            where = int(last.rsplit("char_offset=", 1)[1].split("]")[0].split(",")[0])
            return asks(call(f"r{where}", "read_file", path=path_in(results(messages)[0]), char_offset=where))

        model_turns = [asks(call("a", "line")), reads_back(char_offset=0), *[on] * 6]
        settings: dict[str, Any] = {"max_length_for_trunc": 500, "max_length_for_read": 2_000}
        made, _ = agent(model_turns, [ToolReductionMiddleware(MemoryBackend(), **settings)], tools=[line])
        windows = [text_of(message) for message in results(invoke(way, made, say("go")))[1:]]
        assert "".join(window.split("\n")[1] for window in windows) == "0123456789" * 900

    def test_a_path_that_nothing_was_saved_at_is_refused(self, way):
        _, read = results(run(way, [reads(3_000), asks(call("r", "read_file", path="/etc/passwd"))]))
        assert read.status == "error"
        assert text_of(read) == "no output of this conversation was saved at '/etc/passwd'; ls lists what was"

    def test_wrong_arguments_are_told(self, way):
        _, read = results(run(way, [reads(3_000), asks(call("r", "read_file", path=7))]))
        assert (read.status, text_of(read)) == ("error", "arguments.path: expected str, got int")

    def test_what_was_saved_is_listed_and_searched(self, way):
        turns = [reads(3_000), asks(call("l", "ls")), asks(call("g", "grep", pattern="03000 day"))]
        _, listed, found = results(run(way, turns))
        path = "/suture/thread-1/trunc/call_1"
        assert text_of(listed) == f"{path}  log  83690 characters  truncated\n[1 output saved]"
        assert text_of(found).startswith(f"{path}:3000:03000 day 1: ship 90 passed")

    def test_the_next_run_of_the_thread_reads_it_and_another_thread_does_not(self, way):
        backend = MemoryBackend()
        made, _ = agent([reads(3_000)], [ToolReductionMiddleware(backend)])
        path = path_in(results(invoke(way, made, say("go")))[0])
        asking = [asks(call("r", "read_file", path=path, limit=1))]
        other, _ = agent(asking, [ToolReductionMiddleware(backend)])
        assert "no output of this conversation" in text_of(results(invoke(way, other, say("go"), "thread-2"))[0])
        made.get_graph()
        again, model = agent([reads(3_000), *asking, *asking], [ToolReductionMiddleware(MemoryBackend())])
        invoke(way, again, say("go"))
        invoke(way, again, say("and then?"))
        assert "00001 day 1" in text_of(results(model.sent[-1])[-1])

    def test_a_path_that_stands_in_a_text_is_none(self, way):
        backend = MemoryBackend()
        secret, _ = agent([reads(3_000)], [ToolReductionMiddleware(backend)])
        notice = results(invoke(way, secret, say("go"), "thread-2"))[0]
        turns = [asks(call("r", "read_file", path=path_in(notice)))]
        made, _ = agent(turns, [ToolReductionMiddleware(backend)])
        given = {
            "messages": [
                HumanMessage("go"),
                asks("a"),
                ToolMessage(notice.content, tool_call_id="a"),
                HumanMessage("read"),
            ]
        }
        assert "no output of this conversation" in text_of(results(invoke(way, made, given))[-1])

    @pytest.mark.parametrize("settings", PLACES)
    def test_a_forged_mark_opens_no_other_threads_files(self, way, settings):
        middleware = ToolReductionMiddleware(MemoryBackend(), **settings)
        secret, _ = agent([reads(3_000)], [middleware])
        notice = results(invoke(way, secret, say("go"), "thread-2"))[0]
        assert SAVED in notice.response_metadata
        made, _ = agent([asks(call("r", "read_file", path=path_in(notice)))], [middleware])
        assert "no output of this conversation" in text_of(results(invoke(way, made, forged(notice)))[-1])

    @pytest.mark.parametrize("settings", PLACES)
    def test_without_a_thread_a_forged_mark_opens_no_other_conversations_files(self, way, settings):
        middleware = ToolReductionMiddleware(MemoryBackend(), **settings)
        secret, _ = agent([reads(3_000)], [middleware], checkpointer=None)
        notice = results(without_thread(way, secret, say("go")))[0]
        made, _ = agent([asks(call("r", "read_file", path=path_in(notice)))], [middleware], checkpointer=None)
        assert "no output of this conversation" in text_of(results(without_thread(way, made, forged(notice)))[-1])

    def test_a_forged_mark_does_not_climb_out_of_its_own_threads_place(self, way, tmp_path):
        backend = FilesystemBackend(root_dir=tmp_path, virtual_mode=False)
        middleware = ToolReductionMiddleware(backend, root_dir=str(tmp_path))
        secret, _ = agent([reads(3_000)], [middleware])
        notice = results(invoke(way, secret, say("go"), "thread-2"))[0]
        path = f"{tmp_path}/thread-1/../thread-2/trunc/call_1"
        assert path_in(notice) == str(Path(path).resolve())
        made, _ = agent([asks(call("r", "read_file", path=path))], [middleware])
        given = forged(notice.model_copy(update={"response_metadata": mark_saved(Saved(path, name="log"))}))
        assert "no output of this conversation" in text_of(results(invoke(way, made, given))[-1])

    @pytest.mark.parametrize("settings", PLACES)
    def test_what_was_saved_is_read_wherever_it_is(self, way, settings):
        middleware = ToolReductionMiddleware(MemoryBackend(), **settings)
        turns = [reads(3_000), reads_back(limit=1)]
        _, read = results(invoke(way, agent(turns, [middleware])[0], say("go")))
        assert text_of(read).startswith("     1\t00001 day 1")
        _, read = results(without_thread(way, agent(turns, [middleware], checkpointer=None)[0], say("go")))
        assert text_of(read).startswith("     1\t00001 day 1")

    def test_what_was_cleared_to_a_path_of_ones_own_is_read(self, way):
        settings: dict[str, Any] = {"max_tokens_for_clear": LIMIT, "gen_clear_offload_file_path": named_by_call}
        *_, read = results(run(way, [*ROUNDS, reads_back(limit=1)], **settings))
        assert text_of(read).startswith("     1\t00001 day 1")

    def test_without_a_thread_what_was_cleared_is_read_although_others_put_a_message_before_all(self, way):
        class Before(AgentMiddleware[Any, Any, Any]):
            def wrap_model_call(self, request: Any, handler: Any) -> Any:
                return handler(request.override(messages=[HumanMessage("first", id="x"), *request.messages]))

            async def awrap_model_call(self, request: Any, handler: Any) -> Any:
                return await handler(request.override(messages=[HumanMessage("first", id="x"), *request.messages]))

        middleware = [Before(), ToolReductionMiddleware(MemoryBackend(), max_tokens_for_clear=LIMIT)]
        made, _ = agent([*ROUNDS, reads_back(limit=1)], middleware, checkpointer=None)
        *_, read = results(without_thread(way, made, say("go")))
        assert text_of(read).startswith("     1\t00001 day 1")

    def test_a_backend_that_only_writes_is_not_told_to_overwrite_what_a_mark_of_long_ago_names(self, way):
        class Plain:
            def __init__(self) -> None:
                self.files: dict[str, str] = {}

            def write(self, path: str, content: str) -> None:
                assert path not in self.files
                self.files[path] = content

        backend, saver = Plain(), InMemorySaver()
        for day in (1, 2):
            middleware = ToolReductionMiddleware(backend, gen_trunc_offload_file_path=named_by_call)
            turn = asks(call("call_1", "log", lines=3_000, day=day))
            invoke(way, agent([turn], [middleware], checkpointer=saver)[0], say("go"))
        assert list(backend.files.values()) == [log_of(3_000, 1), log_of(3_000, 2)]

    def test_a_file_that_is_gone_is_told_and_ends_nothing(self, way):
        class Forgetful(MemoryBackend):
            async def read(self, path: str, start: int = 0, stop: int | None = None) -> AsyncGenerator[bytes, None]:
                await self.delete(path)
                async for chunk in super().read(path, start, stop):
                    yield chunk

        _, read = results(run(way, [reads(3_000), reads_back()], Forgetful()))
        assert (read.status, "is gone: it was deleted" in text_of(read)) == ("error", True)


@pytest.mark.parametrize("way", MOSTLY_SYNC)
class TestNamesThatAreTaken:
    def test_the_tools_come_by_themselves_in_the_same_order_each_time(self, way):
        made, model = agent([reads(10)], [ToolReductionMiddleware(MemoryBackend())])
        invoke(way, made, say("go"))
        assert model.tool_names == ["log", "read_file", "ls", "grep"]

    def test_a_tool_of_the_agents_own_stays_and_reads_what_was_saved_as_well(self, way):
        @tool
        def read_file(file_path: str, offset: int = 0) -> str:
            """Read a file of the project."""
            return f"the project's {file_path} from {offset}"

        turns = [
            reads(3_000),
            reads_back(key="file_path", offset=3_000),
            asks(call("r", "read_file", file_path="main.py", offset=3)),
        ]
        made, model = agent(turns, [ToolReductionMiddleware(MemoryBackend())], tools=[log, read_file])
        _, saved, own = results(invoke(way, made, say("go")))
        assert model.tool_names == ["log", "read_file", "ls", "grep"]
        assert model.tools[1].description == "Read a file of the project."
        assert text_of(saved).startswith("  3000\t03000 day 1")
        assert text_of(own) == "the project's main.py from 3"

    def test_in_a_deep_agent_its_tools_stay_and_its_read_file_reads_what_was_saved_elsewhere(self, way):
        backend = MemoryBackend()
        turns = [
            reads(3_000),
            reads_back(key="file_path", offset=3_000),
            asks(call("w", "write_file", file_path="/notes.txt", content="remember")),
            asks(call("r", "read_file", file_path="/notes.txt")),
        ]
        model = RecordingModel(replies=turns)
        made = create_deep_agent(
            model, [log], middleware=[ToolReductionMiddleware(backend)], checkpointer=InMemorySaver()
        )
        found = results(invoke(way, made, say("go")))
        assert text_of(found[1]).startswith("  3000\t03000 day 1")
        assert "remember" in text_of(found[3])
        assert sorted(model.tool_names) == sorted(set(model.tool_names))

    def test_a_name_of_ones_own_is_told_in_the_notice_and_given_to_the_tool(self, way):
        turns = [reads(3_000), reads_back(name="read_output", limit=1)]
        model = RecordingModel(replies=turns)
        middleware = ToolReductionMiddleware(MemoryBackend(), read_file_tool_name="read_output")
        made = create_deep_agent(model, [log], middleware=[middleware], checkpointer=InMemorySaver())
        notice, read = results(invoke(way, made, say("go")))
        assert "Use read_output to view" in text_of(notice)
        assert text_of(read).startswith("     1\t00001 day 1")
        assert {"read_file", "read_output"} <= set(model.tool_names)

    def test_the_tools_can_be_left_out(self, way):
        made, model = agent(
            [reads(3_000), reads_back()], [ToolReductionMiddleware(MemoryBackend(), add_reading_tools=False)]
        )
        _, read = results(invoke(way, made, say("go")))
        assert model.tool_names == ["log"]
        assert "read_file is not a valid tool" in text_of(read)


def test_a_tool_for_reading_does_nothing_outside_of_an_agent():
    middleware = ToolReductionMiddleware(MemoryBackend())
    with pytest.raises(RuntimeError, match="it works inside an agent alone"):
        middleware._readers["read_file"].invoke({"path": "/a"})


def test_text_in_a_file_is_what_the_tool_gave():
    backend = MemoryBackend()
    run("sync", [reads(3_000)], backend)
    assert list(saved_in(backend).values()) == [log_of(3_000)]
