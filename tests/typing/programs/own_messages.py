"""Suture's own messages: made, read, changed, stored."""

from typing import assert_type

from suture import AgenticMessage, History, Message, TokenUsage, ToolCall, ToolInfo, ToolResult, replace
from suture.messages import (
    AnyMessage,
    AssistantGenText,
    FunctionToolCall,
    FunctionToolResult,
    ImagePart,
    Reasoning,
    ResponseMeta,
    TextPart,
    ToolSearchPart,
    UserInputText,
    from_json,
    to_json,
)


def made() -> list[Message]:
    return [
        Message.system("Answer briefly."),
        Message.user([TextPart("What is this?"), ImagePart(url="https://example.com/cat.png", detail="high")]),
        Message("user", user_input_multi_content=[TextPart("And this?")], name="ada"),
        Message("assistant", "Let me see.", tool_calls=[ToolCall("call_1", "look", "{}")], extra={"seen": 1}),
        Message.tool([TextPart("a cat"), ToolSearchPart([ToolInfo("look")])], "call_1", "look", is_error=False),
        Message("assistant", "A cat.", response_meta=ResponseMeta(usage=TokenUsage(total_tokens=7))),
    ]


def made_of_blocks() -> list[AgenticMessage]:
    return [
        AgenticMessage.user("What is this?"),
        AgenticMessage("assistant", [Reasoning("Look.", "sig"), FunctionToolCall("call_1", "look", "{}")]),
        AgenticMessage.user([FunctionToolResult("call_1", "look", [UserInputText("a cat")])]),
        AgenticMessage.tool_result("call_2", "look", [UserInputText("a dog")], is_error=True),
        AgenticMessage.assistant("A cat."),
    ]


def read(message: AnyMessage) -> str:
    if isinstance(message, Message):
        assert_type(message, Message)
        return message.content or " ".join(call.name for call in message.tool_calls)
    assert_type(message, AgenticMessage)
    texts: list[str] = []
    for block in message.content_blocks:
        match block:
            case UserInputText(text) | AssistantGenText(text):
                texts.append(text)
            case FunctionToolCall(call_id=call_id, name=name):
                texts.append(f"{name} {call_id}")
            case FunctionToolResult():
                texts += [part.text for part in block.content if isinstance(part, UserInputText)]
            case _:
                pass
    return " ".join(texts)


def main() -> None:
    messages = made()
    assert [read(message) for message in messages][3:] == ["Let me see.", "", "A cat."]
    assert [read(message) for message in made_of_blocks()][1:3] == ["look call_1", "a cat"]
    louder = replace(messages[0], content="Answer LOUDLY.")
    assert_type(louder, Message)
    meta = messages[-1].response_meta
    if meta is not None and meta.usage is not None:
        assert_type(meta.usage.total_tokens, int)
    history = History(messages).continue_with([louder])
    assert_type(history, History[Message])
    assert_type(history[-1], Message)
    assert_type(history[:2], list[Message])
    assert list(from_json(to_json(messages))) == messages
    assert ToolResult([TextPart("a")], extra={"a": 1}) == ToolResult((TextPart("a"),), extra={"a": 1})


if __name__ == "__main__":
    main()
