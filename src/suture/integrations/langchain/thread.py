"""Repairing a thread of LangGraph for good: what its messages become, and what else in the state must follow.

When one of several calls fails, or the run is cancelled, the results of the others are already with the checkpointer,
as pending writes of the last checkpoint. The next input makes a new checkpoint beside them, and they are lost: the
conversation says of a payment that was made that it was not. Here they are found again, and with them whether a person
was asked (then the call was interrupted), or whether the tool failed or never ended (then nobody knows what it did).

A result is taken only where it is certain whose it is: the turn that the tools ran for must be the very message whose
call has no result, and the call must be what it was then. A program may have corrected it since.
"""

import logging
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from langchain_core.messages import AIMessage, RemoveMessage, ToolMessage
from langgraph.config import get_config
from langgraph.graph.message import REMOVE_ALL_MESSAGES  # pyright: ignore[reportMissingTypeStubs]
from msgspec.structs import replace

from suture.errors import ConfigError, InputError
from suture.integrations.guest import GuestOptions, repair_history
from suture.integrations.langchain.wire import WIRE
from suture.profiles import IdForm, get_profile, rules
from suture.repair import Cause, Finding, Repaired, is_whole, run_repair
from suture.wires import MARK, Call, ResultEdit

_LOG = logging.getLogger("suture.integrations.langchain")
_SUMMARY, _PLACES = "_summarization_event", ("cutoff_index", "created_at_index")
_PAIRING = get_profile("pairing")
_THREAD = replace(
    _PAIRING,
    name="thread",
    rules=(*_PAIRING.rules, *rules("thread", id_form="", not_empty="")),
    ids=IdForm(pattern="(?s).+"),
)
"""The structure alone, and an id for every call, whatever it is: in a thread, one without could never be answered."""

_FARTHEST = 32
"""How many checkpoints are looked at."""
_INTERRUPT, _MESSAGES = "__interrupt__", "messages"
_OF_THE_GRAPH = ("__", "branch:", _MESSAGES, "jump_to")
"""How channels begin that say nothing of what a tool did to the state."""


class Lost(NamedTuple):
    """What a tool gave for one call, and what else it wrote into the state: channel and value."""

    result: ToolMessage
    writes: tuple[tuple[str, Any], ...] = ()


class LostTurn(NamedTuple):
    """A turn at which a run broke off, as it was then."""

    message: AIMessage
    results: Mapping[str, Lost]
    """What tools gave, by the id of the call."""
    is_interrupt: bool
    """Whether the run waited for a person."""


class ThreadRepair:
    """Repairs the messages of a state, and what points into them."""

    def __init__(self, options: GuestOptions) -> None:
        self._options = options

    async def patch(self, state: Mapping[str, Any], *, waits: bool) -> dict[str, Any] | None:
        """Return the update that makes the messages of `state` whole; nothing where they are.

        The checkpointer is asked in its async way if `waits`; else nothing is waited for.
        """
        messages = state[_MESSAGES]
        try:
            if not messages or is_whole(WIRE, messages) or not (found := self._look(messages)).changed:
                return None
        except InputError:  # no history that could be repaired; the reducer or the provider will say
            return None
        open_calls = _open_calls(messages, found.report.findings)
        lost = await _search({messages[index].id for index in open_calls}, waits=waits)
        messages, update = self._recover(messages, open_calls, lost)
        causes = self._causes(messages, lost) if lost and self._options.choices.cause is None else {}
        old = {id(message) for message in messages}
        whole = repair_history(messages, WIRE, self._options, profile=_THREAD, causes=causes, generator=None)
        if whole is None:
            return None
        made = [message if id(message) in old else self._worded(message) for message in whole.messages]
        everything = [RemoveMessage(id=REMOVE_ALL_MESSAGES), *made]
        return {**update, **_moved_summary(state, made), _MESSAGES: everything}

    def _look(self, messages: Sequence[Any]) -> Repaired[Any]:
        """Return what a repair finds, of which nobody hears yet."""
        return run_repair(messages, WIRE, _PAIRING, replace(self._options.choices, generator=None))

    def _worded(self, message: Any) -> Any:
        """Return a new message as it is; a placeholder with its text, now that its call has an id, and a name."""
        if not isinstance(message, ToolMessage) or MARK not in message.response_metadata:
            return message
        say = self._options.choices.generator
        cause, name = Cause(message.response_metadata[MARK]), message.name or ""
        text: Any = "" if say is None else say(name, message.tool_call_id, cause, (0, 0))
        if not isinstance(text, str):
            raise ConfigError(f"generator returned {type(text).__name__}; it must return text")
        return WIRE.edit(message, {}, {0: ResultEdit(name=None if name else "unknown", text=text or None)})

    def _recover(
        self, messages: Sequence[Any], open_calls: Mapping[int, Sequence[str]], lost: Mapping[str, LostTurn]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Return `messages` with those results put in that tools gave, but LangGraph threw away, and what else was.

        A result whose tool wrote into the state, too, counts only with what it wrote.
        """
        found = {
            index: self._certain(messages[index], wanted, lost[messages[index].id])
            for index, wanted in open_calls.items()
            if messages[index].id in lost
        }
        last = max((index for index, message in enumerate(messages) if isinstance(message, AIMessage)), default=-1)
        tasks = {id(each.writes): each.writes for each in found.get(last, ()) if each.writes}
        update = combined([write for writes in tasks.values() for write in writes])
        made: list[Any] = []
        for index, message in enumerate(messages):
            fit = [each for each in found.get(index, ()) if not each.writes or (index == last and update is not None)]
            made += [message, *[each.result for each in fit]]
        return made, update or {}

    def _certain(self, turn: AIMessage, wanted: Sequence[str], then: LostTurn) -> list[Lost]:
        """Return the lost results of those of the calls `wanted` that are what they were when the tools ran."""
        now, ran = _single_calls(turn), _single_calls(then.message)
        same = [call_id for call_id in wanted if call_id in then.results and now[call_id] == ran.get(call_id)]
        test, found = self._options.choices.is_placeholder, list[Lost]()
        for lost in [then.results[call_id] for call_id in same]:
            text, complete = WIRE.result_text(WIRE.view(lost.result).results[0])
            if not (complete and test is not None and test(text)):
                found.append(lost)
        return found

    def _causes(self, messages: Sequence[Any], lost: Mapping[str, LostTurn]) -> dict[tuple[int, int], Cause]:
        """Return why calls have no result, where the checkpointer shows that no person came between."""
        found: dict[tuple[int, int], Cause] = {}
        for index, wanted in _open_calls(messages, self._look(messages).report.findings).items():
            turn = lost.get(messages[index].id)
            if turn is not None and not turn.is_interrupt:
                for place, call in enumerate(WIRE.view(messages[index]).calls):
                    if call.id in wanted and not WIRE.is_malformed(call):
                        found[index, place] = Cause.UNKNOWN
        return found


def _open_calls(messages: Sequence[Any], findings: Sequence[Finding]) -> dict[int, list[str]]:
    """Return the ids of the calls without a result, by the place of their turn; only those that are told apart."""
    found: dict[int, list[str]] = {}
    for finding in findings:
        turn = messages[finding.index]
        dangles = finding.problem == "dangling" and isinstance(turn, AIMessage) and turn.id
        if dangles and finding.call_id in _single_calls(turn):
            found.setdefault(finding.index, []).append(finding.call_id)
    return found


def _single_calls(turn: AIMessage) -> dict[str, tuple[str, Any]]:
    """Return name and arguments of the calls of `turn` by id; nothing of those that share an id."""
    calls: Sequence[Call] = WIRE.view(turn).calls
    counts = Counter(call.id for call in calls)
    return {call.id: (call.name, call.arguments) for call in calls if call.id and counts[call.id] == 1}


def _moved_summary(state: Mapping[str, Any], made: Sequence[Any]) -> dict[str, Any]:
    """Return what the state says of a summary, with its places in the list of messages moved to where they are now."""
    event: Any = state.get(_SUMMARY)
    if not isinstance(event, dict):
        return {}
    old = state[_MESSAGES]
    known = {*map(_identity, old)}
    places = {_identity(message): place for place, message in enumerate(made)}
    moved: dict[str, Any] = {**event}
    for name in _PLACES:
        place = moved.get(name)
        if isinstance(place, int) and not isinstance(place, bool):
            before = [places[key] for message in old[:place] if (key := _identity(message)) in places]
            now = max(before, default=-1) + 1
            while now < len(made) and isinstance(made[now], ToolMessage) and _identity(made[now]) not in known:
                now += 1  # a placeholder stays with its call
            moved[name] = now if place <= len(old) else len(made) + place - len(old)
    return {_SUMMARY: moved} if moved != event else {}


def _identity(message: Any) -> Any:
    return getattr(message, "id", None) or id(message)


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


# What the checkpointer knows


async def _search(turns: Collection[str], *, waits: bool) -> dict[str, LostTurn]:
    """Look for the turns, by their ids, at which runs broke off, from the newest checkpoint of the run at hand back."""
    try:
        settings = _mapping(get_config().get("configurable"))
    except RuntimeError:  # no run
        return {}
    checkpointer: Any = settings.get("__pregel_checkpointer")
    if not turns or not hasattr(checkpointer, "get_tuple") or "thread_id" not in settings:
        return {}
    graph = str(settings.get("checkpoint_ns") or "").rpartition("|")[0]  # without the node in it
    place = {"thread_id": settings["thread_id"], "checkpoint_ns": graph}
    newest = _mapping(settings.get("checkpoint_map")).get(graph)

    async def read(place: Mapping[str, Any]) -> Any:
        config = {"configurable": place}
        return await checkpointer.aget_tuple(config) if waits else checkpointer.get_tuple(config)

    trail = _Trail(turns)
    try:
        saved = await read({**place, "checkpoint_id": newest}) if newest else None
        if saved is None:  # it is not stored yet: begin with the newest that is
            saved = await read(place)
        for _ in range(_FARTHEST):
            if saved is None or not trail.go_back(saved) or not saved.parent_config:
                break
            saved = await read(saved.parent_config["configurable"])
    except Exception:  # noqa: BLE001 - a checkpointer of any make must not end the run
        _LOG.warning(
            "a checkpointer cannot be read; what tools gave before a run broke off is not known", exc_info=True
        )
        return {}
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
        self._asked = False
        """Whether a person was asked there."""

    def go_back(self, saved: Any) -> bool:
        """Take in one checkpoint; tell whether it is worth going further back."""
        writes: Sequence[Any] = saved.pending_writes or ()
        left, applied = self._thrown_away, list[Any]()
        if left:
            self._loose = {**dict(_results(writes)), **self._loose}
            self._asked = self._asked or any(channel == _INTERRUPT for _, channel, _ in writes)
        else:
            applied = [message for _, channel, value in writes if channel == _MESSAGES for message in _listed(value)]
        state = _state(saved)
        turn = _last_turn(applied) or _last_turn(state)
        loop = _mapping(saved.metadata).get("source") == "loop"
        broke_off = left and loop and _last_turn(state, at_end=True) is not None
        if turn is not None and (self._loose or broke_off):
            if turn.id in self._wanted:
                known = self.found.get(turn.id)
                asked = self._asked or (known is not None and known.is_interrupt)
                self.found[turn.id] = LostTurn(turn, self._loose, asked)
                if self._loose:  # else there may be some farther back, from before a program updated the state
                    self._wanted.discard(turn.id)
            self._loose, self._asked = {}, False
        if not any(isinstance(message, RemoveMessage) for message in applied):
            self._wanted.difference_update(message.id for message in applied if isinstance(message, AIMessage))
        self._thrown_away = not loop
        return bool(self._wanted)


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


def _last_turn(messages: Sequence[Any], *, at_end: bool = False) -> AIMessage | None:
    """Return the last message with calls; `at_end` only where nothing but results follows it."""
    for message in reversed(messages):
        if isinstance(message, AIMessage) and (message.tool_calls or message.invalid_tool_calls):
            return message
        if at_end and not isinstance(message, ToolMessage):
            break
    return None
