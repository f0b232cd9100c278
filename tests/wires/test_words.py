"""What a model reads of a message: its texts, and how many media it carries, on every wire."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from suture.errors import InputError
from suture.messages import (
    AgenticMessage,
    Message,
)
from suture.wires import Wire, Words, get_wire
from tests.messages.test_round_trips import values_of
from tests.wires.chat import json_values
from tests.wires.results import FOREIGN, on_every_wire
from tests.wires.spoken import PAYLOAD, WORDS

MESSAGE, AGENTIC, CHAT, RESPONSES, ANTHROPIC, GEMINI, BEDROCK = map(get_wire, ("message", "agentic", *FOREIGN))
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize(("wire", "message", "texts", "media"), WORDS)
def test_the_words_of_a_message(wire: Wire, message: Any, texts: list[str], media: int):
    assert wire.words(message) == Words(tuple(texts), media)


# What is no text


def shown(value: Any) -> tuple[str, int]:
    texts, media = CHAT.words({"role": "user", "content": [{"type": "hologram", "x": value}]})
    return texts[1].removeprefix('{"type":"hologram"').removesuffix("}"), media


@pytest.mark.parametrize(
    "payload",
    [
        PAYLOAD,
        PAYLOAD + "==",
        PAYLOAD.replace("A", "-").replace("B", "_"),
        "\n".join([PAYLOAD[:76]] * 5) + "\n",
        "\r\n".join([PAYLOAD[:64]] * 5 + ["AA=="]),
        "data:image/png;base64,iVBO",
        "data:text/plain;charset=utf-8,hello",
        b"\x89PNG",
        bytearray(b"x"),
    ],
)
def test_a_payload_in_a_block_of_unknown_type_is_no_text_but_a_medium(payload: Any):
    assert shown(payload) == ("", 1)


@pytest.mark.parametrize(
    "text",
    [
        "iVBORw0KGgo=",
        "a text of many words " * 40,
        "\n".join(["word"] * 200),
        "/usr/lib/python3/site-packages/" * 40 + "x.py",
        "data: 7 rows",
        "data:image is a picture",
        "中" * 500,
    ],
)
def test_a_text_in_a_block_of_unknown_type_is_text(text: str):
    assert shown(text)[0].startswith(',"x":"')
    assert shown(text)[1] == 0


def test_what_is_signed_or_encrypted_is_neither_text_nor_a_medium():
    sealed = {
        "signature": PAYLOAD,
        "thoughtSignature": b"x",
        "encrypted_content": PAYLOAD,
        "redactedContent": "x",
        "n": 1,
    }
    assert shown(sealed) == (',"x":{"n":1}', 0)


def test_arguments_are_told_whole_whatever_they_hold():
    call = {"type": "tool_use", "id": "i", "name": "upload", "input": {"data": PAYLOAD, "signature": "s"}}
    assert (
        ANTHROPIC.words({"role": "assistant", "content": [call]}).texts[2] == f'{{"data":"{PAYLOAD}","signature":"s"}}'
    )


def test_telling_whether_a_text_is_a_payload_takes_one_pass():
    for text in ("A" * 5_000_000 + "!", ("A" * 60 + "\n") * 50_000 + "!", ("A" * 59 + "\n") * 50_000):
        assert shown(text)[1] == 0  # a pattern that went back would take hours


# Whatever a wire accepts can be told


def cyclic() -> Any:
    loop: dict[str, Any] = {"type": "hologram"}
    loop["self"] = [loop]
    return loop


def deep(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = {"in": [value]}
    return value


ODD = [
    cyclic(),
    {"type": "hologram", "x": deep(400)},
    {"type": "hologram", "x": "\ud800"},
    {"type": "hologram", "x": float("nan"), "y": {7: object(), (1, 2): {1}, None: 10**40}},
    {"type": "hologram", "x": SimpleNamespace(a=1, _b=2), "y": [SimpleNamespace()]},
    {"type": "text", "text": None},
    {"type": "text"},
    {"type": "document", "source": 7},
    {"type": "document", "source": {"type": "content", "content": [None, 7, cyclic()]}},
    {"type": "thinking", "thinking": ["x"]},
    {"type": ""},
    SimpleNamespace(type="hologram", x=[1]),
]


@pytest.mark.parametrize("block", ODD)
def test_a_block_that_is_odd_is_told_all_the_same(block: Any):
    for wire in (CHAT, ANTHROPIC, RESPONSES):
        message = {"role": "user", "content": [block]}
        wire.view(message)
        assert wire.words(message).texts[0] == "user"


@pytest.mark.parametrize("arguments", [cyclic(), {"x": "\ud800"}, {7: {1, 2}}, deep(50_000), [], 0, object()])
def test_arguments_that_are_odd_are_told_all_the_same(arguments: Any):
    message = {"role": "assistant", "content": [{"type": "tool_use", "id": "i", "name": "f", "input": arguments}]}
    assert ANTHROPIC.words(message).texts[:2] == ("assistant", "f")
    message = {"role": "user", "content": [{"toolResult": {"toolUseId": "i", "content": [{"json": arguments}]}}]}
    assert len(BEDROCK.words(message).texts) == 2
    message = {"role": "user", "parts": [{"functionResponse": {"name": "i", "response": arguments}}]}
    assert GEMINI.words(message).texts[0] == "user"


KEYS = st.sampled_from(
    ["role", "type", "content", "text", "tool_calls", "output", "call_id", "parts", "functionResponse", "functionCall",
     "response", "toolUse", "toolResult", "toolUseId", "json", "image", "document", "source", "thinking", "summary",
     "name", "thought", "id", "function", "arguments", "reasoningContent", "reasoning_details", "audio", "refusal",
     "input"]
)  # fmt: skip
LEAVES = json_values | st.sampled_from(
    ["user", "assistant", "tool", "model", "text", "tool_use", "tool_result", "function_call", "function_call_output",
     "reasoning", "message", "input_text", "image", "document", "content", "shell_call_output", "thinking", b"x"]
)  # fmt: skip
SHAPES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)
MESSAGES = st.dictionaries(KEYS, SHAPES, max_size=3).flatmap(
    lambda rest: st.fixed_dictionaries(
        {},
        optional={
            "role": st.sampled_from(["user", "assistant", "tool", "model", "function"]),
            "type": st.sampled_from(["message", "reasoning", "function_call", "function_call_output", "shell_call"]),
            "content": st.lists(st.dictionaries(KEYS, SHAPES, max_size=3), max_size=3) | SHAPES,
            "parts": st.lists(st.dictionaries(KEYS, SHAPES, max_size=3), max_size=3),
        },
    ).map(lambda fields: rest | fields)
)


@on_every_wire
@given(message=MESSAGES)
@unhurried
def test_whatever_a_wire_can_view_it_can_tell(wire: Wire, message: dict[str, Any]):
    try:
        view = wire.view(message)
    except InputError:
        return
    texts, media = wire.words(message)
    assert texts[0] == view.role
    assert all(isinstance(text, str) and text for text in texts)
    assert media >= 0


@given(values_of(Message))
@unhurried
def test_any_message_can_be_told(message: Message):
    assert MESSAGE.words(message).texts[0] == message.role


@given(values_of(AgenticMessage))
@unhurried
def test_any_agentic_message_can_be_told(message: AgenticMessage):
    assert AGENTIC.words(message).texts[0] == message.role


@on_every_wire
def test_what_is_no_message_of_a_wire_is_refused_as_ever(wire: Wire):
    with pytest.raises(InputError):
        wire.words({"role": "nobody", "content": []})
