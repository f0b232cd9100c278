"""What several codecs do alike: arguments as an object, bytes as text, names of results, settings, unknown fields."""

from binascii import b2a_base64
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from suture.codecs.codec import CODECS, Losses, Lost
from suture.messages import FunctionToolCall, Opaque, check_plain
from suture.wires.fields import is_list, is_map, parse_json
from suture.wires.values import KIND


def tag_of(block: Any) -> str:
    """Return what a native block is called where it is stored."""
    return str(block.__struct_config__.tag)


def report_address(block: Any, losses: Losses, path: str) -> None:
    """Report where media are as well, that are written by value."""
    if block.base64_data and block.url:
        losses.add(Lost.DETAIL, f"address {block.url[:80]}", path)


def arguments_object(arguments: str, losses: Losses, path: str = "") -> dict[str, Any]:
    """Return the arguments of a call as an object; empty, and reported, where they are none."""
    if not arguments.strip():
        return {}
    found = parse_json(arguments)
    if found.__class__ is dict:
        return found
    losses.add(Lost.ARGUMENTS, f"arguments {arguments[:40]!r}", path)
    return {}


def custom_input(block: FunctionToolCall) -> str | None:
    """Return the text that a custom tool was called with; `None` of a call of a function."""
    if block.extra.get(KIND) != "custom":
        return None
    held: Any = block.extra.get("openai-responses")
    if not is_map(held) or held.get("type") != "custom_tool_call":
        return block.arguments
    given = parse_json(block.arguments)
    if given.__class__ is dict and given.keys() == {"input"} and isinstance(given["input"], str):
        return given["input"]
    return block.arguments


def as_json(value: Any) -> Any:
    """Return `value` with bytes, which SDKs have, as base64 text, which JSON has."""
    check_plain(value, foreign=True)
    return _without_bytes(value)


def _without_bytes(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        return b2a_base64(value, newline=False).decode()
    if is_map(value):
        return {name: _without_bytes(item) for name, item in value.items()}
    if is_list(value):
        return [_without_bytes(item) for item in value]
    return value


class CallFinder:
    """What is known of calls, for their results: the second result of an id belongs to the second call that has it.

    Only the calls of the latest turn that has an id are asked; a result too many belongs to the last of them.

    >>> names = CallFinder()
    >>> names.enter("assistant")
    >>> names.note("a", "search"), names.note("a", "fetch")
    (None, None)
    >>> names.find("a"), names.find("a"), names.find("b")
    ('search', 'fetch', '')
    """

    def __init__(self) -> None:
        self._role = ""
        self._turn = 0
        self._waiting: dict[str, tuple[int, deque[str]]] = {}
        """By id: the turn, and what is known of its calls that have no result yet, or of the last of all."""

    def enter(self, role: str) -> None:
        """Come to a message: the model's begins a turn, unless it goes on with one of the model's."""
        if role == "assistant" and self._role != "assistant":
            self._turn += 1
        if role != "system":
            self._role = role

    def note(self, call_id: str, known: str) -> None:
        """Remember what is known of a call."""
        turn, calls = self._waiting.get(call_id, (0, deque[str]()))
        if turn != self._turn:
            calls = deque[str]()
        calls.append(known)
        self._waiting[call_id] = self._turn, calls

    def find(self, call_id: str) -> str:
        """Return what is known of the call that the next result of an id answers; the empty string of none."""
        _, calls = self._waiting.get(call_id, (0, deque[str]()))
        if len(calls) > 1:
            return calls.popleft()
        return calls[0] if calls else ""


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
        elif is_map(held) and is_map(value):
            payload[name] = {**held, **value}
        else:
            payload[name] = value


# What one provider says beside what a block can hold is kept in `extra`, under the name of the wire. So it comes back
# when the block is written for that provider again, and can be named where it is written for another. A kept `None`
# says that the field was absent: what a codec would have written is taken out.


def rest_of(holder: Mapping[str, Any], *known: str) -> dict[str, Any]:
    """Return the fields that are neither `known` nor null."""
    return {name: value for name, value in holder.items() if name not in known and value is not None}


def keep(wire: str, holder: Mapping[str, Any], *known: str) -> dict[str, Any]:
    """Return the `extra` of what was read: its fields that are neither `known` nor null.

    >>> keep("anthropic", {"type": "text", "text": "hi", "citations": []}, "type", "text")
    {'anthropic': {'citations': []}}
    >>> keep("anthropic", {"type": "text"}, "type")
    {}
    """
    rest = rest_of(holder, *known)
    return {wire: rest} if rest else {}


def put_back(
    wire: str, made: dict[str, Any], extra: Mapping[str, Any], losses: Losses, path: str = ""
) -> dict[str, Any]:
    """Return what was made of a block, with what was kept for this wire; report what is of no use here.

    >>> put_back("anthropic", {"type": "text"}, {"anthropic": {"citations": []}}, Losses())
    {'type': 'text', 'citations': []}
    """
    if not extra:
        return made
    for name, value in extra.items():
        if name != wire:
            report_extra(name, value, losses, path)
    kept = extra.get(wire)
    if not is_map(kept):
        if wire in extra:
            report_extra(wire, kept, losses, path)
        return made
    merged: dict[str, Any] = {**made, **kept}
    return {name: value for name, value in merged.items() if not (value is None and name in kept)}


def without_kind(extra: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """Return `extra` without the kind of call, where that is `kind`: what is written says it itself."""
    return {name: value for name, value in extra.items() if name != KIND} if extra.get(KIND) == kind else extra


def report_extra(name: str, value: Any, losses: Losses, path: str) -> None:
    """Report that `extra[name]` is lost: another provider's fields by their names, anybody's data by its own."""
    if name not in CODECS or not is_map(value):
        losses.add(Lost.EXTRA, f"extra {name!r}", path)
        return
    for field, held in value.items():
        if held is not None:
            losses.add(Lost.FIELD, f"{name} {field}", path)


def report_extension(block: Any, known: Collection[str], losses: Losses, path: str) -> None:
    """Report the fields in the extension of a text or a thought that are not `known` where it is written."""
    for name in block.extension:
        if name != "wire" and name not in known:
            losses.add(Lost.FIELD, f"extension {name!r}", path)


def unknown(wire: str, block: Mapping[str, Any]) -> Opaque:
    """Return a block of a type that nobody here knows, kept whole."""
    return Opaque({"type": f"{wire}.block", "value": dict(block)})


def unwrap(wire: str, block: Opaque, losses: Losses, path: str = "") -> dict[str, Any] | None:
    """Return the block that `unknown` kept for this wire; report any other, and return `None`."""
    held = block.data.get("value")
    if block.type == f"{wire}.block" and is_map(held):
        return dict(held)
    losses.add(Lost.BLOCK, f"a block of type {block.type}", path)
    return None


def origin_of(block: Any) -> str:
    """Return the wire that a block of reasoning was read from; the empty string where nobody knows."""
    origin = block.extension.get("wire", "")
    return origin if isinstance(origin, str) else ""
