"""Tools that behave badly: whatever one does, its run goes on or ends as itself, and its neighbours are not touched."""

import argparse
import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

import suture
from suture import ChatModelAgent, Outcome, ToolResult, current_run, interrupt, tool
from suture.messages import TextPart
from suture.stores import MemoryStore
from suture.testing import ScriptedModel
from tests.agent.tools.calling import model_that, on_each_wire, run, texts, told


@tool(name="parse")
async def parse(args: str) -> str:
    """Run a wrapped program."""
    parser = argparse.ArgumentParser(exit_on_error=True)
    parser.add_argument("--n")
    parser.parse_args(args.split())
    return "parsed"


@tool(name="parse")
def parse_in_a_thread(args: str) -> str:
    """Run a wrapped program."""
    if args:
        sys.exit(2)
    return "parsed"


@pytest.mark.parametrize("one_tool", [parse, parse_in_a_thread], ids=["async", "in a thread"])
def test_a_tool_that_exits_has_failed_and_takes_nothing_with_it(one_tool: Any):
    async def main() -> tuple[Any, Any]:
        neighbour = ChatModelAgent(model=model_that(("look", {})), tools=[look]).run("hi")
        exiting = ChatModelAgent(model=model_that(("parse", {"args": "--oops"})), tools=[one_tool]).run("hi")
        return await asyncio.gather(exiting, neighbour)

    exited, neighbour = asyncio.run(main())
    ((kind, _, text),) = told("message", list(exited.messages))
    assert kind == "failed"
    assert "exit code 2" in text
    assert exited.output == neighbour.output == "ok"


@tool
async def look() -> str:
    """Look."""
    return "seen"


def test_an_exception_that_cannot_say_what_it_is_is_told_by_its_type():
    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    @tool(name="look")
    async def mute() -> str:
        """Fail without words."""
        raise MuteError

    model = model_that(("look", {}))
    run(model, mute)
    assert texts(model) == ["MuteError"]


def test_of_a_call_that_blew_up_the_run_nobody_says_that_it_was_cancelled():
    class Blown(BaseException):
        pass

    @tool(name="blow")
    async def blow() -> str:
        """Raise what is no error."""
        raise Blown

    agent_run = ChatModelAgent(model=model_that(("blow", {}), ("look", {})), tools=[blow, look]).stream("hi")

    async def main() -> None:
        await agent_run.result()

    with pytest.raises(Blown):
        asyncio.run(main())
    result = agent_run.final_result
    assert result is not None
    assert result.outcome is Outcome.FAILED
    first, second = told("message", list(result.messages))
    assert "may or may not have run" in first[2]
    assert second[2] == "seen"


def test_interrupts_in_a_task_group_of_a_tool_are_waited_for():
    @tool
    async def ask() -> str:
        """Ask two people at once."""

        async def one(name: str) -> str:
            return f"{name}: {await interrupt(name)}"

        async with asyncio.TaskGroup() as group:
            asked = group.create_task(one("ada"))
        return asked.result()

    async def main() -> Any:
        agent = ChatModelAgent(model=model_that(("ask", {})), tools=[ask])
        first = await agent.run("hi")
        assert [item.info for item in first.interrupts] == ["ada"]
        return await agent.resume(first, "yes")

    result = asyncio.run(main())
    assert told("message", list(result.messages)) == [("result", "c0", "ada: yes")]


def test_names_that_a_model_makes_up_are_cut_in_what_it_is_told():
    model = model_that(("x" * 1_000_000, {}))
    run(model, look)
    assert len(texts(model)[0]) < 300


# Half a character


HALF = os.fsdecode(b"caf\xe9.txt")


@tool(name="list")
async def listing() -> str:
    """List files."""
    return HALF


@tool(name="list")
async def listing_stream() -> AsyncIterator[str]:
    """List files."""
    yield "first "
    yield HALF


@tool(name="list")
async def listing_enhanced() -> ToolResult:
    """List files."""
    return ToolResult((TextPart(HALF),))


@tool(name="list")
async def listing_error() -> str:
    """List files."""
    raise OSError(HALF)


@pytest.mark.parametrize("stored", [True, False], ids=["stored", "not stored"])
@pytest.mark.parametrize(
    "one_tool",
    [listing, listing_stream, listing_enhanced, listing_error],
    ids=["invokable", "streamable", "enhanced", "an error"],
)
@on_each_wire
def test_half_a_character_in_a_result_is_replaced_and_poisons_nothing(wire: str, one_tool: Any, stored: bool):
    async def main() -> Any:
        model = model_that(("list", {}), wire=wire)
        agent = ChatModelAgent(model=model, tools=[one_tool], checkpoint_store=MemoryStore())
        result = await agent.run("hi", checkpoint_id="one" if stored else None)
        return result, model

    result, model = asyncio.run(main())
    assert result.output == "ok"
    assert "caf\ufffd.txt" in texts(model)[0]
    str(list(result.messages)).encode()
    assert suture.check(list(result.messages), wire=wire).acceptable


@pytest.mark.parametrize("extra", [{"x": object()}, {"x": 2**100}], ids=["no value", "too big"])
def test_what_cannot_be_stored_beside_a_result_does_not_lose_the_result(extra: Any):
    @tool(name="look")
    async def noted() -> ToolResult:
        """Look, and note something."""
        return ToolResult((TextPart("seen"),), extra=extra)

    async def main() -> Any:
        agent = ChatModelAgent(model=model_that(("look", {})), tools=[noted], checkpoint_store=MemoryStore())
        return await agent.run("hi", checkpoint_id="one")

    result = asyncio.run(main())
    assert (result.outcome, result.output) == (Outcome.FINISHED, "ok")
    assert told("message", list(result.messages)) == [("result", "c0", "seen")]


# Much of everything


def test_the_pieces_of_a_stream_are_joined_once_and_never_added_up():
    class Text(str):
        __slots__ = ()

        def __add__(self, other: object) -> str:
            raise AssertionError("added up")

        __radd__ = __add__

    @tool(name="log")
    async def log() -> AsyncIterator[ToolResult]:
        """Stream a log, line by line."""
        for _ in range(20_000):
            yield ToolResult((TextPart(Text("y" * 79 + "\n")),))

    for choices in ({}, {"timeout": 600.0, "retry": 1}):
        model = model_that(("log", {}))
        run(model, suture.replace(log, **choices))
        assert len(texts(model)[0]) == 1_600_000


def test_plain_functions_called_in_great_numbers_share_a_bounded_number_of_threads():
    most: list[int] = []
    names: set[str] = set()

    @tool
    def work() -> str:
        """Work in a thread."""
        names.add(threading.current_thread().name)
        most.append(sum(1 for thread in threading.enumerate() if thread.name == "suture-tool"))
        return "worked"

    model = model_that(*[("work", {})] * 1000)
    run(model, work)
    assert texts(model) == ["worked"] * 1000
    assert max(most) <= 256


def test_values_that_parallel_calls_set_are_merged_in_call_order_when_the_batch_ends():
    seen: list[Any] = []

    async def main() -> None:
        second_is_done = asyncio.Event()

        @tool
        async def note(who: str) -> str:
            """Set a value."""
            values = current_run().values
            if who == "first":
                await second_is_done.wait()
            seen.append((who, values.get("who")))
            values["who"] = who
            values[who] = True
            if who == "second":
                second_is_done.set()
            return who

        def look_at(messages: Any) -> Any:
            if len(messages) > 1:
                seen.append(dict(current_run().values))
                return "ok"
            model: Any = model_that(("note", {"who": "first"}), ("note", {"who": "second"}))
            return model.replies[0]

        await ChatModelAgent(model=ScriptedModel(look_at), tools=[note]).run("hi")

    asyncio.run(main())
    assert seen == [("second", None), ("first", None), {"who": "second", "first": True, "second": True}]
