"""The parts of a message stand in the order that providers demand; pydantic-ai sends them as they stand."""

from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, UserPromptPart

import suture
from tests.guests.pydantic_ai.written import WHEN, asks, gives, results, shape, user


def test_results_stand_before_all_else_in_their_request():
    history = [user("ask"), asks("a"), results(UserPromptPart("so", timestamp=WHEN), gives("a", "42"))]
    assert shape(suture.repair(history, profile="anthropic").messages)[2] == ["a=42", "so"]


def test_calls_stand_last_in_their_response():
    turn = ModelResponse([ToolCallPart("search", {}, "a"), TextPart("wait")], timestamp=WHEN)
    fixed = suture.repair([user("ask"), turn, results(gives("a", "42"))], profile="anthropic")
    assert shape(fixed.messages)[1] == ["wait", "a?"]


def test_blank_text_is_left_out():
    turn = ModelResponse([TextPart(" "), ToolCallPart("search", {}, "a")], timestamp=WHEN)
    fixed = suture.repair([user("ask"), turn, results(gives("a", "42"))], profile="bedrock")
    assert shape(fixed.messages)[1] == ["a?"]


def test_mistral_hears_from_the_model_between_results_and_the_user():
    history = [user("ask"), asks("abcdefghi"), results(gives("abcdefghi", "42"), UserPromptPart("so", timestamp=WHEN))]
    fixed = suture.repair(history, profile="mistral")
    assert shape(fixed.messages)[2:] == [["abcdefghi=42"], ["(tool results received)"], ["so"]]
