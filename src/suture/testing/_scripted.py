"""`ScriptedModel`: a model that says what it was told to say, and remembers what it was sent."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Generic, Literal, TypeAlias, TypedDict, Unpack, overload

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
    """A model for tests and demonstrations: no key, no network, no chance.

    Args:
        replies: one for each request: a message of the wire, a text, an exception to raise, or a function of the
            request's messages that gives one of these (sync or async). A function in place of the list answers
            every request.
        wire: which messages it speaks.
        profile: whose rules hold for what it is sent; the wire's own provider if not given.
        chunk_size: stream texts and arguments in pieces of this many characters; not given, replies come whole.
        cut_after: break the stream off, with `error`, after this many pieces.

    What it was sent is in `requests`.

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
        self._wire = get_chat_wire(wire)
        self.wire = wire
        self.profile = profile or default_profile(wire).name
        self.replies = replies
        self.chunk_size, self.cut_after = chunk_size, cut_after
        self.error = error or ConnectionError("the stream was cut")
        self.requests: list[ModelRequest[M]] = []

    async def stream(self, request: ModelRequest[M], /) -> AsyncIterator[Delta | M]:
        """Give the next reply."""
        number = len(self.requests)
        self.requests.append(request)
        message: Any = self._next(number)
        if callable(message) and not isinstance(message, type):
            message = message(request.messages)
            if hasattr(message, "__await__"):
                message = await message
        if isinstance(message, BaseException):
            raise message
        if isinstance(message, str):
            message = self._wire.speak("assistant", message)
        if self.chunk_size is not None:
            count = 0
            for delta in _cut(self._wire.deltas(message), self.chunk_size):
                if count == self.cut_after:
                    raise self.error
                count += 1
                yield delta
            if self.cut_after is not None and count <= self.cut_after:
                raise self.error
        yield message  # pyright: ignore[reportReturnType]

    def _next(self, number: int) -> Any:
        if callable(self.replies):
            return self.replies
        if number < len(self.replies):
            return self.replies[number]
        raise ConfigError(
            f"the script has {len(self.replies)} replies, and this is request {number + 1}; "
            "all runs share them; a function in place of the list answers every request"
        )


def _cut(deltas: Sequence[Delta], size: int) -> list[Delta]:
    pieces: list[Delta] = []
    for delta in deltas:
        if delta.text:
            pieces += [Delta(text=piece) for piece in _split(delta.text, size)]
        elif delta.reasoning:
            pieces += [Delta(reasoning=piece) for piece in _split(delta.reasoning, size)]
        elif delta.call_index is not None:
            first, *rest = _split(delta.arguments, size) or [""]
            pieces.append(Delta(call_index=delta.call_index, call_id=delta.call_id, name=delta.name, arguments=first))
            pieces += [Delta(call_index=delta.call_index, arguments=piece) for piece in rest]
        else:
            pieces.append(delta)
    return pieces


def _split(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]
