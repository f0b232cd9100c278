"""Histories that come anew with each request, and are looked at only where they are new.

A framework hands over its whole list each time. What it begins with was usually handed over before: then only the rest
is looked at. The last few conversations are kept in mind, for all the threads that share an adapter.
"""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, Literal

from suture.language import Language, resolve_language
from suture.messages import History
from suture.profiles import Profile
from suture.repair import Follower, Generator

__all__ = ["Following"]

_KEPT = 16
"""How many conversations are kept in mind."""


class Following:
    """Gives what a provider accepts in place of what a framework would send: the very list, where it accepts that.

    >>> following = Following("openai-chat")
    >>> history = [{"role": "user", "content": "hi"}]
    >>> following.mend(history, "openai-chat") is history
    True
    """

    def __init__(
        self,
        wire: str,
        *,
        orphans: Literal["text", "drop"] = "text",
        generator: Generator | None = None,
        is_placeholder: Callable[[str], bool] | None = None,
        language: str | None = None,
    ) -> None:
        self._wire = wire
        self._language: Language = resolve_language(language)
        self._orphans: Literal["text", "drop"] = orphans
        self._generator, self._is_placeholder = generator, is_placeholder
        self._lock = Lock()
        self._conversations: list[_Conversation] = []

    def mend(self, messages: Sequence[Any], profile: str | Profile) -> Sequence[Any]:
        """Return what `profile` accepts in the place of `messages`; what cannot be mended is left to the provider."""
        if not messages:
            return messages
        conversation = self._take(messages, profile)
        mended = conversation.mend(messages)
        with self._lock:
            self._conversations.append(conversation)
            del self._conversations[:-_KEPT]
        return mended

    def _take(self, messages: Sequence[Any], profile: str | Profile) -> "_Conversation":
        """Return the longest conversation that `messages` go on with, which is nobody else's until it is put back."""
        with self._lock:
            known = [each for each in self._conversations if each.profile == profile and each.is_begun_by(messages)]
            if known:
                best = max(known, key=len)
                self._conversations.remove(best)
                return best
        follower = Follower(
            wire=self._wire,
            profile=profile,
            language=self._language,
            orphans=self._orphans,
            is_placeholder=self._is_placeholder,
            generator=self._generator,
        )
        return _Conversation(follower, profile)


class _Conversation:
    """A conversation as far as it is known."""

    def __init__(self, follower: Follower, profile: str | Profile) -> None:
        self.profile = profile
        self._follower = follower
        self._history: History[Any] = History()

    def __len__(self) -> int:
        return self._history.length

    def is_begun_by(self, messages: Sequence[Any]) -> bool:
        """Tell whether `messages` begin with this conversation: the same objects, or others that say the same."""
        length = self._history.length
        if length > len(messages):
            return False
        try:
            # Most others differ at the end already.
            same = messages[length - 1] == self._history[length - 1] and list(messages[:length]) == self._history[:]
            return bool(same)
        except Exception:  # noqa: BLE001 - what users' objects make of == must not end a run
            return False

    def mend(self, messages: Sequence[Any]) -> Sequence[Any]:
        """Return what is accepted in the place of `messages`, which go on with this conversation."""
        history = self._history.extend(list(messages[self._history.length :]))
        fixed = self._follower.follow(history)
        self._history = history
        return list(fixed.messages) if fixed.changed else messages
