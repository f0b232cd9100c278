"""Results that tools gave before a run broke off: they are found again, and nobody else is given them."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Annotated, Any

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, AgentState, HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command, interrupt

from suture.integrations.langchain import PatchToolCallsMiddleware
from tests.guests.langchain.recording import RecordingModel, asks, call
from tests.guests.langchain.test_patch_agents import CONFIG, kept, received, told

BUILDERS: dict[str, Callable[..., Any]] = {"create_agent": create_agent, "create_deep_agent": create_deep_agent}
each_builder = pytest.mark.parametrize("builder", BUILDERS)


class Noting(BaseCheckpointSaver[Any]):
    """A saver that says when so many results of tools are stored."""

    expected = 1
    stored: threading.Event

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        super().put_writes(config, writes, task_id, task_path)
        self.expected -= any(isinstance(message, ToolMessage) for _, value in writes for message in _several(value))
        if not self.expected:
            self.stored.set()


def _several(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


class InMemory(Noting, InMemorySaver):
    """A saver in memory."""


class InFile(Noting, SqliteSaver):
    """A saver in a file."""


class Till:
    """Tools, and what they have done. One fails when the results of `others` are stored, one never ends."""

    def __init__(self, others: int = 1) -> None:
        self.paid = 0
        self.begun = asyncio.Event()
        self.stored = threading.Event()
        self.saver = self.kept_in(InMemory(), others)

    def kept_in(self, saver: Any, others: int = 1) -> Any:
        """Return `saver`, to be used for the agent."""
        saver.stored, saver.expected = self.stored, others
        return saver

    def crash(self, agent: Any) -> None:
        """Run the agent until it fails."""
        with suppress(ConnectionError):
            agent.invoke({"messages": [HumanMessage("hi")]}, CONFIG)

    def tools(self) -> list[Any]:
        @tool
        def pay() -> str:
            """Pay."""
            self.paid += 1
            return f"paid {self.paid}"

        @tool
        def fail() -> str:
            """Fail."""
            assert self.stored.wait(timeout=30)
            raise ConnectionError

        @tool
        def confirm() -> str:
            """Ask a human."""
            return interrupt("Really?")

        @tool
        def pay_if_allowed() -> str:
            """Ask a human, pay, and fail."""
            interrupt("Really?")
            self.paid += 1
            raise ConnectionError

        @tool
        async def wait() -> str:
            """Wait for ever."""
            self.begun.set()
            await asyncio.Event().wait()
            return "never"

        @tool
        def save(path: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
            """Save a file in the state, and take a note."""
            done = ToolMessage(f"saved {path}", tool_call_id=tool_call_id)
            return Command(update={"files": {path: "text"}, "notes": [path], "messages": [done]})

        return [pay, fail, confirm, pay_if_allowed, wait, save]


def _merged(old: dict[str, Any] | None, new: dict[str, Any]) -> dict[str, Any]:
    return {**(old or {}), **new}


def _longer(old: list[Any] | None, new: list[Any]) -> list[Any]:
    return [*(old or ()), *new]


class Files(AgentState[Any]):
    files: Annotated[dict[str, Any], _merged]
    notes: Annotated[list[Any], _longer]


class Keeping(AgentMiddleware[Any, Any, Any]):
    """Gives the state a place for files."""

    state_schema = Files


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@each_builder
def test_a_tool_that_finished_before_another_failed_keeps_its_result(builder: str, kind: str):
    till = Till()
    with closing(sqlite3.connect(":memory:", check_same_thread=False)) as connection:
        saver = till.saver if kind == "memory" else till.kept_in(InFile(connection))
        model = RecordingModel(replies=[asks(call("a", "pay"), call("b", "fail"))])
        agent = BUILDERS[builder](
            model=model, tools=till.tools(), middleware=[PatchToolCallsMiddleware()], checkpointer=saver
        )
        till.crash(agent)
        agent.invoke({"messages": [HumanMessage("go")]}, CONFIG)
        assert told(received(model)) == ["hi", "a+b", "paid 1", "-", "go"]
        assert told(kept(agent)) == ["hi", "a+b", "paid 1", "-", "go", "done"]
        assert till.paid == 1


def test_what_only_stands_for_a_result_is_not_put_back():
    till, model = Till(), RecordingModel(replies=[asks(call("a", "pay"), call("b", "fail"))])
    patch = PatchToolCallsMiddleware(is_placeholder=lambda text: text == "paid 1", text="cause")
    agent: Any = create_agent(model=model, tools=till.tools(), middleware=[patch], checkpointer=till.saver)
    till.crash(agent)
    agent.invoke({"messages": [HumanMessage("go")]}, CONFIG)
    assert told(received(model)) == ["hi", "a+b", "-", "-", "go"]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@each_builder
def test_a_tool_that_finished_beside_one_that_waits_for_a_human_keeps_its_result(builder: str, durability: str):
    till = Till()
    model = RecordingModel(replies=[asks(call("a", "pay"), call("b", "confirm"))])
    agent = BUILDERS[builder](
        model=model, tools=till.tools(), middleware=[PatchToolCallsMiddleware()], checkpointer=InMemorySaver()
    )
    agent.invoke({"messages": [HumanMessage("hi")]}, CONFIG, durability=durability)
    agent.invoke({"messages": [HumanMessage("never mind")]}, CONFIG, durability=durability)
    assert told(received(model)) == ["hi", "a+b", "paid 1", "-", "never mind"]


async def _has_stored(saver: BaseCheckpointSaver[Any], result: str) -> bool:
    """Tell whether a result is stored; before it come the writes of others, for an earlier checkpoint."""
    saved = await saver.aget_tuple(CONFIG)
    return saved is not None and result in str(saved.pending_writes)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@each_builder
def test_a_tool_that_finished_before_the_run_was_cancelled_keeps_its_result(builder: str, kind: str, tmp_path: Any):
    async def scene(saver: BaseCheckpointSaver[Any]) -> None:
        till = Till()
        model = RecordingModel(replies=[asks(call("a", "pay"), call("b", "wait"))])
        agent = BUILDERS[builder](
            model=model, tools=till.tools(), middleware=[PatchToolCallsMiddleware()], checkpointer=saver
        )
        run = asyncio.create_task(agent.ainvoke({"messages": [HumanMessage("hi")]}, CONFIG))
        await till.begun.wait()
        while not await _has_stored(saver, "paid 1"):  # noqa: ASYNC110 - a saver tells nobody when it has stored something
            await asyncio.sleep(0)
        run.cancel()
        with suppress(asyncio.CancelledError):
            await run
        await agent.ainvoke({"messages": [HumanMessage("go")]}, CONFIG)
        assert told(received(model)) == ["hi", "a+b", "paid 1", "-", "go"]
        assert till.paid == 1

    async def in_file() -> None:
        async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as saver:
            await scene(saver)

    asyncio.run(scene(InMemorySaver()) if kind == "memory" else in_file())


def test_nobody_knows_of_a_tool_what_it_did_after_a_human_allowed_it():
    till, model = Till(), RecordingModel(replies=[asks(call("a", "pay_if_allowed"))])
    agent = create_agent(model, till.tools(), middleware=[PatchToolCallsMiddleware()], checkpointer=till.saver)
    agent.invoke({"messages": [HumanMessage("hi")]}, CONFIG)
    with suppress(ConnectionError):
        agent.invoke(Command(resume="yes"), CONFIG)
    agent.invoke({"messages": [HumanMessage("stop")]}, CONFIG)
    assert till.paid == 1
    assert "it may or may not have run" in received(model)[2].text


@pytest.mark.parametrize("by_id", [True, False])
def test_nobody_knows_of_a_tool_that_was_stopped_after_a_human_allowed_it(by_id: bool):
    """LangGraph stores an answer when the tool has ended, and not before."""

    async def scene() -> None:
        till, model = Till(), RecordingModel(replies=[asks(call("a", "pay_and_wait"))])

        @tool
        async def pay_and_wait() -> str:
            """Pay, and wait for ever."""
            interrupt("Really?")
            till.begun.set()
            await asyncio.Event().wait()
            return "never"

        patch = PatchToolCallsMiddleware()
        agent: Any = create_agent(model, [pay_and_wait], middleware=[patch], checkpointer=InMemorySaver())
        await agent.ainvoke({"messages": [HumanMessage("hi")]}, CONFIG)
        [question] = (await agent.aget_state(CONFIG)).interrupts
        allowed = Command(resume={question.id: "yes"} if by_id else "yes")
        run = asyncio.create_task(agent.ainvoke(allowed, CONFIG))
        await till.begun.wait()
        run.cancel()
        with suppress(asyncio.CancelledError):
            await run
        await agent.ainvoke({"messages": [HumanMessage("stop")]}, CONFIG)
        assert "it may or may not have run" in received(model)[2].text

    asyncio.run(scene())


def test_a_call_that_a_human_was_asked_about_before_it_began_counts_as_cancelled():
    till, model = Till(), RecordingModel(replies=[asks(call("a", "pay")), asks(call("b", "confirm"))])
    middleware: list[Any] = [PatchToolCallsMiddleware(), HumanInTheLoopMiddleware({"confirm": True})]
    agent: Any = create_agent(model, till.tools(), middleware=middleware, checkpointer=InMemorySaver())
    agent.invoke({"messages": [HumanMessage("hi")]}, CONFIG)
    agent.invoke({"messages": [HumanMessage("stop")]}, CONFIG)
    assert "was cancelled - another message came in" in received(model)[4].text


@pytest.mark.parametrize("name", ["fail", "wait"])
@each_builder
def test_nobody_knows_of_the_only_tool_of_a_turn_that_failed_or_was_stopped(builder: str, name: str):
    """Newer deep agents keep only what is new in a checkpoint."""

    async def scene() -> None:
        till, model = Till(), RecordingModel(replies=[asks(call("a", name))])
        till.stored.set()
        agent = BUILDERS[builder](
            model=model, tools=till.tools(), middleware=[PatchToolCallsMiddleware()], checkpointer=InMemorySaver()
        )
        run = asyncio.create_task(agent.ainvoke({"messages": [HumanMessage("hi")]}, CONFIG))
        if name == "wait":
            await till.begun.wait()
            run.cancel()
        with suppress(asyncio.CancelledError, ConnectionError):
            await run
        await agent.ainvoke({"messages": [HumanMessage("stop")]}, CONFIG)
        assert "it may or may not have run" in received(model)[2].text

    asyncio.run(scene())


@each_builder
def test_nobody_knows_in_a_branch_from_before_a_tool_ran_what_it_did(builder: str):
    till, model = Till(), RecordingModel(replies=[asks(call("a", "pay"))])
    middleware = [PatchToolCallsMiddleware(), HumanInTheLoopMiddleware({"confirm": True})]
    agent = BUILDERS[builder](model=model, tools=till.tools(), middleware=middleware, checkpointer=InMemorySaver())
    agent.invoke({"messages": [HumanMessage("hi")]}, CONFIG)
    gate = ("HumanInTheLoopMiddleware.after_model",)
    _, before = [state.config for state in agent.get_state_history(CONFIG) if state.next == gate]
    agent.update_state(before, {"messages": [HumanMessage("stop")]})
    agent.invoke({"messages": [HumanMessage("now")]}, CONFIG)
    assert told(received(model)) == ["hi", "a", "-", "stop", "now"]
    assert "it may or may not have run" in received(model)[2].text


def test_nobody_knows_of_a_tool_that_failed_while_another_asked_a_human():
    till, model = Till(), RecordingModel(replies=[asks(call("a", "confirm"), call("b", "fail"))])
    till.stored.set()
    agent = create_agent(model, till.tools(), middleware=[PatchToolCallsMiddleware()], checkpointer=till.saver)
    till.crash(agent)
    agent.invoke({"messages": [HumanMessage("stop")]}, CONFIG)
    assert "it may or may not have run" in received(model)[3].text


def test_it_is_found_after_several_runs_that_broke_off():
    till = Till()

    class Broken(AgentMiddleware[Any, Any, Any]):
        fails = False

        def before_agent(self, state: Any, runtime: Any) -> None:
            if self.fails:
                raise ConnectionError

    model = RecordingModel(replies=[asks(call("a", "pay"), call("b", "fail"))])
    broken = Broken()
    stack = [broken, PatchToolCallsMiddleware()]
    agent = create_agent(model, till.tools(), middleware=stack, checkpointer=till.saver)
    till.crash(agent)
    broken.fails = True
    till.crash(agent)
    till.crash(agent)
    broken.fails = False
    agent.invoke({"messages": [HumanMessage("go")]}, CONFIG)
    assert told(received(model)) == ["hi", "a+b", "paid 1", "-", "hi", "hi", "go"]


def test_nobody_knows_of_a_tool_whose_run_broke_off_too_long_ago_to_look():
    """A thread that was refused again and again before the middleware came to it."""
    till, model = Till(), RecordingModel(replies=[asks(call("a", "fail"))])
    till.stored.set()
    till.crash(create_agent(model, till.tools(), checkpointer=till.saver))

    class Refusing(AgentMiddleware[Any, Any, Any]):
        def before_agent(self, state: Any, runtime: Any) -> None:
            raise ConnectionError

    refused = create_agent(model, till.tools(), middleware=[Refusing()], checkpointer=till.saver)
    for _ in range(16):
        till.crash(refused)
    agent: Any = create_agent(model, till.tools(), middleware=[PatchToolCallsMiddleware()], checkpointer=till.saver)
    agent.invoke({"messages": [HumanMessage("go")]}, CONFIG)
    assert "it may or may not have run" in received(model)[2].text


def test_what_a_tool_wrote_into_the_state_comes_back_with_its_result():
    till = Till(2)
    turn = asks(call("a", "save", path="x"), call("b", "save", path="y"), call("c", "fail"))
    model = RecordingModel(replies=[turn])
    stack = [PatchToolCallsMiddleware(), Keeping()]
    agent = create_agent(model, till.tools(), middleware=stack, checkpointer=till.saver)
    till.crash(agent)
    state = agent.invoke({"messages": [HumanMessage("go")]}, CONFIG)
    assert told(received(model)) == ["hi", "a+b+c", "saved x", "saved y", "-", "go"]
    assert state["files"] == {"x": "text", "y": "text"}
    assert state["notes"] == ["x", "y"]


def test_a_result_whose_traces_in_the_state_cannot_be_restored_is_not_told():
    till = Till(3)
    turn = asks(call("a", "save", path="x"), call("b", "save", path="x"), call("c", "pay"), call("d", "fail"))
    model = RecordingModel(replies=[turn])
    stack = [PatchToolCallsMiddleware(), Keeping()]
    agent = create_agent(model, till.tools(), middleware=stack, checkpointer=till.saver)
    till.crash(agent)
    state = agent.invoke({"messages": [HumanMessage("go")]}, CONFIG)
    assert told(received(model)) == ["hi", "a+b+c+d", "-", "-", "paid 1", "-", "go"]
    assert not state.get("files")


def test_a_result_is_not_credited_to_another_call_of_its_id():
    till = Till()
    model = RecordingModel(replies=[asks(call("a", "pay"), call("b", "fail"))])
    plain = create_agent(model, till.tools(), checkpointer=till.saver)
    till.crash(plain)
    other = {"messages": [HumanMessage("go"), asks(call("a", "pay")), HumanMessage("on")]}
    agent = create_agent(model, till.tools(), middleware=[PatchToolCallsMiddleware()], checkpointer=till.saver)
    agent.invoke(other, CONFIG)  # pyright: ignore[reportArgumentType]
    assert told(kept(agent)) == ["hi", "a+b", "paid 1", "-", "go", "a", "-", "on", "done"]


@pytest.mark.parametrize(
    ("corrected", "expected"),
    [
        (("pay", {"to": "Alice"}), "-"),
        (("send", {"to": "Bob"}), "-"),
        (("pay", {"to": "Bob"}), "paid 1"),
    ],
)
def test_a_result_is_not_credited_to_a_call_that_was_corrected_since(corrected: Any, expected: str):
    till = Till()
    model = RecordingModel(replies=[asks(call("a", "pay", to="Bob"), call("b", "fail"))])
    agent = create_agent(model, till.tools(), middleware=[PatchToolCallsMiddleware()], checkpointer=till.saver)
    till.crash(agent)
    turn = next(message for message in kept(agent) if isinstance(message, AIMessage))
    calls: list[Any] = [call("a", corrected[0], **corrected[1]), call("b", "fail")]
    agent.update_state(CONFIG, {"messages": [AIMessage("", id=turn.id, tool_calls=calls)]})
    agent.invoke({"messages": [HumanMessage("go")]}, CONFIG)
    assert told(received(model)) == ["hi", "a+b", expected, "-", "go"]


def test_a_result_of_another_branch_is_not_credited_to_a_call_that_was_corrected_in_this_one():
    till = Till()
    model = RecordingModel(replies=[asks(call("a", "pay", to="Bob"))])
    agent = create_agent(model, till.tools(), middleware=[PatchToolCallsMiddleware()], checkpointer=till.saver)
    agent.invoke({"messages": [HumanMessage("hi")]}, CONFIG)
    before = next(state for state in agent.get_state_history(CONFIG) if state.next == ("tools",))
    turn = before.values["messages"][-1]
    corrected = AIMessage("", id=turn.id, tool_calls=[call("a", "pay", to="Alice")])
    fork = agent.update_state(before.config, {"messages": [corrected]})
    agent.invoke({"messages": [HumanMessage("stop")]}, fork)
    assert told(received(model)) == ["hi", "a", "-", "stop"]


def test_two_calls_of_one_id_are_not_told_apart_by_guessing():
    till = Till()
    model = RecordingModel(replies=[asks(call("a", "pay"), call("a", "fail"))])
    agent = create_agent(model, till.tools(), middleware=[PatchToolCallsMiddleware()], checkpointer=till.saver)
    till.crash(agent)
    agent.invoke({"messages": [HumanMessage("go")]}, CONFIG)
    assert told(kept(agent)) == ["hi", "a+a", "-", "-", "go", "done"]


class Unreadable(InMemory):
    """A saver that cannot be asked, or answers with nonsense, once it is told so."""

    manner = ""

    def get_tuple(self, config: Any) -> Any:
        saved = super().get_tuple(config)
        if self.manner == "fails":
            raise OSError
        return saved._replace(pending_writes=[("?",)]) if saved and self.manner else saved

    async def aget_tuple(self, config: Any) -> Any:
        return self.get_tuple(config)


@pytest.mark.parametrize("manner", ["fails", "nonsense"])
@pytest.mark.parametrize("hook", ["sync", "async"])
def test_a_checkpointer_that_fails_does_not_end_the_run(hook: str, manner: str):
    till = Till()
    saver = till.kept_in(Unreadable())

    class Break(AgentMiddleware[Any, Any, Any]):
        def before_agent(self, state: Any, runtime: Any) -> None:
            if len(state["messages"]) > 1:
                saver.manner = manner

    model = RecordingModel(replies=[asks(call("a", "pay"), call("b", "fail"))])
    stack = [Break(), PatchToolCallsMiddleware()]
    agent = create_agent(model, till.tools(), middleware=stack, checkpointer=saver)
    till.crash(agent)
    given: Any = {"messages": [HumanMessage("go")]}
    if hook == "sync":
        agent.invoke(given, CONFIG)
    else:
        asyncio.run(agent.ainvoke(given, CONFIG))
    assert told(received(model)) == ["hi", "a+b", "-", "-", "go"]
    assert all("it may or may not have run" in message.text for message in received(model)[2:4])


def test_without_a_checkpointer_there_is_nothing_to_find():
    till = Till()
    model = RecordingModel()
    agent = create_agent(model, till.tools(), middleware=[PatchToolCallsMiddleware()])
    given: Any = {"messages": [HumanMessage("hi"), asks(call("a", "pay")), HumanMessage("go")]}
    agent.invoke(given)
    assert told(received(model)) == ["hi", "a", "-", "go"]
