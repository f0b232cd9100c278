"""What a provider is sent: each message is encoded once, fitted to the provider, and kept as bytes.

A history only grows. So what was made of its messages is kept with its log: a turn encodes what is new, fits it (on the
provider's own wire, with what went before in mind) and joins the bytes. What holds for the end of a conversation alone,
such as a cache mark, is laid over it and never kept.
"""

from collections.abc import Callable, Sequence
from itertools import compress, count
from operator import is_not
from typing import Any, NamedTuple

import msgspec

from suture.codecs import Codec, Loss, Losses, Lost, to_agentic
from suture.errors import HistoryError, InputError
from suture.language import Language
from suture.messages import AgenticMessage, FunctionToolCall, History, Message
from suture.profiles import Profile
from suture.repair import Cause, Repairer
from suture.wires import get_wire
from suture.wires.fields import is_object_text

to_json = msgspec.json.Encoder().encode


class Body(NamedTuple):
    """The body of a request: its settings, and its messages as plain data and in the form that the SDK takes.

    >>> body = Body({"model": "m"}, "messages", [{"role": "user"}], [b'{"role":"user"}'])
    >>> body.payload
    {'model': 'm', 'messages': [{'role': 'user'}]}
    >>> body.content
    b'{"model":"m","messages":[{"role":"user"}]}'
    """

    settings: dict[str, Any]
    field: str
    messages: list[Any]
    forms: list[Any]
    """The messages as the model keeps them: as bytes, where the SDK takes a ready body."""

    @property
    def payload(self) -> dict[str, Any]:
        """The body as plain data."""
        return {**self.settings, self.field: self.messages}

    @property
    def content(self) -> bytes:
        """The body as JSON, joined from messages that are bytes already."""
        head = to_json(self.settings)[:-1] + (b"," if self.settings else b"")
        return b"".join((head, to_json(self.field), b":[", b",".join(self.forms), b"]}"))


class Conversation:
    """One history on its way to one provider: what was made of it so far."""

    def __init__(self, codec: Codec, profile: Profile, language: Language, form: Callable[[Any], Any]) -> None:
        self._codec, self._form = codec, form
        self._repairer: Repairer[Any] = Repairer(wire=codec.name, profile=profile, language=language)
        self._origins: list[int] = []
        """The native message that each encoded one came from."""
        self.length = 0
        """How many native messages were encoded."""
        self.outside: list[AgenticMessage] = []
        """The first messages, the system's, which the provider keeps outside of the list."""
        self.losses: list[Loss] = []
        """What could not be said in the messages."""
        self._sent: list[Any] = []
        self._forms: list[Any] = []

    def extend(self, messages: Sequence[Any]) -> None:
        """Encode and fit `messages`, which go on from what was encoded before."""
        made: list[Any] = []
        causes: dict[tuple[int, int], Cause] = {}
        leading = self._leading(messages) if self.length == 0 else 0
        for place, message in enumerate(messages[leading:], self.length + leading):
            losses, native = Losses(), _as_agentic(message, place)
            losses.index = place
            items = self._codec.write_message(native, losses)
            lost = losses.found()
            if lost and Lost.ARGUMENTS in [loss.name for loss in lost]:
                causes |= self._malformed(native, items)
            self.losses += lost
            made += items
            self._origins += [place] * len(items)
        self._repairer.extend(made, causes=causes)
        self.length += len(messages)

    def _malformed(self, message: AgenticMessage, items: Sequence[Any]) -> dict[tuple[int, int], Cause]:
        """Return the calls of `message` whose arguments were lost on the way into `items`: nothing there tells it."""
        calls = [block for block in message.content_blocks if isinstance(block, FunctionToolCall)]
        wire, start = get_wire(self._codec.name), len(self._origins)
        places = [(at, number) for at, item in enumerate(items, start) for number in range(len(wire.view(item).calls))]
        return {
            place: Cause.MALFORMED
            for place, call in zip(places, calls, strict=False)
            if call.arguments.strip() and not is_object_text(call.arguments)
        }

    def _leading(self, messages: Sequence[Any]) -> int:
        """Return how many of the first messages are the system's and stand outside of the list."""
        system = [_as_agentic(message, place) for place, message in enumerate(messages[: _count_system(messages)])]
        self.outside = system[: self._codec.leading_system(system)]
        return len(self.outside)

    def fitted(self) -> list[Any]:
        """Return what the provider accepts; raise `HistoryError` where something in it cannot be mended."""
        unresolved = self._repairer.unresolved
        if unresolved:
            native = [msgspec.structs.replace(found, index=self._origins[found.index]) for found in unresolved]
            first = native[0]
            raise HistoryError(
                f"{self._repairer.report.profile} would refuse this history, and {len(native)} of its faults cannot be "
                f"repaired; the first: message {first.index}, {first.problem} ({first.says or 'no rule'})",
                unresolved=tuple(native),
            )
        return list(self._repairer.messages)

    def forms(self, messages: list[Any]) -> list[Any]:
        """Return each of `messages` in the form that the SDK takes; what was sent before is not formed again."""
        known = min(len(self._sent), len(messages))
        same = next(compress(count(), map(is_not, self._sent, messages)), known)
        self._forms[same:] = [self._form(message) for message in messages[same:]]
        self._sent = messages
        return list(self._forms)


def follow(history: History[Any], key: Any, make: Callable[[], Conversation]) -> Conversation:
    """Return the conversation that `history` goes on with, up to date; it is kept with the history's log."""
    memo = history.log.memo
    conversation: Conversation | None = memo.get(key)
    if conversation is None or conversation.length > history.length:
        conversation = make()
    memo.pop(key, None)  # whoever fails half way leaves nothing behind
    if conversation.length < history.length:
        conversation.extend(history[conversation.length :])
    memo[key] = conversation
    return conversation


def _as_agentic(message: Any, place: int) -> AgenticMessage:
    if isinstance(message, AgenticMessage):
        return message
    if isinstance(message, Message):
        return to_agentic(message)
    raise InputError(f"expected a Message or an AgenticMessage, found {type(message).__name__}", index=place)


def _count_system(messages: Sequence[Any]) -> int:
    return next(
        (place for place, message in enumerate(messages) if getattr(message, "role", "") != "system"), len(messages)
    )
