"""Parts of Gemini's contents, each beside the native block that says the same."""

from typing import Any

from suture.messages import (
    AssistantGenAudio,
    AssistantGenImage,
    AssistantGenText,
    AssistantGenVideo,
    ContentBlock,
    FunctionToolCall,
    FunctionToolResult,
    Opaque,
    Reasoning,
    ServerToolCall,
    ServerToolResult,
    UserInputAudio,
    UserInputFile,
    UserInputImage,
    UserInputText,
    UserInputVideo,
)

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
FILE = "https://generativelanguage.googleapis.com/v1beta/files/a"
SIGNED = {"thoughtSignature": "c2lnbmVk"}
CODE = {"language": "PYTHON", "code": "print(6)"}
OUTPUT = {"outcome": "OUTCOME_OK", "output": "6\n"}


def inline(mime_type: str, **fields: Any) -> dict[str, Any]:
    return {"inlineData": {"mimeType": mime_type, "data": PIXEL}, **fields}


def response(**fields: Any) -> dict[str, Any]:
    return {"functionResponse": {"id": "a", "name": "tides", **fields}}


def result(*content: Any, is_error: bool = False, **kept: Any) -> FunctionToolResult:
    return FunctionToolResult("a", "tides", content, is_error, extra={"gemini": kept} if kept else {})


GIVEN: dict[str, tuple[dict[str, Any], ContentBlock]] = {
    "text": ({"text": "hi"}, UserInputText("hi")),
    "text that says nothing": ({"text": ""}, UserInputText("")),
    "text with metadata": (
        {"text": "hi", "partMetadata": {"my_source": 1}},
        UserInputText("hi", extra={"gemini": {"partMetadata": {"my_source": 1}}}),
    ),
    "image by value": (inline("image/png"), UserInputImage(base64_data=PIXEL, mime_type="image/png")),
    "image at a resolution": (
        inline("image/png", mediaResolution={"level": "MEDIA_RESOLUTION_HIGH"}),
        UserInputImage(
            base64_data=PIXEL,
            mime_type="image/png",
            extra={"gemini": {"mediaResolution": {"level": "MEDIA_RESOLUTION_HIGH"}}},
        ),
    ),
    "sound by value": (inline("audio/ogg"), UserInputAudio(base64_data=PIXEL, mime_type="audio/ogg")),
    "document by value": (inline("application/pdf"), UserInputFile(base64_data=PIXEL, mime_type="application/pdf")),
    "bytes of no type": (
        {"inlineData": {"data": PIXEL}},
        UserInputFile(base64_data=PIXEL, extra={"gemini": {"inlineData": {"mimeType": None}}}),
    ),
    "a named blob": (
        {"inlineData": {"mimeType": "image/png", "data": PIXEL, "displayName": "tide.png"}},
        UserInputImage(
            base64_data=PIXEL, mime_type="image/png", extra={"gemini": {"inlineData": {"displayName": "tide.png"}}}
        ),
    ),
    "film by address": (
        {
            "fileData": {"mimeType": "video/mp4", "fileUri": FILE},
            "videoMetadata": {"startOffset": "2s", "fps": 0.5},
        },
        UserInputVideo(
            url=FILE, mime_type="video/mp4", extra={"gemini": {"videoMetadata": {"startOffset": "2s", "fps": 0.5}}}
        ),
    ),
    "file of no type": ({"fileData": {"fileUri": FILE}}, UserInputFile(url=FILE)),
    "result": (response(response={"output": "06:12"}), result(UserInputText("06:12"))),
    "error": (response(response={"error": "no port"}), result(UserInputText("no port"), is_error=True)),
    "error without words": (response(response={"error": ""}), result(UserInputText(""), is_error=True)),
    "result under another name": (
        response(response={"result": "06:12"}),
        result(UserInputText("06:12"), output="result"),
    ),
    "struct": (
        response(response={"high": ["06:12", "18:40"], "port": {"name": "Dover"}}),
        result(UserInputText('{"high":["06:12","18:40"],"port":{"name":"Dover"}}'), output=None),
    ),
    "struct under output": (
        response(response={"output": {"high": 6.2}}),
        result(UserInputText('{"output":{"high":6.2}}'), output=None),
    ),
    "struct that tells an error": (
        response(response={"error": {"code": 5}, "port": "Dover"}),
        result(UserInputText('{"error":{"code":5},"port":"Dover"}'), is_error=True, output=None),
    ),
    "struct that tells no error": (
        response(response={"error": None, "high": "06:12"}),
        result(UserInputText('{"error":null,"high":"06:12"}'), output=None),
    ),
    "empty struct": (response(response={}), result(output=None)),
    "no response": (response(), result(functionResponse={"response": None})),
    "result with media": (
        response(response={"output": "see"}, parts=[inline("image/png"), {"fileData": {"fileUri": FILE}}]),
        result(
            UserInputText("see"),
            UserInputImage(base64_data=PIXEL, mime_type="image/png"),
            UserInputFile(url=FILE),
        ),
    ),
    "result with a part that nobody knows": (
        response(response={"output": "see"}, parts=[{"hologram": 7}]),
        result(UserInputText("see"), Opaque({"type": "gemini.block", "value": {"hologram": 7}})),
    ),
    "result that goes on": (
        response(response={"output": "soon"}, willContinue=True, scheduling="SILENT"),
        result(UserInputText("soon"), functionResponse={"willContinue": True, "scheduling": "SILENT"}),
    ),
    "result without an id": (
        {"functionResponse": {"name": "tides", "response": {"output": "06:12"}}},
        FunctionToolResult("", "tides", [UserInputText("06:12")]),
    ),
    "unknown part": ({"hologram": {"beam": 7}}, Opaque({"type": "gemini.block", "value": {"hologram": {"beam": 7}}})),
    "blob without data": (
        {"inlineData": {"mimeType": "image/png"}},
        Opaque({"type": "gemini.block", "value": {"inlineData": {"mimeType": "image/png"}}}),
    ),
}
MADE: dict[str, tuple[dict[str, Any], ContentBlock]] = {
    "text": ({"text": "hi"}, AssistantGenText("hi")),
    "signed text": ({"text": "hi", **SIGNED}, AssistantGenText("hi", extra={"gemini": SIGNED})),
    "signature on nothing": ({"text": "", **SIGNED}, AssistantGenText("", extra={"gemini": SIGNED})),
    "thought": ({"text": "hm", "thought": True}, Reasoning("hm", extension={"wire": "gemini"})),
    "signed thought": (
        {"text": "hm", "thought": True, **SIGNED},
        Reasoning("hm", "c2lnbmVk", extension={"wire": "gemini"}),
    ),
    "thought without words": (
        {"thought": True, **SIGNED},
        Reasoning("", "c2lnbmVk", extension={"wire": "gemini"}, extra={"gemini": {"text": None}}),
    ),
    "call": (
        {"functionCall": {"id": "a", "name": "tides", "args": {"port": "Dover"}}},
        FunctionToolCall("a", "tides", '{"port":"Dover"}'),
    ),
    "signed call": (
        {"functionCall": {"id": "a", "name": "tides", "args": {}}, **SIGNED},
        FunctionToolCall("a", "tides", "{}", extra={"gemini": SIGNED}),
    ),
    "call without arguments": (
        {"functionCall": {"id": "a", "name": "now"}},
        FunctionToolCall("a", "now", "{}", extra={"gemini": {"functionCall": {"args": None}}}),
    ),
    "call beside an empty text": (
        {"text": "", "functionCall": {"id": "a", "name": "now", "args": {}}},
        FunctionToolCall("a", "now", "{}", extra={"gemini": {"text": ""}}),
    ),
    "image": (inline("image/png"), AssistantGenImage(base64_data=PIXEL, mime_type="image/png")),
    "image that was thought": (
        inline("image/png", thought=True, **SIGNED),
        AssistantGenImage(base64_data=PIXEL, mime_type="image/png", extra={"gemini": {"thought": True, **SIGNED}}),
    ),
    "sound": (
        {"inlineData": {"mimeType": "audio/L16;rate=24000", "data": PIXEL}},
        AssistantGenAudio(base64_data=PIXEL, mime_type="audio/L16;rate=24000"),
    ),
    "film": (
        {"fileData": {"mimeType": "video/mp4", "fileUri": FILE}},
        AssistantGenVideo(url=FILE, mime_type="video/mp4"),
    ),
    "document": (
        inline("application/pdf"),
        Opaque({"type": "gemini.block", "value": inline("application/pdf")}),
    ),
    "code that it ran": (
        {"executableCode": {"id": "x", **CODE}, **SIGNED},
        ServerToolCall("x", "code_execution", arguments=CODE, extra={"gemini": {"executableCode": {}, **SIGNED}}),
    ),
    "what its code printed": (
        {"codeExecutionResult": OUTPUT},
        ServerToolResult("", "code_execution", content=OUTPUT, extra={"gemini": {"codeExecutionResult": {}}}),
    ),
    "a tool that it ran": (
        {"toolCall": {"id": "x", "toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["tide"]}}},
        ServerToolCall("x", "GOOGLE_SEARCH_WEB", arguments={"queries": ["tide"]}, extra={"gemini": {"toolCall": {}}}),
    ),
    "what its tool gave": (
        {"toolResponse": {"id": "x", "toolType": "URL_CONTEXT", "response": {"status": "OK"}}},
        ServerToolResult("x", "URL_CONTEXT", content={"status": "OK"}, extra={"gemini": {"toolResponse": {}}}),
    ),
    "unknown part": ({"hologram": 7}, Opaque({"type": "gemini.block", "value": {"hologram": 7}})),
}
