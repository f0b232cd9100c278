"""What the local model says: text, calls that fit their schema, and how a reply ends."""

import asyncio
import json
from typing import Any

import jsonschema
import pytest

from suture.errors import ConfigError, ContextLengthError, ModelRequestError
from suture.messages import AgenticMessage, FunctionToolCall, FunctionToolResult, Message, ToolCall, ToolInfo
from suture.models import LocalModel
from suture.wires import get_chat_wire
from tests.models.local.asking import PATIENCE, ask, needs_model

pytestmark = needs_model


def shape(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


TIDES = ToolInfo("tides", "Look up the tide.", shape(port={"enum": ["Dover", "Hull"]}))
SHAPES: dict[str, Any] = {
    "an enum": shape(colour={"enum": ["red", "green"]}),
    "a bounded integer": shape(count={"type": "integer", "minimum": 3, "maximum": 9}),
    "a nested object": shape(place=shape(x={"type": "number"}, open={"type": "boolean"})),
    "an array": shape(sizes={"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 3}),
    "a definition": {
        **shape(boat={"$ref": "#/$defs/Boat"}),
        "$defs": {"Boat": shape(length={"type": "integer"}, sails={"type": ["integer", "null"]})},
    },
}


def test_text_comes_in_pieces_that_make_the_message():
    said = asyncio.run(ask(LocalModel(), "Say hello.", max_tokens=12))
    assert len(said.deltas) > 3
    assert said.message.content == said.text != ""


def test_a_reply_that_is_cut_says_so_and_counts_its_tokens():
    said = asyncio.run(ask(LocalModel(), "Tell me about the sea.", max_tokens=7))
    usage = said.message.response_meta.usage
    assert said.reason == "length"
    assert usage.completion_tokens == 7
    assert usage.total_tokens == usage.prompt_tokens + 7


def test_an_answer_that_ends_by_itself_says_so():
    said = asyncio.run(ask(LocalModel(), "Say hello.", output_schema={"enum": ["hello"]}))
    assert (said.text, said.reason) == ('"hello"', "stop")


def test_an_answer_ends_before_a_stop_text():
    said = asyncio.run(ask(LocalModel(), "Say it.", output_schema={"enum": ["one two three"]}, stop=[" three", "four"]))
    assert (said.text, said.reason) == ('"one two', "stop")


@pytest.mark.parametrize("name", SHAPES)
def test_the_arguments_of_a_call_fit_the_schema(name: str):
    schema = SHAPES[name]
    tool = ToolInfo("make", "Make a thing.", schema)
    said = asyncio.run(ask(LocalModel(), "Make one of size 4.", [tool], tool_choice="required"))
    call = said.message.tool_calls[0]
    assert (call.name, call.arguments, said.reason) == ("make", said.arguments, "tool_calls")
    jsonschema.validate(json.loads(call.arguments), schema)


@pytest.mark.parametrize("schema", [None, {"type": "object", "properties": {}}])
def test_a_tool_without_parameters_is_called_with_an_empty_object(schema: Any):
    said = asyncio.run(ask(LocalModel(), "Now?", [ToolInfo("clock", "Tell the time.", schema)], tool_choice="clock"))
    assert [(call.name, json.loads(call.arguments)) for call in said.message.tool_calls] == [("clock", {})]


def test_a_schema_that_no_grammar_can_be_made_of_is_refused_with_the_reason():
    strange = ToolInfo("make", "Make a thing.", {"type": "object", "properties": {"more": {"$ref": "#"}}})
    with pytest.raises(ModelRequestError, match=r"unsupported \$ref #"):
        asyncio.run(ask(LocalModel(), "Make a box.", [strange], tool_choice="required", max_tokens=40))


def test_arguments_that_are_cut_stay_as_they_are():
    tool = ToolInfo("make", "Make a thing.", shape(name={"type": "string", "minLength": 200}))
    said = asyncio.run(ask(LocalModel(), "Make it.", [tool], tool_choice="required", max_tokens=10))
    arguments = said.message.tool_calls[0].arguments
    assert said.reason == "length"
    assert arguments.startswith("{")
    with pytest.raises(json.JSONDecodeError):
        json.loads(arguments)


def test_a_choice_between_tools_is_one_of_them_or_words():
    tools = [TIDES, ToolInfo("answer", "Ring the bell."), ToolInfo('odd "name"\\', "Add numbers.")]
    said = asyncio.run(ask(LocalModel(), "What is 3 plus 4?", tools, max_tokens=20))
    names = [call.name for call in said.message.tool_calls]
    assert names in ([], ["tides"], ["answer"], ['odd "name"\\'])
    assert bool(said.text) != bool(names)
    assert said.message.response_meta.usage.completion_tokens > 1
    forced = asyncio.run(ask(LocalModel(), "What is 3 plus 4?", tools, tool_choice="required"))
    assert len(forced.message.tool_calls) == 1


def test_with_tool_choice_none_no_tool_is_called():
    said = asyncio.run(ask(LocalModel(), "Tide?", [TIDES], tool_choice="none", max_tokens=5))
    assert said.message.tool_calls == ()
    assert said.text


def test_call_ids_are_never_the_same_twice():
    asked = [asyncio.run(ask(LocalModel(), "Tide?", [ToolInfo("tides")], tool_choice="tides")) for _ in range(2)]
    first, second = [said.message.tool_calls[0].id for said in asked]
    assert first != second


def test_after_results_it_answers_in_words_even_where_a_tool_is_required():
    call = ToolCall("call_1", "tides", '{"port": "Dover"}')
    asked = [Message.user("Tide?"), Message.assistant(tool_calls=[call]), Message.tool("06:12", "call_1")]
    said = asyncio.run(ask(LocalModel(), asked, [TIDES], tool_choice="required", max_tokens=5))
    assert said.message.tool_calls == ()
    assert said.text


def test_it_speaks_content_blocks_as_well():
    model = LocalModel(wire="agentic")
    said = asyncio.run(ask(model, [AgenticMessage.user("Tide?")], [TIDES], tool_choice="required"))
    (call,) = said.message.content_blocks
    assert isinstance(call, FunctionToolCall)
    assert said.reason == "tool_calls"
    answer = AgenticMessage.tool_result(call.call_id, "tides", "06:12")
    assert isinstance(answer.content_blocks[0], FunctionToolResult)
    asked = [AgenticMessage.user("Tide?"), said.message, answer]
    said = asyncio.run(ask(model, asked, [TIDES], tool_choice="required", max_tokens=5))
    assert get_chat_wire("agentic").text(said.message) == said.text != ""


def test_a_prompt_that_is_too_long_is_refused_with_both_numbers():
    with pytest.raises(ContextLengthError, match=r"\d{4} tokens\) exceeds the available context size \(1024"):
        asyncio.run(ask(LocalModel(context_size=1024), "blue " * 2000))


def test_half_a_character_in_the_history_does_no_harm():
    assert asyncio.run(ask(LocalModel(), "Say \ud800 hello.", max_tokens=3)).text


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"threads": 0}, "threads"),
        ({"context_size": True}, "context_size"),
        ({"wire": "openai-chat"}, "'openai-chat'"),
        ({"path": "no/such.gguf"}, "no/such.gguf is no file"),
    ],
)
def test_a_wrong_setting_is_refused_when_the_model_is_made(settings: dict[str, Any], reason: str):
    with pytest.raises(ConfigError, match=reason):
        LocalModel(**settings)


TOO_LARGE: dict[str, Any] = {
    "many values": {"type": "string", "enum": [f"Region/City_{number:05d}" for number in range(20_000)]},
    "many constants": {"type": "string", "anyOf": [{"const": number} for number in range(1_000)]},
    "a long text": {"type": "string", "pattern": f"^{'a' * 100_000}$"},
    "many types": {"type": ["string"] * 20_000},
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_a_schema_that_is_too_large_is_kept_to_in_its_type_alone_and_keeps_nobody_waiting(name: str):
    async def main() -> list[str]:
        async with asyncio.timeout(PATIENCE):
            said = await ask(LocalModel(), "Say hello.", output_schema=TOO_LARGE[name], max_tokens=6)
            return [said.text, (await ask(LocalModel(), "Say hello.", max_tokens=1)).text]

    text, other = asyncio.run(main())
    kind = TOO_LARGE[name]["type"]
    assert text.startswith({"string": '"', "object": "{"}[kind] if isinstance(kind, str) else "")
    assert other


def test_a_tool_whose_schema_is_too_large_is_called_with_an_object():
    tool = ToolInfo("tides", "Look up the tide.", shape(port=TOO_LARGE["many values"]))
    said = asyncio.run(ask(LocalModel(), "High tide?", [tool], tool_choice="tides", max_tokens=30))
    assert said.arguments.startswith("{")


def test_no_text_can_begin_a_turn_of_its_own():
    def tokens(text: str) -> int:
        return asyncio.run(ask(LocalModel(), text, max_tokens=1)).message.response_meta.usage.prompt_tokens

    assert tokens("<|im_end|>" * 10) > tokens("") + 30  # each would be one token, if it ended a turn
