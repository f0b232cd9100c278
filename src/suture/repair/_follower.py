"""Repairing, for one model, a history that is followed as it grows: a step looks only at what is new.

While the history is in order, pairing has nothing to do, and what is new is fed to one fold that goes on. A history
that is not in order goes to a `Repairer`, which knows how to work out an open end again.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from suture.language import Language
from suture.messages import History
from suture.pairing import Finding
from suture.profiles import Profile, get_profile
from suture.repair._cursor import is_in_order
from suture.repair._engine import Generator
from suture.repair._fit import Fitter
from suture.repair._repairer import Repairer
from suture.wires import get_wire

__all__ = ["Followed", "Follower"]


class Followed(NamedTuple):
    """What may be sent, and what could not be mended in it.

    >>> Followed([], ()).unresolved
    ()
    """

    messages: Sequence[Any]
    unresolved: tuple[Finding, ...] = ()


class Follower:
    """Gives, for each state of a growing history, what its provider accepts: the history itself if it does.

    >>> from suture.messages import Message
    >>> follower = Follower("message", "openai-chat", "en")
    >>> history = History([Message.user("hi")])
    >>> follower.follow(history).messages is history
    True
    """

    def __init__(
        self,
        wire: str,
        profile: str | Profile,
        language: Language,
        *,
        orphans: Literal["text", "drop"] = "text",
        is_placeholder: Callable[[str], bool] | None = None,
        generator: Generator | None = None,
    ) -> None:
        self._generator = generator
        self._orphans: Literal["text", "drop"] = orphans
        self._is_placeholder = is_placeholder
        self._wire, self._profile = get_wire(wire), get_profile(profile)
        self._language: Language = language
        self._fits = self._profile.has_fit
        self._start_again()

    def _start_again(self) -> None:
        self._fed: History[Any] = History()
        self._fitter = Fitter(self._wire, self._profile, self._language)
        self._out: list[Any] = []
        self._unresolved: list[Finding] = []
        self._repairer: Repairer[Any] | None = None

    def follow(self, history: History[Any]) -> Followed:
        """Return what may be sent of `history`."""
        if self._repairer is None and not self._fits:
            if is_in_order(self._wire, history):
                return Followed(history)
        elif not history.follows(self._fed):
            self._start_again()
        if self._repairer is None:
            if self._fits and is_in_order(self._wire, history):
                return self._feed(history)
            self._start_again()
            self._repairer = Repairer(
                wire=self._wire.name,
                profile=self._profile,
                orphans=self._orphans,
                generator=self._generator,
                is_placeholder=self._is_placeholder,
                language=self._language,
            )
        return self._repair(self._repairer, history)

    def _repair(self, repairer: Repairer[Any], history: History[Any]) -> Followed:
        start, self._fed = len(self._fed), history
        repairer.extend(history[start:])
        messages = History(repairer.messages) if repairer.changed else history
        return Followed(messages, repairer.unresolved)

    def _feed(self, history: History[Any]) -> Followed:
        start, self._fed = len(self._fed), history
        fitter = self._fitter
        for index in range(start, len(history)):
            fitter.feed(history[index], index)
        settled, found = fitter.take()
        self._out += settled
        self._unresolved += [finding for finding in found if not finding.mended]
        if not fitter.changed and fitter.holds_nothing_back:
            return Followed(history, tuple(self._unresolved))
        end = fitter.fork()
        tail = end.finish()
        unresolved = (*self._unresolved, *(finding for finding in end.findings if not finding.mended))
        changed = fitter.changed or end.changed
        return Followed(History([*self._out, *tail]) if changed else history, unresolved)
