"""LangChain's messages as the engines see them, change them and make them."""

import copy
from typing import Any

import pytest
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

import suture
from suture.errors import InputError
from suture.integrations.langchain.wire import WIRE
from suture.messages import ImagePart, TextPart
from suture.repair.texts import note_text
from suture.wires import MARK, Call, CallEdit, RawPart, ResultEdit
from suture.wires.values import Demands
from tests.guests.langchain.recording import asks, call
from tests.guests.langchain.wire_messages import FORMS, turn

USE = {"type": "tool_use", "id": "a", "name": "f", "input": {"q": 1}}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}
KEY = SecretStr("none")


def cut(call_id: str | None, name: str = "f", args: str = '{"q": ') -> dict[str, Any]:
    return {"id": call_id, "name": name, "args": args, "error": None, "type": "invalid_tool_call"}


def repaired(messages: list[Any], profile: str = "anthropic") -> list[Any]:
    before = copy.deepcopy(messages)
    fixed = suture.repair(messages, profile=profile)
    assert messages == before
    return list(fixed.messages)


def sent_to_anthropic(messages: list[Any]) -> list[Any]:
    model = ChatAnthropic(model_name="claude", api_key=KEY, timeout=None, stop=None)
    return [block for each in model._get_request_payload(messages)["messages"] for block in each["content"]]


def sent_to_openai(messages: list[Any]) -> list[Any]:
    return ChatOpenAI(model="gpt", api_key=KEY, use_responses_api=False)._get_request_payload(messages)["messages"]


# What is seen


def test_a_call_that_stands_in_several_places_is_one():
    raw = {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"q": 1}'}}
    message = AIMessage([USE], tool_calls=[call("a", "f", q=1)], additional_kwargs={"tool_calls": [raw]})
    assert WIRE.view(message).calls == (Call("a", "f", {"q": 1}),)


@pytest.mark.parametrize("form", FORMS)
def test_a_call_is_seen_wherever_it_stands(form: str):
    assert WIRE.view(turn([("a", "f", '{"q": 1}')], form)).calls == (Call("a", "f", {"q": 1}),)


def test_two_calls_of_one_id_are_two():
    message = AIMessage([USE, USE], tool_calls=[call("a", "f", q=1), call("a", "f", q=1)])
    assert len(WIRE.view(message).calls) == 2


def test_a_call_and_an_invalid_one_of_the_same_id_are_one_unless_they_call_different_tools():
    twin = AIMessage("", tool_calls=[call("a", "f")], invalid_tool_calls=[cut("a", "f")])
    other = AIMessage("", tool_calls=[call("a", "f")], invalid_tool_calls=[cut("a", "g")])
    assert [len(WIRE.view(message).calls) for message in (twin, other)] == [1, 2]
    assert repaired([twin])[0].invalid_tool_calls == []


def test_an_id_that_is_none_counts_as_empty_and_becomes_one():
    messages = repaired([AIMessage("", tool_calls=[call(None, "f")]), HumanMessage("go")])
    assert messages[0].tool_calls[0]["id"] == messages[1].tool_call_id != ""


def test_what_the_provider_runs_itself_is_no_call():
    blocks = [
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        {"type": "web_search_call", "id": "w", "status": "completed"},
        {"type": "server_tool_call", "id": "x", "name": "web_search", "args": {}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
    ]
    messages = [HumanMessage("hi"), AIMessage(list(blocks)), HumanMessage("go")]
    assert suture.repair(messages).messages is messages


def test_stale_raw_calls_beside_others_are_no_calls():
    raw = {"id": "old", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = asks(call("a", "f")).model_copy(update={"additional_kwargs": {"tool_calls": [raw], "function_call": raw}})
    assert WIRE.view(message).calls == (Call("a", "f", {}),)


def test_roles_are_those_of_the_classes_and_of_chat_messages():
    messages = [HumanMessage("h"), SystemMessage("s"), AIMessage("a"), ChatMessage(content="c", role="assistant")]
    messages += [ChatMessage(content="c", role="developer"), ChatMessage(content="c", role="critic")]
    assert [WIRE.view(message).role for message in messages] == [
        "user",
        "system",
        "assistant",
        "assistant",
        "system",
        "user",
    ]


def test_a_result_tells_that_it_failed_and_whether_it_is_a_placeholder():
    made = ToolMessage("no", tool_call_id="a", name="f", status="error", response_metadata={MARK: "unknown"})
    result = WIRE.view(made).results[0]
    assert (result.id, result.name, result.failed, result.marked) == ("a", "f", True, True)


def test_a_message_that_removes_others_is_refused_with_the_way_out():
    with pytest.raises(InputError, match="apply it first, with add_messages"):
        suture.repair([HumanMessage("hi"), RemoveMessage(id="1")])


def test_what_langchain_does_not_take_for_a_message_is_refused():
    for wrong in (42, {"role": "owl", "content": "hu"}, ("a", "b", "c")):
        with pytest.raises(InputError, match=r"LangChain|role|expected"):
            WIRE.view(wrong, 0)


def test_dicts_and_pairs_are_read_and_stay_the_very_objects():
    raw = {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": '{"q"'}}]}
    messages = [
        ("user", "hi"),
        raw,
        {"type": "tool", "content": "1", "tool_call_id": "a"},
        {"type": "human", "content": "x"},
    ]
    assert [WIRE.view(message).role for message in messages] == ["user", "assistant", "tool", "user"]
    assert WIRE.view(raw).calls == (Call("a", "f", '{"q"'),)
    dicts = messages[1:]
    assert suture.repair(dicts, wire="langchain", profile="pairing").messages is dicts
    answered = suture.repair([raw, HumanMessage("go")], profile="pairing").messages
    assert answered[0] is raw
    assert isinstance(answered[1], ToolMessage)


def test_thought_that_is_signed_or_encrypted_makes_a_message_signed():
    nested = {"type": "reasoning_content", "reasoning_content": {"text": "hm", "signature": "s"}}
    hidden = {"type": "reasoning", "id": "rs_1", "encrypted_content": "e", "summary": []}
    extras = {"type": "text", "text": "hi", "extras": {"signature": "s"}}
    for block in (THOUGHT, {"type": "redacted_thinking", "data": "x"}, nested, hidden, extras):
        assert WIRE.view(AIMessage([block])).signed
    gemini = {"__gemini_function_call_thought_signatures__": {"a": "s"}}
    assert WIRE.view(AIMessage("", additional_kwargs=gemini)).signed
    assert not WIRE.view(AIMessage([{"type": "text", "text": "hi"}])).signed


# What is changed


def test_a_new_id_is_written_wherever_the_old_one_stood():
    raw = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    extra = {"tool_calls": [raw], "__openai_function_call_ids__": {"a": "fc_1"}}
    calls: Any = [call("a", "f", q=1)]
    chunk = AIMessageChunk(content=[dict(USE)], tool_calls=calls, additional_kwargs=extra, id="m")
    before = copy.deepcopy(chunk)
    made = WIRE.edit(chunk, {0: CallEdit(id="b")}, {})
    assert chunk == before
    assert "'a'" not in str(made.model_dump())
    assert made.tool_calls[0]["id"] == made.content[0]["id"] == made.tool_call_chunks[0]["id"] == "b"
    assert made.additional_kwargs["__openai_function_call_ids__"] == {"b": "fc_1"}
    assert made.id == "m"


def test_ids_that_repeat_are_told_apart_on_both_sides():
    calls = asks(call("a", "f"), call("a", "g"))
    messages = repaired([calls, ToolMessage("1", tool_call_id="a"), ToolMessage("2", tool_call_id="a")])
    given = [each["id"] for each in messages[0].tool_calls]
    assert len(set(given)) == 2
    assert [(each.tool_call_id, each.content) for each in messages[1:]] == list(zip(given, ["1", "2"], strict=True))


def test_an_id_inside_the_content_of_a_tool_message_follows():
    block = {"type": "tool_result", "tool_use_id": "fn:0", "content": "42"}
    messages = repaired([asks(call("fn:0", "f")), ToolMessage([block], tool_call_id="fn:0")])
    assert messages[1].content[0]["tool_use_id"] == messages[1].tool_call_id == messages[0].tool_calls[0]["id"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("arguments", ['{"q": 1}', '{"q": '])
def test_both_adapters_send_call_and_result_wherever_the_call_stood(form: str, arguments: str):
    messages = [HumanMessage("hi"), turn([("a", "f", arguments)], form), HumanMessage("go")]
    sent = sent_to_anthropic(repaired(messages))
    value = {"q": 1} if arguments.endswith("}") else {}
    uses = [block for block in sent if isinstance(block, dict) and block.get("type") == "tool_use"]
    assert [(use["id"], use["name"], use["input"]) for use in uses] == [("a", "f", value)]
    assert [block["tool_use_id"] for block in sent if isinstance(block, dict) and "tool_use_id" in block] == ["a"]
    user, assistant, tool, last = sent_to_openai(repaired(messages, "openai-chat"))
    assert [each["id"] for each in assistant["tool_calls"]] == [tool["tool_call_id"]] == ["a"]
    assert (user["role"], tool["role"], last["role"]) == ("user", "tool", "user")


def test_calls_of_a_dict_are_sent_even_if_their_arguments_were_cut_off():
    written = [("a", '{"q": 1}'), ("b", '{"q": '), ("c", "[1]")]
    raw = [{"id": key, "type": "function", "function": {"name": "f", "arguments": text}} for key, text in written]
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": None, "tool_calls": raw}]
    fixed = list(suture.repair(messages, wire="langchain", profile="anthropic").messages)
    sent = [block for block in sent_to_anthropic(fixed) if isinstance(block, dict)]
    uses = [(block["id"], block["input"]) for block in sent if block["type"] == "tool_use"]
    assert uses == [("a", {"q": 1}), ("b", {}), ("c", {})]
    assert [block["tool_use_id"] for block in sent if block["type"] == "tool_result"] == ["a", "b", "c"]


def test_an_invalid_call_is_made_a_valid_one_and_its_block_put_right():
    block = {"type": "tool_use", "id": "a", "name": "f", "input": {}, "partial_json": '{"q": '}
    made = repaired([AIMessage([block], invalid_tool_calls=[cut("a")], id="m"), HumanMessage("go")])[0]
    assert made.tool_calls == [{"id": "a", "name": "f", "args": {}, "type": "tool_call"}]
    assert made.invalid_tool_calls == []
    assert made.content == [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]
    assert made.id == "m"


def test_in_a_signed_message_only_ids_change():
    message = AIMessage([THOUGHT], invalid_tool_calls=[cut("fn:0")])
    fixed = suture.repair([message, HumanMessage("go")], profile="anthropic")
    made: Any = fixed.messages[0]
    assert made.invalid_tool_calls[0]["id"] != "fn:0"
    assert made.invalid_tool_calls[0]["args"] == '{"q": '
    assert [finding.problem for finding in fixed.unresolved] == ["bad-arguments"]


# What is made


def test_a_placeholder_is_an_error_with_a_mark_that_no_adapter_sends():
    messages = repaired([HumanMessage("hi"), asks(call("a", "f")), HumanMessage("go")])
    made = messages[2]
    assert (made.name, made.tool_call_id, made.status) == ("f", "a", "error")
    assert made.response_metadata == {MARK: "interrupted"}
    assert MARK not in str(sent_to_openai(messages)) + str(sent_to_anthropic(messages))


def test_an_orphan_is_kept_as_what_a_user_says():
    messages = repaired([HumanMessage("hi"), ToolMessage("42", tool_call_id="x", name="f")])
    assert isinstance(messages[1], HumanMessage)
    assert "42" in messages[1].text


def test_a_real_result_takes_the_place_of_a_marked_one():
    first = repaired([asks(call("a", "f")), HumanMessage("go")])
    messages = repaired([*first, ToolMessage("42", tool_call_id="a")])
    assert [message.text for message in messages] == ["", "42", "go"]


def test_the_older_form_is_answered_in_its_own_form():
    old = AIMessage("", additional_kwargs={"function_call": {"name": "f", "arguments": "{}"}})
    messages = repaired([HumanMessage("hi"), old, HumanMessage("go")], "openai-chat")
    assert isinstance(messages[2], FunctionMessage)
    whole = [old, FunctionMessage(content="42", name="f"), HumanMessage("go")]
    assert suture.repair(whole, profile="openai-chat").messages is whole


def test_a_custom_tool_is_answered_in_its_own_form_and_a_screenshot_not_at_all():
    custom = {"type": "custom_tool_call", "call_id": "a", "name": "f", "input": "x", "id": "ct_1"}
    message = AIMessage([custom], tool_calls=[call("a", "f", __arg1="x")])
    made = repaired([message, HumanMessage("go")], "openai-responses")[1]
    assert made.content[0]["type"] == "custom_tool_call_output"
    text, whole = WIRE.result_text(WIRE.view(made).results[0])
    assert whole
    assert "was canceled" in text
    edited = WIRE.edit(made, {}, {0: ResultEdit(text="42")})
    assert edited.content == [{"type": "custom_tool_call_output", "output": "42"}]
    screen = AIMessage([{"type": "computer_call", "call_id": "c", "id": "cu_1", "action": {"type": "click"}}])
    fixed = suture.repair([screen, HumanMessage("go")], profile="openai-responses")
    assert not fixed.changed
    assert [finding.problem for finding in fixed.unresolved] == ["dangling"]
    shown = [screen, ToolMessage("shot", tool_call_id="c"), HumanMessage("go")]
    assert suture.repair(shown, profile="openai-responses").messages is shown


@pytest.mark.parametrize(
    "broken",
    [
        HumanMessage("caf\ud83d"),
        HumanMessage([{"type": "text", "text": "caf\ud83d"}]),
        AIMessage("caf\ud83d"),
        asks({**call("a", "f"), "args": {"q": ["caf\ud83d"]}}),
        ToolMessage("caf\ud83d", tool_call_id="a", artifact=object()),
    ],
    ids=lambda message: message.type,
)
def test_half_a_surrogate_pair_is_replaced_wherever_it_is_sent(broken: BaseMessage):
    before: list[BaseMessage] = [HumanMessage("hi"), asks(call("a", "f"))] if broken.type == "tool" else []
    after = [ToolMessage("42", tool_call_id="a")] if getattr(broken, "tool_calls", ()) else []
    fixed = suture.repair([*before, broken, *after], profile="openai-chat")
    assert "caf\ufffd" in str(fixed.messages[len(before)])
    assert "\ud83d" not in str(fixed.messages)
    assert [finding.problem for finding in fixed.report.findings] == ["lone-surrogate"]
    assert suture.repair(fixed.messages, profile="openai-chat").messages is fixed.messages


# Results that stand as blocks in what a user says


def told(call_id: str, text: str = "42") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": text}


def test_results_that_stand_as_blocks_are_results():
    both: list[BaseMessage] = [asks(call("a", "f"), call("b", "f")), HumanMessage([told("a"), told("b")])]
    assert suture.repair(both).messages is both
    loose: list[BaseMessage] = [asks(call("a", "f")), HumanMessage([told("a"), {"type": "text", "text": "go"}])]
    assert suture.repair(loose).messages is loose


def test_a_result_that_stands_as_a_block_is_moved_and_what_stood_beside_it_stays():
    late = HumanMessage([told("a"), {"type": "text", "text": "and"}], id="m")
    messages = repaired([asks(call("a", "f")), HumanMessage("go"), late])
    assert [message.type for message in messages] == ["ai", "tool", "human", "human"]
    assert messages[1].content == "42"
    assert (messages[3].content, messages[3].id) == ([{"type": "text", "text": "and"}], "m")


def test_a_whole_message_of_blocks_is_moved_as_it_is():
    late = HumanMessage([told("a"), told("b")])
    messages = repaired([asks(call("a", "f"), call("b", "f")), HumanMessage("go"), late])
    assert messages[1] is late
    apart = repaired([asks(call("a", "f"), call("b", "f"), call("c", "f")), HumanMessage("go"), late])
    assert [message.type for message in apart] == ["ai", "human", "tool", "human"]


def test_a_result_that_stands_as_a_block_is_named_once_where_results_have_names():
    fixed = suture.repair([HumanMessage("hi"), asks(call("a", "f")), HumanMessage([told("a")])], profile="gemini")
    assert fixed.messages[-1].content == [{**told("a"), "name": "f"}]
    assert suture.repair(fixed.messages, profile="gemini").messages is fixed.messages


def test_a_result_that_stands_as_a_block_gets_the_new_id_of_its_call():
    messages = repaired([asks(call("fn:0", "f")), HumanMessage(["go", told("fn:0")])])
    assert messages[1].content == ["go", told(messages[0].tool_calls[0]["id"])] != ["go", told("fn:0")]


def test_an_orphan_among_blocks_is_told_as_text_in_its_place():
    messages = repaired([HumanMessage([told("x"), {"type": "text", "text": "and"}])])
    assert [block["type"] for block in messages[0].content] == ["text", "text"]
    assert "42" in messages[0].content[0]["text"]


def test_a_glance_takes_in_no_id_of_a_turn_that_it_does_not_pass():
    demands = Demands(used={})
    begun = [HumanMessage("go"), asks(call("a", "f"), call("b", "f")), ToolMessage("42", tool_call_id="a")]
    assert (WIRE.glance(begun, 0, demands), demands.used) == (1, {})
    whole = [*begun, ToolMessage("42", tool_call_id="b")]
    assert (WIRE.glance(whole, 1, demands), demands.used) == (4, {"a": None, "b": None})


# Content and words


def test_the_content_of_a_result_is_taken_apart_and_put_together_again():
    image = {"type": "image", "url": "https://example.com/x.png"}
    message = ToolMessage(["said", {"type": "text", "text": "hi"}, image], tool_call_id="a")
    parts = WIRE.result_parts(WIRE.view(message).results[0])
    assert parts == (TextPart("said"), TextPart("hi"), RawPart(image))
    edited = WIRE.edit(
        message, {}, {0: ResultEdit(parts=[TextPart("bye"), ImagePart(url="https://example.com/y.png")])}
    )
    assert edited.content == [
        {"type": "text", "text": "bye"},
        {"type": "image", "url": "https://example.com/y.png"},
    ]
    assert WIRE.edit(message, {}, {0: ResultEdit(text="short", extra={"seen": 1})}).content == "short"


def test_what_is_attached_stands_beside_what_was_there():
    message = ToolMessage("42", tool_call_id="a", response_metadata={"own": 1}, id="m")
    made = WIRE.with_extra(message, {"ours": 2})
    assert WIRE.extra_of(made) == {"own": 1, "ours": 2}
    assert WIRE.extra_of(message) == {"own": 1}
    assert made.id == "m"
    assert WIRE.with_extra(message, {}) is message


def test_all_that_a_model_reads_is_told_once():
    blocks = [
        THOUGHT,
        {"type": "text", "text": "hi"},
        USE,
        {"type": "image", "base64": "iVBO"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "so"}]},
    ]
    words = WIRE.words(AIMessage(blocks, tool_calls=[call("a", "f", q=1)]))
    assert words.texts == ("assistant", "hm", "hi", "so", "f", '{"q":1}')
    assert words.media == 1
    assert WIRE.words(ToolMessage(["said"], tool_call_id="a")).texts == ("tool", "said")


def test_media_in_a_result_can_be_shown_behind_it():
    image = {"type": "image", "url": "https://example.com/x.png"}
    message = ToolMessage([{"type": "text", "text": "see"}, image], tool_call_id="a")
    _, result, shown, _ = repaired([asks(call("a", "f")), message, HumanMessage("go")], "openai-chat")
    assert [block["text"] for block in result.content] == ["see", note_text("medium-moved", "en")]
    assert (shown.content[0]["type"], shown.content[1]) == ("text", image)
    assert repaired([asks(call("a", "f")), message])[1] is message, "Anthropic takes images in results"
