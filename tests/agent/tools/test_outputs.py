"""What a run gives back: text, a value of a type, something in the session; and agents without tools."""

import asyncio
import json
import re
from dataclasses import dataclass
from typing import Any

import msgspec
import pydantic
import pytest

import suture
from suture import ChatModelAgent, OutputError, tool
from suture.testing import ScriptedModel
from tests.agent.tools.calling import calls, message, on_each_wire, run
from tests.shapes.notation import user
from tests.shapes.wires import expect, read, render


class Tide(msgspec.Struct):
    at: str
    metres: float


@dataclass
class TideData:
    at: str
    metres: float


class TideModel(pydantic.BaseModel):
    at: str
    metres: float


TYPES = [Tide, TideData, TideModel]
each_type = pytest.mark.parametrize("kind", TYPES, ids=lambda each: each.__name__)
RIGHT = '{"at": "06:12", "metres": 4.5}'


@each_type
@on_each_wire
def test_the_answer_is_a_value_of_the_type_that_was_asked_for(wire: str, kind: Any):
    finished = run(ScriptedModel([RIGHT], wire), output_type=kind)
    assert finished.output == kind(at="06:12", metres=4.5)


@each_type
def test_a_fenced_answer_is_read_too(kind: Any):
    assert run(ScriptedModel([f"```json\n{RIGHT}\n```"]), output_type=kind).output == kind(at="06:12", metres=4.5)


@each_type
@on_each_wire
def test_a_wrong_answer_is_sent_back_once_with_what_is_wrong(wire: str, kind: Any):
    model = ScriptedModel(['{"at": "06:12", "metres": "high"}', RIGHT], wire)
    finished = run(model, output_type=kind)
    assert finished.output == kind(at="06:12", metres=4.5)
    role, events = read(wire, list(model.requests[1].messages))[-1]
    assert role == "user"
    assert "metres" in events[0][1]
    assert suture.check(list(finished.messages), wire=wire).acceptable


def test_what_pydantic_finds_wrong_is_told_without_its_links():
    class Invoice(pydantic.BaseModel):
        number: int
        total: float = pydantic.Field(gt=0)

    model = ScriptedModel(['{"number": "x", "total": -1}', '{"number": 3, "total": 7}'])
    told = ChatModelAgent(model=model, output_type=Invoice).run_sync("hi").messages[2].content.partition(". Give ")[0]
    assert re.fullmatch(
        r"The answer does not fit: answer\.number: [^;]*integer[^;]*; answer\.total: [^;]*greater than 0", told
    )
    assert "http" not in told


@dataclass
class Speechless:
    port: str

    def __post_init__(self) -> None:
        raise ValueError


def test_an_answer_that_is_refused_without_a_reason_is_refused():
    agent = ChatModelAgent(model=ScriptedModel(lambda _: '{"port": "Dover"}'), output_type=Speechless)
    with pytest.raises(OutputError, match="after 2 corrections: "):
        agent.run_sync("hi")


@each_type
def test_an_answer_that_stays_wrong_is_an_error(kind: Any):
    async def use() -> None:
        agent = ChatModelAgent(model=ScriptedModel(lambda _: "at six"), output_type=kind)
        agent_run = agent.stream("hi")
        with pytest.raises(OutputError) as error:
            await agent_run.result()
        assert str(error.value).count("does not fit") == 1
        assert error.value.result is agent_run.final_result
        assert agent_run.final_result is not None
        assert suture.check(list(agent_run.final_result.messages), wire="message").acceptable

    asyncio.run(use())


@each_type
def test_the_model_is_told_which_type_it_is(kind: Any):
    model = ScriptedModel([RIGHT])
    run(model, output_type=kind)
    request = model.requests[0]
    asked = json.dumps([request.instruction, dict(request.options or {})], default=str)
    assert "metres" in asked


def test_a_list_of_values_is_a_type_as_well():
    assert run(ScriptedModel([f"[{RIGHT}]"]), output_type=list[Tide]).output == [Tide("06:12", 4.5)]


@tool
async def look() -> str:
    """Look."""
    return "06:12"


@on_each_wire
def test_the_type_holds_for_the_final_answer_and_not_for_turns_with_calls(wire: str):
    model = ScriptedModel([message(wire, calls(("look", {}), text="I look.")), RIGHT], wire)
    assert run(model, look, output_type=Tide).output == Tide("06:12", 4.5)
    assert len(model.requests) == 2


# Session and input


@on_each_wire
def test_the_final_text_is_kept_in_the_session_under_the_output_key(wire: str):
    finished = run(ScriptedModel(["06:12"], wire), output_key="tide", session={"place": "Brest"})
    assert dict(finished.session) == {"place": "Brest", "tide": "06:12"}


@on_each_wire
def test_the_input_builder_makes_the_messages_that_a_run_starts_with(wire: str):
    seen: list[Any] = []

    def build(instruction: str, messages: Any) -> list[Any]:
        seen.append((instruction, read(wire, list(messages))))
        return render(wire, [user(f"{instruction} Now:"), user("built")]).messages

    model = ScriptedModel(["ok"], wire)
    finished = run(model, instruction="Be brief.", input_builder=build)
    assert seen == [("Be brief.", expect(wire, [user("hi")]))]
    assert read(wire, list(model.requests[0].messages)) == expect(wire, [user("Be brief. Now:"), user("built")])
    assert read(wire, list(finished.messages))[:2] == expect(wire, [user("Be brief. Now:"), user("built")])


def test_an_async_input_builder_is_awaited():
    async def build(_: str, messages: Any) -> list[Any]:
        await asyncio.sleep(0)
        return [*messages, *messages]

    model = ScriptedModel(["ok"])
    run(model, input_builder=build)
    assert [m.content for m in model.requests[0].messages] == ["hi", "hi"]


# Without tools


@on_each_wire
def test_an_agent_without_tools_takes_one_turn(wire: str):
    model = ScriptedModel(["hello"], wire)
    assert run(model).output == "hello"
    assert model.requests[0].tool_infos == ()


@on_each_wire
def test_an_agent_without_tools_whose_model_calls_one_still_leaves_a_whole_history(wire: str):
    async def use() -> None:
        model = ScriptedModel([message(wire, calls(("look", {}), text="Let me see."))] * 2 + ["ok"], wire)
        agent = ChatModelAgent(model=model)
        finished = await agent.run("hi")
        assert len(model.requests) == 1
        assert finished.outcome == "finished"
        assert suture.check(list(finished.messages), wire=wire).acceptable
        model.replies = ["", "ok"]
        await agent.run([*finished.messages, *render(wire, [user("and?")]).messages])
        assert suture.check(list(model.requests[1].messages), wire=wire).acceptable

    asyncio.run(use())
