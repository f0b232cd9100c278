"""`suture convert`: write a history in the form of another provider, or in Suture's own. Nothing is repaired.

What the other form cannot hold is listed on standard error, and in the file that `--losses` names. The exit status is
0, or 1 if something was lost.
"""

from argparse import Namespace
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, cast

import msgspec
from msgspec.structs import replace

from suture._text import visible
from suture.cli.files import HOLDERS, Conversation, open_source
from suture.cli.output import Outputs, keep_apart
from suture.cli.refusals import complain
from suture.codecs import CODECS, OPTIONS, Encoded, Loss, Lost, Request, decode, encode, get_codec
from suture.errors import ConfigError, InputError
from suture.messages import SCHEMA_VERSION, AgenticMessage, message_to_dict
from suture.wires import recognise

_MOST_SHOWN = 20
"""How many losses of one file are listed on standard error."""


class _Read(NamedTuple):
    """A conversation as a request, what was not read of it, and whether it is a whole request."""

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
                history.write_pieces(conversation.encode(cast("list[Any]", made)))
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
    for title, loss in named[:_MOST_SHOWN]:
        where = f"{source.name}, {title}" if title else source.name
        complain(visible(f"suture: {where}: lost: {loss}"))
    if len(named) > _MOST_SHOWN:
        complain(f"suture: and {len(named) - _MOST_SHOWN} more; --losses FILE has them all")
    return 1 if lost else 0


def _convert(conversation: Conversation, asked: Namespace) -> Encoded:
    """Return a conversation in its new form: a list of messages, or an object if there is more than messages."""
    read = _read(conversation, asked.wire)
    request, lost = read.request, read.losses
    if asked.to not in CODECS:
        made = _encode_native(request, asked.to, whole=conversation.holder is not None)
    elif read.whole:
        if read.wire != asked.to:  # drop the model and the settings that only the old provider knows
            own = [name for name in request.options if name not in (*OPTIONS, "stream")]
            kept = {name: value for name, value in request.options.items() if name not in own}
            request, lost = replace(request, options=kept), (*lost, *_option_losses(own))
        made = get_codec(asked.to).encode_request(request)
    else:
        made = _encode_messages(request, asked.to)
    return Encoded(made.payload, (*made.losses, *lost))


def _encode_native(request: Request, wire: str, *, whole: bool) -> Encoded:
    """Return the messages of a request, the instruction as the first of them; tools and options are lost."""
    system = [AgenticMessage.system(request.instruction)] if request.instruction else []
    made = encode([*system, *request.messages], wire)
    tools = [Loss(Lost.TOOL, f"tool {info.name}") for info in request.tools]
    plain = [message_to_dict(message) for message in made.messages]
    payload = {"schema": SCHEMA_VERSION, "messages": plain} if whole else plain
    return Encoded(payload, (*made.losses, *tools, *_option_losses(request.options)))


def _encode_messages(request: Request, wire: str) -> Encoded:
    """Return the list of messages, or an object if the wire keeps system messages outside the list."""
    codec = get_codec(wire)
    if not codec.leading_system(request.messages):
        return codec.encode_messages(request.messages)
    payload, losses = codec.encode_request(request)
    settings = codec.encode_request(Request([])).payload.keys() - {codec.messages_field}
    return Encoded({name: value for name, value in payload.items() if name not in settings}, losses)


def _holds_messages(wire: str, key: str) -> bool:
    """Return whether requests of this wire have their messages under this key."""
    return wire in CODECS and get_codec(wire).messages_field == key


def _read(conversation: Conversation, wire: str | None) -> _Read:
    """Read a conversation; if it may be of several wires, all must read the same from it."""
    taken, wire = conversation.take(wire)
    if wire is not None:
        return _read_as(conversation, taken, wire)
    names = recognise(conversation.stored)
    # The field that holds the messages is a hint, too.
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
    """Read a conversation on one wire: as a whole request if it is one of that wire, else its messages alone."""
    holder, key = conversation.holder or {}, conversation.key
    if _holds_messages(wire, key):
        strange = [name for name in HOLDERS if name != key and name in holder]
        body = {name: value for name, value in holder.items() if name not in strange}
        return _Read(get_codec(wire).decode_request(body), _option_losses(strange), whole=True, wire=wire)
    kept = {key, "schema"} if wire not in CODECS else {key}
    return _Read(Request(decode(taken, wire)), _option_losses(name for name in holder if name not in kept))


def _option_losses(names: Iterable[str]) -> tuple[Loss, ...]:
    return tuple(Loss(Lost.OPTION, name) for name in names)
