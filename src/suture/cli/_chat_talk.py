"""The conversation of a chat: its messages, what they cost, and the file that keeps them, whole at any time."""

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from suture.cli._read import open_source, read_conversations
from suture.cli._refusal import Refusal
from suture.cli._write import open_output
from suture.errors import InputError
from suture.kernel import ChatModelAgentMiddleware, ChatModelAgentState, ModelContext
from suture.messages import AgenticMessage, Message, TokenUsage, to_json
from suture.wires import ChatWire, recognise

__all__ = ["Keeping", "Talk"]

_KINDS = {"message": Message, "agentic": AgenticMessage}
_PRIVATE = 0o600


class Talk:
    """What was said so far. With a `path` it goes on from there, and `keep` puts every change into that file.

    >>> from suture.wires import get_chat_wire
    >>> talk = Talk(get_chat_wire("message"))
    >>> talk.keep([Message.user("hi"), Message.assistant("hello")])
    >>> [message.content for message in talk.undo()], list(talk.messages)
    (['hi', 'hello'], [])
    """

    def __init__(self, wire: ChatWire, path: str | None = None) -> None:
        self.wire, self.path = wire, path
        self.usage = TokenUsage()
        self.messages: Sequence[Any] = ()
        self._seen: tuple[int, ...] | None = None
        if path == "-":
            raise Refusal("a history is kept in a file, not in a stream", "--history -")
        if path is not None:
            self._seen = _look(path)
            self.messages = _load(path, wire.name) if self._seen is not None else ()
            open_output(path).discard()  # so that a place that cannot be written to is told now

    def keep(self, messages: Sequence[Any]) -> None:
        """Take these for the conversation and write them; raise `Refusal` where they cannot be written."""
        self.messages = messages
        self.write(messages)

    def write(self, messages: Sequence[Any]) -> None:
        """Write these in place of what the file holds, in one step."""
        if self.path is None:
            return
        if _look(self.path) != self._seen:
            raise Refusal("was changed by another program; this chat is no longer kept in it", self.path)
        try:
            data = to_json(messages)
        except InputError as error:
            raise Refusal(f"cannot be written: {error}", self.path) from None
        if self._seen is None:
            _make_private(self.path)
        output = open_output(self.path)
        try:
            output.write(data + b"\n")
            output.finish()
            output.publish()
        finally:
            output.discard()
            self._seen = _look(self.path)

    def spend(self, usage: TokenUsage) -> None:
        """Count what a turn cost."""
        sums = {name: getattr(self.usage, name) + getattr(usage, name) for name in TokenUsage.__struct_fields__}
        self.usage = TokenUsage(**sums)

    def undo(self) -> Sequence[Any]:
        """Take the last message of the user back, with all that followed; return what was taken."""
        for place in range(len(self.messages) - 1, -1, -1):
            view = self.wire.view(self.messages[place])
            if view.role == "user" and not view.results:
                taken = self.messages[place:]
                self.keep(list(self.messages[:place]))
                return taken
        return ()


class Keeping(ChatModelAgentMiddleware[Any]):
    """Writes the conversation while a turn goes on, so that a process that dies loses no more than one step.

    >>> from suture.wires import get_chat_wire
    >>> isinstance(Keeping(Talk(get_chat_wire("message"))), ChatModelAgentMiddleware)
    True
    """

    def __init__(self, talk: Talk) -> None:
        self._talk = talk

    def before_model_rewrite_state(self, state: ChatModelAgentState[Any], model_context: ModelContext, /) -> None:
        """Keep what the user said, and what tools gave."""
        self._write(state.messages)

    def after_model_rewrite_state(self, state: ChatModelAgentState[Any], model_context: ModelContext, /) -> None:
        """Keep what the model said, and which tools it is about to use."""
        self._write(state.messages)

    def _write(self, messages: Sequence[Any]) -> None:
        with suppress(Refusal):  # told at the end of the turn, where it fails again
            self._talk.write(messages)


def _look(path: str) -> tuple[int, ...] | None:
    """Return what tells a file from any other state of it; `None` if it is not there."""
    try:
        status = os.stat(path)  # noqa: PTH116 - a path from the command line is a string
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise Refusal(f"cannot be read: {(reason or str(error)).lower()}", path) from None
    if not stat.S_ISREG(status.st_mode):
        raise Refusal("is no file that a history can be kept in", path)
    return status.st_ino, status.st_size, status.st_mtime_ns


def _load(path: str, wire: str) -> Sequence[Any]:
    """Return the messages of a file; refuse what is no conversation of this wire."""
    with open_source(path) as source:
        if source.size is None:
            return ()  # made, and never written
        found = list(read_conversations(source))
    if len(found) > 1:
        raise Refusal(f"holds {len(found)} conversations, and a chat goes on with one", path)
    with found[0].located():
        messages, _ = found[0].take(None)
    if all(isinstance(message, _KINDS[wire]) for message in messages):
        return messages
    raise Refusal(f"holds {_called(messages)}; make them {wire} messages first: suture convert --to {wire}", path)


def _called(messages: Sequence[Any]) -> str:
    """Return what the messages of another wire are called."""
    own = [kind for kind, type_of in _KINDS.items() if any(isinstance(message, type_of) for message in messages)]
    if own:
        return f"{' and '.join(own)} messages"
    with suppress(InputError):
        names = recognise(messages)
        if len(names) == 1:
            return f"{names[0]} messages"
    return "messages of another provider"


def _make_private(path: str) -> None:
    """Make a file that only the user can read; what replaces it has the same rights."""
    with suppress(OSError):  # a place that cannot be written to is told when it is written to
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _PRIVATE))
