"""The content of a result, taken apart into parts and put together again, on every wire."""

import copy
from types import SimpleNamespace
from typing import Any

import pytest
from anthropic.types import TextBlock
from google.genai import types as genai
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from suture.messages import (
    AgenticMessage,
    AudioPart,
    FilePart,
    FunctionToolResult,
    ImagePart,
    Message,
    Opaque,
    Part,
    ReasoningPart,
    TextPart,
    ToolInfo,
    ToolResult,
    ToolSearchPart,
    ToolSearchResult,
    UserInputFile,
    UserInputImage,
    UserInputText,
)
from suture.wires import RawPart, Result, ResultEdit, Wire, get_wire
from tests.wires.results import (
    FOREIGN,
    IMAGES,
    content_of,
    on_every_wire,
    on_foreign_wires,
    result_of,
    text_of,
    unknown_of,
)

MESSAGE, AGENTIC, CHAT, RESPONSES, ANTHROPIC, GEMINI, BEDROCK = map(get_wire, ("message", "agentic", *FOREIGN))
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
LISTS = [CHAT, RESPONSES, ANTHROPIC, BEDROCK]


def result_in(wire: Wire, message: Any) -> Result:
    (result,) = wire.view(message, 0).results
    return result


def parts_in(wire: Wire, message: Any) -> Any:
    return wire.result_parts(result_in(wire, message))


def with_parts(wire: Wire, message: Any, *parts: Part) -> Any:
    return wire.edit(message, {}, {0: ResultEdit(parts=parts)})


def held(wire: Wire, message: Any) -> Any:
    """Return the content of the result as it stands in the message."""
    return result_in(wire, message).content


# Taken apart


def lone(wire: Wire, text: str) -> Any:
    return ({"result": text}, None) if wire is GEMINI else [text_of(wire, text)] if wire is BEDROCK else text


@on_every_wire
def test_a_text_is_one_part(wire: Wire):
    assert parts_in(wire, result_of(wire, lone(wire, "42"))) == (TextPart("42"),)


@on_every_wire
def test_content_that_is_empty_or_absent_has_no_parts(wire: Wire):
    empty: list[Any] = [({}, None), (None, None), ({"result": ""}, [])] if wire is GEMINI else [[]]
    empty += [""] if wire in (MESSAGE, CHAT, RESPONSES, ANTHROPIC) else []
    empty += [None] if wire in (*LISTS,) else []
    for content in empty:
        message = result_of(wire, content)
        assert parts_in(wire, message) == ()
        assert with_parts(wire, message) == message


@pytest.mark.parametrize("wire", LISTS, ids=lambda wire: wire.name)
def test_a_list_is_taken_apart_in_its_order_and_what_is_no_text_stays_the_very_same(wire: Wire):
    image, unknown = IMAGES[wire.name], unknown_of(wire)
    content = [unknown, text_of(wire, "a"), image, text_of(wire, "b", cache_control={"type": "ephemeral"})]
    parts = parts_in(wire, result_of(wire, content))
    assert parts == (RawPart(unknown), TextPart("a"), RawPart(image), TextPart("b"))
    raw = [part.raw for part in parts if isinstance(part, RawPart)]
    assert raw[0] is unknown
    assert raw[1] is image


def test_the_parts_of_a_native_result_are_themselves():
    parts = (IMAGES["message"], TextPart("a", extra={"n": 1}), Opaque({"type": "hologram"}), ReasoningPart("so", "s"))
    assert parts_in(MESSAGE, Message.tool(parts, "a")) == parts


def test_the_text_of_a_native_result_stands_before_its_parts():
    both = Message("tool", "first", user_input_multi_content=(IMAGES["message"],), tool_call_id="a")
    assert parts_in(MESSAGE, both) == (TextPart("first"), IMAGES["message"])


def test_the_blocks_of_an_agentic_result_are_the_parts_that_say_the_same():
    unknown = Opaque({"type": "hologram"})
    blocks = (UserInputText("a", index=1, extra={"n": 1}), UserInputImage(url="u", detail="low"), unknown)
    parts = parts_in(AGENTIC, AgenticMessage.tool_result("a", "f", blocks))
    assert parts == (TextPart("a", index=1, extra={"n": 1}), ImagePart(url="u", detail="low"), unknown)


@pytest.mark.parametrize(
    ("response", "text"),
    [
        ({"result": "42"}, "42"),
        ({"error": "no"}, "no"),
        ({"result": 42}, '{"result":42}'),
        ({"a": "x", "b": [1]}, '{"a":"x","b":[1]}'),
        (["a"], '["a"]'),
    ],
)
def test_a_structured_response_of_gemini_is_one_text(response: Any, text: str):
    beside = IMAGES["gemini"]
    message = result_of(GEMINI, (response, [beside]))
    assert parts_in(GEMINI, message) == (TextPart(text), RawPart(beside))
    assert GEMINI.result_text(result_in(GEMINI, message)) == (text, False)


def test_a_json_block_of_bedrock_is_a_text():
    message = result_of(BEDROCK, [{"json": {"a": [1]}}, {"json": None}, {"text": "b"}])
    assert parts_in(BEDROCK, message) == (TextPart('{"a":[1]}'), RawPart({"json": None}), TextPart("b"))


WHOLE = [
    {"type": "shell_call_output", "call_id": "a", "output": [{"stdout": "x", "stderr": "", "outcome": {}}]},
    {"type": "computer_call_output", "call_id": "a", "output": {"type": "computer_screenshot", "image_url": "u"}},
    {"type": "tool_search_output", "call_id": "a", "tools": [{"type": "function", "name": "f"}]},
    {"type": "mcp_approval_response", "approval_request_id": "a", "approve": True},
    {"type": "local_shell_call_output", "id": "a", "output": {"out": "x"}},
    {"type": "function_call_output", "call_id": "a", "output": {"out": "x"}},
    {"type": "shell_call_output", "call_id": "a"},
]


@pytest.mark.parametrize("item", WHOLE, ids=lambda item: item["type"])
def test_an_output_of_responses_that_is_a_thing_of_its_own_is_not_taken_apart_and_not_changed(item: dict[str, Any]):
    assert parts_in(RESPONSES, item) is None
    assert with_parts(RESPONSES, item, TextPart("gone")) == item


@pytest.mark.parametrize("kind", ["local_shell_call_output", "apply_patch_call_output", "custom_tool_call_output"])
def test_an_output_of_responses_that_is_a_text_is_taken_apart(kind: str):
    item = {"type": kind, "id" if kind.startswith("local") else "call_id": "a", "output": "42"}
    assert parts_in(RESPONSES, item) == (TextPart("42"),)
    assert with_parts(RESPONSES, item, TextPart("gone")) == {**item, "output": "gone"}


def test_tools_that_were_found_are_not_taken_apart_and_not_changed():
    message = AgenticMessage("user", (ToolSearchResult("a", "f", (ToolInfo("g"),)),))
    assert parts_in(AGENTIC, message) is None
    assert with_parts(AGENTIC, message, TextPart("gone")) == message


def test_parts_beside_a_response_of_gemini_that_are_no_list_are_not_taken_apart():
    assert parts_in(GEMINI, result_of(GEMINI, ({"result": "a"}, {"text": "b"}))) is None


# What a wrapped part is


def test_a_wrapped_part_holds_the_very_object_and_can_stand_in_a_tools_result():
    raw = SimpleNamespace(type="image")
    part = RawPart(raw)
    assert part.raw is raw
    assert (part.type, part.index, part.extra) == ("image", None, {})
    assert RawPart({"image": {}}).type == ""
    assert ToolResult([part]).parts == (part,)
    with pytest.raises(AttributeError):
        part.data = 7  # pyright: ignore[reportAttributeAccessIssue]


# Put together again


def blocks_of(wire: Wire) -> st.SearchStrategy[list[Any]]:
    texts = st.text(min_size=1, max_size=8).map(lambda text: text_of(wire, text))
    marked = st.text(max_size=8).map(lambda text: text_of(wire, text, cache_control={"type": "ephemeral"}))
    fixed = st.sampled_from([IMAGES[wire.name], unknown_of(wire)])
    special = [st.just({"json": {"a": [1, "ü"]}})] if wire is BEDROCK else []
    special += [st.sampled_from([ReasoningPart("so", "s"), ToolSearchPart(tools=[ToolInfo("g")])])] * (wire is MESSAGE)
    if wire is GEMINI:
        return st.lists(texts | fixed, max_size=5)
    return st.lists(st.one_of(texts, marked, fixed, *special), max_size=5)


def contents_of(wire: Wire) -> st.SearchStrategy[Any]:
    blocks = blocks_of(wire).map(lambda blocks: content_of(wire, blocks))
    if wire is GEMINI:
        responses = st.dictionaries(st.sampled_from(["result", "error", "x"]), st.text(max_size=4) | st.integers())
        return blocks | st.tuples(responses, st.none() | st.just([IMAGES["gemini"]]))
    return blocks if wire is BEDROCK else blocks | st.text(max_size=8)


@on_every_wire
@given(data=st.data())
@unhurried
def test_a_result_put_together_of_its_own_parts_is_what_it_was(wire: Wire, data: st.DataObject):
    message = result_of(wire, data.draw(contents_of(wire)))
    before = copy.deepcopy(message)
    parts = parts_in(wire, message)
    assert with_parts(wire, message, *parts) == before
    assert message == before


def said(parts: Any) -> tuple[str, list[Any]]:
    texts = [part.text for part in parts if isinstance(part, TextPart) and part.text]
    rest = [part.raw if isinstance(part, RawPart) else part for part in parts if not isinstance(part, TextPart)]
    return "\n".join(texts), rest


@on_every_wire
@given(data=st.data())
@unhurried
def test_a_result_says_the_parts_that_it_was_given_whatever_it_said_before(wire: Wire, data: st.DataObject):
    message = result_of(wire, data.draw(contents_of(wire)))
    other = result_of(wire, data.draw(contents_of(wire)))
    before = copy.deepcopy(message)
    parts = parts_in(wire, other)
    made = with_parts(wire, message, *parts)
    assert said(parts_in(wire, made)) == said(parts)
    assert message == before
    emptied = [with_parts(wire, changed) for changed in (message, made)]
    assert [parts_in(wire, changed) for changed in emptied] == [(), ()]


@on_every_wire
def test_a_changed_text_changes_nothing_else_in_the_message(wire: Wire):
    image = IMAGES[wire.name]
    old, new = (
        result_of(wire, content_of(wire, [text_of(wire, text, **({} if wire is GEMINI else {"n": 1})), image]))
        for text in ("long", "short")
    )
    parts = parts_in(wire, old)
    assert with_parts(wire, old, *(_shortened(part) for part in parts)) == new


def _shortened(part: Any) -> Any:
    return replace(part, text="short") if isinstance(part, TextPart) else part


@pytest.mark.parametrize("wire", [CHAT, RESPONSES, ANTHROPIC], ids=lambda wire: wire.name)
def test_one_text_is_written_as_a_plain_text_and_so_are_several_where_one_was(wire: Wire):
    listed = [text_of(wire, "a"), text_of(wire, "b")]
    texts = [TextPart("x"), TextPart("y")]
    for content in ("a", None, [], [text_of(wire, "a")], listed):
        assert held(wire, with_parts(wire, result_of(wire, content), texts[0])) == "x"
    for content in ("a", None):
        assert held(wire, with_parts(wire, result_of(wire, content), *texts)) == "x\ny"
    assert held(wire, with_parts(wire, result_of(wire, listed), *texts)) == [text_of(wire, "x"), text_of(wire, "y")]
    assert held(wire, with_parts(wire, result_of(wire, listed))) == ""


def test_bedrock_has_blocks_only():
    assert held(BEDROCK, with_parts(BEDROCK, result_of(BEDROCK, [{"text": "a"}]), TextPart("x"))) == [{"text": "x"}]
    assert held(BEDROCK, with_parts(BEDROCK, result_of(BEDROCK, None), TextPart("x"))) == [{"text": "x"}]
    changed = with_parts(BEDROCK, result_of(BEDROCK, [{"json": {"a": 1}, "n": 1}]), TextPart("x"))
    assert held(BEDROCK, changed) == [{"text": "x"}]


def test_a_text_keeps_the_block_that_it_had_and_a_new_one_gets_its_own():
    marked = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}
    message = result_of(ANTHROPIC, [marked, IMAGES["anthropic"]])
    kept = with_parts(ANTHROPIC, message, RawPart(IMAGES["anthropic"]), TextPart("x"))
    assert held(ANTHROPIC, kept) == [IMAGES["anthropic"], {**marked, "text": "x"}]
    alone = with_parts(ANTHROPIC, message, TextPart("x"))
    assert held(ANTHROPIC, alone) == [{**marked, "text": "x"}]
    more = with_parts(ANTHROPIC, message, TextPart("a"), TextPart("x"))
    assert held(ANTHROPIC, more) == [{"type": "text", "text": "a"}, {"type": "text", "text": "x"}]


def test_another_object_takes_the_place_of_one_that_is_equal():
    one, true = {"type": "hologram", "beam": 1}, {"type": "hologram", "beam": True}
    changed = with_parts(CHAT, result_of(CHAT, [one]), RawPart(true))
    assert held(CHAT, changed)[0] is true


def test_a_message_keeps_a_text_before_its_parts():
    both = Message("tool", "first", user_input_multi_content=(IMAGES["message"],), tool_call_id="a")
    changed = with_parts(MESSAGE, both, TextPart("x"), IMAGES["message"])
    assert changed == Message("tool", "x", user_input_multi_content=(IMAGES["message"],), tool_call_id="a")
    assert with_parts(MESSAGE, both, TextPart("x")) == Message.tool("x", "a")
    assert with_parts(MESSAGE, both, IMAGES["message"]) == Message.tool([IMAGES["message"]], "a")
    noted = TextPart("x", extra={"n": 1})
    assert with_parts(MESSAGE, both, noted) == Message.tool([noted], "a")


def test_a_message_of_texts_stays_one_text_or_stays_parts():
    texts = (TextPart("x"), TextPart("y"))
    assert with_parts(MESSAGE, Message.tool("a", "a"), *texts) == Message.tool("x\ny", "a")
    assert with_parts(MESSAGE, Message.tool([TextPart("a"), TextPart("b")], "a"), *texts) == Message.tool(texts, "a")
    assert with_parts(MESSAGE, Message.tool(texts, "a"), texts[0]) == Message.tool("x", "a")


@pytest.mark.parametrize(
    ("response", "written"),
    [
        ({"result": "a"}, {"result": "x"}),
        ({"output": "a"}, {"output": "x"}),
        ({"error": "a"}, {"error": "x"}),
        ({"error": {"code": 5}, "n": 1}, {"error": "x"}),
        ({"a": 1, "b": 2}, {"result": "x"}),
        (None, {"result": "x"}),
        ("a", {"result": "x"}),
    ],
)
def test_gemini_writes_a_text_into_the_response_under_the_name_it_had(response: Any, written: Any):
    message = result_of(GEMINI, (response, [IMAGES["gemini"]]))
    changed = with_parts(GEMINI, message, TextPart("x"), RawPart(IMAGES["gemini"]))
    assert changed == result_of(GEMINI, (written, [IMAGES["gemini"]]))
    assert with_parts(GEMINI, message, TextPart("x")) == result_of(GEMINI, (written, None))


def test_a_response_of_gemini_that_says_the_same_stays_as_it_is_though_the_parts_beside_it_go():
    message = result_of(GEMINI, ({"a": 1, "b": 2}, [IMAGES["gemini"]]))
    assert with_parts(GEMINI, message, TextPart('{"a":1,"b":2}')) == result_of(GEMINI, ({"a": 1, "b": 2}, None))


def test_gemini_writes_several_texts_as_one():
    changed = with_parts(GEMINI, result_of(GEMINI, ({"result": "a"}, None)), TextPart("x"), TextPart("y"))
    assert changed == result_of(GEMINI, ({"result": "x\ny"}, None))


NATIVE_PARTS = (TextPart("x"), ImagePart(url="https://example.com/a.png"), FilePart(name="b"), Opaque({"type": "o"}))


@pytest.mark.parametrize(
    ("wire", "content"),
    [
        (MESSAGE, NATIVE_PARTS),
        (AGENTIC, (UserInputText("x"), UserInputImage(url="https://example.com/a.png"),
                   UserInputFile(name="b"), NATIVE_PARTS[3])),
        (CHAT, [
            {"type": "text", "text": "x"},
            {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
            {"type": "text", "text": "b"},
            {"type": "text", "text": '{"type":"o"}'},
        ]),
        (RESPONSES, 'x\nhttps://example.com/a.png\nb\n{"type":"o"}'),
        (ANTHROPIC, 'x\nhttps://example.com/a.png\nb\n{"type":"o"}'),
        (BEDROCK, [{"text": "x"}, {"text": "https://example.com/a.png"}, {"text": "b"}, {"text": '{"type":"o"}'}]),
    ],
    ids=lambda thing: getattr(thing, "name", ""),
)  # fmt: skip
def test_native_parts_are_written_in_the_wires_form_and_told_as_text_where_there_is_none(wire: Wire, content: Any):
    old: Any = (IMAGES["message"],) if wire is MESSAGE else lone(wire, "a")
    assert held(wire, with_parts(wire, result_of(wire, old), *NATIVE_PARTS)) == content


def test_gemini_tells_native_parts_as_text():
    changed = with_parts(GEMINI, result_of(GEMINI, ({"result": "a"}, None)), *NATIVE_PARTS)
    assert held(GEMINI, changed)["response"] == {"result": 'x\nhttps://example.com/a.png\nb\n{"type":"o"}'}


def test_on_agentic_what_has_no_block_is_text():
    parts = [ReasoningPart("so", "s"), ToolSearchPart(tools=[ToolInfo("g")]), AudioPart(url="u")]
    (block, _) = with_parts(AGENTIC, result_of(AGENTIC, "a"), *parts).content_blocks
    assert [each.text for each in block.content[:2]] == ["so", '[{"name":"g"}]']


@on_foreign_wires
def test_an_id_changes_together_with_the_parts(wire: Wire):
    changed = wire.edit(result_of(wire, lone(wire, "a")), {}, {0: ResultEdit(id="b", parts=[TextPart("x")])})
    assert (result_in(wire, changed).id, parts_in(wire, changed)) == ("b", (TextPart("x"),))


def test_parts_win_over_a_text():
    for wire in (MESSAGE, AGENTIC, CHAT, RESPONSES, ANTHROPIC, GEMINI, BEDROCK):
        changed = wire.edit(result_of(wire, lone(wire, "a")), {}, {0: ResultEdit(text="t", parts=[TextPart("x")])})
        assert parts_in(wire, changed) == (TextPart("x"),)


# Objects of the SDKs


def test_text_blocks_of_anthropics_package_keep_their_type():
    block = TextBlock(type="text", text="a", citations=None)
    message = result_of(ANTHROPIC, [block, IMAGES["anthropic"]])
    assert parts_in(ANTHROPIC, message) == (TextPart("a"), RawPart(IMAGES["anthropic"]))
    changed = with_parts(ANTHROPIC, message, TextPart("x"), RawPart(IMAGES["anthropic"]))
    assert held(ANTHROPIC, changed) == [TextBlock(type="text", text="x", citations=None), IMAGES["anthropic"]]
    assert block.text == "a"


def test_contents_of_googles_package_are_taken_apart_and_put_together():
    image = genai.FunctionResponsePart(inline_data=genai.FunctionResponseBlob(mime_type="image/png", data=b"\x89PNG"))
    response = genai.FunctionResponse(id="a", name="f", response={"output": "long"}, parts=[image])
    message = genai.Content(role="user", parts=[genai.Part(function_response=response)])
    parts = parts_in(GEMINI, message)
    assert parts == (TextPart("long"), RawPart(image))
    assert with_parts(GEMINI, message, *parts) == message
    changed = with_parts(GEMINI, message, TextPart("x"), parts[1])
    expected = response.model_copy(update={"response": {"output": "x"}})
    assert changed == genai.Content(role="user", parts=[genai.Part(function_response=expected)])
    bare = with_parts(GEMINI, message, TextPart("x"))
    assert bare == genai.Content(
        role="user", parts=[genai.Part(function_response=expected.model_copy(update={"parts": None}))]
    )
    assert response.response == {"output": "long"}


def test_a_result_that_is_two_blocks_changes_only_where_it_is_told():
    one, two = (FunctionToolResult(id_, "f", (UserInputText(id_),)) for id_ in "ab")
    message = AgenticMessage("user", (one, two))
    changed = AGENTIC.edit(message, {}, {1: ResultEdit(parts=[TextPart("x")])})
    assert changed.content_blocks[0] is one
    assert changed.content_blocks[1] == FunctionToolResult("b", "f", (UserInputText("x"),))
