"""`Refusal`: why a command cannot do its work, as the one line that the user sees."""

from suture.errors import SutureError

__all__ = ["CutOff", "Refusal", "kind_of", "told"]


_LONGEST = 160


class Refusal(Exception):
    """What is wrong, and where, from the outside in. It never leaves the command line.

    >>> str(Refusal("expected a string", "content").within("log.json", "message 3"))
    'log.json, message 3, content: expected a string'
    """

    def __init__(self, reason: str, *places: str) -> None:
        super().__init__(reason, *places)
        self.reason = reason
        self.places = tuple(place for place in places if place)

    def within(self, *places: str) -> "Refusal":
        """Return the same refusal, said from further outside."""
        return type(self)(self.reason, *places, *self.places)

    def __str__(self) -> str:
        return ": ".join(part for part in (", ".join(map(_elided, self.places)), self.reason) if part)


def _elided(place: str) -> str:
    """Return a place without its middle, if it is too long to be read: a path may have thousands of steps."""
    return place if len(place) <= _LONGEST else f"{place[: _LONGEST // 2]}…{place[-_LONGEST // 4 :]}"


class CutOff(Refusal):
    """JSON that ends before it is whole, and so may go on in the next line.

    >>> issubclass(CutOff, Refusal)
    True
    """


def kind_of(value: object) -> str:
    """Return what a JSON value is, in a word.

    >>> kind_of(None), kind_of({}), kind_of("x")
    ('null', 'object', 'str')
    """
    if value is None:
        return "null"
    return "object" if isinstance(value, dict) else type(value).__name__


def told(error: BaseException) -> str:
    """Return what an error says; where it is none of Suture's, with the name of its type.

    >>> told(ValueError("the gauge is broken")), told(TimeoutError()), told(SutureError("no such tool"))
    ('ValueError: the gauge is broken', 'TimeoutError', 'no such tool')
    """
    text = str(error)
    if isinstance(error, SutureError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
