"""Gemini's contents from and into native messages: each part is one block.

What stands in a part beside its one thing is kept flat, what stands inside that thing under the thing's name.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

from suture.codecs.codec import Losses, Lost
from suture.codecs.contents import (
    Writer,
    arguments_object,
    keep,
    lose,
    origin_of,
    put_back,
    read_each,
    report_address,
    report_detail,
    report_extension,
    tell_in_words,
    unknown,
    unwrap,
    write_each,
)
from suture.errors import InputError
from suture.messages import (
    AgenticMessage,
    AgenticRole,
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
    ToolSearchResult,
    UserInputAudio,
    UserInputFile,
    UserInputImage,
    UserInputText,
    UserInputVideo,
)
from suture.providers.gemini.stream import GEMINI, camel, deep_camel, mint
from suture.wires.fields import argument_json, expect, get, inner, is_list, is_map, list_of, map_of, parse_json
from suture.wires.parts import data_of

_CODE = "code_execution"
"""The name of the tool behind `executableCode`, as Gemini calls it."""
_ROLES: Mapping[Any, AgenticRole] = {**dict.fromkeys((None, "user", "function", "tool"), "user"), "model": "assistant"}
_MEDIA: Mapping[str, tuple[Callable[..., Any], Callable[..., Any], str]] = {
    "image": (UserInputImage, AssistantGenImage, "image/png"),
    "audio": (UserInputAudio, AssistantGenAudio, "audio/wav"),
    "video": (UserInputVideo, AssistantGenVideo, "video/mp4"),
}
"""Media of the user's, of the model's, and the type of those that do not say theirs."""
_MEDIA_TYPES: Mapping[Any, str] = {
    UserInputFile: "application/octet-stream",
    **{kind: default for *kinds, default in _MEDIA.values() for kind in kinds},
}
_SERVER: Mapping[str, tuple[Any, str, str]] = {
    "executableCode": (ServerToolCall, "arguments", ""),
    "codeExecutionResult": (ServerToolResult, "content", ""),
    "toolCall": (ServerToolCall, "arguments", "args"),
    "toolResponse": (ServerToolResult, "content", "response"),
}
"""Parts about tools that Gemini runs: the block, its field, and what fills that (empty: all of the part)."""
_IDENTIFIED = ("functionCall", "functionResponse", "function_call", "function_response")
_IN_RESULTS = {"inlineData", "fileData"}
_USERS_OWN = "partMetadata"
_STANDARD = str.maketrans("-_", "+/")


# Ids of calls that have none


class Calls:
    """Gives an id to each call that has none, and finds the call of a response that has none."""

    def __init__(self, taken: Collection[str] = ()) -> None:
        self._stem = ""
        self._count = 0
        self._taken = taken
        self._waiting: dict[tuple[str, str], deque[list[Any]]] = {}
        """The ids of the turn's calls, each in a list that its response empties, in order: by id, by name, and all."""

    def begin(self, stem: str) -> None:
        """Take a new turn: only its calls are answered from now on."""
        self._stem, self._count, self._waiting = stem, 0, {}

    def open(self, call: Mapping[str, Any]) -> Any:
        """Return the id of the next call of the turn."""
        kind = "with an id" if call.get("id") else "without"
        call_id = call.get("id") or mint(self._stem, self._count, call)
        while kind == "without" and call_id in self._taken:
            call_id += "_"
        self._count += 1
        waiting = [call_id]
        for key in {("id", str(call_id)), (kind, str(call.get("name") or "")), (kind, "")}:
            self._waiting.setdefault(key, deque()).append(waiting)
        return call_id

    def answer(self, response: Mapping[str, Any]) -> Any:
        """Return the id of the call that `response` answers; without an id, by name, then by order."""
        call_id, name = response.get("id") or "", str(response.get("name") or "")
        for key in [("id", str(call_id))] if call_id else [("without", name), ("with an id", name)]:
            calls = self._waiting.get(key, deque[list[Any]]())
            while calls:
                waiting = calls.popleft()
                if waiting:
                    return waiting.pop()
        return call_id


# Contents read


def ids_in(contents: Iterable[Any]) -> Iterator[str]:
    """Yield the ids that calls and responses have, so that none is given twice."""
    for content in contents:
        parts = get(content, "parts")
        for part in parts if is_list(parts) else ():
            ids = [get(get(part, name), "id") for name in _IDENTIFIED]
            yield from [each for each in ids if isinstance(each, str)]


def read_content(content: Any, stem: str, calls: Calls) -> AgenticMessage:
    """Return the message that one content says; `stem` makes the ids of its calls."""
    fields = camel(expect(content, Mapping, "a content", ""))
    role = fields.get("role")
    if (role is not None and not isinstance(role, str)) or role not in _ROLES:
        raise InputError(f"unknown role {role!r}; expected user or model", path="role")
    parts = [_normalise(part) for part in list_of(fields, "parts")]
    if any("functionCall" in part for part in parts):
        calls.begin(stem)
    blocks = read_each(parts, partial(_read_part, calls=calls, by_model=role == "model"), "parts")
    return AgenticMessage(_ROLES[role], blocks, extra=keep(GEMINI, fields, "role", "parts"))


def _normalise(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part as the API writes it: its names, those of the one thing it holds, base64 in the plain alphabet."""
    made = camel(part)
    for name, held in made.items():
        if name in _READERS and is_map(held):
            made[name] = camel(held)
        elif name != _USERS_OWN:
            made[name] = deep_camel(held)
    data = get(made.get("inlineData"), "data")
    if isinstance(data, str):
        made["inlineData"]["data"] = data.translate(_STANDARD)
    return made


class _Part(NamedTuple):
    """A part, the name of the one thing that it holds, that thing, and where the part stands."""

    fields: Mapping[str, Any]
    name: str
    thing: Mapping[str, Any]
    calls: Calls
    by_model: bool

    def keep(self, known: Collection[str], **marks: Any) -> dict[str, Any]:
        """Return what is kept: the part's other fields, those of its thing that are not `known`, and `marks`."""
        rest = {name: value for name, value in self.fields.items() if name != self.name}
        inside = {name: value for name, value in self.thing.items() if name not in known}
        rest |= {self.name: inside} if inside else {}
        rest |= marks
        return {GEMINI: rest} if rest else {}


def _read_part(part: Mapping[str, Any], calls: Calls, *, by_model: bool) -> ContentBlock:
    """Return the block that a part says; a part that nobody here knows is kept whole."""
    for name, read in _READERS.items():
        if name in part:
            return read(_Part(part, name, inner(part, name, None), calls, by_model))
    if part.get("thought"):
        return _read_thought(part)
    if "text" not in part:
        return unknown(GEMINI, part)
    kind = AssistantGenText if by_model else UserInputText
    return kind(part["text"], extra=keep(GEMINI, part, "text"))


def _read_thought(part: Mapping[str, Any]) -> Reasoning:
    extra = keep(GEMINI, part, "thought", "thoughtSignature", "text")
    if "text" not in part:
        extra = {GEMINI: {**map_of(extra, GEMINI), "text": None}}
    text, signature = part.get("text", ""), part.get("thoughtSignature") or ""
    return Reasoning(text, signature, extension={"wire": GEMINI}, extra=extra)


def _read_media(part: _Part) -> ContentBlock:
    """Return media of the kind that their type says; what is of no kind, or not there, is kept whole."""
    source, field = ("data", "base64_data") if part.name == "inlineData" else ("fileUri", "url")
    mime_type = part.thing.get("mimeType") or ""
    kinds = _MEDIA.get(mime_type.partition("/")[0]) if isinstance(mime_type, str) else None
    if not part.thing.get(source) or (kinds is None and part.by_model):
        return unknown(GEMINI, part.fields)
    marks = {"mimeType": None} if not mime_type and source == "data" else {}
    kind: Any = kinds[part.by_model] if kinds else UserInputFile
    extra = part.keep((source, "mimeType"), **marks)
    return kind(mime_type=mime_type, extra=extra, **{field: part.thing[source]})


def _read_call(part: _Part) -> ContentBlock:
    call = part.thing
    extra = part.keep(("id", "name", "args"), **({} if "args" in call else {"args": None}))
    call_id, name = part.calls.open(call), call.get("name") or ""
    return FunctionToolCall(call_id, name, argument_json(call.get("args")), extra=extra)


def _read_result(part: _Part) -> ContentBlock:
    result = part.thing
    text, form = _read_response(result.get("response"))
    media = [_normalise(each) for each in list_of(result, "parts", path="functionResponse")]
    beside: list[Any] = [
        _read_part(each, part.calls, by_model=False) if _IN_RESULTS & each.keys() else unknown(GEMINI, each)
        for each in media
    ]
    return FunctionToolResult(
        part.calls.answer(result),
        result.get("name") or "",
        [*([] if text is None else [UserInputText(text)]), *beside],
        _is_failure(result.get("response")),
        extra=part.keep(("id", "name", "response", "parts"), **form),
    )


def _read_response(response: Any) -> tuple[str | None, dict[str, Any]]:
    """Return what a response says, and its form where that is not a text under `output` or `error`.

    The form `{"output": None}` is a struct, told as JSON, and `{"output": "result"}` a text under that name.
    """
    if response is None:
        return None, {"response": None}
    if not is_map(response):
        raise InputError(f"expected an object, found {type(response).__name__}", path="functionResponse.response")
    if not response:
        return None, {"output": None}
    [(name, value), *more] = response.items()
    if more or not isinstance(value, str):
        return argument_json(response), {"output": None}
    return value, {} if name in {"output", "error"} else {"output": name}


def _is_failure(response: Any) -> bool:
    """Return whether a response reports an error; one that says `"error": null` does not."""
    return is_map(response) and "output" not in response and response.get("error") not in (None, False)


def _read_server(part: _Part) -> ContentBlock:
    """Return what Gemini ran on its side; the kept name of the part says whose it is."""
    kind, field, name = _SERVER[part.name]
    thing = {key: value for key, value in part.thing.items() if key != "id"}
    tool, held, beside = _CODE, thing, dict[str, Any]()
    if name:
        tool, held, beside = thing.pop("toolType", None) or "", thing.pop(name, None), thing
    extra = part.keep(tuple(part.thing), **{part.name: beside})
    return kind(part.thing.get("id") or "", tool, extra=extra, **{field: held})


_READERS: Mapping[str, Callable[[_Part], ContentBlock]] = {
    "functionCall": _read_call,
    "functionResponse": _read_result,
    **dict.fromkeys(_SERVER, _read_server),
    "inlineData": _read_media,
    "fileData": _read_media,
}


# Contents written


def says_something(part: Mapping[str, Any]) -> bool:
    """Return whether a part is more than a blank text."""
    return list(part) != ["text"] or bool(str(part["text"]).strip())


def _write_text(block: Any, losses: Losses, path: str) -> dict[str, Any]:
    report_extension(block, (), losses, path)
    return put_back(GEMINI, {"text": block.text}, block.extra, losses, path)


def _report_text(block: UserInputText, losses: Losses, path: str) -> None:
    """Report what is lost of a text that stands in the response itself."""
    _write_text(block, losses, path)


def _write_thought(block: Reasoning, losses: Losses, path: str) -> dict[str, Any] | None:
    """Return thought as it came; `None` where it came from elsewhere."""
    if origin_of(block) != GEMINI:
        losses.add(Lost.REASONING, f"thought {block.text[:40]!r}", path)
        return None
    report_extension(block, (), losses, path)
    made: dict[str, Any] = {"text": block.text, "thought": True}
    if block.signature:
        made["thoughtSignature"] = block.signature
    return put_back(GEMINI, made, block.extra, losses, path)


def _write_media(block: Any, losses: Losses, path: str) -> dict[str, Any]:
    report_detail(block, losses, path)
    if getattr(block, "name", ""):
        losses.add(Lost.DETAIL, f"file name {block.name}", path)
    default = _MEDIA_TYPES[type(block)]
    data = data_of(block, default)
    report_address(block, losses, path)
    if data is not None:
        return _wrap("inlineData", {"mimeType": data.mime_type, "data": data.base64}, block, losses, path)
    if not block.url:
        return _write_in_words(block, losses, path)
    where = {"mimeType": block.mime_type} if block.mime_type else {}
    if not where and not isinstance(block, UserInputFile):
        kind = default.partition("/")[0]
        losses.add(Lost.DETAIL, f"that {block.url[:80]} is {kind}; give its mime_type", path)
    return _wrap("fileData", {**where, "fileUri": block.url}, block, losses, path)


def _write_in_words(block: Any, losses: Losses, path: str) -> dict[str, Any]:
    return {"text": tell_in_words(block, losses, path)}


def _write_call(block: FunctionToolCall, losses: Losses, path: str) -> dict[str, Any]:
    arguments = arguments_object(block.arguments, losses, f"{path}.arguments")
    call = _identity(block)
    if arguments or "args" not in map_of(block.extra, GEMINI):
        call["args"] = arguments
    return _wrap("functionCall", call, block, losses, path, marks=("args",))


def _write_result(block: FunctionToolResult, losses: Losses, path: str) -> dict[str, Any]:
    texts = [held.text for held in block.content if isinstance(held, UserInputText)]
    beside = write_each(block.content, _RESULT_WRITERS, losses, f"{path}.content")
    said, made = _write_response(block, texts), _identity(block)
    if said is not None:
        made["response"] = said
    if beside:
        made["parts"] = beside
    return _wrap("functionResponse", made, block, losses, path, marks=("output", "response"))


def _identity(block: Any) -> dict[str, Any]:
    """Return the id and the name of a call or a result, as far as it has them."""
    return {name: value for name, value in (("id", block.call_id), ("name", block.name)) if value}


def _write_response(block: FunctionToolResult, texts: Sequence[str]) -> dict[str, Any] | None:
    """Return the response that says `texts`: in the form that it was read in, where that still fits."""
    text, own = "\n".join(texts), map_of(block.extra, GEMINI)
    if not texts and "response" in own:
        return None
    form = own.get("output", "output")
    said: Any = {form: text} if form is not None else parse_json(text or "{}")  # or shortened meanwhile
    if said.__class__ is not dict or (block.is_error and not _is_failure(said)):
        return {"error" if block.is_error else "output": text}
    return said


def _write_found_tools(block: ToolSearchResult, losses: Losses, path: str) -> dict[str, Any]:
    losses.add(Lost.BLOCK, "the form of tools that were found; they are told as text", path)
    tools = msgspec.json.encode(msgspec.to_builtins(block.tools)).decode()
    return _wrap("functionResponse", {**_identity(block), "response": {"output": tools}}, block, losses, path)


def _write_server(block: ServerToolCall | ServerToolResult, losses: Losses, path: str) -> dict[str, Any] | None:
    """Return what Gemini ran, for Gemini; nobody else's tools have a form here."""
    own = map_of(block.extra, GEMINI)
    part = next((part for part, (kind, _, _) in _SERVER.items() if part in own and type(block) is kind), "")
    if not part:
        return lose(block, losses, path)
    _, field, name = _SERVER[part]
    held = getattr(block, field)
    thing: Any = {"toolType": block.name or None, name: held} if name else held
    if not is_map(thing):
        return lose(block, losses, path)
    present = {key: value for key, value in {"id": block.call_id or None, **thing}.items() if value is not None}
    return _wrap(part, present, block, losses, path)


def _wrap(
    field: str, inside: dict[str, Any], block: Any, losses: Losses, path: str, marks: Sequence[str] = ()
) -> dict[str, Any]:
    """Return a part that holds `inside` under `field`, with what was kept of both; `marks` are no fields."""
    own = {name: value for name, value in map_of(block.extra, GEMINI).items() if name not in marks}
    kept = own.pop(field, None)
    absent = {name for name, value in own.items() if value is None}
    whole: dict[str, Any] = {**inside, **(kept if is_map(kept) else {})}
    made = {field: {name: value for name, value in whole.items() if name not in absent}}
    extra = {**block.extra, GEMINI: own} if map_of(block.extra, GEMINI) else block.extra
    return put_back(GEMINI, made, extra, losses, path)


SYSTEM_WRITERS: Mapping[Any, Writer] = {
    UserInputText: _write_text,
    AssistantGenText: _write_text,
    Opaque: partial(unwrap, GEMINI),
    **dict.fromkeys(_MEDIA_TYPES, _write_in_words),
}
WRITERS: Mapping[Any, Writer] = {
    **SYSTEM_WRITERS,
    **dict.fromkeys(_MEDIA_TYPES, _write_media),
    Reasoning: _write_thought,
    FunctionToolCall: _write_call,
    FunctionToolResult: _write_result,
    ToolSearchResult: _write_found_tools,
    ServerToolCall: _write_server,
    ServerToolResult: _write_server,
}
_RESULT_WRITERS: Mapping[Any, Writer] = {**WRITERS, UserInputText: _report_text}
