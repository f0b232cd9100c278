"""`suture convert`: write a history as another provider, or Suture itself, has it. Nothing is repaired.

What the other form cannot hold is named on standard error, and in the file that `--losses` names. Exit status 0, or
1 if something could not cross.
"""

from argparse import Namespace
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple, cast

import msgspec
from msgspec.structs import replace

from suture._text import visible
from suture.cli.files import HOLDERS, Conversation, Layout, Source, open_source, read_conversations
from suture.cli.output import Outputs, complain, progress_on
from suture.codecs import CODECS, OPTIONS, Encoded, Loss, Lost, Request, decode, encode, get_codec
from suture.errors import ConfigError, InputError, UnknownWireError
from suture.messages import SCHEMA_VERSION, AgenticMessage, message_to_dict
from suture.wires import recognise

_SHOWN = 20
"""How many losses of one file are told to a person."""
_OUTSIDE = {"anthropic": "system", "gemini": "systemInstruction", "bedrock": "system"}
"""Where formats that keep system messages outside of the list have them."""
_LISTS = {
    "openai-chat": "messages",
    "openai-responses": "input",
    "anthropic": "messages",
    "gemini": "contents",
    "bedrock": "messages",
}
"""Where a request of each format has its messages."""


class _Losses(NamedTuple):
    """What was lost in one conversation, and which it is."""

    title: str
    line: int
    found: tuple[Loss, ...]


class _Read(NamedTuple):
    """What a conversation says, what of it is not read, and whether it is a whole request."""

    request: Request
    losses: tuple[Loss, ...] = ()
    whole: bool = False
    wire: str = ""


def run(asked: Namespace) -> int:
    """Convert every conversation of a file and write them all."""
    lost: list[_Losses] = []
    with ExitStack() as stack:
        source = stack.enter_context(open_source(asked.file, asked.max_bytes))
        outputs = Outputs(stack)
        history = outputs.open(None if asked.output == "-" else asked.output)
        report = outputs.open(asked.losses) if asked.losses is not None else None
        progress = stack.enter_context(progress_on(source))
        for conversation in read_conversations(source):
            with conversation.located():
                made, losses = _converted(conversation.sendable(), asked)
                history.write(_encode(made, conversation))
            if losses:
                lost.append(_Losses(conversation.title, conversation.line, losses))
            progress.step()
        progress.close()
        if report is not None:
            for each in lost:
                report.write(_record(each))
        outputs.publish()
    _tell(lost, source)
    return 1 if lost else 0


def _converted(conversation: Conversation, asked: Namespace) -> Encoded:
    """Return a conversation in its new form: a list, or an object where there is more to say than messages."""
    read = _read(conversation, asked.wire)
    if read.whole and asked.to in CODECS and read.wire != asked.to:
        read = _without_own_options(read)
    if asked.to in CODECS:
        made = _foreign(read.request, asked.to, whole=read.whole)
    else:
        made = _native(read.request, asked.to, whole=conversation.holder is not None)
    return Encoded(made.payload, (*made.losses, *read.losses))


def _read(conversation: Conversation, wire: str | None) -> _Read:
    """Return what a conversation says: on any of the wires that it may be of, if it is the same on all."""
    taken, wire = conversation.take(wire)
    if wire is not None:
        return _read_as(conversation, taken, wire)
    candidates = _candidates(conversation)
    found: list[_Read] = []
    refused: list[InputError] = []
    for candidate in candidates:
        try:
            found.append(_read_as(conversation, taken, candidate))
        except InputError as error:
            refused.append(error)
    if not found:
        raise refused[0]
    if any(other._replace(wire="") != found[0]._replace(wire="") for other in found):
        raise ConfigError(f"this could be any of {', '.join(candidates)}; say which with --from")
    return found[0]


def _candidates(conversation: Conversation) -> Sequence[str]:
    """Return the wires that a conversation may be of; the field that holds the messages tells, too."""
    try:
        names = recognise(conversation.stored)
    except UnknownWireError as error:
        raise UnknownWireError(error.reason.replace("with wire=", "with --from"), index=error.index) from None
    if "schema" in (conversation.holder or {}) and "message" in names:
        return ("message",)
    return [name for name in names if _LISTS.get(name) == conversation.key] or names


def _read_as(conversation: Conversation, taken: Sequence[Any], wire: str) -> _Read:
    """Return what a conversation says on a wire: a whole request if it is one of that wire, else its messages alone."""
    holder, key = conversation.holder or {}, conversation.key
    if key and key == _LISTS.get(wire):
        strange = [name for name in HOLDERS if name != key and name in holder]
        body = {name: value for name, value in holder.items() if name not in strange}
        return _Read(get_codec(wire).decode_request(body), _lost(strange), whole=True, wire=wire)
    kept = {key, "schema"} if wire not in CODECS else {key}
    return _Read(Request(decode(taken, wire)), _lost(name for name in holder if name not in kept))


def _without_own_options(read: _Read) -> _Read:
    """Return a request without the settings, and the model, that only its own provider knows."""
    options = read.request.options
    own = [name for name in options if name not in (*OPTIONS, "stream")]
    kept = {name: value for name, value in options.items() if name not in own}
    return read._replace(request=replace(read.request, options=kept), losses=(*read.losses, *_lost(own)))


def _lost(names: Iterable[str]) -> tuple[Loss, ...]:
    return tuple(Loss(Lost.OPTION, name) for name in names)


def _foreign(request: Request, wire: str, *, whole: bool) -> Encoded:
    """Return a request, or the list of its messages; system messages are kept in an object where the list has none."""
    codec = get_codec(wire)
    if whole:
        return codec.encode_request(request)
    outside = _OUTSIDE.get(wire)
    if outside is None or next((message.role for message in request.messages), "") != "system":
        return codec.encode_messages(request.messages)
    payload, losses = codec.encode_request(request)
    kept = {name: payload[name] for name in (outside, _LISTS[wire]) if name in payload}
    return Encoded(kept, losses)


def _native(request: Request, wire: str, *, whole: bool) -> Encoded:
    """Return the messages of a request; of what else it said, the instruction is one of them, the rest is lost."""
    system = [AgenticMessage.system(request.instruction)] if request.instruction else []
    made = encode([*system, *request.messages], wire)
    losses = [Loss(Lost.TOOL, f"tool {info.name}") for info in request.tools]
    losses += [Loss(Lost.OPTION, name) for name in request.options]
    plain = [message_to_dict(message) for message in made.messages]
    payload = {"schema": SCHEMA_VERSION, "messages": plain} if whole else plain
    return Encoded(payload, (*made.losses, *losses))


def _encode(made: Any, conversation: Conversation) -> bytes:
    if conversation.layout is Layout.LINES and isinstance(made, list):
        return conversation.encode(cast("list[Any]", made))
    return conversation.encode_value(made)


def _record(lost: _Losses) -> bytes:
    losses = [
        {"name": loss.name.value, "what": loss.what, "index": loss.index, "path": loss.path} for loss in lost.found
    ]
    return msgspec.json.encode({"line": lost.line, "losses": losses}) + b"\n"


def _tell(lost: Sequence[_Losses], source: Source) -> None:
    """Name what could not cross, one line each, up to a limit."""
    named = [(each.title, loss) for each in lost for loss in each.found]
    for title, loss in named[:_SHOWN]:
        where = f"{source.name}, {title}" if title else source.name
        complain(visible(f"suture: {where}: lost: {loss}"))
    if len(named) > _SHOWN:
        complain(f"suture: and {len(named) - _SHOWN} more; --losses FILE has them all")
