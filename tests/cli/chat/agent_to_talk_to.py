"""A model and tools to talk to. Copied to where a chat is started, and imported there."""

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from suture import Delta, Message, ModelRequest, ModelWrapper, TokenUsage, ToolCall, tool
from suture.errors import ModelConnectionError
from suture.messages import ResponseMeta
from suture.models import closing
from suture.testing import ScriptedModel

GOING_ON: list[asyncio.Task[None]] = []
EVIL = "\x1b]0;owned\x07\x1b[31m\x9b31m\x7f\u202egnp.exe\x00"
HALF = "half a letter: \ud83d."
MUCH = '{"item": "' + "rope," * 60 + '\x9b2K\u202e and the harbour"}'


async def pass_gate(name: str) -> None:
    """Wait until a test opens the gate."""
    loop = asyncio.get_running_loop()
    pipe = os.open(name, os.O_RDWR | os.O_NONBLOCK)
    opened = asyncio.Event()
    loop.add_reader(pipe, opened.set)
    try:
        await opened.wait()
        os.read(pipe, 1)
    finally:
        loop.remove_reader(pipe)
        os.close(pipe)


def tell(name: str) -> None:
    """Let a test know."""
    with Path(name).open("wb", buffering=0) as pipe:
        pipe.write(b".")


@tool
async def tides(port: str) -> str:
    """Look up today's high tide."""
    return f"06:12 in {port}"


@tool
async def hold() -> str:
    """Wait for the lock."""
    await pass_gate("lock")
    return "the lock is open"


@tool
def block() -> str:
    """Wait for ever, in a thread."""
    threading.Event().wait()
    return "never"


@tool(thread=False)
def hog() -> str:
    """Wait for ever, in the event loop."""
    tell("word")
    threading.Event().wait()
    return "never"


@tool
async def stubborn() -> str:
    """Take long to stop."""
    try:
        await asyncio.Event().wait()
    finally:
        tell("word")
        await pass_gate("lock")
    return "never"


@tool
async def later() -> str:
    """Go on while nobody waits for it."""

    async def go_on() -> None:
        await pass_gate("lock")
        tell("word")

    GOING_ON.append(asyncio.create_task(go_on()))
    return "it goes on"


@tool(requires_approval=True)
async def buy(item: str) -> str:
    """Buy something."""
    return f"bought {item}"


@tool
async def evil() -> str:
    """Answer with escapes."""
    return EVIL


@tool
async def log() -> str:
    """Give very much."""
    return "x" * 60_000


@tool
async def broken() -> str:
    """Fail."""
    raise ValueError("the gauge is broken")


@tool
def leave() -> str:
    """End the program, from a thread."""
    sys.exit(3)


@tool
async def leave_at_once() -> AsyncIterator[str]:
    """End the program, in the middle of a word."""
    yield "half a wo"
    sys.exit("goodbye")


@tool
async def interrupt() -> str:
    """Do as if somebody had pressed Ctrl-C."""
    raise KeyboardInterrupt


@tool
async def halve() -> str:
    """Say half a letter."""
    return HALF


@tool
async def break_in_half() -> str:
    """Fail with half a letter."""
    raise ValueError(HALF)


def depth(fathoms: int) -> str:
    """Say how deep it is."""
    return f"{fathoms} fathoms"


def wander() -> str:
    """Go to another directory."""
    os.chdir("/")
    return "away"


class Shed:
    """Where tools are kept."""

    tools = (tides, depth)


rude = [leave, leave_at_once, interrupt, halve, break_in_half]
tools = [tides, hold, block, stubborn, later, buy, evil, log, broken]

CALLS = {
    "tide": ("tides", '{"port": "Dover"}'),
    "depth": ("depth", '{"fathoms": 3}'),
    "hold": ("hold", "{}"),
    "block": ("block", "{}"),
    "hog": ("hog", "{}"),
    "stubborn": ("stubborn", "{}"),
    "later": ("later", "{}"),
    "buy": ("buy", '{"item": "ropes"}'),
    "buy much": ("buy", MUCH),
    "evil tool": ("evil", "{}"),
    "log": ("log", "{}"),
    "broken": ("broken", "{}"),
    "wander": ("wander", "{}"),
    "evil call": (EVIL, EVIL),
    "halved call": ("tides", '{"port": "\udc00"}'),
    **{made.name: (made.name, "{}") for made in rude},
}
USAGE = TokenUsage(prompt_tokens=90, completion_tokens=10, total_tokens=100)
SAID: dict[str, str | Message | BaseException] = {
    "slow": "Half of it|and the rest.",
    "evil": f"Look: {EVIL}",
    "lines": "one\r\ntwo\n\nthree",
    "fail": ValueError(f"the model fell into the water {EVIL}"),
    "quit": SystemExit(4),
    "kill": KeyboardInterrupt(),
    "half a letter": HALF,
    "half fail": "Half of it!",
    "count": Message("assistant", "Counted.", response_meta=ResponseMeta(usage=USAGE, finish_reason="length")),
}
FLAKY = [ModelConnectionError("the line is down")]


def script(messages: Sequence[Message]) -> str | Message | BaseException:
    """Answer the last message."""
    last = messages[-1]
    if last.role == "tool":
        return f"It says: {last.content[:200]}"
    if last.content in CALLS:
        return Message.assistant("One moment.", tool_calls=[ToolCall(f"call_{len(messages)}", *CALLS[last.content])])
    if last.content == "flaky" and FLAKY:
        return FLAKY.pop()
    if last.content == "what happened":
        return f"I was told: {[message.content for message in messages if message.role == 'tool'][-1]}"
    return SAID.get(last.content, f"You said: {last.content}")


class Paced(ModelWrapper[Message]):
    """Waits at a bar until a test opens the gate, and breaks down at an exclamation mark."""

    async def stream(self, request: ModelRequest[Message], /) -> AsyncIterator[Delta | Message]:
        """Ask the model inside."""
        async with closing(self.inner.stream(request)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Delta) and piece.text == "|":
                    await pass_gate("gate")
                if isinstance(piece, Delta) and piece.text == "!":
                    raise ValueError("the line was cut")
                yield piece


class Limits(ModelWrapper[Message]):
    """Says what it may use."""

    async def stream(self, request: ModelRequest[Message], /) -> AsyncIterator[Delta | Message]:
        """Tell what was asked."""
        yield Message.assistant(f"{request.instruction} {dict(request.options)}")


model = Paced(ScriptedModel(script, chunk_size=1))
limits = Limits(model)
agentic = ScriptedModel(lambda _: "I am agentic.", wire="agentic")
openai = ScriptedModel(["hello"], wire="openai-chat")
nothing = None
