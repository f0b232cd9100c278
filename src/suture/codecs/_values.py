"""What goes in and out of a codec: a request in native values, a payload, and what could not cross."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from suture.messages import AgenticMessage, FrozenMap, ToolInfo

__all__ = ["CODECS", "OPTIONS", "Encoded", "Loss", "Losses", "Lost", "Request"]

CODECS = ("openai-chat", "openai-responses", "anthropic", "gemini", "bedrock")
"""The wires that have a codec."""

OPTIONS = (
    "max_tokens",
    "temperature",
    "top_p",
    "top_k",
    "seed",
    "stop",
    "tool_choice",
    "parallel_tool_calls",
    "output_schema",
)
"""The options that have one name for all providers."""


class Lost(StrEnum):
    """What can be lost on the way from one format into another: a closed list.

    >>> Lost.REASONING.value
    'reasoning'
    """

    REASONING = "reasoning"
    """Thought that this provider did not sign; it would refuse it."""
    BLOCK = "block"
    """Content that the format has no form for: a tool that another provider ran, a type that nobody knows."""
    MEDIA = "media"
    """An image, a sound, a film or a file that the format cannot hold where it stands; it is told in words."""
    DETAIL = "detail"
    """How closely to look at an image, or the name or type of a file."""
    FIELD = "field"
    """A field of another provider's own, such as a cache mark or an annotation."""
    EXTRA = "extra"
    """Somebody's own data in `extra`."""
    META = "meta"
    """Why a reply ended and what it cost; requests do not say that."""
    SYSTEM = "system"
    """That a message in the middle is the system's; it is told as the user's."""
    ERROR = "error"
    """That a result reports an error."""
    ARGUMENTS = "arguments"
    """Arguments that are no JSON object, where the format holds objects only; `{}` takes their place."""
    TOOL = "tool"
    """Something said about a tool that the format has no field for."""
    OPTION = "option"
    """A setting that the provider does not have."""


class Loss(msgspec.Struct, frozen=True):
    """One thing that did not cross: its name, what it was, and where it stood.

    >>> str(Loss(Lost.DETAIL, "image detail high", 3, "content_blocks[0]"))
    'message 3, content_blocks[0]: detail: image detail high'
    """

    name: Lost
    what: str
    index: int | None = None
    """The message it stood in; `None` for what belongs to the request."""
    path: str = ""

    def __str__(self) -> str:
        where = ", ".join(part for part in ("" if self.index is None else f"message {self.index}", self.path) if part)
        told = f"{self.name.value}: {self.what}"
        return f"{where}: {told}" if where else told


class Losses:
    """What was lost so far. A codec says which message it is at, and adds what it cannot say.

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
        """Return what was reported."""
        return tuple(self._found)


class Encoded(NamedTuple):
    """What a codec made: the payload, plain dicts and lists, and what could not be said in it.

    >>> Encoded([], ()).losses
    ()
    """

    payload: Any
    losses: tuple[Loss, ...] = ()


class Request(msgspec.Struct, frozen=True):
    """A request to a model in native values.

    `options` are those of the table in `suture.codecs`; any other name is one provider's own and stands in the
    payload as it is.

    >>> from suture.messages import AgenticMessage
    >>> Request([AgenticMessage.user("hi")], "Answer briefly.").tools
    ()
    """

    messages: Sequence[AgenticMessage]
    instruction: str = ""
    tools: Sequence[ToolInfo] = ()
    options: Mapping[str, Any] = FrozenMap()
