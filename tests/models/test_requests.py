"""What the models ask over HTTP: tools, choices, schemas, images, marks and options; and what they make of replies."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

import suture
from suture import ChatModelAgent, tool
from suture.codecs import convert
from suture.errors import ConfigError, InputError
from suture.events import Custom, MessageFinished
from suture.messages import (
    AgenticMessage,
    AssistantGenText,
    FilePart,
    FunctionToolCall,
    ImagePart,
    Message,
    TextPart,
    TokenUsage,
    ToolInfo,
)
from suture.models import AnthropicModel, GeminiModel, ModelRequest, OpenAIResponsesModel
from tests.codecs.anthropic import server as anthropic
from tests.models.loopback import Answer, loopback
from tests.models.providers import (
    WIRES,
    call_reply,
    history_in,
    make_model,
    reply,
    stream_headers,
    streamed,
    text_reply,
)

pytestmark = pytest.mark.usefixtures("surroundings")
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
TIDES = ToolInfo(
    "tides", "High tide.", {"type": "object", "properties": {"port": {"type": "string"}}, "required": ["port"]}
)


async def asked_for(wire: str, request: ModelRequest[Any], /, **settings: Any) -> dict[str, Any]:
    """Return the payload that a request becomes."""
    async with loopback([streamed(wire, text_reply())]) as server:
        [item async for item in make_model(wire, server.url, **settings).stream(request)]
        return server.requests[0].payload


def payload(wire: str, request: ModelRequest[Any], /, **settings: Any) -> dict[str, Any]:
    return asyncio.run(asked_for(wire, request, **settings))


def request_with(**options: Any) -> ModelRequest[Any]:
    return ModelRequest("Be brief.", [Message.user("High tide?")], (TIDES,), options)


CHOICES: dict[str, tuple[str, dict[str, Any]]] = {
    "openai-chat": (
        "tool_choice",
        {
            "auto": "auto",
            "none": "none",
            "required": "required",
            "tides": {"type": "function", "function": {"name": "tides"}},
        },
    ),
    "openai-responses": (
        "tool_choice",
        {"auto": "auto", "none": "none", "required": "required", "tides": {"type": "function", "name": "tides"}},
    ),
    "anthropic": (
        "tool_choice",
        {
            "auto": {"type": "auto"},
            "none": {"type": "none"},
            "required": {"type": "any"},
            "tides": {"type": "tool", "name": "tides"},
        },
    ),
    "gemini": (
        "toolConfig.functionCallingConfig",
        {
            "auto": {"mode": "AUTO"},
            "none": {"mode": "NONE"},
            "required": {"mode": "ANY"},
            "tides": {"mode": "ANY", "allowedFunctionNames": ["tides"]},
        },
    ),
    "bedrock": (
        "toolConfig.toolChoice",
        {"auto": {"auto": {}}, "none": None, "required": {"any": {}}, "tides": {"tool": {"name": "tides"}}},
    ),
}


def at(body: dict[str, Any], path: str) -> Any:
    found: Any = body
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found


@pytest.mark.parametrize("wire", WIRES)
def test_the_choice_of_a_tool_is_told_in_the_providers_words(wire: str):
    path, expected = CHOICES[wire]

    async def run() -> dict[str, Any]:
        return {choice: at(await asked_for(wire, request_with(tool_choice=choice)), path) for choice in expected}

    assert asyncio.run(run()) == expected


TOOLS = {
    "openai-chat": lambda body: body["tools"][0]["function"],
    "openai-responses": lambda body: body["tools"][0],
    "anthropic": lambda body: body["tools"][0],
    "gemini": lambda body: body["tools"][0]["functionDeclarations"][0],
    "bedrock": lambda body: body["toolConfig"]["tools"][0]["toolSpec"],
}


@pytest.mark.parametrize("wire", WIRES)
def test_a_tool_is_told_with_its_schema(wire: str):
    told = TOOLS[wire](payload(wire, request_with()))
    assert (told["name"], told["description"]) == ("tides", "High tide.")
    schemas = {"anthropic": "input_schema", "gemini": "parametersJsonSchema", "bedrock": "inputSchema.json"}
    assert at(told, schemas.get(wire, "parameters")) == TIDES.parameters


@pytest.mark.parametrize(
    ("wire", "path", "value"),
    [
        ("openai-chat", "parallel_tool_calls", False),
        ("openai-responses", "parallel_tool_calls", False),
        ("anthropic", "tool_choice.disable_parallel_tool_use", True),
    ],
)
def test_one_call_at_a_time_is_asked_for(wire: str, path: str, value: object):
    assert at(payload(wire, request_with(tool_choice="auto", parallel_tool_calls=False)), path) is value


class Tide(msgspec.Struct):
    port: str
    time: str


SCHEMAS = {
    "openai-chat": "response_format.json_schema.schema",
    "openai-responses": "text.format.schema",
    "anthropic": "output_config.format.schema",
    "gemini": "generationConfig.responseJsonSchema",
}


@pytest.mark.parametrize("wire", WIRES)
def test_an_answer_of_a_type_is_asked_for_and_read(wire: str):
    async def run() -> tuple[Any, str]:
        answer = text_reply('{"port": "Dover", "time": "06:12"}')
        async with loopback([streamed(wire, answer)]) as server:
            agent: Any = ChatModelAgent(model=make_model(wire, server.url), output_type=Tide)
            return (await agent.run("High tide?")).output, server.requests[0].body.decode()

    output, body = asyncio.run(run())
    assert output == Tide("Dover", "06:12")
    if wire in SCHEMAS:
        assert set(at(json.loads(body), SCHEMAS[wire])["properties"]) == {"port", "time"}
    else:  # the schema is a text there
        assert '\\"port\\"' in body


def schema_in(wire: str, schema: Any) -> Any:
    """Return what a model is sent of the schema of an answer."""
    asked = payload(wire, request_with(output_schema=schema))
    if wire == "anthropic":
        return at(asked, "output_config.format.schema")
    text = at(asked, "outputConfig.textFormat.structure.jsonSchema.schema")
    return None if text is None else json.loads(text)


def an_object(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields}


NUMBER = {"type": "integer"}
CLOSED = {"additionalProperties": False}
FREE = {"type": "object", "additionalProperties": NUMBER}


@pytest.mark.parametrize("wire", ["anthropic", "bedrock"])
def test_every_object_in_the_schema_of_an_answer_is_closed_where_that_is_demanded(wire: str):
    harbour = {**an_object(name={"type": "string"}, depth=NUMBER), "required": ["name"]}
    bounded = {**harbour, "properties": {**harbour["properties"], "depth": {**NUMBER, "minimum": 0}}}
    reference = {"$ref": "#/$defs/Harbour"}
    said = {
        **an_object(
            all={"type": "array", "items": reference, "maxItems": 9},
            pilot={"oneOf": [{"type": "null"}, {**bounded, "type": ["object", "null"]}]},
            flag={"enum": ["red", None]},
        ),
        "$defs": {"Harbour": bounded},
    }
    assert schema_in(wire, said) == {
        **an_object(
            all={"type": "array", "items": reference},
            pilot={"anyOf": [{"type": "null"}, {**harbour, **CLOSED, "type": ["object", "null"]}]},
            flag={"enum": ["red", None]},
        ),
        **CLOSED,
        "$defs": {"Harbour": {**harbour, **CLOSED}},
    }


@pytest.mark.parametrize(
    "free",
    [
        FREE,
        {"type": "object"},
        {},
        {"type": "array", "items": FREE},
        {"anyOf": [NUMBER, FREE]},
        an_object(counts=FREE),
        {**an_object(), "$defs": {"Counts": FREE}},
        {"type": "array", "prefixItems": [NUMBER]},
        {**an_object(name=NUMBER), "additionalProperties": {}},
        {**an_object(), "patternProperties": {"^n": NUMBER}},
        {**an_object(name={"$ref": "#/definitions/Name"}), "definitions": {"Name": NUMBER}},
    ],
)
@pytest.mark.parametrize("wire", ["anthropic", "bedrock"])
def test_a_schema_that_no_closed_objects_can_say_is_told_in_the_instruction_alone(wire: str, free: Any):
    assert schema_in(wire, free) is None


@pytest.mark.parametrize(("model", "goes"), [("gemini-2.5-flash", False), ("gemini-3-pro", True)])
def test_tools_and_a_schema_of_the_answer_go_together_from_gemini_3_on(model: str, goes: bool):
    async def main() -> dict[str, Any]:
        async with loopback([streamed("gemini", text_reply())]) as server:
            asked = GeminiModel(model, base_url=server.url).stream(request_with(output_schema=TIDES.parameters))
            [item async for item in asked]
            return server.requests[0].payload["generationConfig"]

    assert (set(asyncio.run(main())) == {"responseMimeType", "responseJsonSchema"}) is goes


@pytest.mark.parametrize("wire", WIRES)
def test_images_reach_the_provider_from_the_user_and_from_tools(wire: str):
    image = ImagePart(base64_data=PIXEL, mime_type="image/png")
    history = [
        Message.user([TextPart("What is this?"), image]),
        Message.assistant(tool_calls=[suture.ToolCall("call_1", "tides", '{"port": "Dover"}')]),
        Message.tool([TextPart("A map:"), image], "call_1", "tides"),
    ]
    sent = history_in(wire, payload(wire, ModelRequest("", history, (TIDES,))))
    assert json.dumps(sent[0]).count(PIXEL) == 1
    assert json.dumps(sent).count(PIXEL) == 2
    assert suture.check(sent, profile=wire).acceptable


@pytest.mark.parametrize("wire", WIRES)
def test_options_of_a_run_stand_over_those_of_the_model(wire: str):
    names = {
        "openai-responses": ("max_output_tokens", "temperature"),
        "gemini": ("generationConfig.maxOutputTokens", "generationConfig.temperature"),
        "bedrock": ("inferenceConfig.maxTokens", "inferenceConfig.temperature"),
    }

    async def run() -> dict[str, Any]:
        async with loopback([streamed(wire, text_reply())]) as server:
            model = make_model(wire, server.url, options={"max_tokens": 10, "temperature": 0.5})
            await ChatModelAgent(model=model).run("hi", options={"max_tokens": 20})
            return server.requests[0].payload

    body = asyncio.run(run())
    most, temperature = names.get(wire, ("max_tokens", "temperature"))
    assert (at(body, most), at(body, temperature)) == (20, 0.5)


OWN = {
    "openai-chat": {"service_tier": "flex", "logit_bias": {"50256": -100}},
    "openai-responses": {"service_tier": "flex", "reasoning": {"effort": "low"}},
    "anthropic": {"thinking": {"type": "enabled", "budget_tokens": 1024}, "metadata": {"user_id": "u"}},
    "gemini": {"safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}]},
    "bedrock": {"requestMetadata": {"team": "sea"}, "additionalModelRequestFields": {"top_k": 3}},
}


@pytest.mark.parametrize("wire", WIRES)
def test_a_providers_own_options_pass_as_they_are(wire: str):
    body = payload(wire, request_with(**OWN[wire]))
    assert {name: body[name] for name in OWN[wire]} == OWN[wire]


def test_nothing_is_stored_at_openai_unless_it_is_asked_for():
    body = payload("openai-responses", request_with())
    assert (body["store"], body["include"]) == (False, ["reasoning.encrypted_content"])
    stored = payload("openai-responses", request_with(store=True))
    assert stored["store"] is True
    assert "include" not in stored


def test_reasoning_comes_back_encrypted_where_nothing_is_stored_by_ones_own_choice():
    body = payload("openai-responses", request_with(store=False))
    assert (body["store"], body["include"]) == (False, ["reasoning.encrypted_content"])


@pytest.mark.parametrize(
    "model", ["gpt-4.1-mini", "openai/gpt-4o", "ft:gpt-4o:acme", "chatgpt-4o-latest", "gpt-5-chat-latest"]
)
def test_a_model_that_does_not_reason_is_not_asked_for_its_reasoning(model: str):
    _, options = OpenAIResponsesModel(model).choose({})
    assert options == {"store": False}
    _, own = OpenAIResponsesModel(model).choose({"include": ["message.input_image.image_url"]})
    assert own["include"] == ["message.input_image.image_url"]


def test_ids_of_items_are_sent_only_to_a_service_that_stores_them():
    items = [
        {"role": "user", "content": "High tide?"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
        {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "tides", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "06:12"},
    ]
    history = convert(items, "openai-responses", "message").messages
    bare = payload("openai-responses", ModelRequest("", history))
    assert bare["input"] == [{name: value for name, value in item.items() if name != "id"} for item in items]
    stored = payload("openai-responses", ModelRequest("", history, options={"store": True}))
    assert stored["input"] == items


# Cache marks


def marks_in(value: Any, path: str = "") -> list[str]:
    """Return where cache marks are."""
    if isinstance(value, list):
        return [found for place, item in enumerate(value) for found in marks_in(item, f"{path}[{place}]")]
    if not isinstance(value, dict):
        return []
    inside = [found for name, item in value.items() for found in marks_in(item, f"{path}.{name}")]
    return [*inside, *([path] if "cache_control" in value else [])]


def test_the_cache_option_marks_the_tools_the_instruction_and_the_end():
    body = payload("anthropic", request_with(cache=True))
    assert sorted(marks_in(body)) == [".messages[0].content[0]", ".system[0]", ".tools[0]"]
    assert body["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert "cache" not in body
    hour = payload("anthropic", request_with(), options={"cache": "1h"})
    assert hour["system"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    assert marks_in(payload("anthropic", request_with())) == []


def test_there_are_never_more_than_four_marks_and_ones_own_stay():
    own = {"anthropic": {"cache_control": {"type": "ephemeral", "ttl": "1h"}}}
    history = [Message.user([TextPart(f"part {number}", extra=own)]) for number in range(3)]
    talk = [history[0], Message.assistant("ok"), history[1], Message.assistant("ok"), history[2]]
    body = payload("anthropic", ModelRequest("Be brief.", [*talk, Message.user("Go on.")], (TIDES,), {"cache": True}))
    marks = marks_in(body)
    assert len(marks) == 4
    assert json.dumps(body).count('"ttl": "1h"') == 3


def test_no_mark_is_set_on_a_thought():
    thought = call_reply(thought="Hm.", signature="c2ln")
    body = payload(
        "anthropic",
        ModelRequest("", [AgenticMessage.user("hi"), thought], (), {"cache": True}),
        wire="agentic",
    )
    kinds = [block["type"] for message in body["messages"] for block in message["content"] if "cache_control" in block]
    assert "thinking" not in kinds


@pytest.mark.parametrize("wrong", ["yes", 7, {"ttl": "1h"}])
def test_a_wrong_cache_option_is_refused(wrong: object):
    agent = ChatModelAgent(model=AnthropicModel("m", base_url="http://127.0.0.1:1", options={"cache": wrong}))
    with pytest.raises(ConfigError, match="cache takes True, '5m' or '1h'"):
        agent.run_sync("hi")


# Replies


async def run_agent(wire: str, answers: Sequence[Answer], **settings: Any) -> tuple[Any, list[Any], Any]:
    async with loopback(answers) as server:
        agent: Any = ChatModelAgent(model=make_model(wire, server.url), **settings)
        async with agent.stream("High tide?") as running:
            events = [event async for event in running]
        return running.final_result, events, server


@pytest.mark.parametrize("wire", WIRES)
def test_usage_tells_what_came_from_the_cache(wire: str):
    cost = TokenUsage(prompt_tokens=900, completion_tokens=40, total_tokens=940, cached_tokens=800)
    answer = streamed(wire, reply(AssistantGenText("Done."), usage=cost))
    result, _, _ = asyncio.run(run_agent(wire, [answer]))
    assert result.usage == cost
    assert result.messages[-1].response_meta.usage == cost


@pytest.mark.parametrize("reason", ["length", "content_filter"])
@pytest.mark.parametrize("wire", WIRES)
def test_a_reply_that_was_broken_off_says_so_and_a_call_that_was_cut_is_not_run(wire: str, reason: str):
    ran: list[str] = []

    @tool
    def tides(port: str = "everywhere") -> str:
        """Look up high tide."""
        ran.append(port)
        return "06:12"

    cut = reply(FunctionToolCall("call_1", "tides", "{}"), finish=reason)
    answers = [streamed(wire, cut), streamed(wire, text_reply())]
    result, _, server = asyncio.run(run_agent(wire, answers, tools=[tides]))
    asks, answer = result.messages[1:3]
    assert asks.response_meta.finish_reason == reason
    assert ran == []
    assert answer.role == "tool"
    assert answer.tool_call_id == asks.tool_calls[0].id
    assert suture.check(history_in(wire, server.requests[-1].payload), profile=wire).acceptable


@pytest.mark.parametrize("wire", WIRES)
def test_a_text_at_its_limit_is_kept(wire: str):
    answer = streamed(wire, reply(AssistantGenText("The sea is"), finish="length"))
    result, events, _ = asyncio.run(run_agent(wire, [answer]))
    assert result.output == "The sea is"
    assert result.messages[-1].response_meta.finish_reason == "length"
    assert any(isinstance(event, MessageFinished) for event in events)


@tool
def tides(port: str) -> str:
    """Look up high tide."""
    return f"06:12 in {port}"


@pytest.mark.parametrize("wire", WIRES)
def test_the_last_answer_is_asked_for_without_a_choice_between_tools_that_are_not_there(wire: str):
    answers = [streamed(wire, call_reply(("call_1", "tides", '{"port": "Dover"}'))), streamed(wire, text_reply())]
    settings: dict[str, Any] = {"tools": [tides], "max_iterations": 1, "on_max_iterations": "answer"}

    async def main() -> tuple[Any, dict[str, Any]]:
        async with loopback(answers) as server:
            model = make_model(wire, server.url, options={"tool_choice": "required", "parallel_tool_calls": False})
            result = await ChatModelAgent(model=model, **settings).run("High tide?")
            return result, server.requests[-1].payload

    result, asked = asyncio.run(main())
    assert result.output == "The sea is calm."
    # Two providers demand that the tools are declared which a history calls; only one of them can forbid to call them.
    named = [
        at(tool, "name") or at(tool, "toolSpec.name")
        for tool in at(asked, "tools") or at(asked, "toolConfig.tools") or ()
    ]
    assert named == (["tides"] if wire in {"anthropic", "bedrock"} else [])
    assert at(asked, CHOICES[wire][0]) == ({"type": "none"} if wire == "anthropic" else None)
    assert "parallel_tool_calls" not in asked


def test_a_choice_between_tools_of_the_provider_s_own_is_sent():
    own = {"tools": [{"type": "web_search_20250305", "name": "web_search"}], "tool_choice": "required"}
    asked = payload("anthropic", ModelRequest("", [Message.user("hi")], (), own))
    assert asked["tool_choice"] == {"type": "any"}


# What Anthropic runs itself

SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "tides"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
LOOK = {"type": "tool_use", "id": "toolu_1", "name": "tides", "input": {"port": "Dover"}}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmVk"}


def says(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def anthropic_reply(reason: str, *content: dict[str, Any]) -> Answer:
    body = {"type": "message", "role": "assistant", "content": list(content), "stop_reason": reason, "usage": {}}
    events = anthropic.write_stream(body)
    return Answer([anthropic.frame(event) for event in events], headers=stream_headers("anthropic"))


def contents_of(asked: Any) -> list[Any]:
    return [message["content"] for message in asked.payload["messages"] if message["role"] == "assistant"]


def test_a_reply_that_the_provider_paused_is_sent_back_and_goes_on():
    paused, goes_on = [THOUGHT, says("I search."), SEARCH], [FOUND, LOOK]
    answers = [
        anthropic_reply("pause_turn", *paused),
        anthropic_reply("tool_use", *goes_on),
        anthropic_reply("end_turn", says("At 06:12.")),
    ]
    result, _, server = asyncio.run(run_agent("anthropic", answers, tools=[tides]))
    assert result.output == "At 06:12."
    assert [contents_of(asked) for asked in server.requests] == [[], [paused], [paused, goes_on]]
    assert [message.role for message in result.messages] == ["user", *["assistant"] * 2, "tool", "assistant"]


def test_a_pause_is_a_turn_and_the_last_answer_is_taken_as_it_is():
    paused = anthropic_reply("pause_turn", says("I search."), SEARCH)
    with pytest.raises(suture.MaxIterationsExceeded):
        asyncio.run(run_agent("anthropic", [paused], max_iterations=3))
    limits: dict[str, Any] = {"max_iterations": 1, "on_max_iterations": "answer"}
    result, _, server = asyncio.run(run_agent("anthropic", [paused], **limits))
    assert (result.output, len(server.requests)) == ("I search.", 2)


@pytest.mark.parametrize("reason", ["max_tokens", "pause_turn"])
@pytest.mark.parametrize("before", [[says("I search.")], [THOUGHT], []], ids=["text", "thought", "nothing"])
def test_a_search_that_was_broken_off_is_left_out_when_the_user_speaks(reason: str, before: list[Any]):
    async def main() -> Any:
        async with loopback([anthropic_reply(reason, *before, SEARCH)]) as server:
            agent: Any = ChatModelAgent(model=make_model("anthropic", server.url), max_iterations=1)
            try:
                messages = (await agent.run("High tide?")).messages
            except suture.MaxIterationsExceeded as error:
                messages = error.result.messages
            server.answers = [streamed("anthropic", text_reply())]
            await agent.run("Go on.", history=messages)
            return server.requests[-1]

    assert contents_of(asyncio.run(main())) == ([before] if before == [says("I search.")] else [])


@pytest.mark.parametrize("order", [[SEARCH, LOOK], [THOUGHT, LOOK, SEARCH]], ids=["search first", "call first"])
def test_a_search_beside_calls_waits_for_their_results(order: list[Any]):
    again, found = [{**LOOK, "id": "toolu_2"}], [FOUND, says("At 06:12.")]
    answers = [anthropic_reply("tool_use", *said) for said in (order, again)] + [anthropic_reply("end_turn", *found)]

    async def main() -> Any:
        async with loopback(answers) as server:
            agent: Any = ChatModelAgent(model=make_model("anthropic", server.url), tools=[tides])
            result = await agent.run("High tide?")
            await agent.run("And in Hull?", history=result.messages)
            return result, server.requests

    result, asked = asyncio.run(main())
    assert result.output == "At 06:12."
    assert [contents_of(each) for each in asked[1:]] == [[order], [order, again], [order, again, found]]


@pytest.mark.parametrize("native", ["message", "agentic"])
def test_a_text_that_was_split_to_cite_is_one_text(native: str):
    cited = {**says("at 06:12"), "citations": [{"type": "char_location", "cited_text": "06:12"}]}
    answer = anthropic_reply("end_turn", says("I search."), SEARCH, FOUND, says("High tide is "), cited, says("."))

    async def main() -> Any:
        async with loopback([answer]) as server:
            return await ChatModelAgent(model=make_model("anthropic", server.url, wire=native)).run("High tide?")

    assert asyncio.run(main()).output == "I search.High tide is at 06:12."


@pytest.mark.parametrize("wire", ["gemini", "bedrock"])
def test_what_a_provider_is_not_told_is_told_once(wire: str):
    @tool
    def tides(port: str) -> str:
        """Look up high tide."""
        return f"06:12 in {port}"

    answers = [streamed(wire, call_reply(("call_1", "tides", '{"port": "Dover"}'))), streamed(wire, text_reply())]

    async def run() -> tuple[list[Any], int]:
        async with loopback(answers) as server:
            model = make_model(wire, server.url, options={"parallel_tool_calls": False})
            async with ChatModelAgent(model=model, tools=[tides]).stream("High tide?") as running:
                events = [event async for event in running]
            return events, len(server.requests)

    events, requests = asyncio.run(run())
    losses = [event.data for event in events if isinstance(event, Custom) and event.name == "losses"]
    assert requests == 2
    assert [[(loss["name"], loss["what"]) for loss in told] for told in losses] == [[("option", "parallel_tool_calls")]]


@pytest.mark.parametrize("wire", WIRES)
def test_a_message_that_is_no_message_is_refused_before_anything_is_sent(wire: str):
    async def run() -> int:
        async with loopback([streamed(wire, text_reply())]) as server:
            model = make_model(wire, server.url)
            with pytest.raises(InputError):
                [item async for item in model.stream(ModelRequest("", [{"role": "user", "content": "hi"}]))]
            return len(server.requests)

    assert asyncio.run(run()) == 0


@pytest.mark.parametrize(("own", "sent"), [("", "document.pdf"), ("tides.pdf", "tides.pdf")])
@pytest.mark.parametrize("wire", ["openai-chat", "openai-responses"])
def test_a_file_by_value_has_a_name_because_openai_refuses_one_without(wire: str, own: str, sent: str):
    async def run() -> Any:
        async with loopback([streamed(wire, text_reply())]) as server:
            file = FilePart(base64_data="JVBE", mime_type="application/pdf", name=own)
            await ChatModelAgent(model=make_model(wire, server.url)).run([TextPart("When?"), file])
            return server.requests[0].payload

    part = history_in(wire, asyncio.run(run()))[0]["content"][1]
    assert part.get("file", part)["filename"] == sent


def test_an_address_of_a_file_has_no_name_beside_it():
    async def run() -> Any:
        async with loopback([streamed("openai-responses", text_reply())]) as server:
            model = make_model("openai-responses", server.url)
            await ChatModelAgent(model=model).run([FilePart(url="https://example.com/tides.pdf")])
            return server.requests[0].payload

    assert asyncio.run(run())["input"][0]["content"] == [
        {"type": "input_file", "file_url": "https://example.com/tides.pdf"}
    ]
