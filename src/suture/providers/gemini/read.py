"""Gemini's contents as native messages: each part is one block.

A call without an id gets one, so that other formats can name it; a kept `id` of `None` says that it had none. What
stands in a part beside its one thing is kept flat, what stands inside that thing under the thing's name.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast
from zlib import crc32

import msgspec

from suture.codecs._contents import arguments_text
from suture.codecs._kept import keep, unknown
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
    Reasoning,
    ServerToolCall,
    ServerToolResult,
    UserInputAudio,
    UserInputFile,
    UserInputImage,
    UserInputText,
    UserInputVideo,
)
from suture.providers.gemini.fields import GEMINI, camel, deep_camel, objects

__all__ = [
    "SERVER",
    "Calls",
    "is_failure",
    "mint",
    "read_content",
    "read_contents",
]

_CODE = "code_execution"
"""The name of the tool behind `executableCode`, as Gemini calls it."""
_ROLES: Mapping[Any, AgenticRole] = {
    None: "user",
    "user": "user",
    "function": "user",
    "tool": "user",
    "model": "assistant",
}
_MEDIA: Mapping[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "image": (UserInputImage, AssistantGenImage),
    "audio": (UserInputAudio, AssistantGenAudio),
    "video": (UserInputVideo, AssistantGenVideo),
}
_IDENTIFIED = ("functionCall", "functionResponse", "function_call", "function_response")
_USERS_OWN = "partMetadata"
_STANDARD = str.maketrans("-_", "+/")


class _Waiting:
    """A call of the latest turn."""

    __slots__ = ("answered", "id")

    def __init__(self, given: Any) -> None:
        self.id, self.answered = given, False


class Calls:
    """Gives an id to each call that has none, and finds the call of a response that has none.

    >>> calls = Calls()
    >>> calls.begin("4")
    >>> calls.open({"name": "tides"}), calls.answer({"name": "tides"})
    ('call_4_0', 'call_4_0')
    """

    def __init__(self, taken: Collection[str] = ()) -> None:
        self._stem = ""
        self._count = 0
        self._taken = taken
        self._waiting: dict[tuple[str, str], deque[_Waiting]] = {}
        """The calls by their id, by their name, and all of them: those without an id apart from those with one."""

    def begin(self, stem: str) -> None:
        """Take a new turn: only its calls are answered from now on."""
        self._stem, self._count, self._waiting = stem, 0, {}

    def open(self, call: Mapping[str, Any]) -> Any:
        """Return the id of the next call of the turn."""
        kind = "given" if call.get("id") else "minted"
        given = call.get("id") or self._mint(call)
        self._count += 1
        waiting = _Waiting(given)
        for key in {("id", str(given)), (kind, str(call.get("name") or "")), (kind, "")}:
            self._waiting.setdefault(key, deque()).append(waiting)
        return given

    def answer(self, response: Mapping[str, Any]) -> Any:
        """Return the id of the call that `response` answers; without an id, by name, then by order."""
        given, name = response.get("id"), str(response.get("name") or "")
        found = self._next("id", str(given)) if given else self._next("minted", name) or self._next("given", name)
        if found is None:
            return given or ""
        found.answered = True
        return found.id

    def _mint(self, call: Mapping[str, Any]) -> str:
        made = mint(self._stem, self._count, call)
        while made in self._taken:
            made += "_"
        return made

    def _next(self, by: str, mark: str) -> _Waiting | None:
        """Return the first call under a mark that has no response yet."""
        calls = self._waiting.get((by, mark), deque[_Waiting]())
        while calls and calls[0].answered:
            calls.popleft()
        return calls[0] if calls else None


def mint(stem: str, place: int, call: Mapping[str, Any]) -> str:
    """Return an id for the call at `place` among the calls of a reply, or of a message of a history.

    >>> mint("NyTx", 1, {"name": "tides"})
    'call_NyTx_1'
    """
    return f"call_{stem or f'{crc32(msgspec.json.encode(call)):08x}'}_{place}"


def read_contents(items: Iterable[Mapping[str, Any]]) -> list[AgenticMessage]:
    """Return the messages that the contents of a history say.

    >>> read_contents([{"role": "user", "parts": [{"text": "hi"}]}])[0].content_blocks
    (UserInputText(text='hi'),)
    """
    contents = list(items)
    calls = Calls(frozenset(_ids(contents)))
    messages: list[AgenticMessage] = []
    for index, item in enumerate(contents):
        try:
            messages.append(read_content(item, str(index), calls))
        except InputError as error:
            raise InputError(error.reason, index=index, path=error.path) from None
    return messages


def _ids(contents: Iterable[Any]) -> Iterator[str]:
    """Yield the ids that calls and responses have, so that none is given twice."""
    for content in contents:
        parts = _field(content, "parts")
        for part in cast("Iterable[Any]", parts if isinstance(parts, list | tuple) else ()):
            found = [_field(_field(part, name), "id") for name in _IDENTIFIED]
            yield from (each for each in found if isinstance(each, str))


def _field(value: Any, name: str) -> Any:
    return cast("Mapping[str, Any]", value).get(name) if isinstance(value, Mapping) else None


def read_content(content: Any, stem: str, calls: Calls) -> AgenticMessage:
    """Return the message that one content says; `stem` makes the ids of its calls.

    >>> read_content({"parts": [{"text": "hi"}]}, "0", Calls()).role
    'user'
    """
    if not isinstance(content, Mapping):
        raise InputError(f"expected a content, found {type(content).__name__}")
    said = camel(cast("Mapping[str, Any]", content))
    role = said.get("role")
    if (role is not None and not isinstance(role, str)) or role not in _ROLES:
        raise InputError(f"unknown role {role!r}; expected user or model", path="role")
    parts = [_spelled(part) for part in objects(said.get("parts"), "parts")]
    if any(part.get("functionCall") is not None for part in parts):
        calls.begin(stem)
    reading = _Reading(_ROLES[role] == "assistant", calls)
    blocks: list[ContentBlock] = []
    for place, part in enumerate(parts):
        try:
            blocks.append(_block(part, reading))
        except InputError as error:
            raise InputError(error.reason, path=f"parts[{place}].{error.path}".rstrip(".")) from None
    return AgenticMessage(_ROLES[role], blocks, extra=keep(GEMINI, said, ("role", "parts")))


def _spelled(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part as the API writes it: its names, those of the one thing it holds, base64 in the plain alphabet."""
    spelled = {name: value for name, value in camel(part).items() if value is not None}
    for field, held in spelled.items():
        if field in _READERS and isinstance(held, Mapping):
            inner = camel(cast("Mapping[str, Any]", held))
            spelled[field] = {name: value for name, value in inner.items() if value is not None}
        elif field != _USERS_OWN:
            spelled[field] = deep_camel(held)
    data = spelled["inlineData"].get("data") if isinstance(spelled.get("inlineData"), dict) else None
    if isinstance(data, str):
        spelled["inlineData"]["data"] = data.translate(_STANDARD)
    return spelled


class _Reading(NamedTuple):
    """Where a part stands."""

    made: bool
    """In a content of the model's."""
    calls: Calls


def _block(part: Mapping[str, Any], reading: _Reading) -> ContentBlock:
    """Return the block that a part says; a part that nobody here knows is kept whole."""
    for field, read in _READERS.items():
        inner = part.get(field)
        if inner is None:
            continue
        if not isinstance(inner, Mapping):
            raise InputError(f"expected an object, found {type(inner).__name__}", path=field)
        return read(_Part(part, field, cast("Mapping[str, Any]", inner)), reading)
    if part.get("thought"):
        return _thought(part)
    if part.get("text") is None:
        return unknown(GEMINI, part)
    kind = AssistantGenText if reading.made else UserInputText
    return kind(part["text"], extra=keep(GEMINI, part, ("text",)))


def _thought(part: Mapping[str, Any]) -> Reasoning:
    absent = {"text": None} if part.get("text") is None else {}
    rest = {**keep(GEMINI, part, ("text", "thought", "thoughtSignature")).get(GEMINI, {}), **absent}
    return Reasoning(
        part.get("text") or "",
        part.get("thoughtSignature") or "",
        extension={"wire": GEMINI},
        extra={GEMINI: rest} if rest else {},
    )


class _Part(NamedTuple):
    """A part, the name of the one thing that it holds, and that thing."""

    whole: Mapping[str, Any]
    field: str
    inner: Mapping[str, Any]

    def kept(self, known: Sequence[str], **marks: Any) -> dict[str, Any]:
        """Return what is kept: the part's other fields, those of its thing that are not `known`, and `marks`."""
        rest = {name: value for name, value in self.whole.items() if name != self.field}
        inside = {name: value for name, value in self.inner.items() if name not in known}
        rest |= {self.field: inside} if inside else {}
        rest |= marks
        return {GEMINI: rest} if rest else {}

    def absent(self, *names: str) -> dict[str, None]:
        """Return marks for those fields of the thing that are not there."""
        return dict.fromkeys([name for name in names if not self.inner.get(name)])


def _inline(part: _Part, reading: _Reading) -> ContentBlock:
    held = {"base64_data": part.inner.get("data")}
    return _media(part, reading, held, part.kept(("data", "mimeType"), **part.absent("mimeType")))


def _file(part: _Part, reading: _Reading) -> ContentBlock:
    return _media(part, reading, {"url": part.inner.get("fileUri")}, part.kept(("fileUri", "mimeType")))


def _media(part: _Part, reading: _Reading, held: Mapping[str, Any], extra: Mapping[str, Any]) -> ContentBlock:
    """Return media of the kind that their type says; what is of no kind, or not there, is kept whole."""
    mime_type = part.inner.get("mimeType") or ""
    kinds = _MEDIA.get(mime_type.partition("/")[0]) if isinstance(mime_type, str) else None
    if not any(held.values()) or (kinds is None and reading.made):
        return unknown(GEMINI, part.whole)
    kind = kinds[reading.made] if kinds else UserInputFile
    return kind(mime_type=mime_type, extra=extra, **held)


def _call(part: _Part, reading: _Reading) -> ContentBlock:
    call = part.inner
    marks = {**part.absent("id"), **({"args": None} if call.get("args") is None else {})}
    extra = part.kept(("id", "name", "args"), **marks)
    given = reading.calls.open(call)
    return FunctionToolCall(given, call.get("name") or "", arguments_text(call.get("args")), extra=extra)


def _result(part: _Part, reading: _Reading) -> ContentBlock:
    result = part.inner
    text, form = _told(result.get("response"))
    content = [*([] if text is None else [UserInputText(text)]), *_beside(result, reading)]
    return FunctionToolResult(
        reading.calls.answer(result),
        result.get("name") or "",
        content,
        is_failure(result.get("response")),
        extra=part.kept(("id", "name", "response", "parts"), **part.absent("id"), **form),
    )


def _beside(result: Mapping[str, Any], reading: _Reading) -> list[Any]:
    """Return the media beside a response."""
    parts = [_spelled(part) for part in objects(result.get("parts"), "functionResponse.parts")]
    inside = _Reading(made=False, calls=reading.calls)
    return [
        _block(part, inside) if "inlineData" in part or "fileData" in part else unknown(GEMINI, part) for part in parts
    ]


def _told(response: Any) -> tuple[str | None, dict[str, Any]]:
    """Return what a response says, and its form where that is not a text under `output` or `error`.

    The form `{"output": None}` is a struct, told as JSON, and `{"output": "result"}` a text under that name.
    """
    if response is None:
        return None, {"response": None}
    if not isinstance(response, Mapping):
        raise InputError(f"expected an object, found {type(response).__name__}", path="functionResponse.response")
    if not response:
        return None, {"output": None}
    struct = cast("Mapping[str, Any]", response)
    [(name, value), *more] = struct.items()
    if more or not isinstance(value, str):
        return arguments_text(struct), {"output": None}
    return value, {} if name in {"output", "error"} else {"output": name}


def is_failure(response: Any) -> bool:
    """Tell whether a response reports an error.

    >>> is_failure({"error": "no such port"}), is_failure({"error": None, "tide": "06:12"})
    (True, False)
    """
    if not isinstance(response, Mapping) or "output" in response:
        return False
    return cast("Mapping[str, Any]", response).get("error") not in (None, False)


def _server(part: _Part, reading: _Reading) -> ContentBlock:
    """Return what Gemini ran on its side; the kept name of the part says whose it is."""
    del reading
    kind, attribute, name = SERVER[part.field]
    inner = {key: value for key, value in part.inner.items() if key != "id"}
    tool, held = _CODE, inner
    if name:
        tool, held = inner.pop("toolType", None) or "", inner.pop(name, None)
    marks = {part.field: inner if name else {}}
    return kind(part.inner.get("id") or "", tool, extra=part.kept(tuple(part.inner), **marks), **{attribute: held})


SERVER: Mapping[str, tuple[Any, str, str]] = {
    "executableCode": (ServerToolCall, "arguments", ""),
    "codeExecutionResult": (ServerToolResult, "content", ""),
    "toolCall": (ServerToolCall, "arguments", "args"),
    "toolResponse": (ServerToolResult, "content", "response"),
}
"""Parts about tools that Gemini runs: the block, its field, and what fills that (empty: all of the part)."""
_READERS: Mapping[str, Callable[[_Part, _Reading], ContentBlock]] = {
    "functionCall": _call,
    "functionResponse": _result,
    **dict.fromkeys(SERVER, _server),
    "inlineData": _inline,
    "fileData": _file,
}
