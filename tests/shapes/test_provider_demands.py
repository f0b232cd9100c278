"""What providers demand beyond pairing, each on its own wires."""

import re
from typing import Any

import pytest

import suture
from suture.messages import AgenticMessage, ImagePart, Message, UserInputImage
from suture.profiles import PROFILES, get_profile
from tests.shapes.holding import found, left_alone, mended
from tests.shapes.notation import call, flat, result, says, turn, user
from tests.shapes.wires import WIRES, arguments_of, read, render

GO = user("go")
PAIRS = [(profile, wire) for profile in PROFILES[1:] for wire in get_profile(profile).wires if wire in WIRES]
LEGAL = {
    "openai-chat": r".{1,40}",
    "openai-responses": r".{1,64}",
    "anthropic": r"[a-zA-Z0-9_-]+",
    "bedrock": r"[a-zA-Z0-9_-]{1,64}",
    "mistral": r"[a-zA-Z0-9]{9}",
    "minimax": r"[a-zA-Z0-9_-]+",
    "kimi": r".{1,64}",
    "deepseek": r".{1,64}",
}
IMAGES: dict[str, Any] = {
    "message": Message("user", user_input_multi_content=(ImagePart(url="https://example.com/a.png"),)),
    "agentic": AgenticMessage("user", (UserInputImage(url="https://example.com/a.png"),)),
    "openai-chat": {
        "role": "user",
        "content": [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}],
    },
    "openai-responses": {
        "role": "user",
        "content": [{"type": "input_image", "image_url": "https://example.com/a.png"}],
    },
    "anthropic": {
        "role": "user",
        "content": [{"type": "image", "source": {"type": "url", "url": "https://example.com/a"}}],
    },
    "gemini": {"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]},
    "bedrock": {"role": "user", "content": [{"image": {"format": "png", "source": {"bytes": b"AAAA"}}}]},
}


@pytest.mark.parametrize("wire", WIRES)
def test_an_image_between_sibling_results_stands_behind_them_and_is_not_lost(wire: str):
    asked, first, second = turn(call("x"), call("y")), result("x", "1"), result("y", "2")
    before = render(wire, [GO, asked, first]).messages
    messages = [*before, IMAGES[wire], *render(wire, [second, says("done")]).messages]
    if wire == "openai-responses":
        left_alone(messages, wire)
        return
    fixed = mended(messages, wire)
    events = [event[:2] for event in flat(read(wire, fixed.messages)) if event[0] in {"result", "failed"}]
    assert events == [("result", "x"), ("result", "y")]
    if wire in {"gemini", "bedrock"}:  # merged into one message, the image last
        key = "parts" if wire == "gemini" else "content"
        assert fixed.messages[2][key][-1] == IMAGES[wire][key][0]
    else:
        assert any(message is IMAGES[wire] for message in fixed.messages[-2:])


@pytest.mark.parametrize(("profile", "wire"), [pair for pair in PAIRS if pair[0] in LEGAL])
def test_ids_are_renamed_on_both_sides_and_stay_distinct(profile: str, wire: str):
    ids = ["functions.search:0" + "x" * 60, "functions.search:0" + "y" * 60]
    history = render(wire, [GO, turn(*map(call, ids)), *(result(id_, id_[-1]) for id_ in ids), says("done")]).messages
    fixed = mended(history, wire, profile=profile)
    events = flat(read(wire, fixed.messages))
    calls = [event[1] for event in events if event[0] == "call"]
    assert all(re.fullmatch(LEGAL[profile], id_) for id_ in calls)
    assert len(set(calls)) == 2
    assert [event[1:] for event in events if event[0] == "result"] == [(calls[0], "x"), (calls[1], "y")]


@pytest.mark.parametrize(
    ("profile", "wire"), [pair for pair in PAIRS if pair[0] in {"openai-chat", "gemini", "kimi", "deepseek"}]
)
def test_ids_that_start_again_in_every_round_are_kept_where_a_provider_takes_them(profile: str, wire: str):
    one = turn(call("functions.search:0"))
    answer = result("functions.search:0", "1")
    messages = render(wire, [GO, one, answer, one, answer, says("done")]).messages
    report = suture.check(messages, wire=wire, profile=profile)
    assert not [each for each in report.findings if "id" in each.problem]


@pytest.mark.parametrize(("profile", "wire"), PAIRS)
def test_arguments_and_names_are_made_readable(profile: str, wire: str):
    bad = turn(call("aaaaaaaaa", "", '{"q": "par'))
    fixed = mended(render(wire, [GO, bad, result("aaaaaaaaa", "1"), says("done")]).messages, wire, profile=profile)
    assert arguments_of(wire, fixed.messages) in (["{}"], [{}])
    assert [event[2] for event in flat(read(wire, fixed.messages)) if event[0] == "call"] == ["unknown_tool"]
    assert {"bad-arguments", "missing-name"} <= {problem for problem, _ in found(fixed)}


@pytest.mark.parametrize(("profile", "wire"), [pair for pair in PAIRS if pair[1] in {"anthropic", "bedrock"}])
def test_an_empty_error_result_is_given_a_text(profile: str, wire: str):
    messages = render(wire, [GO, turn(call("x")), result("x", "", error=True), says("done")]).messages
    fixed = mended(messages, wire, profile=profile)
    assert flat(read(wire, fixed.messages))[2][2].strip()


@pytest.mark.parametrize("profile", ["gemini", "bedrock"])
def test_a_history_that_starts_with_the_model_is_given_a_user_turn(profile: str):
    messages = render(profile, [turn(call("x")), result("x", "1"), says("done")]).messages
    fixed = mended(messages, profile)
    assert list(fixed.messages[1:]) == messages
    assert fixed.messages[0]["role"] == "user"


def test_for_mistral_a_short_assistant_message_stands_between_a_result_and_the_user():
    messages = render("openai-chat", [GO, turn(call("aaaaaaaaa")), result("aaaaaaaaa", "1"), user("next")]).messages
    fixed = mended(messages, "openai-chat", profile="mistral")
    assert [message["role"] for message in fixed.messages] == ["user", "assistant", "tool", "assistant", "user"]
    assert found(fixed) == [("tool-then-user", 3)]
