"""Blocking functions run beside the event loop, and streams are closed wherever they end."""

import argparse
import asyncio
import contextvars
import gc
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from suture import _aio
from suture.tools import ToolArgumentsError, tool
from tests.tools.running import run

REQUEST: contextvars.ContextVar[str] = contextvars.ContextVar("REQUEST", default="none")


def test_a_sync_function_leaves_the_event_loop_free():
    barrier = threading.Barrier(9)

    @tool
    def meet() -> int:
        return barrier.wait(timeout=60)

    async def all_at_once() -> list[str]:
        waiting = [asyncio.ensure_future(meet.endpoint("{}")) for _ in range(8)]
        await asyncio.to_thread(barrier.wait, 60)
        return await asyncio.gather(*waiting)

    assert len(asyncio.run(all_at_once())) == 8


@pytest.mark.parametrize("thread", [True, False])
def test_a_sync_function_runs_in_a_thread_unless_told_not_to(thread):
    @tool(thread=thread)
    def where() -> bool:
        return threading.current_thread() is threading.main_thread()

    @tool(thread=thread)
    def stream() -> Iterator[bool]:
        yield threading.current_thread() is threading.main_thread()

    assert run(where) == ("false" if thread else "true")
    assert run(stream) == ["false" if thread else "true"]


@pytest.mark.parametrize("thread", [True, False])
def test_context_variables_reach_a_sync_function(thread):
    @tool(thread=thread)
    def whose() -> str:
        return REQUEST.get()

    @tool(thread=thread)
    def stream() -> Iterator[str]:
        yield REQUEST.get()
        REQUEST.set("changed")
        yield REQUEST.get()

    def both() -> list[Any]:
        REQUEST.set("mine")
        return [run(whose), run(stream)]

    assert contextvars.copy_context().run(both) == ["mine", ["mine", "changed"]]


def test_a_stream_stays_in_one_thread():
    @tool
    def stream() -> Iterator[int]:
        for _ in range(20):
            yield threading.get_ident()

    assert len(set(run(stream))) == 1


class Odd(Exception):
    pass


@pytest.mark.parametrize("thread", [True, False])
@pytest.mark.parametrize("error", [Odd("no"), ValueError("no")], ids=repr)
def test_an_exception_of_the_function_is_raised_to_the_caller(error, thread):
    def fail() -> str:
        raise error

    def fail_after_one() -> Iterator[str]:
        yield "one"
        raise error

    for function in (fail, fail_after_one):
        with pytest.raises(type(error)) as caught:
            run(tool(function, thread=thread))
        assert caught.value is error


EXITS = [(2, "exit code 2"), (None, "exit code 0"), ("no such file", ": no such file")]


@pytest.mark.parametrize("thread", [True, False])
@pytest.mark.parametrize(("code", "says"), EXITS)
def test_a_tool_that_ends_the_program_has_failed_and_the_program_goes_on(code, says, thread):
    def fail() -> str:
        sys.exit(code)

    def fail_after_one() -> Iterator[str]:
        yield "one"
        sys.exit(code)

    async def fail_later() -> str:
        sys.exit(code)

    for function in (fail, fail_after_one, fail_later):
        with pytest.raises(RuntimeError, match=f"the tool ended.*{says}$") as caught:
            run(tool(function, thread=thread))
        assert isinstance(caught.value.__cause__, SystemExit)


def test_a_command_line_in_a_tool_that_refuses_its_arguments_leaves_the_other_calls_alone():
    @tool
    def command(line: str) -> str:
        parser = argparse.ArgumentParser()
        parser.add_argument("--count")
        return parser.parse_args(line.split()).count

    async def both() -> list[Any]:
        calls = [command.endpoint('{"line": "--oops 3"}'), command.endpoint('{"line": "--count 3"}')]
        return await asyncio.gather(*calls, return_exceptions=True)

    refused, counted = asyncio.run(both())
    assert (str(refused), counted) == ("the tool ended with exit code 2", "3")


@pytest.mark.parametrize("thread", [True, False])
def test_what_the_user_stops_with_the_keyboard_passes(thread):
    def stop() -> str:
        raise KeyboardInterrupt

    async def caught() -> bool:
        try:
            await made.endpoint("{}")
        except KeyboardInterrupt:
            return True
        return False

    made = tool(stop, thread=thread)
    assert asyncio.run(caught())


def test_a_function_that_raises_stop_iteration_does_not_hang():
    def stop() -> str:
        return next(iter([]))

    with pytest.raises(RuntimeError) as caught:
        run(tool(stop))
    assert isinstance(caught.value.__cause__, StopIteration)


def test_a_stream_says_that_its_arguments_are_wrong_at_its_first_piece():
    called: list[int] = []

    @tool
    def stream(count: int) -> Iterator[str]:
        called.append(count)
        yield "x"

    async def first() -> None:
        pieces = stream.endpoint("{}")
        with pytest.raises(ToolArgumentsError, match=r"arguments\.count: missing"):
            await anext(pieces)

    asyncio.run(first())
    assert called == []


def observed(log: list[str], form: str) -> Any:
    """Return a stream of numbers without end, in one of the forms, that notes when it is closed."""

    def sync() -> Iterator[int]:
        try:
            yield from range(1000)
        finally:
            log.append("closed")

    async def awaited() -> AsyncIterator[int]:
        try:
            for number in range(1000):
                yield number
        finally:
            await asyncio.sleep(0)
            log.append("closed")

    def handed_out() -> AsyncIterator[int]:
        return awaited()

    return {
        "in a thread": tool(sync),
        "in place": tool(sync, thread=False),
        "async": tool(awaited),
        "handed out": tool(handed_out),
    }[form]


@pytest.mark.parametrize("form", ["in a thread", "in place", "async", "handed out"])
def test_a_stream_that_is_left_early_is_closed(form):
    log: list[str] = []
    made = observed(log, form)

    async def two() -> list[str]:
        pieces = made.endpoint("{}")
        got = [await anext(pieces), await anext(pieces)]
        await pieces.aclose()
        assert log == ["closed"]
        return got

    assert asyncio.run(two()) == ["0", "1"]


@pytest.mark.parametrize("form", ["in a thread", "in place", "async", "handed out"])
def test_a_stream_that_is_read_to_its_end_is_closed_once(form):
    log: list[str] = []
    assert len(run(observed(log, form))) == 1000
    assert log == ["closed"]


def threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "suture-tool"}


def test_threads_are_used_again():
    @tool
    def stream() -> Iterator[str]:
        yield "a"

    run(stream)
    before = threads()
    for _ in range(50):
        run(stream)
        run(tool(lambda: "", name="call"))
    # The next call may come before the thread of the last one is free.
    assert len(threads() - before) <= 1


def test_a_thousand_calls_at_once_all_end_with_a_bounded_number_of_threads():
    seen: list[int] = []
    full = threading.Event()

    @tool
    def work(number: int) -> int:
        seen.append(len(threads()))
        if len(seen) == 256:
            full.set()
        full.wait(10)
        return number

    async def all_at_once() -> list[str]:
        return await asyncio.gather(*(work.endpoint(f'{{"number": {number}}}') for number in range(1000)))

    assert asyncio.run(all_at_once()) == [str(number) for number in range(1000)]
    assert max(seen) <= 256


def test_a_thread_without_work_ends(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("suture._aio._IDLE", 0.01)
    monkeypatch.setattr("suture._aio._THREADS", type(_aio._THREADS)())
    before = threads()
    run(tool(lambda: "", name="call"))
    for thread in threads() - before:
        thread.join(10)
    assert threads() <= before


def test_a_thread_keeps_nothing_of_what_it_did_alive():
    class Large:
        pass

    @tool
    def make() -> str:
        made.append(weakref.ref(large := Large()))
        return type(large).__name__

    made: list[Any] = []
    assert run(make) == "Large"
    gc.collect()
    assert made[0]() is None


FORKING = """
import asyncio, os
from suture.tools import tool

@tool
def where() -> int:
    return os.getpid()

asyncio.run(where.endpoint("{}"))
child = os.fork()
if child:
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
else:
    there = asyncio.run(asyncio.wait_for(where.endpoint("{}"), 60))
    os._exit(0 if there == str(os.getpid()) else 1)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_starts_threads_of_its_own():
    options = ["-W", "ignore::DeprecationWarning", "-c", FORKING]  # newer Pythons warn of forking beside threads
    done = subprocess.run([sys.executable, *options], capture_output=True, text=True, check=True, timeout=60)
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_giving_up_on_a_blocking_call_does_not_wait_for_it():
    release, ended = threading.Event(), threading.Event()

    @tool
    def block() -> None:
        release.wait(10)
        ended.set()

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(block.endpoint("{}"), 0.05)

    asyncio.run(give_up())
    assert not ended.is_set()
    release.set()
    assert ended.wait(10)


@pytest.mark.parametrize("fails", [True, False])
def test_what_a_call_gives_after_it_was_given_up_is_forgotten(fails):
    release, ended = threading.Event(), threading.Event()
    complaints: list[Any] = []

    @tool
    def block() -> str:
        release.wait(10)
        ended.set()
        if fails:
            raise Odd("too late")
        return "too late"

    async def give_up() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, complaint: complaints.append(complaint))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(block.endpoint("{}"), 0.05)
        release.set()
        assert await asyncio.to_thread(ended.wait, 10)
        await asyncio.sleep(0.05)

    asyncio.run(give_up())
    gc.collect()
    assert complaints == []


def test_a_blocking_stream_that_is_given_up_closes_itself_when_it_can():
    release, closed = threading.Event(), threading.Event()

    @tool
    def stream() -> Iterator[str]:
        try:
            yield "a"
            release.wait(10)
            yield "b"
        finally:
            closed.set()

    async def give_up() -> None:
        pieces = stream.endpoint("{}")
        assert await anext(pieces) == "a"
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(pieces), 0.05)

    asyncio.run(give_up())
    assert not closed.is_set()
    release.set()
    assert closed.wait(10)


HANGING = """
import asyncio, threading
from suture.tools import tool

@tool
def hang() -> None:
    threading.Event().wait()

async def main():
    try:
        await asyncio.wait_for(hang.endpoint("{}"), 0.05)
    except TimeoutError:
        print("gave up")

asyncio.run(main())
"""


def test_a_tool_that_hangs_does_not_keep_its_program_from_ending():
    done = subprocess.run([sys.executable, "-c", HANGING], capture_output=True, text=True, check=True, timeout=30)
    assert (done.stdout, done.stderr) == ("gave up\n", "")


def test_a_cancelled_async_function_is_cancelled_inside():
    log: list[str] = []

    @tool
    async def wait() -> None:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            log.append("cancelled")
            raise

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(wait.endpoint("{}"), 0.01)

    asyncio.run(give_up())
    assert log == ["cancelled"]
