"""Requests to Gemini: what the system says, tools, settings."""

import copy
from typing import Any

import pytest
from google.genai import types

from suture.codecs import Loss, Lost, Request, get_codec
from suture.errors import ConfigError, InputError
from suture.messages import AgenticMessage, ToolInfo, UserInputText
from tests.codecs.recordings import Exchange, recordings
from tests.corpus import needs_corpus

CODEC = get_codec("gemini")
CONTENTS = [{"role": "user", "parts": [{"text": "hi"}]}]
HELLO = [AgenticMessage.user("hi")]
SCHEMA = {"type": "object", "properties": {"port": {"$ref": "#/$defs/port"}}, "$defs": {"port": {"type": "string"}}}
RECORDED = [(name, exchange) for name, exchanges in recordings("gemini") for exchange in exchanges]


def again(payload: dict[str, Any]) -> Any:
    """Return a request that was read and written again; nothing is lost on the way."""
    before = copy.deepcopy(payload)
    written, losses = CODEC.encode_request(CODEC.decode_request(payload))
    assert losses == ()
    assert payload == before
    return written


@needs_corpus
@pytest.mark.parametrize(("name", "exchange"), RECORDED)
def test_a_recorded_request_is_written_as_it_was(name: str, exchange: Exchange):
    assert name
    assert again(exchange.request) == exchange.request


REQUESTS: dict[str, dict[str, Any]] = {
    "one text of the system": {"systemInstruction": {"parts": [{"text": "Be brief."}]}},
    "two texts of the system": {"systemInstruction": {"parts": [{"text": "Be brief."}, {"text": "Be kind."}]}},
    "a text of the system with metadata": {
        "systemInstruction": {"parts": [{"text": "Be brief.", "partMetadata": {"a": 1}}]}
    },
    "functions": {
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "tides", "description": "Look up.", "parametersJsonSchema": SCHEMA},
                    {"name": "now"},
                    {"name": "port", "parameters": {"type": "OBJECT", "properties": {"name": {"type": "STRING"}}}},
                    {"name": "slow", "behavior": "NON_BLOCKING", "responseJsonSchema": {"type": "object"}},
                    {"name": "both", "parametersJsonSchema": SCHEMA, "parameters": {"type": "OBJECT"}},
                ]
            }
        ]
    },
    "functions between tools of Gemini's own": {
        "tools": [{"googleSearch": {}}, {"functionDeclarations": [{"name": "now"}]}, {"codeExecution": {}}]
    },
    "settings": {
        "generationConfig": {
            "maxOutputTokens": 80,
            "temperature": 0,
            "topP": 0.5,
            "topK": 3,
            "seed": 7,
            "stopSequences": ["END"],
            "responseModalities": ["TEXT", "IMAGE"],
            "thinkingConfig": {"thinkingBudget": -1, "includeThoughts": True},
        },
        "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
        "cachedContent": "cachedContents/a",
        "labels": {"team": "harbour"},
    },
    "only settings of its own": {"generationConfig": {"candidateCount": 1}},
    "empty settings": {"generationConfig": {}},
    "a schema of the answer": {
        "generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA}
    },
    "an older schema of the answer": {
        "generationConfig": {"responseMimeType": "application/json", "responseSchema": {"type": "STRING"}}
    },
    "JSON without a schema": {"generationConfig": {"responseMimeType": "application/json"}},
    "any tool": {"toolConfig": {"functionCallingConfig": {"mode": "AUTO"}}},
    "no tool": {"toolConfig": {"functionCallingConfig": {"mode": "NONE"}}},
    "some tool": {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}},
    "one tool": {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["now"]}}},
    "a tool called auto": {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["auto"]}}},
    "two tools": {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["a", "b"]}}},
    "checked calls": {"toolConfig": {"functionCallingConfig": {"mode": "VALIDATED"}}},
    "streamed arguments": {
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "streamFunctionCallArguments": True}}
    },
    "a tool and a place": {
        "toolConfig": {
            "functionCallingConfig": {"mode": "ANY"},
            "retrievalConfig": {"latLng": {"latitude": 51.1, "longitude": 1.3}},
        }
    },
    "the model's name": {"model": "models/gemini-2.5-flash", "stream": True},
}


@pytest.mark.parametrize("fields", REQUESTS.values(), ids=REQUESTS)
def test_a_request_is_written_as_it_was(fields: dict[str, Any]):
    assert again({"contents": CONTENTS, **fields}) == {"contents": CONTENTS, **fields}


OPTIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "settings": (
        {
            "max_tokens": 80,
            "temperature": 0,
            "top_p": 0.5,
            "top_k": 3,
            "presence_penalty": 0.5,
            "frequency_penalty": 1,
            "seed": 7,
            "stop": ["END"],
        },
        {
            "generationConfig": {
                "maxOutputTokens": 80,
                "temperature": 0,
                "topP": 0.5,
                "topK": 3,
                "presencePenalty": 0.5,
                "frequencyPenalty": 1,
                "seed": 7,
                "stopSequences": ["END"],
            }
        },
    ),
    "schema": (
        {"output_schema": SCHEMA},
        {"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA}},
    ),
    "any tool": ({"tool_choice": "auto"}, {"toolConfig": {"functionCallingConfig": {"mode": "AUTO"}}}),
    "no tool": ({"tool_choice": "none"}, {"toolConfig": {"functionCallingConfig": {"mode": "NONE"}}}),
    "some tool": ({"tool_choice": "required"}, {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}),
    "one tool": (
        {"tool_choice": "now"},
        {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["now"]}}},
    ),
    "its own beside ours": (
        {"temperature": 1, "generationConfig": {"candidateCount": 1}},
        {"generationConfig": {"temperature": 1, "candidateCount": 1}},
    ),
}


@pytest.mark.parametrize(("options", "fields"), OPTIONS.values(), ids=OPTIONS)
def test_options_are_written_under_geminis_names_and_read_back(options: dict[str, Any], fields: dict[str, Any]):
    payload, losses = CODEC.encode_request(Request(HELLO, options=options))
    assert payload == {"contents": CONTENTS, **fields}
    assert losses == ()
    assert CODEC.decode_request(payload).options == options


def test_one_text_that_ends_the_reply_may_be_given_alone():
    payload = CODEC.encode_request(Request(HELLO, options={"stop": "END"})).payload
    assert payload["generationConfig"] == {"stopSequences": ["END"]}


def test_an_option_that_is_none_is_not_given():
    assert CODEC.encode_request(Request(HELLO, options={"temperature": None, "stop": None})) == (
        {"contents": CONTENTS},
        (),
    )


def test_the_choice_of_a_tool_may_be_geminis_own_object():
    own = {"mode": "ANY", "allowedFunctionNames": ["a", "b"]}
    payload = CODEC.encode_request(Request(HELLO, options={"tool_choice": own})).payload
    assert payload["toolConfig"] == {"functionCallingConfig": own}


def test_a_choice_that_is_no_name_is_refused():
    with pytest.raises(ConfigError, match="tool_choice is a text"):
        CODEC.encode_request(Request(HELLO, options={"tool_choice": 7}))


@pytest.mark.parametrize("parallel", [True, False])
def test_whether_several_calls_may_be_made_is_nothing_that_gemini_can_be_told(parallel: bool):
    payload, losses = CODEC.encode_request(Request(HELLO, options={"parallel_tool_calls": parallel}))
    assert payload == {"contents": CONTENTS}
    assert losses == (Loss(Lost.OPTION, "parallel_tool_calls"),)


def test_an_instruction_is_read_from_one_plain_text():
    request = CODEC.decode_request({"contents": [], "system_instruction": "Be brief."})
    assert (request.instruction, request.messages) == ("Be brief.", [])


def test_more_than_one_plain_text_of_the_system_is_a_message():
    texts = {"parts": [{"text": "Be brief."}, {"text": "Be kind."}]}
    request = CODEC.decode_request({"contents": [], "systemInstruction": texts})
    assert request.instruction == ""
    assert request.messages == [AgenticMessage("system", [UserInputText("Be brief."), UserInputText("Be kind.")])]


def test_a_tool_is_declared_with_its_schema():
    tools = [ToolInfo("tides", "Look up.", SCHEMA), ToolInfo("now")]
    payload = CODEC.encode_request(Request(HELLO, tools=tools)).payload
    declared = [{"name": "tides", "description": "Look up.", "parametersJsonSchema": SCHEMA}, {"name": "now"}]
    assert payload["tools"] == [{"functionDeclarations": declared}]
    assert CODEC.decode_request(payload).tools == tuple(tools)


def test_functions_in_several_lists_are_written_in_one():
    tools = [{"functionDeclarations": [{"name": "a"}], "googleSearch": {}}, {"functionDeclarations": [{"name": "b"}]}]
    written = again({"contents": CONTENTS, "tools": tools})["tools"]
    assert written == [{"functionDeclarations": [{"name": "a"}, {"name": "b"}]}, {"googleSearch": {}}]


def test_names_in_snake_case_are_read_too():
    payload = {
        "contents": CONTENTS,
        "generation_config": {"max_output_tokens": 80, "response_modalities": ["TEXT"]},
        "tool_config": {"function_calling_config": {"mode": "ANY", "allowed_function_names": ["now"]}},
        "tools": [{"function_declarations": [{"name": "now", "parameters_json_schema": SCHEMA}]}],
    }
    assert again(payload) == {
        "contents": CONTENTS,
        "generationConfig": {"maxOutputTokens": 80, "responseModalities": ["TEXT"]},
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["now"]}},
        "tools": [{"functionDeclarations": [{"name": "now", "parametersJsonSchema": SCHEMA}]}],
    }


def test_what_others_say_of_a_tool_is_reported():
    tool = ToolInfo("tides", "Look up.", SCHEMA, {"anthropic": {"cache_control": {}}})
    losses = CODEC.encode_request(Request(HELLO, tools=[tool])).losses
    assert losses == (Loss(Lost.TOOL, "anthropic cache_control of tides", None, "tools[0]"),)


def test_a_tool_that_another_provider_runs_is_not_declared():
    tool = ToolInfo("web_search", extra={"anthropic": {"type": "web_search_20260318", "name": "web_search"}})
    payload, losses = CODEC.encode_request(Request(HELLO, tools=[tool]))
    assert payload == {"contents": CONTENTS}
    assert losses == (Loss(Lost.TOOL, "web_search, a tool that another provider runs", None, "tools[0]"),)


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ({}, "expected a list of messages"),
        ({"contents": "hi"}, "expected a list of messages"),
        ({"contents": [], "systemInstruction": 7}, "systemInstruction: expected an object"),
        ({"contents": [], "systemInstruction": {"parts": 7}}, "systemInstruction: expected a list"),
        ({"contents": [], "tools": {}}, "tools: expected a list"),
        ({"contents": [], "tools": [{"functionDeclarations": 7}]}, r"tools\[0\].functionDeclarations: expected a list"),
        ({"contents": [], "tools": [{"functionDeclarations": [{"name": 7}]}]}, "name: expected a string"),
    ],
)
def test_what_is_no_request_is_refused(payload: dict[str, Any], said: str):
    with pytest.raises(InputError, match=said):
        CODEC.decode_request(payload)


def test_the_sdk_knows_every_field_that_is_written():
    options = {name: value for given, _ in OPTIONS.values() for name, value in given.items()}
    tools = [
        ToolInfo("tides", "Look up.", SCHEMA),
        ToolInfo("googleSearch", extra={"gemini": {"tool": {"googleSearch": {}}}}),
    ]
    payload = CODEC.encode_request(Request(HELLO, "Be brief.", tools, options)).payload
    for content in payload["contents"]:
        types.Content.model_validate(content)
    types.Content.model_validate(payload["systemInstruction"])
    for tool in payload["tools"]:
        types.Tool.model_validate(tool)
    types.ToolConfig.model_validate(payload["toolConfig"])
    types.GenerateContentConfig.model_validate(payload["generationConfig"])


CITY = {
    "type": "object",
    "properties": {
        "city": {"$ref": "#/$defs/City", "default": {"$ref": "a value"}, "description": "Where.", "title": "City"},
        "$ref": {"type": "string", "default": "a field of this name"},
        "more": {"type": "array", "items": {"$ref": "#/$defs/City", "title": "City", "$comment": "kept"}},
    },
    "$defs": {"City": {"type": "object", "properties": {"near": {"$ref": "#/$defs/City", "title": "Near"}}}},
}
BARE = {"type": "object", "properties": {"near": {"$ref": "#/$defs/City"}}}


def test_nothing_that_gemini_refuses_stands_beside_a_reference():
    before = copy.deepcopy(CITY)
    request = Request([], "", (ToolInfo("go", "", CITY),), {"output_schema": CITY})
    body = get_codec("gemini").encode_request(request).payload
    more = {"type": "array", "items": {"$ref": "#/$defs/City", "$comment": "kept"}}
    own = CITY["properties"]["$ref"]
    city: dict[str, Any] = {"$ref": "#/$defs/City"}
    answer = body["generationConfig"]["responseJsonSchema"]
    assert answer == {**CITY, "properties": {"city": city, "$ref": own, "more": more}, "$defs": {"City": BARE}}
    tool = body["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"]
    city |= {"default": {"$ref": "a value"}, "description": "Where."}
    assert tool == {**CITY, "properties": {"city": city, "$ref": own, "more": more}, "$defs": {"City": BARE}}
    assert before == CITY
