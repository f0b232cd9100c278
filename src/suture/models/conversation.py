"""The messages of one history as one provider takes them: encoded, fitted, and in the form of its SDK.

A history only grows, so its encoded messages are kept with its log: a turn encodes the new messages and fits them, on
the provider's own wire, knowing the earlier ones.
"""

from collections.abc import Callable, Sequence
from itertools import compress, count, takewhile
from operator import is_not
from typing import Any

import msgspec

from suture.codecs import Codec, Loss, Losses, Lost, to_agentic
from suture.errors import HistoryError, InputError
from suture.language import Language
from suture.messages import AgenticMessage, FunctionToolCall, History, Message
from suture.profiles import Profile
from suture.repair import Cause, Repairer
from suture.wires import get_wire
from suture.wires.fields import is_object_text

__all__ = ["Conversation", "follow"]


class Conversation:
    """The encoded and fitted messages of one history for one provider."""

    def __init__(self, codec: Codec, profile: Profile, language: Language, form: Callable[[Any], Any]) -> None:
        self._codec, self._form = codec, form
        self._repairer: Repairer[Any] = Repairer(wire=codec.name, profile=profile, language=language)
        self._origins: list[int] = []
        """The native message that each encoded one came from."""
        self.length = 0
        """How many native messages were encoded."""
        self.outside: list[AgenticMessage] = []
        """The leading system messages, which the provider keeps outside the list."""
        self.losses: list[Loss] = []
        """What the messages could not express."""
        self._sent: list[Any] = []
        self._forms: list[Any] = []

    def extend(self, messages: Sequence[Any]) -> None:
        """Encode and fit `messages`, which follow those encoded before."""
        encoded: list[Any] = []
        causes: dict[tuple[int, int], Cause] = {}
        leading = 0
        if self.length == 0:
            system = takewhile(lambda message: getattr(message, "role", "") == "system", messages)
            first = [_as_agentic(message, place) for place, message in enumerate(system)]
            leading = self._codec.leading_system(first)
            self.outside = first[:leading]
        for place, message in enumerate(messages[leading:], self.length + leading):
            losses, native = Losses(), _as_agentic(message, place)
            losses.index = place
            items = self._codec.write_message(native, losses)
            lost = losses.found()
            if lost and Lost.ARGUMENTS in [loss.name for loss in lost]:
                causes |= self._find_malformed(native, items)
            self.losses += lost
            encoded += items
            self._origins += [place] * len(items)
        self._repairer.extend(encoded, causes=causes)
        self.length += len(messages)

    def _find_malformed(self, message: AgenticMessage, items: Sequence[Any]) -> dict[tuple[int, int], Cause]:
        """Return the calls of `message` whose arguments were malformed, which the encoded `items` no longer show."""
        calls = [block for block in message.content_blocks if isinstance(block, FunctionToolCall)]
        wire, start = get_wire(self._codec.name), len(self._origins)
        places = [(at, number) for at, item in enumerate(items, start) for number in range(len(wire.view(item).calls))]
        return {
            place: Cause.MALFORMED
            for place, call in zip(places, calls, strict=False)
            if call.arguments.strip() and not is_object_text(call.arguments)
        }

    def fitted(self) -> list[Any]:
        """Return the repaired messages; raise `HistoryError` if something in them cannot be repaired."""
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
        """Return each of `messages` in the form that the SDK takes; those sent before are not formed again."""
        known = min(len(self._sent), len(messages))
        same = next(compress(count(), map(is_not, self._sent, messages)), known)
        self._forms[same:] = [self._form(message) for message in messages[same:]]
        self._sent = messages
        return list(self._forms)


def follow(history: History[Any], key: Any, make: Callable[[], Conversation]) -> Conversation:
    """Return the conversation of `history`, brought up to date; it is kept with the history's log."""
    memo = history.log.memo
    conversation: Conversation | None = memo.get(key)
    if conversation is None or conversation.length > history.length:
        conversation = make()
    memo.pop(key, None)  # a failure half way must leave nothing behind
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
