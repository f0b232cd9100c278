"""What each step of a model turn is for, one after another: the thirteen of the reference, and fit."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any, cast

import pytest

from suture import (
    AgentMiddleware,
    Callbacks,
    ChatModelAgent,
    ChatModelAgentMiddleware,
    Delta,
    ModelRequest,
    ModelRetryConfig,
    ModelWrapper,
    RetryContext,
    replace,
    tool,
)
from suture.events import MessageFinished, ModelStarted, RetryScheduled
from suture.testing import ScriptedModel
from tests.agent.lifecycle.recording import collect, steps
from tests.agent.lifecycle.recording import step as say
from tests.agent.lifecycle.speech import WIRES, Speech, wire_name

every_wire = pytest.mark.parametrize("speech", WIRES, ids=wire_name)


class Changing(ModelWrapper[Any]):
    """A model whose request and whose whole message are changed on the way."""

    def __init__(self, inner: Any, request: Callable[[Any], Any] | None, message: Callable[[Any], Any] | None) -> None:
        super().__init__(inner)
        self._request, self._message = request, message

    async def stream(self, request: ModelRequest[Any], /) -> AsyncIterator[Any]:
        request = self._request(request) if self._request else request
        async with aclosing(cast("Any", self.inner).stream(request)) as pieces:
            async for piece in pieces:
                whole = self._message and not isinstance(piece, Delta)
                yield self._message(piece) if self._message and whole else piece


class Wrapping(ChatModelAgentMiddleware[Any]):
    """A middleware that changes the request, the reply, or both, for one call."""

    def __init__(self, *, request: Callable[[Any], Any] | None = None, message: Callable[[Any], Any] | None = None):
        self._request, self._message = request, message

    def wrap_model(self, model: Any, model_context: Any) -> Any:
        return Changing(model, self._request, self._message)


class Rewriting(ChatModelAgentMiddleware[Any]):
    """A middleware that changes the messages before a turn, after it, or both."""

    def __init__(self, *, before: Callable[[Any], Any] | None = None, after: Callable[[Any], Any] | None = None):
        self._before, self._after = before, after

    def before_model_rewrite_state(self, state: Any, model_context: Any) -> Any:
        return replace(state, messages=self._before(state.messages)) if self._before else None

    def after_model_rewrite_state(self, state: Any, model_context: Any) -> Any:
        return replace(state, messages=self._after(state.messages)) if self._after else None


@tool
async def look() -> str:
    """Look."""
    return "seen"


def run(agent: ChatModelAgent[Any], question: str = "go") -> tuple[list[Any], Any]:
    return asyncio.run(collect(agent.stream(question)))


@every_wire
def test_step_1_before_chat_model_changes_the_state_for_good(speech: Speech):
    def add(state: Any) -> Any:
        return replace(state, messages=[*state.messages, speech.user("and be quick")])

    model = ScriptedModel(["done"], speech.wire)
    _, result = run(ChatModelAgent(model=model, middlewares=[AgentMiddleware(before_chat_model=add)]))
    assert model.requests[0].messages == [speech.user("go"), speech.user("and be quick")]
    assert result.messages == [speech.user("go"), speech.user("and be quick"), speech.says("done")]


@every_wire
def test_step_2_before_model_rewrite_state_sees_what_before_chat_model_made_and_changes_it_for_good(speech: Speech):
    def add(state: Any) -> Any:
        return replace(state, messages=[*state.messages, speech.user("older")])

    newer = Rewriting(before=lambda messages: [*messages, speech.user(f"newer after {len(messages)}")])
    model = ScriptedModel(["done"], speech.wire)
    agent = ChatModelAgent(model=model, middlewares=[newer, AgentMiddleware(before_chat_model=add)])
    _, result = run(agent)
    sent = [speech.user("go"), speech.user("older"), speech.user("newer after 2")]
    assert model.requests[0].messages == sent
    assert result.messages == [*sent, speech.says("done")]


@every_wire
def test_step_3_retry_asks_the_model_again_without_the_hooks(speech: Speech):
    asked: list[int] = []
    hook = Rewriting(before=lambda messages: asked.append(len(messages)) or messages)
    model = ScriptedModel([TimeoutError("slow"), TimeoutError("slow"), "done"], speech.wire)
    retry = ModelRetryConfig(max_retries=2, backoff=lambda _attempt: 0)
    events, result = run(ChatModelAgent(model=model, middlewares=[hook], model_retry_config=retry))
    assert asked == [1]
    assert len(model.requests) == 3
    assert [e.attempt for e in events if isinstance(e, RetryScheduled)] == [1, 2]
    assert result.messages == [speech.user("go"), speech.says("done")]


@every_wire
def test_step_4_the_event_sender_says_that_the_model_is_asked_before_any_wrapper_runs(speech: Speech):
    wrapper = Wrapping(request=lambda request: say("wrapper") or request)
    model = ScriptedModel([lambda _messages: say("model") or "done"], speech.wire)
    events, _ = run(ChatModelAgent(model=model, middlewares=[wrapper]))
    assert steps(events) == ["model event: started", "wrapper", "model", "model event: finished"]


@every_wire
def test_step_5_wrap_model_changes_the_request_from_the_first_registered_inwards(speech: Speech):
    def adding(text: str) -> Wrapping:
        return Wrapping(request=lambda request: replace(request, messages=[*request.messages, speech.user(text)]))

    model = ScriptedModel(["done"], speech.wire)
    _, result = run(ChatModelAgent(model=model, middlewares=[adding("first"), adding("second")]))
    assert model.requests[0].messages == [speech.user("go"), speech.user("first"), speech.user("second")]
    assert result.messages == [speech.user("go"), speech.says("done")]


@every_wire
def test_fit_mends_between_the_wrappers_and_the_callbacks_what_a_wrapper_broke(speech: Speech):
    outside: list[Any] = []
    inside: list[Any] = []

    def break_it(request: Any) -> Any:
        return replace(request, messages=[m for m in request.messages if m != speech.result("c1", "look", "seen")])

    def note(request: Any) -> Any:
        outside.append(list(request.messages))
        return request

    model = ScriptedModel([speech.calls(("c1", "look", "{}")), "done"], speech.wire)
    agent = ChatModelAgent(
        model=model,
        tools=[look],
        middlewares=[Wrapping(request=break_it), Wrapping(request=note)],
        callbacks=Callbacks(on_start=lambda _component, request: inside.append(request), kinds=frozenset({"model"})),
    )
    _, result = run(agent)
    asked = [speech.user("go"), speech.calls(("c1", "look", "{}"))]
    assert outside[1] == asked
    assert inside[1].messages[:2] == asked
    assert len(inside[1].messages) == 3
    assert model.requests[1].messages == inside[1].messages
    assert result.messages == [*asked, speech.result("c1", "look", "seen"), speech.says("done")]


@every_wire
def test_steps_6_to_8_callbacks_see_what_really_goes_into_the_model_and_what_comes_out(speech: Speech):
    seen: list[Any] = []

    def note(_component: Any, value: Any) -> None:
        seen.append(value)

    model = ScriptedModel(["raw"], speech.wire)
    agent = ChatModelAgent(
        model=model,
        instruction="be brief",
        middlewares=[
            Wrapping(
                request=lambda request: replace(request, instruction="be long"),
                message=lambda _message: speech.says("wrapped"),
            )
        ],
        callbacks=Callbacks(on_start=note, on_end=note, kinds=frozenset({"model"})),
    )
    run(agent)
    assert seen == [model.requests[0], speech.says("raw")]
    assert model.requests[0].instruction == "be long"


@every_wire
def test_step_9_wrap_model_changes_the_reply_from_the_last_registered_outwards(speech: Speech):
    def replied(text: str) -> Wrapping:
        return Wrapping(message=lambda message: heard.append(message) or speech.says(text))

    heard: list[Any] = []
    agent = ChatModelAgent(
        model=ScriptedModel(["raw"], speech.wire), middlewares=[replied("outermost"), replied("innermost")]
    )
    _, result = run(agent)
    assert heard == [speech.says("raw"), speech.says("innermost")]
    assert result.messages == [speech.user("go"), speech.says("outermost")]
    assert result.output == "outermost"


@every_wire
def test_step_10_the_event_sender_sends_the_reply_that_the_outermost_wrapper_gave(speech: Speech):
    agent = ChatModelAgent(
        model=ScriptedModel(["raw"], speech.wire),
        middlewares=[Wrapping(message=lambda _message: speech.says("wrapped"))],
    )
    events, result = run(agent)
    finished = [event for event in events if isinstance(event, MessageFinished)]
    assert [event.message for event in finished] == [speech.says("wrapped")]
    assert finished[0].message is result.messages[-1]


@every_wire
def test_step_11_retry_judges_the_reply_that_the_wrappers_gave(speech: Speech):
    judged: list[Any] = []

    def should_retry(context: RetryContext[Any]) -> bool:
        judged.append(context.output)
        return len(judged) == 1

    agent = ChatModelAgent(
        model=ScriptedModel(["raw 1", "raw 2"], speech.wire),
        middlewares=[Wrapping(message=lambda _message: speech.says(f"wrapped {len(judged) + 1}"))],
        model_retry_config=ModelRetryConfig(should_retry=should_retry, backoff=lambda _attempt: 0),
    )
    events, result = run(agent)
    assert judged == [speech.says("wrapped 1"), speech.says("wrapped 2")]
    assert [event.attempt for event in events if isinstance(event, ModelStarted)] == [1, 2]
    assert result.messages == [speech.user("go"), speech.says("wrapped 2")]


@every_wire
def test_step_12_after_model_rewrite_state_gets_the_reply_last_and_changes_the_state_for_good(speech: Speech):
    seen: list[Any] = []

    def after(messages: Any) -> Any:
        seen.append(list(messages))
        return [*messages[:-1], speech.user("(asked again)"), speech.says("edited")]

    _, result = run(ChatModelAgent(model=ScriptedModel(["done"], speech.wire), middlewares=[Rewriting(after=after)]))
    assert seen == [[speech.user("go"), speech.says("done")]]
    assert result.messages == [speech.user("go"), speech.user("(asked again)"), speech.says("edited")]
    assert result.output == "edited"


@every_wire
def test_step_13_after_chat_model_has_the_last_word(speech: Speech):
    seen: list[Any] = []

    def last(state: Any) -> Any:
        seen.append(list(state.messages))
        return replace(state, messages=[*state.messages[:-1], speech.says("older")])

    agent = ChatModelAgent(
        model=ScriptedModel(["done"], speech.wire),
        middlewares=[
            AgentMiddleware(after_chat_model=last),
            Rewriting(after=lambda messages: [*messages[:-1], speech.says("newer")]),
        ],
    )
    _, result = run(agent)
    assert seen == [[speech.user("go"), speech.says("newer")]]
    assert result.messages == [speech.user("go"), speech.says("older")]
