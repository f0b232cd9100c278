"""What an agent needs of a wire: to make messages, to join them from pieces, to read, store and read them back."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType, SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessage, ChatCompletionMessageFunctionToolCall
from openai.types.chat.chat_completion_message_function_tool_call import Function

import suture
from suture.errors import ConfigError, InputError
from suture.messages import (
    AgenticMessage,
    AssistantGenImage,
    AssistantGenText,
    AudioPart,
    Delta,
    FilePart,
    FunctionToolCall,
    FunctionToolResult,
    ImagePart,
    MCPToolResult,
    Message,
    Opaque,
    Reasoning,
    ReasoningPart,
    ResponseMeta,
    ServerToolCall,
    TextPart,
    TokenUsage,
    ToolCall,
    ToolInfo,
    ToolResult,
    ToolSearchPart,
    ToolSearchResult,
    UserInputAudio,
    UserInputFile,
    UserInputImage,
    UserInputText,
    UserInputVideo,
    VideoPart,
)
from suture.profiles import PROFILES, get_profile
from suture.wires import WIRES, Call, ChatWire, get_chat_wire, get_wire
from tests.messages.test_round_trips import values_of

MESSAGE, AGENTIC, CHAT = map(get_chat_wire, ("message", "agentic", "openai-chat"))
CHAT_WIRES = [MESSAGE, AGENTIC, CHAT]
NATIVE = [MESSAGE, AGENTIC]
on_each_wire = pytest.mark.parametrize("wire", CHAT_WIRES, ids=lambda wire: wire.name)
on_native_wires = pytest.mark.parametrize("wire", NATIVE, ids=lambda wire: wire.name)

CALL = Call("call_1", "search", "{}")
USAGE = TokenUsage(prompt_tokens=900, completion_tokens=40, total_tokens=940)
TOOLS = (ToolInfo("fetch", "Get a page."),)
PARTS = {
    "text": TextPart("3 pages"),
    "image": ImagePart(url="https://example.com/cat.png", detail="low"),
    "image data": ImagePart(base64_data="iVBO", mime_type="image/jpeg"),
    "audio": AudioPart(base64_data="UklG", mime_type="audio/mpeg"),
    "audio elsewhere": AudioPart(url="https://example.com/a.ogg"),
    "video": VideoPart(url="https://example.com/a.mp4"),
    "file": FilePart(base64_data="JVBE", mime_type="application/pdf", name="a.pdf"),
    "file elsewhere": FilePart(url="https://example.com/a.pdf", name="a.pdf"),
    "thought": ReasoningPart("so", "signed"),
    "tools": ToolSearchPart(tools=TOOLS),
    "unknown": Opaque({"type": "hologram", "beam": 7}),
}
MEDIA = (ImagePart, AudioPart, VideoPart, FilePart)
each_part = pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)


def gave(*parts: Any, **fields: Any) -> ToolResult:
    return ToolResult(parts, **fields)


def chat_call(id_: str = "call_1", name: str = "search", arguments: str = "{}") -> dict[str, Any]:
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


# Which wires


def test_the_wires_an_agent_can_run_on_are_these():
    assert [name for name in WIRES if isinstance(get_wire(name), ChatWire)] == ["message", "agentic", "openai-chat"]


@on_each_wire
def test_a_chat_wire_is_the_wire_of_that_name(wire: ChatWire):
    assert wire is get_wire(wire.name)


@pytest.mark.parametrize("name", ["anthropic", "opnai", "", None, []])
def test_a_wire_that_an_agent_cannot_run_on_is_refused_and_those_it_can_are_named(name: Any):
    with pytest.raises(ConfigError) as error:
        get_chat_wire(name)
    assert str(error.value) == (f"an agent cannot run on the wire {name!r}; it can on: message, agentic, openai-chat")


# User messages


def test_a_text_makes_a_user_message():
    assert [wire.user("hi") for wire in CHAT_WIRES] == [
        Message.user("hi"),
        AgenticMessage.user("hi"),
        {"role": "user", "content": "hi"},
    ]


@each_part
def test_the_message_wire_takes_every_part_as_it_is(part: Any):
    assert MESSAGE.user([TextPart("Look:"), part]) == Message.user([TextPart("Look:"), part])


EXTRA: Mapping[str, Any] = {"origin": "cache"}
BLOCKS = [
    (TextPart("a", index=1, extra=EXTRA), UserInputText("a", index=1, extra=EXTRA)),
    (
        ImagePart(url="u", base64_data="b", mime_type="m", detail="low", extra=EXTRA),
        UserInputImage(url="u", base64_data="b", mime_type="m", detail="low", extra=EXTRA),
    ),
    (AudioPart(base64_data="b", mime_type="m"), UserInputAudio(base64_data="b", mime_type="m")),
    (VideoPart(url="u"), UserInputVideo(url="u")),
    (FilePart(url="u", name="n"), UserInputFile(url="u", name="n")),
    (ReasoningPart("so", "signed", extra=EXTRA), UserInputText("so", extra=EXTRA)),
    (ToolSearchPart(tools=TOOLS), UserInputText('[{"name":"fetch","description":"Get a page."}]')),
    (PARTS["unknown"], PARTS["unknown"]),
    (UserInputText("a"), UserInputText("a")),
    (FunctionToolResult("a", "f"), FunctionToolResult("a", "f")),
]


@pytest.mark.parametrize(("part", "block"), BLOCKS)
def test_the_agentic_wire_takes_parts_and_blocks(part: Any, block: Any):
    assert AGENTIC.user((part, UserInputText("b"))) == AgenticMessage.user([block, UserInputText("b")])


CHAT_PARTS = [
    (TextPart("a"), {"type": "text", "text": "a"}),
    (ReasoningPart("so"), {"type": "text", "text": "so"}),
    (ToolSearchPart(tools=TOOLS), {"type": "text", "text": '[{"name":"fetch","description":"Get a page."}]'}),
    (PARTS["unknown"], {"type": "hologram", "beam": 7}),
    ({"type": "text", "text": "b"}, {"type": "text", "text": "b"}),
    (PARTS["image"], {"type": "image_url", "image_url": {"url": "https://example.com/cat.png", "detail": "low"}}),
    (PARTS["image data"], {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,iVBO"}}),
    (ImagePart(base64_data="iVBO"), {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}}),
    (PARTS["video"], {"type": "video_url", "video_url": {"url": "https://example.com/a.mp4"}}),
    (VideoPart(base64_data="AAAA"), {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AAAA"}}),
    (PARTS["audio"], {"type": "input_audio", "input_audio": {"data": "UklG", "format": "mp3"}}),
    (
        AudioPart(base64_data="UklG", mime_type="audio/x-wav"),
        {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}},
    ),
    (
        AudioPart(base64_data="UklG", mime_type="audio/ogg;codecs=opus"),
        {"type": "input_audio", "input_audio": {"data": "UklG", "format": "ogg"}},
    ),
    (AudioPart(base64_data="UklG"), {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}}),
    (
        AudioPart(url="data:audio/flac;base64,ZkxB"),
        {"type": "input_audio", "input_audio": {"data": "ZkxB", "format": "flac"}},
    ),
    (
        PARTS["file"],
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"}},
    ),
    (
        FilePart(base64_data="JVBE"),
        {"type": "file", "file": {"file_data": "data:application/octet-stream;base64,JVBE"}},
    ),
    (
        FilePart(url="data:;base64,JVBE", mime_type="application/pdf"),
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBE"}},
    ),
]


@pytest.mark.parametrize(("part", "form"), CHAT_PARTS)
def test_the_chat_wire_says_native_parts_in_its_own_form(part: Any, form: dict[str, Any]):
    assert CHAT.user([part]) == {"role": "user", "content": [form]}


@pytest.mark.parametrize(("part", "form"), CHAT_PARTS)
def test_what_the_chat_wire_makes_of_parts_is_its_own(part: Any, form: dict[str, Any]):
    if form["type"] not in {"text", "hologram"}:
        assert suture.check([CHAT.user([part])]).wire == "openai-chat"


def test_a_dict_part_stays_the_same_object():
    part = {"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}, "cache": True}
    assert CHAT.user([part])["content"][0] is part


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (["hi"], "content[0]: str has no form on openai-chat"),
        ([TextPart("a"), 7], "content[1]: int has no form on openai-chat"),
        ([UserInputText("a")], "content[0]: UserInputText has no form on openai-chat"),
        ([PARTS["audio elsewhere"]], "content[0]: AudioPart without base64_data has no form on openai-chat"),
        ([FilePart(url="https://x;base64,y")], "content[0]: FilePart without base64_data has no form on openai-chat"),
        ([PARTS["file elsewhere"]], "content[0]: FilePart without base64_data has no form on openai-chat"),
        ({"type": "text"}, "content: expected a text or a list of parts, found dict"),
        (None, "content: expected a text or a list of parts, found NoneType"),
        (b"hi", "content: expected a text or a list of parts, found bytes"),
    ],
)
def test_the_chat_wire_refuses_content_that_it_cannot_say(content: Any, reason: str):
    with pytest.raises(InputError) as error:
        CHAT.user(content)
    assert str(error.value) == reason


@on_native_wires
@pytest.mark.parametrize("content", [["hi"], [7], [{"type": "text", "text": "a"}], {"type": "text"}, None, b"hi"])
def test_the_native_wires_refuse_content_of_other_types(wire: ChatWire, content: Any):
    with pytest.raises(InputError):
        wire.user(content)


def test_the_message_wire_refuses_blocks():
    with pytest.raises(InputError, match="not UserInputText"):
        MESSAGE.user([UserInputText("a")])


# Results


def test_a_result_of_texts_is_one_text():
    result = gave(TextPart("3 pages", index=0), TextPart("1 file", index=1))
    block = FunctionToolResult(
        "call_1", "search", (UserInputText("3 pages", index=0), UserInputText("1 file", index=1))
    )
    assert [wire.result(CALL, result) for wire in CHAT_WIRES] == [
        Message.tool("3 pages\n1 file", "call_1", "search"),
        AgenticMessage("user", (block,)),
        {"role": "tool", "tool_call_id": "call_1", "content": "3 pages\n1 file"},
    ]


def test_a_result_without_parts_is_an_empty_text():
    assert [wire.result(CALL, ToolResult()) for wire in CHAT_WIRES] == [
        Message.tool("", "call_1", "search"),
        AgenticMessage.tool_result("call_1", "search", ()),
        {"role": "tool", "tool_call_id": "call_1", "content": ""},
    ]


def test_a_failed_result_says_so_where_the_wire_can():
    result = gave(TextPart("no such page"), is_error=True)
    assert [wire.result(CALL, result) for wire in CHAT_WIRES] == [
        Message.tool("no such page", "call_1", "search", is_error=True),
        AgenticMessage.tool_result("call_1", "search", "no such page", is_error=True),
        {"role": "tool", "tool_call_id": "call_1", "content": "no such page"},
    ]


def test_what_is_attached_to_a_result_stays_on_the_native_wires():
    result = gave(TextPart("a"), extra={"took": 3})
    assert MESSAGE.result(CALL, result).extra == {"took": 3}
    assert AGENTIC.result(CALL, result).content_blocks[0].extra == {"took": 3}
    assert CHAT.result(CALL, result) == {"role": "tool", "tool_call_id": "call_1", "content": "a"}


def test_a_text_with_something_attached_stays_a_part():
    part = TextPart("a", extra={"origin": "cache"})
    assert MESSAGE.result(CALL, gave(part)).user_input_multi_content == (part,)


@each_part
def test_a_result_with_anything_but_text_keeps_its_parts(part: Any):
    parts = [TextPart("Look:"), part]
    made = MESSAGE.result(CALL, gave(*parts))
    if isinstance(part, TextPart):
        assert made.content == "Look:\n3 pages"
    else:
        assert made == Message.tool(parts, "call_1", "search")


def test_tools_that_were_found_are_a_block_of_their_own():
    part = ToolSearchPart(tools=TOOLS, extra={"origin": "cache", "took": 1})
    found = AGENTIC.result(CALL, gave(part, extra={"took": 3}))
    extra = {"origin": "cache", "took": 3}
    assert found == AgenticMessage("user", (ToolSearchResult("call_1", "search", TOOLS, extra=extra),))


@pytest.mark.parametrize(
    "result",
    [
        gave(ToolSearchPart(tools=TOOLS), is_error=True),
        gave(ToolSearchPart(tools=TOOLS), TextPart("and more")),
    ],
)
def test_tools_that_were_found_are_told_as_text_where_there_is_more_to_say(result: ToolResult):
    (block,) = AGENTIC.result(CALL, result).content_blocks
    assert block.content[0] == UserInputText('[{"name":"fetch","description":"Get a page."}]')
    assert block.is_error is result.is_error


CHAT_RESULTS = {
    "image": {"type": "image_url", "image_url": {"url": "https://example.com/cat.png", "detail": "low"}},
    "audio": {"type": "input_audio", "input_audio": {"data": "UklG", "format": "mp3"}},
    "video": {"type": "video_url", "video_url": {"url": "https://example.com/a.mp4"}},
    "audio elsewhere": "https://example.com/a.ogg",
    "file elsewhere": "https://example.com/a.pdf",
    "thought": "so",
    "tools": '[{"name":"fetch","description":"Get a page."}]',
    "unknown": '{"type":"hologram","beam":7}',
}


@pytest.mark.parametrize("kind", CHAT_RESULTS)
def test_a_chat_result_is_a_list_where_there_are_media_and_else_a_text(kind: str):
    form = CHAT_RESULTS[kind]
    content = CHAT.result(CALL, gave(TextPart("Look:"), PARTS[kind]))["content"]
    if isinstance(form, str):
        assert content == f"Look:\n{form}"
    else:
        assert content == [{"type": "text", "text": "Look:"}, form]


def test_in_a_chat_result_with_media_the_rest_is_text():
    result = gave(PARTS["image"], PARTS["tools"], PARTS["file elsewhere"], AudioPart(), FilePart(name="b"))
    assert CHAT.result(CALL, result)["content"] == [
        CHAT_RESULTS["image"],
        {"type": "text", "text": CHAT_RESULTS["tools"]},
        {"type": "text", "text": "https://example.com/a.pdf"},
        {"type": "text", "text": "(audio)"},
        {"type": "text", "text": "b"},
    ]


def test_a_call_of_the_older_form_gets_an_answer_of_the_older_form():
    turn = {"role": "assistant", "content": None, "function_call": {"name": "search", "arguments": "{}"}}
    (call,) = CHAT.calls(turn)
    answer = CHAT.result(call, gave(TextPart("42")))
    assert answer == {"role": "function", "name": "search", "content": "42"}
    assert suture.check([CHAT.user("hi"), turn, answer], wire="openai-chat").acceptable


def test_a_call_of_a_custom_tool_gets_a_tool_message():
    turn = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "a", "type": "custom", "custom": {"name": "sh", "input": "ls"}}],
    }
    (call,) = CHAT.calls(turn)
    answer = CHAT.result(call, gave(TextPart("42")))
    assert answer == {"role": "tool", "tool_call_id": "a", "content": "42"}
    assert suture.check([CHAT.user("hi"), turn, answer], wire="openai-chat").acceptable


PAIRS = [(wire.name, name) for wire in CHAT_WIRES for name in PROFILES if get_profile(name).speaks_of(wire.name)]


@each_part
@pytest.mark.parametrize(("name", "profile"), PAIRS)
def test_a_result_of_any_kind_answers_its_call(name: str, profile: str, part: Any):
    wire = get_chat_wire(name)
    call = Call("a1B2c3D4e", "search", "{}")
    turn = wire.join([Delta("Let me see.", "so"), Delta(call_index=0, call_id=call.id, name=call.name, arguments="{}")])
    for result in (gave(part), gave(TextPart("Look:"), part, is_error=True)):
        history = [wire.user("go"), turn, wire.result(call, result)]
        found = {finding.problem for finding in suture.check(history, wire=name, profile=profile).findings}
        # Media that a provider does not take in a result can be shown after it: nothing else may be wrong.
        assert found <= ({"media-in-result", "tool-then-user"} if isinstance(part, MEDIA) else set())
        mended = suture.repair(history, wire=name, profile=profile).messages
        assert suture.check(mended, wire=name, profile=profile).acceptable


# Pieces


TURN = [
    Delta(reasoning="Hm"),
    Delta(reasoning=", so."),
    Delta("Let me "),
    Delta("see."),
    Delta(call_index=1, call_id="b", name="g", arguments='{"q"'),
    Delta(call_index=0, call_id="a", name="f"),
    Delta(call_index=1, arguments=": 1}"),
    Delta(call_index=0, arguments="{}"),
    Delta(usage=USAGE),
]
WHOLE = [
    Message(
        "assistant",
        "Let me see.",
        reasoning_content="Hm, so.",
        tool_calls=(ToolCall("a", "f", "{}"), ToolCall("b", "g", '{"q": 1}')),
        response_meta=ResponseMeta(usage=USAGE),
    ),
    AgenticMessage(
        "assistant",
        (
            Reasoning("Hm, so."),
            AssistantGenText("Let me see."),
            FunctionToolCall("a", "f", "{}"),
            FunctionToolCall("b", "g", '{"q": 1}'),
        ),
        response_meta=ResponseMeta(usage=USAGE),
    ),
    {
        "role": "assistant",
        "content": "Let me see.",
        "reasoning_content": "Hm, so.",
        "tool_calls": [chat_call("a", "f", "{}"), chat_call("b", "g", '{"q": 1}')],
    },
]


@pytest.mark.parametrize(("wire", "whole"), [*zip(CHAT_WIRES, WHOLE, strict=True)], ids=["message", "agentic", "chat"])
def test_pieces_are_joined_to_one_message_with_the_calls_in_the_order_of_their_index(wire: ChatWire, whole: Any):
    assert wire.join(TURN) == whole


@on_each_wire
def test_the_pieces_of_a_message_are_its_reasoning_its_text_each_call_and_what_it_cost(wire: ChatWire):
    cost = [] if wire is CHAT else [Delta(usage=USAGE)]
    assert wire.deltas(wire.join(TURN)) == [
        Delta(reasoning="Hm, so."),
        Delta("Let me see."),
        Delta(call_index=0, call_id="a", name="f", arguments="{}"),
        Delta(call_index=1, call_id="b", name="g", arguments='{"q": 1}'),
        *cost,
    ]


@on_each_wire
@pytest.mark.parametrize("deltas", [[], [Delta()], [Delta(""), Delta(usage=USAGE)]])
def test_pieces_that_say_nothing_make_no_message(wire: ChatWire, deltas: list[Delta]):
    assert wire.join(deltas) is None


@on_each_wire
def test_arguments_that_broke_off_are_kept_as_they_are(wire: ChatWire):
    message = wire.join([Delta(call_index=4, call_id="a", name="f", arguments='{"q": "x')])
    assert wire.calls(message) == (Call("a", "f", '{"q": "x'),)


@on_each_wire
def test_a_call_that_repeats_its_id_and_name_is_one_call(wire: ChatWire):
    piece = Delta(call_index=0, call_id="a", name="f", arguments="{")
    assert wire.calls(wire.join([piece, msgspec.structs.replace(piece, arguments="}")])) == (Call("a", "f", "{}"),)


@on_each_wire
def test_the_last_word_on_what_a_reply_cost_counts(wire: ChatWire):
    message = wire.join([Delta("a", usage=TokenUsage(prompt_tokens=1)), Delta(usage=USAGE), Delta("b")])
    assert wire.usage(message) == (None if wire is CHAT else USAGE)
    assert wire.text(message) == "ab"


def test_a_chat_message_of_calls_alone_has_no_content():
    assert CHAT.join([Delta(call_index=0, call_id="call_1", name="search", arguments="{}")]) == {
        "role": "assistant",
        "content": None,
        "tool_calls": [chat_call()],
    }


def test_an_agentic_message_keeps_the_order_in_which_things_were_said():
    deltas = [
        Delta("First."),
        Delta(call_index=0, call_id="a", name="f"),
        Delta("Then.", "Hm."),
        Delta(" Yes."),
        Delta(call_index=1, call_id="b", name="g"),
    ]
    blocks = (
        AssistantGenText("First."),
        FunctionToolCall("a", "f"),
        Reasoning("Hm."),
        AssistantGenText("Then. Yes."),
        FunctionToolCall("b", "g"),
    )
    assert AGENTIC.join(deltas) == AgenticMessage("assistant", blocks)


def test_a_piece_of_a_call_must_say_of_which():
    fields: Any
    for fields in ({"call_id": "a"}, {"name": "f"}, {"arguments": "{}"}):
        with pytest.raises(InputError, match="call_index: a piece of a call says which"):
            Delta(**fields)


words = st.text(max_size=6)
spoken = st.text(min_size=1, max_size=6)
calls = st.lists(st.tuples(words, words, words), max_size=3)
costs = st.none() | st.builds(TokenUsage, prompt_tokens=st.integers(0, 99), cached_tokens=st.integers(0, 9))


def metered(usage: TokenUsage | None) -> ResponseMeta | None:
    return None if usage is None else ResponseMeta(usage=usage)


def says_something(text: str, thought: str, made: Sequence[Any]) -> bool:
    return bool(text or thought or made)


@given(words, words, calls, costs)
def test_a_message_is_joined_again_from_its_pieces(text: str, thought: str, made: Any, usage: TokenUsage | None):
    message = Message(
        "assistant",
        text,
        reasoning_content=thought,
        tool_calls=tuple(ToolCall(*call) for call in made),
        response_meta=metered(usage),
    )
    assert MESSAGE.join(MESSAGE.deltas(message)) == (message if says_something(text, thought, made) else None)


@given(words, words, calls)
def test_a_chat_message_is_joined_again_from_its_pieces(text: str, thought: str, made: Any):
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if thought:
        message["reasoning_content"] = thought
    if made:
        message["tool_calls"] = [chat_call(*call) for call in made]
    assert CHAT.join(CHAT.deltas(message)) == (message if says_something(text, thought, made) else None)


blocks = st.one_of(
    st.builds(AssistantGenText, spoken),
    st.builds(Reasoning, spoken),
    st.builds(FunctionToolCall, words, words, words),
)


@given(st.lists(blocks, max_size=5), costs)
def test_an_agentic_message_is_joined_again_from_its_pieces(said: list[Any], usage: TokenUsage | None):
    # Two texts, or two thoughts, that follow each other would be joined to one.
    apart = [
        block
        for before, block in zip([None, *said], said, strict=False)
        if isinstance(block, FunctionToolCall) or type(before) is not type(block)
    ]
    message = AgenticMessage("assistant", tuple(apart), response_meta=metered(usage))
    assert AGENTIC.join(AGENTIC.deltas(message)) == (message if apart else None)


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[Delta], list[tuple[str, str, str]]]:
    """Return the pieces of some calls, those of different calls in any order, and the calls."""
    made = draw(st.lists(st.tuples(spoken, spoken, st.lists(words, min_size=1, max_size=4)), min_size=1, max_size=3))
    queues = [
        [
            Delta(call_index=place, call_id=call_id, name=name, arguments=pieces[0]),
            *(Delta(call_index=place, arguments=piece) for piece in pieces[1:]),
        ]
        for place, (call_id, name, pieces) in enumerate(made)
    ]
    deltas: list[Delta] = []
    while any(queues):
        deltas.append(draw(st.sampled_from([queue for queue in queues if queue])).pop(0))
    return deltas, [(call_id, name, "".join(pieces)) for call_id, name, pieces in made]


@on_each_wire
@given(stream=streams())
def test_calls_are_put_together_in_whatever_order_their_pieces_come(wire: ChatWire, stream: Any):
    deltas, made = stream
    assert wire.calls(wire.join(deltas)) == tuple(Call(*call) for call in made)


@on_each_wire
def test_only_an_assistants_message_has_pieces(wire: ChatWire):
    for message in (wire.user("hi"), wire.result(CALL, ToolResult())):
        with pytest.raises(InputError, match="only an assistant's message has pieces, this one is the"):
            wire.deltas(message)


def test_the_texts_among_a_messages_parts_are_pieces_too():
    message = Message(
        "assistant",
        "a",
        reasoning_content="r",
        assistant_gen_multi_content=(ReasoningPart("s"), TextPart("b"), ImagePart(url="u")),
    )
    assert MESSAGE.deltas(message) == [Delta(reasoning="r"), Delta(reasoning="s"), Delta("a"), Delta("b")]


def test_arguments_that_are_no_text_become_one():
    old = {"role": "assistant", "function_call": {"name": "f", "arguments": {"q": 1}}}
    assert CHAT.deltas(old) == [Delta(call_index=0, name="f", arguments='{"q":1}')]


# What a message says


TEXTS = [
    (MESSAGE, Message.system("a"), "a"),
    (MESSAGE, Message.user("a"), "a"),
    (MESSAGE, Message.user([TextPart("a"), PARTS["image"], TextPart("b")]), "a\nb"),
    (MESSAGE, Message("assistant", "a", reasoning_content="r"), "a"),
    (MESSAGE, Message("assistant", "a", assistant_gen_multi_content=(TextPart("b"), PARTS["image"])), "a\nb"),
    (MESSAGE, Message.assistant(tool_calls=[ToolCall("a", "f")]), ""),
    (MESSAGE, Message.tool("a", "call_1"), "a"),
    (MESSAGE, Message.tool([TextPart("a"), PARTS["image"], PARTS["unknown"]], "x"), 'a\n{"type":"hologram","beam":7}'),
    (AGENTIC, AgenticMessage.system("a"), "a"),
    (AGENTIC, AgenticMessage.user([UserInputText("a"), UserInputImage(url="u"), UserInputText("b")]), "a\nb"),
    (
        AGENTIC,
        AgenticMessage.assistant(
            [
                Reasoning("r"),
                AssistantGenText("a"),
                AssistantGenImage(url="u"),
                ServerToolCall(call_id="s", name="web"),
                AssistantGenText(""),
                FunctionToolCall("c", "f"),
                AssistantGenText("b"),
                MCPToolResult(content="m"),
            ]
        ),
        "a\nb",
    ),
    (AGENTIC, AgenticMessage.tool_result("c", "f", [UserInputText("a"), UserInputText("b")]), "a\nb"),
    (AGENTIC, AgenticMessage("user", (ToolSearchResult("c", "f", TOOLS), UserInputText("b"))),
     '[{"name":"fetch","description":"Get a page."}]\nb'),
    (CHAT, {"role": "developer", "content": "a"}, "a"),
    (CHAT, {"role": "user", "content": "a"}, "a"),
    (CHAT, {"role": "user", "content": [{"type": "text", "text": "a"}, CHAT_RESULTS["image"]]}, "a"),
    (CHAT, {"role": "assistant", "content": None, "tool_calls": [chat_call()]}, ""),
    (CHAT, {"role": "assistant", "tool_calls": [chat_call()]}, ""),
    (CHAT, {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}, "no"),
    (CHAT, {"role": "assistant", "content": None, "refusal": "no"}, "no"),
    (CHAT, {"role": "assistant", "content": None, "audio": {"id": "x", "transcript": "a"}}, "a"),
    (CHAT, {"role": "assistant", "content": None, "audio": {"id": "x"}}, ""),
    (CHAT, {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "a"}] * 2}, "a\na"),
    (CHAT, {"role": "function", "name": "f", "content": "a"}, "a"),
    (CHAT, ChatCompletionMessage(role="assistant", content="a"), "a"),
    (CHAT, ChatCompletionMessage(role="assistant", refusal="no"), "no"),
]  # fmt: skip


@pytest.mark.parametrize(("wire", "message", "text"), TEXTS)
def test_a_message_says(wire: ChatWire, message: Any, text: str):
    assert wire.text(message) == text


@given(values_of(Message))
def test_any_message_can_be_asked_what_it_says_calls_and_cost(message: Message):
    assert isinstance(MESSAGE.text(message), str)
    assert MESSAGE.calls(message) == MESSAGE.view(message).calls
    assert MESSAGE.usage(message) == (message.response_meta and message.response_meta.usage)


@given(values_of(AgenticMessage))
def test_any_agentic_message_can_be_asked_what_it_says_calls_and_cost(message: AgenticMessage):
    assert isinstance(AGENTIC.text(message), str)
    assert AGENTIC.calls(message) == AGENTIC.view(message).calls
    assert AGENTIC.usage(message) == (message.response_meta and message.response_meta.usage)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
chat_fields = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool", "function", "developer", "other"])},
    optional={
        "content": json_values | st.lists(st.dictionaries(st.sampled_from(["type", "text"]), json_values)),
        "refusal": json_values,
        "audio": json_values,
        "tool_calls": json_values,
    },
)


@given(chat_fields)
def test_whatever_stands_in_a_chat_message_can_be_asked_what_it_says(message: dict[str, Any]):
    assert isinstance(CHAT.text(message), str)


@pytest.mark.parametrize("wire", NATIVE, ids=lambda wire: wire.name)
@pytest.mark.parametrize("other", [{"role": "user", "content": "a"}, None, "a"])
def test_the_native_wires_refuse_what_is_no_message_of_theirs(wire: ChatWire, other: Any):
    theirs = AgenticMessage.user("a") if wire is MESSAGE else Message.user("a")
    for message in (other, theirs):
        for ask in (wire.text, wire.calls, wire.deltas, wire.dump):
            with pytest.raises(InputError, match=f"found {type(message).__name__}"):
                ask(message)


# Calls


CHAT_TURNS = [
    {"role": "assistant", "content": "a"},
    {"role": "assistant", "content": None, "tool_calls": None, "function_call": None},
    {"role": "assistant", "content": None, "tool_calls": []},
    {"role": "assistant", "content": None, "tool_calls": [chat_call(), chat_call("b", "g", '{"q": 1}')]},
    {"role": "assistant", "content": None, "tool_calls": (chat_call(),)},
    {"role": "assistant", "content": None, "tool_calls": [chat_call(arguments='{"q": "é"}')]},
    {"role": "assistant", "content": None, "tool_calls": [{"id": None, "function": {"name": None}}]},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "type": "function"}]},
    {"role": "assistant", "content": None, "tool_calls": [{**chat_call(), "function": {"arguments": {"q": 1}}}]},
    {"role": "assistant", "tool_calls": [{"id": "a", "type": "custom", "custom": {"name": "sh", "input": "ls"}}]},
    {"role": "assistant", "tool_calls": [{**chat_call(), "type": "custom", "custom": {"name": "sh", "input": "ls"}}]},
    {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
    {"role": "assistant", "tool_calls": [chat_call()], "function_call": {"name": "f", "arguments": "{}"}},
    {"role": "user", "content": "a", "tool_calls": [chat_call()]},
    {"role": "tool", "tool_call_id": "a", "content": "a"},
]


@pytest.mark.parametrize("message", CHAT_TURNS)
def test_the_calls_of_a_chat_message_are_those_that_the_engines_see(message: dict[str, Any]):
    assert CHAT.calls(message) == CHAT.view(message).calls


@pytest.mark.parametrize(
    "made",
    [7, {"id": "a"}, [None], ["a"], [{"id": 7, "type": "function"}], [{**chat_call(), "function": "f"}],
     [chat_call("\ud800")], [chat_call(name="\ud800")], [chat_call(arguments="\ud800")]],
)  # fmt: skip
def test_malformed_calls_are_refused_as_the_engines_refuse_them(made: Any):
    message = {"role": "assistant", "content": None, "tool_calls": made}
    with pytest.raises(InputError) as seen:
        CHAT.view(message)
    with pytest.raises(InputError) as called:
        CHAT.calls(message)
    assert str(called.value) == str(seen.value)


# The objects of the openai package


SDK_MESSAGE = ChatCompletionMessage(
    role="assistant",
    content=None,
    tool_calls=[
        ChatCompletionMessageFunctionToolCall(
            id="call_1", type="function", function=Function(name="search", arguments="{}")
        )
    ],
)
SDK_DICT = {"role": "assistant", "content": None, "tool_calls": [chat_call()]}


def test_an_object_of_the_sdk_has_calls_and_pieces():
    assert CHAT.calls(SDK_MESSAGE) == (CALL,)
    assert CHAT.deltas(SDK_MESSAGE) == [Delta(call_index=0, call_id="call_1", name="search", arguments="{}")]
    assert CHAT.usage(SDK_MESSAGE) is None


def test_an_object_of_the_sdk_is_stored_as_the_dict_it_stands_for():
    assert CHAT.dump(SDK_MESSAGE) == SDK_DICT


def test_what_a_server_added_to_the_sdks_object_is_stored_too():
    received = ChatCompletionMessage.construct(
        role="assistant", content="a", reasoning_content="r", details=[{"n": 1}], annotations=7
    )
    assert CHAT.dump(received) == {
        "role": "assistant",
        "content": "a",
        "reasoning_content": "r",
        "details": [{"n": 1}],
        "annotations": 7,
    }


def test_objects_of_the_sdk_inside_a_dict_are_stored_as_dicts():
    message = {"role": "assistant", "content": None, "tool_calls": SDK_MESSAGE.tool_calls}
    assert CHAT.dump(message) == SDK_DICT
    assert message["tool_calls"] is SDK_MESSAGE.tool_calls


def test_other_objects_are_stored_by_their_public_attributes():
    function = SimpleNamespace(name="search", arguments="{}", _cache=object())
    call = SimpleNamespace(id="call_1", type="function", function=function)
    assert CHAT.dump(SimpleNamespace(role="assistant", content=None, tool_calls=[call])) == SDK_DICT


# Stored and read back


def stored(wire: ChatWire, message: Any) -> Any:
    return wire.load(msgspec.msgpack.decode(msgspec.msgpack.encode(wire.dump(message))))


@given(values_of(Message))
def test_any_message_comes_back_from_a_journal_as_it_was(message: Message):
    assert stored(MESSAGE, message) == message


@given(values_of(AgenticMessage))
def test_any_agentic_message_comes_back_from_a_journal_as_it_was(message: AgenticMessage):
    assert stored(AGENTIC, message) == message


@given(st.dictionaries(st.text(max_size=5), json_values, max_size=4))
def test_any_plain_dict_comes_back_from_a_journal_as_it_was(message: dict[str, Any]):
    assert CHAT.dump(message) is message
    assert stored(CHAT, message) == message


class Talker:
    """A class is no message, whatever its attributes."""

    role = "user"


def cyclic() -> dict[str, Any]:
    message: dict[str, Any] = {"role": "user"}
    message["content"] = [message]
    return message


def cyclic_object() -> Any:
    message = SimpleNamespace(role="user")
    message.content = [message, message]
    return message


def deep_object() -> Any:
    message = SimpleNamespace(role="user")
    for _ in range(10**4):
        message = SimpleNamespace(role="user", content=message)
    return message


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"role": "user", "content": b"a"}, "content: bytes is not a JSON value"),
        ({"role": "user", "content": float("nan")}, "content: nan is not a JSON number"),
        ({"role": "user", "content": "\ud800"}, "content: text with a lone surrogate"),
        ({"role": "user", 7: "a"}, "a key must be a string, not int"),
        ({"role": "user", "content": object()}, "content: object is not a JSON value"),
        ({"role": "user", "content": Talker}, "content: type is not a JSON value"),
        ({"role": "user", "content": {"a"}}, "content: set is not a JSON value"),
        (cyclic(), "content[0]: a value that contains itself"),
        (cyclic_object(), "content[0]: SimpleNamespace is not a JSON value"),
        (deep_object(), "nested too deeply"),
        (Message.user("a"), "a native message stands among messages of another type (openai-chat)"),
    ],
)
def test_what_would_not_come_back_as_it_was_is_refused(message: Any, reason: str):
    with pytest.raises(InputError) as error:
        CHAT.dump(message)
    assert str(error.value) == reason


class Word(str):
    """A text of another class, as members of an enum are."""

    __slots__ = ()


def test_texts_of_other_classes_and_other_mappings_are_stored_as_plain_ones():
    dumped = CHAT.dump(MappingProxyType({"role": Word("user"), "content": ("a",)}))
    assert dumped == {"role": "user", "content": ["a"]}
    assert type(dumped["role"]) is str


@on_each_wire
@pytest.mark.parametrize("value", [None, 7, "a", ["a"]])
def test_what_is_no_stored_message_is_refused(wire: ChatWire, value: Any):
    with pytest.raises(InputError):
        wire.load(value)


def test_a_stored_message_of_the_other_native_type_is_refused():
    with pytest.raises(InputError, match="expected a Message, found AgenticMessage"):
        MESSAGE.load(AGENTIC.dump(AgenticMessage.user("a")))
    with pytest.raises(InputError, match="expected an AgenticMessage, found Message"):
        AGENTIC.load(MESSAGE.dump(Message.user("a")))
