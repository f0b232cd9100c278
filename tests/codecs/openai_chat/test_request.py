"""Requests of Chat Completions: the instruction, the tools and the settings."""

from typing import Any

import pytest

from suture.codecs import Lost, Request, get_codec
from suture.errors import InputError
from suture.messages import AgenticMessage, ToolInfo

CODEC = get_codec("openai-chat")
ASK = [AgenticMessage.user("hi")]
ASKED = [{"role": "user", "content": "hi"}]
SCHEMA = {"type": "object", "properties": {"port": {"type": "string"}}}
EMPTY = {"type": "object", "properties": {}}
GRAMMAR = {"type": "custom", "custom": {"name": "shell", "description": "Run.", "format": {"type": "text"}}}


def function(**fields: Any) -> dict[str, Any]:
    return {"type": "function", "function": fields}


TOOLS: dict[str, tuple[dict[str, Any], ToolInfo]] = {
    "a function": (
        function(name="tides", description="Look up.", parameters=SCHEMA),
        ToolInfo("tides", "Look up.", SCHEMA),
    ),
    "a strict function": (
        function(name="tides", parameters=SCHEMA, strict=True),
        ToolInfo("tides", "", SCHEMA, extra={"openai-chat": {"strict": True}}),
    ),
    "a function without parameters": (
        function(name="now"),
        ToolInfo("now", extra={"openai-chat": {"parameters": None}}),
    ),
    "a mark beside a function": (
        {**function(name="tides", parameters=SCHEMA), "cache_control": {"type": "ephemeral"}},
        ToolInfo("tides", "", SCHEMA, extra={"openai-chat": {"tool": {"cache_control": {"type": "ephemeral"}}}}),
    ),
    "a custom tool": (GRAMMAR, ToolInfo("shell", "Run.", extra={"openai-chat": GRAMMAR})),
    "a tool that nobody knows": (
        {"type": "web_search", "depth": 2},
        ToolInfo("web_search", extra={"openai-chat": {"type": "web_search", "depth": 2}}),
    ),
}
OPTIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "numbers": (
        {"max_tokens": 5, "temperature": 0, "top_p": 0.5, "seed": 7, "parallel_tool_calls": False},
        {"max_tokens": 5, "temperature": 0, "top_p": 0.5, "seed": 7, "parallel_tool_calls": False},
    ),
    "texts that end the reply": ({"stop": ["a", "b"]}, {"stop": ["a", "b"]}),
    "a choice in a word": ({"tool_choice": "required"}, {"tool_choice": "required"}),
    "a tool by its name": ({"tool_choice": "tides"}, {"tool_choice": function(name="tides")}),
    "a tool that is called like a choice": (
        {"tool_choice": function(name="auto")},
        {"tool_choice": function(name="auto")},
    ),
    "a choice of its own": (
        {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}},
        {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}},
    ),
    "the schema of the answer": (
        {"output_schema": SCHEMA},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}},
    ),
    "a strict schema": (
        {"output_schema": SCHEMA, "response_format": {"json_schema": {"name": "tide", "strict": True}}},
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "tide", "strict": True, "schema": SCHEMA},
            }
        },
    ),
    "another form of the answer": (
        {"response_format": {"type": "json_object"}},
        {"response_format": {"type": "json_object"}},
    ),
    "what only this provider has": (
        {"max_completion_tokens": 5, "model": "m", "stream": True, "stream_options": {"include_usage": True}},
        {"max_completion_tokens": 5, "model": "m", "stream": True, "stream_options": {"include_usage": True}},
    ),
}


@pytest.mark.parametrize(("payload", "tool"), TOOLS.values(), ids=TOOLS)
def test_a_tool_is_read_and_written_as_it_was(payload: dict[str, Any], tool: ToolInfo):
    assert CODEC.decode_request({"messages": ASKED, "tools": [payload]}).tools == (tool,)
    assert CODEC.encode_request(Request(ASK, tools=[tool])) == ({"messages": ASKED, "tools": [payload]}, ())


@pytest.mark.parametrize(("options", "payload"), OPTIONS.values(), ids=OPTIONS)
def test_settings_are_written_and_read_as_they_were(options: dict[str, Any], payload: dict[str, Any]):
    assert CODEC.encode_request(Request(ASK, options=options)) == ({"messages": ASKED, **payload}, ())
    assert CODEC.decode_request({"messages": ASKED, **payload}).options == options


def test_one_text_to_stop_at_is_written_as_a_list():
    assert CODEC.decode_request({"messages": ASKED, "stop": "a"}).options == {"stop": ["a"]}


def test_the_instruction_is_the_first_system_message():
    request = Request([AgenticMessage.system("Be kind."), *ASK], "Be brief.")
    payload, losses = CODEC.encode_request(request)
    assert [message["content"] for message in payload["messages"]] == ["Be brief.", "Be kind.", "hi"]
    assert [message["role"] for message in payload["messages"]] == ["system", "system", "user"]
    assert losses == ()


def test_system_messages_stay_messages():
    read = CODEC.decode_request({"messages": [{"role": "system", "content": "Be brief."}, *ASKED]})
    assert read == Request([AgenticMessage.system("Be brief."), *ASK], "", (), {})


def test_a_tool_without_parameters_takes_an_empty_object():
    payload = CODEC.encode_request(Request(ASK, tools=[ToolInfo("now", "The time.")])).payload
    assert payload["tools"] == [function(name="now", description="The time.", parameters=EMPTY)]


def test_a_tool_that_another_provider_runs_is_left_out_and_reported():
    search = ToolInfo("web_search", extra={"anthropic": {"type": "web_search_20250305", "name": "web_search"}})
    mine = ToolInfo("tides", "Look up.", SCHEMA, extra={"anthropic": {"cache_control": {}}})
    payload, losses = CODEC.encode_request(Request(ASK, tools=[search, mine]))
    assert payload["tools"] == [function(name="tides", description="Look up.", parameters=SCHEMA)]
    assert [(loss.name, loss.index, loss.path) for loss in losses] == [
        (Lost.TOOL, None, "tools[0]"),
        (Lost.TOOL, None, "tools[1]"),
    ]


def test_an_empty_list_of_tools_is_left_out():
    search = ToolInfo("web_search", extra={"anthropic": {"type": "web_search_20250305"}})
    assert CODEC.encode_request(Request(ASK, tools=[search])).payload == {"messages": ASKED}


def test_a_loss_in_a_message_is_told_by_the_place_of_the_message():
    request = Request([*ASK, AgenticMessage.tool_result("c", "f", "6.", is_error=True)], "Be brief.")
    assert [(loss.name, loss.index) for loss in CODEC.encode_request(request).losses] == [(Lost.ERROR, 1)]


@pytest.mark.parametrize(
    ("payload", "path"),
    [
        ({"messages": ASKED, "tools": {}}, "tools"),
        ({"messages": ASKED, "tools": [7]}, "tools[0]"),
        ({"messages": ASKED, "tools": [function(), {"type": "function"}]}, "tools[0]"),
        ({"messages": "hi"}, ""),
    ],
)
def test_what_is_no_request_is_refused(payload: dict[str, Any], path: str):
    with pytest.raises(InputError) as caught:
        CODEC.decode_request(payload)
    assert caught.value.path == path
