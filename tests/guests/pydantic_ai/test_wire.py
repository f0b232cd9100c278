"""The wire: how pydantic-ai's messages are seen, changed and made."""

import copy
import warnings
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic_ai.messages import (
    CompactionPart,
    ImageUrl,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.usage import RequestUsage

import suture
from suture.errors import InputError
from suture.repair import Cause, placeholder_text
from suture.wires import MARK, BlockWire, get_wire, recognise
from tests.guests.pydantic_ai.written import WHEN, asks, gives, no, results, says, shape, user
from tests.guests.releases import since

WIRE = get_wire("pydantic-ai")
MINE = "pydantic_ai_synthesized_tool_return"


def retry(content: Any, **fields: Any) -> Any:
    """Return the older part that asks for another try."""
    from pydantic_ai.messages import RetryPromptPart

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return RetryPromptPart(content, timestamp=WHEN, **fields)


def test_its_messages_are_recognised():
    assert recognise([user("hi")]) == ("pydantic-ai",)
    assert recognise([says("hi")]) == ("pydantic-ai",)
    fixed = suture.repair([user("ask"), asks("a"), user("stop")])
    assert (fixed.report.wire, fixed.report.profile) == ("pydantic-ai", "pairing")


@pytest.mark.parametrize("message", [{"role": "user", "content": "hi"}, suture.Message.user("hi")])
def test_other_messages_are_refused(message: Any):
    assert WIRE.claims(message) is False
    with pytest.raises(InputError, match="expected a ModelRequest or a ModelResponse"):
        WIRE.view(message, 0)


def test_parts_that_are_no_list_are_refused():
    with pytest.raises(InputError, match="expected a list of parts, found str") as caught:
        WIRE.view(ModelRequest("hi"), 3)  # pyright: ignore[reportArgumentType]
    assert (caught.value.index, caught.value.path) == (3, "parts")


ROLES: list[tuple[Any, str]] = [
    (says("hi"), "assistant"),
    (user("hi"), "user"),
    (ModelRequest([]), "user"),
    (ModelRequest([SystemPromptPart("be brief")]), "system"),
    (ModelRequest([SystemPromptPart("be brief"), UserPromptPart("hi")]), "user"),
]


@pytest.mark.parametrize(("message", "role"), ROLES)
def test_a_request_is_the_systems_only_where_it_holds_nothing_else(message: Any, role: str):
    assert WIRE.view(message).role == role


def test_results_without_an_id_are_told_apart_by_their_names():
    turn = ModelResponse([ToolCallPart("f", {}, ""), ToolCallPart("g", {}, "")], timestamp=WHEN)
    history = [user("ask"), turn, results(gives("", "of g", "g"), gives("", "of f", "f"))]
    _, calls, answers = suture.repair(history, profile="anthropic").messages
    named = {part.tool_call_id: part.tool_name for part in calls.parts if isinstance(part, ToolCallPart)}
    told = {named[part.tool_call_id]: part.content for part in answers.parts if isinstance(part, ToolReturnPart)}
    assert told == {"f": "of f", "g": "of g"}


def test_a_result_without_an_id_belongs_to_no_call_of_another_name():
    history = [user("ask"), asks(""), results(gives("", "42", "find"))]
    fixed = suture.repair(history, orphans="drop", generator=no)
    assert shape(fixed.messages) == [["ask"], ["?"], ["=no search (interrupted)"]]


def test_a_prompt_that_shows_something_is_no_text():
    picture = ImageUrl("https://example.com/cat.png")
    prompts = ["hi", ["hi", TextContent("there")], ["hi", picture], [picture]]
    assert isinstance(WIRE, BlockWire)
    assert [WIRE.kind(UserPromptPart(prompt)) for prompt in prompts] == ["text", "text", "media", "media"]
    assert WIRE.block_text(UserPromptPart(prompts[1])) == "hi\nthere"


def test_what_a_providers_own_tools_did_is_neither_a_call_nor_a_result():
    searched = ModelResponse(
        [
            NativeToolCallPart("web_search", {"query": "x"}, "w", provider_name="anthropic"),
            NativeToolReturnPart("web_search", "found", "w", provider_name="anthropic"),
        ]
    )
    view = WIRE.view(searched)
    assert (view.calls, view.results) == ((), ())
    history = [user("ask"), searched]
    assert suture.repair(history, profile="anthropic").messages is history


def test_a_request_to_try_again_answers_the_call_it_names():
    refusal = retry("no such page", tool_name="search", tool_call_id="a")
    history = [user("ask"), asks("a"), results(refusal)]
    (result,) = WIRE.view(history[2]).results
    assert (result.id, result.name, result.content, result.failed) == ("a", "search", "no such page", True)
    assert suture.repair(history, profile="anthropic").messages is history


def test_a_request_to_try_again_without_a_call_is_user_text():
    feedback = retry("say less")
    message = results(feedback)
    assert WIRE.view(message).results == ()
    assert "say less" in WIRE.words(message).texts[1]
    history = [user("ask"), asks("a"), results(feedback)]
    assert [len(each.parts) for each in suture.repair(history).messages] == [1, 1, 1, 1]


def test_an_older_request_to_try_again_moves_and_is_renamed_without_a_warning():
    refusal = retry(
        [{"type": "missing", "loc": ("q",), "msg": "?", "input": {}}], tool_name="search", tool_call_id="a:1"
    )
    history = [user("ask"), asks("a:1"), user("well?"), results(refusal)]
    fixed = suture.repair(history, profile="anthropic").messages
    moved: Any = fixed[2].parts[0]
    assert type(moved) is type(refusal)
    assert (moved.content, moved.timestamp) == (refusal.content, WHEN)
    assert moved.tool_call_id == fixed[1].parts[0].tool_call_id != "a:1"
    assert refusal.tool_call_id == "a:1"


@since("pydantic-ai-slim", "2.59", "feedback in parts of its own")
def test_feedback_on_an_answer_is_user_text():
    from pydantic_ai.messages import RetryFeedbackPart, RetryInfo

    message = results(RetryFeedbackPart("say less", retry=RetryInfo(cause="model_retry"), timestamp=WHEN))
    assert WIRE.view(message).results == ()
    assert "say less" in WIRE.words(message).texts[1]


class Hologram:
    """A part that nobody knows yet."""

    part_kind = "hologram"

    def __init__(self) -> None:
        self.beam = 7


def test_parts_that_nobody_knows_are_kept():
    strange: Any = Hologram()
    history = [user("ask"), ModelResponse([strange, ToolCallPart("f", {}, "a")]), results(strange, gives("b", "42"))]
    fixed = suture.repair(history, orphans="drop").messages
    assert fixed[1].parts[0] is strange
    assert fixed[3].parts == [strange]
    assert WIRE.words(fixed[3]).texts == ("user", '{"beam":7}')


SIGNED: list[Any] = [
    ThinkingPart("hm", signature="s", provider_name="anthropic"),
    TextPart("hm", provider_name="google", provider_details={"thought_signature": "s"}),
    ToolCallPart("f", {}, "b", provider_name="google", provider_details={"thought_signature": "s"}),
    CompactionPart(provider_name="openai", provider_details={"encrypted_content": "s"}),
]


@pytest.mark.parametrize("part", SIGNED)
def test_what_a_provider_signed_is_seen(part: Any):
    assert WIRE.view(ModelResponse([part])).signed


@pytest.mark.parametrize("part", [ThinkingPart("hm"), TextPart("hm", provider_details={"phase": "final"})])
def test_what_nobody_signed_is_not(part: Any):
    assert not WIRE.view(ModelResponse([part])).signed


def test_in_a_signed_turn_only_ids_change():
    call = ToolCallPart("search", '{"q": ', "a:1")
    thought = ThinkingPart("hm", signature="s", provider_name="anthropic")
    history = [user("ask"), ModelResponse([thought, call], timestamp=WHEN), user("stop")]
    turn = suture.repair(history, profile="anthropic").messages[1]
    assert turn.parts[0] is thought
    changed = turn.parts[1]
    assert isinstance(changed, ToolCallPart)
    assert (changed.args, changed.tool_name) == ('{"q": ', "search")
    assert changed.tool_call_id != "a:1"


# Placeholders


def test_a_placeholder_says_what_it_is():
    fixed = suture.repair([user("ask"), asks("a"), user("stop")])
    (part,) = fixed.messages[2].parts
    assert isinstance(part, ToolReturnPart)
    assert (part.tool_name, part.tool_call_id, part.outcome, part.timestamp) == ("search", "a", "interrupted", WHEN)
    assert part.content == placeholder_text(Cause.INTERRUPTED, "search", "a", "en")
    assert part.metadata == {MINE: True, MARK: "interrupted"}


def test_a_placeholder_for_a_call_that_was_rejected_says_that_it_was_denied():
    fixed = suture.repair([user("ask"), asks("a")], causes={(1, 0): Cause.REJECTED})
    (part,) = fixed.messages[2].parts
    assert isinstance(part, ToolReturnPart)
    assert part.outcome == "denied"


def test_a_placeholder_is_for_a_tool_of_the_same_kind():
    call = ToolCallPart("search", {}, "a", tool_kind="acme:search")
    fixed = suture.repair([user("ask"), ModelResponse([call], timestamp=WHEN)])
    (part,) = fixed.messages[2].parts
    assert isinstance(part, ToolReturnPart)
    assert part.tool_kind == "acme:search"


@pytest.mark.parametrize("mark", [MINE, MARK])
def test_a_real_result_beats_a_placeholder_whoever_made_it(mark: str):
    placeholder = ToolReturnPart("search", "interrupted", "a", metadata={mark: True}, timestamp=WHEN)
    for answers in ([placeholder, gives("a", "42")], [gives("a", "42"), placeholder]):
        history = [user("ask"), asks("a"), results(answers[0]), user("well?"), results(answers[1])]
        assert shape(suture.repair(history).messages) == [["ask"], ["a?"], ["a=42"], ["well?"]]


def test_the_same_history_gives_the_same_messages_at_any_time():
    history = [user("ask"), asks("a"), user("stop"), results(gives("ghost", "42")), asks("b")]
    once, twice = [suture.repair(history, profile="mistral").messages for _ in range(2)]
    assert once == twice
    said = [each for message in once for each in (message, *message.parts)]
    stamps = {getattr(each, "timestamp", None) for each in said}
    assert stamps == {WHEN, datetime.fromtimestamp(0, UTC), None}


def test_what_was_mended_can_be_stored_and_read_again():
    history = [user("ask"), asks("a"), user("stop"), results(gives("ghost", "42"))]
    fixed = list(suture.repair(history, profile="anthropic").messages)
    assert ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(fixed)) == fixed


# Changes


def test_a_changed_message_keeps_all_else_and_shares_it():
    usage = RequestUsage(input_tokens=7)
    turn = ModelResponse(
        [TextPart("so"), ToolCallPart("search", {"q": "x"}, "a:1", id="fc_1", provider_name="openai")],
        usage=usage,
        model_name="m",
        provider_response_id="r",
        metadata={"own": 1},
        timestamp=WHEN,
    )
    answer = ModelRequest(
        [gives("a:1", {"found": [1, 2]}), UserPromptPart("and?")],
        instructions="Be brief.",
        run_id="r1",
        metadata={"own": 2},
    )
    before = copy.deepcopy([turn, answer])
    first, second = suture.repair([turn, answer], profile="anthropic").messages
    new_id = first.parts[1].tool_call_id
    assert [turn, answer] == before
    turn.parts[1].tool_call_id = new_id  # pyright: ignore[reportAttributeAccessIssue]
    answer.parts[0].tool_call_id = new_id  # pyright: ignore[reportAttributeAccessIssue]
    assert [first, second] == [turn, answer]
    assert first.parts[0] is turn.parts[0]
    assert second.parts[1] is answer.parts[1]
    assert isinstance(first, ModelResponse)
    assert first.usage is usage


def test_a_list_of_parts_may_be_a_tuple():
    history = [user("ask"), ModelResponse((ToolCallPart("f", {}, "a"),)), results(gives("a", "42", "f"))]
    assert suture.repair(history, profile="anthropic").messages is history


def test_the_same_part_may_stand_in_a_message_twice():
    orphan = gives("ghost", "42")
    fixed = suture.repair([user("ask"), results(orphan, orphan)])
    assert len(fixed.messages[1].parts) == 2


ARGUMENTS: list[tuple[Any, Any]] = [
    (None, None),
    ("", ""),
    ({}, {}),
    ({"q": 1}, {"q": 1}),
    ('{"q": 1}', '{"q": 1}'),
    ('{"q": ', {}),
    ("[1]", {}),
]


@pytest.mark.parametrize(("given", "expected"), ARGUMENTS)
def test_arguments_are_an_object_as_such_or_as_text(given: Any, expected: Any):
    history = [user("ask"), asks("a", arguments=given), results(gives("a", "42"))]
    fixed = suture.repair(history, profile="anthropic")
    call = fixed.messages[1].parts[0]
    assert isinstance(call, ToolCallPart)
    assert call.args == expected
    assert fixed.changed == (given != expected)


def test_a_call_that_was_cut_off_is_told_as_malformed():
    fixed = suture.repair([user("ask"), asks("a", arguments='{"q": '), user("stop")])
    assert shape(fixed.messages)[2] == [f"a={placeholder_text(Cause.MALFORMED, 'search', 'a', 'en')} (interrupted)"]


def test_an_empty_error_is_given_a_text():
    failed = ToolReturnPart("search", "", "a", outcome="failed", timestamp=WHEN)
    fixed = suture.repair([user("ask"), asks("a"), results(failed)], profile="anthropic")
    assert shape(fixed.messages)[2] == ["a=(the tool failed without a message) (failed)"]


def test_a_response_is_named_after_its_call():
    history = [user("ask"), asks("a"), results(gives("a", "42", "find"))]
    (part,) = suture.repair(history, profile="gemini").messages[2].parts
    assert isinstance(part, ToolReturnPart)
    assert part.tool_name == "search"


@pytest.mark.parametrize("profile", ["anthropic", "openai-chat", "gemini", "bedrock", "mistral"])
def test_a_request_without_parts_stays_for_its_instructions(profile: str):
    history = [user("ask"), says("ok"), ModelRequest([], instructions="Go on.")]
    assert suture.repair(history, profile=profile).messages is history
