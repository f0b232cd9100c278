"""However a run ends, the history that it hands out is paired: the next run, of any program, can go on with it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import suture
from suture import (
    Budget,
    ChatModelAgent,
    ChatModelAgentMiddleware,
    Message,
    Outcome,
    RunResult,
    ToolCall,
    replace,
    tool,
)
from suture.stores import MemoryStore, StoreError
from suture.testing import ScriptedModel
from tests.agent.patching.wiring import history, on_each_wire
from tests.shapes.notation import call, result, turn, user

BROKEN = (
    user("High tide?"),
    turn(call("a", "tides")),
    turn(call("b", "moon")),
    result("z", "stray", "moon"),
    user("Hello?"),
)
ONE = turn(call("c1", "act", {}))
TWO = turn(call("c1", "act", {}), call("c2", "act", {}))

Ending = Callable[["Scene"], Awaitable[RunResult[Any]]]


class Scene:
    """One agent on one wire, over a history that is broken already."""

    def __init__(self, wire: str, has_store: bool) -> None:
        self.wire = wire
        self.store: Any = MemoryStore() if has_store else None
        self.began = asyncio.Event()

    def reply(self, step: Any) -> Any:
        (message,) = history(self.wire, step)
        return message

    async def run(self, replies: list[Any], *tools: Any, **settings: Any) -> RunResult[Any]:
        """Run to the end, and return the result however it ended."""
        run = self.stream(replies, *tools, **settings)
        try:
            return await run.result()
        except Exception:  # noqa: BLE001 - what is left is what is looked at
            assert run.final_result is not None
            return run.final_result

    def stream(self, replies: list[Any], *tools: Any, **settings: Any) -> suture.Run[Any]:
        model = ScriptedModel(replies, self.wire, **settings.pop("script", {}))
        agent = ChatModelAgent(model=model, tools=tools, checkpoint_store=self.store, **settings)
        options: dict[str, Any] = {"checkpoint_id": "k"} if self.store else {}
        return agent.stream(history(self.wire, *BROKEN), **options)


@tool
async def act() -> str:
    """Act."""
    return "acted"


def acting(work: Callable[[], Any]) -> Any:
    """Return a tool called act that does this."""

    @tool(name="act")
    async def made() -> str:
        """Act."""
        return await work()

    return made


async def finished(scene: Scene) -> RunResult[Any]:
    return await scene.run([scene.reply(TWO), "done"], act)


async def broken_by_a_hook_after_the_last_turn(scene: Scene) -> RunResult[Any]:
    class Breaks(ChatModelAgentMiddleware[Any]):
        def after_model_rewrite_state(self, state: Any, model_context: Any) -> Any:
            return replace(state, messages=[*history(scene.wire, *BROKEN), *state.messages])

    return await scene.run(["done"], act, middlewares=[Breaks()])


async def failed_in_before_agent(scene: Scene) -> RunResult[Any]:
    class Fails(ChatModelAgentMiddleware[Any]):
        def before_agent(self, context: Any) -> Any:
            raise LookupError("a hook failed")

    return await scene.run(["done"], act, middlewares=[Fails()])


async def failed_in_a_hook_before_the_turn(scene: Scene) -> RunResult[Any]:
    class Fails(ChatModelAgentMiddleware[Any]):
        def before_model_rewrite_state(self, state: Any, model_context: Any) -> Any:
            raise LookupError("a hook failed")

    return await scene.run(["done"], act, middlewares=[Fails()])


async def failed_in_a_hook_after_the_turn(scene: Scene) -> RunResult[Any]:
    class Fails(ChatModelAgentMiddleware[Any]):
        def after_model_rewrite_state(self, state: Any, model_context: Any) -> Any:
            raise LookupError("a hook failed")

    return await scene.run([scene.reply(TWO)], act, middlewares=[Fails()])


async def failed_in_the_model(scene: Scene) -> RunResult[Any]:
    return await scene.run([scene.reply(ONE), ConnectionError("down")], act)


async def failed_with_a_cut_stream(scene: Scene) -> RunResult[Any]:
    return await scene.run([scene.reply(TWO)], act, script={"chunk_size": 3, "cut_after": 4})


async def failed_in_a_tool(scene: Scene) -> RunResult[Any]:
    async def work() -> str:
        raise ValueError("no")

    return await scene.run([scene.reply(TWO), "done"], acting(work), tool_errors="raise")


async def failed_in_a_wrapper(scene: Scene) -> RunResult[Any]:
    class Wrong(ChatModelAgentMiddleware[Any]):
        async def wrap_tool_call(self, call: Any, proceed: Any) -> Any:
            return 7

    return await scene.run([scene.reply(TWO), "done"], act, middlewares=[Wrong()])


async def failed_at_the_limit(scene: Scene) -> RunResult[Any]:
    return await scene.run([scene.reply(TWO), scene.reply(TWO)], act, max_iterations=2)


async def failed_at_the_budget(scene: Scene) -> RunResult[Any]:
    return await scene.run([scene.reply(TWO), "done"], act, budget=Budget(tool_calls=1))


async def answered_at_the_limit(scene: Scene) -> RunResult[Any]:
    replies = [scene.reply(TWO), scene.reply(TWO)]
    return await scene.run(replies, act, max_iterations=1, on_max_iterations="answer")


async def ended_by_a_tool(scene: Scene) -> RunResult[Any]:
    return await scene.run([scene.reply(TWO)], act, return_directly=["act"])


async def failed_with_the_wrong_form(scene: Scene) -> RunResult[Any]:
    return await scene.run([scene.reply(ONE), "not", "a", "number"], act, output_type=dict[str, int])


async def interrupted_in_a_tool(scene: Scene) -> RunResult[Any]:
    async def work() -> str:
        return str(await suture.interrupt("?"))

    return await scene.run([scene.reply(TWO)], acting(work))


async def interrupted_in_one_of_two(scene: Scene) -> RunResult[Any]:
    @tool
    async def ask() -> str:
        """Ask."""
        return str(await suture.interrupt("?"))

    return await scene.run([scene.reply(turn(call("c1", "ask", {}), call("c2", "act", {})))], act, ask)


async def interrupted_before_the_turn(scene: Scene) -> RunResult[Any]:
    class Asks(ChatModelAgentMiddleware[Any]):
        async def before_model_rewrite_state(self, state: Any, model_context: Any) -> Any:
            await suture.interrupt("?")

    return await scene.run(["done"], act, middlewares=[Asks()])


async def cancelled_before_it_began(scene: Scene) -> RunResult[Any]:
    return await scene.stream(["done"], act).cancel()


async def _cancel(scene: Scene, replies: list[Any], *tools: Any, **settings: Any) -> RunResult[Any]:
    async with scene.stream(replies, *tools, **settings) as run:
        await scene.began.wait()
        return await run.cancel()


async def cancelled_in_the_model(scene: Scene) -> RunResult[Any]:
    async def forever(_: Any) -> Any:
        scene.began.set()
        await asyncio.Event().wait()

    return await _cancel(scene, [scene.reply(ONE), forever], act)


async def cancelled_in_a_tool(scene: Scene) -> RunResult[Any]:
    async def work() -> str:
        scene.began.set()
        await asyncio.Event().wait()
        return "never"

    return await _cancel(scene, [scene.reply(TWO)], acting(work))


async def cancelled_behind_the_model(scene: Scene) -> RunResult[Any]:
    async def asks(_: Any) -> Any:
        scene.began.set()
        await asyncio.sleep(0)
        return scene.reply(TWO)

    async with scene.stream([asks], act) as run:
        await scene.began.wait()
        return await run.cancel("after_model")


async def failed_in_the_store(scene: Scene) -> RunResult[Any]:
    class Full(MemoryStore):
        async def append(self, run: str, first: int, records: Any, **options: Any) -> None:
            if first > 1:
                raise StoreError("the disk is full")
            await super().append(run, first, records, **options)

    scene.store = Full() if scene.store else None
    return await scene.run([scene.reply(TWO), ConnectionError("down")], act)


ENDINGS: dict[str, list[Ending]] = {
    "finished": [finished, broken_by_a_hook_after_the_last_turn, answered_at_the_limit, ended_by_a_tool],
    "failed": [
        failed_in_before_agent,
        failed_in_a_hook_before_the_turn,
        failed_in_a_hook_after_the_turn,
        failed_in_the_model,
        failed_with_a_cut_stream,
        failed_in_a_tool,
        failed_in_a_wrapper,
        failed_at_the_limit,
        failed_at_the_budget,
        failed_with_the_wrong_form,
        failed_in_the_store,
    ],
    "interrupted": [interrupted_in_a_tool, interrupted_in_one_of_two, interrupted_before_the_turn],
    "cancelled": [
        cancelled_before_it_began,
        cancelled_in_the_model,
        cancelled_in_a_tool,
        cancelled_behind_the_model,
    ],
}


@pytest.mark.parametrize("has_store", [False, True], ids=["memory", "store"])
@pytest.mark.parametrize(
    ("outcome", "ending"),
    [(outcome, each) for outcome, endings in ENDINGS.items() for each in endings],
    ids=lambda value: getattr(value, "__name__", ""),
)
@on_each_wire
def test_the_history_that_a_run_hands_out_is_paired(wire: str, outcome: str, ending: Ending, has_store: bool):
    async def use() -> None:
        scene = Scene(wire, has_store)
        async with asyncio.timeout(60):
            ended = await ending(scene)
        assert ended.outcome == outcome
        tail = "keep" if ended.outcome is Outcome.INTERRUPTED else "cancel"
        found = suture.check(ended.messages, wire=wire, profile="pairing", tail=tail)
        assert found.findings == ()
        # And whoever goes on with it is sent all of it, whole.
        model = ScriptedModel(["ok"], wire)
        after = await ChatModelAgent(model=model).run("Go on.", history=ended.messages)
        assert suture.check(model.requests[0].messages, wire=wire).acceptable
        assert suture.check(after.messages, wire=wire, profile="pairing").findings == ()

    asyncio.run(use())


@pytest.mark.parametrize("has_store", [False, True], ids=["memory", "store"])
def test_a_run_that_waits_is_paired_when_it_is_resumed_and_ends(has_store: bool):
    async def use() -> None:
        scene = Scene("message", has_store)
        paused = await interrupted_in_a_tool(scene)
        model = ScriptedModel(["done"])

        @tool(name="act")
        async def acts() -> str:
            """Act."""
            return str(await suture.interrupt("?"))

        agent = ChatModelAgent(model=model, tools=[acts], checkpoint_store=scene.store)
        done = await agent.resume(paused, answers={each.id: "yes" for each in paused.interrupts})
        assert done.outcome is Outcome.FINISHED
        assert suture.check(done.messages, profile="pairing").findings == ()

    asyncio.run(use())


def test_without_repair_a_run_hands_out_what_it_was_given():
    given = [Message.user("hi"), Message.assistant(tool_calls=[ToolCall("a", "tides", "{}")]), Message.user("well?")]
    result = ChatModelAgent(model=ScriptedModel(["ok"]), repair=False).run_sync(given)
    assert list(result.messages[:3]) == given
    assert not suture.check(result.messages, profile="pairing").acceptable
