"""What nothing can mend is told before anything is sent; and fit is right for the model that is really called."""

import asyncio
from typing import Any

import pytest

import suture
from suture import ChatModelAgent, HistoryError, ModelFailoverConfig, tool
from suture.middleware import PatchToolCalls
from suture.models import OpenAIChatModel
from suture.testing import ScriptedModel
from tests.agent.patching.wiring import assert_says, assert_sent, history, one, sent
from tests.shapes.notation import call, result, says, turn, user
from tests.shapes.texts import answered

ASK, STOP = user("When is high tide?"), user("Never mind.")
ILLEGAL_NAME = (ASK, turn(call("a", "not a name!")), result("a", "06:12", "not a name!"), STOP)
CUSTOM = {"id": "call00001", "type": "custom", "custom": {"name": "tides", "input": "today"}}
UNMENDABLE = {
    "illegal-name": history("openai-chat", *ILLEGAL_NAME),
    "custom-call": [*history("openai-chat", ASK), {"role": "assistant", "tool_calls": [CUSTOM]}],
}
each_unmendable = pytest.mark.parametrize("problem", UNMENDABLE)
each_way = pytest.mark.parametrize(
    "middlewares",
    [[], [PatchToolCalls()], [PatchToolCalls(persist=False)]],
    ids=["fit alone", "persisted", "not persisted"],
)


@tool
async def clock() -> str:
    """Tell the time."""
    return "12:00"


async def assert_refused(model: Any, given: list[Any], middlewares: list[Any], problem: str) -> None:
    run = ChatModelAgent(model=model, middlewares=middlewares).stream(given)
    with pytest.raises(HistoryError, match=problem) as error:
        await run.result()
    left: Any = error.value.unresolved
    assert [(finding.index, finding.problem) for finding in left] == [(1, problem)]
    assert error.value.result is run.final_result
    assert run.final_result is not None
    assert run.final_result.outcome == "failed"


@each_way
@each_unmendable
def test_what_nothing_can_mend_is_an_error_before_anything_is_sent(problem: str, middlewares: list[Any]):
    given = UNMENDABLE[problem]
    unresolved = suture.repair(given, wire="openai-chat", profile="mistral").unresolved
    assert [finding.problem for finding in unresolved] == [problem], "the case is one"
    model = ScriptedModel(["ok"], "openai-chat", profile="mistral")
    asyncio.run(assert_refused(model, given, middlewares, problem))
    assert model.requests == []


@each_way
@pytest.mark.parametrize("wire", ["message", "agentic"])
def test_what_a_provider_refuses_in_native_messages_is_an_error_of_its_model(wire: Any, middlewares: list[Any]):
    """Nobody listens at that address: were anything sent, another error would come."""
    model = OpenAIChatModel("m", wire=wire, profile="mistral", base_url="http://127.0.0.1:9", api_key="k")
    asyncio.run(assert_refused(model, history(wire, *ILLEGAL_NAME), middlewares, "illegal-name"))


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
