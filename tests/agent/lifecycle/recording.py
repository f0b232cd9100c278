"""A recorder of every step of a run: each hook, wrapper, callback, model and tool sends an event that says its name.

So the steps and the run's own events stand in one sequence, and what the event senders do has its place in it.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing
from typing import Any, cast

from suture import (
    AgentMiddleware,
    Callbacks,
    ChatModelAgentMiddleware,
    Component,
    Delta,
    ModelRequest,
    ModelWrapper,
    Run,
    RunResult,
    Tool,
    ToolArgument,
    ToolResult,
    send_event,
    tool,
)
from suture.events import (
    AnyEvent,
    Custom,
    MessageFinished,
    ModelStarted,
    RetryScheduled,
    ToolFinished,
    ToolStarted,
)
from suture.messages import TextPart

OWN = {
    ModelStarted: "model event: started",
    MessageFinished: "model event: finished",
    RetryScheduled: "model event: retry",
    ToolStarted: "tool event: started",
    ToolFinished: "tool event: finished",
}


def step(name: str) -> None:
    """Say where the run is now."""
    send_event(Custom(name))


def steps(events: Iterable[AnyEvent]) -> list[str]:
    """Return the names of the steps and of the event senders' own events, in order."""
    return [
        e.name if isinstance(e, Custom) else OWN[type(e)] for e in events if isinstance(e, Custom) or type(e) in OWN
    ]


async def collect(run: Run[Any, Any]) -> tuple[list[Any], RunResult[Any]]:
    """Return all events of a run, and its result; a run that never ends is an error."""
    async with asyncio.timeout(60):
        events = [event async for event in run]
        return events, await run.result()


class Around(ModelWrapper[Any]):
    """A model that says when the request goes in and when the whole message comes out."""

    def __init__(self, inner: Any, name: str) -> None:
        super().__init__(inner)
        self._name = name

    async def stream(self, request: ModelRequest[Any], /) -> AsyncIterator[Any]:
        step(f"{self._name} model: in")
        async with aclosing(cast("Any", self.inner).stream(request)) as pieces:
            async for piece in pieces:
                if not isinstance(piece, Delta):
                    step(f"{self._name} model: out")
                yield piece


def awaited(endpoint: Any, name: str) -> Any:
    """Return an endpoint around one that is awaited."""

    async def around(argument: Any, **options: Any) -> Any:
        step(f"{name}: in")
        result = await endpoint(argument, **options)
        step(f"{name}: out")
        return result

    return around


def iterated(endpoint: Any, name: str) -> Any:
    """Return an endpoint around one that is iterated."""

    async def around(argument: Any, **options: Any) -> AsyncIterator[Any]:
        step(f"{name}: in")
        async with aclosing(endpoint(argument, **options)) as pieces:
            async for piece in pieces:
                yield piece
        step(f"{name}: out")

    return around


async def passed(request: Any, proceed: Any, name: str) -> Any:
    """Pass a call on as a general wrapper."""
    step(f"{name}: in")
    whole = await proceed(request)
    step(f"{name}: out")
    return whole


class Plain(ChatModelAgentMiddleware[Any]):
    """A middleware with every hook, each a plain function."""

    def __init__(self, name: str) -> None:
        self.name = name

    def before_agent(self, context: Any) -> Any:
        step(f"{self.name} before_agent")

    def before_model_rewrite_state(self, state: Any, model_context: Any) -> Any:
        step(f"{self.name} before_model_rewrite_state")

    def after_model_rewrite_state(self, state: Any, model_context: Any) -> Any:
        step(f"{self.name} after_model_rewrite_state")

    def wrap_model_call(self, request: Any, proceed: Any) -> Any:
        return passed(request, proceed, f"{self.name} wrap_model_call")

    def wrap_model(self, model: Any, model_context: Any) -> Any:
        return Around(model, self.name)

    def wrap_invokable_tool_call(self, endpoint: Any, context: Any) -> Any:
        return awaited(endpoint, f"{self.name} wrap_invokable_tool_call")

    def wrap_streamable_tool_call(self, endpoint: Any, context: Any) -> Any:
        return iterated(endpoint, f"{self.name} wrap_streamable_tool_call")

    def wrap_enhanced_invokable_tool_call(self, endpoint: Any, context: Any) -> Any:
        return awaited(endpoint, f"{self.name} wrap_enhanced_invokable_tool_call")

    def wrap_enhanced_streamable_tool_call(self, endpoint: Any, context: Any) -> Any:
        return iterated(endpoint, f"{self.name} wrap_enhanced_streamable_tool_call")

    def wrap_tool_call(self, call: Any, proceed: Any) -> Any:
        return passed(call, proceed, f"{self.name} wrap_tool_call")

    def after_agent(self, state: Any, outcome: Any) -> Any:
        step(f"{self.name} after_agent")


class Awaited(Plain):
    """The same, each hook a coroutine function."""

    async def before_agent(self, context: Any) -> Any:
        return super().before_agent(context)

    async def before_model_rewrite_state(self, state: Any, model_context: Any) -> Any:
        return super().before_model_rewrite_state(state, model_context)

    async def after_model_rewrite_state(self, state: Any, model_context: Any) -> Any:
        return super().after_model_rewrite_state(state, model_context)

    async def wrap_model_call(self, request: Any, proceed: Any) -> Any:
        return await super().wrap_model_call(request, proceed)

    async def wrap_model(self, model: Any, model_context: Any) -> Any:
        return super().wrap_model(model, model_context)

    async def wrap_invokable_tool_call(self, endpoint: Any, context: Any) -> Any:
        return super().wrap_invokable_tool_call(endpoint, context)

    async def wrap_streamable_tool_call(self, endpoint: Any, context: Any) -> Any:
        return super().wrap_streamable_tool_call(endpoint, context)

    async def wrap_enhanced_invokable_tool_call(self, endpoint: Any, context: Any) -> Any:
        return super().wrap_enhanced_invokable_tool_call(endpoint, context)

    async def wrap_enhanced_streamable_tool_call(self, endpoint: Any, context: Any) -> Any:
        return super().wrap_enhanced_streamable_tool_call(endpoint, context)

    async def wrap_tool_call(self, call: Any, proceed: Any) -> Any:
        return await super().wrap_tool_call(call, proceed)

    async def after_agent(self, state: Any, outcome: Any) -> Any:
        return super().after_agent(state, outcome)


def older(name: str, *, coroutines: bool) -> AgentMiddleware:
    """Return a middleware of the older form that says each of its steps."""

    def before(_state: Any) -> None:
        step(f"{name} before_chat_model")

    def after(_state: Any) -> None:
        step(f"{name} after_chat_model")

    def wrap(call: Any, proceed: Any) -> Any:
        return passed(call, proceed, f"{name} wrap_tool_call")

    if not coroutines:
        return AgentMiddleware(before_chat_model=before, after_chat_model=after, wrap_tool_call=wrap)

    async def before_later(state: Any) -> None:
        before(state)

    async def after_later(state: Any) -> None:
        after(state)

    async def wrap_later(call: Any, proceed: Any) -> Any:
        return await wrap(call, proceed)

    return AgentMiddleware(before_chat_model=before_later, after_chat_model=after_later, wrap_tool_call=wrap_later)


def callbacks(*kinds: str, coroutines: bool = False) -> Callbacks:
    """Return callbacks that say when a component starts, ends and fails."""

    def told(what: str) -> Any:
        def plain(component: Component, _value: Any) -> None:
            step(f"callbacks {component.kind}: {what}")

        async def later(component: Component, value: Any) -> None:
            plain(component, value)

        return later if coroutines else plain

    return Callbacks(on_start=told("start"), on_end=told("end"), on_error=told("error"), kinds=frozenset(kinds))


def tool_of_kind(kind: str) -> Tool[..., Any]:
    """Return a tool `work` of one of the four kinds that says when it runs and gives `worked`."""

    async def invokable() -> str:
        step("the tool")
        return "worked"

    async def streamable() -> AsyncIterator[str]:
        step("the tool")
        yield "wor"
        yield "ked"

    async def enhanced_invokable(_argument: ToolArgument) -> ToolResult:
        step("the tool")
        return ToolResult((TextPart("worked"),))

    async def enhanced_streamable(_argument: ToolArgument) -> AsyncIterator[ToolResult]:
        step("the tool")
        yield ToolResult((TextPart("wor"),))
        yield ToolResult((TextPart("ked"),))

    functions = (invokable, streamable, enhanced_invokable, enhanced_streamable)
    return next(tool(function, name="work") for function in functions if function.__name__ == kind)


KINDS = ("invokable", "streamable", "enhanced_invokable", "enhanced_streamable")
