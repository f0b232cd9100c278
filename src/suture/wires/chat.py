"""What an agent needs of a wire beside what the engines need: to make messages, and to say what they hold.

An agent speaks to a model through this interface only, so it is written once for all message types.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

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


class Reply(NamedTuple):
    """What the pieces of a reply make: runs of thought, of text and of calls in order, and what it cost."""

    runs: tuple[tuple[str, Any], ...]
    usage: TokenUsage | None = None

    def words(self, kind: str) -> str:
        """Return all of the text, or all of the thought."""
        return "".join([words for found, words in self.runs if found == kind])

    def calls(self) -> list[Call]:
        """Return the calls."""
        return [call for found, call in self.runs if found == CALLED]


class _Open(NamedTuple):
    """A call that is still being said."""

    place: int
    ids: list[str]
    names: list[str]
    arguments: list[str]

    def close(self) -> Call:
        """Return the call; its id and name are the first that were said."""
        return Call(next(filter(None, self.ids), ""), next(filter(None, self.names), ""), "".join(self.arguments))


def gather(deltas: Sequence[Delta]) -> Reply:
    """Return what `deltas` make."""
    runs: list[tuple[str, Any]] = []
    opened: dict[int, _Open] = {}
    usage = None
    for delta in deltas:
        if delta.reasoning:
            _say(runs, THOUGHT, delta.reasoning)
        if delta.text:
            _say(runs, SAID, delta.text)
        place = delta.call_index
        if place is not None:
            call = opened.get(place)
            if call is None:
                call = opened[place] = _Open(place, [], [], [])
                runs.append((CALLED, None))
            call.ids.append(delta.call_id)
            call.names.append(delta.name)
            call.arguments.append(delta.arguments)
        usage = delta.usage or usage
    # Calls stand where calls were begun, and among themselves in the order of the index.
    calls = iter(sorted(opened.values()))
    whole = [(kind, next(calls).close() if kind == CALLED else "".join(words)) for kind, words in runs]
    return Reply(tuple(whole), usage)


def _say(runs: list[tuple[str, Any]], kind: str, words: str) -> None:
    """Add `words` to the last run if it is of this kind, else begin another."""
    if not runs or runs[-1][0] != kind:
        runs.append((kind, []))
    runs[-1][1].append(words)
