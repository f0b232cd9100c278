"""Messages of Chat Completions, each beside the native message that says the same."""

from typing import Any

from suture.messages import (
    AgenticMessage,
    AssistantGenAudio,
    AssistantGenImage,
    AssistantGenText,
    FunctionToolCall,
    FunctionToolResult,
    Opaque,
    Reasoning,
    UserInputAudio,
    UserInputFile,
    UserInputImage,
    UserInputText,
    UserInputVideo,
)

WIRE = "openai-chat"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
ADDRESS = "https://example.com/a"
MARK = {"cache_control": {"type": "ephemeral"}}
SIGNED = {"type": "reasoning.text", "text": "Hm.", "signature": "c2ln", "index": 0}
SEALED = {"type": "reasoning.encrypted", "data": "ZW5j", "id": "rs_1", "index": 1}
CALL = {"id": "call_1", "type": "function", "function": {"name": "tides", "arguments": '{"port": "Dover"}'}}
CUSTOM = {"id": "call_1", "type": "custom", "custom": {"name": "shell", "input": "ls -l"}}
SIGNATURE = {"extra_content": {"google": {"thought_signature": "c2ln"}}}
IMAGE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}


def own(**fields: Any) -> dict[str, Any]:
    """Return the `extra` of what was read here."""
    return {WIRE: fields}


def kept(value: dict[str, Any]) -> Opaque:
    """Return what nobody knows, as it is kept."""
    return Opaque({"type": "openai-chat.block", "value": value})


def given(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(parts)}


def made(content: Any = None, **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **fields}


def answer(content: Any = "06:12", **fields: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": "call_1", "content": content, **fields}


def thought(text: str, signature: str = "", **extension: Any) -> Reasoning:
    return Reasoning(text, signature, extension={"wire": WIRE, **extension})


def reply(*blocks: Any, extra: Any = None) -> AgenticMessage:
    return AgenticMessage("assistant", blocks, extra=extra or {})


def result(*content: Any, name: str = "", extra: Any = None) -> AgenticMessage:
    return AgenticMessage("user", (FunctionToolResult("call_1", name, content, extra=extra or {}),))


WORDS, CALLED = AssistantGenText("At 06:12."), FunctionToolCall("call_1", "tides", '{"port": "Dover"}')
SAID: dict[str, tuple[dict[str, Any], AgenticMessage]] = {
    "a user's text": ({"role": "user", "content": "hi"}, AgenticMessage.user("hi")),
    "an empty text": ({"role": "user", "content": ""}, AgenticMessage.user("")),
    "a system message": ({"role": "system", "content": "Be brief."}, AgenticMessage.system("Be brief.")),
    "a developer message": (
        {"role": "developer", "content": "Be brief."},
        AgenticMessage("system", (UserInputText("Be brief."),), extra=own(role="developer")),
    ),
    "the name of who speaks": (
        {"role": "user", "content": "hi", "name": "ann"},
        AgenticMessage("user", (UserInputText("hi"),), extra=own(name="ann")),
    ),
    "one text in a list": (
        given({"type": "text", "text": "hi"}),
        AgenticMessage("user", (UserInputText("hi"),), extra=own(listed=None)),
    ),
    "two texts": (
        given({"type": "text", "text": "a"}, {"type": "text", "text": "b"}),
        AgenticMessage("user", (UserInputText("a"), UserInputText("b")), extra=own(listed=None)),
    ),
    "a text with a mark": (
        given({"type": "text", "text": "hi", **MARK}),
        AgenticMessage.user([UserInputText("hi", extra=own(**MARK))]),
    ),
    "an image by address": (
        given({"type": "image_url", "image_url": {"url": ADDRESS, "detail": "low"}, **MARK}),
        AgenticMessage.user([UserInputImage(url=ADDRESS, detail="low", extra=own(**MARK))]),
    ),
    "an image by value": (
        given({"type": "text", "text": "What is it?"}, IMAGE),
        AgenticMessage.user([UserInputText("What is it?"), UserInputImage(base64_data=PIXEL, mime_type="image/png")]),
    ),
    "an image of no type": (
        given({"type": "image_url", "image_url": {"url": "data:;base64,AAAA", "zoom": 2}}),
        AgenticMessage.user([UserInputImage(url="data:;base64,AAAA", extra=own(image_url={"zoom": 2}))]),
    ),
    "a sound": (
        given({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}}),
        AgenticMessage.user([UserInputAudio(base64_data="AAAA", mime_type="audio/mpeg")]),
    ),
    "a film": (
        given({"type": "video_url", "video_url": {"url": ADDRESS}}),
        AgenticMessage.user([UserInputVideo(url=ADDRESS)]),
    ),
    "a file by value": (
        given({"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"}}),
        AgenticMessage.user([UserInputFile(base64_data="JVBE", mime_type="application/pdf", name="a.pdf")]),
    ),
    "a file by its id": (
        given({"type": "file", "file": {"file_id": "file_1"}}),
        AgenticMessage.user([UserInputFile(extra=own(file={"file_id": "file_1"}))]),
    ),
    "a file by address": (
        given({"type": "file", "file": {"filename": "a.pdf", "file_data": ADDRESS}}),
        AgenticMessage.user([UserInputFile(name="a.pdf", url=ADDRESS, extra=own(file={"file_data": ADDRESS}))]),
    ),
    "a part that nobody knows": (
        given({"type": "hologram", "beam": 7}),
        AgenticMessage.user([kept({"type": "hologram", "beam": 7})]),
    ),
    "a part in another form": (
        given({"type": "image_url", "image_url": ADDRESS}),
        AgenticMessage.user([kept({"type": "image_url", "image_url": ADDRESS})]),
    ),
    "a result": (answer(), result(UserInputText("06:12"))),
    "an empty result": (answer(""), result(UserInputText(""))),
    "a result with the name of its tool": (
        answer(name="tides"),
        result(UserInputText("06:12"), name="tides", extra=own(named=None)),
    ),
    "a result in two texts": (
        answer([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
        result(UserInputText("a"), UserInputText("b"), extra=own(listed=None)),
    ),
    "a result with a field of its own": (
        answer(**MARK),
        result(UserInputText("06:12"), extra=own(**MARK)),
    ),
    "a result of the older form": (
        {"role": "function", "name": "tides", "content": "06:12"},
        AgenticMessage("user", (kept({"role": "function", "name": "tides", "content": "06:12"}),)),
    ),
}
MADE: dict[str, tuple[dict[str, Any], AgenticMessage]] = {
    "a text": (made("At 06:12."), reply(WORDS)),
    "nothing": (made(""), reply()),
    "a call": (made(tool_calls=[CALL]), reply(CALLED)),
    "a text and a call": (made("At 06:12.", tool_calls=[CALL]), reply(WORDS, CALLED)),
    "a signed call": (
        made(tool_calls=[{**CALL, **SIGNATURE}]),
        reply(FunctionToolCall("call_1", "tides", '{"port": "Dover"}', extra=own(**SIGNATURE))),
    ),
    "a call that was cut": (
        made(tool_calls=[{"id": "", "type": "function", "function": {"name": "", "arguments": '{"port": "Do'}}]),
        reply(FunctionToolCall("", "", '{"port": "Do')),
    ),
    "a call of a custom tool": (
        made(tool_calls=[CUSTOM]),
        reply(FunctionToolCall("call_1", "shell", "ls -l", extra={"suture.kind": "custom"})),
    ),
    "a call that nobody knows": (
        made(tool_calls=[{"id": "c", "type": "beam", "beam": {"width": 7}}]),
        reply(kept({"tool_call": {"id": "c", "type": "beam", "beam": {"width": 7}}})),
    ),
    "a call of the older form": (
        made(function_call={"name": "tides", "arguments": "{}"}),
        reply(kept({"function_call": {"name": "tides", "arguments": "{}"}})),
    ),
    "a refusal": (
        made(refusal="I will not."),
        reply(AssistantGenText("I will not.", extension={"refusal": True})),
    ),
    "two refusals among the parts": (
        made([{"type": "refusal", "refusal": "No."}, {"type": "refusal", "refusal": "No!"}]),
        reply(*(AssistantGenText(text, extension={"refusal": True}) for text in ("No.", "No!"))),
    ),
    "a text in a list": (
        made([{"type": "text", "text": "At 06:12."}], tool_calls=[CALL]),
        reply(WORDS, CALLED, extra=own(listed=None)),
    ),
    "thought": (made("At 06:12.", reasoning_content="Hm."), reply(thought("Hm."), WORDS)),
    "thought alone": (made("", reasoning_content="Hm."), reply(thought("Hm."))),
    "thought in another field": (
        made(tool_calls=[CALL], reasoning="Hm."),
        reply(thought("Hm.", field="reasoning"), CALLED),
    ),
    "thought with its details": (
        made(tool_calls=[CALL], reasoning="Hm.", reasoning_details=[SIGNED, SEALED]),
        reply(thought("Hm.", "c2ln", field="reasoning", details=[SIGNED, SEALED]), CALLED),
    ),
    "details alone": (
        made(tool_calls=[CALL], reasoning_details=[SEALED]),
        reply(thought("", field="reasoning_details", details=[SEALED]), CALLED),
    ),
    "thought among the parts": (
        made([{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, {"type": "text", "text": "6."}]),
        reply(thought("Hm.", field="thinking"), AssistantGenText("6.")),
    ),
    "two fields of the same thought": (
        made("6.", reasoning_content="Hm.", reasoning="Hm."),
        reply(thought("Hm."), AssistantGenText("6."), extra=own(reasoning="Hm.")),
    ),
    "an empty thought": (
        made(tool_calls=[CALL], reasoning_content=""),
        reply(CALLED, extra=own(reasoning_content="")),
    ),
    "a sound": (
        made(audio={"id": "audio_1"}),
        reply(AssistantGenAudio(extra=own(id="audio_1"))),
    ),
    "an image": (
        made(images=[{**IMAGE, "index": 3}, {"type": "image_url", "image_url": {"url": ADDRESS}}]),
        reply(
            AssistantGenImage(base64_data=PIXEL, mime_type="image/png", extra=own(index=3)),
            AssistantGenImage(url=ADDRESS, extra=own(index=None)),
        ),
    ),
    "a name and a prefix": (
        made("At", name="harbour", prefix=True),
        reply(AssistantGenText("At"), extra=own(name="harbour", prefix=True)),
    ),
}
MESSAGES = {**SAID, **{f"the model's: {name}": pair for name, pair in MADE.items()}}
