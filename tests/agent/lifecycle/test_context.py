"""What is set in a context variable is seen from there on; what a tool call sets dies with it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from contextvars import ContextVar
from typing import Any, cast

import pytest

from suture import ChatModelAgent, ChatModelAgentMiddleware, ModelRequest, ModelWrapper, ToolResult, tool
from suture.messages import TextPart
from suture.testing import ScriptedModel
from tests.agent.lifecycle.recording import KINDS, collect
from tests.agent.lifecycle.speech import MESSAGE, WIRES, Speech, wire_name

every_wire = pytest.mark.parametrize("speech", WIRES, ids=wire_name)

mark: ContextVar[str] = ContextVar("mark", default="")
own: ContextVar[str] = ContextVar("own", default="")


class Marking(ChatModelAgentMiddleware[Any]):
    """Adds its letter to the mark in one hook, and notes what the mark is in all of them."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.seen: list[tuple[str, str]] = []

    def at(self, place: str) -> None:
        self.seen.append((place, mark.get()))
        if place == self.place:
            mark.set(mark.get() + "x")

    def before_agent(self, context: Any) -> Any:
        self.at("before_agent")

    def before_model_rewrite_state(self, state: Any, model_context: Any) -> Any:
        self.at("before_model")

    def wrap_model(self, model: Any, model_context: Any) -> Any:
        self.at("wrap_model")
        return model

    def after_model_rewrite_state(self, state: Any, model_context: Any) -> Any:
        self.at("after_model")

    async def wrap_tool_call(self, call: Any, proceed: Any) -> Any:
        self.at("wrap_tool_call")
        return await proceed(call)

    def wrap_invokable_tool_call(self, endpoint: Any, context: Any) -> Any:
        self.at("wrap_invokable_tool_call")
        return endpoint

    def after_agent(self, state: Any, outcome: Any) -> Any:
        self.at("after_agent")


class MarkingLater(Marking):
    """The same in coroutines that really wait."""

    async def before_agent(self, context: Any) -> Any:
        await asyncio.sleep(0)
        self.at("before_agent")

    async def before_model_rewrite_state(self, state: Any, model_context: Any) -> Any:
        await asyncio.sleep(0)
        self.at("before_model")

    async def wrap_model(self, model: Any, model_context: Any) -> Any:
        await asyncio.sleep(0)
        self.at("wrap_model")
        return model

    async def after_model_rewrite_state(self, state: Any, model_context: Any) -> Any:
        await asyncio.sleep(0)
        self.at("after_model")

    async def wrap_tool_call(self, call: Any, proceed: Any) -> Any:
        await asyncio.sleep(0)
        return await super().wrap_tool_call(call, proceed)

    async def wrap_invokable_tool_call(self, endpoint: Any, context: Any) -> Any:
        await asyncio.sleep(0)
        self.at("wrap_invokable_tool_call")
        return endpoint

    async def after_agent(self, state: Any, outcome: Any) -> Any:
        await asyncio.sleep(0)
        self.at("after_agent")


def watched(marking: Marking, speech: Speech) -> ChatModelAgent[Any]:
    """Return an agent that takes two turns with a call between them, watched everywhere."""

    @tool
    async def look() -> str:
        """Look."""
        marking.at("tool")
        return "seen"

    def give(reply: Any) -> Any:
        return lambda _messages: marking.at("model") or reply

    model = ScriptedModel([give(speech.calls(("c1", "look", "{}"))), give("done")], speech.wire)
    return ChatModelAgent(model=model, tools=[look], middlewares=[marking])


@every_wire
@pytest.mark.parametrize("kind", [Marking, MarkingLater], ids=["plain", "coroutines"])
@pytest.mark.parametrize("place", ["before_agent", "before_model", "wrap_model", "after_model"])
def test_what_a_hook_sets_is_seen_from_there_to_the_end_of_the_run(kind: type[Marking], place: str, speech: Speech):
    marking = kind(place)
    asyncio.run(collect(watched(marking, speech).stream("go")))
    turn = ["before_model", "wrap_model", "model", "after_model"]
    call = ["wrap_tool_call", "wrap_invokable_tool_call", "tool"]
    places = ["before_agent", *turn, *call, *turn, "after_agent"]
    assert sorted(at for at, _ in marking.seen) == sorted(places)
    count = 0
    expected: list[tuple[str, str]] = []
    for at, _ in marking.seen:
        expected.append((at, "x" * count))
        count += at == place
    assert marking.seen == expected
    assert marking.seen[-1] == ("after_agent", "x" * (1 if place == "before_agent" else 2))


def test_a_run_sees_what_its_caller_set_and_the_caller_nothing_of_the_run():
    marking = Marking("before_agent")

    async def main() -> str:
        mark.set("caller")
        await watched(marking, MESSAGE).run("go")
        return mark.get()

    assert asyncio.run(main()) == "caller"
    assert marking.seen[0] == ("before_agent", "caller")
    assert marking.seen[-1] == ("after_agent", "callerx")


def test_runs_beside_each_other_see_nothing_of_each_other():
    async def main() -> list[Marking]:
        markings = [Marking("before_model") for _ in range(3)]
        await asyncio.gather(*(collect(watched(marking, MESSAGE).stream("go")) for marking in markings))
        return markings

    for marking in asyncio.run(main()):
        assert marking.seen[-1] == ("after_agent", "xx")


class WatchingOwn(ChatModelAgentMiddleware[Any]):
    """Sets a variable inside a call, and notes what is left of it in later hooks and calls."""

    def __init__(self) -> None:
        self.inside: list[tuple[str, str, str]] = []
        self.outside: list[str] = []

    async def wrap_tool_call(self, call: Any, proceed: Any) -> Any:
        before = own.get()
        token = own.set(call.call_id)
        try:
            result = await proceed(call)
            self.inside.append((call.call_id, before, own.get()))
        finally:
            own.reset(token)
        return result

    def before_model_rewrite_state(self, state: Any, model_context: Any) -> Any:
        self.outside.append(own.get())

    def after_agent(self, state: Any, outcome: Any) -> Any:
        self.outside.append(own.get())


@pytest.mark.parametrize("sequential", [False, True])
@pytest.mark.parametrize("calls", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_call_sets_is_seen_inside_it_and_dies_with_it(kind: str, calls: int, sequential: bool):
    async def set_own(_context: str) -> str:
        await asyncio.sleep(0)
        seen = own.get()
        own.set(f"{seen} in the tool")
        await asyncio.sleep(0)
        return f"{seen}, then {own.get()}"

    async def invokable(name: str) -> str:
        return await set_own(name)

    async def streamable(name: str) -> AsyncIterator[str]:
        yield await set_own(name)
        yield "; " + own.get()

    async def enhanced_invokable(name: str) -> ToolResult:
        return ToolResult((TextPart(await set_own(name)),))

    async def enhanced_streamable(name: str) -> AsyncIterator[ToolResult]:
        yield ToolResult((TextPart(await set_own(name)),))
        yield ToolResult((TextPart("; " + own.get()),))

    functions = (invokable, streamable, enhanced_invokable, enhanced_streamable)
    work = tool(next(function for function in functions if function.__name__ == kind), name="work")
    names = [f"c{number}" for number in range(1, calls + 1)]
    asked = MESSAGE.calls(*((name, "work", f'{{"name": "{name}"}}') for name in names))
    watching = WatchingOwn()
    agent = ChatModelAgent(
        model=ScriptedModel([asked, "done"]), tools=[work], middlewares=[watching], sequential=sequential
    )
    _, result = asyncio.run(collect(agent.stream("go")))
    assert sorted(watching.inside) == [(name, "", f"{name} in the tool") for name in names]
    assert watching.outside == ["", "", ""]
    tail = "; {0} in the tool" if kind.endswith("streamable") else ""
    assert [message.content for message in result.messages[2:-1]] == [
        ("{0}, then {0} in the tool" + tail).format(name) for name in names
    ]


@pytest.mark.parametrize("calls", [1, 2])
def test_what_only_the_tool_sets_is_not_seen_by_the_next_turn(calls: int):
    seen: list[str] = []

    @tool
    async def work() -> str:
        """Work."""
        seen.append(own.get())
        own.set("left behind")
        return "worked"

    model = ScriptedModel(
        [
            MESSAGE.calls(*((f"c{number}", "work", "{}") for number in range(calls))),
            lambda _messages: seen.append(own.get()) or "done",
        ]
    )
    asyncio.run(collect(ChatModelAgent(model=model, tools=[work]).stream("go")))
    assert seen == [""] * (calls + 1)


def test_a_tool_in_a_thread_sees_what_hooks_and_wrappers_set():
    seen: list[tuple[str, str]] = []

    @tool
    def work() -> str:
        """Work."""
        seen.append((mark.get(), own.get()))
        return "worked"

    model = ScriptedModel([MESSAGE.calls(("c1", "work", "{}")), "done"])
    agent = ChatModelAgent(model=model, tools=[work], middlewares=[Marking("before_agent"), WatchingOwn()])
    asyncio.run(collect(agent.stream("go")))
    assert seen == [("x", "c1")]


class Resetting(ModelWrapper[Any]):
    """Sets a variable while the model speaks, and resets it behind the last piece, however it ends."""

    ended: list[str]

    async def stream(self, request: ModelRequest[Any], /) -> AsyncIterator[Any]:
        token = own.set("speaking")
        try:
            async with aclosing(cast("Any", self.inner).stream(request)) as pieces:
                async for piece in pieces:
                    yield piece
        finally:
            own.reset(token)
            self.ended.append(own.get())


@pytest.mark.parametrize("end", ["whole", "error", "cancelled"])
def test_a_wrapper_of_the_model_may_reset_a_variable_where_it_set_it_however_the_stream_ends(end: str):
    ended: list[str] = []

    class Around(ChatModelAgentMiddleware[Any]):
        def wrap_model(self, model: Any, model_context: Any) -> Any:
            wrapper = Resetting(model)
            wrapper.ended = ended
            return wrapper

    async def main() -> None:
        speaking = asyncio.Event()

        async def hang(_messages: Any) -> Any:
            speaking.set()
            await asyncio.Event().wait()

        replies = {"whole": "done", "error": TimeoutError("slow"), "cancelled": hang}
        run = ChatModelAgent(model=ScriptedModel([replies[end]]), middlewares=[Around()]).stream("go")
        if end == "whole":
            await run.result()
        elif end == "error":
            with pytest.raises(TimeoutError):
                await run.result()
        else:
            waiting = asyncio.ensure_future(collect(run))
            await speaking.wait()
            await run.cancel()
            await waiting

    asyncio.run(main())
    assert ended == [""]
