"""What no codec may drop without a word, whatever the format."""

from typing import Any

import pytest

from suture.codecs import CODECS, Loss, Lost, Request, convert, get_codec
from suture.errors import InputError
from suture.messages import (
    AgenticMessage,
    AssistantGenText,
    FunctionToolCall,
    FunctionToolResult,
    Opaque,
    Reasoning,
    ToolInfo,
    UserInputImage,
    UserInputText,
)

each_wire = pytest.mark.parametrize("wire", CODECS)
IMAGE: dict[str, Any] = {"base64_data": "QUJD", "mime_type": "image/png"}


def reported(wire: str, *messages: AgenticMessage) -> list[Loss]:
    return list(get_codec(wire).encode_request(Request(messages)).losses)


BROKEN: dict[str, dict[str, Any]] = {"none": {}, "a number": {"value": 5}, "null": {"value": None}}


@each_wire
@pytest.mark.parametrize("held", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("role", ["system", "user", "assistant"])
def test_a_kept_block_that_holds_none_is_reported(role: Any, held: dict[str, Any], wire: str):
    block = Opaque({"type": f"{wire}.block", **held})
    assert Lost.BLOCK in [loss.name for loss in reported(wire, AgenticMessage(role, [block]))]


def carrying(extra: dict[str, Any], wire: str) -> dict[str, AgenticMessage]:
    result = FunctionToolResult("a", "f", [UserInputText("1")], extra=extra)
    thought = Reasoning("Hm.", "c2ln", extension={"wire": wire}, extra=extra)
    return {
        "a text": AgenticMessage("user", [UserInputText("hi", extra=extra)]),
        "a text of the model's": AgenticMessage("assistant", [AssistantGenText("hi", extra=extra)]),
        "an image": AgenticMessage("user", [UserInputImage(**IMAGE, extra=extra)]),
        "a call": AgenticMessage("assistant", [FunctionToolCall("a", "f", "{}", extra=extra)]),
        "a result": AgenticMessage("user", [result]),
        "a thought": AgenticMessage("assistant", [thought, AssistantGenText("hi")]),
        "a message": AgenticMessage("user", [UserInputText("hi")], extra=extra),
        "a reply": AgenticMessage("assistant", [AssistantGenText("hi")], extra=extra),
        "a system message": AgenticMessage("system", [UserInputText("hi")], extra=extra),
    }


@each_wire
@pytest.mark.parametrize("name", carrying({}, ""))
def test_what_stands_in_extra_under_the_name_of_a_wire_and_is_no_object_is_reported(name: str, wire: str):
    for found in CODECS:
        losses = reported(wire, carrying({found: 5}, wire)[name])
        assert (Lost.EXTRA, f"extra {found!r}") in [(loss.name, loss.what) for loss in losses]


@each_wire
def test_what_a_tool_carries_for_a_wire_and_is_no_object_is_reported(wire: str):
    tool = ToolInfo("f", "Do it.", extra={wire: 5})
    assert get_codec(wire).encode_request(Request([AgenticMessage.user("hi")], tools=[tool])).losses


@each_wire
def test_where_media_are_is_reported_if_they_are_written_by_value(wire: str):
    image = UserInputImage(**IMAGE, url="https://example.com/a.png")
    [loss] = reported(wire, AgenticMessage("user", [image]))
    assert (loss.name, loss.what) == (Lost.DETAIL, "address https://example.com/a.png")


@pytest.mark.parametrize("wire", ["openai-chat", "anthropic", "gemini", "bedrock"])
def test_what_a_thought_carries_that_its_provider_never_said_is_reported(wire: str):
    thought = Reasoning("Hm.", "c2ln", extension={"wire": wire, "mine": 1})
    losses = reported(wire, AgenticMessage("assistant", [thought, AssistantGenText("hi")]))
    assert (Lost.FIELD, "mine of a thought") in [(loss.name, loss.what) for loss in losses]


@pytest.mark.parametrize("wire", ["anthropic", "gemini", "bedrock"])
def test_what_the_system_says_first_crosses_as_the_users_where_a_list_has_no_place_for_it(wire: str):
    history = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]
    messages, losses = convert(history, "openai-chat", wire)
    assert [loss.name for loss in losses] == [Lost.SYSTEM]
    assert messages[0]["role"] == "user"
    assert "Be brief." in str(messages[0])


@each_wire
def test_a_message_that_cannot_be_read_is_named_by_its_place(wire: str):
    said = convert([AgenticMessage.user("hi"), AgenticMessage.user("half")], "agentic", wire).messages
    field = "parts" if wire == "gemini" else "content"
    said[1][field] = [{"type": "text", "text": "half \ud83d"}]
    with pytest.raises(InputError, match=r"message 1, .*surrogate"):
        convert(said, wire, "message")
