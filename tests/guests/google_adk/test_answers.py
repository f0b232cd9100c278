"""Answers: their order, and those without a call."""

from itertools import pairwise

import pytest
from google.adk.events import Event
from google.genai import types

from suture.integrations.google_adk import PatchToolCallsPlugin
from tests.guests.google_adk.recording import answers, asks, event, said, sent, unknown

ASK = said("Pay Bo.", "user")


@pytest.mark.parametrize(
    "given",
    [
        [asks("a", "b", "c"), answers(b="two")],
        [asks("a", "b", "c"), answers(a="one", c="three")],
        [asks("a", "b", "c"), answers(c="three"), said("c is paid."), answers(b="two")],
        [asks("a", "b"), asks("c"), answers(b="two", c="three")],
        [asks("a", "b"), asks("c", "d"), answers(a="one", c="three")],
        [asks("a", "b"), answers(a="pending"), answers(b="two"), answers(a="one")],
        [asks("a", "b"), answers(b="two"), said("b is paid."), answers(a="one")],
    ],
)
def test_the_answers_of_a_turn_are_in_the_order_of_its_calls(given: list[types.Content]):
    request = sent([event(each) for each in (ASK, *given)], [PatchToolCallsPlugin()])
    for (role, turn), (_, atoms) in pairwise(request):
        called = [atom[2] for atom in turn if atom[0] == "call"]
        if role == "model" and called:
            assert [atom[2] for atom in atoms if atom[0] == "answer"] == called
    asked = [part.function_call.id for each in given for part in each.parts or () if part.function_call]
    assert [atom[2] for _, atoms in request for atom in atoms if atom[0] == "call"] == asked
    real = {atom[2]: atom[3]["result"] for _, atoms in request for atom in atoms if "result" in atom[-1]}
    answered = [each.function_response for content in given for each in content.parts or () if each.function_response]
    assert real == {each.id: (each.response or {})["result"] for each in answered}  # of several the last
    words = [atom[1] for _, atoms in request for atom in atoms if atom[0] == "text"]
    assert words == ["Pay Bo.", *[part.text for each in given for part in each.parts or () if part.text], "Go on."]


def test_answers_that_came_one_by_one_are_not_taken_for_each_other_where_the_model_gets_no_ids():
    """ADK takes the ids away that it gave itself, and leaves the answers in the order of their coming."""
    asked = asks("adk-a", "adk-b")
    given = [answers(**{"adk-b": "two"}), answers(**{"adk-a": "one"}), said("Done.")]
    events = [event(each) for each in (ASK, asked, *given)]
    alone, with_it = (sent(events, plugins)[2][1] for plugins in ([], [PatchToolCallsPlugin()]))
    assert [atom[3]["result"] for atom in alone] == ["two", "one"]
    assert [atom[3]["result"] for atom in with_it] == ["one", "two"]


@pytest.mark.parametrize("ids", ["b", "ab", "bc", "abc", "bcd"])
def test_an_answer_beside_one_without_a_call_stays_an_answer(ids: str):
    """The first of them are lost, or the last, or those in the middle."""
    given = answers(z="lost", b="paid", **({"d": "paid"} if "d" in ids else {}))
    *real, (kind, text), go = sent([event(each) for each in (ASK, asks(*ids), given)], [PatchToolCallsPlugin()])[2][1]
    assert real == [("answer", "pay", each, {"result": "paid"} if each in "bd" else unknown(each)) for each in ids]
    assert (kind, go) == ("text", ("text", "Go on."))
    assert "lost" in text


def test_answers_without_calls_can_be_left_to_adk_which_drops_them():
    events = [event(each) for each in (ASK, answers(z="paid"), said("I see."))]
    assert sent(events, [PatchToolCallsPlugin(orphans="drop")]) == sent(events, [])


def test_an_answer_without_an_id_goes_by_the_name_of_a_call_without_one():
    def answer(name: str) -> Event:
        given = types.FunctionResponse(name=name, response={"result": "paid"})
        return event(types.Content(role="user", parts=[types.Part(function_response=given)]))

    events = [event(ASK), event(asks(None)), answer("pay"), answer("send"), event(said("I see."))]
    answered, (kind, text) = sent(events, [PatchToolCallsPlugin()])[2][1]
    assert (answered, kind) == (("answer", "pay", None, {"result": "paid"}), "text")
    assert "(send)" in text


def test_an_answer_without_a_call_that_only_says_that_there_is_none_is_left_to_adk():
    stray = types.FunctionResponse(id="z", name="pay", response=unknown("z"))
    events = [event(ASK), event(types.Content(role="user", parts=[types.Part(function_response=stray)]))]
    assert sent(events, [PatchToolCallsPlugin()]) == sent(events, [PatchToolCallsPlugin(orphans="drop")])


def test_what_people_answered_adk_is_not_told_as_text():
    events = [event(ASK), event(answers("adk_request_confirmation", z="yes"), "user"), event(said("I see."))]
    assert sent(events, [PatchToolCallsPlugin()]) == sent(events, [])
