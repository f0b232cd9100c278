"""`ScriptedModel`: a model that gives prepared replies and records its requests."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Any, Generic, Literal, TypeAlias, TypedDict, Unpack, overload

from msgspec.structs import replace

from suture.errors import ConfigError
from suture.kernel import ModelRequest
from suture.messages import AgenticMessage, Delta, M, Message
from suture.profiles import default_profile
from suture.wires import get_chat_wire

__all__ = ["ScriptedModel"]

Reply: TypeAlias = M | str | BaseException
Script: TypeAlias = Callable[[Sequence[M]], Reply[M] | Awaitable[Reply[M]]]
Replies: TypeAlias = Sequence[Reply[M] | Script[M]] | Script[M]


class _Choices(TypedDict, total=False):
    """The keyword arguments of `ScriptedModel`."""

    profile: str | None
    chunk_size: int | None
    cut_after: int | None
    error: Exception | None


class ScriptedModel(Generic[M]):
    """A model for tests and demonstrations that needs no key and no network, and is deterministic.

    Args:
        replies: one for each request: a message of the wire, a text, an exception to raise, or a function of the
            request's messages that gives one of these (sync or async). A function in place of the list answers
            every request.
        wire: the wire of its messages.
        profile: the profile for its requests; by default that of the wire's own provider.
        chunk_size: stream texts and arguments in pieces of this many characters; by default replies come whole.
        cut_after: break the stream off after this many pieces; needs `chunk_size`.
        error: the error to break it off with; by default a `ConnectionError`.

    `requests` holds the requests it received.

    >>> from suture import ChatModelAgent
    >>> model = ScriptedModel(["hello"])
    >>> ChatModelAgent(name="greeter", model=model).run_sync("hi").output
    'hello'
    >>> model.requests[0].messages[0].content
    'hi'
    """

    @overload
    def __init__(
        self: "ScriptedModel[Message]",
        replies: Replies[Message],
        wire: Literal["message"] = "message",
        **choices: Unpack[_Choices],
    ) -> None: ...
    @overload
    def __init__(
        self: "ScriptedModel[AgenticMessage]",
        replies: Replies[AgenticMessage],
        wire: Literal["agentic"],
        **choices: Unpack[_Choices],
    ) -> None: ...
    @overload
    def __init__(
        self: "ScriptedModel[dict[str, Any]]",
        replies: Replies[dict[str, Any]],
        wire: Literal["openai-chat"],
        **choices: Unpack[_Choices],
    ) -> None: ...
    @overload
    def __init__(self: "ScriptedModel[Any]", replies: Replies[Any], wire: str, **choices: Unpack[_Choices]) -> None: ...
    def __init__(
        self,
        replies: Replies[Any],
        wire: str = "message",
        *,
        profile: str | None = None,
        chunk_size: int | None = None,
        cut_after: int | None = None,
        error: Exception | None = None,
    ) -> None:
        if isinstance(replies, str):
            raise ConfigError("replies is a list of replies, or a function; put a single text into a list")
        if cut_after is not None and chunk_size is None:
            raise ConfigError("cut_after counts pieces, and there are none without chunk_size")
        self._wire = get_chat_wire(wire)
        self.wire = wire
        self.profile = profile or default_profile(wire).name
        self.replies = replies
        self.chunk_size, self.cut_after = chunk_size, cut_after
        self.error = error or ConnectionError("the stream was cut")
        self.requests: list[ModelRequest[M]] = []

    async def stream(self, request: ModelRequest[M], /) -> AsyncIterator[Delta | M]:
        """Yield the next reply."""
        number = len(self.requests)
        self.requests.append(request)
        message: Any = self.replies
        if not callable(message):
            if number >= len(message):
                raise ConfigError(
                    f"the script has {len(message)} replies, and this is request {number + 1}; "
                    "all runs share them; a function in place of the list answers every request"
                )
            message = message[number]
        if callable(message) and not isinstance(message, type):
            message = message(request.messages)
            if hasattr(message, "__await__"):
                message = await message
        if isinstance(message, BaseException):
            raise message
        if isinstance(message, str):
            message = self._wire.speak("assistant", message)
        if self.chunk_size is not None:
            for count, delta in enumerate(_cut(self._wire.deltas(message), self.chunk_size)):
                if count == self.cut_after:
                    raise self.error
                yield delta
            if self.cut_after is not None:
                raise self.error
        yield message  # pyright: ignore[reportReturnType]


def _cut(deltas: Sequence[Delta], size: int) -> Iterator[Delta]:
    """Split deltas so that their texts, thoughts and arguments have at most `size` characters."""
    for delta in deltas:
        field = next((name for name in ("text", "reasoning", "arguments") if getattr(delta, name)), "")
        text: str = getattr(delta, field) if field else ""
        yield replace(delta, **{field: text[:size]}) if field else delta
        for start in range(size, len(text), size):
            yield replace(Delta(call_index=delta.call_index), **{field: text[start : start + size]})
