"""Cancelled calls reach the server, leave the connection as it is, and no process outlives its block."""

import asyncio
import os
import subprocess
import sys
from typing import Any

import pytest

from suture import ChatModelAgent, Outcome
from suture.integrations.mcp import MCPServer, _Messages
from suture.messages import ToolArgument
from tests.integrations.mcp.calling import ODD, is_alive, listening, model_that, odd, results, served, sound, texts

CHOSEN = ["wait", "pid", "tides"]


async def pid_of(server: MCPServer) -> int:
    (pid,) = await texts(server, ("pid", "{}"))
    return int(pid)


@pytest.mark.parametrize("how", ["stdio", "http"])
def test_a_cancelled_run_cancels_its_call_at_the_server_and_the_connection_lives_on(how: str):
    async def main(server: MCPServer, notes: Any) -> list[str]:
        async with server:
            pid = await pid_of(server)
            run = ChatModelAgent(model=model_that(("wait", '{"mark": "fog"}')), tools=server.tools).stream("hi")
            async with run:
                assert await notes.next() == "fog started"
                assert (await run.cancel()).outcome is Outcome.CANCELLED
                assert await notes.next() == "fog cancelled"
            assert await pid_of(server) == pid
            return await texts(server, ("tides", '{"port": "Dover"}'))

    async def both() -> list[str]:
        async with listening() as notes:
            if how == "stdio":
                return await main(sound(include=CHOSEN, env={"NOTES": notes.port}), notes)
            with served(NOTES=notes.port) as (url, _):
                return await main(MCPServer.http(url, include=CHOSEN), notes)

    assert asyncio.run(both()) == ["06:01 in Dover"]


def test_a_call_that_is_cancelled_at_the_moment_of_its_answer_leaves_the_connection_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
):
    called: list[asyncio.Task[Any]] = []
    take = _Messages.__anext__

    async def take_and_cancel(messages: _Messages) -> Any:
        message = await take(messages)
        for call in called:
            call.cancel()
        return message

    async def main() -> tuple[int, int]:
        monkeypatch.setattr(_Messages, "__anext__", take_and_cancel)
        async with sound(include=["pid"]) as server:
            pid = await pid_of(server)
            called.append(asyncio.create_task(server._call("pid", ToolArgument("{}"))))
            with pytest.raises(asyncio.CancelledError):
                await called[0]
            called.clear()
            return pid, await pid_of(server)

    before, after = asyncio.run(main())
    assert before == after


def test_leaving_during_a_call_ends_the_call_and_the_process():
    async def main() -> tuple[list[Any], int]:
        async with listening() as notes:
            async with sound(include=CHOSEN, env={"NOTES": notes.port}) as server:
                pid = await pid_of(server)
                calls = asyncio.create_task(results(server, ("wait", '{"mark": "a"}'), ("wait", '{"mark": "b"}')))
                assert {await notes.next(), await notes.next()} == {"a started", "b started"}
            return await asyncio.wait_for(calls, 120), pid

    answers, pid = asyncio.run(main())
    assert [message.is_error for message in answers] == [True, True]
    assert "went away during wait" in answers[0].content
    assert not is_alive(pid)


def test_an_error_in_the_block_passes_and_the_process_is_gone():
    pids: list[int] = []

    async def main() -> None:
        async with sound(include=CHOSEN) as server:
            pids.append(await pid_of(server))
            raise LookupError("of the program itself")

    with pytest.raises(LookupError, match="of the program itself"):
        asyncio.run(main())
    assert not is_alive(pids[0])


def test_a_program_that_is_cancelled_in_the_block_leaves_no_process():
    pids: list[int] = []

    async def block(notes: Any) -> None:
        async with sound(include=CHOSEN, env={"NOTES": notes.port}) as server:
            pids.append(await pid_of(server))
            await results(server, ("wait", '{"mark": "x"}'))

    async def main() -> None:
        async with listening() as notes:
            task = asyncio.create_task(block(notes))
            assert await notes.next() == "x started"
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    assert not is_alive(pids[0])


def test_a_leaving_that_is_cancelled_again_and_again_still_waits_for_the_process():
    """The process ignores the end of its input and SIGTERM, so that leaving takes a while."""

    async def block(known: "asyncio.Future[int]") -> None:
        async with odd("stubborn") as server:
            known.set_result(int((await texts(server, ("echo", "{}")))[0]))

    async def main() -> int:
        known: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(block(known))
        pid = await known
        while not task.done():
            await asyncio.wait([task], timeout=0.2)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            task.result()
        return pid

    assert not is_alive(asyncio.run(main()))


CANCELLED = """
import asyncio, os, sys
import mcp
from suture.integrations.mcp import MCPServer

async def main():
    for steps in range(0, 60, 2):
        entering = asyncio.create_task(MCPServer.stdio(sys.executable, [sys.argv[1], "silent"]).__aenter__())
        for _ in range(steps):
            await asyncio.sleep(0)
        entering.cancel()
        await asyncio.wait([entering])
        assert entering.cancelled()
        assert len(asyncio.all_tasks()) == 1, asyncio.all_tasks()
        try:
            print("left", steps, os.waitpid(-1, os.WNOHANG))
        except ChildProcessError:
            pass

asyncio.run(main())
print("done")
"""


def test_an_entering_that_is_cancelled_at_any_point_leaves_no_process_and_no_task():
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", CANCELLED, str(ODD)], capture_output=True, text=True, check=False
    )
    assert (ended.stdout, ended.stderr) == ("done\n", "")


def test_a_server_that_is_given_up_while_it_starts_may_end_in_good_order():
    async def main() -> str:
        read, write = os.pipe()
        with os.fdopen(read) as said, os.fdopen(write, "w") as stderr:
            entering = asyncio.create_task(odd("polite", stderr=stderr).__aenter__())
            assert await asyncio.to_thread(said.readline) == "at the quay\n"
            entering.cancel()
            await asyncio.wait([entering])
            stderr.close()
            return said.read()

    assert asyncio.run(main()) == "left in good order\n"


def test_a_server_may_be_left_by_another_task_than_the_one_that_entered_it():
    async def main() -> list[str]:
        server = odd("sound")
        await asyncio.create_task(server.__aenter__())
        told = await asyncio.create_task(texts(server, ("echo", "{}"), ("echo", '{"a": 1}')))
        await asyncio.create_task(server.__aexit__())
        return told

    assert asyncio.run(main()) == ["{}", '{"a": 1}']


def test_two_servers_are_left_in_any_order():
    async def main() -> list[str]:
        first, second = odd("sound", prefix="a_"), odd("sound", prefix="b_")
        await first.__aenter__()
        await second.__aenter__()
        await first.__aexit__()
        told = await texts(second, ("b_echo", "{}"))
        await second.__aexit__()
        return told

    assert asyncio.run(main()) == ["{}"]


def test_many_calls_at_once_get_each_its_own_answer():
    async def main() -> list[str]:
        async with odd("sound") as server:
            return await texts(server, *[("echo", f'{{"number": {number}}}') for number in range(50)])

    assert asyncio.run(main()) == [f'{{"number": {number}}}' for number in range(50)]
