"""What nothing can mend is told before anything is sent; and fit is right for the model that is really called."""

import asyncio
from typing import Any

import pytest

import suture
from suture import AgenticMessage, ChatModelAgent, HistoryError, ModelFailoverConfig, tool
from suture.messages import FunctionToolCall, Reasoning
from suture.middleware import PatchToolCalls
from suture.testing import ScriptedModel
from tests.agent.patching.wiring import assert_says, assert_sent, history, one, sent
from tests.shapes.notation import call, result, says, system, turn, user
from tests.shapes.texts import answered

ASK, STOP = user("When is high tide?"), user("Never mind.")
LATE_SYSTEM = (ASK, says("At six."), system("Be brief."), STOP)
ILLEGAL_NAME = (ASK, turn(call("a", "not a name!")), result("a", "06:12", "not a name!"), STOP)
SIGNED = AgenticMessage("assistant", (Reasoning(text="hm", signature="s"), FunctionToolCall("a", "tides", '{"q": "ti')))
UNMENDABLE = [
    ("mistral", history("openai-chat", *LATE_SYSTEM), "late-system"),
    ("mistral", history("openai-chat", *ILLEGAL_NAME), "illegal-name"),
    ("anthropic", [AgenticMessage.user("hi"), SIGNED, AgenticMessage.user("go on")], "bad-arguments"),
]
each_unmendable = pytest.mark.parametrize(
    ("profile", "given", "problem"), UNMENDABLE, ids=[f"{row[0]} {row[2]}" for row in UNMENDABLE]
)
each_way = pytest.mark.parametrize(
    "middlewares",
    [[], [PatchToolCalls()], [PatchToolCalls(persist=False)]],
    ids=["fit alone", "persisted", "not persisted"],
)


@tool
async def clock() -> str:
    """Tell the time."""
    return "12:00"


@each_way
@each_unmendable
def test_what_nothing_can_mend_is_an_error_before_anything_is_sent(
    profile: str, given: list[Any], problem: str, middlewares: list[Any]
):
    wire = "openai-chat" if isinstance(given[0], dict) else "agentic"
    unresolved = suture.repair(given, wire=wire, profile=profile).unresolved
    assert [finding.problem for finding in unresolved] == [problem], "the case is one"
    model = ScriptedModel(["ok"], wire, profile=profile)

    async def use() -> None:
        run = ChatModelAgent(model=model, middlewares=middlewares).run(given)
        with pytest.raises(HistoryError, match=problem) as error:
            await run
        left: Any = error.value.unresolved
        assert [finding.problem for finding in left] == [problem]
        assert model.requests == []
        assert error.value.result is run.result
        assert run.result is not None
        assert run.result.outcome == "failed"

    asyncio.run(use())


def test_a_history_that_becomes_unmendable_in_a_later_turn_is_not_sent_either():
    replies = [one("openai-chat", turn(call("t", "clock", {}))), one("openai-chat", turn(call("u", "no such!", {})))]
    model = ScriptedModel([*replies, "ok"], "openai-chat", profile="mistral")
    agent = ChatModelAgent(model=model, tools=[clock], middlewares=[PatchToolCalls()])
    with pytest.raises(HistoryError) as error:
        agent.run_sync(history("openai-chat", ASK))
    assert len(model.requests) == 2
    left: Any = error.value.unresolved
    assert [finding.problem for finding in left] == ["illegal-name"]


def test_fit_is_for_the_model_that_is_called_and_is_never_kept():
    """Mistral's ids have nine characters, and a user message may not follow a tool message there."""
    given = history("openai-chat", ASK, turn(call("call_1", "tides")), STOP)
    model = ScriptedModel(["ok"], "openai-chat", profile="mistral")
    finished = ChatModelAgent(model=model, middlewares=[PatchToolCalls()]).run_sync(given)
    ((renamed,),) = [[each["id"] for each in m["tool_calls"]] for m in sent(model) if m.get("tool_calls")]
    assert len(renamed) == 9
    assert suture.check(sent(model), wire="openai-chat", profile="mistral").acceptable
    kept = answered("interrupted", "call_1", "tides")
    assert_says("openai-chat", finished.messages, ASK, turn(call("call_1", "tides")), kept, STOP, says("ok"))


def test_after_a_failover_fit_is_for_the_other_model():
    given = history("openai-chat", ASK, turn(call("call_1", "tides")), STOP)
    first = ScriptedModel([ConnectionError("down")], "openai-chat")
    second = ScriptedModel(["ok"], "openai-chat", profile="mistral")
    agent = ChatModelAgent(model=first, failover=ModelFailoverConfig(models=[second]), middlewares=[PatchToolCalls()])
    agent.run_sync(given)
    assert_sent(first, ASK, turn(call("call_1", "tides")), answered("interrupted", "call_1", "tides"), STOP)
    assert not suture.check(sent(first), wire="openai-chat", profile="mistral").acceptable
    assert suture.check(sent(second), wire="openai-chat", profile="mistral").acceptable
