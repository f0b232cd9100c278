"""The ways to run an agent, and what comes of a run."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, assert_type

from suture import (
    ChatModelAgent,
    ChatModelAgentState,
    Delta,
    Message,
    ModelRequest,
    Outcome,
    Run,
    RunResult,
    TokenUsage,
    replace,
)
from suture.events import AnyEvent, Interrupt
from suture.kernel import SyncRun


class Parrot:
    """Repeats what it was told."""

    wire = "message"
    profile = "pairing"

    async def stream(self, request: ModelRequest[Message]) -> AsyncIterator[Delta | Message]:
        said = request.messages[-1].content
        for word in said.split():
            yield Delta(text=f"{word} ")
        yield Message.assistant(said)


@dataclass
class Tide:
    port: str
    time: str


agent = ChatModelAgent(name="parrot", instruction="Repeat.", model=Parrot())


async def ask(question: str) -> str:
    result = await agent.run(question)
    answer: str = result.output
    return answer


def plain() -> list[AnyEvent]:
    with agent.stream("one two") as run:
        assert_type(run, SyncRun[str])
        assert_type(list(run.text()), list[str])
        assert_type(run.result(), RunResult[str])
    waiting = assert_type(agent.run_sync("one"), RunResult[str])
    assert_type(agent.resume_sync(waiting, "yes"), RunResult[str])
    session = agent.session("one")
    assert_type(session.run_sync("two"), RunResult[str])
    assert_type(session.resume_sync("yes"), RunResult[str])
    with session.stream("three") as run:
        return list(run)


async def events() -> list[AnyEvent]:
    seen: list[AnyEvent] = []
    async with agent.stream("one two") as run:
        assert_type(run, Run[str])
        async for event in run:
            assert_type(event, AnyEvent)
            seen.append(event)
        assert_type(run.run_id, str)
        assert_type(await run.result(), RunResult[str])
    assert_type(run.final_result, RunResult[str] | None)
    return seen


async def texts() -> str:
    said = ""
    async for text in agent.stream("one two").text():
        assert_type(text, str)
        said += text
    async with aclosing(agent.stream("three four").text()) as pieces:
        async for piece in pieces:
            said += piece
            break
    return said


async def several() -> None:
    first, second = await asyncio.gather(agent.run("a"), agent.run("b"))
    assert_type(first, RunResult[str])
    assert (first.output, second.output) == ("a", "b")
    await asyncio.wait_for(agent.run("c"), timeout=10)


def show(result: RunResult[str]) -> None:
    assert_type(result.outcome, Outcome)
    assert_type(result.usage, TokenUsage)
    assert_type(result.usage.total_tokens, int)
    assert_type(result.interrupts, tuple[Interrupt, ...])
    assert_type(result.session, Mapping[str, Any])
    assert_type(result.message_ids, tuple[str, ...])
    assert_type(result.error, BaseException | None)
    assert_type(result.checkpoint_id, str | None)
    assert_type(result.cleanup_errors, tuple[Exception, ...])
    for message in result.messages:
        print(message.role, message.content)
    match result.outcome:
        case Outcome.FINISHED:
            print(result.output)
        case Outcome.FAILED | Outcome.CANCELLED:
            print("stopped")
        case Outcome.INTERRUPTED:
            print([interrupt.id for interrupt in result.interrupts])


def follow(state: ChatModelAgentState[Message]) -> ChatModelAgentState[Message]:
    return replace(state, messages=[*state.messages, Message.user("Go on.")])


async def choices() -> None:
    await agent.run(
        "hello",
        streaming=False,
        deps=Tide("Dover", "06:12"),
        session={"user": "ada"},
        options={"temperature": 0},
        tool_options={"verbose": True},
        after_tool_calls=follow,
        language="en",
    )


def begin(instruction: str, messages: Sequence[Message]) -> list[Message]:
    return [Message.system(instruction), *messages]


async def structured() -> Tide:
    reader = ChatModelAgent(name="reader", model=Parrot(), output_type=Tide, input_builder=begin, output_key="tide")
    result = await reader.run('{"port": "Dover", "time": "06:12"}')
    assert_type(reader, ChatModelAgent[Tide])
    assert_type(result, RunResult[Tide])
    assert_type(result.output, Tide)
    return result.output


def main() -> None:
    assert asyncio.run(ask("hello")) == "hello"
    assert len(asyncio.run(events())) > 3
    assert asyncio.run(texts()).startswith("one two")
    asyncio.run(several())
    asyncio.run(choices())
    assert asyncio.run(structured()).port == "Dover"
    result = agent.run_sync("hello", streaming=False, session={"user": "ada"})
    assert_type(result, RunResult[str])
    show(result)
    assert_type(agent.describe(), str)


if __name__ == "__main__":
    main()
