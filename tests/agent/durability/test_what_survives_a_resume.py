"""A resumed run has its values, its streaming mode, its language, its tools and its ids."""

import asyncio
import threading
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec
import pytest

import suture
from suture import Budget, ChatModelAgentMiddleware, Message, Outcome, TokenUsage, ToolInfo, tool
from suture.events import MessageDelta, MessageFinished, RunStarted, ToolFinished
from suture.messages import ResponseMeta
from suture.stores import MemoryStore
from tests.agent.durability.scenes import WIRES, AnyStore, make, play, results, seen, start, turn
from tests.agent.durability.small_tools import ask, work


@dataclass(frozen=True)
class Order:
    number: int
    lines: tuple[str, ...] = ()


class Colour(Enum):
    RED = "red"


class Point(msgspec.Struct, frozen=True):
    x: int
    inner: Order | None = None


class Handle:
    def __init__(self, name: str) -> None:
        self.name = name


suture.register_type("tests.durability.Order", Order)
suture.register_type("tests.durability.Colour", Colour)
suture.register_type("tests.durability.Point", Point)
suture.register_type("tests.durability.Handle", Handle, encode=lambda handle: handle.name, decode=Handle)


VALUES: dict[str, Any] = {
    "plain": {"a": [1, 2.5, None, True, "x"], "b": b"\0\xff"},
    "order": Order(7, ("pen", "ink")),
    "deep": [{"point": Point(3, Order(1))}],
    "colour": Colour.RED,
}


def test_i5_run_local_and_session_values_survive(store: AnyStore):
    found: dict[str, Any] = {}

    class Keeps(ChatModelAgentMiddleware[Any]):
        def before_model_rewrite_state(self, state, model_context):
            if model_context.turn == 1:
                for key, value in VALUES.items():
                    suture.set_run_local_value(key, value)
                    suture.current_run().session[f"session {key}"] = value
                suture.set_run_local_value("handle", Handle("h1"))
                suture.set_run_local_value("gone", 1)
                suture.delete_run_local_value("gone")
                return
            for key in VALUES:
                found[key] = suture.get_run_local_value(key)
                found[f"session {key}"] = suture.current_run().session[f"session {key}"]
            found["handle"] = suture.get_run_local_value("handle")[0].name
            found["gone"] = suture.get_run_local_value("gone")
            found["given"] = suture.current_run().session["given"]
            found["from tool"] = suture.get_run_local_value("from tool")

    @tool
    async def sets() -> str:
        """Set a value, and ask."""
        suture.set_run_local_value("from tool", Order(8))
        return str(await suture.interrupt("?"))

    agent, _ = make([turn(("c1", "sets")), "done"], sets, middlewares=[Keeps()], checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k", session={"given": Order(9)})
        assert paused.outcome is Outcome.INTERRUPTED
        done = await agent.resume("k", answers={paused.interrupts[0].id: "yes"})
        for key, value in VALUES.items():
            assert found[key] == (value, True)
            assert found[f"session {key}"] == value
        assert found["handle"] == "h1"
        assert found["gone"] == (None, False)
        assert found["given"] == Order(9)
        assert found["from tool"] == (Order(8), True)
        assert done.session["given"] == Order(9)
        assert done.session["session order"] == VALUES["order"]

    play(scene())


def test_i5_info_state_and_answers_of_registered_types_come_back_as_they_were(store: AnyStore):
    got: list[Any] = []

    @tool
    async def order() -> str:
        """Order."""
        got.append(suture.interrupt_state())
        got.append(await suture.interrupt(Order(1), state=Point(2, Order(3))))
        return "ordered"

    agent, _ = make([turn(("c1", "order")), "done"], order, checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        assert paused.interrupts[0].info == Order(1)
        again = await agent.resume("k")
        assert again.interrupts[0].info == Order(1)
        await agent.resume("k", answers={paused.interrupts[0].id: Colour.RED})
        kept = (Point(2, Order(3)), True)
        assert got == [(None, False), kept, kept, Colour.RED]

    play(scene())


@pytest.mark.parametrize(
    "value",
    [object(), threading.Lock(), print, {"deep": [object()]}, iter({1, 2})],
    ids=["object", "lock", "function", "deep", "iterator"],
)
def test_i5_a_run_local_value_that_cannot_be_stored_is_refused_when_it_is_set(store: AnyStore, value: Any):
    refused: list[str] = []

    class Sets(ChatModelAgentMiddleware[Any]):
        def before_model_rewrite_state(self, state, model_context):
            suture.set_run_local_value("key", "old")
            run = suture.current_run()
            for mapping in (run.values, run.session):
                with pytest.raises(suture.UnregisteredTypeError, match="register_type") as caught:
                    mapping["key"] = value
                refused.append(str(caught.value))
            # The old one is still there.
            assert suture.get_run_local_value("key") == ("old", True)
            assert "key" not in run.session

    agent, _ = make(["done"], middlewares=[Sets()], checkpoint_store=store)

    async def scene():
        assert (await agent.run("go", checkpoint_id="k")).output == "done"
        assert len(refused) == 2

    play(scene())


def test_i5_a_value_is_stored_as_it_is_when_it_is_set(store: AnyStore):
    class Changes(ChatModelAgentMiddleware[Any]):
        def before_model_rewrite_state(self, state, model_context):
            if model_context.turn == 1:
                mine = [1]
                suture.set_run_local_value("list", mine)
                mine.append(2)
            else:
                assert suture.get_run_local_value("list") == ([1], True)

    async def scene():
        agent, _ = make([turn(("c1", "ask"))], ask, middlewares=[Changes()], checkpoint_store=store)
        paused = await agent.run("go", checkpoint_id="k")
        elsewhere = MemoryStore()  # as another process finds it
        await elsewhere.append("k", 0, await store.load("k"))
        agent, _ = make(["done"], ask, middlewares=[Changes()], checkpoint_store=elsewhere)
        assert (await agent.resume("k", answers={paused.interrupts[0].id: 1})).output == "done"

    play(scene())


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("wire", WIRES)
def test_i4_a_resumed_run_streams_as_it_did_also_when_it_interrupts_again(store: AnyStore, wire: str, streaming: bool):
    replies = [turn(("c1", "ask"), wire=wire), turn(("c2", "ask"), text="once more", wire=wire), "all done"]
    agent, _ = make(replies, ask, wire=wire, chunk_size=4, checkpoint_store=store)

    async def scene():
        deltas: list[bool] = []
        events, result = await seen(agent.stream("go", checkpoint_id="k", streaming=streaming))
        deltas.append(any(isinstance(event, MessageDelta) for event in events))
        while result.outcome is Outcome.INTERRUPTED:
            events, result = await seen(agent.stream(resume="k", answers={result.interrupts[0].id: "yes"}))
            deltas.append(any(isinstance(event, MessageDelta) for event in events))
        assert deltas == [streaming] * 3
        assert result.output == "all done"

    play(scene())


def test_a_resumed_run_keeps_its_language(store: AnyStore):
    began = asyncio.Event()

    @tool
    async def stall() -> str:
        """Never end."""
        began.set()
        await asyncio.Event().wait()
        return "never"

    agent, _ = make([turn(("c1", "ask")), turn(("c2", "stall"))], ask, stall, checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k", language="zh")
        run = agent.stream(resume="k", answers={paused.interrupts[0].id: "yes"})
        waiting = start(run)
        await began.wait()
        stopped = await run.cancel()
        await waiting
        told = "工具调用 stall(ID 为 c2)在完成前被停止——运行已取消。"
        assert results(stopped.messages) == [("c1", "yes"), ("c2", told)]

    play(scene())


def test_what_was_told_in_one_language_stays_as_it_was_told(store: AnyStore):
    began = asyncio.Event()

    @tool
    async def stall() -> str:
        """Never end."""
        began.set()
        await asyncio.Event().wait()
        return "never"

    agent, model = make(
        [turn(("c1", "stall")), turn(("c2", "ask")), "done", "more"], ask, stall, checkpoint_store=store
    )

    async def scene():
        run = agent.stream("go", checkpoint_id="k", language="zh")
        waiting = start(run)
        await began.wait()
        await run.cancel()
        await waiting
        paused = await agent.resume("k")
        await agent.resume("k", answers={paused.interrupts[0].id: "yes"})
        await agent.run("next", checkpoint_id="k", language="en")
        told = "工具调用 stall(ID 为 c1)在完成前被停止——运行已取消。"
        assert [results(request.messages)[:1] for request in model.requests] == [[], *[[("c1", told)]] * 3]

    play(scene())


def test_h8_tool_infos_edits_survive_the_resume(store: AnyStore):
    class Hides(ChatModelAgentMiddleware[Any]):
        def before_model_rewrite_state(self, state, model_context):
            if model_context.turn == 1:
                shown = [info for info in state.tool_infos if info.name != "work"]
                extra = ToolInfo("extra", "An extra one.", {"type": "object"})
                return suture.replace(state, tool_infos=[*shown, extra], deferred_tool_infos=[extra])
            return None

    agent, model = make(
        [turn(("c1", "ask")), turn(("c2", "ask")), "done"], ask, work, middlewares=[Hides()], checkpoint_store=store
    )

    async def scene():
        result = await agent.run("go", checkpoint_id="k")
        while result.outcome is Outcome.INTERRUPTED:
            result = await agent.resume("k", answers={result.interrupts[0].id: "yes"})
        assert [[info.name for info in request.tool_infos] for request in model.requests] == [["ask", "extra"]] * 3
        deferred = [[info.name for info in request.deferred_tool_infos or ()] for request in model.requests]
        assert deferred == [["extra"]] * 3

    play(scene())


def test_h8_an_empty_tool_list_stays_empty_over_the_resume(store: AnyStore):
    class Disarms(ChatModelAgentMiddleware[Any]):
        def after_model_rewrite_state(self, state, model_context):
            return suture.replace(state, tool_infos=[]) if model_context.turn == 1 else None

    agent, model = make([turn(("c1", "ask")), "done"], ask, middlewares=[Disarms()], checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        await agent.resume("k", answers={paused.interrupts[0].id: "yes"})
        assert [len(request.tool_infos) for request in model.requests] == [1, 0]

    play(scene())


def test_message_ids_are_the_same_in_events_and_results_over_the_resume(store: AnyStore):
    agent, _ = make([turn(("c1", "ask"), ("c2", "work")), "done"], ask, work, checkpoint_store=store)

    async def scene():
        first, paused = await seen(agent.stream("go", checkpoint_id="k"))
        second, done = await seen(agent.stream(resume="k", answers={paused.interrupts[0].id: "yes"}))
        events = [event for event in [*first, *second] if isinstance(event, MessageFinished | ToolFinished)]
        told = {event.message_id for event in events}
        assert len(told) == 4
        assert set(done.message_ids) - {""} == told
        assert len(done.message_ids) == len(done.messages)
        started = [event for event in second if isinstance(event, RunStarted)]
        assert [(event.resumed, event.messages, event.checkpoint_id) for event in started] == [(True, 2, "k")]

    play(scene())


def test_usage_and_budgets_go_on_counting(store: AnyStore):
    def cost(message: Message) -> Message:
        usage = TokenUsage(prompt_tokens=10, completion_tokens=5, total_tokens=15)
        return msgspec.structs.replace(message, response_meta=ResponseMeta(usage=usage))

    replies = [cost(turn(("c1", "ask"))), cost(turn(("c2", "work"))), cost(Message.assistant("done"))]
    agent, _ = make(replies, ask, work, checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        assert paused.usage.total_tokens == 15
        done = await agent.resume("k", answers={paused.interrupts[0].id: "yes"})
        assert done.usage.total_tokens == 45

    play(scene())


@pytest.mark.parametrize("calls", [1, 2, 3])
def test_a_budget_of_calls_ends_a_resumed_run_where_it_ends_one_that_was_never_interrupted(store: AnyStore, calls: int):
    def replies(first: str) -> list[Any]:
        return [turn(("c1", first)), turn(("c2", "work")), turn(("c3", "work")), "done"]

    async def scene():
        settings: dict[str, Any] = {"budget": Budget(tool_calls=calls), "checkpoint_store": store}
        whole, whole_model = make(replies("work"), ask, work, **settings)
        parted, parted_model = make(replies("ask"), ask, work, **settings)
        run = whole.stream("go")
        with suppress(suture.BudgetExceeded):
            await run.result()
        paused = await parted.run("go", checkpoint_id="k")
        assert paused.outcome is Outcome.INTERRUPTED
        resumed = parted.stream(resume="k", answers={paused.interrupts[0].id: "worked"})
        with suppress(suture.BudgetExceeded):
            await resumed.result()
        assert run.final_result is not None
        assert resumed.final_result is not None
        assert resumed.final_result.outcome == run.final_result.outcome
        assert len(parted_model.requests) == len(whole_model.requests)
        assert results(resumed.final_result.messages) == results(run.final_result.messages)

    play(scene())


def test_the_output_key_and_an_output_type_hold_after_a_resume(store: AnyStore):
    agent, _ = make(
        [turn(("c1", "ask")), '{"number": 7, "lines": ["pen"]}'],
        ask,
        output_type=Order,
        output_key="order",
        checkpoint_store=store,
    )

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        done = await agent.resume("k", answers={paused.interrupts[0].id: "yes"})
        assert done.output == Order(7, ("pen",))
        assert done.session["order"] == '{"number": 7, "lines": ["pen"]}'

    play(scene())
