"""Ids that a provider accepts, made from those it does not: injective, deterministic, in message order."""

from collections import ChainMap
from collections.abc import MutableMapping

from suture.errors import ConfigError
from suture.profiles import IdForm

__all__ = ["Ids"]

_TRIES = 100_000
_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Ids:
    """Gives each call its id. A legal first occurrence keeps its name, unless an earlier rename took it.

    `fork()` gives a copy that leaves this one as it is, at a cost that does not grow with the history.

    >>> ids = Ids(IdForm(pattern="[a-z]+", limit=9, scope="history", prefix="", length=9))
    >>> ids.begin_turn()
    >>> ids.give("ok"), ids.give("ok") == "ok"
    ('ok', False)
    """

    def __init__(self, form: IdForm) -> None:
        self.form = form
        self._owners: MutableMapping[str, str] = {}
        """Whose each id is: the original it stands for."""
        self._counts: MutableMapping[str, int] = {}
        self._used: set[str] = set()
        """The ids of the turn at hand."""

    def fork(self) -> "Ids":
        """Return a copy whose changes stay its own."""
        twin = Ids(self.form)
        twin._owners, twin._counts = ChainMap({}, self._owners), ChainMap({}, self._counts)
        twin._used = set(self._used)
        return twin

    def begin_turn(self) -> None:
        """Say that the calls that follow are of a new turn."""
        self._used = set()

    def give(self, original: str) -> str:
        """Return the id for the next call whose own id is `original`."""
        count = self._counts.get(original, 0)
        self._counts[original] = count + 1
        given = original
        salt = 0
        while not self._is_free(given, original):
            if salt == _TRIES:
                raise ConfigError(f"no id of {self.form.length} characters fits {self.form.pattern!r} and is free")
            given = self._derive(original, count, salt)
            salt += 1
        self._owners[given] = original
        self._used.add(given)
        return given

    def _is_free(self, given: str, original: str) -> bool:
        if not self.form.accepts(given):
            return False
        owner = self._owners.get(given)
        if owner is None:
            return True
        if given != original or owner != original:
            return False
        return self.form.scope != "history" and (self.form.scope != "turn" or given not in self._used)

    def _derive(self, original: str, count: int, salt: int) -> str:
        from hashlib import blake2b  # noqa: PLC0415 - only histories that need a new id pay for it

        digest = blake2b(f"{original}\0{count}\0{salt}".encode()).digest()
        number = int.from_bytes(digest)
        letters: list[str] = []
        for _ in range(self.form.length - len(self.form.prefix)):
            number, place = divmod(number, len(_ALPHABET))
            letters.append(_ALPHABET[place])
        return self.form.prefix + "".join(letters)
