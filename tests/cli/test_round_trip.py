"""A history that is acceptable goes through `suture repair` value for value, in every container and layout."""

import json
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suture.cli import main
from suture.messages import AgenticMessage, FunctionToolCall, Message, ToolCall, message_to_dict
from tests.cli.program import DANGLING, result, run, turn

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NUMBERS = st.integers(-(10**40), 10**40) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
OWN_FIELDS = TEXTS.map("x_{}".format)
EXTRAS = st.dictionaries(OWN_FIELDS, VALUES, max_size=3)


@st.composite
def rounds(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw a user's question, perhaps with calls and their results in any order, and an answer."""
    ids = draw(st.lists(st.sampled_from(["call_a", "call_b", "call_c"]), unique=True, max_size=3))
    messages: list[dict[str, Any]] = [{"role": "user", "content": draw(TEXTS)}]
    if ids:
        messages.append(turn(*ids, arguments=json.dumps({"q": draw(TEXTS)})))
        messages += [result(call_id, draw(TEXTS)) for call_id in draw(st.permutations(ids))]
    messages.append({"role": "assistant", "content": "done " + draw(TEXTS)})
    return [{**message, **draw(EXTRAS)} for message in messages]


HISTORIES = st.lists(rounds(), min_size=1, max_size=3).map(lambda parts: [m for part in parts for m in part])
HOLDERS = st.tuples(EXTRAS, st.sampled_from(["messages", "input", "contents"]), EXTRAS)


@st.composite
def files(draw: st.DrawFn) -> tuple[str, list[Any]]:
    """Draw the text of a file, and the JSON values that must stand in it afterwards."""
    form = draw(st.sampled_from(["array", "object", "messages", "conversations"]))
    history = draw(HISTORIES)
    ascii_only = draw(st.booleans())
    if form == "messages":
        return "\n".join(json.dumps(message, ensure_ascii=ascii_only) for message in history), history
    before, key, after = draw(HOLDERS)
    held = {**before, key: history, **after}
    if form == "conversations":
        values = [held, history, *draw(st.lists(HISTORIES, max_size=2))]
        return "\n".join(json.dumps(value, ensure_ascii=ascii_only) for value in values), values
    value = held if form == "object" else history
    indent = draw(st.sampled_from([None, 0, 1, 4]))
    return json.dumps(value, indent=indent, ensure_ascii=ascii_only), [value]


def exactly(values: Iterable[Any]) -> list[str]:
    """Return values as texts that are equal only if the values, their types and the order of their keys are."""
    return [json.dumps(value) for value in values]


def repaired(text: str, *options: str) -> list[Any]:
    with TemporaryDirectory() as folder:
        path, out = Path(folder) / "in", Path(folder) / "out"
        path.write_text(text, encoding="utf-8", newline="")
        assert main(["repair", *options, str(path), "-o", str(out)]) == 0
        return values_in(out.read_text(encoding="utf-8"))


def values_in(text: str) -> list[Any]:
    """Return the JSON values of a text, whether it is one document or has one value a line."""
    decoder, values, place = json.JSONDecoder(), [], 0
    while place < len(text.rstrip("\n")):
        value, end = decoder.raw_decode(text, place)
        values.append(value)
        assert text[end] == "\n"
        place = end + 1
    return values


@given(files())
def test_an_acceptable_history_comes_back_value_for_value(file: tuple[str, list[Any]]):
    text, expected = file
    assert exactly(repaired(text, "--wire", "openai-chat")) == exactly(expected)


def chat(history: list[dict[str, Any]]) -> list[Message]:
    made: list[Message] = []
    for message in history:
        calls = [ToolCall(call["id"], "f", call["function"]["arguments"]) for call in message.get("tool_calls", ())]
        extra = {name: value for name, value in message.items() if name.startswith("x_")}
        content, call_id = message.get("content", ""), message.get("tool_call_id", "")
        made.append(Message(message["role"], content, tool_calls=tuple(calls), tool_call_id=call_id, extra=extra))
    return made


def blocks(history: list[dict[str, Any]]) -> list[AgenticMessage]:
    made: list[AgenticMessage] = []
    for message in history:
        calls = [FunctionToolCall(call["id"], "f", "{}") for call in message.get("tool_calls", ())]
        if calls:
            made.append(AgenticMessage.assistant(calls))
        elif message["role"] == "tool":
            made.append(AgenticMessage.tool_result(message["tool_call_id"], "f", message["content"]))
        else:
            made.append(AgenticMessage.user(message["content"]))
    return made


@given(HISTORIES, st.sampled_from([chat, blocks]), st.booleans())
def test_an_acceptable_native_history_comes_back_value_for_value(history: list[Any], make: Any, enveloped: bool):
    stored = [message_to_dict(message) for message in make(history)]
    value = {"schema": 1, "messages": stored} if enveloped else stored
    assert exactly(repaired(json.dumps(value))) == exactly([value])


@given(HISTORIES, st.data())
def test_a_broken_history_keeps_every_message_that_is_not_concerned(history: list[Any], data: st.DataObject):
    results = [index for index, message in enumerate(history) if message["role"] == "tool"]
    if not results:
        return
    gone = data.draw(st.sampled_from(results))
    (after,) = repaired(json.dumps([m for index, m in enumerate(history) if index != gone]), "--wire", "openai-chat")
    assert len(after) == len(history)
    kept = iter(exactly(after))
    for message in exactly(m for index, m in enumerate(history) if index != gone and m["role"] != "tool"):
        assert message in kept  # consumes: they are all there, in their order


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("held", [False, True], ids=["a list", "a list in an object"])
@pytest.mark.parametrize("history", [[*DANGLING, {"role": "user", "content": "a\n\n b"}], [result("lost")]])
def test_a_repaired_document_is_laid_out_as_one_value(history: list[Any], held: bool, indent: int | None):
    value = {"model": "m", "messages": history, "tools": [[], {}]} if held else history
    done = run("repair", "--orphans", "drop", "-", stdin=json.dumps(value, indent=indent).encode())
    written = json.loads(done.out)
    assert len(written["messages"] if held else written) == (5 if len(history) > 1 else 0)
    compact = json.dumps(written, separators=(",", ":")).encode()
    assert done.out.encode() == (msgspec.json.format(compact, indent=2) if indent else compact) + b"\n"
