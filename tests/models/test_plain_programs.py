"""Programs without an event loop: `run_sync` keeps its loop and its connections, in threads, forks and after Ctrl-C."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any

import pytest

from suture import ChatModelAgent, Message, ToolCall, tool
from suture._loops import _LOOPS, run_blocking
from suture.testing import ScriptedModel
from tests.models.loopback import Answer, Loopback, serving
from tests.models.providers import WIRES, make_model, streamed, text_reply

pytestmark = pytest.mark.usefixtures("surroundings")
SAID = "The sea is calm."


@pytest.fixture(autouse=True)
def no_loops() -> Any:
    """Begin and end without idle loops."""
    _LOOPS.close()
    yield
    _LOOPS.close()


def make_agent(wire: str, server: Loopback, **settings: Any) -> Any:
    return ChatModelAgent(model=make_model(wire, server.url), **settings)


@pytest.mark.parametrize("wire", WIRES)
def test_run_sync_keeps_its_connection(wire: str):
    with serving([streamed(wire, text_reply())]) as server:
        agent = make_agent(wire, server)
        assert [agent.run_sync("hi").output for _ in range(5)] == [SAID] * 5
        assert (len(server.requests), server.connections) == (5, 1)


def test_run_sync_keeps_its_connection_inside_a_running_loop_and_in_threads_that_end():
    with serving([streamed("anthropic", text_reply())]) as server:
        agent = make_agent("anthropic", server)

        async def inside() -> str:
            return agent.run_sync("hi").output

        said = [agent.run_sync("hi").output, asyncio.run(inside()), asyncio.run(inside())]
        for _ in range(3):
            thread = threading.Thread(target=lambda: said.append(agent.run_sync("hi").output))
            thread.start()
            thread.join()
        assert said == [SAID] * 6
        assert server.connections == 1


def test_threads_that_run_at_once_have_a_connection_each_and_get_their_own_answers():
    def answer(asked: Any) -> Any:
        return streamed("anthropic", text_reply(asked.body.decode().split("number ")[1].split("#")[0]))

    with serving(answer) as server, ThreadPoolExecutor(4) as threads:
        agent = make_agent("anthropic", server)
        said = list(threads.map(lambda number: agent.run_sync(f"number {number}#").output, range(40)))
        assert said == [str(number) for number in range(40)]
        assert server.connections <= 4


def test_run_sync_works_between_uses_of_asyncio_run_and_leaves_the_program_its_own_loop():
    mine = asyncio.new_event_loop()
    asyncio.set_event_loop(mine)
    try:
        with serving([streamed("openai-chat", text_reply())]) as server:
            agent = make_agent("openai-chat", server)
            assert agent.run_sync("hi").output == SAID
            assert asyncio.get_event_loop() is mine
            assert mine.run_until_complete(agent.run("hi")).output == SAID
            assert agent.run_sync("hi").output == SAID
            assert server.connections == 2
            mine.run_until_complete(mine.shutdown_asyncgens())
    finally:
        asyncio.set_event_loop(None)
        mine.close()


def test_a_run_leaves_no_task_and_no_generator_behind():
    ended: list[str] = []
    held: list[Any] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            await asyncio.sleep(0)
            ended.append("generator")

    async def background() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("task")

    async def work() -> str:
        held.append(asyncio.create_task(background()))
        held.append(numbers())
        await anext(held[1])
        await asyncio.sleep(0)
        return "done"

    assert run_blocking(work()) == "done"
    assert ended == ["task", "generator"]
    assert held[0].cancelled()


def test_what_a_left_task_raises_is_told_and_the_result_holds(caplog: pytest.LogCaptureFixture):
    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("not now")

    async def work() -> str:
        tasks.append(asyncio.create_task(stubborn()))
        await asyncio.sleep(0)
        return "done"

    tasks: list[Any] = []
    assert run_blocking(work()) == "done"
    assert "a run left behind" in caplog.text
    assert run_blocking(asyncio.sleep(0, "again")) == "again"


def test_a_loop_that_did_not_come_to_its_end_is_closed():
    loops: list[Any] = []

    async def stop() -> None:
        loops.append(asyncio.get_running_loop())
        loops[0].stop()
        await asyncio.Event().wait()

    with pytest.raises(RuntimeError, match="stopped before"):
        run_blocking(stop())
    assert loops[0].is_closed()
    assert not _LOOPS.idle


def test_each_call_sees_the_context_variables_of_its_caller():
    who: ContextVar[str] = ContextVar("who", default="nobody")
    seen: list[str] = []

    @tool
    async def look() -> str:
        """Look who calls."""
        seen.append(who.get())
        return "seen"

    call = Message.assistant(tool_calls=[ToolCall("c1", "look", "{}")])
    agent = ChatModelAgent(model=ScriptedModel([call, "done"] * 2), tools=[look])
    agent.run_sync("go")
    who.set("Ann")
    agent.run_sync("go")
    assert seen == ["nobody", "Ann"]


def test_a_run_has_the_thread_of_its_caller():
    assert run_blocking(_thread()) is threading.current_thread()


async def _thread() -> threading.Thread:
    return threading.current_thread()


def test_a_connection_that_the_server_closed_in_between_is_not_used_again():
    with serving([streamed("openai-chat", text_reply())]) as server:
        agent = make_agent("openai-chat", server)
        assert agent.run_sync("hi").output == SAID
        server.hang_up()
        assert agent.run_sync("hi").output == SAID
        assert server.connections == 2


def test_a_loop_that_the_program_closed_is_not_used_again():
    loops: list[Any] = []

    async def work() -> None:
        loops.append(asyncio.get_running_loop())

    run_blocking(work())
    loops[0].close()
    run_blocking(work())
    assert loops[0] is not loops[1]


def test_loops_are_closed_if_they_are_too_many_or_not_needed_for_long(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("suture._loops._MOST", 2)
    meet = threading.Barrier(4)
    loops: list[Any] = []

    async def work() -> None:
        loops.append(asyncio.get_running_loop())
        meet.wait()

    threads = [threading.Thread(target=run_blocking, args=(work(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(loop.is_closed() for loop in loops) == [False, False, True, True]
    monkeypatch.setattr("suture._loops._IDLE", 0.0)
    run_blocking(asyncio.sleep(0))
    assert sorted(loop.is_closed() for loop in loops) == [False, True, True, True]


# --- whole programs -------------------------------------------------------------------------------

PROGRAM = """
import asyncio, gc, os, signal, sys, threading
from suture import ChatModelAgent, tool
from suture.models import OpenAIChatModel
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started us may ignore it
url = sys.argv[1] + "/v1"
agent = ChatModelAgent(model=OpenAIChatModel("m", base_url=url, api_key="given"))

def ask(label):
    print(label, agent.run_sync("hi").output, flush=True)

if __name__ == "__main__":
"""
ENDS: dict[str, str] = {
    "at once": 'ask("a")',
    "in a thread that ends": 'thread = threading.Thread(target=ask, args=("a",)); thread.start(); thread.join()',
    "in a thread beside the main one": 'ask("b"); threading.Thread(target=ask, args=("a",)).start()',
    "after asyncio.run": 'ask("b"); asyncio.run(agent.run("hi")); ask("a")',
    "with an exception": 'ask("a"); raise SystemExit(0)',
    "with uvloop": """
import uvloop, warnings
with warnings.catch_warnings(action="ignore"):  # Python 3.14 deprecates policies
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
ask("b"); ask("a")
""",
    "at exit": 'import atexit; atexit.register(ask, "a"); ask("b")',
}


def run_program(body: str, server: Loopback, *options: str) -> "subprocess.CompletedProcess[str]":
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    return subprocess.run(
        [sys.executable, *options, "-c", PROGRAM + lines, server.url],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=dict(os.environ),
    )


@pytest.mark.parametrize("body", ENDS.values(), ids=ENDS)
def test_a_program_ends_without_a_warning(body: str):
    with serving([streamed("openai-chat", text_reply())]) as server:
        ran = run_program(body, server, "-W", "error", "-X", "dev")
    assert f"a {SAID}" in ran.stdout, ran.stderr
    assert [line for line in ran.stderr.splitlines() if "Warning" in line or "Error" in line] == []
    assert ran.returncode == 0


FORKS = """
ask("parent")
child = os.fork()
if not child:
    ask("child")
    ask("child")
    gc.collect()
    END
os.waitpid(child, 0)
ask("parent")
ask("parent")
"""


@pytest.mark.parametrize("end", ["os._exit(0)", "sys.exit(0)"])
def test_parent_and_child_of_a_fork_share_no_connection(end: str):
    with serving([streamed("openai-chat", text_reply())]) as server:
        ran = run_program(FORKS.replace("END", end), server, "-W", "error")
        assert server.connections == 3
    assert [line.split()[0] for line in ran.stdout.splitlines()] == ["parent", "child", "child", "parent", "parent"]
    assert (ran.stderr, ran.returncode) == ("", 0)


def test_parent_and_child_of_a_fork_share_no_connection_of_boto3():
    body = "from suture.models import BedrockModel\n"
    body += 'agent = ChatModelAgent(model=BedrockModel("m", base_url=sys.argv[1]))\n'
    with serving([streamed("bedrock", text_reply())]) as server:
        ran = run_program(body + FORKS.replace("END", "os._exit(0)"), server)
        assert server.connections == 2
    assert [line.split()[0] for line in ran.stdout.splitlines()] == ["parent", "child", "child", "parent", "parent"]


def test_a_thread_that_looked_up_an_address_is_gone_when_the_program_forks():
    body = """
async def look_up():
    await asyncio.get_running_loop().getaddrinfo("localhost", 80)
from suture._loops import run_blocking
run_blocking(look_up())
print(threading.active_count())
child = os.fork()
if not child:
    os._exit(0)
os.waitpid(child, 0)
print(threading.active_count())
"""
    with serving([]) as server:
        ran = run_program(body, server, "-W", "error")
    assert (ran.stdout.split(), ran.stderr) == (["2", "1"], "")


WAITING = """
from openai import AsyncOpenAI

if sys.argv[2] == "given":
    client = AsyncOpenAI(base_url=url, api_key="given", max_retries=0)
    agent = ChatModelAgent(model=OpenAIChatModel("m", client=client))

def stream():
    with agent.stream("hi") as run:
        list(run)

async def inside():
    agent.run_sync("hi")

ways = {"stream": stream, "inside": lambda: asyncio.run(inside())}
try:
    ways.get(sys.argv[2], lambda: agent.run_sync("hi"))()
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("way", ["plain", "given", "inside", "stream"])
def test_ctrl_c_ends_a_run_that_waits_for_its_model(way: str):
    lines = "\n".join(f"    {line}" for line in WAITING.strip().splitlines())
    with serving([Answer(then="hang")]) as server:
        command = [sys.executable, "-W", "error", "-c", PROGRAM + lines, server.url, way]
        program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        asyncio.run_coroutine_threadsafe(server.came.wait(), server.loop).result(60)
        program.send_signal(signal.SIGINT)
        said, errors = program.communicate(timeout=60)
    assert (said.split(), errors) == (["interrupted"], "")


def test_a_fork_inside_a_running_loop_leaves_both_sides_a_loop_that_works():
    body = """
ask("parent")
async def fork():
    child = os.fork()
    if not child:
        threading.Thread(target=lambda: (ask("child"), os._exit(0))).start()
        threading.Event().wait()
    os.waitpid(child, 0)
    ask("parent")
asyncio.run(fork())
"""
    with serving([streamed("openai-chat", text_reply())]) as server:
        ran = run_program(body, server)
        assert server.connections == 3
    assert [line.split()[0] for line in ran.stdout.splitlines()] == ["parent", "child", "parent"], ran.stderr


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_of_multiprocessing_run_agents(method: str, tmp_path: Any):
    body = f"""
    import multiprocessing
    ask("parent")
    process = multiprocessing.get_context("{method}").Process(target=ask, args=("child",))
    process.start()
    process.join()
    ask("parent")
"""
    (tmp_path / "program.py").write_text(PROGRAM + body)
    with serving([streamed("openai-chat", text_reply())]) as server:
        ran = subprocess.run(
            [sys.executable, "-W", "error", str(tmp_path / "program.py"), server.url],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert [line.split()[0] for line in ran.stdout.splitlines()] == ["parent", "child", "parent"], ran.stderr
    assert ran.stderr == ""


INTERRUPTED = """
@tool
async def work() -> str:
    "Work without end."
    signal.raise_signal(signal.SIGINT)
    await asyncio.Event().wait()

from suture.testing import ScriptedModel
from suture import Message, ToolCall
call = Message.assistant(tool_calls=[ToolCall("c1", "work", "{}")])
ask("before")
try:
    ChatModelAgent(model=ScriptedModel([call]), tools=[work]).run_sync("go")
except KeyboardInterrupt:
    print("interrupted")
ask("after")
"""


def test_after_ctrl_c_the_next_run_works():
    with serving([streamed("openai-chat", text_reply())]) as server:
        ran = run_program(INTERRUPTED, server, "-W", "error")
    assert [line.split()[0] for line in ran.stdout.splitlines()] == ["before", "interrupted", "after"], ran.stderr
    assert ran.stderr == ""


LEAVING = """
from suture._loops import run_blocking

async def leave():
    raise SystemExit(3)

async def work():
    task = asyncio.create_task(leave())
    await asyncio.wait([task])

async def inside():
    try:
        run_blocking(work())
    except SystemExit as error:
        print("inside", error.code)

asyncio.run(inside())
try:
    run_blocking(work())
except SystemExit as error:
    print("plain", error.code)
ask("after")
"""


def test_a_system_exit_in_a_task_ends_the_run_and_the_next_one_works():
    with serving([streamed("openai-chat", text_reply())]) as server:
        ran = run_program(LEAVING, server)
    assert ran.stdout.splitlines() == ["inside 3", "plain 3", f"after {SAID}"], ran.stderr


def test_the_worker_threads_of_an_asynchronous_server_keep_their_connections():
    from anyio import to_thread

    with serving([streamed("openai-chat", text_reply())]) as server:
        agent = make_agent("openai-chat", server)

        async def handle() -> str:
            return await to_thread.run_sync(lambda: agent.run_sync("hi").output)

        async def requests() -> list[str]:
            return list(await asyncio.gather(*[handle() for _ in range(8)]))

        assert asyncio.run(requests()) + asyncio.run(requests()) == [SAID] * 16
        assert server.connections <= 8
