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
        await run.result()
    return events, raised.value, run.final_result


def fail(agent: ChatModelAgent[Any]) -> tuple[list[Any], BaseException, Any]:
    return asyncio.run(failed(agent.stream("go")))


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


@plain_or_not
@pytest.mark.parametrize("tool_errors", ["result", "raise"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_error_while_a_hook_puts_something_around_a_call_ends_the_run(kind: str, tool_errors: Any, coroutines: bool):
    hook = f"wrap_{kind}_tool_call"
    agent = ChatModelAgent(
        model=ScriptedModel([MESSAGE.calls(("c1", "work", "{}")), "done"]),
        tools=[tool_of_kind(kind)],
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

    async def wrap_tool_call(self, call: Any, proceed: Any) -> Any:
        return await self._awaited(proceed, "any")(call)

    def wrap_invokable_tool_call(self, endpoint: Any, context: Any) -> Any:
        return self._awaited(endpoint, "invokable")

    def wrap_streamable_tool_call(self, endpoint: Any, context: Any) -> Any:
        return self._iterated(endpoint, "streamable")

    def wrap_enhanced_invokable_tool_call(self, endpoint: Any, context: Any) -> Any:
        return self._awaited(endpoint, "enhanced_invokable")

    def wrap_enhanced_streamable_tool_call(self, endpoint: Any, context: Any) -> Any:
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


@plain_or_not
@pytest.mark.parametrize("kind", ["agent", "model", "tool"])
@pytest.mark.parametrize("moment", ["on_start", "on_end", "on_error"])
def test_a_callback_that_fails_is_logged_and_changes_nothing(
    kind: str, moment: str, coroutines: bool, caplog: pytest.LogCaptureFixture
):
    def run(callbacks: Callbacks | None) -> Any:
        model = ScriptedModel([MESSAGE.calls(("c1", "work", "{}"), ("c2", "fails", "{}")), OSError("disk full")])
        failover = ModelFailoverConfig(models=[ScriptedModel(["done"])])
        tools = [tool_of_kind("invokable"), suture.replace(failing("invokable"), info=suture.ToolInfo("fails"))]
        agent = ChatModelAgent(model=model, tools=tools, failover=failover, callbacks=callbacks)
        result = asyncio.run(_awaited(agent))
        return result.messages, result.outcome, result.output, result.cleanup_errors

    callbacks = Callbacks(**only(moment, boom_later if coroutines else boom), kinds=frozenset({kind}))
    assert run(callbacks) == run(None)
    said = [record.getMessage() for record in caplog.records if record.name == "suture"]
    assert all(f"{moment} failed for {kind}" in each for each in said)
    assert bool(said) is ((kind, moment) != ("agent", "on_error"))


@plain_or_not
def test_an_error_of_should_retry_ends_the_run(coroutines: bool):
    model = ScriptedModel(["one", "two"])
    retry = ModelRetryConfig(should_retry=boom_later if coroutines else boom)
    _, _, result = fail(ChatModelAgent(model=model, model_retry_config=retry))
    assert len(model.requests) == 1
    assert result.messages == [MESSAGE.user("go")]


def test_when_all_models_fail_the_error_names_those_before_it():
    refused, down = ConnectionError("the key is refused"), TimeoutError("slow")
    first, second, third = ScriptedModel([refused]), ScriptedModel([OSError("gone")]), ScriptedModel([down])
    agent = ChatModelAgent(model=first, failover=ModelFailoverConfig(models=[second, third]))
    with pytest.raises(TimeoutError, match="slow") as error:
        agent.run_sync("hi")
    assert error.value.__notes__ == [
        "before it, ScriptedModel failed with ConnectionError: the key is refused",
        "before it, ScriptedModel failed with OSError: gone",
    ]


@pytest.mark.parametrize("function", ["should_failover", "get_failover_model"])
@plain_or_not
def test_an_error_of_a_failover_function_ends_the_run(function: str, coroutines: bool):
    failover = ModelFailoverConfig(
        models=[ScriptedModel(["done"])], **only(function, boom_later if coroutines else boom)
    )
    fail(ChatModelAgent(model=ScriptedModel([TimeoutError("slow")]), failover=failover))


def test_an_error_of_the_input_builder_ends_the_run():
    fail(ChatModelAgent(model=ScriptedModel(["done"]), input_builder=boom))


@plain_or_not
@pytest.mark.parametrize("place", ["tool_call_middlewares", "older form", "wrap_tool_call"])
def test_an_error_of_a_wrapper_around_a_call_is_the_calls_as_the_tools_own_is(place: str, coroutines: bool):
    broken = boom_later if coroutines else boom
    middlewares = {
        "tool_call_middlewares": [],
        "older form": [AgentMiddleware(wrap_tool_call=broken)],
        "wrap_tool_call": [exploding("wrap_tool_call", coroutines=coroutines)],
    }

    def agent(**choices: Any) -> ChatModelAgent[Any]:
        outside = [broken] if place == "tool_call_middlewares" else []
        return ChatModelAgent(
            model=ScriptedModel([MESSAGE.calls(("c1", "work", "{}")), "done"]),
            tools=ToolsConfig(tools=[tool_of_kind("invokable")], tool_call_middlewares=outside),
            middlewares=middlewares[place],
            **choices,
        )

    result = asyncio.run(_awaited(agent()))
    assert result.messages[2] == MESSAGE.result("c1", "work", "BoomError: boom", is_error=True)
    fail(agent(tool_errors="raise"))


@pytest.mark.parametrize(
    ("kind", "endpoint", "told"),
    [
        ("invokable", "plain", "must be async"),
        ("invokable", "yields text", "must be async"),
        ("streamable", "plain", "async generator"),
        ("streamable", "returns", "async generator"),
        ("invokable", "forgets to return", "Wrapping.*NoneType"),
        ("enhanced_invokable", "forgets to return", "Wrapping.*NoneType"),
        ("invokable", "no function", "Wrapping.wrap_.*_tool_call returned int"),
        ("streamable", "no function", "Wrapping.wrap_.*_tool_call returned int"),
    ],
)
def test_an_endpoint_of_the_wrong_form_ends_the_run_and_is_named(kind: str, endpoint: str, told: str):
    async def returns(_: Any, **__: Any) -> str:
        return "done"

    def plain(_: Any, **__: Any) -> str:
        return "done"

    async def yields(_: Any, **__: Any) -> AsyncIterator[str]:
        yield "done"

    async def forgets(_: Any, **__: Any) -> None:
        await returns(_)

    made = {
        "returns": returns,
        "plain": plain,
        "yields text": yields,
        "forgets to return": forgets,
        "no function": 7,
    }[endpoint]
    wrapping = type("Wrapping", (ChatModelAgentMiddleware,), {f"wrap_{kind}_tool_call": lambda *_: made})
    agent = ChatModelAgent(
        model=ScriptedModel([MESSAGE.calls(("c1", "work", "{}")), "done"]),
        tools=[tool_of_kind(kind)],
        middlewares=[wrapping()],
    )
    with pytest.raises(suture.ConfigError, match=told):
        asyncio.run(_awaited(agent))


@pytest.mark.parametrize("value", [7, "done", None, ["done"]])
@pytest.mark.parametrize("place", ["tool_call_middlewares", "older form", "wrap_tool_call"])
def test_a_wrapper_that_gives_no_result_is_an_error_of_the_program_and_not_told_to_the_model(place: str, value: Any):
    def wrong(*_: Any) -> Any:
        return value

    middlewares: dict[str, list[Any]] = {
        "tool_call_middlewares": [],
        "older form": [AgentMiddleware(wrap_tool_call=wrong)],
        "wrap_tool_call": [type("Wrong", (ChatModelAgentMiddleware,), {"wrap_tool_call": wrong})()],
    }
    model = ScriptedModel([MESSAGE.calls(("c1", "work", "{}")), "done"])
    agent = ChatModelAgent(
        model=model,
        tools=ToolsConfig(
            tools=[tool_of_kind("invokable")],
            tool_call_middlewares=[wrong] if place == "tool_call_middlewares" else [],
        ),
        middlewares=middlewares[place],
    )
    named = {"wrap_tool_call": "Wrong.wrap_tool_call returned", "older form": "AgentMiddleware.wrap_tool_call returned"}
    with pytest.raises(suture.ConfigError, match=f"{named.get(place, '')}.*ToolResult"):
        asyncio.run(_awaited(agent))
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("hook", "value"), [("wrap_model", 7), ("wrap_model_call", 7), ("wrap_model_call", None), ("wrap_model_call", "hi")]
)
def test_a_wrapper_of_the_model_that_gives_something_else_is_named(hook: str, value: Any):
    wrong = type("Wrong", (ChatModelAgentMiddleware,), {hook: lambda *_: value})
    retry = ModelRetryConfig(max_retries=3, backoff=lambda _: 0)
    agent = ChatModelAgent(model=ScriptedModel(["done"]), middlewares=[wrong()], model_retry_config=retry)
    with pytest.raises(suture.ConfigError, match=f"Wrong.{hook} .*{type(value).__name__}"):
        asyncio.run(_awaited(agent))


def test_a_wrapper_of_the_model_sees_a_cut_stream_as_the_error_that_it_is():
    class Cut:
        wire, profile = "message", "pairing"

        async def stream(self, _: Any) -> AsyncIterator[Any]:
            yield suture.Delta(text="half a ")

    class Reads(ChatModelAgentMiddleware[Any]):
        async def wrap_model_call(self, request: Any, proceed: Any) -> Any:
            return suture.replace(await proceed(request), content="whole")

    told: list[Any] = []
    callbacks = Callbacks(on_end=lambda *of: told.append(of), on_error=lambda *of: told.append(of[1]))
    with pytest.raises(suture.StreamCutError) as caught:
        asyncio.run(
            _awaited(ChatModelAgent(model=Cut(), middlewares=[Reads()], callbacks=callbacks, model_retry_config=None))
        )
    assert caught.value.result.messages[-1].content == "half a "
    assert told == [caught.value, caught.value]  # of the model, and of the agent


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (ModelRetryConfig, ["should_retry", "backoff"]),
        (ModelFailoverConfig, ["should_failover", "get_failover_model"]),
        (suture.Budget, ["cost_of"]),
        (Callbacks, ["on_start", "on_end", "on_error"]),
    ],
)
def test_a_policy_that_is_no_function_is_refused_at_once(make: Any, names: list[str]):
    for name in names:
        with pytest.raises(suture.ConfigError, match=f"{name} must be a function, found int"):
            make(**{name: 7})


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"models": ["openai:gpt-5-mini"]}, r"takes models, not names; suture.models.get_model\('openai:gpt-5-mini'\)"),
        ({"models": "openai:gpt-5-mini"}, "models takes a list; put a single one into a list. Got str"),
        ({"models": ScriptedModel(["done"])}, "models takes a list; put a single one into a list. Got ScriptedModel"),
        ({"models": [ScriptedModel(["done"])], "max_retries": -1}, "max_retries must be an integer, 0 or more"),
    ],
)
def test_a_failover_to_what_is_no_list_of_models_is_refused_at_once(wrong: dict[str, Any], told: str):
    with pytest.raises(suture.ConfigError, match=told):
        ChatModelAgent(model=ScriptedModel(["done"]), failover=ModelFailoverConfig(**wrong))
