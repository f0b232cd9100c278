"""Ids that a provider accepts, made from those it does not: injective, deterministic, in message order."""

from suture.errors import ConfigError
from suture.profiles import IdForm

_TRIES = 100_000
_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Ids:
    """Gives each call its id. A legal first occurrence keeps its name, unless an earlier rename took it.

    `used` are the ids that may not be given again: those of the turn, or of the history where an id is used once
    in a request. They are in order, so that what was given since some point can be taken back.

    >>> ids = Ids(IdForm(pattern="[a-z]+", limit=9, scope="history", prefix="", length=9))
    >>> ids.begin_turn()
    >>> ids.give("ok"), ids.give("ok") == "ok"
    ('ok', False)
    """

    def __init__(self, form: IdForm) -> None:
        self.form = form
        self.used: dict[str, None] = {}
        self._repeats: dict[str, int] = {}
        """How often each id was met that could not stay."""
        self._repeat_log: list[str] = []

    def begin_turn(self) -> None:
        """Say that the calls that follow are of a new turn."""
        if self.form.scope != "history":
            self.take_back((0, 0))

    def give(self, original: str) -> str:
        """Return the id for the next call whose own id is `original`."""
        if self.form.accepts(original) and (original not in self.used or not self.form.scope):
            return self._take(original)
        count = self._repeats.get(original, 0)
        self._repeats[original] = count + 1
        self._repeat_log.append(original)
        for salt in range(_TRIES):
            made = self._derive(original, count, salt)
            if made not in self.used and self.form.accepts(made):
                return self._take(made)
        raise ConfigError(f"no id of {self.form.length} characters fits {self.form.pattern!r} and is free")

    def _take(self, call_id: str) -> str:
        self.used[call_id] = None
        return call_id

    def mark(self) -> tuple[int, int]:
        """Return a point that `take_back` can return to."""
        return len(self.used), len(self._repeat_log)

    def take_back(self, point: tuple[int, int]) -> None:
        """Forget what was given since `mark` returned `point`."""
        while len(self.used) > point[0]:
            self.used.popitem()
        for original in self._repeat_log[point[1] :]:
            self._repeats[original] -= 1
        del self._repeat_log[point[1] :]

    def _derive(self, original: str, count: int, salt: int) -> str:
        from hashlib import blake2b  # noqa: PLC0415 - only histories that need a new id pay for it

        digest = blake2b(f"{original}\0{count}\0{salt}".encode("utf-8", "surrogatepass")).digest()
        number = int.from_bytes(digest)
        letters: list[str] = []
        for _ in range(self.form.length - len(self.form.prefix)):
            number, place = divmod(number, len(_ALPHABET))
            letters.append(_ALPHABET[place])
        return self.form.prefix + "".join(letters)
