"""Runs from plain code: streams in a `with` block, answers, sessions; with Ctrl-C, and inside a running event loop."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import nullcontext
from contextvars import ContextVar
from typing import Any

import pytest

from suture import ChatModelAgent, Message, Outcome, ToolCall, check, interrupt, tool
from suture.errors import ConfigError, MaxIterationsExceeded, ResumeError
from suture.events import AnyEvent, RunFinished
from suture.kernel import SyncRun
from suture.stores import MemoryStore
from suture.testing import ScriptedModel

WORDS = "At 06:12, and then at 18:40."


def calling(name: str, arguments: str = "{}") -> Message:
    return Message.assistant(tool_calls=[ToolCall("c1", name, arguments)])


def make_agent(*replies: Any, **settings: Any) -> ChatModelAgent[str]:
    return ChatModelAgent(model=ScriptedModel(list(replies) or [WORDS], chunk_size=4), **settings)


def test_a_stream_gives_text_events_and_the_result_in_plain_code():
    with make_agent().stream("When?") as run:
        assert isinstance(run, SyncRun)
        pieces = list(run.text())
        result = run.result()
    assert ("".join(pieces), len(pieces)) == (WORDS, 7)
    assert (result.output, result.outcome, run.final_result) == (WORDS, Outcome.FINISHED, result)


async def _events(agent: ChatModelAgent[str]) -> list[AnyEvent]:
    async with agent.stream("When?") as run:
        return [event async for event in run]


def test_the_events_are_those_of_async_code():
    with make_agent().stream("When?") as run:
        plain = list(run)
    assert [type(event) for event in plain] == [type(event) for event in asyncio.run(_events(make_agent()))]
    assert {event.run_id for event in plain} == {run.run_id}


def test_a_stream_can_be_read_in_plain_code_inside_a_running_loop():
    async def main() -> list[str]:
        with make_agent().stream("When?") as run:
            return list(run.text())

    assert "".join(asyncio.run(main())) == WORDS


@tool
async def work() -> str:
    """Work until it is stopped."""
    await asyncio.Event().wait()
    return "done"


@pytest.mark.parametrize("how", ["break", "error", "at once"])
def test_leaving_the_block_early_ends_the_run_with_a_whole_history(how: str):
    agent = make_agent(calling("work"), WORDS, tools=[work])
    with pytest.raises(ZeroDivisionError) if how == "error" else nullcontext(), agent.stream("Go.") as run:
        if how == "break":
            for event in run:
                if type(event).__name__ == "ToolStarted":
                    break
        if how == "error":
            next(iter(run))
            raise ZeroDivisionError
    assert run.final_result is not None
    assert run.final_result.outcome is Outcome.CANCELLED
    assert check(run.final_result.messages, profile="pairing").acceptable


def test_breaking_out_of_the_text_leaves_the_run_going():
    with make_agent().stream("When?") as run:
        for _ in run.text():
            break
        assert run.result().output == WORDS


def test_the_run_goes_on_while_nobody_reads():
    began, go_on = threading.Event(), threading.Event()

    @tool(thread=False)
    async def wait() -> str:
        """Wait."""
        began.set()
        await asyncio.to_thread(go_on.wait)
        return "done"

    with make_agent(calling("wait"), WORDS, tools=[wait]).stream("Go.") as run:
        began.wait()  # nothing was read yet
        go_on.set()
        assert run.result().output == WORDS


def test_a_reader_that_stops_holds_the_model_back():
    sent: list[int] = []

    class Endless(ScriptedModel):
        async def stream(self, request: Any, /) -> AsyncIterator[Any]:
            from suture.messages import Delta

            for number in range(2000):
                sent.append(number)
                yield Delta(text=".")
            yield Message.assistant("." * 2000)

    async def turns() -> None:
        for _ in range(5000):  # enough for all, if nothing held it back
            await asyncio.sleep(0)

    with ChatModelAgent(model=Endless([])).stream("Go.") as run:
        assert type(next(iter(run))).__name__ == "RunStarted"
        run._thread.call(turns())
        assert 200 < len(sent) < 400


def test_an_error_of_the_run_is_raised_by_the_reader_and_by_the_result():
    agent = make_agent(calling("quick"), calling("quick"), tools=[quick], max_iterations=1)
    with agent.stream("Go.") as run, pytest.raises(MaxIterationsExceeded):
        list(run)
    with agent.stream("Go.") as run, pytest.raises(MaxIterationsExceeded):
        run.result()


@tool
def quick() -> str:
    """Be quick."""
    return "done"


def test_another_thread_cancels_the_run_that_this_one_reads():
    with make_agent(calling("work"), WORDS, tools=[work]).stream("Go.") as run:
        kinds: list[str] = []
        for event in run:
            kinds.append(type(event).__name__)
            if kinds[-1] == "ToolStarted":
                threading.Thread(target=run.cancel).start()
    assert kinds[-1] == RunFinished.__name__
    assert run.final_result is not None
    assert run.final_result.outcome is Outcome.CANCELLED


def test_a_run_is_iterated_once_and_has_one_block():
    stream = make_agent().stream("When?")
    with stream as run:
        list(run.text())
        with pytest.raises(ConfigError, match="iterated once"):
            list(run)
    with pytest.raises(ConfigError, match="go on there"), stream:
        pass


def test_a_run_that_began_in_an_event_loop_is_refused():
    async def main() -> None:
        async with make_agent().stream("When?") as run:
            with pytest.raises(ConfigError, match="go on there"):
                run.__enter__()

    asyncio.run(main())


def test_after_the_block_nothing_can_be_asked_any_more():
    with make_agent().stream("When?") as run:
        pass
    with pytest.raises(ConfigError, match="this block has ended"):
        run.result()


def test_the_context_of_the_caller_is_seen_by_the_tools_of_a_stream():
    who: ContextVar[str] = ContextVar("who", default="nobody")
    seen: list[str] = []

    @tool
    def look() -> str:
        """Look."""
        seen.append(who.get())
        return "seen"

    who.set("Ann")
    with make_agent(calling("look"), WORDS, tools=[look]).stream("Go.") as run:
        assert run.result().output == WORDS
    assert seen == ["Ann"]


@tool
async def ask() -> str:
    """Ask somebody."""
    return str(await interrupt("Really?"))


@pytest.mark.parametrize("stored", [True, False])
def test_resume_sync_takes_what_resume_takes(stored: bool):
    agent = make_agent(calling("ask"), WORDS, tools=[ask], checkpoint_store=MemoryStore() if stored else None)
    waiting = agent.run_sync("Go.", checkpoint_id="job-7") if stored else agent.run_sync("Go.")
    assert waiting.outcome is Outcome.INTERRUPTED
    done = agent.resume_sync("job-7" if stored else waiting, answers={waiting.interrupts[0].id: "yes"})
    assert (done.output, done.messages[2].content) == (WORDS, "yes")
    with pytest.raises(ResumeError):
        agent.resume_sync(done, "again")


def test_a_run_is_resumed_as_a_stream_in_plain_code():
    agent = make_agent(calling("ask"), WORDS, tools=[ask])
    with agent.stream(resume=agent.run_sync("Go."), answer="yes") as run:
        assert "".join(run.text()) == WORDS


def test_a_session_runs_waits_is_answered_and_streams_in_plain_code():
    agent = make_agent(calling("ask"), WORDS, "Well.", "Bye.", tools=[ask], checkpoint_store=MemoryStore())
    session = agent.session("user-42")
    assert session.run_sync("Go.").outcome is Outcome.INTERRUPTED
    assert session.resume_sync("yes").output == WORDS
    assert session.run_sync("How are you?").output == "Well."
    with session.stream("Bye.", key="k") as run:
        assert "".join(run.text()) == "Bye."
        result = run.result()
    assert [message.role for message in result.messages].count("user") == 3
    assert session.run_sync("Bye.", key="k").output == "Bye."
    with pytest.raises(ResumeError, match="was run already"), session.stream("Bye.", key="k"):
        pass
    assert session.run_sync().output == "Bye."


def test_leaving_a_session_s_stream_gives_its_turn_back():
    agent = make_agent(calling("work"), WORDS, tools=[work], checkpoint_store=MemoryStore())
    session = agent.session("user-42", busy="refuse")
    with session.stream("Go.") as run:
        next(iter(run))
    assert session.run_sync("Again?").outcome is Outcome.FINISHED


PROGRAM = """
import asyncio, signal
from suture import ChatModelAgent, Message, ToolCall, check, tool
from suture.testing import ScriptedModel

signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started us may ignore it

@tool
async def work() -> str:
    "Work without end."
    print("begins", flush=True)
    signal.raise_signal(signal.SIGINT) if HOW == "in the loop" else None
    await asyncio.Event().wait()

call = Message.assistant(tool_calls=[ToolCall("c1", "work", "{}")])
agent = ChatModelAgent(model=ScriptedModel([call, "done"]), tools=[work])

def follow():
    stream = agent.stream("go")
    try:
        with stream as run:
            for event in run:
                if HOW == "in the block" and type(event).__name__ == "ToolStarted":
                    signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        result = stream.final_result
        print("interrupted", result.outcome.value, check(result.messages, profile="pairing").acceptable)

async def inside():
    follow()

START
"""


@pytest.mark.parametrize("how", ["in the loop", "in the block"])
@pytest.mark.parametrize("start", ["follow()", "asyncio.new_event_loop().run_until_complete(inside())"])
def test_ctrl_c_ends_a_stream_with_a_whole_history(how: str, start: str):
    program = PROGRAM.replace("HOW", repr(how)).replace("START", start)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert ran.stdout.split("\n")[-2] == "interrupted cancelled True", (ran.stdout, ran.stderr)
