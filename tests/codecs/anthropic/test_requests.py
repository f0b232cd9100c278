"""Whole requests: the system, tools and settings, from and into the Messages API."""

import copy
import json
from typing import Any

import anthropic
import pytest

from suture.codecs import Loss, Lost, Request, get_codec
from suture.errors import ConfigError, InputError
from suture.messages import AgenticMessage, ToolInfo
from tests.codecs.answering import answering
from tests.codecs.anthropic.samples import GIVEN, MADE, MARK
from tests.codecs.anthropic.server import write_reply
from tests.codecs.recordings import recordings
from tests.corpus import needs_corpus

CODEC = get_codec("anthropic")
ASKED = [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]
SCHEMA = {"type": "object", "properties": {"port": {"type": "string"}}}
TIDES = {"name": "tides", "description": "Look up.", "input_schema": SCHEMA}


def request(**given: Any) -> Request:
    return Request([AgenticMessage.user("hi")], **given)


def written(**given: Any) -> dict[str, Any]:
    payload, losses = CODEC.encode_request(request(**given))
    assert losses == ()
    return payload


# Requests that providers were sent


@needs_corpus
def test_every_recorded_request_comes_back_as_it_was():
    seen = 0
    for _, exchanges in recordings("anthropic-messages"):
        for exchange in exchanges:
            before = copy.deepcopy(exchange.request)
            decoded = CODEC.decode_request(exchange.request)
            again = CODEC.encode_request(decoded)
            assert again.losses == ()
            assert exchange.request == before
            assert again.payload == before
            seen += 1
    assert seen == 7


@needs_corpus
def test_a_recorded_request_says_what_was_asked():
    [(_, [exchange])] = [found for found in recordings("anthropic-messages") if found[0] == "streams-tool-call"]
    decoded = CODEC.decode_request(exchange.request)
    assert decoded.instruction == "Call tools exactly as requested."
    assert [tool.name for tool in decoded.tools] == ["get_weather"]
    assert decoded.options == {
        "model": "claude-haiku-4-5-20251001",
        "tool_choice": "get_weather",
        "stream": True,
        "max_tokens": 80,
        "temperature": 0,
    }


# The system


@pytest.mark.parametrize("system", ["Be brief.", [{"type": "text", "text": "Be brief."}]])
def test_one_plain_text_of_the_system_is_the_instruction(system: Any):
    decoded = CODEC.decode_request({"system": system, "messages": ASKED})
    assert (decoded.instruction, len(decoded.messages)) == ("Be brief.", 1)
    assert CODEC.encode_request(decoded).payload["system"] == [{"type": "text", "text": "Be brief."}]


@pytest.mark.parametrize(
    "system",
    [
        [{"type": "text", "text": "a", **MARK}],
        [{"type": "text", "text": "a"}, {"type": "text", "text": "b", **MARK}],
    ],
)
def test_a_system_of_more_than_one_plain_text_is_a_message_and_comes_back(system: list[Any]):
    decoded = CODEC.decode_request({"system": system, "messages": ASKED})
    assert (decoded.instruction, [message.role for message in decoded.messages]) == ("", ["system", "user"])
    assert CODEC.encode_request(decoded).payload == {"system": system, "messages": ASKED, "max_tokens": 8192}


@pytest.mark.parametrize("system", [None, "", []])
def test_an_empty_system_no_tools_and_what_is_null_are_left_out(system: Any):
    decoded = CODEC.decode_request({"system": system, "messages": ASKED, "tools": [], "container": None})
    assert CODEC.encode_request(decoded).payload == {"messages": ASKED, "max_tokens": 8192}


# Tools


@pytest.mark.parametrize(
    "tool",
    [
        TIDES,
        {"name": "tides", "input_schema": SCHEMA},
        {"name": "tides"},
        {**TIDES, "type": "custom", "strict": True, **MARK},
        {**TIDES, "input_schema": {"type": "object", "$defs": {}, "additionalProperties": False}},
        {"type": "web_search_20260318", "name": "web_search", "max_uses": 3},
        {"type": "bash_20250124", "name": "bash"},
        {"type": "mcp_toolset", "mcp_server_name": "sea"},
        {"type": "computer_toolset_20260801", "configs": {"zoom": None}},
    ],
)
def test_a_tool_comes_back_as_it_was(tool: dict[str, Any]):
    decoded = CODEC.decode_request({"messages": ASKED, "tools": [tool]})
    payload, losses = CODEC.encode_request(decoded)
    assert (payload["tools"], losses) == ([tool], ())


def test_a_tool_is_read_with_its_schema_and_what_is_the_apis_own_beside_it():
    [tool] = CODEC.decode_request({"messages": [], "tools": [{**TIDES, "strict": True}]}).tools
    assert tool == ToolInfo("tides", "Look up.", SCHEMA, extra={"anthropic": {"strict": True}})


@pytest.mark.parametrize(
    ("parameters", "schema"),
    [
        (None, {"type": "object", "properties": {}}),
        ({"properties": {"a": {}}}, {"type": "object", "properties": {"a": {}}}),
        (SCHEMA, SCHEMA),
    ],
)
def test_the_schema_of_a_tool_is_that_of_an_object(parameters: Any, schema: Any):
    assert written(tools=[ToolInfo("tides", "Look up.", parameters)])["tools"][0]["input_schema"] == schema


def test_what_another_provider_says_about_a_tool_is_reported():
    tool = ToolInfo("tides", "Look up.", SCHEMA, extra={"openai-chat": {"strict": True, "x": None}, "mine": 1})
    payload, losses = CODEC.encode_request(request(tools=[tool]))
    assert payload["tools"] == [TIDES]
    assert [(loss.name, loss.what, loss.path) for loss in losses] == [
        (Lost.TOOL, "openai-chat strict of tides", "tools[0]"),
        (Lost.TOOL, "extra 'mine' of tides", "tools[0]"),
    ]


def test_a_tool_that_another_provider_runs_is_left_out_and_reported():
    tool = ToolInfo("web_search", extra={"openai-responses": {"type": "web_search"}})
    payload, losses = CODEC.encode_request(request(tools=[tool]))
    assert "tools" not in payload
    assert losses == (Loss(Lost.TOOL, "web_search, a tool that another provider runs", None, "tools[0]"),)


def test_a_tool_without_a_name_and_a_type_is_refused():
    with pytest.raises(InputError, match=r"tools\[0\]: expected a tool with a name"):
        CODEC.decode_request({"messages": [], "tools": [{"input_schema": {}}]})


# Settings

OPTIONS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"max_tokens": 80}, {"max_tokens": 80}),
    (
        {"temperature": 0, "top_p": 0.5, "top_k": 3},
        {"temperature": 0, "top_p": 0.5, "top_k": 3},
    ),
    ({"stop": ["END"]}, {"stop_sequences": ["END"]}),
    ({"tool_choice": "auto"}, {"tool_choice": {"type": "auto"}}),
    ({"tool_choice": "none"}, {"tool_choice": {"type": "none"}}),
    ({"tool_choice": "required"}, {"tool_choice": {"type": "any"}}),
    ({"tool_choice": "tides"}, {"tool_choice": {"type": "tool", "name": "tides"}}),
    ({"tool_choice": {"type": "tool", "name": "auto"}}, {"tool_choice": {"type": "tool", "name": "auto"}}),
    ({"tool_choice": {"type": "several"}}, {"tool_choice": {"type": "several"}}),
    (
        {"tool_choice": "required", "parallel_tool_calls": False},
        {"tool_choice": {"type": "any", "disable_parallel_tool_use": True}},
    ),
    (
        {"tool_choice": "auto", "parallel_tool_calls": True},
        {"tool_choice": {"type": "auto", "disable_parallel_tool_use": False}},
    ),
    ({"output_schema": SCHEMA}, {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}),
    (
        {"output_schema": SCHEMA, "output_config": {"effort": "low"}},
        {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}, "effort": "low"}},
    ),
    ({"output_config": {"format": {"type": "xml"}}}, {"output_config": {"format": {"type": "xml"}}}),
    (
        {"thinking": {"type": "adaptive"}, "metadata": {"user_id": "u"}, "stream": True, "model": "claude"},
        {"thinking": {"type": "adaptive"}, "metadata": {"user_id": "u"}, "stream": True, "model": "claude"},
    ),
]


@pytest.mark.parametrize(("options", "fields"), OPTIONS, ids=[" ".join(case[0]) for case in OPTIONS])
def test_an_option_has_the_name_that_the_api_gives_it_and_comes_back(options: Any, fields: Any):
    payload = written(options=options)
    assert payload == {"max_tokens": 8192, "messages": ASKED, **fields}
    assert CODEC.decode_request(payload).options == {"max_tokens": 8192, **options}


def test_calls_one_at_a_time_are_asked_for_only_where_there_are_tools():
    assert "tool_choice" not in written(options={"parallel_tool_calls": False})
    assert "tool_choice" not in written(options={"parallel_tool_calls": True}, tools=[ToolInfo("tides")])
    one = written(options={"parallel_tool_calls": False}, tools=[ToolInfo("tides")])
    assert one["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}


def test_the_choice_of_no_tool_says_nothing_about_how_many():
    payload = written(options={"tool_choice": "none", "parallel_tool_calls": False})
    assert payload["tool_choice"] == {"type": "none"}


def test_one_text_that_ends_the_reply_may_be_given_by_itself():
    assert written(options={"stop": "END"})["stop_sequences"] == ["END"]


def test_an_option_that_is_none_is_one_that_was_not_given():
    options = dict.fromkeys(["max_tokens", "temperature", "stop", "tool_choice", "output_schema", "thinking"])
    assert written(options=options) == {"max_tokens": 8192, "messages": ASKED}


def test_an_option_that_the_api_does_not_have_is_reported():
    payload, losses = CODEC.encode_request(request(options={"seed": 7}))
    assert payload == {"max_tokens": 8192, "messages": ASKED}
    assert losses == (Loss(Lost.OPTION, "seed"),)


def test_what_ends_the_reply_is_a_text_or_a_list():
    with pytest.raises(ConfigError, match="stop is a text or a list of texts, not int"):
        CODEC.encode_request(Request([AgenticMessage.user("hi")], options={"stop": 5}))


def test_a_choice_of_tools_that_is_neither_a_text_nor_an_object_is_refused():
    with pytest.raises(ConfigError, match="tool_choice is a text or anthropic's own object, not int"):
        CODEC.encode_request(request(options={"tool_choice": 7}))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "expected a list of messages, found NoneType"),
        ({"messages": "hi"}, "expected a list of messages, found str"),
        ({"messages": [{"role": "user"}, {"role": "x"}]}, "message 1, role: unknown role 'x'"),
        ({"messages": [], "system": 7}, "system: expected a list, found int"),
        ({"messages": [], "system": [{"type": "text", "text": 1}]}, "system[0].text: expected a string, found int"),
        ({"messages": [], "tools": ["tides"]}, "tools[0]: expected an object, found str"),
        ({"messages": [], "output_config": []}, "output_config: expected an object, found list"),
    ],
)
def test_a_body_that_is_no_request_is_refused_with_the_place(body: dict[str, Any], said: str):
    with pytest.raises(InputError) as caught:
        CODEC.decode_request(body)
    assert str(caught.value).startswith(said)


def test_the_sdk_sends_what_was_encoded():
    made = AgenticMessage("assistant", [native for _, native in MADE.values()])
    given = AgenticMessage("user", [native for _, native in GIVEN.values()])
    options = {"stop": ["END"], "tool_choice": "required", "parallel_tool_calls": False, "output_schema": SCHEMA}
    asked = Request([AgenticMessage.user("hi"), made, given], "Be brief.", [ToolInfo("tides", "", SCHEMA)], options)
    payload = CODEC.encode_request(asked).payload
    reply = json.dumps(write_reply(AgenticMessage.assistant("hello"))).encode()
    with answering(anthropic, "Anthropic", reply, "application/json") as (client, requests):
        response = client.messages.create(model="claude", **payload)
    assert requests == [{"model": "claude", **payload}]
    assert CODEC.decode_messages([response])[0].content_blocks == AgenticMessage.assistant("hello").content_blocks
