"""Turns, tokens, cost and calls that a run may use up, and the two ways in which it then ends."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

import suture
from suture import (
    Budget,
    BudgetExceeded,
    ChatModelAgent,
    ConfigError,
    MaxIterationsExceeded,
    Message,
    RunError,
    TokenUsage,
    ToolCall,
    tool,
)
from suture.messages import ResponseMeta
from suture.testing import ScriptedModel
from tests.agent.tools.calling import calls, message, model_that, on_each_wire, run, texts

RAN: list[str] = []


@tool
async def look() -> str:
    """Look."""
    RAN.append("ran")
    return "seen"


@pytest.fixture(autouse=True)
def _nothing_ran():
    RAN.clear()


def endless(wire: str) -> ScriptedModel:
    """Return a model that calls a tool as long as it is given any."""

    def reply(_: Any) -> Any:
        return message(wire, calls(("look", {}))) if model.requests[-1].tool_infos else "enough"

    model = ScriptedModel(reply, wire)
    return model


@on_each_wire
def test_beyond_the_last_turn_the_run_fails_and_its_history_is_whole(wire: str):
    async def use() -> None:
        model = endless(wire)
        agent_run = ChatModelAgent(model=model, tools=[look], max_iterations=3).stream("hi")
        with pytest.raises(MaxIterationsExceeded) as error:
            await agent_run.result()
        assert len(model.requests) == 3
        assert error.value.result is agent_run.final_result
        assert agent_run.final_result is not None
        assert suture.check(list(agent_run.final_result.messages), wire=wire).acceptable

    asyncio.run(use())


def test_twenty_turns_are_the_default():
    model = endless("message")
    with pytest.raises(MaxIterationsExceeded):
        run(model, look)
    assert len(model.requests) == 20


@on_each_wire
def test_or_the_model_is_asked_a_last_time_without_tools(wire: str):
    model = endless(wire)
    finished = run(model, look, max_iterations=3, on_max_iterations="answer")
    assert (finished.output, finished.outcome, len(model.requests)) == ("enough", "finished", 4)
    assert [len(request.tool_infos) for request in model.requests] == [1, 1, 1, 0]
    assert RAN == ["ran"] * 3
    assert suture.check(list(finished.messages), wire=wire).acceptable


def test_a_run_that_ends_in_its_last_turn_is_none_too_long():
    model = model_that(("look", {}))
    assert run(model, look, max_iterations=2).output == "ok"


@on_each_wire
def test_a_last_turn_without_tools_that_calls_one_all_the_same_leaves_a_whole_history(wire: str):
    model = ScriptedModel([message(wire, calls(("look", {}), text="Let me see."))] * 2, wire)

    async def use() -> None:
        agent = ChatModelAgent(model=model, tools=[look], max_iterations=1, on_max_iterations="answer")
        agent_run = agent.stream("hi")
        with suppress(RunError):  # whether it fails or ends is not what this is about
            await agent_run.result()
        assert len(model.requests) == 2
        assert agent_run.final_result is not None
        assert suture.check(list(agent_run.final_result.messages), wire=wire).acceptable
        assert RAN == ["ran"]

    asyncio.run(use())


# Budgets


def costing(tokens: int, *replies: str | None) -> ScriptedModel:
    """Return a model each of whose turns uses so many tokens; `None` calls the tool."""
    meta = ResponseMeta(usage=TokenUsage(prompt_tokens=tokens - 1, completion_tokens=1, total_tokens=tokens))
    made = [
        Message(
            "assistant", reply or "", tool_calls=() if reply else (ToolCall("a", "look", "{}"),), response_meta=meta
        )
        for reply in replies
    ]
    return ScriptedModel(made)


def test_a_budget_of_tokens_ends_the_run():
    model = costing(60, None, None, None, "ok")
    with pytest.raises(BudgetExceeded, match="tokens is used up; raise it, or set on_max_iterations") as error:
        run(model, look, budget=Budget(total_tokens=100))
    assert len(model.requests) == 2
    result: Any = error.value.result
    assert result.usage.total_tokens == 120
    assert suture.check(list(result.messages), wire="message").acceptable


def test_a_budget_that_is_enough_changes_nothing():
    assert run(costing(60, None, "ok"), look, budget=Budget(total_tokens=120, tool_calls=1)).output == "ok"


def test_a_budget_of_tokens_ends_in_an_answer_if_asked_for():
    model = costing(60, None, None, "enough")
    finished = run(model, look, budget=Budget(total_tokens=100), on_max_iterations="answer")
    assert (finished.output, finished.outcome) == ("enough", "finished")
    assert [len(request.tool_infos) for request in model.requests] == [1, 1, 0]


@pytest.mark.parametrize("wrong", ["many", -1, 1.5, True])
@pytest.mark.parametrize("name", ["total_tokens", "tool_calls"])
def test_a_budget_is_a_number(name: str, wrong: Any):
    with pytest.raises(ConfigError, match=f"{name} must be an integer, 0 or more, found {wrong!r}"):
        Budget(**{name: wrong})


@pytest.mark.parametrize("wrong", ["much", -0.5])
def test_a_budget_of_money_is_a_number(wrong: Any):
    with pytest.raises(ConfigError, match=f"cost must be a number, 0 or more, found {wrong!r}"):
        Budget(cost=wrong, cost_of=lambda usage: usage.total_tokens)


def test_a_budget_of_money_is_counted_by_the_callers_prices():
    model = costing(60, None, None, None, "ok")
    budget = Budget(cost=1.0, cost_of=lambda usage: usage.total_tokens / 100)
    with pytest.raises(BudgetExceeded, match="cost"):
        run(model, look, budget=budget)
    assert len(model.requests) == 2


@on_each_wire
def test_a_budget_of_calls_lets_no_more_run_and_answers_the_rest(wire: str):
    async def use() -> None:
        model = model_that(("look", {}), ("look", {}), ("look", {}), wire=wire)
        agent_run = ChatModelAgent(model=model, tools=[look], budget=Budget(tool_calls=2), sequential=True).stream("hi")
        with pytest.raises(BudgetExceeded):
            await agent_run.result()
        assert RAN == ["ran", "ran"]
        assert agent_run.final_result is not None
        assert suture.check(list(agent_run.final_result.messages), wire=wire).acceptable

    asyncio.run(use())


@on_each_wire
def test_a_budget_of_calls_ends_in_an_answer_if_asked_for(wire: str):
    model = model_that(("look", {}), ("look", {}), wire=wire, then=["enough"])
    finished = run(model, look, budget=Budget(tool_calls=1), sequential=True, on_max_iterations="answer")
    assert finished.output == "enough"
    assert RAN == ["ran"]
    assert texts(model)[0] == "seen"
    assert "seen" not in texts(model)[1]
    assert suture.check(list(finished.messages), wire=wire).acceptable
