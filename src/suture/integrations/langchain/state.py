"""Messages on their way into an agent's state: what a tool gave back, and what replaces what is there."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile
from operator import is_not
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, RemoveMessage, ToolMessage
from langgraph.types import Command

from suture.errors import ConfigError

_KEY = "messages"

Change = Callable[[Any], Any]


def messages_of(state: Any) -> Sequence[Any]:
    """Return the messages in an agent's state: a dict, an object or the list itself.

    >>> messages_of({"messages": ["hi"]}), messages_of(["hi"]), messages_of({})
    (['hi'], ['hi'], ())
    """
    if isinstance(state, list):
        return cast("list[Any]", state)
    found = state.get(_KEY) if isinstance(state, Mapping) else getattr(state, _KEY, None)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return cast("Sequence[Any]", found) if found else ()


def is_same(one: Any, other: Any) -> bool:
    """Tell whether two messages, or two lists of them, are the same.

    What they carry for their owners may not like to be compared, as arrays do not: then they are not the same.

    >>> is_same(ToolMessage("42", tool_call_id="a"), ToolMessage("42", tool_call_id="a"))
    True
    """
    try:
        return one is other or bool(one == other)
    except Exception:  # noqa: BLE001 - an artifact may raise anything
        return False


def result_messages(given: Any) -> list[ToolMessage]:
    """Return the tool messages in what a tool call gave: a message, a command that carries some, or a list of these.

    >>> given = Command(update={"messages": [ToolMessage("42", tool_call_id="a")], "n": 1})
    >>> [message.content for message in result_messages(given)]
    ['42']
    """
    found: list[ToolMessage] = []

    def take(message: ToolMessage) -> ToolMessage:
        found.append(message)
        return message

    _through(given, take)
    return found


def with_messages(given: Any, made: Mapping[int, ToolMessage]) -> Any:
    """Return what a tool call gave with some of its messages replaced: `made` has them by the old ones' identity."""
    return _through(given, lambda message: made.get(id(message), message))


def _through(given: Any, change: Callable[[ToolMessage], ToolMessage]) -> Any:
    """Return `given` with each tool message in it changed; the very object where none was."""
    if isinstance(given, ToolMessage):
        return change(given)
    if isinstance(given, Command):
        command = cast("Command[Any]", given)
        update = _through_update(command.update, change)
        return command if update is command.update else replace(command, update=update)
    if isinstance(given, list):
        return _each(cast("list[Any]", given), lambda item: _through(item, change))
    return given


def _through_update(update: Any, change: Callable[[ToolMessage], ToolMessage]) -> Any:
    if isinstance(update, Mapping):
        held = cast("Mapping[str, Any]", update)
        messages = _through(held.get(_KEY), change)
        return held if messages is held.get(_KEY) else {**held, _KEY: messages}
    if not isinstance(update, list):
        return update

    def entry(item: Any) -> Any:
        if isinstance(item, tuple) and len(cast("tuple[Any, ...]", item)) == 2 and item[0] == _KEY:
            messages = _through(item[1], change)
            return cast("Any", item) if messages is item[1] else (_KEY, messages)
        return _through(item, change)

    return _each(cast("list[Any]", update), entry)


def _each(items: list[Any], change: Change) -> list[Any]:
    made = [change(item) for item in items]
    return items if all(one is other for one, other in zip(made, items, strict=True)) else made


def state_update(before: Sequence[Any], after: Sequence[Any], state: Sequence[Any]) -> list[BaseMessage]:
    """Return what makes of a state that held `before` one that holds `after`: messages take others' places by id.

    What the state does not hold just so is left alone: another middleware changed it for this request, or it has no
    id. A round whose messages cannot all be replaced stays as a whole.

    >>> old, new = ToolMessage("a long text", tool_call_id="a", id="1"), ToolMessage("…", tool_call_id="a", id="1")
    >>> [message.content for message in state_update([old], [new], [old])], state_update([old], [new], [])
    (['…'], [])
    """
    held = {_id(message): message for message in state}
    held.pop(None, None)
    update: list[BaseMessage] = []
    for old, new in _gaps(before, after):
        if all(is_same(held.get(_id(message)), message) for message in old):
            update += _replacements(old, new)
    return update


def _id(message: Any) -> str | None:
    return getattr(message, "id", None) or None


def _gaps(before: Sequence[Any], after: Sequence[Any]) -> Iterator[tuple[list[Any], list[Any]]]:
    """Yield what differs: the messages that went and those that came in their place, round by round."""
    kept = {id(message) for message in after}
    rest = iter(after)
    old: list[Any] = []
    for message in before:
        if id(message) in kept:
            yield from _rounds(old, list(takewhile(partial(is_not, message), rest)))
            old = []
        else:
            old.append(message)
    yield from _rounds(old, list(rest))


def _rounds(old: list[Any], new: list[Any]) -> Iterator[tuple[list[Any], list[Any]]]:
    """Yield what differs, a turn and its results at a time where message stands for message."""
    if len(old) != len(new) or any(_id(one) != _id(other) for one, other in zip(old, new, strict=True)):
        yield old, new
        return
    start = 0
    for place in range(1, len(old) + 1):
        if place == len(old) or isinstance(old[place], AIMessage):
            yield old[start:place], new[start:place]
            start = place


def _replacements(old: Sequence[Any], new: Sequence[Any]) -> list[BaseMessage]:
    """Return messages that take the places of `old`, and what removes the places that are left."""
    if len(new) > len(old):
        raise ConfigError(
            f"clear_message_rewriter gave {len(new)} messages in the place of {len(old)}; in LangChain a round can be "
            "replaced by as many messages as it has, or by fewer"
        )
    made = [
        message if message.id == place.id else message.model_copy(update={"id": place.id})
        for message, place in zip(new, old, strict=False)
    ]
    return [*made, *[RemoveMessage(id=place.id) for place in old[len(new) :]]]
