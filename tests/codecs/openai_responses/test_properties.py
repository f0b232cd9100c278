"""What holds for every history: acceptable after a repair, and the same after being written and read."""

import json
from collections.abc import Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import suture
from suture.codecs import get_codec
from suture.messages import AgenticMessage, FunctionToolResult, UserInputText, from_json, to_json
from tests.codecs.openai_responses.samples import GIVEN, MADE, PARTS, WIRE
from tests.histories import Step, write

codec = get_codec(WIRE)
ids = st.sampled_from(["a", "b", "c", "", "fn.read:0", "x" * 70])
names = st.sampled_from(["f", "g", ""])
calls = st.lists(st.tuples(ids, names, st.sampled_from(["{}", '{"q": 1}', '{"q": ', "", "[]"])), min_size=1, max_size=3)
results = st.tuples(ids, names, st.sampled_from(["real", ""]))
steps = st.one_of(
    st.tuples(st.just("user"), st.sampled_from(["hello", "again"])),
    st.tuples(st.just("system"), st.just("brief")),
    st.tuples(st.just("say"), st.sampled_from(["well", ""])),
    st.tuples(st.just("think"), st.just("so")),
    st.tuples(st.just("turn"), calls),
    results.map(lambda result: ("result", *result)),
    st.tuples(st.just("mixed"), st.lists(results, min_size=1, max_size=2), st.just("and")),
)
UNMENDED = {"lone-reasoning", "repeated-item"}
"""What stays: reasoning is encrypted, and a repair changes nothing in it."""


def one_of(samples: Iterable[str]) -> st.SearchStrategy[str]:
    return st.sampled_from(sorted(samples))


def numbered(items: list[Any], number: int) -> list[Any]:
    """Return items whose ids are those of no other sample."""
    return json.loads(json.dumps(items).replace('_9f"', f'_9f{number}"'))


made = st.lists(one_of(MADE.keys() - {"the computer"}), min_size=1, max_size=3).map(
    lambda names: codec.decode_messages([item for name in names for item in MADE[name][0]])[0]
)
told = one_of(GIVEN).map(lambda name: GIVEN[name][1])
asked = st.lists(one_of(PARTS), min_size=2, max_size=3).map(
    lambda names: AgenticMessage("user", [PARTS[name][1] for name in names])
)


@given(history=st.lists(steps, max_size=9))
def test_any_history_that_is_written_and_repaired_is_acceptable(history: list[Step]):
    fixed = suture.repair(codec.encode_messages(write("agentic", history)).payload, wire=WIRE)
    assert suture.check(fixed.messages, wire=WIRE).acceptable


@given(history=st.lists(made | told | asked, max_size=6))
def test_any_history_of_items_of_the_service_is_acceptable_too_as_far_as_a_repair_can(history: list[AgenticMessage]):
    fixed = suture.repair(codec.encode_messages(history).payload, wire=WIRE)
    report = suture.check(fixed.messages, wire=WIRE)
    assert {finding.problem for finding in report.findings} <= UNMENDED, report


@given(history=st.lists(st.tuples(one_of(MADE), one_of(GIVEN)), max_size=4))
def test_messages_of_this_wire_are_the_same_after_being_written_and_read(history: list[tuple[str, str]]):
    samples = [sample for made, given in history for sample in (MADE[made][1], GIVEN[given][1])]
    texts = [to_json([sample]).decode().replace('_9f"', f'_9f{place}"') for place, sample in enumerate(samples)]
    messages: Any = [message for text in texts for message in from_json(text.encode())]
    assert codec.decode_messages(codec.encode_messages(messages).payload) == messages
    assert codec.encode_messages(messages).losses == ()


@given(runs=st.lists(st.tuples(st.lists(one_of(MADE), min_size=1, max_size=3), one_of(GIVEN)), max_size=4))
def test_items_that_were_read_are_the_same_after_being_written(runs: list[tuple[list[str], str]]):
    samples = [MADE[name][0] if name in MADE else [GIVEN[name][0]] for made, given in runs for name in (*made, given)]
    items = [item for number, sample in enumerate(samples) for item in numbered(sample, number)]
    assert codec.encode_messages(codec.decode_messages(items)) == (items, ())


@given(texts=st.lists(st.text(min_size=1), min_size=1, max_size=4), answer=st.text(), thought=st.text())
def test_any_text_is_the_same_after_being_written_and_read(texts: list[str], answer: str, thought: str):
    reasoning = {"type": "reasoning", "summary": [{"type": "summary_text", "text": thought}], "encrypted_content": "g"}
    messages = [
        AgenticMessage("user", [UserInputText(text) for text in texts]),
        *codec.decode_messages([reasoning]),
        AgenticMessage("user", [FunctionToolResult("a", "", [UserInputText(answer)])]),
    ]
    assert codec.decode_messages(codec.encode_messages(messages).payload) == messages
