"""What a cancel meets in the middle: streams, threads, hooks. And how the conversation goes on afterwards."""

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

import suture
from suture import ChatModelAgent, ChatModelAgentMiddleware, Delta, Message, Outcome, tool
from suture.middleware import ToolReduction
from suture.stores import MemoryBackend, MemoryStore
from suture.wires import get_chat_wire
from tests.agent.durability.scenes import (
    MALFORMED,
    STOPPED,
    UNKNOWN,
    WIRES,
    AnyStore,
    acceptable,
    make,
    play,
    results,
    roles,
    said,
    seen,
    start,
    turn,
)


class Streams:
    """A model whose first reply stops in the middle, after these pieces; then it answers."""

    def __init__(self, wire: str, *pieces: Delta) -> None:
        self.wire, self.pieces = wire, pieces
        self.profile = "openai-chat" if wire == "openai-chat" else "pairing"
        self.requests: list[Any] = []
        self.stuck = asyncio.Event()
        self.closed = 0

    async def stream(self, request: Any, /) -> AsyncIterator[Any]:
        self.requests.append(request)
        if len(self.requests) > 1:
            yield get_chat_wire(self.wire).speak("assistant", "answered")
            return
        try:
            for piece in self.pieces:
                yield piece
            self.stuck.set()
            await asyncio.Event().wait()
        finally:
            self.closed += 1


@tool
async def look(query: str) -> str:
    """Look."""
    raise AssertionError(f"never called as a whole, but with {query}")


async def cut(agent: ChatModelAgent[Any], model: Streams, **choices: Any) -> suture.RunResult[Any]:
    """Cancel a run in the middle of the model's reply."""
    run = agent.stream("go", **choices)
    waiting = start(run)
    await model.stuck.wait()
    result = await run.cancel()
    assert await waiting is result
    assert (result.outcome, model.closed) == (Outcome.CANCELLED, 1)
    return result


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("streaming", [True, False])
def test_the_text_that_was_said_before_a_cancel_is_kept(store: AnyStore, wire: str, streaming: bool):
    model = Streams(wire, Delta("Let "), Delta("me "))
    agent = ChatModelAgent(name="a", model=model, checkpoint_store=store)

    async def scene():
        result = await cut(agent, model, checkpoint_id="k", streaming=streaming)
        assert [said(message) for message in result.messages] == ["go", "Let me "]
        assert roles(result.messages) == ["user", "assistant"]
        done = await agent.run("and now?", checkpoint_id="k")
        assert [said(message) for message in model.requests[1].messages] == ["go", "Let me ", "and now?"]
        assert (done.output, acceptable(done.messages, wire)) == ("answered", True)

    play(scene())


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("kept", [True, False], ids=["on the checkpoint", "on the messages"])
def test_a_call_cut_in_its_arguments_is_answered_as_malformed(store: AnyStore, wire: str, kept: bool):
    model = Streams(
        wire,
        Delta("Looking. "),
        Delta(call_index=0, call_id="c1", name="look", arguments='{"query": "pai'),
    )
    agent = ChatModelAgent(name="a", model=model, tools=[look], checkpoint_store=store)

    async def scene():
        result = await cut(agent, model, checkpoint_id="k")
        assert results(result.messages) == [("c1", MALFORMED.format("look", "c1"))]
        assert roles(result.messages) == ["user", "assistant", "tool"]
        if kept:
            done = await agent.run("and now?", checkpoint_id="k")
        else:
            user = get_chat_wire(wire).user("and now?")
            done = await agent.run([*result.messages, user])
        sent = model.requests[1].messages
        assert results(sent) == [("c1", MALFORMED.format("look", "c1"))]
        assert roles(sent) == ["user", "assistant", "tool", "user"]
        assert acceptable(sent, wire)
        assert (done.output, acceptable(done.messages, wire)) == ("answered", True)

    play(scene())


@pytest.mark.parametrize("wire", WIRES)
def test_a_resume_after_a_cut_reply_asks_the_model_again(store: AnyStore, wire: str):
    model = Streams(wire, Delta("Let me "), Delta(call_index=0, call_id="c1", name="look", arguments='{"que'))
    agent = ChatModelAgent(name="a", model=model, tools=[look], max_iterations=2, checkpoint_store=store)

    async def scene():
        await cut(agent, model, checkpoint_id="k")
        done = await agent.resume("k")
        assert (done.outcome, done.output) == (Outcome.FINISHED, "answered")
        sent = model.requests[1].messages
        assert roles(sent)[-1] != "assistant"
        assert acceptable(sent, wire)
        assert acceptable(done.messages, wire)

    play(scene())


def test_nothing_said_before_a_cancel_leaves_nothing_behind(store: AnyStore):
    model = Streams("message")
    agent = ChatModelAgent(name="a", model=model, checkpoint_store=store)

    async def scene():
        result = await cut(agent, model, checkpoint_id="k")
        assert result.messages == [Message.user("go")]
        assert (await agent.resume("k")).output == "answered"

    play(scene())


@pytest.mark.parametrize("wire", WIRES)
def test_the_call_of_a_tool_in_a_thread_is_unknown(store: AnyStore, wire: str):
    began, go, ended = threading.Event(), threading.Event(), threading.Event()
    effects: list[str] = []

    @tool
    def blocking() -> str:
        """Block."""
        began.set()
        go.wait(30)
        effects.append("blocking")
        ended.set()
        return "too late"

    @tool
    async def slow() -> str:
        """Wait."""
        await asyncio.Event().wait()
        return "never"

    replies = [turn(("c1", "blocking"), ("c2", "slow"), wire=wire), "done"]
    agent, model = make(replies, blocking, slow, wire=wire, checkpoint_store=store)

    async def scene():
        run = agent.stream("go", checkpoint_id="k")
        waiting = start(run)
        await asyncio.to_thread(began.wait, 30)
        result = await run.cancel()
        await waiting
        # It is told before the thread ends, which nothing can stop.
        assert effects == []
        truth = [("c1", UNKNOWN.format("blocking", "c1")), ("c2", STOPPED.format("slow", "c2"))]
        assert results(result.messages) == truth
        go.set()
        done = await agent.run("and now?", checkpoint_id="k")
        assert (results(model.requests[1].messages), done.output) == (truth, "done")
        assert acceptable(done.messages, wire)

    play(scene())
    assert ended.wait(30)
    assert effects == ["blocking"]


@pytest.mark.parametrize("siblings", [0, 1])
def test_a_tool_that_swallows_the_cancel_does_not_keep_the_run_going(store: AnyStore, siblings: int):
    began, ran = asyncio.Event(), list[str]()

    @tool
    async def stubborn() -> str:
        """End properly."""
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ran.append("saved")
            return "saved what there was"
        return "never"

    @tool
    async def plain() -> str:
        """Do nothing."""
        return "nothing"

    calls = [("c1", "stubborn"), *[(f"s{n}", "plain") for n in range(siblings)]]
    agent, model = make([turn(*calls), "done"], stubborn, plain, checkpoint_store=store)

    async def scene():
        run = agent.stream("go", checkpoint_id="k")
        waiting = start(run)
        await began.wait()
        result = await run.cancel()
        assert await waiting is result
        assert (result.outcome, len(model.requests)) == (Outcome.CANCELLED, 1)
        assert results(result.messages)[0][1] in {"saved what there was", STOPPED.format("stubborn", "c1")}
        assert (await agent.resume("k")).output == "done"
        assert ran == ["saved"]

    play(scene())


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("way", ["messages", "checkpoint", "resume"])
def test_the_conversation_goes_on_after_a_cancel_and_nothing_runs_twice(store: AnyStore, wire: str, way: str):
    ran: list[str] = []
    began, finished = asyncio.Event(), asyncio.Event()

    @tool
    async def quick() -> str:
        """End."""
        ran.append("quick")
        finished.set()
        return "quick result"

    @tool
    async def slow() -> str:
        """Wait."""
        ran.append("slow")
        began.set()
        await asyncio.Event().wait()
        return "never"

    agent, model = make(
        [turn(("c1", "slow"), ("c2", "quick"), wire=wire), "done"], quick, slow, wire=wire, checkpoint_store=store
    )

    async def scene():
        run = agent.stream("go", checkpoint_id="k")
        waiting = start(run)
        await began.wait()
        await finished.wait()
        result = await run.cancel()
        await waiting
        if way == "messages":
            done = await agent.run([*result.messages, get_chat_wire(wire).user("next")])
        elif way == "checkpoint":
            done = await agent.run("next", checkpoint_id="k")
        else:
            done = await agent.resume("k")
        truth = [("c1", STOPPED.format("slow", "c1")), ("c2", "quick result")]
        assert results(model.requests[1].messages) == truth
        after = [] if way == "resume" else ["user"]
        assert roles(model.requests[1].messages) == ["user", "assistant", "tool", "tool", *after]
        assert roles(done.messages) == ["user", "assistant", "tool", "tool", *after, "assistant"]
        assert (done.output, sorted(ran)) == ("done", ["quick", "slow"])
        assert acceptable(done.messages, wire)

    play(scene())


def test_an_idempotent_tool_that_was_stopped_may_be_run_again_on_resume_and_its_sibling_not(store: AnyStore):
    ran: list[str] = []
    began, go = asyncio.Event(), asyncio.Event()

    @tool(idempotent=True)
    async def fetch() -> str:
        """Fetch."""
        ran.append("fetch")
        began.set()
        await go.wait()
        return "fetched"

    @tool
    async def post() -> str:
        """Post."""
        ran.append("post")
        return "posted"

    agent, model = make([turn(("c1", "post"), ("c2", "fetch")), "done"], fetch, post, checkpoint_store=store)

    async def scene():
        run = agent.stream("go", checkpoint_id="k")
        waiting = start(run)
        await began.wait()
        await run.cancel()
        await waiting
        go.set()
        done = await agent.resume("k")
        assert ran.count("post") == 1
        told = dict(results(model.requests[1].messages))
        assert told["c1"] == "posted"
        assert told["c2"] == ("fetched" if ran.count("fetch") == 2 else STOPPED.format("fetch", "c2"))
        assert done.output == "done"

    play(scene())


def test_the_outcome_of_a_cancel_that_meets_the_end_is_the_end():
    last = asyncio.Event()

    class Ends(ChatModelAgentMiddleware[Any]):
        async def after_agent(self, state, outcome):
            last.set()
            for _ in range(5):
                await asyncio.sleep(0)

    agent, _ = make(["done"], middlewares=[Ends()], checkpoint_store=MemoryStore())

    async def scene():
        run = agent.stream("go", checkpoint_id="k")
        waiting = start(run)
        await last.wait()
        result = await run.cancel()
        assert await waiting is result
        assert (result.outcome, result.output) == (Outcome.FINISHED, "done")

    play(scene())


def test_a_hook_that_is_cancelled_leaves_the_history_before_it(store: AnyStore):
    began = asyncio.Event()

    class Thinks(ChatModelAgentMiddleware[Any]):
        async def before_model_rewrite_state(self, state, model_context):
            began.set()
            if model_context.turn == 1 and len(state.messages) == 1:
                await asyncio.Event().wait()

    agent, model = make(["done"], middlewares=[Thinks()], checkpoint_store=store)

    async def scene():
        run = agent.stream("go", checkpoint_id="k")
        reading = asyncio.ensure_future(seen(run))
        await began.wait()
        result = await run.cancel()
        await reading
        assert (result.outcome, roles(result.messages), model.requests) == (Outcome.CANCELLED, ["user"], [])
        done = await agent.run("next", checkpoint_id="k")
        assert [said(message) for message in done.messages] == ["go", "next", "done"]

    play(scene())


@pytest.mark.parametrize("streams", [False, True])
def test_a_call_whose_result_is_being_saved_is_not_told_to_have_been_stopped(store: AnyStore, streams: bool):
    saving = asyncio.Event()

    class Slow(MemoryBackend):
        async def write(self, path: str, content: str | bytes) -> None:
            saving.set()
            await asyncio.Event().wait()

        async def write_stream(self, path: str, chunks: Any) -> int:
            await self.write(path, "")
            return 0

    @tool
    async def pay() -> str:
        """Pay."""
        return "paid " * 100

    @tool(name="pay")
    async def pay_slowly() -> AsyncIterator[str]:
        """Pay."""
        for _ in range(100):
            yield "paid "

    agent, _ = make(
        [turn(("c1", "pay")), "done"],
        pay_slowly if streams else pay,
        middlewares=[ToolReduction(Slow(), max_length_for_trunc=100)],
        checkpoint_store=store,
    )

    async def scene():
        run = agent.stream("go", checkpoint_id="k")
        waiting = start(run)
        await saving.wait()
        result = await run.cancel()
        await waiting
        assert results(result.messages) == [("c1", UNKNOWN.format("pay", "c1"))]

    play(scene())
