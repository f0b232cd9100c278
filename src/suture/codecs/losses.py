"""What a format cannot express: a closed list of names, and the list of what was lost."""

from enum import StrEnum

import msgspec


class Lost(StrEnum):
    """What can be lost between two formats: a closed list.

    >>> Lost.REASONING.value
    'reasoning'
    """

    REASONING = "reasoning"
    """Thinking that this provider did not sign and would refuse."""
    BLOCK = "block"
    """Content that the format has no form for: a tool that another provider ran, or an unknown type."""
    MEDIA = "media"
    """An image, audio, video or file that the format does not allow there; a text describes it."""
    DETAIL = "detail"
    """How closely to look at an image, or the name or type of a file."""
    FIELD = "field"
    """A field that only another provider has, such as a cache mark or an annotation."""
    EXTRA = "extra"
    """Your own data in `extra`."""
    META = "meta"
    """Why a reply ended and what it cost; requests have no field for that."""
    SYSTEM = "system"
    """That a message in the middle is a system message; it is sent as a user message."""
    ERROR = "error"
    """That a result reports an error."""
    ARGUMENTS = "arguments"
    """Arguments that are not a JSON object, if the format allows only objects; replaced by `{}`."""
    TOOL = "tool"
    """Something about a tool that the format has no field for."""
    OPTION = "option"
    """A setting that the provider does not have."""


class Loss(msgspec.Struct, frozen=True):
    """One thing that was lost: its name, what it was, and where it was.

    >>> str(Loss(Lost.DETAIL, "image detail high", 3, "content_blocks[0]"))
    'message 3, content_blocks[0]: detail: image detail high'
    """

    name: Lost
    what: str
    index: int | None = None
    """The message it was in; `None` for the request itself."""
    path: str = ""

    def __str__(self) -> str:
        where = ", ".join(part for part in ("" if self.index is None else f"message {self.index}", self.path) if part)
        text = f"{self.name.value}: {self.what}"
        return f"{where}: {text}" if where else text


class Losses:
    """The losses so far; a codec sets the index of the message that it writes, and adds to them.

    >>> losses = Losses()
    >>> losses.index = 2
    >>> losses.add(Lost.ERROR, "the error flag of call_1")
    >>> losses.found()
    (Loss(name=<Lost.ERROR: 'error'>, what='the error flag of call_1', index=2, path=''),)
    """

    __slots__ = ("_found", "index")

    def __init__(self) -> None:
        self._found: list[Loss] = []
        self.index: int | None = None

    def add(self, name: Lost, what: str, path: str = "") -> None:
        """Report that something is lost here."""
        self._found.append(Loss(name, what, self.index, path))

    def found(self) -> tuple[Loss, ...]:
        """Return all losses that were reported."""
        return tuple(self._found)
