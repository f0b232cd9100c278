"""Sessions: one writer at a time, one call to start, go on, or resume."""

import asyncio
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from suture import ChatModelAgent, Message, ResumeError, RunBusyError, ToolCall, interrupt, recover, tool
from suture._aio import run_to_the_end
from suture.cli import main as cli
from suture.errors import ConfigError, OutputError
from suture.kernel import storage
from suture.stores import Lease, MemoryStore, SQLiteStore
from suture.testing import ScriptedModel
from tests.agent.durability.scenes import play


def numbered(messages: Any) -> str:
    return f"answer {sum(message.role == 'user' for message in messages)}"


def talker(store: Any) -> ChatModelAgent:
    return ChatModelAgent(model=ScriptedModel(numbered), checkpoint_store=store)


def call(name: str) -> Message:
    return Message.assistant(tool_calls=[ToolCall("c1", name, "{}")])


def test_one_call_starts_a_conversation_and_goes_on_with_it():
    async def main() -> list[str]:
        agent = talker(MemoryStore())
        return [(await agent.session("u").run(text)).output for text in ("a", "b", "c")]

    assert asyncio.run(main()) == ["answer 1", "answer 2", "answer 3"]


def test_an_input_that_was_run_under_a_key_is_not_run_again():
    async def main() -> None:
        agent = talker(MemoryStore())
        session = agent.session("u")
        first = await session.run("pay", key="message-1")
        again = await session.run("pay", key="message-1")
        assert (again.output, again.outcome, len(again.messages)) == (first.output, first.outcome, 2)
        assert (await session.run("pay", key="message-2")).output == "answer 2"
        for key, output, messages in (("message-1", "answer 1", 2), ("message-2", "answer 2", 4)):
            late = await session.run("pay", key=key)
            assert (late.output, len(late.messages)) == (output, messages)
        async with session.stream("pay", key="message-3") as run:
            assert (await run.result()).output == "answer 3"
        with pytest.raises(ResumeError, match="the input with the key 'message-3' was run already"):
            async with session.stream("pay", key="message-3"):
                pass
        assert (await session.run("pay", key="message-3")).output == "answer 3"

    asyncio.run(main())


def test_runs_of_several_processes_wait_in_the_order_in_which_they_came(tmp_path: Path):
    async def main() -> None:
        agents = [talker(SQLiteStore(tmp_path / "runs.db")) for _ in range(2)]  # each as in a process of its own
        stores: list[Any] = [agent.checkpoint_store for agent in agents]
        assert await stores[0].acquire("u", "busy", 60)
        runs: list[Any] = []
        with closing(sqlite3.connect(tmp_path / "runs.db")) as other:
            for number in range(6):
                runs.append(asyncio.create_task(agents[number % 2].session("u").run(str(number))))
                while other.execute("SELECT count(*) FROM leases").fetchone() != (number + 2,):  # noqa: ASYNC110
                    await asyncio.sleep(0)
        given_up = runs.pop(3)
        given_up.cancel()
        await asyncio.wait([given_up])
        await stores[1].release("u", "busy")
        await asyncio.gather(*runs)
        said = [message.content for message in (await agents[0].session("u").result()).messages]
        assert said[::2] == ["0", "1", "2", "4", "5"]
        for store in stores:
            assert await store.lease("u") is None
            store.close()

    asyncio.run(main())


def test_runs_of_a_busy_session_wait_in_the_order_in_which_they_came():
    async def main() -> None:
        agent = talker(MemoryStore())
        await asyncio.gather(*[agent.session("u").run(str(number)) for number in range(8)])
        result = await agent.session("u").result()
        said = [message.content for message in result.messages if message.role == "user"]
        assert said == [str(number) for number in range(8)]

    asyncio.run(main())


def test_a_busy_session_refuses_if_it_is_told_to():
    async def main() -> None:
        agent = talker(MemoryStore())
        session = agent.session("u", busy="refuse")
        results = await asyncio.gather(*[session.run("x") for _ in range(3)], return_exceptions=True)
        assert [type(result).__name__ for result in results] == ["RunResult", "RunBusyError", "RunBusyError"]

    asyncio.run(main())


def test_whoever_comes_second_does_not_take_a_living_run_over():
    async def main() -> None:
        begun, go_on = asyncio.Event(), asyncio.Event()

        @tool
        async def deploy() -> str:
            """Deploy."""
            begun.set()
            await go_on.wait()
            return "deployed"

        model = ScriptedModel([call("deploy"), "done"])
        agent = ChatModelAgent(model=model, tools=[deploy], checkpoint_store=MemoryStore())
        first = asyncio.create_task(agent.run("deploy", checkpoint_id="talk"))
        await begun.wait()
        with pytest.raises(RunBusyError, match="'talk' is being run"):
            await agent.run("how is it going?", checkpoint_id="talk")
        with pytest.raises(RunBusyError):
            await agent.resume("talk")
        assert await agent.session("talk").status() == "running"
        go_on.set()
        assert [message.content for message in (await first).messages][-2:] == ["deployed", "done"]

    asyncio.run(main())


def test_a_session_tells_how_it_stands():
    async def main() -> None:
        @tool
        async def ask() -> str:
            """Ask."""
            return str(await interrupt("?"))

        agent = ChatModelAgent(model=ScriptedModel([call("ask"), "done"]), tools=[ask], checkpoint_store=MemoryStore())
        session = agent.session("u")
        seen = [await session.status()]
        await session.run("go")
        seen.append(await session.status())
        result = await session.resume("yes")
        seen.append(await session.status())
        assert (seen, result.output) == (["new", "waiting", "finished"], "done")
        await session.delete()
        assert await session.status() == "new"
        with pytest.raises(
            ResumeError, match=r"no result yet; session.run\(input\) starts it, session.run\(\) finishes"
        ):
            await session.result()

    asyncio.run(main())


def test_a_session_tells_that_its_last_run_failed_or_was_stopped():
    async def main() -> list[str]:
        store = MemoryStore()
        model = ScriptedModel([RuntimeError("no line"), "hello", "at sea"])
        session = ChatModelAgent(model=model, checkpoint_store=store).session("u")
        with pytest.raises(RuntimeError, match="no line"):
            await session.run("go")
        seen = [await session.status(), (await session.result()).outcome.value]
        await session.run("again")
        seen.append(await session.status())
        async with session.stream("and on") as run:
            await run.cancel()
        return [*seen, await session.status(), (await session.result()).outcome.value]

    assert asyncio.run(main()) == ["failed", "failed", "finished", "stopped", "cancelled"]


def test_a_session_gives_the_live_run():
    async def main() -> list[str]:
        async with talker(MemoryStore()).session("u").stream("hi") as run:
            return [text async for text in run.text()]

    assert asyncio.run(main()) == ["answer 1"]


VICTIM = """
import asyncio, os, sys
from suture import ChatModelAgent, Message, ToolCall, tool
from suture.stores import SQLiteStore
from suture.testing import ScriptedModel

@tool
async def pay() -> str:
    "Pay."
    open(sys.argv[2], "a").write("paid\\n")
    os.kill(os.getpid(), 9)

call = Message.assistant(tool_calls=[ToolCall("c1", "pay", "{}")])
agent = ChatModelAgent(model=ScriptedModel([call]), tools=[pay], checkpoint_store=SQLiteStore(sys.argv[1]))
asyncio.run(agent.session("u").run("pay"))
"""


@pytest.mark.parametrize("way", ["session", "recover"])
def test_what_a_killed_process_left_is_resumed_at_once_and_nothing_is_done_twice(tmp_path: Path, way: str):
    path, effects = tmp_path / "runs.db", tmp_path / "effects"
    subprocess.run([sys.executable, "-c", VICTIM, path, effects], check=False)

    async def main() -> Any:
        @tool
        async def pay() -> str:
            """Pay."""
            effects.open("a").write("paid\n")
            return "ok"

        store = SQLiteStore(path)
        agent = ChatModelAgent(model=ScriptedModel(numbered), tools=[pay], checkpoint_store=store)
        assert await agent.session("u").status() == "left"  # its lease has not run out, but its process is gone
        with pytest.raises(ResumeError, match="resume it without one"):
            await agent.resume("u", True)
        if way == "recover":
            (result,) = await recover([agent], store)
            assert await recover([agent], store) == []
            return result
        return await agent.session("u").run()

    result = asyncio.run(main())
    assert effects.read_text() == "paid\n"
    assert "may or may not have run" in result.messages[2].content
    assert result.output == "answer 1"


def test_a_run_that_cannot_be_recovered_does_not_keep_the_others(caplog: pytest.LogCaptureFixture):
    async def main() -> list[Any]:
        store = MemoryStore()
        names = iter(["bad", "good"])
        for name in ("bad", "good"):
            agent = talker(store)
            await agent.run("x", checkpoint_id=name)
            records = await store.load(name)
            await store.delete(name)
            await store.append(name, 0, records[:1])  # as a process left it that died in its first turn

        def reply(_: Any) -> str:
            if next(names) == "good":
                return "fine"
            raise ValueError("the model is away")

        agent = ChatModelAgent(model=ScriptedModel(reply), checkpoint_store=store)
        await store.append("worse", 0, [b"no record"])
        return [(result.checkpoint_id, result.outcome.value) for result in await recover([agent], store)]

    assert sorted(asyncio.run(main())) == [("bad", "finished"), ("good", "failed")]
    assert "run 'worse' of agent" in caplog.text


def test_the_command_line_recovers_what_a_killed_process_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    path, effects = tmp_path / "runs.db", tmp_path / "effects"
    subprocess.run([sys.executable, "-c", VICTIM, path, effects], check=False)
    (tmp_path / "left_agents.py").write_text(
        "from suture import ChatModelAgent\nfrom suture.stores import SQLiteStore\n"
        "from suture.testing import ScriptedModel\n"
        f"agent = ChatModelAgent(model=ScriptedModel(['done']), checkpoint_store=SQLiteStore({str(path)!r}))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for said in ("u: finished\n", ""):
        assert cli(["recover", "left_agents:agent"]) == 0
        assert capsys.readouterr().out == said
    assert cli(["recover", "json:loads"]) == 2
    assert effects.read_text() == "paid\n"


def test_recovery_leaves_runs_of_other_agents_and_living_ones_alone():
    async def main() -> None:
        store, begun, go_on = MemoryStore(), asyncio.Event(), asyncio.Event()

        @tool
        async def wait() -> str:
            """Wait."""
            begun.set()
            await go_on.wait()
            return "ok"

        agent = ChatModelAgent(model=ScriptedModel([call("wait"), "done"]), tools=[wait], checkpoint_store=store)
        other = ChatModelAgent(name="other", model=ScriptedModel([]), checkpoint_store=store)
        alive = asyncio.create_task(agent.run("go", checkpoint_id="a"))
        await begun.wait()
        assert await recover([agent, other], store) == []
        go_on.set()
        assert (await alive).output == "done"

    asyncio.run(main())


def test_a_lease_that_ran_out_while_its_owner_slept_is_its_own_again_unless_somebody_came(
    caplog: pytest.LogCaptureFixture,
):
    async def main() -> None:
        now = [0.0]
        store = MemoryStore(clock=lambda: now[0])
        lease = storage.RunLease(store, "u", seconds=0.003)
        await lease.take()
        for _ in range(3):
            now[0] += 60
            while await store.lease("u") is None:  # noqa: ASYNC110 - the heart beats by the clock of the event loop
                await asyncio.sleep(0)
            with pytest.raises(RunBusyError):
                await storage.RunLease(store, "u").take()
        now[0] += 60
        assert await store.acquire("u", "somebody", 60)
        while "the lease of run 'u' is lost" not in caplog.text:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0)
        await lease.give_back()
        assert (await store.lease("u") or Lease("nobody", 0)).owner == "somebody"

    play(main())


def test_a_renewal_that_is_on_its_way_when_a_lease_is_given_back_does_not_keep_it():
    class Slow(MemoryStore):
        asked, answers = asyncio.Event(), asyncio.Event()

        async def renew(self, run: str, owner: str, seconds: float) -> bool:
            await self.release(run, owner)  # its time was up
            self.asked.set()
            return False

        async def acquire(self, run: str, owner: str, seconds: float, *, queue: bool = False) -> bool:
            held = await super().acquire(run, owner, seconds, queue=queue)
            if self.asked.is_set():
                await run_to_the_end(self.answers.wait())
                await super().acquire(run, owner, seconds, queue=queue)
            return held

    async def main() -> None:
        store = Slow()
        lease = storage.RunLease(store, "u", seconds=0.003)
        await lease.take()
        await store.asked.wait()
        giving = asyncio.create_task(lease.give_back())
        for _ in range(5):
            await asyncio.sleep(0)
        store.answers.set()
        await giving
        assert await store.lease("u") is None

    play(main())


def test_a_process_of_another_machine_of_the_same_name_is_not_taken_for_dead(monkeypatch: pytest.MonkeyPatch):
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    process = int(dead.stdout)
    here, there = (storage.RunLease(MemoryStore(), "u").owner for _ in range(2))
    assert storage.is_dead(here) is False
    assert storage.is_dead(here.replace(f":{os.getpid()}:", f":{process}:"))
    monkeypatch.setattr(storage, "crc32", lambda _: 1)  # as if read on another machine
    assert storage.is_dead(there.replace(f":{os.getpid()}:", f":{process}:")) is False


def test_recovery_takes_a_conversation_with_a_slash_in_its_id_for_what_it_is():
    async def main() -> None:
        store = MemoryStore()
        for name in ("team", "team/alice", "team/alice.b"):
            await talker(store).run("x", checkpoint_id=name)
        for name in ("team/alice", "team/alice.b"):
            records = await store.load(name)
            await store.delete(name)
            await store.append(name, 0, records[:1])  # as a process left it that died in its first turn
        recovered = await recover([talker(store)], store)
        assert sorted(str(result.checkpoint_id) for result in recovered) == ["team/alice", "team/alice.b"]

    asyncio.run(main())


def test_an_input_without_a_key_can_be_read_by_another_process_and_what_is_no_key_is_refused():
    async def main() -> None:
        store, other = MemoryStore(), MemoryStore()
        session = talker(store).session("u")
        await session.run("one", key=None, streaming=1)
        for key in (7, b"k", "caf\udce9"):
            for work in (session.run("two", key=key), session.stream("two", key=key).__aenter__()):
                with pytest.raises(ConfigError, match="the key of an input is a text"):
                    await work
        await other.append("u", 0, await store.load("u"))  # nothing is remembered of it
        assert (await talker(other).session("u").run("two", key=None)).output == "answer 2"

    asyncio.run(main())


def test_a_stored_answer_of_another_output_type_is_an_error_that_says_so():
    async def main() -> None:
        store = MemoryStore()
        await talker(store).session("u").run("one", key="k")
        other = ChatModelAgent(model=ScriptedModel([]), output_type=dict[str, int], checkpoint_store=store)
        for work in (other.session("u").result(), other.session("u").run("one", key="k")):
            with pytest.raises(OutputError, match="the stored answer of 'u' does not fit output_type"):
                await work

    asyncio.run(main())
