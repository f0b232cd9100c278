"""An error in any hook, wrapper, callback or policy ends the run as itself, stops what follows, and leaves what was."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest

import suture
from suture import (
    AgentMiddleware,
    Callbacks,
    ChatModelAgent,
    ChatModelAgentMiddleware,
    ModelFailoverConfig,
    ModelRetryConfig,
    Outcome,
    Tool,
    ToolResult,
    ToolsConfig,
    tool,
)
from suture.events import ModelStarted, RunFinished
from suture.testing import ScriptedModel
from tests.agent.lifecycle.recording import KINDS, Plain, tool_of_kind
from tests.agent.lifecycle.speech import MESSAGE, WIRES, Speech, wire_name

every_wire = pytest.mark.parametrize("speech", WIRES, ids=wire_name)
plain_or_not = pytest.mark.parametrize("coroutines", [False, True], ids=["plain", "coroutines"])


class BoomError(Exception):
    pass


def boom(*_: Any, **__: Any) -> Any:
    raise BoomError("boom")


async def boom_later(*_: Any, **__: Any) -> Any:
    raise BoomError("boom")


def only(name: str, function: Any) -> dict[str, Any]:
    """Return the one choice of many that is made."""
    return {name: function}


def exploding(hook: str, *, coroutines: bool) -> ChatModelAgentMiddleware[Any]:
    """Return a middleware with one hook, that raises."""
    function = boom_later if coroutines else boom
    return type("Exploding", (ChatModelAgentMiddleware,), {hook: function})()


async def failed(run: Any) -> tuple[list[Any], BaseException, Any]:
    """Return the events, the exception and the result of a run that fails."""
    events: list[Any] = []
    with pytest.raises(BoomError) as raised:  # noqa: PT012 - a run may fail while it is read, or when it is awaited
        async for event in run:
            events.append(event)  # noqa: PERF401 - they are kept although the iteration may raise
        await run
    return events, raised.value, run.result


def fail(agent: ChatModelAgent[Any]) -> tuple[list[Any], BaseException, Any]:
    return asyncio.run(failed(agent.run("go")))


@every_wire
@plain_or_not
@pytest.mark.parametrize(
    ("hook", "kept"),
    [
        ("before_agent", ["go"]),
        ("before_model_rewrite_state", ["go"]),
        ("wrap_model", ["go"]),
        ("after_model_rewrite_state", ["go", "done"]),
    ],
)
def test_an_error_in_a_hook_ends_the_run_and_stops_the_hooks_behind_it(
    hook: str, kept: list[str], coroutines: bool, speech: Speech
):
    called: list[str] = []
    behind = type("Behind", (ChatModelAgentMiddleware,), {hook: lambda *_: called.append(hook)})()
    agent = ChatModelAgent(
        model=ScriptedModel(["done"], speech.wire), middlewares=[exploding(hook, coroutines=coroutines), behind]
    )
    events, error, result = fail(agent)
    assert str(error) == "boom"
    assert called == ([] if hook != "wrap_model" else called)
    assert isinstance(events[-1], RunFinished)
    assert events[-1].outcome == "failed"
    assert "boom" in events[-1].error
    assert result.outcome is Outcome.FAILED
    assert result.error is error
    assert result.messages == [speech.user("go"), speech.says("done")][: len(kept)]


@every_wire
@pytest.mark.parametrize("hook", ["before_chat_model", "after_chat_model"])
@plain_or_not
def test_an_error_in_a_hook_of_the_older_form_ends_the_run(hook: str, coroutines: bool, speech: Speech):
    called: list[str] = []
    agent = ChatModelAgent(
        model=ScriptedModel(["done"], speech.wire),
        middlewares=[
            AgentMiddleware(**only(hook, boom_later if coroutines else boom)),
            AgentMiddleware(**only(hook, lambda _state: called.append(hook))),
        ],
    )
    events, _, result = fail(agent)
    assert called == []
    assert events[-1].outcome == "failed"
    assert result.messages == [speech.user("go"), speech.says("done")][: 1 if hook.startswith("before") else 2]


def test_nothing_else_runs_after_an_error_in_before_agent():
    model = ScriptedModel(["done"])
    events, _, _ = fail(ChatModelAgent(model=model, middlewares=[exploding("before_agent", coroutines=False)]))
    assert model.requests == []
    assert not [event for event in events if isinstance(event, ModelStarted)]


WRAPPERS = [f"wrap_{kind}_tool_call" for kind in KINDS]


@plain_or_not
@pytest.mark.parametrize("tool_errors", ["result", "raise"])
@pytest.mark.parametrize("hook", ["wrap_tool_call", *WRAPPERS])
def test_an_error_while_a_hook_puts_something_around_a_call_ends_the_run(hook: str, tool_errors: Any, coroutines: bool):
    kind = hook.removeprefix("wrap_").removesuffix("_tool_call")
    plain = tool_of_kind(kind if kind in KINDS else "invokable")
    agent = ChatModelAgent(
        model=ScriptedModel([MESSAGE.calls(("c1", "work", "{}")), "done"]),
        tools=[plain],
        tool_errors=tool_errors,
        middlewares=[exploding(hook, coroutines=coroutines)],
    )
    _, error, result = fail(agent)
    assert isinstance(error, BoomError)
    assert result.outcome is Outcome.FAILED
    assert suture.check(result.messages).acceptable


class Catching(Plain):
    """Notes the exceptions that pass each wrapper."""

    def __init__(self) -> None:
        super().__init__("catching")
        self.caught: list[tuple[str, str]] = []

    def _iterated(self, endpoint: Any, hook: str) -> Any:
        async def iterate(argument: Any, **options: Any) -> AsyncIterator[Any]:
            try:
                async with aclosing(endpoint(argument, **options)) as pieces:
                    async for piece in pieces:
                        yield piece
            except BoomError as error:
                self.caught.append((hook, str(error)))
                raise

        return iterate

    def _awaited(self, endpoint: Any, hook: str) -> Any:
        async def wait(argument: Any, **options: Any) -> Any:
            try:
                return await endpoint(argument, **options)
            except BoomError as error:
                self.caught.append((hook, str(error)))
                raise

        return wait

    def wrap_tool_call(self, endpoint: Any, context: Any, /) -> Any:
        return self._iterated(endpoint, "any")

    def wrap_invokable_tool_call(self, endpoint: Any, context: Any, /) -> Any:
        return self._awaited(endpoint, "invokable")

    def wrap_streamable_tool_call(self, endpoint: Any, context: Any, /) -> Any:
        return self._iterated(endpoint, "streamable")

    def wrap_enhanced_invokable_tool_call(self, endpoint: Any, context: Any, /) -> Any:
        return self._awaited(endpoint, "enhanced_invokable")

    def wrap_enhanced_streamable_tool_call(self, endpoint: Any, context: Any, /) -> Any:
        return self._iterated(endpoint, "enhanced_streamable")


def failing(kind: str) -> Tool[..., Any]:
    """Return a tool `work` of a kind that fails; a stream of text first says something."""

    async def invokable() -> str:
        raise BoomError("boom")

    async def streamable() -> AsyncIterator[str]:
        yield "so far"
        raise BoomError("boom")

    async def enhanced_invokable() -> ToolResult:
        raise BoomError("boom")

    async def enhanced_streamable() -> AsyncIterator[ToolResult]:
        yield ToolResult()
        raise BoomError("boom")

    functions = (invokable, streamable, enhanced_invokable, enhanced_streamable)
    return tool(next(function for function in functions if function.__name__ == kind), name="work")


@every_wire
@pytest.mark.parametrize("kind", KINDS)
def test_an_exception_of_a_tool_reaches_the_wrappers_as_it_is(kind: str, speech: Speech):
    catching = Catching()
    agent = ChatModelAgent(
        model=ScriptedModel([speech.calls(("c1", "work", "{}")), "done"], speech.wire),
        tools=[failing(kind)],
        middlewares=[catching],
    )
    result = asyncio.run(_awaited(agent))
    assert catching.caught == [(kind, "boom"), ("any", "boom")]
    so_far = "so far\n" if kind == "streamable" else ""
    assert result.messages[2] == speech.result("c1", "work", f"{so_far}BoomError: boom", is_error=True)


async def _awaited(agent: ChatModelAgent[Any]) -> Any:
    return await agent.run("go")


@pytest.mark.parametrize(("kind", "moment"), [("agent", "on_start"), ("model", "on_start"), ("model", "on_end")])
def test_an_error_of_a_callback_ends_the_run(kind: str, moment: str):
    agent = ChatModelAgent(
        model=ScriptedModel(["done"]), callbacks=Callbacks(**{moment: boom}, kinds=frozenset({kind}))
    )
    _, _, result = fail(agent)
    assert result.outcome is Outcome.FAILED


def test_an_error_of_a_callback_after_the_end_of_the_run_is_kept_beside_its_outcome():
    agent = ChatModelAgent(model=ScriptedModel(["done"]), callbacks=Callbacks(on_end=boom, kinds=frozenset({"agent"})))
    result = asyncio.run(_awaited(agent))
    assert result.outcome is Outcome.FINISHED
    assert [str(error) for error in result.cleanup_errors] == ["boom"]


@plain_or_not
def test_an_error_of_should_retry_ends_the_run(coroutines: bool):
    model = ScriptedModel(["one", "two"])
    retry = ModelRetryConfig(should_retry=boom_later if coroutines else boom)
    _, _, result = fail(ChatModelAgent(model=model, model_retry_config=retry))
    assert len(model.requests) == 1
    assert result.messages == [MESSAGE.user("go")]


@pytest.mark.parametrize("function", ["should_failover", "get_failover_model"])
@plain_or_not
def test_an_error_of_a_failover_function_ends_the_run(function: str, coroutines: bool):
    failover = ModelFailoverConfig(
        models=[ScriptedModel(["done"])], **only(function, boom_later if coroutines else boom)
    )
    fail(ChatModelAgent(model=ScriptedModel([TimeoutError("slow")]), failover=failover))


def test_an_error_of_the_input_builder_ends_the_run():
    fail(ChatModelAgent(model=ScriptedModel(["done"]), input_builder=boom))


def test_an_error_of_a_middleware_in_the_tools_config_ends_the_run():
    agent = ChatModelAgent(
        model=ScriptedModel([MESSAGE.calls(("c1", "work", "{}")), "done"]),
        tools=ToolsConfig(tools=[tool_of_kind("invokable")], tool_call_middlewares=[boom]),
    )
    with pytest.raises(BoomError):
        asyncio.run(_awaited(agent))


@pytest.mark.parametrize(
    ("hook", "endpoint", "told"),
    [
        ("wrap_tool_call", "returns", "async generator"),
        ("wrap_tool_call", "plain", "async generator"),
        ("wrap_tool_call", "yields text", "not a ToolResult"),
        ("wrap_invokable_tool_call", "plain", "must be async"),
        ("wrap_invokable_tool_call", "yields text", "must be async"),
    ],
)
def test_an_endpoint_of_the_wrong_form_ends_the_run_and_is_named(hook: str, endpoint: str, told: str):
    async def returns(_: Any, **__: Any) -> str:
        return "done"

    def plain(_: Any, **__: Any) -> str:
        return "done"

    async def yields(_: Any, **__: Any) -> AsyncIterator[str]:
        yield "done"

    made = {"returns": returns, "plain": plain, "yields text": yields}[endpoint]
    wrapping = type("Wrapping", (ChatModelAgentMiddleware,), {hook: lambda *_: made})
    agent = ChatModelAgent(
        model=ScriptedModel([MESSAGE.calls(("c1", "work", "{}")), "done"]),
        tools=[tool_of_kind("invokable")],
        middlewares=[wrapping()],
    )
    with pytest.raises(suture.ConfigError, match=told):
        asyncio.run(_awaited(agent))
