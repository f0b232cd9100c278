"""Every other field of `PatchToolCalls`, and what it does in a run of many turns."""

import asyncio
from typing import Any

import pytest

import suture
from suture import ChatModelAgent, ChatModelAgentMiddleware, ChatModelAgentState, ModelContext, replace, tool
from suture.events import HistoryRewritten
from suture.middleware import PatchToolCalls
from suture.stores import MemoryStore
from suture.testing import ScriptedModel
from tests.agent.patching.wiring import assert_says, assert_sent, history, on_each_wire, one, sent
from tests.shapes.notation import call, result, retold, says, turn, user
from tests.shapes.texts import answered, placeholder

ASK, STOP = user("When is high tide?"), user("Never mind.")
A = turn(call("a", "tides"))
each_persist = pytest.mark.parametrize("persist", [True, False])


@tool
async def clock() -> str:
    """Tell the time."""
    return "12:00"


def test_all_fields_have_the_documented_defaults():
    patch = PatchToolCalls()
    fields = (patch.generator, patch.cause, patch.tail, patch.persist, patch.orphans, patch.is_placeholder)
    assert fields == (None, None, "cancel", True, "text", None)


@pytest.mark.parametrize(
    "wrong",
    [{"tail": "keeep"}, {"orphans": "txt"}, {"cause": "bad luck"}, {"generator": "text"}, {"is_placeholder": 1}],
)
def test_a_wrong_choice_is_refused_at_construction(wrong: dict[str, Any]):
    with pytest.raises(suture.ConfigError, match=next(iter(wrong))):
        PatchToolCalls(**wrong)


@each_persist
@on_each_wire
def test_an_empty_history_is_returned_at_once(wire: str, persist: bool):
    def never(*_: Any) -> Any:
        raise AssertionError("nothing is there to ask about")

    model = ScriptedModel(["hello"], wire)
    patch = PatchToolCalls(never, persist=persist, is_placeholder=never)
    agent = ChatModelAgent(model=model, middlewares=[patch], input_builder=lambda *_: ())
    finished = agent.run_sync("hi")
    assert sent(model) == []
    assert_says(wire, finished.messages, says("hello"))


# tail


@on_each_wire
def test_an_open_tail_is_answered_and_that_is_kept(wire: str):
    model = ScriptedModel(["ok"], wire)
    finished = ChatModelAgent(model=model, middlewares=[PatchToolCalls()]).run_sync(history(wire, ASK, A))
    wanted = [ASK, A, answered("unknown", "a", "tides")]
    assert_sent(model, *wanted)
    assert_says(wire, finished.messages, *wanted, says("ok"))


@each_persist
@on_each_wire
def test_an_open_tail_is_kept_open_and_the_model_is_still_sent_an_answer(wire: str, persist: bool):
    model = ScriptedModel(["ok"], wire)
    patch = PatchToolCalls(tail="keep", persist=persist)
    given = history(wire, ASK, A)
    finished = ChatModelAgent(model=model, middlewares=[patch]).run_sync(given)
    assert_sent(model, ASK, A, answered("unknown", "a", "tides"))
    assert_says(wire, finished.messages, ASK, A, says("ok"))
    assert list(finished.messages)[1] is given[1]


@on_each_wire
def test_only_the_tail_is_kept_open(wire: str):
    """Calls in the middle are answered and kept; an answered sibling in the tail stays."""
    model = ScriptedModel(["ok"], wire)
    tail = turn(call("b", "moon"), call("c", "tides"))
    given = history(wire, ASK, A, STOP, tail, result("c", "06:12", "tides"))
    finished = ChatModelAgent(model=model, middlewares=[PatchToolCalls(tail="keep")]).run_sync(given)
    middle = answered("interrupted", "a", "tides")
    real = result("c", "06:12", "tides")
    assert_sent(model, ASK, A, middle, STOP, tail, answered("unknown", "b", "moon"), real)
    assert_says(wire, finished.messages, ASK, A, middle, STOP, tail, real, says("ok"))


@on_each_wire
def test_a_tail_that_was_kept_open_is_answered_once_another_message_follows(wire: str):
    """The model's next call belongs to the open turn: neighbouring messages of the model's are one."""
    asks, real = turn(call("t", "clock", {})), result("t", "12:00", "clock")
    model = ScriptedModel([one(wire, asks), "ok", "fine"], wire)
    agent = ChatModelAgent(model=model, tools=[clock], middlewares=[PatchToolCalls(tail="keep")])
    first = agent.run_sync(history(wire, ASK, A))
    assert_says(wire, first.messages, ASK, A, asks, real, says("ok"))
    second = agent.run_sync([*first.messages, one(wire, STOP)])
    lost = answered("unknown", "a", "tides")
    assert_says(wire, second.messages, ASK, A, asks, lost, real, says("ok"), STOP, says("fine"))
    for number, rest in ((1, []), (2, [says("ok"), STOP])):
        # Chat wants the results of each message right behind it.
        wanted = [ASK, A, lost, asks, real] if wire == "openai-chat" else [ASK, A, asks, lost, real]
        assert_says(wire, sent(model, number), *wanted, *rest)
        assert suture.check(sent(model, number), wire=wire).acceptable


# cause


@each_persist
@on_each_wire
def test_a_cause_is_told_where_nothing_in_the_history_tells(wire: str, persist: bool):
    model = ScriptedModel(["ok"], wire)
    patch = PatchToolCalls(cause="stopped", persist=persist)
    ChatModelAgent(model=model, middlewares=[patch]).run_sync(history(wire, ASK, A, STOP, turn(call("b", "moon"))))
    assert_sent(
        model,
        ASK,
        A,
        answered("stopped", "a", "tides"),
        STOP,
        turn(call("b", "moon")),
        answered("stopped", "b", "moon"),
    )


# orphans


@pytest.mark.parametrize(("orphans", "kept"), [("text", [retold("sunny")]), ("drop", [])])
@each_persist
@on_each_wire
def test_a_result_without_a_call_is_kept_as_text_or_dropped(wire: str, persist: bool, orphans: Any, kept: list[Any]):
    model = ScriptedModel(["ok"], wire)
    given = history(wire, ASK, result("z", "sunny", "weather"), STOP)
    patch = PatchToolCalls(orphans=orphans, persist=persist)
    finished = ChatModelAgent(model=model, middlewares=[patch]).run_sync(given)
    assert_sent(model, ASK, *kept, STOP)
    if persist:
        assert_says(wire, finished.messages, ASK, *kept, STOP, says("ok"))
    else:
        assert_says(wire, finished.messages, ASK, result("z", "sunny", "weather"), STOP, says("ok"))


# is_placeholder


@each_persist
@on_each_wire
def test_a_text_of_the_callers_own_can_be_told_to_stand_for_a_result(wire: str, persist: bool):
    real, stub = result("a", "06:12", "tides"), result("a", "[skipped]", "tides")
    for is_placeholder, winner in ((None, stub), (lambda text: text == "[skipped]", real)):
        model = ScriptedModel(["ok"], wire)
        patch = PatchToolCalls(is_placeholder=is_placeholder, persist=persist)
        ChatModelAgent(model=model, middlewares=[patch]).run_sync(history(wire, ASK, A, real, stub, STOP))
        assert_sent(model, ASK, A, winner, STOP)


@pytest.mark.parametrize("first", [True, False])
@on_each_wire
def test_a_stand_in_that_another_middleware_adds_does_not_beat_the_real_result(wire: str, first: bool):
    """Right in any place: fit knows the caller's texts as well."""
    stub = result("a", "[skipped]", "tides")

    class Skips(ChatModelAgentMiddleware[Any]):
        def before_model_rewrite_state(
            self, state: ChatModelAgentState[Any], model_context: ModelContext
        ) -> ChatModelAgentState[Any]:
            ask, opened, real, *rest = state.messages
            return replace(state, messages=[ask, opened, real, one(wire, stub), *rest])

    model = ScriptedModel(["ok"], wire)
    patch = PatchToolCalls(is_placeholder=lambda text: text == "[skipped]")
    middlewares = [patch, Skips()] if first else [Skips(), patch]
    real = result("a", "06:12", "tides")
    ChatModelAgent(model=model, middlewares=middlewares).run_sync(history(wire, ASK, A, real, STOP))
    assert_sent(model, ASK, A, real, STOP)


def test_an_error_of_is_placeholder_ends_the_run_before_the_model_is_called():
    def fails(text: str) -> bool:
        raise LookupError(text)

    model = ScriptedModel(["ok"])
    patch = PatchToolCalls(is_placeholder=fails)
    real, stub = result("a", "06:12", "tides"), result("a", "[skipped]", "tides")
    with pytest.raises(LookupError):
        ChatModelAgent(model=model, middlewares=[patch]).run_sync(history("message", ASK, A, real, stub))
    assert model.requests == []


# Language


@each_persist
@on_each_wire
def test_texts_are_in_the_language_of_the_run(wire: str, persist: bool):
    for of_agent, of_run, wanted in (("zh", None, "zh"), (None, "zh", "zh"), ("zh", "en", "en"), (None, None, "en")):
        model = ScriptedModel(["ok"], wire)
        agent = ChatModelAgent(model=model, middlewares=[PatchToolCalls(persist=persist)], language=of_agent)
        agent.run_sync(history(wire, ASK, A, STOP), language=of_run)
        assert_sent(model, ASK, A, answered("interrupted", "a", "tides", language=wanted), STOP)


@pytest.mark.parametrize("middlewares", [[PatchToolCalls()], []], ids=["patched", "fit alone"])
def test_the_language_in_force_where_the_run_is_made_holds_for_the_whole_run(middlewares: list[Any]):
    async def use() -> None:
        model = ScriptedModel(["ok"])
        agent = ChatModelAgent(model=model, middlewares=middlewares)
        with suture.using_language("zh"):
            run = agent.stream(history("message", ASK, A, STOP))
        await run.result()
        assert_sent(model, ASK, A, answered("interrupted", "a", "tides", language="zh"), STOP)

    asyncio.run(use())


def test_a_resumed_run_keeps_its_language():
    class Asks(ChatModelAgentMiddleware[Any]):
        async def before_model_rewrite_state(self, state: Any, model_context: Any) -> None:
            await suture.interrupt("go on?")

    async def use() -> None:
        model = ScriptedModel(["ok"])
        agent = ChatModelAgent(model=model, middlewares=[Asks(), PatchToolCalls()], checkpoint_store=MemoryStore())
        stopped = await agent.run(history("message", ASK, A, STOP), checkpoint_id="c", language="zh")
        await agent.resume("c", answers={stopped.interrupts[0].id: True})
        assert_sent(model, ASK, A, answered("interrupted", "a", "tides", language="zh"), STOP)

    asyncio.run(use())


def test_a_placeholder_in_the_other_language_is_known_as_one():
    """The real result wins although it is not the last."""
    model = ScriptedModel(["ok"])
    chinese = result("a", placeholder("interrupted", "a", "tides", "zh"), "tides")
    real = result("a", "06:12", "tides")
    ChatModelAgent(model=model, middlewares=[PatchToolCalls()]).run_sync(history("message", ASK, A, real, chinese))
    assert_sent(model, ASK, A, real)


# Events


async def rewrites(run: suture.Run[Any]) -> list[HistoryRewritten]:
    return [event async for event in run if isinstance(event, HistoryRewritten)]


@on_each_wire
def test_a_repair_is_told_in_one_event_with_its_report_and_never_again(wire: str):
    async def use() -> None:
        replies = [one(wire, turn(call(f"t{number}", "clock", {}))) for number in range(3)]
        agent = ChatModelAgent(
            model=ScriptedModel([*replies, "ok"], wire), tools=[clock], middlewares=[PatchToolCalls()]
        )
        given = history(wire, ASK, A, STOP, result("z", "a secret", "weather"))
        (event,) = await rewrites(agent.stream(given))
        assert (event.turn, event.by, event.before, event.after) == (1, "PatchToolCalls", 4, 5)
        assert event.report is not None
        found = [(finding["problem"], finding["call_id"]) for finding in event.report["findings"]]
        assert found == [("dangling", "a"), ("orphan", "z")]
        assert "a secret" not in str(event.report)

    asyncio.run(use())


@pytest.mark.parametrize("settings", [{"middlewares": [PatchToolCalls(persist=False)]}, {"repair": False}])
def test_what_is_not_persisted_is_no_rewrite(settings: dict[str, Any]):
    async def use() -> None:
        agent = ChatModelAgent(model=ScriptedModel(["ok"]), **settings)
        assert await rewrites(agent.stream(history("message", ASK, A, STOP))) == []

    asyncio.run(use())


@on_each_wire
def test_a_whole_history_is_not_rewritten(wire: str):
    async def use() -> None:
        model = ScriptedModel(["ok"], wire)
        given = history(wire, ASK, A, result("a", "06:12", "tides"), STOP)
        run = ChatModelAgent(model=model, middlewares=[PatchToolCalls()]).stream(given)
        assert await rewrites(run) == []
        assert all(mine is theirs for mine, theirs in zip(sent(model), given, strict=True))

    asyncio.run(use())


# Many turns


@each_persist
@on_each_wire
def test_over_many_turns_what_was_sent_once_never_changes(wire: str, persist: bool):
    """Prompt caches depend on it: each request begins with the one before it."""
    replies = [one(wire, turn(call(f"t{number}", "clock", {}))) for number in range(6)]
    model = ScriptedModel([*replies, "ok"], wire)
    agent = ChatModelAgent(model=model, tools=[clock], middlewares=[PatchToolCalls(persist=persist)])
    agent.run_sync(history(wire, ASK, A, STOP, result("z", "sunny", "weather"), turn(call("e", "moon")), STOP))
    assert len(model.requests) == 7
    for number in range(6):
        before, after = sent(model, number), sent(model, number + 1)
        assert after[: len(before)] == before
        assert len(after) == len(before) + 2


@on_each_wire
def test_a_history_that_was_patched_is_whole_for_the_next_run(wire: str):
    async def use() -> None:
        agent = ChatModelAgent(model=ScriptedModel(["ok", "ok"], wire), middlewares=[PatchToolCalls()])
        first = await agent.run(history(wire, ASK, A, STOP, turn(call("b", "moon")), STOP))
        assert await rewrites(agent.stream([*first.messages, one(wire, STOP)])) == []

    asyncio.run(use())


@pytest.mark.parametrize("first", [True, False])
@on_each_wire
def test_results_of_this_very_run_that_a_middleware_scatters_go_home(wire: str, first: bool):
    class Scatters(ChatModelAgentMiddleware[Any]):
        def before_model_rewrite_state(
            self, state: ChatModelAgentState[Any], model_context: ModelContext
        ) -> ChatModelAgentState[Any]:
            if model_context.turn != 2:
                return state
            *front, opened, one_result, other = state.messages
            note = history(wire, user("The tools were slow."))
            return replace(state, messages=[*front, opened, other, *note, one_result, other])

    asks = turn(call("x", "clock", {}), call("y", "clock", {}))
    model = ScriptedModel([one(wire, asks), "ok"], wire)
    patch: list[Any] = [PatchToolCalls()]
    middlewares = [*patch, Scatters()] if first else [Scatters(), *patch]
    ChatModelAgent(model=model, tools=[clock], middlewares=middlewares).run_sync(history(wire, ASK))
    results = [result("x", "12:00", "clock"), result("y", "12:00", "clock")]
    assert_sent(model, ASK, asks, *results, user("The tools were slow."))


@on_each_wire
def test_a_result_of_this_very_run_that_a_middleware_loses_is_not_called_canceled(wire: str):
    class Loses(ChatModelAgentMiddleware[Any]):
        def before_model_rewrite_state(
            self, state: ChatModelAgentState[Any], model_context: ModelContext
        ) -> ChatModelAgentState[Any]:
            return replace(state, messages=list(state.messages)[:-1]) if model_context.turn == 2 else state

    asks = turn(call("x", "clock", {}))
    model = ScriptedModel([one(wire, asks), "ok"], wire)
    ChatModelAgent(model=model, tools=[clock], middlewares=[Loses(), PatchToolCalls()]).run_sync(history(wire, ASK))
    assert_sent(model, ASK, asks, answered("unknown", "x", "clock"))
