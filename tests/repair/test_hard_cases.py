"""Single histories that once came out wrong, each with the sentence it broke."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from google.genai import types

import suture
from suture.profiles import IdForm, get_profile
from tests.histories import write


def call(call_id: str, name: str = "f", arguments: Any = "{}") -> dict[str, Any]:
    """Return a chat message with one call."""
    made = [{"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}]
    return {"role": "assistant", "content": None, "tool_calls": made}


def stays(messages: Any, **options: Any) -> suture.Repaired[Any]:
    """Repair `messages`; assert that a second repair leaves the outcome alone."""
    fixed = suture.repair(messages, **options)
    assert suture.repair(fixed.messages, **options).messages is fixed.messages
    return fixed


def test_a_signed_part_without_text_is_not_empty() -> None:
    """Gemini ends a stream with such a part; what is signed is never dropped."""
    contents = [
        {"role": "user", "parts": [{"text": "hi"}]},
        {"role": "model", "parts": [{"text": "", "thoughtSignature": "abc"}]},
        {"role": "user", "parts": [{"text": "and?"}]},
    ]
    assert suture.repair(contents).messages is contents


def test_the_result_of_a_signed_call_without_a_name_stays_with_it() -> None:
    """The call cannot be named, so naming its result alone would part them."""
    contents = [
        {"role": "user", "parts": [{"text": "hi"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "", "args": {}}, "thoughtSignature": "s"}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "", "response": {"r": "REAL"}}}]},
    ]
    fixed = stays(contents)
    assert fixed.messages[-1] == contents[-1]
    assert [finding.problem for finding in fixed.unresolved] == ["missing-name"]


def test_media_stay_where_they_are_while_their_turn_waits_for_more() -> None:
    """A user message behind the first result would cut the second call off."""
    picture = {"type": "image_url", "image_url": {"url": "u"}}
    turn = {"role": "assistant", "content": None, "tool_calls": [*call("a")["tool_calls"], *call("b")["tool_calls"]]}
    messages = [turn, {"role": "tool", "tool_call_id": "a", "content": [picture]}]
    fixed = stays(messages, tail="keep")
    assert fixed.messages is messages
    assert [item.call_id for item in fixed.pending] == ["b"]
    assert suture.check(messages, tail="keep").acceptable
    answered = suture.repair([*messages, {"role": "tool", "tool_call_id": "b", "content": "2"}], tail="keep")
    assert [message["role"] for message in answered.messages] == ["assistant", "tool", "tool", "user"]


@pytest.mark.parametrize("output", [{"call_id": "ctc_1"}, {"call_id": ""}])
def test_an_output_never_answers_a_call_of_another_type(output: dict[str, str]) -> None:
    """Neither by the item's id nor for want of any id."""
    items = [
        {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c1", "name": "sql", "input": "x"},
        {"type": "function_call_output", "output": "42", **output},
    ]
    fixed = stays(items)
    assert [item.get("type", item.get("role")) for item in fixed.messages] == [
        "custom_tool_call",
        "custom_tool_call_output",
        "user",
    ]


def test_a_placeholder_without_an_id_stays_with_its_own_call() -> None:
    """Even beside a call that no placeholder can answer."""
    items = [
        {
            "type": "computer_call",
            "id": "cu_1",
            "call_id": "a",
            "action": {"type": "screenshot"},
            "status": "completed",
        },
        {"type": "custom_tool_call", "call_id": "", "name": "sql", "input": "x"},
    ]
    for profile in ("pairing", "openai-responses"):
        fixed = stays(items, wire="openai-responses", profile=profile)
        assert len(fixed.messages) == 3


def test_the_older_form_and_the_newer_one_do_not_answer_each_other() -> None:
    """A function message has no place for an id, a tool message none for a name alone."""
    fixed = stays([call("a"), {"role": "function", "name": "f", "content": "42"}])
    assert [message["role"] for message in fixed.messages] == ["assistant", "tool", "user"]
    older = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    fixed = stays([older, {"role": "tool", "tool_call_id": "", "content": "42"}])
    assert [message["role"] for message in fixed.messages] == ["assistant", "function", "user"]


def test_a_message_in_both_forms_has_both_calls() -> None:
    """Each is answered in its own form."""
    both = {**call("a"), "function_call": {"name": "g", "arguments": '{"q": '}}
    fixed = stays([both, {"role": "function", "name": "g", "content": "42"}])
    assert [message["role"] for message in fixed.messages] == ["assistant", "tool", "function"]
    assert fixed.messages[0]["function_call"]["arguments"] == "{}"
    assert fixed.messages[2]["content"] == "42"


def test_a_reference_that_comes_later_does_not_change_what_was_an_orphan() -> None:
    """So a repairer that grows agrees with a repair of the whole."""
    items = [
        {"type": "function_call_output", "call_id": "x", "output": "42"},
        {"role": "user", "content": "hi"},
        {"type": "item_reference", "id": "fc_1"},
    ]
    grown = suture.Repairer[Any](wire="openai-responses")
    for item in items:
        grown.extend([item])
    assert grown.messages == list(suture.repair(items).messages)
    assert grown.messages[0]["role"] == "user"


def test_a_view_of_a_repairers_messages_shows_what_a_late_result_changed() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    repairer = suture.Repairer[Any]()
    view = repairer.messages
    repairer.extend([{"role": "user", "content": "go"}, {"role": "assistant", "tool_calls": [call]}])
    repairer.extend([{"role": "user", "content": "so"}, {"role": "assistant", "content": "ok"}])
    repairer.extend([{"role": "user", "content": "and"}, {"role": "tool", "tool_call_id": "a", "content": "1"}])
    assert [message["role"] for message in view] == ["user", "assistant", "tool", "user", "assistant", "user"]
    assert view[2]["content"] == "1"


def test_an_iterable_that_breaks_off_adds_nothing() -> None:
    """What it gave before is not half taken."""

    def broken() -> Iterator[Any]:
        yield {"role": "user", "content": "lost"}
        raise OSError("gone")

    repairer = suture.Repairer[Any]([{"role": "user", "content": "hi"}], wire="openai-chat")
    with pytest.raises(OSError, match="gone"):
        repairer.extend(broken())
    repairer.extend([{"role": "user", "content": "on"}])
    assert [message["content"] for message in repairer.messages] == ["hi", "on"]


def test_a_pending_call_is_told_by_the_id_its_result_must_carry() -> None:
    """The id in the output, where it had to be renamed."""
    messages = [call("x" * 50)]
    fixed = suture.repair(messages, tail="keep")
    grown = suture.Repairer[Any](messages, tail="keep")
    assert fixed.pending[0].call_id == fixed.messages[0]["tool_calls"][0]["id"]
    assert grown.pending == fixed.pending
    result = {"role": "tool", "tool_call_id": fixed.pending[0].call_id, "content": "42"}
    assert suture.check([*fixed.messages, result]).acceptable


def test_a_result_that_holds_a_picture_is_no_placeholder_whatever_it_says() -> None:
    """Built-in text beside media is a real result: it is neither dropped nor reworded."""
    text = "Tool call f with id a.b was not run - it was rejected."
    content = [{"type": "text", "text": text}, {"type": "image", "source": {"type": "url", "url": "u"}}]
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a.b", "content": content}]}
    orphaned = suture.repair([result])
    assert [item.content for item in orphaned.report.displaced] == [content]
    used = {"role": "assistant", "content": [{"type": "tool_use", "id": "a.b", "name": "f", "input": {}}]}
    renamed = suture.repair([used, result])
    assert renamed.messages[1]["content"][0]["content"] == content


def test_arguments_in_the_wrong_form_are_not_told_as_malformed() -> None:
    """They are kept, so the cause is another."""
    fixed = suture.repair([call("a", arguments={"q": 1}), {"role": "user", "content": "stop"}])
    assert "canceled" in fixed.messages[1]["content"]


@pytest.mark.parametrize("arguments", ['{"a": "\\ud800"}', '{"a": 1e999}'])
def test_arguments_that_cannot_be_read_as_an_object_become_empty(arguments: str) -> None:
    """Text that only looks like one never escapes as a foreign error."""
    used = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": arguments}]}
    fixed = suture.repair([used, {"role": "user", "content": "on"}], wire="anthropic")
    assert str(fixed.messages[0]).endswith("'input': {}}]}")


def test_a_part_that_the_sdk_does_not_know_is_kept_as_plain_data() -> None:
    """Merging it into the SDK's own content would lose it or fail."""
    contents = [
        types.Content(role="user", parts=[types.Part(text="one")]),
        {"role": "user", "parts": [{"text": "two", "mystery": 1}]},
    ]
    fixed = suture.repair(contents)
    assert fixed.messages == [{"role": "user", "parts": [{"text": "one"}, {"text": "two", "mystery": 1}]}]


def test_a_generator_whose_text_cannot_be_sent_is_told_so() -> None:
    """The fault is the generator's, not the history's."""
    with pytest.raises(suture.ConfigError, match="lone surrogate"):
        suture.repair([call("a")], generator=lambda *_: "\ud800")


def test_many_neighbours_of_one_role_are_merged_into_one() -> None:
    """All of them, in their order."""
    contents = [{"role": "user", "parts": [{"text": str(number)}]} for number in range(400)]
    fixed = suture.repair(contents)
    assert fixed.messages == [{"role": "user", "parts": [{"text": str(number)} for number in range(400)]}]


def test_a_turn_that_nothing_can_answer_is_not_told_to_be_out_of_order() -> None:
    """It has no results that could be put anywhere, so the list stays as it is but for what lies between."""
    shot = {"type": "computer_call", "id": "cu_1", "call_id": "a", "action": {"type": "screenshot"}}
    items = [
        shot,
        {"type": "function_call_output", "call_id": "z", "output": "42"},
        {**shot, "id": "cu_2", "call_id": "b"},
    ]
    whole = suture.repair(items, orphans="drop")
    grown = suture.Repairer[Any](wire="openai-responses", orphans="drop")
    for item in items:
        grown.extend([item])
    assert [finding.problem for finding in whole.report.findings] == ["dangling", "orphan", "dangling"]
    assert grown.report == whole.report
    assert grown.messages == list(whole.messages)


def test_a_displaced_response_keeps_its_pictures() -> None:
    """What is not whole in the output is whole in `displaced`."""
    response = {
        "name": "f",
        "response": {"result": "see"},
        "parts": [{"inlineData": {"mimeType": "image/png", "data": "AA=="}}],
    }
    fixed = suture.repair([{"role": "user", "parts": [{"functionResponse": response}]}])
    assert [item.content for item in fixed.report.displaced] == [response]


def test_a_profile_of_one_s_own_is_taken_as_it_is():
    own = msgspec.structs.replace(
        get_profile("openai-chat"), name="ours", ids=IdForm(pattern="[a-z]{3}", prefix="", length=3)
    )
    history = write("openai-chat", [("user", "go"), ("turn", [("call_1", "f", "{}")]), ("result", "call_1", "f", "42")])
    fixed = suture.repair(history, profile=own)
    assert fixed.report.profile == "ours"
    assert re.fullmatch("[a-z]{3}", fixed.messages[1]["tool_calls"][0]["id"])
    assert suture.Repairer(history, wire="openai-chat", profile=own).messages == fixed.messages
    never = msgspec.structs.replace(own, ids=IdForm(pattern="[a-z]{3}", length=3))
    with pytest.raises(suture.ConfigError, match="no id like 'call_' fits"):
        suture.repair(history, profile=never)


@pytest.mark.parametrize("spelling", ["canceled", "cancelled"])
def test_a_placeholder_whose_call_gets_another_id_keeps_its_spelling(spelling: str):
    text = f"Tool call f with id a was {spelling} - another message came in before it could be completed."
    turn, answered = ("turn", [("a", "f", "{}")]), ("result", "a", "f", text)
    fixed = suture.repair(
        write("anthropic", [("user", "go"), turn, answered, ("say", "so"), ("user", "go"), turn, answered])
    )
    [block] = fixed.messages[6]["content"]
    assert block["tool_use_id"] != "a"
    assert block["content"] == text.replace("id a", f"id {block['tool_use_id']}")


# Why results are missing, while a history grows


def test_a_growing_history_is_told_why_results_are_missing_as_a_whole_one_is():
    ask, stop = {"role": "user", "content": "go"}, {"role": "user", "content": "stop"}
    function = {"name": "f", "arguments": "{}"}
    turn = {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": function}]}
    growing = suture.Repairer([ask], wire="openai-chat")
    growing.extend([turn], causes={(1, 0): "rejected"})
    growing.extend([stop])
    whole = suture.repair([ask, turn, stop], wire="openai-chat", causes={(1, 0): "rejected"})
    assert growing.messages == whole.messages
    assert growing.messages[2]["content"] == "Tool call f with id a was not run - it was rejected."


def test_what_was_told_with_messages_that_were_refused_is_forgotten():
    ask, stop = {"role": "user", "content": "go"}, {"role": "user", "content": "stop"}
    function = {"name": "f", "arguments": "{}"}
    turn = {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": function}]}
    growing = suture.Repairer([ask], wire="openai-chat")
    with pytest.raises(suture.InputError):
        growing.extend([turn, {"role": "nobody"}], causes={(1, 0): "rejected"})
    assert growing.extend([turn, stop]).messages[2]["content"].startswith("Tool call f with id a was canceled")


def test_a_cause_that_comes_behind_the_messages_is_told_as_of_a_whole_history():
    ask, stop = {"role": "user", "content": "go"}, {"role": "user", "content": "stop"}
    history = [ask, call("a"), stop, call("b"), stop, stop]
    growing = suture.Repairer(history, wire="openai-chat")
    growing.extend([], causes={(1, 0): "rejected"})
    growing.extend([ask], causes={(3, 0): "stopped"})
    causes: dict[tuple[int, int], str] = {(1, 0): "rejected", (3, 0): "stopped"}
    assert growing.messages == suture.repair([*history, ask], wire="openai-chat", causes=causes).messages


@pytest.mark.parametrize("place", [(0, 0), (1, 1), (1, -1), (3, 0), (-2, 0)])
def test_a_cause_of_no_call_is_an_error_while_a_history_grows_too(place: tuple[int, int]):
    ask, stop = {"role": "user", "content": "go"}, {"role": "user", "content": "stop"}
    growing = suture.Repairer([ask], wire="openai-chat")
    with pytest.raises(suture.ConfigError, match="not there"):
        growing.extend([call("a"), stop], causes={place: "rejected"})
    assert growing.messages == [ask]
    assert growing.extend([call("a"), stop]).messages == suture.repair([ask, call("a"), stop]).messages


def test_a_repairer_that_starts_again_forgets_why_results_are_missing():
    ask, stop = {"role": "user", "content": "go"}, {"role": "user", "content": "stop"}
    growing = suture.Repairer(wire="openai-chat")
    growing.extend([ask, call("a"), stop], causes={(1, 0): "rejected"})
    growing.reset([ask, call("b"), stop])
    assert growing.messages == suture.repair([ask, call("b"), stop]).messages
    growing.reset([ask, call("c"), stop], causes={(1, 0): "stopped"})
    assert growing.messages == suture.repair([ask, call("c"), stop], causes={(1, 0): "stopped"}).messages


def test_a_repairer_that_cannot_start_again_is_as_it_was():
    ask, stop = {"role": "user", "content": "go"}, {"role": "user", "content": "stop"}
    growing = suture.Repairer(wire="openai-chat")
    growing.extend([ask, call("a"), stop], causes={(1, 0): "rejected"})
    before = list(growing.messages)
    for messages, causes in (([ask, {"role": "nobody"}], {}), ([ask], {(3, 0): "stopped"})):
        with pytest.raises(suture.SutureError):
            growing.reset(messages, causes=causes)
        assert growing.messages == before
    whole = suture.repair([ask, call("a"), stop, ask], causes={(1, 0): "rejected"})
    assert growing.extend([ask]).messages == whole.messages


def test_causes_may_be_known_before_the_messages_come():
    ask, stop = {"role": "user", "content": "go"}, {"role": "user", "content": "stop"}
    growing = suture.Repairer(wire="openai-chat", causes={(1, 0): "rejected"})
    for message in (ask, call("a"), stop):
        growing.extend([message])
    assert growing.messages == suture.repair([ask, call("a"), stop], causes={(1, 0): "rejected"}).messages


def test_a_cause_may_name_a_call_that_waits():
    history = [{"role": "user", "content": "go"}, call("a")]
    fixed = suture.repair(history, tail="keep", causes={(1, 0): "rejected"})
    assert fixed.messages is history
    assert [pending.call_id for pending in fixed.pending] == ["a"]
