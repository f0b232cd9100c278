"""An agent as a tool of another: what it is asked, what it gives, and what the outer run sees of it."""

import asyncio
from typing import Any

import pytest

import suture
from suture import ChatModelAgent, interrupt, tool
from suture.events import MessageFinished
from suture.stores import MemoryStore
from suture.testing import ScriptedModel
from tests.agent.tools.calling import model_that, on_each_wire, run, texts, told
from tests.shapes.notation import user
from tests.shapes.wires import expect, read


@on_each_wire
def test_by_default_it_takes_one_text_and_gives_its_answer(wire: str):
    inner = ScriptedModel(["a poem"], wire)
    writer = ChatModelAgent(name="writer", description="Writes poems.", model=inner)
    model = model_that(("writer", {"request": "about tides"}), wire=wire)
    run(model, writer.as_tool())
    (info,) = model.requests[0].tool_infos
    assert (info.name, info.description) == ("writer", "Writes poems.")
    assert list((info.parameters or {})["properties"]) == ["request"]
    assert read(wire, list(inner.requests[0].messages)) == expect(wire, [user("about tides")])
    assert texts(model) == ["a poem"]


SCHEMA = {
    "type": "object",
    "properties": {"topic": {"type": "string"}, "lines": {"type": "integer"}},
    "required": ["topic"],
}


@on_each_wire
def test_with_a_schema_the_arguments_become_its_message(wire: str):
    inner = ScriptedModel(["a poem"], wire)
    writer = ChatModelAgent(name="writer", description="Writes.", model=inner)
    model = model_that(("poet", {"topic": "tides", "lines": 4}), wire=wire)
    run(model, writer.as_tool(name="poet", description="Rhymes.", input_schema=SCHEMA))
    (info,) = model.requests[0].tool_infos
    assert (info.name, info.description, info.parameters) == ("poet", "Rhymes.", SCHEMA)
    assert read(wire, list(inner.requests[0].messages)) == expect(wire, [user('{"topic": "tides", "lines": 4}')])
    assert texts(model) == ["a poem"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [("Spanish agent", "Spanish_agent"), ("data.team", "data_team"), ("a" * 70, "a" * 64), ("é", "_")],
)
def test_a_name_that_no_tool_may_have_is_written_as_one_may(name: str, shown: str):
    assert ChatModelAgent(name=name, description="Writes.", model=ScriptedModel([])).as_tool().name == shown


def test_a_name_given_by_hand_is_kept_or_refused():
    writer = ChatModelAgent(name="writer", description="Writes.", model=ScriptedModel([]))
    with pytest.raises(suture.ConfigError, match="a tool cannot be called 'a writer'"):
        writer.as_tool(name="a writer")


def test_an_agent_that_fails_inside_a_tool_is_logged(caplog: pytest.LogCaptureFixture):
    def fail(_: Any) -> Any:
        raise suture.ModelRequestError("no such model", status=404)

    writer = ChatModelAgent(name="writer", description="Writes.", model=ScriptedModel(fail))
    model = model_that(("writer", {"request": "about tides"}))
    run(model, writer.as_tool())
    said = "ModelRequestError: no such model (status 404)"
    assert texts(model) == [said]
    assert [record.getMessage() for record in caplog.records] == [
        f"the tool writer failed with an error of Suture's, which only its model is told: {said}"
    ]


def test_an_agent_that_nobody_could_choose_is_no_tool():
    writer = ChatModelAgent(name="writer", model=ScriptedModel([]))
    with pytest.raises(suture.ConfigError, match="description"):
        writer.as_tool()
    assert writer.as_tool(description="Writes.").info.description == "Writes."


def test_wrong_arguments_do_not_start_it():
    inner = ScriptedModel(["a poem"])
    writer = ChatModelAgent(name="writer", description="Writes.", model=inner)
    model = model_that(("writer", {"topic": "tides"}))
    finished = run(model, writer.as_tool())
    assert told("message", list(finished.messages))[0][0] == "failed"
    assert "request" in texts(model)[0]
    assert inner.requests == []


def test_its_failure_is_an_error_result_of_the_outer_run():
    writer = ChatModelAgent(name="writer", description="Writes.", model=ScriptedModel([ConnectionError("down")]))
    model = model_that(("writer", {"request": "x"}))
    finished = run(model, writer.as_tool())
    ((kind, _, text),) = told("message", list(finished.messages))
    assert kind == "failed"
    assert "down" in text


def test_agents_on_different_wires_work_together():
    inner = ScriptedModel(["a poem"], "openai-chat")
    writer = ChatModelAgent(name="writer", description="Writes.", model=inner)
    model = model_that(("writer", {"request": "about tides"}), wire="agentic")
    run(model, writer.as_tool())
    assert inner.requests[0].messages[0] == {"role": "user", "content": "about tides"}
    assert texts(model) == ["a poem"]


@pytest.mark.parametrize("forward", [True, False])
def test_its_events_are_forwarded_with_their_own_path(forward: bool):
    async def use() -> None:
        writer = ChatModelAgent(name="writer", description="Writes.", model=ScriptedModel(["a poem"]))
        model = model_that(("writer", {"request": "x"}))
        outer = ChatModelAgent(name="editor", model=model, tools=[writer.as_tool(forward_events=forward)])
        events = [event async for event in outer.stream("hi")]
        paths = [event.run_path for event in events if isinstance(event, MessageFinished)]
        inside = [("editor", "writer")] if forward else []
        assert paths == [("editor",), *inside, ("editor",)]

    asyncio.run(use())


@on_each_wire
def test_an_interrupt_inside_it_is_resumed_through_the_outer_checkpoint(wire: str):
    @tool
    async def ask() -> str:
        """Ask somebody."""
        return f"they say {await interrupt('well?')}"

    async def use() -> None:
        inner = model_that(("ask", {}), wire=wire, then=["a poem"])
        writer = ChatModelAgent(name="writer", description="Writes.", model=inner, tools=[ask])
        model = model_that(("writer", {"request": "x"}), wire=wire)
        outer = ChatModelAgent(name="editor", model=model, tools=[writer.as_tool()], checkpoint_store=MemoryStore())
        stopped = await outer.run("hi", checkpoint_id="c")
        (asked,) = stopped.interrupts
        assert (stopped.outcome, asked.info, asked.run_path) == ("interrupted", "well?", ("editor", "writer"))
        finished = await outer.resume("c", answers={asked.id: "yes"})
        assert finished.output == "ok"
        assert texts(inner) == ["they say yes"]
        assert texts(model) == ["a poem"]
        assert suture.check(list(finished.messages), wire=wire).acceptable

    asyncio.run(use())


def test_calls_of_one_agent_side_by_side_do_not_mix():
    def answer(messages: Any) -> str:
        return f"poem {messages[-1].content}"

    writer = ChatModelAgent(name="writer", description="Writes.", model=ScriptedModel(answer))
    model = model_that(*(("writer", {"request": f"about {n}"}) for n in range(4)))
    run(model, writer.as_tool())
    assert texts(model) == [f"poem about {n}" for n in range(4)]
