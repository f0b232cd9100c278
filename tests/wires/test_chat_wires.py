"""Which wires an agent can run on, and the user messages they make."""

from collections.abc import Mapping
from typing import Any

import pytest

import suture
from suture.errors import ConfigError, InputError
from suture.messages import (
    AgenticMessage,
    AudioPart,
    FilePart,
    FunctionToolResult,
    ImagePart,
    Message,
    ReasoningPart,
    TextPart,
    ToolSearchPart,
    UserInputAudio,
    UserInputFile,
    UserInputImage,
    UserInputText,
    UserInputVideo,
    VideoPart,
)
from suture.wires import WIRES, ChatWire, get_chat_wire, get_wire
from tests.wires.chat import AGENTIC, CHAT, CHAT_WIRES, MESSAGE, NATIVE, PARTS, TOOLS, each_part, on_each_wire

on_native_wires = pytest.mark.parametrize("wire", NATIVE, ids=lambda wire: wire.name)


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
        {"type": "file", "file": {"filename": "document", "file_data": "data:application/octet-stream;base64,JVBE"}},
    ),
    (
        FilePart(url="data:;base64,JVBE", mime_type="application/pdf"),
        {"type": "file", "file": {"filename": "document.pdf", "file_data": "data:application/pdf;base64,JVBE"}},
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
