"""What an agent needs of a wire beside what the engines need: to make messages, and to say what they hold.

An agent speaks to a model through this interface only, so it is written once for all message types.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from suture.errors import InputError
from suture.messages import Delta, TokenUsage, ToolResult
from suture.wires.values import Call
from suture.wires.wire import Wire

THOUGHT, SAID, CALLED = "thought", "said", "called"


class ChatWire(Wire):
    """A wire that an agent can run on: messages are made, joined from pieces, read, stored and read back.

    >>> from suture.messages import Delta
    >>> from suture.wires import get_chat_wire
    >>> wire = get_chat_wire("openai-chat")
    >>> wire.user("hi")
    {'role': 'user', 'content': 'hi'}
    >>> wire.join([Delta("Let me "), Delta("see.")])
    {'role': 'assistant', 'content': 'Let me see.'}
    """

    @abstractmethod
    def user(self, content: str | Sequence[Any]) -> Any:
        """Return a user message of a text, or of parts; raise `InputError` for parts that this wire cannot say."""

    @abstractmethod
    def result(self, call: Call, result: ToolResult) -> Any:
        """Return the message that answers `call` with `result`; what has no form on this wire is told as text."""

    @abstractmethod
    def join(self, deltas: Sequence[Delta]) -> Any | None:
        """Return the assistant message that these pieces make; `None` if they say nothing.

        Calls come in the order of their `call_index`, their arguments as they are, complete or not.
        """

    @abstractmethod
    def deltas(self, message: Any) -> list[Delta]:
        """Return the pieces of an assistant message: its reasoning, its text, its calls, and what it cost."""

    def is_cut(self, message: Any) -> bool:
        """Tell whether `message` is a reply that ends where it reached the limit of its length; not all wires know."""
        return False

    @abstractmethod
    def text(self, message: Any) -> str:
        """Return what `message` says as text, the empty string where it says nothing in words."""

    @abstractmethod
    def usage(self, message: Any) -> TokenUsage | None:
        """Return what `message` cost, where it carries that."""

    @abstractmethod
    def dump(self, message: Any) -> Any:
        """Return `message` as plain dicts and lists; raise `InputError` for what would not come back as it was."""

    @abstractmethod
    def load(self, value: Any) -> Any:
        """Return the message that `dump` made `value` of."""

    @abstractmethod
    def calls(self, message: Any) -> tuple[Call, ...]:
        """Return the calls of `message`, in order; the fast way to `view(message).calls`."""

    def wants_assistant(self, role: str) -> None:
        """Raise `InputError` where `role` is not the assistant's."""
        if role != "assistant":
            raise InputError(f"only an assistant's message has pieces, this one is the {role}'s ({self.name})")


class Reply(Struct, frozen=True):
    """What the pieces of a reply make: runs of thought, of text and of calls in order, and what it cost."""

    runs: tuple[tuple[str, Any], ...]
    usage: TokenUsage | None = None

    def words(self, kind: str) -> str:
        """Return all of the text, or all of the thought."""
        return "".join([words for found, words in self.runs if found == kind])

    def calls(self) -> list[Call]:
        """Return the calls."""
        return [call for found, call in self.runs if found == CALLED]


def gather(deltas: Sequence[Delta]) -> Reply:
    """Return what `deltas` make."""
    runs: list[tuple[str, list[str]]] = []
    calls: dict[int, list[Delta]] = {}
    usage = None
    for delta in deltas:
        for kind, words in ((THOUGHT, delta.reasoning), (SAID, delta.text)):
            if words:
                if not runs or runs[-1][0] != kind:
                    runs.append((kind, []))
                runs[-1][1].append(words)
        if delta.call_index is not None:
            if delta.call_index not in calls:
                runs.append((CALLED, []))
            calls.setdefault(delta.call_index, []).append(delta)
        usage = delta.usage or usage
    # Calls stand where calls were begun, and among themselves in the order of the index; id and name are the first.
    closed = iter(
        [
            Call(
                next((piece.call_id for piece in pieces if piece.call_id), ""),
                next((piece.name for piece in pieces if piece.name), ""),
                "".join([piece.arguments for piece in pieces]),
            )
            for _, pieces in sorted(calls.items())
        ]
    )
    return Reply(tuple([(kind, next(closed) if kind == CALLED else "".join(words)) for kind, words in runs]), usage)
