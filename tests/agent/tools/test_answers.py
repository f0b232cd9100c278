"""Answers of a type: which types, what they are asked for as, and what is read from a reply."""

import dataclasses
import enum
import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suture import AgenticMessage, ChatModelAgent, ConfigError, Message, OutputError, ToolCall, tool
from suture.kernel.answers import make_output_rule, past_thoughts
from suture.messages import AssistantGenText, ResponseMeta, TextPart
from suture.testing import ScriptedModel

Big = Annotated[int, pydantic.Field(gt=3)]


class Item(pydantic.BaseModel):
    name: str
    price: float = pydantic.Field(gt=0)


class Other(pydantic.BaseModel):
    depth: int


@dataclasses.dataclass
class Order:
    item: Item
    at: Path = Path()


class Limits(TypedDict):
    most: Big


class Ship(msgspec.Struct):
    length: Big


class Tree(pydantic.BaseModel):
    name: str
    parts: list["Tree"] = []


class Color(enum.Enum):
    RED = "red"


ITEM = '{"name": "rope", "price": 2}'
ROPE = Item(name="rope", price=2)


def answer(output_type: Any, *replies: Any) -> Any:
    agent: Any = ChatModelAgent(model=ScriptedModel(replies), output_type=output_type)
    return agent.run_sync("hi").output


@pytest.mark.parametrize(
    ("output_type", "reply", "value"),
    [
        (list[Item], f"[{ITEM}]", [ROPE]),
        (dict[str, Item], f'{{"a": {ITEM}}}', {"a": ROPE}),
        (Item | None, ITEM, ROPE),
        (Item | None, "null", None),
        (Item | Other, '{"depth": 3}', Other(depth=3)),
        ([Item, Other], '{"depth": 3}', Other(depth=3)),
        (Item | str, ITEM, ROPE),
        (Item | str, "Which rope?", "Which rope?"),
        (Item | str, "Which {rope} [sic]?", "Which {rope} [sic]?"),
        (Item | str, '"Which rope?"', "Which rope?"),
        (Item | str, "<think>A rope.</think>Which?", "Which?"),
        (Order, f'{{"item": {ITEM}, "at": "/a"}}', Order(ROPE, Path("/a"))),
        (Ship, '{"length": 4}', Ship(4)),
        (Limits, '{"most": 4}', {"most": 4}),
        (Big, "4", 4),
        (list[Big], "[4, 5]", [4, 5]),
        (bool, "true", True),
        (int, '"5"', 5),
        (Literal["yes", "no"], '"yes"', "yes"),
        (Literal["yes", "no"], "yes", "yes"),
        (Color, "red", Color.RED),
        (date, "2026-01-01", date(2026, 1, 1)),
        (Path, '"/a"', Path("/a")),
        (tuple[int, str], '[1, "a"]', (1, "a")),
        (Tree, '{"name": "a", "parts": [{"name": "b"}]}', Tree(name="a", parts=[Tree(name="b")])),
        (dict, "{}", {}),
        (Any, '{"answer": 3}', 3),
    ],
)
def test_whatever_a_parameter_takes_an_answer_takes(output_type: Any, reply: str, value: Any):
    assert answer(output_type, reply) == value


@pytest.mark.parametrize("output_type", [list[Item], Item | None, Item | Other, bool, Big, Color, Literal["a", 1]])
def test_what_is_no_object_is_asked_for_inside_of_one(output_type: Any):
    rule = make_output_rule(output_type)
    assert rule is not None
    assert rule.schema["type"] == "object"
    assert list(rule.schema["properties"]) == rule.schema["required"] == ["answer"]
    assert rule.schema["additionalProperties"] is False
    assert '"answer"' in rule.instruction


@pytest.mark.parametrize(
    ("output_type", "reply", "value"),
    [
        (list[int], '{"answer": [1]}', [1]),
        (Item | str, f'{{"answer": {ITEM}}}', ROPE),
        (Item | str, '{"answer": "Which?"}', "Which?"),
        (bool, '{"answer": false}', False),
        (Item, f'{{"answer": {ITEM}}}', ROPE),
        (dict[str, int], '{"answer": 3}', {"answer": 3}),
        (dict, '{"answer": {"a": 1}}', {"answer": {"a": 1}}),
    ],
)
def test_both_forms_are_read(output_type: Any, reply: str, value: Any):
    assert answer(output_type, reply) == value


def test_an_object_whose_field_is_called_answer_is_itself():
    class Reply(msgspec.Struct):
        answer: int

    assert answer(Reply, '{"answer": 3}') == Reply(3)
    assert answer(Reply | None, '{"answer": {"answer": 3}}') == Reply(3)


@pytest.mark.parametrize(
    ("output_type", "wrong", "problem"),
    [
        (Big, "3", "answer: expected int > 3"),
        (Limits, '{"most": 3}', "answer.most: expected int > 3"),
        (Ship, '{"length": 3}', "answer.length: expected int > 3"),
        (list[Big], "[4, 3]", r"answer\[1\]: expected int > 3"),
        (Item, '{"name": "rope", "price": 0}', "answer.price: input should be greater than 0"),
        (list[Item], "[1]", r"answer\[0\]: "),
        (Item, "Here it is: {}", "answer.name: "),
        (Item, "No idea.", "answer is not valid JSON: "),
        (Item, "<think>A rope: {}", "the <think> at its beginning is not closed"),
        (Literal["yes", "no"], "maybe", "answer is not valid JSON: "),
        (int, "It is 4.", "answer is not valid JSON: "),
    ],
)
def test_an_answer_that_does_not_fit_is_sent_back_with_what_is_wrong(output_type: Any, wrong: str, problem: str):
    with pytest.raises(OutputError, match=f"after 2 corrections: .*{problem}"):
        answer(output_type, wrong, wrong, wrong)


@pytest.mark.parametrize(("wrong", "why"), [([], "an empty list"), (type(len), "a model cannot write")])
def test_a_type_without_json_is_refused_when_the_agent_is_made(wrong: Any, why: str):
    with pytest.raises(ConfigError, match=f"output_type.*{why}"):
        answer(wrong)


# --- what stands around the value -----------------------------------------------------------------

PROSE = '{"x": 1} is no item, [nor this], but {maybe} this: '


@pytest.mark.parametrize(
    "reply",
    [
        f"Sure!\n```json\n{ITEM}\n```\nHope it helps.",
        f"~~~\n{ITEM}\n~~~",
        f"```\n{ITEM}",
        f"Here it is: {ITEM} Bye.",
        PROSE + ITEM,
        f'{{"name": "draft", "price": 1}}\nNo, rather:\n{ITEM}',
        f'{ITEM}\nAn item has no other form, such as {{"name": 3}}.',
        f"<think>A draft: {ITEM.replace('2', '1')}</think>\n{ITEM}",
        f"<thinking>so</thinking><reasoning>and so</reasoning> {ITEM}",
        f"<seed:think>so</seed:think>{ITEM}",
        f"[THINK]so[/THINK]{ITEM}",
        f'so, perhaps {{"name": "x", "price": 9}}?</think>\n{ITEM}',
        f"<think></think>\n\n```json\n{ITEM}\n```",
        f"[{ITEM.replace('rope', 'x')} is what I had in mind first. {ITEM}",
    ],
)
def test_one_value_is_read_past_what_stands_around_it(reply: str):
    assert answer(Item, reply) == ROPE


def test_braces_in_texts_are_no_objects():
    reply = 'Sure: {"name": "a } { \\" [x", "price": 2} {'
    assert answer(Item, reply) == Item(name='a } { " [x', price=2)


@pytest.mark.parametrize(
    "reply",
    [
        '{"kind": "a", "inner": {"name": "rope"}, "oh',
        '{"kind": "a", "inner": {"name": "rope"}, "text": "and {\\"name\\": 3}',
        '[{"name": "rope"}, {"na',
        '{"kind": "a", "text": "and {} or []',
        '{\n"inner":\n{"name": "rope"}\n,',
    ],
)
@pytest.mark.parametrize("output_type", [dict, Tree, Tree | str, list[Tree]])
def test_what_is_inside_of_broken_json_is_no_answer(reply: str, output_type: Any):
    rule = make_output_rule(output_type)
    assert rule is not None
    if output_type == Tree | str:
        assert rule.read(reply, False) == reply
        return
    with pytest.raises(ValueError, match="not valid JSON"):
        rule.read(reply, False)


@pytest.mark.parametrize(
    "reply",
    [
        f"<think>Perhaps {ITEM}?</think>I cannot decide.",
        f"Well. <think>Perhaps {ITEM}?</think> I cannot decide.",
        f"Well. <think>\n```\n{ITEM}\n```\n",
        f"so, perhaps {ITEM}?</think> I cannot decide.",
    ],
)
def test_what_is_inside_of_a_thought_is_no_answer(reply: str):
    with pytest.raises(OutputError, match="not valid JSON"):
        answer(Item, reply, reply, reply)


def test_a_thought_behind_the_answer_does_not_count():
    assert answer(Item, f'{ITEM} <think>Or {{"name": "x", "price": 9}}?</think>') == ROPE
    assert answer(Item, 'So: {"name": "</think>", "price": 2}') == Item(name="</think>", price=2)


def test_what_stands_alone_in_the_end_is_a_value():
    assert answer(int, "The answer is:\n\n42") == 42
    assert answer(Literal["yes", "no"], "so</think>\nyes") == "yes"
    assert answer(int, "```\n42\n```") == 42


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
WORDS = st.text(st.characters(exclude_characters="{}[]`~<>", exclude_categories=["C", "Z"]), max_size=20)


@given(
    st.dictionaries(st.text(), JSON, max_size=4) | st.lists(JSON, max_size=4),
    st.sampled_from(["", "<think>{draft} [1]</think>", "<thinking>\n</thinking>\n", "[THINK]{[/THINK] "]),
    WORDS,
    st.sampled_from(["{}", "```json\n{}\n```", "```\n{}\n```\n", "\n{}\n", '{{"answer": {}}}']),
    WORDS,
    st.sampled_from([None, 2]),
)
def test_any_json_is_read_back_from_what_is_around_it(
    value: Any, thought: str, before: str, around: str, after: str, indent: int | None
):
    kind = dict[str, Any] if isinstance(value, dict) else list[Any]
    rule = make_output_rule(kind)
    assert rule is not None
    if isinstance(value, dict) and around.startswith("{{"):
        around = "{}"  # an object is asked for as it is
    middle = around.format(json.dumps(value, indent=indent))
    assert rule.read(f"{thought}{before}\n{middle}\n{after}", False) == value


def test_many_open_brackets_are_no_answer():
    rule = make_output_rule(Item)
    assert rule is not None
    for noise in ("[" * 50_000, '{"a":' * 20_000, "{" * 50_000, "[1," * 20_000, '["' * 10_000):
        with pytest.raises(ValueError, match="not valid JSON"):
            rule.read(noise, False)


@pytest.mark.parametrize(
    "again", ["```x\n", "~~~\n", "````\n```x\n", "</think>\n", "<think>a</think>", "so <think>a</think>"], ids=repr
)
def test_a_model_that_repeats_itself_costs_time_that_grows_with_the_text(again: str):
    """A reader that looks again for each repetition takes minutes."""
    assert answer(Item, f"{again * 60_000}\n{ITEM}") == ROPE


@pytest.mark.parametrize(
    "reply",
    [
        f"````md\n```\n{ITEM}\n```\n````",
        "````md\n```\n{}\n```".format('"rope"'),
        "```\n{}\n```\n```".format('"rope"'),
        "  ~~~ text\n{}\n  ~~~~".format('"rope"'),
    ],
)
def test_a_fence_ends_where_as_many_marks_stand_alone(reply: str):
    rule = make_output_rule(Item if ITEM in reply else Literal["rope"])
    assert rule is not None
    assert rule.read(reply, False) == (ROPE if ITEM in reply else "rope")


# --- plain text -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("<think>so</think>06:12", "06:12"),
        ("\n<Thinking>so\nand so</thinking>\n\n 06:12\n", "06:12\n"),
        ("<think>a</think><think>b</think>c", "c"),
        ("<think>İ İ</think>İ", "İ"),
        ("<think>so</think>", ""),
        ("<think>so", "<think>so"),
        ("The tag <think>so</think> is one.", "The tag <think>so</think> is one."),
        ("so</think>06:12", "so</think>06:12"),
        ("<b>06:12</b>", "<b>06:12</b>"),
        (" 06:12", " 06:12"),
    ],
)
def test_thoughts_at_the_beginning_are_no_part_of_a_text(text: str, output: str):
    result = ChatModelAgent(model=ScriptedModel([text])).run_sync("hi")
    assert (result.output, past_thoughts(text)) == (output, output)
    assert result.messages[-1].content == text


def test_the_result_of_a_tool_that_ends_the_run_stays_as_it_is():
    @tool(return_directly=True)
    def look() -> str:
        """Look."""
        return "<think>a</think>b"

    ends = Message.assistant(tool_calls=[ToolCall("a", "look", "{}")])
    assert ChatModelAgent(model=ScriptedModel([ends]), tools=[look]).run_sync("hi").output == "<think>a</think>b"


# --- replies that ended early ---------------------------------------------------------------------


def ended(text: str, reason: str, word: str = "") -> Message:
    extension = {"finish_reason": word} if word else {}
    return Message("assistant", text, response_meta=ResponseMeta(finish_reason=reason, extension=extension))


REFUSED = {"extension": {"refusal": True}}
EARLY: Sequence[Any] = [
    (ended('{"name": "ro', "length"), "cut off before the answer was whole.*max_tokens.*word: length"),
    (ended("", "length", "MAX_TOKENS"), "word: MAX_TOKENS"),
    (ended("I will not.", "content_filter", "refusal"), "refused to answer.*word: refusal.*It said: 'I will not.'"),
    (ended("", "content_filter", "SAFETY"), "content filter ended the reply.*word: SAFETY"),
    (Message("assistant", assistant_gen_multi_content=[TextPart("No.", extra=REFUSED)]), "refused.*It said: 'No.'"),
    (AgenticMessage("assistant", [AssistantGenText("No.", extension={"refusal": True})]), "refused.*'No.'"),
    ({"role": "assistant", "content": None, "refusal": "No."}, "refused.*'No.'"),
]


@pytest.mark.parametrize(("reply", "said"), EARLY)
@pytest.mark.parametrize("output_type", [Item, Item | str, int])
def test_a_reply_that_ended_early_is_not_asked_for_again(reply: Any, said: str, output_type: Any):
    wire = "openai-chat" if isinstance(reply, dict) else "agentic" if isinstance(reply, AgenticMessage) else "message"
    model = ScriptedModel([reply], wire)
    with pytest.raises(OutputError, match=f"there is no answer of output_type: .*{said}"):
        ChatModelAgent(model=model, output_type=output_type).run_sync("hi")
    assert len(model.requests) == 1


def test_an_answer_that_was_whole_when_the_reply_was_cut_counts():
    assert answer(Item, ended(f"{ITEM} And I", "length")) == ROPE
    with pytest.raises(OutputError, match="cut off"):
        answer(int, ended("4", "length"))  # perhaps 42


def test_a_refusal_to_an_agent_of_text_is_its_text():
    assert answer(str, ended("I will not.", "content_filter", "refusal")) == "I will not."
