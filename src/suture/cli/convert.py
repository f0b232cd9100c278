"""`suture convert`: write a history as another provider, or Suture itself, has it. Nothing is repaired.

What the other form cannot hold is named on standard error, and in the file that `--losses` names. Exit status 0, or
1 if something could not cross.
"""

from argparse import Namespace
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, cast

import msgspec
from msgspec.structs import replace

from suture._text import visible
from suture.cli.files import HOLDERS, Conversation, complain, open_source
from suture.cli.output import Outputs, keep_apart
from suture.codecs import CODECS, OPTIONS, Encoded, Loss, Lost, Request, decode, encode, get_codec
from suture.errors import ConfigError, InputError
from suture.messages import SCHEMA_VERSION, AgenticMessage, message_to_dict
from suture.wires import recognise

_SHOWN = 20
"""How many losses of one file are told to a person."""


class _Read(NamedTuple):
    """What a conversation says, what of it is not read, and whether it is a whole request."""

    request: Request
    losses: tuple[Loss, ...] = ()
    whole: bool = False
    wire: str = ""


def run(asked: Namespace) -> int:
    """Convert every conversation of a file and write them all."""
    lost: list[tuple[Conversation, tuple[Loss, ...]]] = []
    keep_apart("list of losses", asked.losses, asked.output, asked.file)
    with open_source(asked.file, asked, option="--from") as source, Outputs() as outputs:
        history = outputs.open(None if asked.output == "-" else asked.output)
        report = outputs.open(asked.losses) if asked.losses is not None else None
        for conversation in source:
            made, losses = _convert(conversation.sendable(), asked)
            if conversation.lines and isinstance(made, list):
                history.write(conversation.encode(cast("list[Any]", made)))
            else:
                history.write(conversation.encode_value(made))
            if losses:
                lost.append((conversation._replace(stored=[], holder=None, raw=()), losses))
        source.tell_bad()
        if report is not None:
            for each, losses in lost:
                report.write(msgspec.json.encode({"line": each.line, "losses": losses}) + b"\n")
        outputs.publish()
    named = [(each.title, loss) for each, losses in lost for loss in losses]
    for title, loss in named[:_SHOWN]:
        where = f"{source.name}, {title}" if title else source.name
        complain(visible(f"suture: {where}: lost: {loss}"))
    if len(named) > _SHOWN:
        complain(f"suture: and {len(named) - _SHOWN} more; --losses FILE has them all")
    return 1 if lost else 0


def _convert(conversation: Conversation, asked: Namespace) -> Encoded:
    """Return a conversation in its new form: a list, or an object where there is more to say than messages."""
    read = _read(conversation, asked.wire)
    request, lost = read.request, read.losses
    if asked.to not in CODECS:
        made = _encode_native(request, asked.to, whole=conversation.holder is not None)
    elif read.whole:
        if read.wire != asked.to:  # without the settings, and the model, that only its own provider knows
            own = [name for name in request.options if name not in (*OPTIONS, "stream")]
            kept = {name: value for name, value in request.options.items() if name not in own}
            request, lost = replace(request, options=kept), (*lost, *_lose(own))
        made = get_codec(asked.to).encode_request(request)
    else:
        made = _encode_messages(request, asked.to)
    return Encoded(made.payload, (*made.losses, *lost))


def _encode_native(request: Request, wire: str, *, whole: bool) -> Encoded:
    """Return the messages of a request; of what else it said, the instruction is one of them, the rest is lost."""
    system = [AgenticMessage.system(request.instruction)] if request.instruction else []
    made = encode([*system, *request.messages], wire)
    tools = [Loss(Lost.TOOL, f"tool {info.name}") for info in request.tools]
    plain = [message_to_dict(message) for message in made.messages]
    payload = {"schema": SCHEMA_VERSION, "messages": plain} if whole else plain
    return Encoded(payload, (*made.losses, *tools, *_lose(request.options)))


def _encode_messages(request: Request, wire: str) -> Encoded:
    """Return the list of messages; in an object with the system messages where the list can have none."""
    codec = get_codec(wire)
    if not codec.leading_system(request.messages):
        return codec.encode_messages(request.messages)
    payload, losses = codec.encode_request(request)
    settings = codec.encode_request(Request([])).payload.keys() - {codec.messages_field}
    return Encoded({name: value for name, value in payload.items() if name not in settings}, losses)


def _holds_messages(wire: str, key: str) -> bool:
    """Return whether a request of a wire has its messages under a key."""
    return wire in CODECS and get_codec(wire).messages_field == key


def _read(conversation: Conversation, wire: str | None) -> _Read:
    """Return what a conversation says: on any of the wires that it may be of, if it is the same on all."""
    taken, wire = conversation.take(wire)
    if wire is not None:
        return _read_as(conversation, taken, wire)
    names = recognise(conversation.stored)
    # The field that holds the messages tells, too.
    candidates = [name for name in names if _holds_messages(name, conversation.key)] or names
    if "schema" in (conversation.holder or {}) and "message" in names:
        candidates = ["message"]
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


def _read_as(conversation: Conversation, taken: Sequence[Any], wire: str) -> _Read:
    """Return what a conversation says on a wire: a whole request if it is one of that wire, else its messages alone."""
    holder, key = conversation.holder or {}, conversation.key
    if _holds_messages(wire, key):
        strange = [name for name in HOLDERS if name != key and name in holder]
        body = {name: value for name, value in holder.items() if name not in strange}
        return _Read(get_codec(wire).decode_request(body), _lose(strange), whole=True, wire=wire)
    kept = {key, "schema"} if wire not in CODECS else {key}
    return _Read(Request(decode(taken, wire)), _lose(name for name in holder if name not in kept))


def _lose(names: Iterable[str]) -> tuple[Loss, ...]:
    return tuple(Loss(Lost.OPTION, name) for name in names)
