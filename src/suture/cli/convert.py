"""`suture convert`: write a history as another provider, or Suture itself, has it. Nothing is repaired.

What the other form cannot hold is named on standard error, and in the file that `--losses` names. Exit status 0, or
1 if something could not cross.
"""

from argparse import Namespace
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple, cast

import msgspec

from suture.cli._conversation import Conversation, Layout
from suture.cli._outputs import Outputs
from suture.cli._progress import progress_on
from suture.cli._read import Source, open_source, read_conversations
from suture.cli._streams import complain
from suture.cli._visible import visible
from suture.codecs import CODECS, Encoded, Loss, Lost, Request, decode, encode, get_codec
from suture.errors import ConfigError
from suture.messages import SCHEMA_VERSION, AgenticMessage, message_to_dict
from suture.wires import recognise

__all__ = ["run"]

_SHOWN = 20
"""How many losses of one file are told to a person."""
_OUTSIDE = {"anthropic": "system", "gemini": "systemInstruction", "bedrock": "system"}
"""Where formats that keep system messages outside of the list have them."""
_LISTS = {"openai-responses": "input", "gemini": "contents"}


class _Losses(NamedTuple):
    """What was lost in one conversation, and which it is."""

    title: str
    line: int
    found: tuple[Loss, ...]


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
                made, losses = _converted(conversation, asked)
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


def _converted(conversation: Conversation, asked: Namespace) -> tuple[Any, tuple[Loss, ...]]:
    """Return a conversation in its new form: a list, or an object where there is more to say than messages."""
    taken, wire = conversation.take(asked.wire)
    wire = wire or _recognised(taken)
    holder = conversation.holder
    if holder is None or wire not in CODECS:
        request = Request(decode(taken, wire))
        whole = False
    else:
        request = get_codec(wire).decode_request(holder)
        whole = True
    if asked.to in CODECS:
        return _foreign(request, asked.to, whole=whole)
    return _native(request, asked.to, whole=whole or holder is not None)


def _recognised(messages: Sequence[Any]) -> str:
    """Return the wire of the messages: any of those that they may be of, if they say the same on all."""
    candidates = recognise(messages)
    first, *others = [decode(messages, wire) for wire in candidates]
    if any(other != first for other in others):
        raise ConfigError(f"these messages could be any of {', '.join(candidates)}; say which with --from")
    return candidates[0]


def _foreign(request: Request, wire: str, *, whole: bool) -> Encoded:
    """Return a request, or the list of its messages; system messages are kept in an object where the list has none."""
    codec = get_codec(wire)
    if whole:
        return codec.encode_request(request)
    outside = _OUTSIDE.get(wire)
    if outside is None or next((message.role for message in request.messages), "") != "system":
        return codec.encode_messages(request.messages)
    payload, losses = codec.encode_request(request)
    kept = {name: payload[name] for name in (outside, _LISTS.get(wire, "messages")) if name in payload}
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
    """Return the bytes of a converted conversation, laid out as it came."""
    if conversation.layout is Layout.LINES and isinstance(made, list):
        return conversation.encode(cast("list[Any]", made))
    data = msgspec.json.encode(made)
    if conversation.layout is Layout.PRETTY:
        data = msgspec.json.format(data, indent=2)
    return data + b"\n"


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
