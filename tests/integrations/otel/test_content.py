"""What was said is recorded only where that is asked for, and only as much as may leave the run."""

import asyncio
import json
from typing import Any

import pytest
from msgspec.structs import replace

from suture import ChatModelAgent, Message, ToolResult, tool
from suture.messages import AgenticMessage, FunctionToolCall, FunctionToolResult, ImagePart, TextPart, UserInputText
from suture.testing import ScriptedModel
from tests.agent.tools.calling import model_that, on_each_wire
from tests.integrations.otel.recording import Recorder, calls, said


@tool
async def tides(port: str) -> str:
    """Look up today's high tide."""
    return f"06:12 in {port}"


@tool
async def sink() -> str:
    """Fail."""
    raise PermissionError("gate 7 is closed")


ASKS = calls(("tides", '{"port": "Dover"}'), ("sink", "{}"))


def recorded(*, capture_content: bool, **choices: Any) -> Recorder:
    recorder = Recorder(capture_content=capture_content)
    ChatModelAgent(
        name="harbour",
        instruction="Be brief.",
        model=ScriptedModel([ASKS, "At 06:12."]),
        tools=[tides, sink],
        middlewares=[recorder.telemetry],
        **choices,
    ).run_sync("When is high tide in Dover?")
    return recorder


def everything(recorder: Recorder) -> str:
    return " ".join(str((said(span), span.status.description, span.events)) for span in recorder.spans)


def test_nothing_that_was_said_is_recorded_unless_asked_for():
    told = everything(recorded(capture_content=False))
    assert [word for word in ("Dover", "06:12", "brief", "gate 7") if word in told] == []


def test_where_it_is_asked_for_messages_arguments_results_and_errors_are_recorded():
    recorder = recorded(capture_content=True)
    first, second = recorder.requests()
    assert json.loads(first["gen_ai.system_instructions"]) == [{"type": "text", "content": "Be brief."}]
    asked = {"role": "user", "parts": [{"type": "text", "content": "When is high tide in Dover?"}]}
    assert json.loads(first["gen_ai.input.messages"]) == [asked]
    made = [
        {"type": "tool_call", "id": "c0", "name": "tides", "arguments": {"port": "Dover"}},
        {"type": "tool_call", "id": "c1", "name": "sink", "arguments": {}},
    ]
    assert json.loads(first["gen_ai.output.messages"]) == [
        {"role": "assistant", "parts": made, "finish_reason": "tool_call"}
    ]
    answers = [
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c0", "result": "06:12 in Dover"}]},
        {
            "role": "tool",
            "parts": [{"type": "tool_call_response", "id": "c1", "result": "PermissionError: gate 7 is closed"}],
        },
    ]
    assert json.loads(second["gen_ai.input.messages"]) == [asked, {"role": "assistant", "parts": made}, *answers]
    final = [{"role": "assistant", "parts": [{"type": "text", "content": "At 06:12."}], "finish_reason": "stop"}]
    assert json.loads(second["gen_ai.output.messages"]) == final

    run = recorder.attributes("invoke_agent harbour")
    assert json.loads(run["gen_ai.input.messages"]) == [asked]
    assert json.loads(run["gen_ai.output.messages"]) == final
    call = recorder.attributes("execute_tool tides")
    assert call["gen_ai.tool.call.arguments"] == '{"port": "Dover"}'
    assert call["gen_ai.tool.call.result"] == "06:12 in Dover"
    assert recorder.one("execute_tool sink").status.description == "gate 7 is closed"


@on_each_wire
def test_content_is_written_alike_on_every_wire(wire: str):
    recorder = Recorder(capture_content=True)
    model = model_that(("tides", {"port": "Dover"}), wire=wire)
    ChatModelAgent(name="harbour", model=model, tools=[tides], middlewares=[recorder.telemetry]).run_sync("When?")
    _, asks, answer = json.loads(recorder.requests()[-1]["gen_ai.input.messages"])
    assert asks["parts"] == [{"type": "tool_call", "id": "c0", "name": "tides", "arguments": {"port": "Dover"}}]
    assert answer == {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c0", "result": "06:12 in Dover"}]}


def test_what_the_agent_redacts_is_not_recorded():
    def redact(value: Any) -> Any:
        if isinstance(value, str):
            return value.replace("Dover", "***")
        if isinstance(value, ToolResult):
            return replace(value, parts=[TextPart("***")])
        if isinstance(value, Message):
            return replace(value, content="***", tool_calls=())
        return value

    told = everything(recorded(capture_content=True, redact=redact))
    assert "***" in told
    assert [word for word in ("Dover", "06:12") if word in told] == []


def test_errors_and_instructions_are_redacted_like_all_else():
    def redact(value: Any) -> Any:
        return value.replace("gate 7", "***").replace("brief", "***") if isinstance(value, str) else value

    recorder = recorded(capture_content=True, redact=redact)
    assert recorder.one("execute_tool sink").status.description == "*** is closed"
    (said_before,) = json.loads(recorder.requests()[0]["gen_ai.system_instructions"])
    assert said_before["content"] == "Be ***."
    assert "Be ***." in recorder.attributes("invoke_agent harbour")["gen_ai.system_instructions"]

    failing = Recorder(capture_content=True)
    model = ScriptedModel([PermissionError("gate 7 needs a key")])
    agent = ChatModelAgent(name="harbour", model=model, middlewares=[failing.telemetry], redact=redact)
    with pytest.raises(PermissionError):
        agent.run_sync("When?")
    assert failing.one("chat ScriptedModel").status.description == "*** needs a key"


def test_content_that_cannot_be_written_harms_nobody():
    def redact(value: Any) -> Any:
        if isinstance(value, ToolResult | Message):
            raise TypeError("no idea")
        return value

    recorder = Recorder(capture_content=True)
    agent = ChatModelAgent(
        name="harbour", model=ScriptedModel(["At 06:12."]), middlewares=[recorder.telemetry], redact=redact
    )

    async def main() -> str:
        return (await agent.run("When?")).output

    assert asyncio.run(main()) == "At 06:12."
    assert "gen_ai.input.messages" not in recorder.attributes("chat ScriptedModel")


def test_pictures_are_left_out():
    @tool
    async def chart() -> ToolResult:
        """Draw."""
        return ToolResult([TextPart("The chart:"), ImagePart(base64_data="AAAA", mime_type="image/png")])

    recorder = Recorder(capture_content=True)
    model = ScriptedModel([calls(("chart", "{}")), "ok"])
    ChatModelAgent(name="harbour", model=model, tools=[chart], middlewares=[recorder.telemetry]).run_sync("Draw.")
    assert recorder.attributes("execute_tool chart")["gen_ai.tool.call.result"] == "The chart:"
    assert "AAAA" not in everything(recorder)


def test_arguments_that_are_no_json_are_recorded_as_they_are():
    recorder = Recorder(capture_content=True)
    model = ScriptedModel([calls(("tides", '{"po')), "ok"])
    ChatModelAgent(name="harbour", model=model, tools=[tides], middlewares=[recorder.telemetry]).run_sync("When?")
    assert recorder.attributes("execute_tool tides")["gen_ai.tool.call.arguments"] == '{"po'
    (reply,) = json.loads(recorder.requests()[0]["gen_ai.output.messages"])
    assert reply["parts"][0]["arguments"] == '{"po'


def test_what_a_user_says_beside_results_is_recorded_as_well():
    recorder = Recorder(capture_content=True)
    history = [
        AgenticMessage.user("When is high tide?"),
        AgenticMessage.assistant([FunctionToolCall("c0", "tides", "{}")]),
        AgenticMessage.user(
            [FunctionToolResult("c0", "tides", [UserInputText("06:12")]), UserInputText("And low tide?")]
        ),
    ]
    model = ScriptedModel[AgenticMessage]([AgenticMessage.assistant("At noon.")], wire="agentic")
    ChatModelAgent(name="harbour", model=model, middlewares=[recorder.telemetry]).run_sync(history)
    told = json.loads(recorder.requests()[0]["gen_ai.input.messages"])
    assert told[-2:] == [
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c0", "result": "06:12"}]},
        {"role": "user", "parts": [{"type": "text", "content": "And low tide?"}]},
    ]
