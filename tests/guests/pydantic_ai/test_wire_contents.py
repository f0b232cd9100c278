"""The wire: what results hold, what can be attached to them, and what a model reads."""

from typing import Any

import pytest
from pydantic_ai.messages import (
    BinaryContent,
    CachePoint,
    CompactionPart,
    FilePart,
    ImageUrl,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    SystemPromptPart,
    TextContent,
    ThinkingPart,
    ToolReturnPart,
    UserPromptPart,
)

import suture
from suture.messages import TextPart as Text
from suture.wires import CallEdit, ResultEdit, get_wire
from tests.guests.pydantic_ai.written import WHEN, asks, gives, results, says, shape, user
from tests.guests.releases import since

WIRE = get_wire("pydantic-ai")


CONTENTS: list[tuple[Any, tuple[str, bool]]] = [
    ("42", ("42", True)),
    (None, ("", True)),
    ({"found": [1]}, ('{"found":[1]}', True)),
    (["a", "b"], ('["a","b"]', True)),
    (["a", ImageUrl("https://example.com/cat.png")], ("a", False)),
]


@pytest.mark.parametrize(("content", "expected"), CONTENTS)
def test_the_text_of_a_result_is_what_a_model_reads(content: Any, expected: tuple[str, bool]):
    (result,) = WIRE.view(results(gives("a", content))).results
    assert WIRE.result_text(result) == expected


def test_results_that_say_the_same_are_one_whatever_they_are():
    history = [user("ask"), asks("a"), results(gives("a", {"n": [1]}), gives("a", {"n": [1]}))]
    fixed = suture.repair(history)
    assert shape(fixed.messages)[2] == ["a={'n': [1]}"]
    assert fixed.report.displaced == ()


CYCLE: dict[str, Any] = {}
CYCLE["found"] = CYCLE


@pytest.mark.parametrize("content", [{"found": object()}, CYCLE], ids=["object", "cycle"])
def test_a_result_that_pydantic_cannot_write_does_not_hinder_the_repair_of_others(content: Any):
    given = gives("b", content)
    fixed = suture.repair([user("ask"), asks("a", "b"), results(given)], profile="anthropic")
    assert [finding.problem for finding in fixed.report.findings] == ["dangling"]
    assert fixed.messages[2].parts[1] is given


def test_a_result_is_taken_apart_and_put_together_again():
    picture = ImageUrl("https://example.com/cat.png")
    message = results(gives("a", ["long", picture]))
    (result,) = WIRE.view(message).results
    parts = WIRE.result_parts(result)
    assert parts is not None
    text, raw = parts
    edited = WIRE.edit(message, {}, {0: ResultEdit(parts=[Text("short"), raw])})
    assert edited.parts[0].content == ["short", picture]
    assert WIRE.edit(message, {}, {0: ResultEdit(parts=[text, raw])}).parts[0].content is message.parts[0].content  # pyright: ignore[reportAttributeAccessIssue]
    assert WIRE.edit(message, {}, {0: ResultEdit(text="short")}).parts[0].content == "short"


def test_something_can_be_attached_to_a_message_and_to_a_result():
    message = ModelRequest([gives("a", "42")], metadata={"own": 1})
    marked = WIRE.with_extra(message, {"mine": 2})
    assert WIRE.extra_of(marked) == {"own": 1, "mine": 2}
    assert message.metadata == {"own": 1}
    assert WIRE.extra_of(user("hi")) == {}
    assert WIRE.with_extra(message, {}) is message
    (part,) = WIRE.edit(message, {}, {0: ResultEdit(extra={"mine": 2})}).parts
    assert part.metadata == {"mine": 2}
    assert WIRE.view(results(part)).results[0].extra == {"mine": 2}


def test_metadata_that_is_no_mapping_stays_as_it_is():
    own = ToolReturnPart("search", "42", "a", metadata=["own"], timestamp=WHEN)
    message = results(own)
    assert WIRE.view(message).results[0].extra == {}
    assert WIRE.edit(message, {}, {0: ResultEdit(extra={"mine": 2})}).parts[0].metadata == ["own"]


def test_a_call_is_edited_field_by_field():
    message = asks("a")
    (part,) = WIRE.edit(message, {0: CallEdit(name="find", arguments={"q": 2})}, {}).parts
    assert (part.tool_call_id, part.tool_name, part.args) == ("a", "find", {"q": 2})


PICTURE = BinaryContent(b"x", media_type="image/png")
WORDS: list[tuple[Any, tuple[str, ...], int]] = [
    (says("hi"), ("assistant", "hi"), 0),
    (user("hi"), ("user", "hi"), 0),
    (ModelRequest([SystemPromptPart("be brief")]), ("system", "be brief"), 0),
    (asks("a"), ("assistant", "search", '{"q":"x"}'), 0),
    (results(gives("a", {"n": 1})), ("user", '{"n":1}'), 0),
    (results(gives("a", ["so", PICTURE])), ("user", "so"), 1),
    (ModelRequest([UserPromptPart(["a", TextContent("b"), CachePoint(), PICTURE])]), ("user", "a", "b"), 1),
    (ModelResponse([ThinkingPart("hm"), FilePart(PICTURE)]), ("assistant", "hm"), 1),
    (ModelResponse([CompactionPart("in short")]), ("assistant", "in short"), 0),
    (ModelResponse([NativeToolCallPart("web", {"q": 1})]), ("assistant", "web", '{"q":1}'), 0),
    (ModelResponse([NativeToolReturnPart("web", "found")]), ("assistant", "web", "found"), 0),
]


@pytest.mark.parametrize(("message", "texts", "media"), WORDS)
def test_the_words_of_a_message_are_what_a_model_reads(message: Any, texts: tuple[str, ...], media: int):
    assert WIRE.words(message) == (texts, media)


@since("pydantic-ai-slim", "2.59", "baselines of instructions")
def test_a_baseline_of_instructions_has_no_words():
    from pydantic_ai.messages import InstructionBaselinePart

    assert WIRE.words(ModelRequest([InstructionBaselinePart(instructions=[])])) == (("user",), 0)
