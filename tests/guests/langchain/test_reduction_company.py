"""Histories are reduced in the company of other middlewares, graphs, streams and threads."""

import asyncio
import threading
from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    ModelRetryMiddleware,
    SummarizationMiddleware,
)
from langchain.agents.middleware.types import ModelRequest
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.stores import InMemoryByteStore
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore
from pydantic import BaseModel

from suture.integrations.langchain import PatchToolCallsMiddleware, ToolReductionMiddleware
from suture.stores import MemoryBackend
from tests.guests.langchain.recording import RecordingModel, asks, call
from tests.guests.langchain.reducing import (
    LIMIT,
    ROUNDS,
    WAYS,
    agent,
    config,
    invoke,
    log,
    log_of,
    path_in,
    payload,
    reads,
    reads_back,
    results,
    saved_in,
    say,
    shown,
    text_of,
)


class Answer(BaseModel):
    """The answer."""

    ships: int


class Flaky(RecordingModel):
    """Fails the first time that it sees something cleared."""

    failed: bool = False

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        if not self.failed and "cleared" in shown(messages):
            self.failed = True
            self.sent.append(list(messages))
            raise TimeoutError
        return super()._generate(messages, *args, **kwargs)


@pytest.mark.parametrize("way", WAYS)
class TestAmongOthers:
    def test_a_retry_outside_clears_once_and_the_state_has_it(self, way):
        backend = MemoryBackend()
        model = Flaky(replies=list(ROUNDS))
        retry = ModelRetryMiddleware(max_retries=1, initial_delay=0, jitter=False)
        made = create_agent(
            model,
            [log],
            middleware=[retry, ToolReductionMiddleware(backend, max_tokens_for_clear=LIMIT)],
            checkpointer=InMemorySaver(),
        )
        messages = invoke(way, made, say("go"))
        assert shown(model.sent[-2]) == shown(model.sent[-1]) == shown(messages) == ["cleared"] * 4 + ["5"]
        assert payload(model.sent[-2]) == payload(model.sent[-1])
        assert len(saved_in(backend)) == 4

    def test_a_model_call_that_fails_leaves_the_state_and_the_next_run_clears(self, way):
        backend = MemoryBackend()
        model = Flaky(replies=list(ROUNDS))
        middleware = ToolReductionMiddleware(backend, max_tokens_for_clear=LIMIT)
        made = create_agent(model, [log], middleware=[middleware], checkpointer=InMemorySaver())
        with pytest.raises(TimeoutError):
            invoke(way, made, say("go"))
        assert shown(made.get_state(config()).values["messages"]) == ["1", "2", "3", "4", "5"]
        assert shown(invoke(way, made, None)) == ["cleared"] * 4 + ["5"]
        assert len(saved_in(backend)) == 4

    def test_a_structured_response_comes_with_it(self, way):
        final = asks(call("answer", "Answer", ships=97))
        made, _ = agent(
            [*ROUNDS, final],
            [ToolReductionMiddleware(MemoryBackend(), max_tokens_for_clear=LIMIT)],
            response_format=ToolStrategy(Answer),
        )
        given = say("go")
        state = made.invoke(given, config()) if way == "sync" else asyncio.run(made.ainvoke(given, config()))
        assert state["structured_response"] == Answer(ships=97)
        assert shown(state["messages"])[:5] == ["cleared"] * 4 + ["5"]

    def test_what_another_middleware_changed_for_one_request_is_not_kept(self, way):
        class Upper(AgentMiddleware[Any, Any, Any]):
            def changed(self, request: ModelRequest[Any]) -> Any:
                messages: list[Any] = [
                    message.model_copy(update={"content": text_of(message).upper()})
                    if isinstance(message, ToolMessage) and message.tool_call_id == "call_1"
                    else message
                    for message in request.messages
                ]
                return request.override(messages=messages)

            def wrap_model_call(self, request: Any, handler: Any) -> Any:
                return handler(self.changed(request))

            async def awrap_model_call(self, request: Any, handler: Any) -> Any:
                return await handler(self.changed(request))

        made, model = agent(ROUNDS, [Upper(), ToolReductionMiddleware(MemoryBackend(), max_tokens_for_clear=LIMIT)])
        messages = invoke(way, made, say("go"))
        assert shown(model.sent[-1]) == ["cleared"] * 4 + ["5"]
        assert shown(messages) == ["1"] + ["cleared"] * 3 + ["5"]

    def test_copies_that_another_middleware_makes_do_not_matter(self, way):
        copies = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=10**9)])
        made, _ = agent(ROUNDS, [copies, ToolReductionMiddleware(MemoryBackend(), max_tokens_for_clear=LIMIT)])
        assert shown(invoke(way, made, say("go"))) == ["cleared"] * 4 + ["5"]

    def test_inside_another_graph_the_outer_state_has_it_too(self, way):
        inner, model = agent(
            ROUNDS, [ToolReductionMiddleware(MemoryBackend(), max_tokens_for_clear=LIMIT)], checkpointer=None
        )
        graph = StateGraph(MessagesState)
        graph.add_node("agent", inner)
        graph.add_edge(START, "agent")
        outer = graph.compile(checkpointer=InMemorySaver())
        assert shown(invoke(way, outer, say("go"))) == ["cleared"] * 4 + ["5"]
        invoke(way, outer, say("and then?"))
        assert shown(model.sent[-1]) == ["cleared"] * 4 + ["5"]

    def test_in_a_deep_agent_the_state_has_it_also_after_it_was_loaded_again(self, way):
        backend, saver = MemoryBackend(), InMemorySaver()
        model = RecordingModel(replies=list(ROUNDS))

        def deep() -> Any:
            settings: dict[str, Any] = {"max_tokens_for_clear": 10, "token_counter": lambda messages, _: len(messages)}
            middleware = ToolReductionMiddleware(backend, **settings)
            return create_deep_agent(model, [log], middleware=[middleware], checkpointer=saver)

        made = deep()
        assert shown(invoke(way, made, say("go"))) == ["cleared"] * 4 + ["5"]
        assert shown(deep().get_state(config()).values["messages"]) == ["cleared"] * 4 + ["5"]
        invoke(way, deep(), say("and then?"))
        assert shown(model.sent[-1]) == ["cleared"] * 4 + ["5"]
        assert len(saved_in(backend)) == 4

    @pytest.mark.parametrize("outside", [True, False])
    def test_a_history_that_is_broken_is_cleared_and_mended_and_nothing_is_lost(self, way, outside):
        long = log_of(200)
        history = [
            HumanMessage("go"),
            asks("a", "b"),
            ToolMessage(long, tool_call_id="a"),
            HumanMessage("wait"),
            ToolMessage(long + "b", tool_call_id="b"),
            ToolMessage(long + "x", tool_call_id="nobody's"),
            asks("a"),
            HumanMessage("well?"),
        ]
        backend = MemoryBackend()
        middleware = [
            ToolReductionMiddleware(backend, max_tokens_for_clear=1_000, clear_retention_suffix_limit=0),
            PatchToolCallsMiddleware(),
        ]
        made, model = agent([], middleware[::-1] if outside else middleware)
        messages = invoke(way, made, {"messages": history})
        assert sorted(saved_in(backend).values()) == [long, long + "b"]
        assert [text_of(message).partition(" ")[0] for message in results(model.sent[-1])][:2] == [
            "<persisted-output>Tool"
        ] * 2
        said = [text_of(message) for message in messages if message.type == "human"]
        assert (said[0], said[-1]) == ("go", "well?")
        assert long + "x" in "".join(map(text_of, model.sent[-1]))


@pytest.mark.parametrize("mode", ["messages", "updates", "values"])
@pytest.mark.parametrize("way", WAYS)
def test_streaming_tells_what_was_cleared_as_a_change_of_the_state_and_not_as_new_messages(way, mode):
    made, _ = agent(ROUNDS, [ToolReductionMiddleware(MemoryBackend(), max_tokens_for_clear=LIMIT)])

    async def collect() -> list[Any]:
        return [chunk async for chunk in made.astream(say("go"), config(), stream_mode=mode)]

    chunks = list(made.stream(say("go"), config(), stream_mode=mode)) if way == "sync" else asyncio.run(collect())
    if mode == "messages":
        tools = [chunk[0] for chunk in chunks if isinstance(chunk[0], ToolMessage)]
        assert shown(tools) == ["1", "2", "3", "4", "5"]
    elif mode == "values":
        assert shown(chunks[-1]["messages"]) == ["cleared"] * 4 + ["5"]
    assert shown(made.get_state(config()).values["messages"]) == ["cleared"] * 4 + ["5"]


@pytest.mark.parametrize("way", WAYS)
def test_a_subagent_has_a_place_of_its_own_in_the_thread_and_reads_what_it_saved(way):
    backend = MemoryBackend()
    middleware = ToolReductionMiddleware(backend, max_length_for_trunc=1_000)
    inner = RecordingModel(replies=[reads(100), reads_back(key="file_path", offset=100)])
    helper: Any = {
        "name": "helper",
        "description": "Helps.",
        "system_prompt": "Help.",
        "model": inner,
        "tools": [log],
        "middleware": [middleware],
    }
    outer = RecordingModel(replies=[reads(100), asks(call("t", "task", description="go", subagent_type="helper"))])
    made = create_deep_agent(outer, [log], middleware=[middleware], subagents=[helper], checkpointer=InMemorySaver())
    invoke(way, made, say("go"))
    mine, others = path_in(results(outer.sent[-1])[0]), path_in(results(inner.sent[-1])[0])
    assert mine == "/suture/thread-1/trunc/call_1"
    assert others.startswith("/suture/thread-1/")
    assert others.removesuffix("/trunc/call_1") not in {others, "/suture/thread-1"}
    assert set(saved_in(backend)) == {mine, others}
    assert text_of(results(inner.sent[-1])[1]).startswith("   100\t00100 day 1")


def test_messages_without_an_id_are_changed_for_the_request_alone():
    middleware = ToolReductionMiddleware(MemoryBackend(), max_tokens_for_clear=100)
    history: list[Any] = [HumanMessage("go")]
    for number in (1, 2):
        history += [asks(f"c{number}"), ToolMessage(log_of(100), tool_call_id=f"c{number}", name="pay")]
    request = ModelRequest(model=RecordingModel(), messages=history, state={"messages": history})
    sent: list[Any] = []

    def handler(given: Any) -> Any:
        sent.append(given.messages)
        return AIMessage("done")

    assert middleware.wrap_model_call(request, handler) == AIMessage("done")
    assert [len(text_of(message)) > 500 for message in results(sent[0])] == [False, True]
    assert [len(text_of(message)) > 500 for message in results(history)] == [True, True]


def test_one_middleware_serves_many_threads_at_once():
    backend = MemoryBackend()
    middleware = ToolReductionMiddleware(backend, max_tokens_for_clear=LIMIT)
    found: dict[str, Any] = {}

    def work(thread: str) -> None:
        made, _ = agent(ROUNDS, [middleware])
        found[thread] = shown(invoke("sync", made, say("go"), thread))

    threads = [threading.Thread(target=work, args=(f"thread-{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(found.values()) == [["cleared"] * 4 + ["5"]] * 8
    assert len(saved_in(backend)) == 32


def test_one_agent_serves_many_tasks_at_once():
    backend = MemoryBackend()
    middleware = ToolReductionMiddleware(backend, max_tokens_for_clear=LIMIT)

    async def work(thread: str) -> Any:
        made, _ = agent(ROUNDS, [middleware])
        return shown((await made.ainvoke(say("go"), config(thread)))["messages"])

    async def main() -> Any:
        return await asyncio.gather(*[work(f"thread-{number}") for number in range(8)])

    assert asyncio.run(main()) == [["cleared"] * 4 + ["5"]] * 8
    assert len(saved_in(backend)) == 32


@pytest.mark.parametrize("way", WAYS)
def test_of_a_very_long_result_no_more_is_left_than_a_deep_agent_leaves_itself(way):
    left: list[int] = []
    for middleware in ([], [ToolReductionMiddleware(MemoryBackend())]):
        model = RecordingModel(replies=[reads(10_000)])
        made = create_deep_agent(model, [log], middleware=middleware, checkpointer=InMemorySaver())
        [answer] = results(invoke(way, made, say("go")))
        left.append(len(text_of(answer)))
    assert left[1] <= left[0] < 2_000


def a_place(kind: str) -> Any:
    return {"memory": MemoryBackend, "graph store": InMemoryStore, "key-value store": InMemoryByteStore}[kind]()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["memory", "graph store", "key-value store"])
def test_what_was_saved_can_be_read_when_a_summary_has_taken_its_place(way, kind):
    """LangChain's summary removes the messages whose marks say what was saved; the thread's own folder is still its."""
    model, backend = RecordingModel(replies=[reads(2_000)]), a_place(kind)
    short = SummarizationMiddleware(
        RecordingModel(replies=["a summary"]), trigger=("messages", 5), keep=("messages", 1)
    )
    reduction = ToolReductionMiddleware(backend, max_length_for_trunc=1_000)
    made = create_agent(model, [log], middleware=[short, reduction], checkpointer=InMemorySaver())
    path = path_in(results(invoke(way, made, say("go")))[0])
    invoke(way, made, say("on"))
    model.replies[:] = [
        asks(call("one", "read_file", path=path, offset=1_500, limit=3)),
        asks(call("two", "ls")),
        asks(call("three", "grep", pattern="01234 day")),
    ]
    messages = invoke(way, made, say("read it"))
    assert not [each for each in results(messages) if each.tool_call_id == "call_1"]
    given = {each.tool_call_id: text_of(each) for sent in model.sent for each in sent if isinstance(each, ToolMessage)}
    read, listed, found = given["one"], given["two"], given["three"]
    assert log_of(2_000).split("\n")[1_499] in read
    assert path in listed
    assert "01234 day 1" in found
    model.replies[:] = [asks(call("four", "read_file", path=path.replace("thread-1", "thread-2")))]
    invoke(way, made, say("and of others?"))
    [refused] = [each for each in model.sent[-1] if isinstance(each, ToolMessage) and each.tool_call_id == "four"]
    assert "no output of this conversation was saved" in text_of(refused)
