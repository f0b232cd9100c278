"""What the kernel asks of a model: a wire, a profile, and one stream for each request."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Generic, Protocol, cast

import msgspec

from suture.messages import Delta, FrozenMap, M, ToolInfo

__all__ = ["Model", "ModelRequest", "ModelWrapper"]


class ModelRequest(msgspec.Struct, Generic[M], frozen=True):
    """What one call of a model is given.

    >>> ModelRequest("Answer briefly.", ["…"]).tool_infos
    ()
    """

    instruction: str
    """Never among the messages: some providers keep it outside."""
    messages: Sequence[M]
    tool_infos: tuple[ToolInfo, ...] = ()
    options: Mapping[str, Any] = FrozenMap()
    deferred_tool_infos: tuple[ToolInfo, ...] = ()
    message_id: str = ""
    """The id that events give the reply."""


class Model(Protocol[M]):
    """A model: it speaks one wire, and one provider's profile holds for what it is sent.

    `stream` yields `Delta`s as they come, then one whole message; a model that cannot stream yields just that.
    Pieces may also be partial messages of the wire. Whoever stops reading closes the stream.

    >>> from suture.testing import ScriptedModel
    >>> ScriptedModel(["hello"]).wire
    'message'
    """

    @property
    def wire(self) -> str:
        """The name of the wire that its messages are of."""
        ...

    @property
    def profile(self) -> str:
        """The name of the profile that its provider holds to."""
        ...

    def stream(self, request: ModelRequest[M], /) -> AsyncIterator[Delta | M]:
        """Ask the model."""
        ...


class ModelWrapper(Generic[M]):
    """A model around another one; override `stream`. What `wrap_model` returns is often one of these.

    >>> from suture.testing import ScriptedModel
    >>> ModelWrapper(ScriptedModel(["hello"], wire="openai-chat")).wire
    'openai-chat'
    """

    def __init__(self, inner: Model[M]) -> None:
        self.inner = inner

    @property
    def wire(self) -> str:
        """The wire of the model inside."""
        return self.inner.wire

    @property
    def profile(self) -> str:
        """The profile of the model inside."""
        return self.inner.profile

    def stream(self, request: ModelRequest[M], /) -> AsyncIterator[Delta | M]:
        """Ask the model inside."""
        return self.inner.stream(request)


def name_of(model: object) -> str:
    """Return how a model is called in events: its own `name` or that of its class."""
    return cast("str", getattr(model, "name", "")) or type(model).__name__
