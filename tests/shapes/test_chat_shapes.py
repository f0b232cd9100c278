"""What Chat Completions and its relatives demand beyond pairing: OpenAI, Mistral, DeepSeek, Kimi, MiniMax."""

import json
import re
from typing import Any

import pytest

import suture
from tests.shapes.chat import GO, NEXT, WIRE, call, model, says, tool, user
from tests.shapes.holding import found, left_alone, mended, unmendable
from tests.shapes.texts import placeholder

CHAT_PROFILES = ("openai-chat", "mistral", "deepseek", "kimi", "minimax")
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def ids_of(messages: Any) -> tuple[list[str], list[str]]:
    calls = [each["id"] for message in messages for each in message.get("tool_calls", ())]
    return calls, [message["tool_call_id"] for message in messages if message["role"] == "tool"]


# --- media ------------------------------------------------------------------------------------


def test_an_image_between_sibling_results_stands_after_them():
    shown = user([IMAGE])
    fixed = mended([GO, model(call("x"), call("y")), tool("x"), shown, tool("y")], WIRE)
    assert fixed.messages == [GO, model(call("x"), call("y")), tool("x"), tool("y"), shown]
    assert fixed.messages[4] is shown
    assert found(fixed) == [("late", 4)]


@pytest.mark.parametrize("profile", CHAT_PROFILES)
def test_media_in_results_is_shown_in_one_user_message_after_the_last_result(profile: str):
    """Pairing stays, text stays, no media part is lost."""
    other = {"type": "image_url", "image_url": {"url": "https://example.com/b.png"}}
    history = [
        GO,
        model(call("aaaaaaaaa"), call("bbbbbbbbb"), reasoning_content=""),
        tool("aaaaaaaaa", [{"type": "text", "text": "see"}, IMAGE]),
        tool("bbbbbbbbb", [other]),
        says("done"),
    ]
    fixed = mended(history, WIRE, profile=profile)
    turn, first, second = fixed.messages[1:4]
    shown = next(message for message in fixed.messages[4:] if message["role"] == "user")  # a bridge may stand before
    assert turn is history[1]
    assert (first["tool_call_id"], second["tool_call_id"]) == ("aaaaaaaaa", "bbbbbbbbb")
    assert first["content"][0] == {"type": "text", "text": "see"}
    assert all(part["type"] == "text" for part in first["content"])
    assert isinstance(second["content"], str)
    assert shown["role"] == "user"
    assert [part for part in shown["content"] if part["type"] != "text"] == [IMAGE, other]
    problems = [each for each in found(fixed) if each[0] == "media-in-result"]
    assert problems == [("media-in-result", 2), ("media-in-result", 3)]


# --- ids --------------------------------------------------------------------------------------

LONG = "functions.search_the_whole_web_for_something:0"


@pytest.mark.parametrize(
    ("profile", "id_", "legal"),
    [
        ("openai-chat", "c" * 41, r".{1,40}"),
        ("openai-chat", "call_x|fc_" + "y" * 440, r".{1,40}"),
        ("openai-chat", "portkey-123e4567-e89b-12d3-a456-426614174000", r".{1,40}"),
        ("mistral", "call_1", r"[a-zA-Z0-9]{9}"),
        ("mistral", "toolu_01A09q90qw90lq917835lq9", r"[a-zA-Z0-9]{9}"),
        ("mistral", "functions.search:0", r"[a-zA-Z0-9]{9}"),
        ("mistral", "abc_efghi", r"[a-zA-Z0-9]{9}"),
        ("minimax", "functions.search:0", r"[a-zA-Z0-9_-]+"),
    ],
)
def test_an_id_that_a_provider_cannot_read_is_renamed_on_both_sides(profile: str, id_: str, legal: str):
    """Calls and results alike (Roo#11131 renamed one side)."""
    fixed = mended([GO, model(call(id_)), tool(id_), says("done")], WIRE, profile=profile)
    (new,), results = ids_of(fixed.messages)
    assert re.fullmatch(legal, new)
    assert results == [new]
    assert found(fixed) == [("illegal-id", 1)]


@pytest.mark.parametrize("profile", ["openai-chat", "deepseek", "kimi"])
def test_an_id_of_forty_free_characters_is_fine_for_the_others(profile: str):
    """Kimi's `name:index`."""
    left_alone(
        [GO, model(call("functions.search:0"), reasoning_content=""), tool("functions.search:0")],
        WIRE,
        profile=profile,
    )


def test_ids_that_share_their_first_or_last_nine_characters_stay_distinct_for_mistral():
    """Keeping the first nine lost 79 of 845 ids, keeping the last nine is no better here."""
    ids = [f"toolu_01ABC{n:05}xyzxyzxyz" for n in range(300)]
    history: list[Any] = [GO]
    for id_ in ids:
        history += [model(call(id_)), tool(id_)]
    fixed = mended([*history, says("done")], WIRE, profile="mistral")
    calls, results = ids_of(fixed.messages)
    assert calls == results
    assert len(set(calls)) == 300
    assert all(re.fullmatch("[a-zA-Z0-9]{9}", id_) for id_ in calls)


def test_a_legal_id_keeps_its_name_beside_renamed_ones():
    fixed = mended(
        [GO, model(call("abcdefghi"), call("call_1")), tool("abcdefghi"), tool("call_1")],
        WIRE,
        profile="mistral",
    )
    calls, results = ids_of(fixed.messages)
    assert calls[0] == "abcdefghi"
    assert calls == results


def test_an_id_is_renamed_alike_however_long_the_history_grows():
    """Prompt caches: the same call has the same new id in every request."""
    history = [GO, model(call("call_1")), tool("call_1"), says("done")]
    longer = [*history, NEXT, model(call("call_2")), tool("call_2"), says("done")]
    first = mended(history, WIRE, profile="mistral").messages
    assert list(mended(longer, WIRE, profile="mistral").messages)[: len(first)] == list(first)


@pytest.mark.parametrize("absent", ["", None])
def test_calls_without_ids_get_one_each_and_their_results_the_same(absent: Any):
    """And no real result is taken for an orphan."""
    fixed = mended([GO, model(call(absent), call(absent, "fetch")), tool(absent, "1"), tool(absent, "2")], WIRE)
    calls, results = ids_of(fixed.messages)
    assert len(set(calls)) == 2
    assert all(calls)
    assert calls == results
    assert [message["content"] for message in fixed.messages[2:]] == ["1", "2"]
    assert found(fixed) == [("missing-id", 1), ("missing-id", 1)]


def test_calls_and_results_whose_id_is_not_even_there_get_one():
    bare = {"type": "function", "function": {"name": "search", "arguments": "{}"}}
    fixed = mended([GO, model(bare), {"role": "tool", "content": "1"}], WIRE)
    calls, results = ids_of(fixed.messages)
    assert calls == results
    assert calls[0]


# --- calls ------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", CHAT_PROFILES)
@pytest.mark.parametrize("arguments", ["", "null", "[1]", '"text"', "7", '{"q": "par', "{}x", '{"q": NaN}', None])
def test_arguments_that_are_no_object_become_an_empty_one(arguments: Any, profile: str):
    """Whoever answered, the answer stays."""
    history = [
        GO,
        model(call("aaaaaaaaa", arguments=arguments), reasoning_content=""),
        tool("aaaaaaaaa", "bad JSON"),
    ]
    fixed = mended(history, WIRE, profile=profile)
    assert fixed.messages == [
        GO,
        model(call("aaaaaaaaa"), reasoning_content=""),
        tool("aaaaaaaaa", "bad JSON"),
    ]
    assert found(fixed) == [("bad-arguments", 1)]


@pytest.mark.parametrize(
    "arguments", ["{}", ' {"q": 1} ', '{"q": "\\ud83d\\ude00"}', '{"n": 1e400}', '{"a": {"a": [{}]}}']
)
def test_arguments_that_are_an_object_are_left_as_they_are_written(arguments: str):
    left_alone([GO, model(call("x", arguments=arguments)), tool("x")], WIRE)


def test_a_call_without_a_name_is_named_and_keeps_its_result():
    fixed = mended([GO, model(call("x", "")), tool("x")], WIRE)
    assert fixed.messages == [GO, model(call("x", "unknown_tool")), tool("x")]
    assert found(fixed) == [("missing-name", 1)]


def test_a_call_without_a_name_or_a_result_gets_both():
    fixed = mended([GO, model(call("x", "")), NEXT], WIRE)
    assert fixed.messages[2] == tool("x", placeholder("interrupted", "x", "unknown_tool"))


def test_a_name_that_mistral_cannot_read_is_told_and_not_guessed():
    history = [GO, model(call("aaaaaaaaa", "my tool")), tool("aaaaaaaaa")]
    assert unmendable(history, WIRE, "illegal-name", profile="mistral").messages is history


def test_custom_calls_are_answered_and_their_input_is_not_taken_for_json():
    custom = {"id": "x", "type": "custom", "custom": {"name": "shell", "input": "ls -l"}}
    fixed = mended([GO, model(custom), NEXT], WIRE)
    assert fixed.messages == [GO, model(custom), tool("x", placeholder("interrupted", "x", "shell")), NEXT]
    left_alone([GO, model(custom), tool("x")], WIRE)


# --- empty things -----------------------------------------------------------------------------


@pytest.mark.parametrize("content", ["", None, []])
def test_an_assistant_message_of_nothing_is_dropped(content: Any):
    fixed = mended([GO, says(content), NEXT], WIRE)
    assert fixed.messages == [GO, NEXT]
    assert found(fixed) == [("empty-message", 1)]


def test_an_empty_list_of_calls_is_left_out():
    fixed = mended([GO, says("hi", tool_calls=[]), NEXT], WIRE)
    assert fixed.messages == [GO, says("hi"), NEXT]
    assert found(fixed) == [("empty-calls", 1)]


@pytest.mark.parametrize(
    "message", [says(None, refusal="no"), says(None, audio={"id": "a"}), says("hi", tool_calls=None)]
)
def test_a_message_that_says_something_elsewhere_is_not_empty(message: dict[str, Any]):
    left_alone([GO, message, NEXT], WIRE)


def test_an_empty_result_is_fine():
    """Tool content may be an empty string."""
    left_alone([GO, model(call("x")), tool("x", "")], WIRE)


@pytest.mark.parametrize("result", [tool("x", None), {"role": "tool", "tool_call_id": "x"}], ids=["null", "absent"])
def test_a_result_without_content_is_given_some(result: dict[str, Any]):
    """Content may be null only when `tool_calls` is present."""
    fixed = mended([GO, model(call("x")), result], WIRE)
    assert isinstance(fixed.messages[2]["content"], str)


# --- Mistral, DeepSeek, Kimi ------------------------------------------------------------------


def test_for_mistral_a_short_assistant_message_stands_between_a_result_and_the_user():
    """Code 3230: Unexpected role 'user' after role 'tool'."""
    history = [GO, model(call("aaaaaaaaa")), tool("aaaaaaaaa"), NEXT, says("done")]
    fixed = mended(history, WIRE, profile="mistral")
    assert [message["role"] for message in fixed.messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
        "assistant",
    ]
    bridge = fixed.messages[3]
    assert set(bridge) == {"role", "content"}
    assert 0 < len(bridge["content"]) < 60
    assert [m for m in fixed.messages if m is not bridge] == history
    assert found(fixed) == [("tool-then-user", 3)]


def test_for_mistral_the_bridge_stands_behind_an_inserted_result_too():
    fixed = mended([GO, model(call("aaaaaaaaa")), NEXT], WIRE, profile="mistral")
    assert [m["role"] for m in fixed.messages] == ["user", "assistant", "tool", "assistant", "user"]
    assert fixed.messages[2] == tool("aaaaaaaaa", placeholder("interrupted", "aaaaaaaaa"))


@pytest.mark.parametrize("profile", ["openai-chat", "deepseek", "kimi", "minimax"])
def test_no_other_provider_needs_that_bridge(profile: str):
    left_alone([GO, model(call("x"), reasoning_content=""), tool("x"), NEXT], WIRE, profile=profile)


@pytest.mark.parametrize("profile", ["deepseek", "kimi"])
@pytest.mark.parametrize("field", [{}, {"reasoning_content": None}], ids=["absent", "null"])
def test_a_turn_with_calls_is_given_an_empty_reasoning_content(profile: str, field: dict[str, Any]):
    """An empty string satisfies it."""
    history = [GO, model(call("x"), **field), tool("x"), says("done"), NEXT]
    fixed = mended(history, WIRE, profile=profile)
    assert fixed.messages[1] == model(call("x"), reasoning_content="")
    assert all(one is other for one, other in zip(fixed.messages[2:], history[2:], strict=True))
    assert found(fixed) == [("missing-field", 1)]


@pytest.mark.parametrize("profile", ["deepseek", "kimi"])
@pytest.mark.parametrize("words", ["", "Let me see."])
def test_a_reasoning_content_that_is_there_is_left_alone(profile: str, words: str):
    left_alone([GO, model(call("x"), reasoning_content=words), tool("x"), says("done")], WIRE, profile=profile)


def test_nobody_else_is_sent_an_empty_reasoning_content():
    for profile in ("openai-chat", "minimax"):
        left_alone([GO, model(call("x")), tool("x")], WIRE, profile=profile)


def test_ids_that_start_again_every_round_are_kimis_way():
    one = model(call("search:0"), reasoning_content="")
    left_alone([GO, one, tool("search:0", "1"), one, tool("search:0", "2"), says("done")], WIRE, profile="kimi")


# --- what is nobody's business ----------------------------------------------------------------


def test_fields_that_nobody_knows_are_kept_on_a_changed_message():
    turn = model({**call("c" * 50), "index": 0, "x": 1}, annotations=[], refusal=None, provider={"a": 1})
    fixed = mended([GO, turn, tool("c" * 50, "1", name="search", y=2)], WIRE)
    new = fixed.messages[1]["tool_calls"][0]["id"]
    assert fixed.messages[1] == {**turn, "tool_calls": [{**turn["tool_calls"][0], "id": new}]}
    assert fixed.messages[2] == tool(new, "1", name="search", y=2)


def test_no_unknown_key_is_put_into_a_users_message():
    """Marks on foreign wires live elsewhere."""
    fixed = mended([GO, model(call("x")), NEXT, tool("q", "surplus")], WIRE)
    for message in fixed.messages:
        assert set(message) <= {"role", "content", "tool_calls", "tool_call_id"}
    json.dumps(list(fixed.messages))


def test_a_developer_message_between_a_call_and_its_result_stands_after_the_group():
    notice = {"role": "developer", "content": "resized"}
    fixed = mended([notice, GO, model(call("x")), notice, tool("x")], WIRE)
    assert fixed.messages == [notice, GO, model(call("x")), tool("x"), notice]


def test_the_profile_must_speak_of_the_wire():
    with pytest.raises(suture.ConfigError):
        suture.repair([GO, model(call("x"))], wire=WIRE, profile="gemini")
    with pytest.raises(suture.ConfigError):
        suture.check([GO], wire=WIRE, profile="no-such-provider")
