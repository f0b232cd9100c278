"""Requests both ways: the system's words, tools and options; boto3's own validation has nothing against them."""

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import suture
from suture.codecs import Loss, Lost, Request, decode, get_codec
from suture.errors import InputError
from suture.messages import AgenticMessage, FunctionToolCall, ToolInfo, UserInputImage, UserInputText
from tests.codecs.bedrock.pieces import BLOCKS, DATA, WIRE, opaque
from tests.codecs.bedrock.sdk import complaints
from tests.histories import Step, write
from tests.repair.test_properties import histories

codec = get_codec(WIRE)
ASK = {"role": "user", "content": [{"text": "hi"}]}
ASKED = AgenticMessage.user("hi")
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
SPEC = {"toolSpec": {"name": "f", "description": "F.", "inputSchema": {"json": SCHEMA}}}
TOOL = ToolInfo("f", "F.", SCHEMA)


def encode(*messages: AgenticMessage, **parts: Any) -> tuple[dict[str, Any], tuple[Loss, ...]]:
    return codec.encode_request(Request(messages or (ASKED,), **parts))


# name: (what the payload has beside its messages, what the request has)
REQUESTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing more": ({}, {}),
    "instruction": ({"system": [{"text": "Be brief."}]}, {"instruction": "Be brief."}),
    "tool": ({"toolConfig": {"tools": [SPEC]}}, {"tools": (TOOL,)}),
    "tool with its own fields": (
        {"toolConfig": {"tools": [{"toolSpec": {**SPEC["toolSpec"], "strict": True}}]}},
        {"tools": (ToolInfo("f", "F.", SCHEMA, {WIRE: {"strict": True}}),)},
    ),
    "tool without a description": (
        {"toolConfig": {"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": SCHEMA}}}]}},
        {"tools": (ToolInfo("f", "", SCHEMA),)},
    ),
    "tools that are no functions": (
        {"toolConfig": {"tools": [{"systemTool": {"name": "nova_grounding"}}, {"cachePoint": {"type": "default"}}]}},
        {
            "tools": (
                ToolInfo("nova_grounding", extra={WIRE: {"systemTool": {"name": "nova_grounding"}}}),
                ToolInfo("cachePoint", extra={WIRE: {"cachePoint": {"type": "default"}}}),
            )
        },
    ),
    "sampling": (
        {"inferenceConfig": {"maxTokens": 80, "temperature": 0.5, "topP": 0.9, "stopSequences": ["END"]}},
        {"options": {"max_tokens": 80, "temperature": 0.5, "top_p": 0.9, "stop": ["END"]}},
    ),
    "sampling with a new field": (
        {"inferenceConfig": {"maxTokens": 80, "topZ": 1}},
        {"options": {"max_tokens": 80, "inferenceConfig": {"topZ": 1}}},
    ),
    "any tool": (
        {"toolConfig": {"tools": [SPEC], "toolChoice": {"any": {}}}},
        {"tools": (TOOL,), "options": {"tool_choice": "required"}},
    ),
    "the model's choice": (
        {"toolConfig": {"tools": [SPEC], "toolChoice": {"auto": {}}}},
        {"tools": (TOOL,), "options": {"tool_choice": "auto"}},
    ),
    "this tool": (
        {"toolConfig": {"tools": [SPEC], "toolChoice": {"tool": {"name": "f"}}}},
        {"tools": (TOOL,), "options": {"tool_choice": "f"}},
    ),
    "a tool that is called like a choice": (
        {"toolConfig": {"tools": [SPEC], "toolChoice": {"tool": {"name": "none"}}}},
        {"tools": (TOOL,), "options": {"toolConfig": {"toolChoice": {"tool": {"name": "none"}}}}},
    ),
    "schema of the answer": (
        {
            "outputConfig": {
                "textFormat": {
                    "type": "json_schema",
                    "structure": {"jsonSchema": {"name": "answer", "schema": '{"type":"object"}'}},
                },
                "effort": "low",
            }
        },
        {"options": {"output_schema": {"type": "object"}, "outputConfig": {"effort": "low"}}},
    ),
    "schema that is told about": (
        {
            "outputConfig": {
                "textFormat": {
                    "type": "json_schema",
                    "structure": {"jsonSchema": {"name": "x", "description": "X.", "schema": "{}"}},
                }
            }
        },
        {
            "options": {
                "output_schema": {},
                "outputConfig": {"textFormat": {"structure": {"jsonSchema": {"name": "x", "description": "X."}}}},
            }
        },
    ),
    "what only Converse has": (
        {
            "modelId": "m.m",
            "additionalModelRequestFields": {"top_k": 5},
            "guardrailConfig": {"guardrailIdentifier": "g", "guardrailVersion": "1"},
        },
        {
            "options": {
                "modelId": "m.m",
                "additionalModelRequestFields": {"top_k": 5},
                "guardrailConfig": {"guardrailIdentifier": "g", "guardrailVersion": "1"},
            }
        },
    ),
}


@pytest.mark.parametrize(("payload", "parts"), REQUESTS.values(), ids=REQUESTS)
def test_a_request_is_read_under_our_names_and_written_as_it_was(payload: dict[str, Any], parts: dict[str, Any]):
    body = {"messages": [ASK], **payload}
    request = codec.decode_request(body)
    assert request == Request([ASKED], **parts)
    assert codec.encode_request(request) == (body, ())


@pytest.mark.parametrize("payload", [payload for payload, _ in REQUESTS.values()], ids=REQUESTS)
def test_boto3_accepts_what_is_written(payload: dict[str, Any]):
    written = codec.encode_request(codec.decode_request({"messages": [ASK], **payload})).payload
    unknown = "topZ" in written.get("inferenceConfig", {})
    assert bool(complaints(written)) == unknown


REFUSED = {"call with a new field", "block of a kind that is still to come", "image that failed"}


@pytest.mark.parametrize("name", BLOCKS)
def test_boto3_accepts_each_block_that_it_knows(name: str):
    role, _, native = BLOCKS[name]
    written = encode(ASKED, AgenticMessage(cast("Any", role), (native,)))[0]["messages"]
    assert bool(complaints({"messages": written})) == (name in REFUSED)


# The system's words


def test_the_instruction_comes_before_the_system_messages_at_the_beginning():
    system = AgenticMessage("system", (UserInputText("Be kind."), opaque({"cachePoint": {"type": "default"}})))
    payload, losses = encode(AgenticMessage.system("Be true."), system, ASKED, instruction="Be brief.")
    assert payload == {
        "system": [
            {"text": "Be brief."},
            {"text": "Be true."},
            {"text": "Be kind."},
            {"cachePoint": {"type": "default"}},
        ],
        "messages": [ASK],
    }
    assert losses == ()
    assert not complaints(payload)


def test_several_blocks_of_the_system_are_one_message_and_come_back():
    blocks = [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}]
    request = codec.decode_request({"system": blocks, "messages": [ASK]})
    system = AgenticMessage("system", (UserInputText("Be brief."), opaque({"cachePoint": {"type": "default"}})))
    assert request == Request([system, ASKED])
    assert codec.encode_request(request) == ({"system": blocks, "messages": [ASK]}, ())


def test_media_in_a_system_message_are_told_in_words():
    image = UserInputImage(base64_data=DATA, mime_type="image/png")
    payload, losses = encode(AgenticMessage("system", (UserInputText("Look."), image)), ASKED)
    assert payload["system"] == [{"text": "Look."}, {"text": "(image/png)"}]
    assert losses == (Loss(Lost.MEDIA, "image (image/png)", 0, "content_blocks[1]"),)


def test_losses_are_counted_from_the_first_message_of_the_request():
    payload, losses = encode(AgenticMessage.system("Be true."), ASKED, AgenticMessage.system("Now lie."))
    assert payload["messages"] == [ASK, {"role": "user", "content": [{"text": "Now lie."}]}]
    assert [(loss.name, loss.index) for loss in losses] == [(Lost.SYSTEM, 2)]


# Tools and options


def test_a_tool_without_parameters_takes_an_empty_object():
    payload, _ = encode(tools=[ToolInfo("now")])
    spec = {"name": "now", "inputSchema": {"json": {"type": "object", "properties": {}}}}
    assert payload["toolConfig"] == {"tools": [{"toolSpec": spec}]}
    assert not complaints(payload)


def test_a_tool_that_another_provider_runs_is_left_out_and_named():
    tool = ToolInfo("web_search", extra={"anthropic": {"type": "web_search_20250305"}})
    payload, losses = encode(tools=[tool, TOOL])
    assert payload["toolConfig"] == {"tools": [SPEC]}
    assert losses == (Loss(Lost.TOOL, "web_search, a tool that another provider runs", None, "tools[0]"),)


def test_fields_of_another_provider_on_a_tool_are_named():
    _, losses = encode(tools=[ToolInfo("f", "F.", SCHEMA, {"anthropic": {"cache_control": {}}, "mine": 1})])
    assert losses == (
        Loss(Lost.TOOL, "anthropic cache_control of f", None, "tools[0]"),
        Loss(Lost.TOOL, "extra 'mine' of f", None, "tools[0]"),
    )


def test_tools_that_were_called_are_named_where_none_are_left():
    called = AgenticMessage.assistant([FunctionToolCall(call_id, "f", "{}") for call_id in ("a", "b")])
    results = [AgenticMessage.tool_result(call_id, "f", "1") for call_id in ("a", "b")]
    payload, losses = encode(ASKED, called, *results)
    [tool] = payload["toolConfig"]["tools"]
    assert tool["toolSpec"]["name"] == "f"
    assert losses == ()
    assert not complaints(payload)
    assert encode(ASKED, called, *results, tools=[ToolInfo("g", "G.", SCHEMA)])[0]["toolConfig"]["tools"] == [
        {"toolSpec": {**SPEC["toolSpec"], "name": "g", "description": "G."}}
    ]


# name: (options, what the payload has of them, what is reported)
OPTIONS: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "not known": (
        {"top_k": 5, "presence_penalty": 1, "frequency_penalty": 1, "seed": 1},
        {},
        ["top_k", "presence_penalty", "frequency_penalty", "seed"],
    ),
    "no tool": (
        {"tool_choice": "none"},
        {"toolConfig": {"tools": [SPEC]}},
        ["tool_choice none; leave the tools out instead"],
    ),
    "one call at a time": ({"parallel_tool_calls": False}, {}, ["parallel_tool_calls"]),
    "several calls at a time": ({"parallel_tool_calls": True}, {}, []),
    "one text that ends it": ({"stop": "END"}, {"inferenceConfig": {"stopSequences": ["END"]}}, []),
    "not given": ({"temperature": None, "seed": None}, {}, []),
    "merged": (
        {"max_tokens": 8, "inferenceConfig": {"temperature": 0}},
        {"inferenceConfig": {"maxTokens": 8, "temperature": 0}},
        [],
    ),
}


@pytest.mark.parametrize(("options", "written", "reported"), OPTIONS.values(), ids=OPTIONS)
def test_an_option_is_written_or_named(options: dict[str, Any], written: dict[str, Any], reported: list[str]):
    payload, losses = encode(tools=[TOOL], options=options)
    assert payload == {"messages": [ASK], "toolConfig": {"tools": [SPEC]}, **written}
    assert losses == tuple(Loss(Lost.OPTION, what) for what in reported)
    assert not complaints(payload)


@pytest.mark.parametrize(("choice", "reported"), [("auto", 0), ("none", 0), ("required", 1), ("f", 1)])
def test_a_choice_without_tools_is_named_where_it_meant_something(choice: str, reported: int):
    payload, losses = encode(options={"tool_choice": choice})
    assert payload == {"messages": [ASK]}
    assert [loss.name for loss in losses] == [Lost.OPTION] * reported


@pytest.mark.parametrize(
    "payload",
    [
        {"messages": {}},
        {"messages": [ASK], "system": "Be brief."},
        {"messages": [ASK], "toolConfig": []},
        {"messages": [ASK], "toolConfig": {"tools": {}}},
        {"messages": [ASK], "toolConfig": {"tools": [7]}},
        {"messages": [ASK], "inferenceConfig": 7},
    ],
)
def test_what_is_no_request_is_refused(payload: dict[str, Any]):
    with pytest.raises(InputError, match=r"expected an? (list|object)"):
        codec.decode_request(payload)


def test_nothing_that_was_passed_in_is_changed():
    options = {"max_tokens": 8, "inferenceConfig": {"temperature": 0}, "toolConfig": {"toolChoice": {"any": {}}}}
    request = Request([ASKED, AgenticMessage("user", (UserInputText("ho"),))], "Be brief.", [TOOL], options)
    first = codec.encode_request(request)
    assert codec.encode_request(request) == first
    assert options == {
        "max_tokens": 8,
        "inferenceConfig": {"temperature": 0},
        "toolConfig": {"toolChoice": {"any": {}}},
    }
    body = {"messages": [ASK], "toolConfig": {"tools": [SPEC]}, "inferenceConfig": {"maxTokens": 8}}
    codec.decode_request(body)
    assert body == {"messages": [ASK], "toolConfig": {"tools": [SPEC]}, "inferenceConfig": {"maxTokens": 8}}


# Acceptable once it is repaired


@pytest.mark.parametrize("wire", ["message", "agentic"])
@given(history=histories, system=st.booleans())
def test_any_history_is_acceptable_once_its_payload_is_repaired(wire: str, history: list[Step], system: bool):
    steps = [("system", "Be brief."), *history] if system else history
    payload = codec.encode_request(Request(decode(write(wire, steps), wire))).payload
    fixed = suture.repair(payload["messages"], wire=WIRE)
    left = suture.check(fixed.messages, wire=WIRE)
    assert {finding.problem for finding in left.findings} <= {finding.problem for finding in fixed.unresolved}, left
    assert not fixed.messages or not complaints({**payload, "messages": fixed.messages})
