"""What a provider refuses is found, and mended where there is a way: thoughts, fields, names, roles, item ids."""

from typing import Any

import pytest

import suture
from tests.repair.credit import sound, untouched

Message = dict[str, Any]
ASK: Message = {"role": "user", "content": "q"}
AGAIN: Message = {"role": "user", "content": "go on"}


def refused(wire: str, messages: list[Message], profile: str | None = None) -> set[str]:
    """Return the problems that a check finds; there must be some."""
    report = suture.check(messages, wire=wire, profile=profile)
    assert not report.acceptable
    return {finding.problem for finding in report.findings}


def mended_or_told(wire: str, messages: list[Message], profile: str) -> suture.Repaired[Any]:
    """Repair what is refused, and assert that it is either acceptable afterwards or said not to be."""
    refused(wire, messages, profile)
    fixed = suture.repair(messages, wire=wire, profile=profile)
    assert suture.check(fixed.messages, wire=wire, profile=profile).acceptable == (not fixed.unresolved)
    return fixed


# --- thoughts ---------------------------------------------------------------------------------


def _says(*blocks: Message) -> Message:
    return {"role": "assistant", "content": list(blocks)}


def _use(id_: str = "x") -> Message:
    return {"type": "tool_use", "id": id_, "name": "f", "input": {}}


def _result(id_: str = "x", **more: Any) -> Message:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id_, "content": "42", **more}]}


TEXT = {"type": "text", "text": "Let me look."}
THOUGHT = {"type": "thinking", "thinking": "Let me", "signature": "c2lnbmVk"}
UNSIGNED = {
    "empty": {"type": "thinking", "thinking": "Let me", "signature": ""},
    "absent": {"type": "thinking", "thinking": "Let me"},
}


@pytest.mark.parametrize("form", UNSIGNED)
def test_a_message_of_nothing_but_unsigned_thinking_goes(form: str) -> None:
    given = [ASK, _says(UNSIGNED[form]), AGAIN]
    refused("anthropic", given)
    assert list(sound("anthropic", given).messages) == [ASK, AGAIN]


@pytest.mark.parametrize("form", UNSIGNED)
def test_unsigned_thinking_before_text_goes_and_the_text_stays(form: str) -> None:
    given = [ASK, _says(UNSIGNED[form], TEXT), AGAIN]
    refused("anthropic", given)
    assert list(sound("anthropic", given).messages) == [ASK, _says(TEXT), AGAIN]


@pytest.mark.parametrize("form", UNSIGNED)
def test_unsigned_thinking_before_a_call_goes_and_the_call_stays(form: str) -> None:
    given = [ASK, _says(UNSIGNED[form], _use()), _result()]
    refused("anthropic", given)
    assert list(sound("anthropic", given).messages) == [ASK, _says(_use()), _result()]


@pytest.mark.parametrize("form", UNSIGNED)
def test_unsigned_thinking_behind_text_goes(form: str) -> None:
    given = [ASK, _says(TEXT, UNSIGNED[form]), AGAIN]
    refused("anthropic", given)
    assert list(sound("anthropic", given).messages) == [ASK, _says(TEXT), AGAIN]


def test_a_message_of_nothing_but_signed_thinking_came_from_a_cut_stream_and_goes() -> None:
    given = [ASK, _says(THOUGHT), AGAIN]
    refused("anthropic", given)
    assert list(sound("anthropic", given).messages) == [ASK, AGAIN]


def test_a_thought_at_the_very_end_goes() -> None:
    given = [ASK, _says(_use()), _result(), _says(THOUGHT)]
    refused("anthropic", given)
    assert list(sound("anthropic", given).messages) == given[:3]


@pytest.mark.parametrize("split", [False, True], ids=["one message", "a message of its own"])
def test_a_call_that_only_a_thought_behind_it_made_signed_is_mended_with_it(split: bool) -> None:
    nameless = {**_use(), "name": ""}
    turn = [_says(TEXT, nameless), _says(THOUGHT)] if split else [_says(TEXT, nameless, THOUGHT)]
    named = _says(TEXT, {**nameless, "name": "unknown_tool"})
    assert list(sound("anthropic", [ASK, *turn, _result(), AGAIN]).messages[:3]) == [ASK, named, _result()]


def test_signed_thinking_before_text_or_a_call_stays() -> None:
    untouched("anthropic", [ASK, _says(THOUGHT, _use()), _result(), _says(THOUGHT, TEXT), AGAIN])


def test_on_bedrock_a_thought_that_is_not_claudes_may_follow_a_text() -> None:
    def spoke(**more: str) -> Message:
        return {"role": "assistant", "content": [{"text": "hi"}, {"reasoningContent": {"reasoningText": more}}]}

    asked = {"role": "user", "content": [{"text": "q"}]}
    untouched("bedrock", [asked, spoke(text="hm"), asked])
    fixed = sound("bedrock", [asked, spoke(text="hm", signature="c2ln"), asked])
    assert list(fixed.messages) == [asked, {"role": "assistant", "content": [{"text": "hi"}]}, asked]


def test_on_gemini_a_line_break_that_was_streamed_by_itself_stays() -> None:
    def turn(*texts: str) -> list[Message]:
        asked = {"role": "user", "parts": [{"text": "q"}]}
        return [asked, {"role": "model", "parts": [{"text": text} for text in texts]}, asked]

    untouched("gemini", turn("one", "\n\n", "two"))
    assert list(sound("gemini", turn("one", "", "\n", "two")).messages) == turn("one", "\n", "two")


def test_dropping_a_cut_thought_keeps_what_the_user_said_on_both_sides() -> None:
    given = [ASK, _says(_use("x")), _result("x"), _says(UNSIGNED["empty"]), AGAIN]
    fixed = sound("anthropic", given)
    said = str(fixed.messages)
    assert "go on" in said
    assert "42" in said
    assert "thinking" not in said


@pytest.mark.parametrize("signature", [{"signature": "c2lnbmVk"}, {}], ids=["signed", "cut before its signature"])
@pytest.mark.parametrize("said", [[], [{"text": "Let me look."}]], ids=["alone", "behind a message of its own"])
def test_a_thought_that_ends_a_turn_on_bedrock_goes_and_the_user_still_alternates(
    signature: Message, said: list[Message]
) -> None:
    thought = {"reasoningContent": {"reasoningText": {"text": "Let me", **signature}}}
    first, second = {"text": "q"}, {"text": "go on"}
    answers = [{"role": "assistant", "content": blocks} for blocks in (said, [thought]) if blocks]
    given = [{"role": "user", "content": [first]}, *answers, {"role": "user", "content": [second]}]
    assert "trailing-thinking" in refused("bedrock", given)
    fixed = sound("bedrock", given)
    kept = [[first], said, [second]] if said else [[first, second]]
    assert [message["content"] for message in fixed.messages] == kept
    (found,) = [finding for finding in fixed.report.findings if finding.problem == "trailing-thinking"]
    assert given[found.index]["content"] == [thought]


@pytest.mark.parametrize("blank", [0, 1, 2])
def test_a_late_result_behind_a_dropped_thought_costs_no_word_on_bedrock(blank: int) -> None:
    """The user's messages around the thought are joined; going back to the call behind them leaves that as it is."""

    def says(role: str, *blocks: Message) -> Message:
        return {"role": role, "content": list(blocks)}

    def result(text: str) -> Message:
        return says("user", {"toolResult": {"toolUseId": "x", "content": [{"text": text}]}})

    thought = {"reasoningContent": {"reasoningText": {"text": "Let me", "signature": "c2lnbmVk"}}}
    use = {"toolUse": {"toolUseId": "x", "name": "f", "input": {}}}
    first = [says("user", {"text": "one"}), says("assistant", thought), *[says("user", {"text": " "})] * blank]
    asked = [says("user", {"text": "two"}), says("assistant", use), result("1"), says("assistant", {"text": "so"})]
    given = [*first, *asked, says("user", {"text": "and"}), says("user", {"text": "now"}), result("2")]
    fixed = sound("bedrock", given)
    assert [fixed.messages[0]["content"], fixed.messages[2]["content"]] == [
        [{"text": "one"}, {"text": "two"}],
        result("2")["content"],
    ]
    grown = suture.Repairer[Message](wire="bedrock")
    for message in given:
        grown.extend([message])
    assert grown.messages == fixed.messages


# --- reasoning items --------------------------------------------------------------------------

REASONING: Message = {"type": "reasoning", "id": "rs_1", "summary": []}
CALL: Message = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": "{}"}
OUTPUT: Message = {"type": "function_call_output", "call_id": "call_1", "output": "42"}


@pytest.mark.parametrize("behind", [[AGAIN], []])
def test_a_lone_reasoning_item_goes(behind: list[Message]) -> None:
    given = [ASK, REASONING, *behind]
    assert refused("openai-responses", given) == {"lone-reasoning"}
    assert list(sound("openai-responses", given).messages) == [ASK, *behind]


def test_a_reasoning_item_before_the_item_that_it_produced_stays() -> None:
    untouched("openai-responses", [ASK, REASONING, CALL, OUTPUT])


def test_a_lone_reasoning_item_goes_and_the_pair_beside_it_stays() -> None:
    other = {**REASONING, "id": "rs_2"}
    given = [ASK, REASONING, CALL, OUTPUT, other, AGAIN]
    assert list(sound("openai-responses", given).messages) == [ASK, REASONING, CALL, OUTPUT, AGAIN]


# --- Chat Completions and its clones ----------------------------------------------------------


def _calls(name: str = "f", **more: Any) -> Message:
    call = {"id": "aaaaaaaaa", "type": "function", "function": {"name": name, "arguments": "{}"}}
    return {"role": "assistant", "content": None, "tool_calls": [call], **more}


TOOL: Message = {"role": "tool", "tool_call_id": "aaaaaaaaa", "content": "1"}


@pytest.mark.parametrize("profile", ["openai-chat", "deepseek", "kimi"])
def test_a_message_of_nothing_but_reasoning_content_is_not_left_as_it_is(profile: str) -> None:
    given = [ASK, {"role": "assistant", "content": None, "reasoning_content": "hm"}, AGAIN]
    refused("openai-chat", given, profile)
    fixed = sound("openai-chat", given, profile=profile)
    assert [message for message in fixed.messages if message["role"] == "user"] == [ASK, AGAIN]


def test_deepseek_gets_reasoning_content_on_every_model_message_of_the_current_turn() -> None:
    given = [ASK, {"role": "assistant", "content": "I look"}, _calls(reasoning_content=""), TOOL]
    assert refused("openai-chat", given, "deepseek") == {"missing-field"}
    fixed = sound("openai-chat", given, profile="deepseek")
    assert [message.get("reasoning_content") for message in fixed.messages[1:3]] == ["", ""]
    assert fixed.messages[1]["content"] == "I look"


@pytest.mark.parametrize("profile", ["mistral", "deepseek"])
def test_a_developer_is_not_sent_to_a_server_that_knows_none(profile: str) -> None:
    given = [{"role": "developer", "content": "Answer briefly."}, ASK]
    refused("openai-chat", given, profile)
    fixed = sound("openai-chat", given, profile=profile)
    assert "developer" not in {message["role"] for message in fixed.messages}
    assert "Answer briefly." in str(fixed.messages)
    untouched("openai-chat", given, profile="openai-chat")


def test_a_custom_call_is_found_on_mistral() -> None:
    custom = {"id": "aaaaaaaaa", "type": "custom", "custom": {"name": "f", "input": "x"}}
    given = [ASK, {"role": "assistant", "content": None, "tool_calls": [custom]}, TOOL]
    untouched("openai-chat", given, profile="openai-chat")
    mended_or_told("openai-chat", given, "mistral")


@pytest.mark.parametrize("name", ["fs.read", "get weather", "f" * 65, "wetter-für"])
@pytest.mark.parametrize("wire", ["openai-chat", "openai-responses"])
def test_openai_refuses_such_a_name_of_a_tool(wire: str, name: str) -> None:
    given = [ASK, _calls(name), TOOL] if wire == "openai-chat" else [ASK, {**CALL, "name": name}, OUTPUT]
    fixed = suture.repair(given, wire=wire)
    assert [finding.problem for finding in fixed.unresolved] == ["illegal-name"]
    assert fixed.messages is given


@pytest.mark.parametrize("name", ["fs_read", "get-weather", "f" * 64])
@pytest.mark.parametrize("wire", ["openai-chat", "openai-responses"])
def test_openai_takes_such_a_name_of_a_tool(wire: str, name: str) -> None:
    untouched(wire, [ASK, _calls(name), TOOL] if wire == "openai-chat" else [ASK, {**CALL, "name": name}, OUTPUT])


@pytest.mark.parametrize("profile", ["openai-chat", "mistral", "deepseek", "groq", "kimi", "minimax"])
def test_chat_refuses_an_empty_list_beside_calls(profile: str) -> None:
    turn = {**_calls("f"), "content": []}
    given = [ASK, turn, TOOL]
    assert "no-content" in refused("openai-chat", given, profile)
    fixed = sound("openai-chat", given, profile=profile)
    assert fixed.messages[1]["content"] == ""
    assert [finding.index for finding in fixed.report.findings if finding.problem == "no-content"] == [1]


@pytest.mark.parametrize("content", [None, []])
@pytest.mark.parametrize("role", ["user", "system"])
def test_chat_refuses_a_message_without_content(role: str, content: Any) -> None:
    void = {"role": role, "content": content}
    given = [void, ASK] if role == "system" else [ASK, {"role": "assistant", "content": "so"}, void]
    refused("openai-chat", given)
    fixed = sound("openai-chat", given)
    rest = [message for message in given if message is not void]
    assert all(any(message is kept for kept in fixed.messages) for message in rest)


def test_a_tool_message_that_has_the_illegal_name_of_its_call_is_left_alone_for_mistral() -> None:
    fixed = suture.repair([ASK, _calls("get weather"), {**TOOL, "name": "get weather"}], profile="mistral")
    again = suture.repair(fixed.messages, profile="mistral")
    assert [finding.problem for finding in again.unresolved] == ["illegal-name"]
    assert again.messages is fixed.messages


def test_the_name_of_a_tool_message_is_checked_for_mistral() -> None:
    given = [ASK, _calls(), {**TOOL, "name": "get weather!"}, {"role": "assistant", "content": "so"}]
    untouched("openai-chat", [ASK, _calls(), {**TOOL, "name": "f"}, given[3]], profile="mistral")
    mended_or_told("openai-chat", given, "mistral")


def test_mistral_is_told_a_system_message_in_the_middle_as_the_users() -> None:
    given = [ASK, {"role": "assistant", "content": "so"}, {"role": "system", "content": "Speak French."}, AGAIN]
    assert refused("openai-chat", given, "mistral") == {"late-system"}
    fixed = sound("openai-chat", given, profile="mistral")
    assert [message["role"] for message in fixed.messages if "Speak French." in str(message["content"])] == ["user"]
    assert "go on" in str(fixed.messages)


@pytest.mark.parametrize("name", ["", None])
def test_a_function_message_without_a_name_gets_the_name_of_its_call(name: str | None) -> None:
    made = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    answer = (
        {"role": "function", "content": "42"} if name is None else {"role": "function", "name": name, "content": "42"}
    )
    fixed = sound("openai-chat", [ASK, made, answer, AGAIN])
    assert [(m.get("name"), m["content"]) for m in fixed.messages if m["role"] == "function"] == [("f", "42")]


def test_an_old_call_without_a_name_and_its_answer_get_the_same_one() -> None:
    made = {"role": "assistant", "content": None, "function_call": {"name": "", "arguments": "{}"}}
    for answer in ([], [{"role": "function", "name": "", "content": "42"}]):
        fixed = sound("openai-chat", [ASK, made, *answer, AGAIN])
        assert fixed.messages[1]["function_call"]["name"] == "unknown_tool"
        assert [m["name"] for m in fixed.messages if m["role"] == "function"] == ["unknown_tool"]


# --- Responses --------------------------------------------------------------------------------


@pytest.mark.parametrize("id_", ["call_1", "item_1", "", "fc_" + "x" * 62, "fc_1/2", "fc_é"])
def test_an_item_id_that_the_service_refuses_is_left_out(id_: str) -> None:
    given = [ASK, {**CALL, "id": id_}, OUTPUT]
    refused("openai-responses", given)
    fixed = sound("openai-responses", given)
    bare = {key: value for key, value in CALL.items() if key != "id"}
    assert list(fixed.messages) == [ASK, bare, OUTPUT]


def test_an_item_id_with_its_prefix_stays() -> None:
    untouched("openai-responses", [ASK, {**CALL, "id": "fc_" + "x" * 61}, OUTPUT])


def test_a_thought_whose_id_is_too_long_is_sent_by_its_encrypted_content_alone() -> None:
    long = {**REASONING, "id": "rs_" + "x" * 400}
    fixed = sound("openai-responses", [ASK, {**long, "encrypted_content": "c2ln"}, CALL, OUTPUT])
    assert list(fixed.messages)[1] == {"type": "reasoning", "summary": [], "encrypted_content": "c2ln"}
    known_by_its_id = mended_or_told("openai-responses", [ASK, long, CALL, OUTPUT], "openai-responses")
    assert [finding.problem for finding in known_by_its_id.unresolved] == ["illegal-item-id"]


def test_computer_calls_without_ids_are_repaired_once_and_for_all() -> None:
    call = {"type": "computer_call", "action": {"type": "screenshot"}, "pending_safety_checks": []}
    shot = {"type": "computer_call_output", "output": {"type": "computer_screenshot", "image_url": "data:,"}}
    given = [call, {"role": "developer", "content": "x"}, call, shot]
    fixed = suture.repair(given, wire="openai-responses", profile="deepseek")
    again = suture.repair(fixed.messages, wire="openai-responses", profile="deepseek")
    assert again.messages is fixed.messages


# --- Anthropic, Gemini, Bedrock ---------------------------------------------------------------

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}


@pytest.mark.parametrize("content", [[IMAGE], [TEXT, IMAGE]])
def test_an_image_in_a_failed_result_is_not_left_there(content: list[Message]) -> None:
    given = [ASK, _says(_use()), _result(content=content, is_error=True)]
    refused("anthropic", given)
    fixed = sound("anthropic", given)
    assert IMAGE["source"]["data"] in str(fixed.messages)
    (block,) = (b for m in fixed.messages[2:] for b in m["content"] if b["type"] == "tool_result")
    parts = block["content"] if isinstance(block["content"], list) else [{"type": "text"}]
    assert not block.get("is_error") or {part["type"] for part in parts} == {"text"}
    assert len(content) == 1 or TEXT["text"] in str(block)


def test_an_image_in_a_result_that_did_not_fail_stays() -> None:
    untouched("anthropic", [ASK, _says(_use()), _result(content=[IMAGE])])


def test_a_server_call_apart_from_its_result_is_found() -> None:
    call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "tides"}}
    hits: Message = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    untouched("anthropic", [ASK, _says(call, hits, TEXT)])
    given = [ASK, _says(call), {"role": "user", "content": "wait"}, _says(hits, TEXT)]
    fixed = mended_or_told("anthropic", given, "anthropic")
    assert "wait" in str(fixed.messages)
    assert TEXT["text"] in str(fixed.messages)


def test_a_server_call_in_the_model_message_before_its_result_is_one_turn_with_it() -> None:
    """A turn that the server paused, or that was stored one block a message: Anthropic joins them."""
    call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "tides"}}
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    told = [ASK, _says(call), _says(result, TEXT)]
    untouched("anthropic", told)
    untouched("anthropic", [*told, AGAIN])


def test_a_server_call_in_front_of_a_thought_that_goes_ends_the_reply_and_goes_as_well() -> None:
    call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "tides"}}
    for turn in ([_says(TEXT), _says(call), _says(THOUGHT)], [_says(TEXT), _says(THOUGHT), _says(call, THOUGHT)]):
        assert list(sound("anthropic", [ASK, *turn, AGAIN]).messages) == [ASK, _says(TEXT), AGAIN]


@pytest.mark.parametrize("before", [_says(TEXT), _says(UNSIGNED["empty"])], ids=["text", "a thought that goes"])
@pytest.mark.parametrize("more", [[], [_use()]], ids=["alone", "beside a call"])
def test_the_result_of_a_server_call_that_no_message_before_holds_is_told(before: Message, more: list[Message]) -> None:
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    given = [ASK, before, _says(result, *more), *([_result()] if more else [AGAIN])]
    fixed = mended_or_told("anthropic", given, "anthropic")
    assert [finding.problem for finding in fixed.unresolved] == ["split-server-tool"]


@pytest.mark.parametrize("response", ["06:12", None])
def test_a_gemini_response_that_is_no_object_becomes_one(response: str | None) -> None:
    own = {} if response is None else {"response": response}
    asked = {"role": "user", "parts": [{"text": "q"}]}
    made = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}
    given = [asked, made, {"role": "user", "parts": [{"functionResponse": {"name": "f", **own}}]}]
    refused("gemini", given)
    fixed = sound("gemini", given)
    (part,) = fixed.messages[2]["parts"]
    assert isinstance(part["functionResponse"]["response"], dict)
    assert response is None or response in part["functionResponse"]["response"].values()


def test_a_bedrock_result_without_content_gets_some() -> None:
    asked = {"role": "user", "content": [{"text": "q"}]}
    made = {"role": "assistant", "content": [{"toolUse": {"toolUseId": "x", "name": "f", "input": {}}}]}
    given = [asked, made, {"role": "user", "content": [{"toolResult": {"toolUseId": "x"}}]}]
    refused("bedrock", given)
    fixed = sound("bedrock", given)
    assert isinstance(fixed.messages[2]["content"][0]["toolResult"]["content"], list)
