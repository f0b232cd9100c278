"""What several codecs do alike: media by value or by address, arguments as text or as an object, settings."""

from binascii import b2a_base64
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar, cast

import msgspec

from suture.codecs._kept import KIND
from suture.codecs._values import Losses, Lost
from suture.messages import AgenticMessage, FunctionToolCall, check_plain

__all__ = [
    "Called",
    "Data",
    "arguments_object",
    "arguments_text",
    "as_json",
    "custom_input",
    "data_of",
    "media_in_words",
    "merge_options",
    "report_address",
    "split_data_url",
    "split_system",
]

_T = TypeVar("_T")
_decode = msgspec.json.Decoder().decode


class Data(NamedTuple):
    """What a block of media holds itself, rather than where it is.

    >>> Data("image/png", "iVBO").url
    'data:image/png;base64,iVBO'
    """

    mime_type: str
    base64: str

    @property
    def url(self) -> str:
        """It as a data URL."""
        return f"data:{self.mime_type};base64,{self.base64}"


def data_of(block: Any, default: str = "application/octet-stream") -> Data | None:
    """Return what a block of media holds; `None` where it only says where that is.

    >>> from suture.messages import UserInputImage
    >>> data_of(UserInputImage(url="data:image/png;base64,iVBO"))
    Data(mime_type='image/png', base64='iVBO')
    """
    if block.base64_data:
        return Data(block.mime_type or default, block.base64_data)
    return split_data_url(block.url, block.mime_type or default)


def split_data_url(url: str, default: str = "application/octet-stream") -> Data | None:
    """Return what a data URL holds; `None` of any other address.

    >>> split_data_url("https://example.com/cat.png") is None
    True
    """
    head, found, data = url.partition(";base64,")
    if not found or not head.startswith("data:"):
        return None
    return Data(head.removeprefix("data:") or default, data)


def media_in_words(block: Any) -> str:
    """Return where media are, or what: what takes their place where a format cannot hold them.

    >>> from suture.messages import UserInputAudio
    >>> media_in_words(UserInputAudio(base64_data="AAAA", mime_type="audio/ogg"))
    '(audio/ogg)'
    """
    where = "" if block.url.startswith("data:") else block.url
    return where or getattr(block, "name", "") or f"({block.mime_type or 'media'})"


def report_address(block: Any, losses: Losses, path: str) -> None:
    """Report where media are as well, that are written by value.

    >>> from suture.messages import UserInputImage
    >>> losses = Losses()
    >>> report_address(UserInputImage(url="https://example.com/cat.png", base64_data="iVBO"), losses, "")
    >>> losses.found()[0].what
    'address https://example.com/cat.png'
    """
    if block.base64_data and block.url:
        losses.add(Lost.DETAIL, f"address {block.url[:80]}", path)


def arguments_object(arguments: str, losses: Losses, path: str = "") -> dict[str, Any]:
    """Return the arguments of a call as an object; empty, and reported, where they are none.

    >>> arguments_object('{"a": 1}', Losses()), arguments_object("", Losses())
    ({'a': 1}, {})
    """
    if not arguments.strip():
        return {}
    try:
        found: Any = _decode(arguments)
        if found.__class__ is dict:
            return found
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    losses.add(Lost.ARGUMENTS, f"arguments {arguments[:40]!r}", path)
    return {}


def arguments_text(given: Any) -> str:
    """Return the arguments of a call as JSON text: text, a piece of a cut stream, stays as it is.

    >>> arguments_text({"a": 1}), arguments_text('{"a": '), arguments_text(None)
    ('{"a":1}', '{"a": ', '{}')
    """
    if isinstance(given, str):
        return given
    return msgspec.json.encode({} if given is None else given).decode()


def custom_input(block: FunctionToolCall) -> str | None:
    """Return the text that a custom tool was called with; `None` of a call of a function.

    >>> custom_input(FunctionToolCall("a", "sql", "SELECT 1", extra={"suture.kind": "custom"}))
    'SELECT 1'
    """
    if block.extra.get(KIND) == "custom":
        return block.arguments
    held: Any = block.extra.get("openai-responses")
    if not isinstance(held, Mapping) or cast("Mapping[str, Any]", held).get("type") != "custom_tool_call":
        return None
    try:
        given: Any = _decode(block.arguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return block.arguments
    if given.__class__ is dict and given.keys() == {"input"} and isinstance(given["input"], str):
        return given["input"]
    return block.arguments


def as_json(value: Any) -> Any:
    """Return `value` with bytes, which SDKs have, as base64 text, which JSON has.

    >>> as_json({"data": b"cat"})
    {'data': 'Y2F0'}
    """
    check_plain(value, foreign=True)
    return _without_bytes(value)


def _without_bytes(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        return b2a_base64(value, newline=False).decode()
    if isinstance(value, dict):
        return {name: _without_bytes(item) for name, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_without_bytes(item) for item in cast("Sequence[Any]", value)]
    return value


class Called(Generic[_T]):
    """What is known of calls, for their results: the second result of an id belongs to the second call that has it.

    Only the calls of the latest turn that has an id are asked; a result too many belongs to the last of them.

    >>> names = Called[str]()
    >>> names.enter("assistant")
    >>> names.note("a", "search"), names.note("a", "fetch")
    (None, None)
    >>> names.answered("a"), names.answered("a"), names.answered("b")
    ('search', 'fetch', None)
    """

    def __init__(self) -> None:
        self._role = ""
        self._turn = 0
        self._known: dict[str, _Waiting[_T]] = {}

    def enter(self, role: str) -> None:
        """Come to a message: the model's begins a turn, unless it goes on with one of the model's."""
        if role == "assistant" and self._role != "assistant":
            self._turn += 1
        if role != "system":
            self._role = role

    def note(self, call_id: str, known: _T) -> None:
        """Remember what is known of a call."""
        held = self._known.get(call_id)
        if held is None or held.turn != self._turn:
            held = self._known[call_id] = _Waiting(self._turn, known)
        held.calls.append(known)

    def answered(self, call_id: str, known: _T | None = None) -> _T | None:
        """Return what is known of the call that the next result of an id answers: `known`, if one of them is."""
        held = self._known.get(call_id)
        if held is None:
            return None
        if known is not None and known in held.calls:
            held.calls.remove(known)
            held.last = known
        elif held.calls:
            held.last = held.calls.popleft()
        return held.last


class _Waiting(Generic[_T]):
    """The calls of one id in one turn that have no result yet, and the one that had the last."""

    def __init__(self, turn: int, last: _T) -> None:
        self.turn, self.last = turn, last
        self.calls: deque[_T] = deque()


def split_system(messages: Sequence[AgenticMessage]) -> tuple[Sequence[AgenticMessage], Sequence[AgenticMessage]]:
    """Return the system messages at the beginning, and the rest: for formats that keep the first outside.

    >>> system, rest = split_system([AgenticMessage.system("Be brief."), AgenticMessage.user("hi")])
    >>> len(system), len(rest)
    (1, 1)
    """
    place = next((place for place, message in enumerate(messages) if message.role != "system"), len(messages))
    return messages[:place], messages[place:]


def merge_options(
    payload: dict[str, Any], options: Mapping[str, Any], losses: Losses, without: Sequence[str] = ()
) -> None:
    """Put a provider's own options into `payload` as they are; those in `without` it does not have, and are reported.

    >>> payload = {"generationConfig": {"temperature": 0}}
    >>> merge_options(payload, {"generationConfig": {"topK": 3}, "cachedContent": "c"}, Losses())
    >>> payload
    {'generationConfig': {'temperature': 0, 'topK': 3}, 'cachedContent': 'c'}
    """
    for name, value in options.items():
        held = payload.get(name)
        if name in without:
            losses.add(Lost.OPTION, name)
        elif isinstance(held, Mapping) and isinstance(value, Mapping):
            payload[name] = {**held, **value}
        else:
            payload[name] = value
