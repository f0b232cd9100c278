"""The messages of other frameworks are what goes into an agent; what they lose is named."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from agent_framework import Content
from agent_framework import Message as FrameworkMessage
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from pydantic_ai import messages as pydantic_ai

import suture
from suture import ChatModelAgent, InputError, Message, ToolCall
from suture.codecs import convert
from suture.events import HistoryRewritten
from suture.messages import ImagePart, TextPart
from suture.testing import ScriptedModel

URL = "https://example.com/cat.png"
CALLS = [{"id": "call_1", "name": "tides", "args": {"port": "Dover"}}]
EXPECTED = [
    Message.system("Be brief."),
    Message.user([TextPart("What is this?"), ImagePart(url=URL), ImagePart(base64_data="aGk=", mime_type="image/png")]),
    Message.assistant("Let me see.", [ToolCall("call_1", "tides", '{"port":"Dover"}')]),
    Message.tool("06:12", "call_1", "tides"),
    Message.user("Well?"),
]

HISTORIES: dict[str, Callable[[], list[Any]]] = {
    "langchain": lambda: [
        SystemMessage("Be brief."),
        HumanMessage(
            [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": URL}},
                {"type": "image", "base64": "aGk=", "mime_type": "image/png"},
            ]
        ),
        AIMessage("Let me see.", tool_calls=CALLS),
        ToolMessage("06:12", tool_call_id="call_1"),
        HumanMessage("Well?"),
    ],
    "pydantic-ai": lambda: [
        pydantic_ai.ModelRequest(
            [
                pydantic_ai.SystemPromptPart("Be brief."),
                pydantic_ai.UserPromptPart(
                    [
                        "What is this?",
                        pydantic_ai.ImageUrl(URL),
                        pydantic_ai.BinaryContent(data=b"hi", media_type="image/png"),
                    ]
                ),
            ]
        ),
        pydantic_ai.ModelResponse(
            [
                pydantic_ai.TextPart("Let me see."),
                pydantic_ai.ToolCallPart("tides", {"port": "Dover"}, "call_1"),
            ]
        ),
        pydantic_ai.ModelRequest(
            [pydantic_ai.ToolReturnPart("tides", "06:12", "call_1"), pydantic_ai.UserPromptPart("Well?")]
        ),
    ],
    "agent-framework": lambda: [
        FrameworkMessage("system", ["Be brief."]),
        FrameworkMessage(
            "user",
            ["What is this?", Content.from_uri(URL, media_type="image/png"), Content.from_data(b"hi", "image/png")],
        ),
        FrameworkMessage(
            "assistant",
            ["Let me see.", Content.from_function_call("call_1", "tides", arguments={"port": "Dover"})],
        ),
        FrameworkMessage("tool", [Content.from_function_result("call_1", result="06:12")]),
        FrameworkMessage("user", ["Well?"]),
    ],
}


def without_url_type(message: Message) -> Message:
    """Return a message without the type of an image that is only a link, which some frameworks guess."""
    parts = [
        suture.replace(part, mime_type="") if isinstance(part, ImagePart) and part.url else part
        for part in message.user_input_multi_content
    ]
    return suture.replace(message, user_input_multi_content=parts)


def run_with(given: Any, **options: Any) -> tuple[list[Any], list[HistoryRewritten]]:
    model = ScriptedModel(["done"])

    async def listen() -> list[HistoryRewritten]:
        async with ChatModelAgent(model=model).stream(given, **options) as run:
            return [event async for event in run if isinstance(event, HistoryRewritten)]

    events = asyncio.run(listen())
    return list(model.requests[0].messages), events


@pytest.mark.parametrize("guest", HISTORIES)
def test_the_messages_of_a_framework_go_in(guest: str):
    said, events = run_with(HISTORIES[guest]())
    assert (list(map(without_url_type, said)), events) == (EXPECTED, [])
    assert list(map(without_url_type, convert(HISTORIES[guest](), guest, "message").messages)) == EXPECTED


@pytest.mark.parametrize("guest", HISTORIES)
def test_they_stand_beside_dicts_pairs_and_native_messages(guest: str):
    history = [*HISTORIES[guest](), Message.assistant("A cat.")]
    said, _ = run_with([{"role": "user", "content": "and?"}, ("ai", "So."), ("user", "Hm.")], history=history)
    more = ["A cat.", "and?", "So.", "Hm."]
    assert list(map(without_url_type, said[:-4])) == EXPECTED
    assert [message.content for message in said[-4:]] == more


THOUGHTS: dict[str, Any] = {
    "langchain": lambda: AIMessage(
        [{"type": "thinking", "thinking": "Hm.", "signature": "s"}, {"type": "text", "text": "So."}]
    ),
    "pydantic-ai": lambda: pydantic_ai.ModelResponse(
        [pydantic_ai.ThinkingPart("Hm.", signature="s"), pydantic_ai.TextPart("So.")]
    ),
    "agent-framework": lambda: FrameworkMessage("assistant", [Content.from_text_reasoning(text="Hm."), "So."]),
}


@pytest.mark.parametrize("guest", THOUGHTS)
def test_a_thought_that_only_its_provider_could_read_again_is_lost_and_named(guest: str):
    said, (event,) = run_with("and?", history=[HISTORIES[guest]()[0], THOUGHTS[guest]()])
    assert [message.content for message in said[-2:]] == ["So.", "and?"]
    assert (event.by, event.before) == ("convert", 3)
    assert event.report == {"losses": [{"name": "reasoning", "what": "a thought", "index": 1, "path": ""}]}


def test_a_blank_message_of_a_framework_is_no_input():
    with pytest.raises(InputError, match="no words and no parts"):
        run_with([HumanMessage(" ")])
