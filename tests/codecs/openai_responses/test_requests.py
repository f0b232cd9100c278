"""The bodies of requests: tools, options, and what was recorded."""

from typing import Any

import pytest

import suture
from suture.codecs import Loss, Lost, Request, get_codec
from suture.errors import InputError
from suture.messages import AgenticMessage, ToolInfo
from tests.codecs.recordings import Exchange, recordings

WIRE = "openai-responses"
codec = get_codec(WIRE)
ASK = [AgenticMessage.user("hi")]
INPUT = [{"role": "user", "content": "hi"}]
SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}}
RECORDED = [
    pytest.param(exchange, id=f"{name}-{place}")
    for name, exchanges in recordings(WIRE)
    for place, exchange in enumerate(exchanges)
]


def payload_of(**fields: Any) -> Any:
    return codec.encode_request(Request(ASK, **fields)).payload


@pytest.mark.parametrize(
    ("options", "payload"),
    [
        ({"max_tokens": 80}, {"max_output_tokens": 80}),
        ({"temperature": 0, "top_p": 0.5}, {"temperature": 0, "top_p": 0.5}),
        ({"tool_choice": "auto"}, {"tool_choice": "auto"}),
        ({"tool_choice": "none"}, {"tool_choice": "none"}),
        ({"tool_choice": "required"}, {"tool_choice": "required"}),
        ({"tool_choice": "search"}, {"tool_choice": {"type": "function", "name": "search"}}),
        (
            {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []}},
            {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []}},
        ),
        ({"parallel_tool_calls": False}, {"parallel_tool_calls": False}),
        (
            {"output_schema": SCHEMA},
            {"text": {"format": {"type": "json_schema", "name": "answer", "schema": SCHEMA}}},
        ),
        (
            {"output_schema": SCHEMA, "text": {"verbosity": "low", "format": {"name": "weather", "strict": True}}},
            {
                "text": {
                    "verbosity": "low",
                    "format": {"type": "json_schema", "name": "weather", "strict": True, "schema": SCHEMA},
                }
            },
        ),
        (
            {"output_schema": SCHEMA, "text": {"verbosity": "low"}},
            {
                "text": {
                    "verbosity": "low",
                    "format": {"type": "json_schema", "name": "answer", "schema": SCHEMA},
                }
            },
        ),
        ({"text": {"format": {"type": "text"}}}, {"text": {"format": {"type": "text"}}}),
        ({"text": {"verbosity": "low"}}, {"text": {"verbosity": "low"}}),
        (
            {"model": "gpt-5", "stream": True, "store": False, "reasoning": {"effort": "low"}},
            {"model": "gpt-5", "stream": True, "store": False, "reasoning": {"effort": "low"}},
        ),
    ],
)
def test_an_option_has_its_own_name_and_comes_back(options: dict[str, Any], payload: dict[str, Any]):
    assert codec.encode_request(Request(ASK, options=options)) == ({"input": INPUT, **payload}, ())
    assert codec.decode_request({"input": INPUT, **payload}) == Request(ASK, options=options)


@pytest.mark.parametrize("name", ["top_k", "presence_penalty", "frequency_penalty", "seed", "stop"])
def test_an_option_that_the_service_does_not_have_is_reported(name: str):
    written = codec.encode_request(Request(ASK, options={name: 7}))
    assert written == ({"input": INPUT}, (Loss(Lost.OPTION, name),))


def test_an_option_that_is_none_is_not_given():
    assert payload_of(options={"output_schema": None, "user": None}) == {"input": INPUT}


TOOLS: list[tuple[dict[str, Any], ToolInfo]] = [
    (
        {"type": "function", "name": "f", "description": "Do.", "parameters": SCHEMA, "strict": False},
        ToolInfo("f", "Do.", SCHEMA),
    ),
    (
        {"type": "function", "name": "f", "parameters": SCHEMA, "strict": True, "defer_loading": True},
        ToolInfo("f", "", SCHEMA, extra={WIRE: {"strict": True, "defer_loading": True}}),
    ),
    (
        {"type": "function", "name": "f", "parameters": SCHEMA},
        ToolInfo("f", "", SCHEMA, extra={WIRE: {"strict": None}}),
    ),
    (
        {"type": "custom", "name": "sql", "format": {"type": "text"}},
        ToolInfo("sql", extra={WIRE: {"type": "custom", "name": "sql", "format": {"type": "text"}}}),
    ),
    (
        {"type": "web_search", "filters": None},
        ToolInfo("web_search", extra={WIRE: {"type": "web_search", "filters": None}}),
    ),
]


@pytest.mark.parametrize(("said", "tool"), TOOLS)
def test_a_tool_comes_back(said: dict[str, Any], tool: ToolInfo):
    assert codec.decode_request({"input": INPUT, "tools": [said]}).tools == (tool,)
    assert codec.encode_request(Request(ASK, tools=[tool])) == ({"input": INPUT, "tools": [said]}, ())


def test_a_tool_without_arguments_has_the_schema_of_an_empty_object():
    empty = {"type": "object", "properties": {}}
    assert payload_of(tools=[ToolInfo("now")])["tools"] == [
        {"type": "function", "name": "now", "parameters": empty, "strict": False}
    ]
    bare = {"type": "function", "name": "now"}
    tool = ToolInfo("now", extra={WIRE: {"strict": None, "parameters": None}})
    assert codec.decode_request({"tools": [{**bare, "parameters": None}]}).tools == (tool,)
    assert payload_of(tools=[tool])["tools"] == [bare]


def test_a_tool_that_another_provider_runs_is_left_out_and_reported():
    tools = [ToolInfo("web_search", extra={"anthropic": {"type": "web_search_20250305"}})]
    written = codec.encode_request(Request(ASK, tools=tools))
    assert written.payload == {"input": INPUT}
    assert [(loss.name, loss.path) for loss in written.losses] == [(Lost.TOOL, "tools[0]")]


def test_what_another_provider_says_of_a_tool_is_reported():
    tools = [ToolInfo("f", "Do.", SCHEMA, extra={"anthropic": {"cache_control": {}}})]
    written = codec.encode_request(Request(ASK, tools=tools))
    assert written.payload["tools"] == [TOOLS[0][0]]
    assert [loss.name for loss in written.losses] == [Lost.TOOL]


def test_a_function_that_two_providers_know_is_no_tool_that_another_runs():
    tool = ToolInfo("now", extra={WIRE: {"strict": True}, "anthropic": {"cache_control": {}}})
    assert payload_of(tools=[tool])["tools"][0]["strict"] is True


@pytest.mark.parametrize(
    ("tool", "choice"),
    [(TOOLS[3][1], {"type": "custom", "name": "sql"}), (TOOLS[4][1], {"type": "web_search"})],
)
def test_a_tool_of_another_kind_is_demanded_in_its_own_form(tool: ToolInfo, choice: dict[str, Any]):
    assert payload_of(tools=[tool], options={"tool_choice": tool.name})["tool_choice"] == choice


def test_the_instruction_stands_outside_and_system_messages_stand_in_the_list():
    messages = [AgenticMessage.system("Be brief."), *ASK, AgenticMessage.system("In French.")]
    payload = {
        "instructions": "You are kind.",
        "input": [{"role": "system", "content": "Be brief."}, *INPUT, {"role": "system", "content": "In French."}],
    }
    assert codec.encode_request(Request(messages, "You are kind.")) == (payload, ())
    assert codec.decode_request(payload) == Request(messages, "You are kind.")


def test_input_that_is_a_text_is_a_question():
    assert codec.decode_request({"input": "hi"}).messages == ASK


@pytest.mark.parametrize(
    "payload",
    [
        {"input": 7},
        {"input": [7]},
        {"input": "hi", "instructions": ["x"]},
        {"input": "hi", "tools": {}},
        {"input": "hi", "tools": [{"type": "function"}]},
        {"input": "hi", "tools": [{"type": "function", "name": 7}]},
        {"input": "hi", "tools": [{"type": "function", "name": "f", "parameters": []}]},
    ],
)
def test_what_is_no_request_is_refused(payload: dict[str, Any]):
    with pytest.raises(InputError):
        codec.decode_request(payload)


def declared(body: dict[str, Any]) -> dict[str, Any]:
    """Return a request as it is written again: one plain text for the model is a string, its own says its type."""
    return {**body, "input": [_declared(item) for item in body["input"]]}


def _declared(item: dict[str, Any]) -> dict[str, Any]:
    match item:
        case {"content": [{"type": "input_text", "text": text}]}:
            return {**item, "content": text}
        case {"role": "assistant"}:
            return {**item, "type": "message"}
    return item


@pytest.mark.parametrize("exchange", RECORDED)
def test_a_recorded_request_comes_back_and_is_acceptable(exchange: Exchange):
    request = codec.decode_request(exchange.request)
    written = codec.encode_request(request)
    assert written == (declared(exchange.request), ())
    assert suture.check(written.payload["input"], wire=WIRE, profile=WIRE).acceptable
    assert [tool.name for tool in request.tools] == [tool["name"] for tool in exchange.request.get("tools", [])]
