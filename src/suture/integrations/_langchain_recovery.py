"""Results that a tool gave before the run broke off, found among what LangGraph wrote down and then threw away.

When one of several calls fails, or the run is cancelled, the results of the others are already with the checkpointer,
as pending writes of the last checkpoint. The next input makes a new checkpoint beside them, and they are lost: the
conversation says of a payment that was made that it was not. Here they are found again.

A result is taken only where it is certain whose it is: the turn that the tools ran for must be the very message whose
call has no result, and the call must be what it was then. A program may have corrected it since.
"""

from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from langchain_core.messages import AIMessage, RemoveMessage, ToolMessage
from langgraph.config import get_config

from suture.wires import MARK

__all__ = ["Lookup", "Lost", "LostTurn", "begin", "combined", "search"]

_FARTHEST = 32
"""How many checkpoints are looked at."""

_CHECKPOINTER = "__pregel_checkpointer"
_MESSAGES = "messages"
_OF_THE_GRAPH = ("__", "branch:", _MESSAGES, "jump_to")
"""How channels begin that say nothing of what a tool did to the state."""

Lookup = tuple[Any, dict[str, Any]]
"""What is asked for: a checkpointer, and the config of a checkpoint."""


class Lost(NamedTuple):
    """What a tool gave for one call, and what else it wrote into the state: channel and value."""

    result: ToolMessage
    writes: tuple[tuple[str, Any], ...] = ()


class LostTurn(NamedTuple):
    """A turn as it was when the tools ran for it, and what they gave, by the id of the call."""

    message: AIMessage
    results: Mapping[str, Lost]


def begin() -> Lookup | None:
    """Return where to begin: the checkpointer of the run at hand, and its checkpoint; nothing outside of a run.

    >>> begin() is None
    True
    """
    try:
        settings = _mapping(get_config().get("configurable"))
    except RuntimeError:  # no run
        return None
    checkpointer = settings.get(_CHECKPOINTER)
    if not hasattr(checkpointer, "get_tuple") or "thread_id" not in settings:
        return None
    graph = str(settings.get("checkpoint_ns") or "").rpartition("|")[0]  # without the node in it
    place = {"thread_id": settings["thread_id"], "checkpoint_ns": graph}
    newest = _mapping(settings.get("checkpoint_map")).get(graph)
    return checkpointer, {"configurable": {**place, "checkpoint_id": newest} if newest else place}


def search(turns: Collection[str], start: Lookup) -> Generator[Lookup, Any, dict[str, LostTurn]]:
    """Look for the lost results of `turns` (ids of messages), from the newest checkpoint back.

    It yields what to look up, and is sent what was found there, or nothing. It returns what was found, by the id of
    the turn.
    """
    checkpointer, config = start
    saved = yield start
    if saved is None:  # it is not stored yet: begin with the newest that is
        place = {name: value for name, value in config["configurable"].items() if name != "checkpoint_id"}
        saved = yield checkpointer, {"configurable": place}
    trail = _Trail(turns)
    for _ in range(_FARTHEST):
        if saved is None or not trail.go_back(saved) or not saved.parent_config:
            break
        saved = yield checkpointer, saved.parent_config
    return trail.found


class _Trail:
    """What is known on the way back through the checkpoints of a thread."""

    def __init__(self, turns: Collection[str]) -> None:
        self.found: dict[str, LostTurn] = {}
        self._wanted = set(turns)
        self._thrown_away: bool = True
        """Whether the next checkpoint back was left behind: what was written there never came into the state."""
        self._loose: dict[str, Lost] = {}
        """What was thrown away behind a turn that is not known yet."""

    def go_back(self, saved: Any) -> bool:
        """Take in one checkpoint; tell whether it is worth going further back."""
        writes: Sequence[Any] = saved.pending_writes or ()
        applied: list[Any] = []
        if self._thrown_away:
            self._loose = {**dict(_results(writes)), **self._loose}
        else:
            applied = [message for _, channel, value in writes if channel == _MESSAGES for message in _listed(value)]
        turn = _last_turn(applied) or _last_turn(_state(saved))
        if turn is not None and self._loose:
            if turn.id in self._wanted:
                self.found[turn.id] = LostTurn(turn, self._loose)
                self._wanted.discard(turn.id)
            self._loose = {}
        if not any(isinstance(message, RemoveMessage) for message in applied):
            self._wanted.difference_update(message.id for message in applied if isinstance(message, AIMessage))
        self._thrown_away = _mapping(saved.metadata).get("source") != "loop"
        return bool(self._wanted)


def combined(writes: Sequence[tuple[str, Any]]) -> dict[str, Any] | None:
    """Return what tools wrote into the state as one update; `None` where only the graph could put it together.

    >>> combined([("files", {"a": 1}), ("files", {"b": 2})]), combined([("files", {"a": 1}), ("files", {"a": 2})])
    ({'files': {'a': 1, 'b': 2}}, None)
    """
    update: dict[str, Any] = {}
    for channel, value in writes:
        held = update.get(channel, value)
        if channel not in update:
            update[channel] = value
        elif isinstance(held, list) and isinstance(value, list):
            update[channel] = [*cast("list[Any]", held), *cast("list[Any]", value)]
        elif isinstance(held, dict) and isinstance(value, dict) and not {*held} & {*value}:
            update[channel] = {**held, **value}
        else:
            return None
    return update


def _results(writes: Sequence[Any]) -> Iterator[tuple[str, Lost]]:
    """Return the results among pending writes, by the id of the call."""
    tasks: dict[Any, list[tuple[str, Any]]] = {}
    for task, channel, value in writes:
        tasks.setdefault(task, []).append((channel, value))
    for written in tasks.values():
        messages = [message for channel, value in written if channel == _MESSAGES for message in _listed(value)]
        others = tuple([(channel, value) for channel, value in written if not channel.startswith(_OF_THE_GRAPH)])
        for message in messages:
            if isinstance(message, ToolMessage) and MARK not in message.response_metadata:
                yield message.tool_call_id, Lost(message, others)


def _state(saved: Any) -> list[Any]:
    """Return the messages of a checkpoint; nothing where it keeps only what is new."""
    held = _mapping(saved.checkpoint.get("channel_values")).get(_MESSAGES)
    return _listed(getattr(held, "value", held))


def _mapping(value: Any) -> Mapping[str, Any]:
    return {} if value is None else value


def _listed(value: Any) -> list[Any]:
    if isinstance(value, list):
        return cast("list[Any]", value)
    return [] if value is None else [value]


def _last_turn(messages: Sequence[Any]) -> AIMessage | None:
    """Return the last message with calls."""
    for message in reversed(messages):
        if isinstance(message, AIMessage) and (message.tool_calls or message.invalid_tool_calls):
            return message
    return None
