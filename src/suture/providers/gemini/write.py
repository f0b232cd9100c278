"""Native messages as Gemini's contents: neighbours of one role are one content, its responses first."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from suture.codecs._contents import Called, arguments_object, data_of, media_in_words, report_address
from suture.codecs._kept import origin_of, put_back, report_extension, report_extra, unwrap
from suture.codecs._values import Losses, Lost
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
    ServerToolResult,
    ToolSearchResult,
    UserInputAudio,
    UserInputFile,
    UserInputImage,
    UserInputText,
    UserInputVideo,
)
from suture.providers.gemini.fields import GEMINI, own_fields
from suture.providers.gemini.read import SERVER, is_failure

__all__ = ["write_contents", "write_parts", "write_system"]

_DEFAULTS: Mapping[Any, str] = {
    UserInputImage: "image/png",
    AssistantGenImage: "image/png",
    UserInputAudio: "audio/wav",
    AssistantGenAudio: "audio/wav",
    UserInputVideo: "video/mp4",
    AssistantGenVideo: "video/mp4",
    UserInputFile: "application/octet-stream",
}
_decode = msgspec.json.Decoder().decode


def write_contents(messages: Sequence[AgenticMessage], start: int, losses: Losses) -> list[dict[str, Any]]:
    """Return `messages` as contents; the first of them stands at `start` in what the losses speak of.

    >>> write_contents([AgenticMessage.user("hi"), AgenticMessage.user("there")], 0, Losses())
    [{'role': 'user', 'parts': [{'text': 'hi'}, {'text': 'there'}]}]
    """
    writing = _Writing.of(messages, losses)
    contents: list[dict[str, Any]] = []
    for index, message in enumerate(messages, start):
        losses.index = index
        content = _content(message, writing)
        if content is None:
            continue
        if contents and contents[-1]["role"] == content["role"]:
            contents[-1]["parts"] += content.pop("parts")
            contents[-1] |= content
        else:
            contents.append(content)
    losses.index = None
    for content in contents:
        if content["role"] == "user":
            content["parts"].sort(key=_is_no_response)
    return contents


def write_parts(message: AgenticMessage, losses: Losses) -> list[dict[str, Any]]:
    """Return the parts of one message.

    >>> write_parts(AgenticMessage.assistant("At 06:12."), Losses())
    [{'text': 'At 06:12.'}]
    """
    return _parts(message, _Writing.of([message], losses))


def write_system(instruction: str, messages: Sequence[AgenticMessage], losses: Losses) -> dict[str, Any] | None:
    """Return what the system says, which is text; `None` where it says nothing.

    >>> write_system("Be brief.", [AgenticMessage.system("Be kind.")], Losses())
    {'parts': [{'text': 'Be brief.'}, {'text': 'Be kind.'}]}
    """
    made: dict[str, Any] = {"parts": [{"text": instruction}] if instruction else []}
    for index, message in enumerate(messages):
        losses.index = index
        _report_meta(message, losses)
        for place, block in enumerate(message.content_blocks):
            part = _system_part(block, losses, f"content_blocks[{place}]")
            made["parts"] += [] if part is None else [part]
        made = put_back(GEMINI, made, message.extra, losses)
    losses.index = None
    return made if made["parts"] else None


class _Writing(NamedTuple):
    """What is known while blocks are written."""

    losses: Losses
    unnamed: frozenset[str]
    """The ids of calls that had none when they were read."""
    names: Called[str]
    """The names of the calls so far."""

    @classmethod
    def of(cls, messages: Sequence[AgenticMessage], losses: Losses) -> "_Writing":
        unnamed = [
            block.call_id
            for message in messages
            for block in message.content_blocks
            if isinstance(block, FunctionToolCall) and _has_no_id(block)
        ]
        return cls(losses, frozenset(unnamed), Called())


def _content(message: AgenticMessage, writing: _Writing) -> dict[str, Any] | None:
    """Return the content that says `message`; `None` where nothing of it can be said."""
    losses = writing.losses
    _report_meta(message, losses)
    if message.role == "system":
        losses.add(Lost.SYSTEM, "that the system says this")
    parts = _parts(message, writing)
    if len(parts) < len(message.content_blocks) and not any(map(_says_something, parts)):
        return None
    made = {"role": "model" if message.role == "assistant" else "user", "parts": parts}
    return put_back(GEMINI, made, message.extra, losses)


def _report_meta(message: AgenticMessage, losses: Losses) -> None:
    if message.response_meta is not None:
        losses.add(Lost.META, "why the reply ended and what it cost", "response_meta")


def _is_no_response(part: Mapping[str, Any]) -> bool:
    return "functionResponse" not in part


def _says_something(part: Mapping[str, Any]) -> bool:
    return list(part) != ["text"] or bool(str(part["text"]).strip())


def _parts(message: AgenticMessage, writing: _Writing) -> list[dict[str, Any]]:
    writing.names.enter(message.role)
    made = [_part(block, writing, f"content_blocks[{place}]") for place, block in enumerate(message.content_blocks)]
    return [part for part in made if part is not None]


def _part(block: Any, writing: _Writing, path: str) -> dict[str, Any] | None:
    if isinstance(block, Opaque):
        return unwrap(GEMINI, block, writing.losses, path)
    writer = _WRITERS.get(type(block))
    return _lose(block, writing, path) if writer is None else writer(block, writing, path)


def _lose(block: Any, writing: _Writing, path: str) -> None:
    kind = cast("Any", type(block)).__struct_config__.tag
    writing.losses.add(Lost.BLOCK, f"a block of type {kind}", path)


def _system_part(block: Any, losses: Losses, path: str) -> dict[str, Any] | None:
    writing = _Writing(losses, frozenset(), Called())
    if type(block) in _DEFAULTS:
        return _in_words(block, writing, path)
    if isinstance(block, UserInputText | AssistantGenText | Opaque):
        return _part(block, writing, path)
    return _lose(block, writing, path)


# What is said, thought and shown


def _text(block: Any, writing: _Writing, path: str) -> dict[str, Any]:
    for name in getattr(block, "extension", ()):
        writing.losses.add(Lost.FIELD, f"{name} of a text", path)
    return put_back(GEMINI, {"text": block.text}, block.extra, writing.losses, path)


def _thought(block: Reasoning, writing: _Writing, path: str) -> dict[str, Any] | None:
    """Return thought as it came; `None` where it came from elsewhere."""
    if origin_of(block) != GEMINI:
        writing.losses.add(Lost.REASONING, f"thought {block.text[:40]!r}", path)
        return None
    report_extension(block, (), writing.losses, path)
    made: dict[str, Any] = {"text": block.text, "thought": True}
    if block.signature:
        made["thoughtSignature"] = block.signature
    return put_back(GEMINI, made, block.extra, writing.losses, path)


def _media(block: Any, writing: _Writing, path: str) -> dict[str, Any]:
    _report_details(block, writing, path)
    data = data_of(block, _DEFAULTS[type(block)])
    report_address(block, writing.losses, path)
    if data is not None:
        return _wrapped("inlineData", {"mimeType": data.mime_type, "data": data.base64}, block, writing, path)
    if not block.url:
        return _in_words(block, writing, path)
    where = {"mimeType": block.mime_type} if block.mime_type else {}
    if not where and not isinstance(block, UserInputFile):
        writing.losses.add(Lost.DETAIL, f"that {block.url[:80]} is {_kind(block)}; give its mime_type", path)
    return _wrapped("fileData", {**where, "fileUri": block.url}, block, writing, path)


def _report_details(block: Any, writing: _Writing, path: str) -> None:
    if getattr(block, "detail", ""):
        writing.losses.add(Lost.DETAIL, f"image detail {block.detail}", path)
    if getattr(block, "name", ""):
        writing.losses.add(Lost.DETAIL, f"file name {block.name}", path)


def _kind(block: Any) -> str:
    return _DEFAULTS[type(block)].partition("/")[0]


def _in_words(block: Any, writing: _Writing, path: str) -> dict[str, Any]:
    words = media_in_words(block)
    writing.losses.add(Lost.MEDIA, words, path)
    return put_back("", {"text": words}, block.extra, writing.losses, path)


# Calls and responses


def _call(block: FunctionToolCall, writing: _Writing, path: str) -> dict[str, Any]:
    writing.names.note(block.call_id, block.name)
    made = {"id": block.call_id, "name": block.name}
    call: dict[str, Any] = {name: value for name, value in made.items() if value}
    arguments = arguments_object(block.arguments, writing.losses, f"{path}.arguments")
    if arguments or "args" not in own_fields(block.extra):
        call["args"] = arguments
    return _wrapped("functionCall", call, block, writing, path, marks=("args",))


def _result(block: FunctionToolResult, writing: _Writing, path: str) -> dict[str, Any]:
    texts: list[str] = []
    beside: list[dict[str, Any]] = []
    for place, held in enumerate(block.content):
        part = _part(held, writing, f"{path}.content[{place}]")
        if isinstance(held, UserInputText):
            texts.append(held.text)
        elif part is not None:
            beside.append(part)
    return _response(block, _said(block, texts), beside, writing, path)


def _said(block: FunctionToolResult, texts: Sequence[str]) -> dict[str, Any] | None:
    """Return the response that says `texts`: in the form that it was read in, where that still fits."""
    text, own = "\n".join(texts), own_fields(block.extra)
    if not texts and "response" in own:
        return None
    form = own.get("output", "output")
    said: Any = {form: text}
    if form is None:
        said = _struct(text)
    if not isinstance(said, dict) or (block.is_error and not is_failure(cast("Any", said))):
        said = {"error" if block.is_error else "output": text}
    return cast("dict[str, Any]", said)


def _struct(text: str) -> Any:
    """Return the struct that `text` says; `None` where it says none any more."""
    try:
        return _decode(text) if text else {}
    except (msgspec.DecodeError, RecursionError):
        return None


def _found(block: ToolSearchResult, writing: _Writing, path: str) -> dict[str, Any]:
    writing.losses.add(Lost.BLOCK, "the form of tools that were found; they are told as text", path)
    told = msgspec.json.encode(msgspec.to_builtins(block.tools)).decode()
    return _response(block, {"output": told}, [], writing, path)


def _response(
    block: FunctionToolResult | ToolSearchResult,
    said: dict[str, Any] | None,
    beside: list[dict[str, Any]],
    writing: _Writing,
    path: str,
) -> dict[str, Any]:
    call_id = "" if block.call_id in writing.unnamed else block.call_id
    called = writing.names.answered(block.call_id, block.name or None)
    name = block.name or called or ""
    made: dict[str, Any] = {"id": call_id, "name": name, "response": said, "parts": beside}
    present = {key: value for key, value in made.items() if value or (key == "response" and value is not None)}
    return _wrapped("functionResponse", present, block, writing, path, marks=("output", "response"))


def _server(block: ServerToolCall | ServerToolResult, writing: _Writing, path: str) -> dict[str, Any] | None:
    """Return what Gemini ran, for Gemini; nobody else's tools have a form here."""
    own = own_fields(block.extra)
    field = next((field for field, (kind, _, _) in SERVER.items() if field in own and type(block) is kind), "")
    if not field:
        return _lose(block, writing, path)
    _, attribute, name = SERVER[field]
    held = getattr(block, attribute)
    inner: Any = {"toolType": block.name, name: held} if name else held
    if not isinstance(inner, Mapping):
        return _lose(block, writing, path)
    known = {"id": block.call_id, **cast("Mapping[str, Any]", inner)}
    present = {
        key: value for key, value in known.items() if value is not None and (value or key not in {"id", "toolType"})
    }
    return _wrapped(field, present, block, writing, path)


# What was kept


def _has_no_id(block: Any) -> bool:
    own = own_fields(block.extra)
    return "id" in own and own["id"] is None


def _wrapped(
    field: str, inner: dict[str, Any], block: Any, writing: _Writing, path: str, marks: Sequence[str] = ()
) -> dict[str, Any]:
    """Return a part that holds `inner` under `field`, with what was kept of both; `marks` are no fields."""
    for name, value in block.extra.items():
        if name != GEMINI or not isinstance(value, Mapping):
            report_extra(name, value, writing.losses, path)
    own = {name: value for name, value in own_fields(block.extra).items() if name not in marks}
    inside = own.pop(field, {})
    whole: dict[str, Any] = {**inner, **inside} if isinstance(inside, Mapping) else inner
    absent = {name for name, value in own.items() if value is None}
    rest = {name: value for name, value in own.items() if name not in absent}
    return {field: {name: value for name, value in whole.items() if name not in absent}, **rest}


_WRITERS: Mapping[Any, Callable[[Any, _Writing, str], dict[str, Any] | None]] = {
    UserInputText: _text,
    AssistantGenText: _text,
    Reasoning: _thought,
    **dict.fromkeys(_DEFAULTS, _media),
    FunctionToolCall: _call,
    FunctionToolResult: _result,
    ToolSearchResult: _found,
    ServerToolCall: _server,
    ServerToolResult: _server,
}
