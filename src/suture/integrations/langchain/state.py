"""Messages on their way into an agent's state: what a tool gave back, and what replaces what is there."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import is_
from typing import Any, cast

from langchain.agents.middleware.types import ExtendedModelResponse, ModelResponse
from langchain_core.messages import AIMessage, BaseMessage, RemoveMessage, ToolMessage
from langgraph.types import Command

from suture.errors import ConfigError

_KEY = "messages"
Cells = Mapping[int, Sequence[Any]]
"""By the place of a message in a list: what takes its place."""


def messages_of(state: Any) -> Sequence[Any]:
    """Return the messages in an agent's state: a dict, an object or the list itself."""
    if isinstance(state, list):
        return cast("list[Any]", state)
    found = state.get(_KEY) if isinstance(state, Mapping) else getattr(state, _KEY, None)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return cast("Sequence[Any]", found) if found else ()


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
        update = _through(command.update, change)
        return command if update is command.update else replace(command, update=update)
    if isinstance(given, Mapping):
        held = cast("Mapping[str, Any]", given)
        messages = _through(held.get(_KEY), change)
        return held if messages is held.get(_KEY) else {**held, _KEY: messages}
    return _each(cast("Sequence[Any]", given), change) if isinstance(given, list | tuple) else given


def _each(items: Sequence[Any], change: Callable[[ToolMessage], ToolMessage]) -> Sequence[Any]:
    """Return a list, or the update of the one channel, with each tool message in it changed."""
    if isinstance(items, tuple) and items[:1] != (_KEY,):
        return items
    made = [_through(item, change) for item in items]
    if all(map(is_, made, items)):
        return items
    return made if isinstance(items, list) else tuple(made)


def state_update(before: Sequence[Any], cells: Cells, state: Sequence[Any]) -> list[BaseMessage]:
    """Return what makes of a state that held `before` one with `cells` in their places: messages go by their ids.

    What the state does not hold just so is left alone: another middleware changed it for this request, or it has no
    id. A round whose messages cannot all be replaced stays as a whole.

    >>> old, new = ToolMessage("a long text", tool_call_id="a", id="1"), ToolMessage("…", tool_call_id="a", id="1")
    >>> [message.content for message in state_update([old], {0: [new]}, [old])], state_update([old], {0: [new]}, [])
    (['…'], [])
    """
    held = {getattr(message, "id", None): message for message in state}
    rounds: list[list[int]] = [[]]
    for place, message in enumerate(before):
        if isinstance(message, AIMessage):
            rounds.append([])
        if place in cells:
            rounds[-1].append(place)
    update: list[BaseMessage] = []
    for places in rounds:
        old = [before[place] for place in places]
        if all(getattr(each, "id", None) and _is_same(held.get(each.id), each) for each in old):
            update += replacements(old, [message for place in places for message in cells[place]])
    return update


def _is_same(one: Any, other: Any) -> bool:
    """Tell whether two messages are the same; where what they carry cannot be compared, as arrays, they are not."""
    try:
        return one is other or bool(one == other)
    except Exception:  # noqa: BLE001 - an artifact may raise anything
        return False


def with_update(response: Any, update: list[BaseMessage]) -> Any:
    """Return what the model gave, together with what is to change in the state."""
    if not update:
        return response
    whole: Any = ModelResponse(result=[response]) if isinstance(response, AIMessage) else response
    return ExtendedModelResponse(model_response=whole, command=Command(update={_KEY: update}))


def replacements(old: Sequence[Any], new: Sequence[Any]) -> list[BaseMessage]:
    """Return messages that take the places of `old`, and what removes the places that are left."""
    if len(new) > len(old):
        raise ConfigError(
            f"clear_message_rewriter gave {len(new)} messages in the place of {len(old)}; in LangChain a round can be "
            "replaced by as many messages as it has, or by fewer"
        )
    made = [message.model_copy(update={"id": place.id}) for message, place in zip(new, old, strict=False)]
    return [*made, *[RemoveMessage(id=place.id) for place in old[len(new) :]]]
