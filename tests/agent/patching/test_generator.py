"""`PatchToolCalls(generator=…)`: whose words stand for a missing result, and how often they are asked for."""

import asyncio
from typing import Any

import pytest

import suture
from suture import (
    Cause,
    ChatModelAgent,
    ChatModelAgentMiddleware,
    ChatModelAgentState,
    ConfigError,
    ModelContext,
    ModelRetryConfig,
    replace,
    tool,
)
from suture.middleware import PatchToolCalls
from suture.stores import MemoryStore
from suture.testing import ScriptedModel
from tests.agent.patching.wiring import assert_says, assert_sent, history, on_each_wire, one, sent
from tests.shapes.notation import call, result, says, turn, user
from tests.shapes.texts import answered
from tests.shapes.wires import read

ASK, STOP = user("When is high tide?"), user("Never mind.")
TWO = turn(call("a", "tides"), call("b", "moon"))
CUT = turn(call("c", "tides", '{"q": "ti'))
each_persist = pytest.mark.parametrize("persist", [True, False])


def told(id_: str, text: str, name: str = "tides"):
    return result(id_, text, name, error=True)


@tool
async def clock() -> str:
    """Tell the time."""
    return "12:00"


def plain(name: str, call_id: str) -> str:
    return f"123 {name} {call_id}"


async def awaited(name: str, call_id: str) -> str:
    await asyncio.sleep(0)
    return f"123 {name} {call_id}"


class Speaker:
    def __call__(self, name: str, call_id: str) -> str:
        return f"123 {name} {call_id}"


@pytest.mark.parametrize("generator", [plain, awaited, Speaker(), lambda name, call_id: f"123 {name} {call_id}"])
@each_persist
@on_each_wire
def test_a_generator_writes_the_text_of_each_call_without_a_result(wire: str, persist: bool, generator: Any):
    model = ScriptedModel(["ok"], wire)
    agent = ChatModelAgent(model=model, middlewares=[PatchToolCalls(generator, persist=persist)])
    agent.run_sync(history(wire, ASK, TWO, result("a", "06:12", "tides"), STOP))
    assert_sent(model, ASK, TWO, result("a", "06:12", "tides"), told("b", "123 moon b", "moon"), STOP)


def with_cause(name: str, call_id: str, cause: Cause) -> str:
    return f"{name} {call_id}: {cause.value}"


async def awaited_with_cause(name: str, call_id: str, *, cause: Cause) -> str:
    return with_cause(name, call_id, cause)


@pytest.mark.parametrize("generator", [with_cause, awaited_with_cause])
@on_each_wire
def test_a_generator_that_asks_for_the_cause_is_told_it(wire: str, generator: Any):
    model = ScriptedModel(["ok"], wire)
    tail = turn(call("e", "moon"))
    given = history(wire, ASK, turn(call("a", "tides")), STOP, CUT, says("hm"), tail)
    ChatModelAgent(model=model, middlewares=[PatchToolCalls(generator)]).run_sync(given)
    texts = [event[2] for _, events in read(wire, sent(model)) for event in events if event[0] in {"result", "failed"}]
    assert texts == ["tides a: interrupted", "tides c: malformed", "moon e: unknown"]


@each_persist
@on_each_wire
def test_a_generator_is_asked_once_per_call_in_a_run_of_many_turns(wire: str, persist: bool):
    asked: list[str] = []

    def generator(_: str, call_id: str) -> str:
        asked.append(call_id)
        return f"no {call_id}, {len(asked)}"

    replies = [one(wire, turn(call(f"t{number}", "clock", {}))) for number in range(5)]
    model = ScriptedModel([*replies, "ok"], wire)
    agent = ChatModelAgent(model=model, tools=[clock], middlewares=[PatchToolCalls(generator, persist=persist)])
    agent.run_sync(history(wire, ASK, TWO, STOP))
    assert asked == ["a", "b"]
    opening = [ASK, TWO, told("a", "no a, 1"), told("b", "no b, 2", "moon"), STOP]
    for number in range(6):
        assert_says(wire, sent(model, number)[:5], *opening)
        assert len(sent(model, number)) == 5 + 2 * number


def test_calls_that_share_an_id_are_asked_for_one_by_one():
    asked: list[str] = []

    def generator(_: str, call_id: str) -> str:
        asked.append(call_id)
        return f"no {len(asked)}"

    again = turn(call("a", "tides"))
    model = ScriptedModel(["ok"])
    agent = ChatModelAgent(model=model, middlewares=[PatchToolCalls(generator)])
    agent.run_sync(history("message", ASK, again, STOP, again, STOP))
    assert asked == ["a", "a"]
    assert_sent(model, ASK, again, told("a", "no 1"), STOP, again, told("a", "no 2"), STOP)


@each_persist
def test_a_model_turn_that_is_tried_again_does_not_ask_again(persist: bool):
    asked: list[str] = []

    def generator(_: str, call_id: str) -> str:
        asked.append(call_id)
        return f"no {call_id}"

    model = ScriptedModel([ConnectionError("one"), ConnectionError("two"), "ok"])
    agent = ChatModelAgent(
        model=model,
        middlewares=[PatchToolCalls(generator, persist=persist)],
        model_retry_config=ModelRetryConfig(max_retries=2, backoff=lambda _: 0),
    )
    agent.run_sync(history("message", ASK, turn(call("a", "tides")), STOP))
    assert asked == ["a"]
    for number in range(3):
        assert_sent(model, ASK, turn(call("a", "tides")), told("a", "no a"), STOP, number=number)


@each_persist
def test_another_middleware_that_copies_every_message_does_not_make_it_ask_again(persist: bool):
    class Copies(ChatModelAgentMiddleware[Any]):
        def before_model_rewrite_state(
            self, state: ChatModelAgentState[Any], model_context: ModelContext
        ) -> ChatModelAgentState[Any]:
            return replace(state, messages=[dict(message) for message in state.messages])

    asked: list[str] = []

    def generator(_: str, call_id: str) -> str:
        asked.append(call_id)
        return f"no {call_id}"

    wire = "openai-chat"
    replies = [one(wire, turn(call(f"t{number}", "clock", {}))) for number in range(3)]
    model = ScriptedModel([*replies, "ok"], wire)
    middlewares = [Copies(), PatchToolCalls(generator, persist=persist)]
    ChatModelAgent(model=model, tools=[clock], middlewares=middlewares).run_sync(history(wire, ASK, TWO, STOP))
    assert asked == ["a", "b"]


def test_each_run_asks_anew():
    asked: list[str] = []

    def generator(_: str, call_id: str) -> str:
        asked.append(call_id)
        return "no"

    agent = ChatModelAgent(model=ScriptedModel(["ok", "ok"]), middlewares=[PatchToolCalls(generator)])
    for _ in range(2):
        agent.run_sync(history("message", ASK, turn(call("a", "tides")), STOP))
    assert asked == ["a", "a"]


def test_runs_that_go_on_at_once_share_nothing():
    async def generator(_: str, call_id: str) -> str:
        await asyncio.sleep(0)
        return f"no {call_id}"

    async def use() -> None:
        model = ScriptedModel(lambda _: "ok")
        agent = ChatModelAgent(model=model, middlewares=[PatchToolCalls(generator)])
        given = [history("message", ASK, turn(call(f"c{number}", "tides")), STOP) for number in range(8)]
        results = await asyncio.gather(*(agent.run(messages) for messages in given))
        for number, each in enumerate(results):
            opened = turn(call(f"c{number}", "tides"))
            assert_says("message", each.messages, ASK, opened, told(f"c{number}", f"no c{number}"), STOP, says("ok"))

    asyncio.run(use())


def fails(_: str, call_id: str) -> str:
    if call_id == "b":
        raise LookupError(f"no words for {call_id}")
    return "half done"


async def fails_later(name: str, call_id: str) -> str:
    await asyncio.sleep(0)
    return fails(name, call_id)


@pytest.mark.parametrize("generator", [fails, fails_later])
@each_persist
@on_each_wire
def test_a_generators_error_ends_the_run_and_leaves_the_state_untouched(wire: str, persist: bool, generator: Any):
    seen: list[Any] = []

    class Watches(ChatModelAgentMiddleware[Any]):
        def after_agent(self, state: ChatModelAgentState[Any], outcome: Any) -> None:
            seen.append((outcome, list(state.messages)))

    given = history(wire, ASK, TWO, STOP)

    async def use() -> None:
        model = ScriptedModel(["ok"], wire)
        agent = ChatModelAgent(model=model, middlewares=[Watches(), PatchToolCalls(generator, persist=persist)])
        run = agent.stream(given)
        with pytest.raises(LookupError, match="no words for b"):
            await run.result()
        assert model.requests == []
        ((outcome, kept),) = seen
        assert outcome == "failed"
        assert run.final_result is not None
        assert list(run.final_result.messages) == kept
        if persist:  # what a run hands out is paired, in the default words
            assert suture.check(kept, wire=wire, profile="pairing").acceptable
            kept = [message for message in kept if any(message is each for each in given)]
        assert all(mine is theirs for mine, theirs in zip(kept, given, strict=True))

    asyncio.run(use())


async def silent(_: str, __: str) -> str:
    return ""


@pytest.mark.parametrize("generator", [lambda *_: "", silent])
@each_persist
@on_each_wire
def test_an_empty_text_means_the_default(wire: str, persist: bool, generator: Any):
    model = ScriptedModel(["ok"], wire)
    agent = ChatModelAgent(model=model, middlewares=[PatchToolCalls(generator, persist=persist)])
    agent.run_sync(history(wire, ASK, TWO, STOP))
    assert_sent(model, ASK, TWO, answered("interrupted", "a", "tides"), answered("interrupted", "b", "moon"), STOP)


@each_persist
def test_what_is_no_text_is_refused_before_the_model_is_called(persist: bool):
    generator: Any = lambda *_: 7  # noqa: E731 - the wrong value is the point
    model = ScriptedModel(["ok"])
    agent = ChatModelAgent(model=model, middlewares=[PatchToolCalls(generator, persist=persist)])
    with pytest.raises(ConfigError, match="generator returned int"):
        agent.run_sync(history("message", ASK, TWO, STOP))
    assert model.requests == []


# A text of one's own is known again


class Brings(ChatModelAgentMiddleware[Any]):
    """Appends the real result before the second turn, as a callback from outside might."""

    def before_model_rewrite_state(
        self, state: ChatModelAgentState[Any], model_context: ModelContext
    ) -> ChatModelAgentState[Any]:
        if model_context.turn != 2:
            return state
        late = one(model_context.wire, result("a", "06:12", "tides"))
        return replace(state, messages=[*state.messages, late])


@pytest.mark.parametrize("first", [True, False])
@each_persist
@on_each_wire
def test_a_real_result_that_comes_later_in_the_run_beats_the_generators_text(wire: str, persist: bool, first: bool):
    asks = turn(call("t", "clock", {}))
    model = ScriptedModel([one(wire, asks), "ok"], wire)
    patch = PatchToolCalls(plain, persist=persist)
    middlewares = [patch, Brings()] if first else [Brings(), patch]
    agent = ChatModelAgent(model=model, tools=[clock], middlewares=middlewares)
    opened = turn(call("a", "tides"))
    agent.run_sync(history(wire, ASK, opened, STOP))
    assert_sent(model, ASK, opened, told("a", "123 tides a"), STOP, number=0)
    real = result("a", "06:12", "tides")
    assert_sent(model, ASK, opened, real, STOP, asks, result("t", "12:00", "clock"))


@pytest.mark.parametrize("first", [True, False])
@on_each_wire
def test_a_real_result_beats_a_generators_text_that_stands_behind_it(wire: str, first: bool):
    """In any order: the real one was first, so that the last does not win by being the last."""

    class Swaps(ChatModelAgentMiddleware[Any]):
        def before_model_rewrite_state(
            self, state: ChatModelAgentState[Any], model_context: ModelContext
        ) -> ChatModelAgentState[Any]:
            if model_context.turn != 2:
                return state
            ask, opened, placeholder, *rest = state.messages
            real = one(wire, result("a", "06:12", "tides"))
            return replace(state, messages=[ask, opened, real, placeholder, *rest])

    asks = turn(call("t", "clock", {}))
    model = ScriptedModel([one(wire, asks), "ok"], wire)
    patch = PatchToolCalls(plain)
    agent = ChatModelAgent(model=model, tools=[clock], middlewares=[patch, Swaps()] if first else [Swaps(), patch])
    opened = turn(call("a", "tides"))
    agent.run_sync(history(wire, ASK, opened, STOP))
    assert_sent(model, ASK, opened, result("a", "06:12", "tides"), STOP, asks, result("t", "12:00", "clock"))


@on_each_wire
def test_a_real_result_in_the_next_run_of_the_conversation_beats_the_generators_text(wire: str):
    async def use() -> None:
        model = ScriptedModel(["ok", "fine"], wire)
        store = MemoryStore()
        agent = ChatModelAgent(model=model, middlewares=[PatchToolCalls(plain)], checkpoint_store=store)
        opened = turn(call("a", "tides"))
        await agent.run(history(wire, ASK, opened, STOP), checkpoint_id="c")
        late = history(wire, result("a", "06:12", "tides"), user("It came."))
        finished = await agent.run(late, checkpoint_id="c")
        wanted = [ASK, opened, result("a", "06:12", "tides"), STOP, says("ok"), user("It came.")]
        assert_sent(model, *wanted)
        assert_says(wire, finished.messages, *wanted, says("fine"))

    asyncio.run(use())
