"""What is handed to a run, as messages of its wire: a text, parts, `(role, text)` pairs, and messages of any wire.

Messages of other wires are recognised as `suture.repair` does it, and converted; what is lost is named.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence, ValuesView
from contextlib import contextmanager, suppress
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple, cast

from msgspec.structs import replace

from suture.errors import AmbiguousWireError, InputError, UnknownWireError
from suture.kernel.run_state import RunResult
from suture.messages import AgenticMessage, History, Message, Opaque, TextPart
from suture.messages.blocks import Piece
from suture.messages.history import MessageList
from suture.wires import ChatWire, RawPart, get_wire, recognise
from suture.wires.parts import as_part
from suture.wires.recognition import guest_of

NOTHING: Any = object()
"""Stands for a missing answer or input."""
_ROLES = {
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "ai"), "assistant"),
    **dict.fromkeys(("system", "developer"), "system"),
}
"""The words of pairs for who speaks, and their roles."""
_ACCEPTED = (
    "a run takes a text, content parts, messages (Suture's own, and those of any wire as dicts or objects), "
    "and (role, text) pairs"
)
_SILENT = (
    "there are no words and no parts to answer; say something, or leave the input out and give what is to go on: "
    "history=, or the checkpoint_id of a conversation"
)


class Intake(NamedTuple):
    """What was handed in, as messages of the run's wire, and what their conversion has lost."""

    messages: Sequence[Any] = ()
    losses: tuple[Any, ...] = ()
    length: int = 0
    """How many messages there were before the conversion."""


def read_input(wire: ChatWire, given: Any, history: Any = None) -> Intake:
    """Return `history`, then the input, as messages of `wire`; raise `InputError` if there is nothing to answer."""
    if isinstance(given, str):
        if not given.strip():
            raise InputError(_SILENT)
        if not history:
            return Intake((wire.user(given),), (), 1)
    before = _read_history(wire, history)
    if given is NOTHING:
        new = before
    else:
        new = read_messages(wire, given, before.length)
        if new.messages and before.messages:
            both = History.of(before.messages).continue_with(new.messages)
            new = Intake(both, before.losses + new.losses, before.length + new.length)
    if not new.messages or _is_silent(wire, new.messages[-1]):
        raise InputError(_SILENT)
    return new


def _read_history(wire: ChatWire, history: Any) -> Intake:
    if isinstance(history, str):
        raise InputError("history= takes a list of messages, not a text; what is said now is the input")
    return Intake() if history is None else read_messages(wire, history)


def read_messages(wire: ChatWire, given: Any, start: int = 0) -> Intake:
    """Return what is `given` as messages of `wire`, which follow `start` others."""
    if isinstance(given, str):
        return Intake((wire.user(given),), (), 1)
    if isinstance(given, RunResult):
        given = cast("RunResult[Any, Any]", given).messages
    items, known = _as_items(given), None
    if isinstance(given, MessageList) and wire.native:  # those of other wires may have changed in place
        known = cast("MessageList[Any]", given).take_history()
    if known is None or not wire.claims(known[0]):
        return _read_items(wire, items, start)
    new = _read_items(wire, items[len(known) :], start + len(known))
    return Intake(known.continue_with(new.messages), new.losses, len(items))


def _as_items(given: Any) -> list[Any]:
    """Return the items of a sequence; a single message, part or pair is one."""
    if isinstance(given, Mapping):
        for field in ("messages", "input", "contents"):
            if isinstance(cast("Any", given).get(field), list):
                raise InputError(f"this is the body of a request; pass the list it holds as {field!r}")
    is_several = isinstance(given, Sequence | Iterator | ValuesView) and not isinstance(given, bytes | bytearray)
    is_pair = isinstance(given, tuple) and _is_pair(cast("Any", given))
    return list(cast("Any", given)) if is_several and not is_pair else [given]


def _is_pair(item: Any) -> bool:
    """Return whether `item` says who speaks, and what."""
    if not isinstance(item, tuple | list) or len(cast("Any", item)) != 2:
        return False
    role: Any = cast("Any", item)[0]
    return isinstance(role, str) and role.lower() in _ROLES


def _is_part(item: Any) -> bool:
    if isinstance(item, Mapping):
        of_messages = ("role", "parts")
        fields = cast("Mapping[str, Any]", item)
        return "type" in fields and not any(map(fields.__contains__, of_messages)) and _is_no_item(item)
    return isinstance(item, str | Piece | Opaque)


def _is_no_item(part: Any) -> bool:
    """Return whether a dict with a type is no item of Responses, which are messages."""
    return get_wire("openai-responses").claims(part) is False


def _read_items(wire: ChatWire, items: list[Any], start: int) -> Intake:
    """Return `items`, the first of which has the number `start`, as messages of `wire`."""
    if wire.native and all(map(wire.claims, items)):
        return Intake(items, (), len(items))
    if items and all(map(_is_part, items)):
        return Intake((_make_user_message(wire, items),), (), 1)
    return _convert(wire, [_as_message(wire, item, index) for index, item in enumerate(items, start)], start)


def _as_message(wire: ChatWire, item: Any, index: int) -> Any:
    """Return a pair as a message, and anything else as it is; a text or a part among messages is an error."""
    if _is_pair(item):
        role, content = _ROLES[item[0].lower()], item[1]
        if role == "user" and isinstance(content, list | tuple):
            return _make_user_message(wire, list(cast("Any", content)))
        return {"role": role, "content": content}
    if isinstance(item, tuple | list):
        raise InputError(f"this is no pair (role, text) with a role out of {', '.join(_ROLES)}", index=index)
    if _is_part(item):
        found = "a text" if isinstance(item, str) else "a part"
        raise InputError(f"found {found} among messages; say who speaks: ('user', …)", index=index)
    return item


# --- parts ----------------------------------------------------------------------------------------


def _make_user_message(wire: ChatWire, parts: list[Any]) -> Any:
    """Return a user message with texts and parts; a provider's own parts are converted if `wire` has others."""
    made: list[Any] = []
    for are_foreign, group in groupby(parts, lambda part: isinstance(part, Mapping)):
        some = list(group)
        made += _convert_parts(wire, some) if are_foreign else map(_as_native_part, some)
    return wire.user(made)


def _as_native_part(part: Any) -> Any:
    if isinstance(part, str):
        return TextPart(part)
    made = as_part(part)
    return part if isinstance(made, RawPart) else made


def _convert_parts(wire: ChatWire, parts: list[Any]) -> list[Any]:
    from suture.codecs import decode  # noqa: PLC0415 - only foreign messages pay for it

    message = {"role": "user", "content": parts}
    if not wire.native and wire.claims(message) is not False:
        return parts
    try:
        (name, *_) = recognise([message])
    except UnknownWireError:
        kinds = ", ".join(sorted({str(part.get("type")) for part in parts}))
        raise InputError(f"no wire has parts of the types {kinds} together; {_ACCEPTED}") from None
    return [_as_native_part(block) for said in decode([message], name) for block in said.content_blocks]


# --- messages of other wires ----------------------------------------------------------------------


def _convert(wire: ChatWire, messages: list[Any], start: int) -> Intake:
    """Return `messages`, the first of which has the number `start`, as messages of `wire`."""
    kinds = list(map(_wire_of, messages))
    unknown = [place for place, kind in enumerate(kinds) if not kind]
    with _numbered(start, unknown):
        chosen = _choose_wire(wire, [messages[place] for place in unknown])
    made, losses, place = list[Any](), list[Any](), 0
    for kind, group in groupby(zip(kinds, messages, strict=True), itemgetter(0)):
        run = [message for _, message in group]
        with _numbered(start + place):
            messages_made, lost = _convert_run(wire, run, kind or chosen)
        made += messages_made
        losses += [loss if loss.index is None else replace(loss, index=loss.index + start + place) for loss in lost]
        place += len(run)
    return Intake(made, tuple(losses), len(messages))


def _wire_of(message: Any) -> str:
    """Return the wire that the class of `message` tells, or an empty text."""
    if isinstance(message, Message):
        return "message"
    return "agentic" if isinstance(message, AgenticMessage) else guest_of(message.__class__)


def _choose_wire(wire: ChatWire, messages: list[Any]) -> str:
    """Return the wire that `messages` are read as; if several fit, they must be read alike."""
    if not messages:
        return ""
    names = recognise(messages)
    if wire.name in names or len(names) == 1:
        return wire.name if wire.name in names else names[0]
    from suture.codecs import decode  # noqa: PLC0415 - only foreign messages pay for it

    readings: dict[str, Any] = {}
    for name in names:
        with suppress(InputError):
            readings[name] = list(map(_words_of, decode(messages, name)))
    first, *others = readings or names
    if any(readings[other] != readings[first] for other in others if readings):
        raise AmbiguousWireError(
            tuple(readings), f"convert them: suture.codecs.convert(messages, {first!r}, {wire.name!r})"
        )
    return first


def _words_of(message: AgenticMessage) -> tuple[str, list[Any]]:
    """Return what a message says, whatever its wire."""
    return message.role, [said for block in message.content_blocks if (said := getattr(block, "text", block)) != ""]


def _convert_run(wire: ChatWire, messages: list[Any], name: str) -> tuple[list[Any], Sequence[Any]]:
    """Return messages of the wire `name` as messages of `wire`, and what is lost."""
    if name == wire.name:
        for index, message in enumerate(messages):
            wire.view(message, index)
        return messages, ()
    from suture.codecs import Losses, decode, encode  # noqa: PLC0415 - only foreign messages pay for it

    losses = Losses()
    native = decode(messages, name, losses)
    made = encode(native, wire.name)
    return made.messages, (*losses.found(), *made.losses)


@contextmanager
def _numbered(start: int, places: Sequence[int] | None = None) -> Generator[None]:
    """Let an error inside the block name the message by its number among all that were handed in.

    With the `places` of messages whose wire is being recognised, it also says what would be accepted.
    """
    try:
        yield
    except InputError as error:
        if error.index is None:
            raise
        if places is None:
            raise InputError(error.reason, index=start + error.index, path=error.path) from None
        reason = f"{error.reason.partition('; say which with wire=')[0]}; {_ACCEPTED}"
        raise InputError(reason, index=start + places[error.index]) from None


def _is_silent(wire: ChatWire, message: Any) -> bool:
    """Return whether `message` is a user's without words, parts and results."""
    view = wire.view(message)
    if view.role != "user" or view.results:
        return False
    words = wire.words(message)
    return not words.media and not any(text.strip() for text in words.texts[1:])
