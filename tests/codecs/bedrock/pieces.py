"""What Converse says in each of its forms and what that is in ours; strategies for whole messages."""

import base64
from typing import Any

import msgspec
from hypothesis import strategies as st

from suture.messages import (
    AgenticMessage,
    AssistantGenAudio,
    AssistantGenImage,
    AssistantGenText,
    AssistantGenVideo,
    FunctionToolCall,
    FunctionToolResult,
    Opaque,
    Reasoning,
    ServerToolCall,
    UserInputAudio,
    UserInputFile,
    UserInputImage,
    UserInputText,
    UserInputVideo,
)

WIRE = "bedrock"
DATA = base64.b64encode(b"data").decode()
S3 = "s3://bucket/key"
URL = {"s3Location": {"uri": S3}}


def kept(**fields: Any) -> dict[str, Any]:
    return {WIRE: fields}


def opaque(block: dict[str, Any]) -> Opaque:
    return Opaque({"type": "bedrock.block", "value": block})


# name: (role, Converse's block, ours)
BLOCKS: dict[str, tuple[str, dict[str, Any], Any]] = {
    "user text": ("user", {"text": "hi"}, UserInputText("hi")),
    "model's text": ("assistant", {"text": "hi"}, AssistantGenText("hi")),
    "image": (
        "user",
        {"image": {"format": "png", "source": {"bytes": DATA}}},
        UserInputImage(base64_data=DATA, mime_type="image/png"),
    ),
    "image in S3": (
        "user",
        {"image": {"format": "jpeg", "source": URL}},
        UserInputImage(url=S3, mime_type="image/jpeg"),
    ),
    "image in somebody's S3": (
        "user",
        {"image": {"format": "gif", "source": {"s3Location": {"uri": S3, "bucketOwner": "123456789012"}}}},
        UserInputImage(url=S3, mime_type="image/gif", extra=kept(bucketOwner="123456789012")),
    ),
    "image of a new format": (
        "user",
        {"image": {"format": "heic", "source": {"bytes": DATA}}},
        UserInputImage(base64_data=DATA, mime_type="image/heic", extra=kept(format="heic")),
    ),
    "model's image": (
        "assistant",
        {"image": {"format": "webp", "source": {"bytes": DATA}}},
        AssistantGenImage(base64_data=DATA, mime_type="image/webp"),
    ),
    "image that failed": (
        "assistant",
        {"image": {"format": "png", "error": {"message": "no"}}},
        opaque({"image": {"format": "png", "error": {"message": "no"}}}),
    ),
    "video": (
        "user",
        {"video": {"format": "three_gp", "source": URL}},
        UserInputVideo(url=S3, mime_type="video/3gpp"),
    ),
    "video of the same type by another name": (
        "user",
        {"video": {"format": "mpg", "source": {"bytes": DATA}}},
        UserInputVideo(base64_data=DATA, mime_type="video/mpg", extra=kept(format="mpg")),
    ),
    "model's video": (
        "assistant",
        {"video": {"format": "mov", "source": {"bytes": DATA}}},
        AssistantGenVideo(base64_data=DATA, mime_type="video/quicktime"),
    ),
    "audio": (
        "user",
        {"audio": {"format": "mp3", "source": {"bytes": DATA}}},
        UserInputAudio(base64_data=DATA, mime_type="audio/mpeg"),
    ),
    "model's audio": (
        "assistant",
        {"audio": {"format": "ogg", "source": {"bytes": DATA}}},
        AssistantGenAudio(base64_data=DATA, mime_type="audio/ogg"),
    ),
    "document": (
        "user",
        {"document": {"format": "pdf", "name": "report", "source": {"bytes": DATA}}},
        UserInputFile(base64_data=DATA, mime_type="application/pdf", name="report"),
    ),
    "document to be cited": (
        "user",
        {
            "document": {
                "format": "md",
                "name": "notes_1",
                "context": "minutes",
                "citations": {"enabled": True},
                "source": {"bytes": DATA},
            }
        },
        UserInputFile(
            base64_data=DATA,
            mime_type="text/markdown",
            name="notes_1",
            extra=kept(context="minutes", citations={"enabled": True}),
        ),
    ),
    "document of text": (
        "user",
        {"document": {"name": "poem", "source": {"text": "data"}}},
        UserInputFile(base64_data=DATA, mime_type="text/plain", name="poem", extra=kept(source="text", format=None)),
    ),
    "document of blocks": (
        "user",
        {"document": {"name": "poem", "source": {"content": [{"text": "data"}]}}},
        opaque({"document": {"name": "poem", "source": {"content": [{"text": "data"}]}}}),
    ),
    "call": (
        "assistant",
        {"toolUse": {"toolUseId": "a", "name": "f", "input": {"q": [1, 2.5, None]}}},
        FunctionToolCall("a", "f", '{"q":[1,2.5,null]}'),
    ),
    "call with a new field": (
        "assistant",
        {"toolUse": {"toolUseId": "a", "name": "f", "input": {}, "colour": "red"}},
        FunctionToolCall("a", "f", "{}", extra=kept(colour="red")),
    ),
    "call that the service ran": (
        "assistant",
        {"toolUse": {"toolUseId": "a", "name": "nova_grounding", "input": {"q": 1}, "type": "server_tool_use"}},
        ServerToolCall(call_id="a", name="nova_grounding", arguments={"q": 1}, extra=kept(type="server_tool_use")),
    ),
    "result": (
        "user",
        {"toolResult": {"toolUseId": "a", "content": [{"text": "42"}]}},
        FunctionToolResult("a", "", [UserInputText("42")]),
    ),
    "result that says it is one": (
        "user",
        {"toolResult": {"toolUseId": "a", "content": [{"text": ""}], "status": "success"}},
        FunctionToolResult("a", "", [UserInputText("")], extra=kept(status="success")),
    ),
    "result that reports an error": (
        "user",
        {"toolResult": {"toolUseId": "a", "content": [{"text": "no"}], "status": "error"}},
        FunctionToolResult("a", "", [UserInputText("no")], is_error=True),
    ),
    "result that is empty": (
        "user",
        {"toolResult": {"toolUseId": "a", "content": []}},
        FunctionToolResult("a", ""),
    ),
    "result of all kinds": (
        "user",
        {
            "toolResult": {
                "toolUseId": "a",
                "content": [
                    {"json": {"a": 1.0, "b": [True, "x"]}},
                    {"image": {"format": "png", "source": {"bytes": DATA}}},
                    {"document": {"format": "csv", "name": "table", "source": {"bytes": DATA}}},
                    {"video": {"format": "mp4", "source": URL}},
                    {"searchResult": {"source": "s", "title": "t", "content": [{"text": "x"}]}},
                ],
            }
        },
        FunctionToolResult(
            "a",
            "",
            [
                UserInputText('{"a":1.0,"b":[true,"x"]}', extra=kept(json=True)),
                UserInputImage(base64_data=DATA, mime_type="image/png"),
                UserInputFile(base64_data=DATA, mime_type="text/csv", name="table"),
                UserInputVideo(url=S3, mime_type="video/mp4"),
                opaque({"searchResult": {"source": "s", "title": "t", "content": [{"text": "x"}]}}),
            ],
        ),
    ),
    "reasoning": (
        "assistant",
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}},
        Reasoning("hm", "c2ln", extension={"wire": WIRE}),
    ),
    "reasoning that nobody signed": (
        "assistant",
        {"reasoningContent": {"reasoningText": {"text": "hm"}}},
        Reasoning("hm", extension={"wire": WIRE}),
    ),
    "reasoning with an empty signature": (
        "assistant",
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": ""}}},
        Reasoning("hm", extension={"wire": WIRE}, extra=kept(signature="")),
    ),
    "redacted reasoning": (
        "assistant",
        {"reasoningContent": {"redactedContent": DATA}},
        Reasoning(signature=DATA, extension={"wire": WIRE, "redacted": True}),
    ),
    "text with citations": (
        "assistant",
        {"citationsContent": {"content": [{"text": "green"}], "citations": [{"title": "d"}]}},
        AssistantGenText("green", extension={"wire": WIRE, "citations": [{"title": "d"}]}),
    ),
    "citations alone": (
        "assistant",
        {"citationsContent": {"citations": [{"title": "d"}]}},
        opaque({"citationsContent": {"citations": [{"title": "d"}]}}),
    ),
    "cache point": ("user", {"cachePoint": {"type": "default"}}, opaque({"cachePoint": {"type": "default"}})),
    "guarded text": (
        "user",
        {"guardContent": {"text": {"text": "hi"}}},
        opaque({"guardContent": {"text": {"text": "hi"}}}),
    ),
    "block of a kind that is still to come": (
        "assistant",
        {"hologram": {"beam": 7}},
        opaque({"hologram": {"beam": 7}}),
    ),
}

words = st.text(min_size=1, max_size=12).filter(lambda text: bool(text.strip()))
identities = st.text("abcXYZ019_-", min_size=1, max_size=20)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
data = st.binary(min_size=1, max_size=9).map(lambda raw: base64.b64encode(raw).decode())


def jsons(value: Any) -> str:
    return msgspec.json.encode(value).decode()


arguments = st.dictionaries(words, json_values, max_size=3).map(jsons)
images = st.builds(UserInputImage, base64_data=data, mime_type=st.sampled_from(["image/png", "image/webp"]))
thoughts = st.builds(Reasoning, words, words, extension=st.just({"wire": WIRE}))
redacted = st.builds(Reasoning, signature=data, extension=st.just({"wire": WIRE, "redacted": True}))
cited = st.builds(
    AssistantGenText,
    words,
    extension=st.lists(st.dictionaries(words, json_values, max_size=2), min_size=1, max_size=2).map(
        lambda citations: {"wire": WIRE, "citations": citations}
    ),
)
said = st.builds(AssistantGenText, words) | cited
calls = st.builds(FunctionToolCall, identities, identities, arguments)
server_calls = st.builds(
    ServerToolCall,
    call_id=identities,
    name=identities,
    arguments=st.dictionaries(words, json_values, max_size=2),
    extra=st.just({WIRE: {"type": "server_tool_use"}}),
)
made = st.builds(AssistantGenImage, base64_data=data, mime_type=st.just("image/png"))
others = st.just(opaque({"hologram": {"beam": 7}}))
replies = st.lists(thoughts | redacted | said | calls | made | server_calls | others, max_size=6).map(
    AgenticMessage.assistant
)
results = st.builds(
    FunctionToolResult,
    identities,
    st.just(""),
    st.lists(st.builds(UserInputText, st.text(max_size=9)) | images, min_size=1, max_size=3),
)
failures = st.builds(
    FunctionToolResult, identities, st.just(""), st.builds(UserInputText, words).map(lambda t: [t]), st.just(True)
)
asked = st.tuples(
    st.lists(results | failures, max_size=3),
    st.lists(st.builds(UserInputText, words) | images, min_size=1, max_size=3),
).map(lambda both: AgenticMessage.user([*both[0], *both[1]]))
answered = st.tuples(st.lists(thoughts | redacted | said, min_size=1, max_size=3), st.lists(calls, max_size=3)).map(
    lambda both: AgenticMessage.assistant([*both[0], *both[1]])
)
conversations = st.lists(st.tuples(asked, answered), max_size=3).map(
    lambda rounds: [message for both in rounds for message in both]
)
