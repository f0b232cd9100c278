"""What a crash leaves of the calls of a turn: who is asked again, what is told, and what an approval is worth."""

import asyncio
from typing import Any

import msgspec
import pytest

import suture
from suture import ConfigError, Outcome, tool
from suture.events import ToolFinished, ToolStarted, ToolWaiting
from suture.stores import MemoryStore
from tests.agent.durability.scenes import UNKNOWN, WIRES, make, names, play, results, seen, start, turn


async def copied(store: MemoryStore) -> MemoryStore:
    """Return what a process that dies now would leave."""
    other = MemoryStore()
    for run in await store.runs():
        await other.append(run, 0, await store.load(run))
    return other


class Till:
    """Tools with effects, one of which sees the process die."""

    def __init__(self) -> None:
        self.effects: list[str] = []
        self.store = MemoryStore()
        self.left: list[MemoryStore] = []

        @tool
        async def backup() -> str:
            """Take long, long enough for others to come as far as they can, and see the process die."""
            for _ in range(20):
                await asyncio.sleep(0)
            self.left.append(await copied(self.store))
            self.effects.append("backup")
            return "saved"

        @tool(requires_approval=True)
        async def pay(amount: int) -> str:
            """Pay, if one may."""
            self.effects.append(f"pay {amount}")
            return f"paid {amount}"

        @tool(requires_approval=True)
        async def send(amount: int, to: str = "") -> str:
            """Send, if one may."""
            self.effects.append(f"send {amount} {to}")
            return f"sent {amount} {to}"

        @tool
        async def ask() -> str:
            """Ask, then act."""
            answer = await suture.interrupt("May I?")
            self.effects.append(f"ask {answer}")
            return f"asked {answer}"

        @tool
        async def free(amount: int) -> str:
            """Act, without asking."""
            self.effects.append(f"free {amount}")
            return f"freed {amount}"

        self.tools = [backup, pay, ask, send, free]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(("name", "arguments"), [("pay", {"amount": 5}), ("ask", {})])
def test_a_call_that_waited_when_the_process_died_is_asked_about_again(wire: str, name: str, arguments: Any):
    async def scene():
        till = Till()
        reply = turn(("c1", "backup"), ("c2", name, arguments), wire=wire)
        agent, _ = make([reply], *till.tools, wire=wire, checkpoint_store=till.store)
        first = await agent.run("go", checkpoint_id="k")
        till.effects.clear()
        there, _ = make(["done"], *till.tools, wire=wire, checkpoint_store=till.left[0])
        events, again = await seen(there.stream(resume="k"))
        assert again.outcome is Outcome.INTERRUPTED
        assert [waiting.id for waiting in again.interrupts] == [waiting.id for waiting in first.interrupts]
        assert names(events, ToolWaiting, ToolFinished) == [("ToolWaiting", "c2")]
        assert till.effects == []
        done = await there.resume("k", True)
        assert results(done.messages)[0] == ("c1", UNKNOWN.format("backup", "c1"))
        assert (done.output, len(till.effects)) == ("done", 1)

    play(scene())


def test_a_call_that_ran_when_the_process_died_is_closed_with_an_event():
    async def scene():
        till = Till()
        agent, _ = make(
            [turn(("c1", "backup"), ("c2", "free", {"amount": 1}))], *till.tools, checkpoint_store=till.store
        )
        run = agent.stream("go", checkpoint_id="k")
        with pytest.raises(Exception, match="script"):
            await run.result()
        there, _ = make(["done"], *till.tools, checkpoint_store=till.left[0])
        events, done = await seen(there.stream(resume="k"))
        assert names(events, ToolStarted, ToolFinished) == [("ToolFinished", "c1")]
        (closed,) = [event for event in events if isinstance(event, ToolFinished)]
        assert closed.text == UNKNOWN.format("backup", "c1")
        assert closed.result.is_error
        assert results(done.messages) == [("c1", closed.text), ("c2", "freed 1")]

    play(scene())


@pytest.mark.parametrize(("name", "arguments"), [("pay", {"amount": 5000}), ("send", {"amount": 5})])
def test_an_approval_holds_for_the_name_and_the_arguments_that_were_shown(name: str, arguments: dict[str, Any]):
    """Whoever changes the waiting call in the store is not paid with the answer to the old question."""

    async def scene():
        till = Till()
        agent, _ = make([turn(("c1", "pay", {"amount": 5}))], *till.tools, checkpoint_store=till.store)
        paused = await agent.run("go", checkpoint_id="k")
        forged = MemoryStore()
        written = msgspec.json.encode(arguments).decode()
        for number, record in enumerate(await till.store.load("k")):
            plain = msgspec.msgpack.decode(record)
            for change in plain:
                if change[0] == "splice":
                    for message in change[3]:
                        for call in message.get("tool_calls", ()):
                            call |= {"name": name, "arguments": written}
            await forged.append("k", number, [msgspec.msgpack.encode(plain)])
        there, _ = make(["done"], *till.tools, checkpoint_store=forged)
        again = await there.resume("k", answers={paused.interrupts[0].id: True})
        assert till.effects == []
        assert again.outcome is Outcome.INTERRUPTED
        assert again.interrupts[0].info == {"tool": name, "call_id": "c1", "arguments": written}

    play(scene())


@pytest.mark.parametrize(
    "extra", [{"note": object()}, {"note": 2**70}, {"note": float("nan")}], ids=["object", "large", "nan"]
)
def test_what_cannot_be_stored_beside_a_result_is_left_out_and_the_result_is_kept(extra: Any):
    class Notes(suture.ChatModelAgentMiddleware[Any]):
        async def wrap_tool_call(self, call: Any, proceed: Any) -> Any:
            return suture.replace(await proceed(call), extra=extra)

    async def scene():
        till = Till()
        calls = turn(("c1", "free", {"amount": 1}), ("c2", "ask"))
        settings: dict[str, Any] = {"middlewares": [Notes()], "checkpoint_store": till.store}
        agent, _ = make([calls], *till.tools, **settings)
        await agent.run("go", checkpoint_id="k")
        there, _ = make(["done"], *till.tools, middlewares=[Notes()], checkpoint_store=await copied(till.store))
        done = await there.resume("k", "yes")
        assert results(done.messages) == [("c1", "freed 1"), ("c2", "asked yes")]
        assert till.effects == ["free 1", "ask yes"]

    play(scene())


@pytest.mark.parametrize("wire", WIRES)
def test_half_a_character_in_a_tools_output_does_not_harm_the_run(wire: str):
    @tool
    async def ls() -> str:
        """List files as the system names them."""
        return "caf\udce9.txt"

    @tool
    async def fails() -> str:
        """Fail with such a name."""
        raise FileNotFoundError("caf\udce9.txt")

    async def scene():
        store = MemoryStore()
        till = Till()
        tools = [ls, fails, *till.tools]
        reply = turn(("c1", "ls"), ("c2", "fails"), ("c3", "ask"), wire=wire)
        agent, _ = make([reply], *tools, wire=wire, checkpoint_store=store)
        await agent.run("go", checkpoint_id="k")
        there, model = make(["done"], *tools, wire=wire, checkpoint_store=await copied(store))
        done = await there.resume("k", "yes")
        assert [text for _, text in results(done.messages)] == [
            "caf\ufffd.txt",
            "FileNotFoundError: caf\ufffd.txt",
            "asked yes",
        ]
        assert suture.check(model.requests[0].messages, wire=wire).acceptable

    play(scene())


def test_half_a_character_in_an_error_does_not_keep_a_failed_run_from_being_stored():
    def reply(_: Any) -> str:
        raise FileNotFoundError("caf\udce9.txt")

    async def scene():
        agent, _ = make(reply, checkpoint_store=MemoryStore())
        with pytest.raises(FileNotFoundError):
            await agent.run("go", checkpoint_id="k")
        stored = await agent.session("k").result()
        assert str(stored.error) == "FileNotFoundError: caf\ufffd.txt"

    play(scene())


def test_an_interrupt_in_a_task_group_of_a_tool_is_asked_and_answered():
    @tool
    async def both() -> str:
        """Ask beside other work."""

        async def work() -> str:
            await asyncio.sleep(0)
            return "worked"

        async with asyncio.TaskGroup() as group:
            asked = group.create_task(suture.interrupt("May I?"))
            other = group.create_task(work())
        return f"{asked.result()} and {other.result()}"

    async def scene():
        agent, _ = make([turn(("c1", "both")), "done"], both)
        paused = await agent.run("go")
        assert [waiting.info for waiting in paused.interrupts] == ["May I?"]
        done = await agent.resume(paused, "yes")
        assert results(done.messages) == [("c1", "yes and worked")]

    play(scene())


@pytest.mark.parametrize("ends", ["cancelled", "interrupted", "failed"])
def test_a_call_that_began_before_a_crash_is_unknown_in_every_later_result(ends: str):
    async def scene():
        till, stuck = Till(), asyncio.Event()

        @tool
        async def stop() -> str:
            """Never come to a result."""
            if ends == "failed":
                raise ConfigError("the tool is wired wrongly")
            if ends == "interrupted":
                await suture.interrupt("?")
            stuck.set()
            await asyncio.Event().wait()
            raise AssertionError

        calls = turn(("c1", "backup"), ("c2", "stop"))
        agent, _ = make([calls], *till.tools, stop, sequential=True, checkpoint_store=till.store)
        first = asyncio.create_task(agent.run("go", checkpoint_id="k"))
        while not till.left:  # noqa: ASYNC110
            await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait([first])
        stuck.clear()
        there, _ = make(["done"], *till.tools, stop, sequential=True, checkpoint_store=till.left[0])
        run = there.stream(resume="k")
        if ends == "cancelled":
            waiting = start(run)
            await stuck.wait()
            result: Any = await run.cancel()
            await waiting
        elif ends == "failed":
            with pytest.raises(ConfigError, match="wired wrongly"):
                await run.result()
            result = run.final_result
        else:
            result = await run.result()
        assert result.outcome.value == ends
        elsewhere, _ = make(["done"], *till.tools, stop, checkpoint_store=await copied(till.left[0]))
        stored = await elsewhere.session("k").result()
        assert results(stored.messages) == results(result.messages)
        assert results(stored.messages)[0] == ("c1", UNKNOWN.format("backup", "c1"))

    play(scene())
