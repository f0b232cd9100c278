"""Repairing a thread of LangGraph for good: what its messages become, and what else in the state must follow."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, RemoveMessage, ToolMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES  # pyright: ignore[reportMissingTypeStubs]

from suture.errors import ConfigError, InputError
from suture.integrations._langchain_recovery import Lookup, Lost, LostTurn, begin, combined, search
from suture.integrations._langchain_wire import WIRE
from suture.profiles import IdForm, Profile
from suture.repair import AsksCause, Cause, Fit, Paired, PairOptions, is_whole, pair
from suture.wires import MARK, Call, ResultEdit

__all__ = ["ThreadRepair"]

_SUMMARY = "_summarization_event"
_PLACES = ("cutoff_index", "created_at_index")
_ANY_ID = Profile(name="thread", wires=(WIRE.name,), rules=(), ids=IdForm(pattern="(?s).+"))
"""Every call has an id, whatever it is: in a thread, a call without one could never be answered."""


class _Recovered(NamedTuple):
    """Messages with the lost results put in, behind which of the old ones each stands, and what else was lost."""

    messages: Sequence[Any]
    behind: tuple[int, ...] = ()
    update: Mapping[str, Any] = {}


class ThreadRepair:
    """Repairs the messages of a state, and what points into them.

    `say` gives a placeholder its text, `unnamed` is what one is named that stands for a call without a name.

    >>> repair = ThreadRepair(PairOptions(), say=lambda name, call_id, cause: "lost", unnamed="unknown")
    >>> repair.close({"messages": [AIMessage("hi")]}) is None
    True
    """

    def __init__(self, options: PairOptions, *, say: AsksCause[str], unnamed: str) -> None:
        self._options, self._say, self._unnamed = options, say, unnamed

    def patch(self, state: Mapping[str, Any]) -> Generator[Lookup, Any, dict[str, Any] | None]:
        """Return the update that makes the messages of `state` whole; nothing where they are.

        It yields what to look up in a checkpointer, and is sent what was found there.
        """
        messages = state["messages"]
        try:
            if not messages or is_whole(WIRE, messages):
                return None
            paired = pair(WIRE, messages, self._options)
        except InputError:  # no history that could be repaired; the reducer or the provider will say
            return None
        if not paired.changed:
            return None
        recovered = yield from self._recover(messages, paired)
        if recovered.behind:
            paired = pair(WIRE, recovered.messages, self._options)
        whole = self._finished(paired, recovered.messages)
        update = {**recovered.update, **_moved_summary(state, recovered, paired)}
        return {**update, "messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), *whole]}

    def close(self, state: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the update that answers the calls at the very end of `state`; nothing where none is open."""
        messages: Sequence[Any] = state["messages"]
        at = len(messages) - 1
        while at >= 0 and isinstance(messages[at], ToolMessage):
            at -= 1
        if at < 0 or not isinstance(messages[at], AIMessage) or is_whole(WIRE, messages, at):
            return None
        tail = messages[at:]
        paired = pair(WIRE, tail, self._options).messages
        made = [message for message in paired if not any(message is old for old in tail)]
        return {"messages": [self._told(message) for message in made]} if made else None

    def _finished(self, paired: Paired, old: Sequence[Any]) -> list[Any]:
        """Return paired messages with an id for every call, each call in its list, and our texts in placeholders."""
        known = {id(message) for message in old}
        made = [id(item.message) not in known for item in paired.items]
        for item in paired.items:
            item.message = WIRE.tidy(item.message)
        fit = Fit(WIRE, _ANY_ID, self._options.language)
        fit.feed(paired.items, paired.groups)
        return [self._told(message) if new else message for message, new in zip(fit.finish(), made, strict=True)]

    def _told(self, message: Any) -> Any:
        """Return a new message as it is; a placeholder with its text and a name."""
        if not isinstance(message, ToolMessage) or MARK not in message.response_metadata:
            return message
        text: Any = self._say(message.name or "", message.tool_call_id, cause=Cause(message.response_metadata[MARK]))
        if not isinstance(text, str):
            raise ConfigError(f"generator returned {type(text).__name__}; it must return text")
        name = None if message.name else self._unnamed
        return WIRE.edit(message, {}, {0: ResultEdit(name=name, text=text or None)})

    def _recover(self, messages: Sequence[Any], paired: Paired) -> Generator[Lookup, Any, _Recovered]:
        """Return `messages` with those results put in that tools gave, but LangGraph threw away."""
        start = begin()
        open_calls: dict[int, list[str]] = {}
        for finding in paired.findings:
            if finding.problem == "dangling" and finding.call_id:
                open_calls.setdefault(finding.index, []).append(finding.call_id)
        turns = {messages[index].id: index for index in open_calls if isinstance(messages[index], AIMessage)}
        turns.pop(None, None)
        if not turns or start is None:
            return _Recovered(messages)
        try:
            lost = yield from search(turns, start)
        except Exception:  # noqa: BLE001 - a checkpointer of any make must not end the run
            return _Recovered(messages)
        found = {
            turns[turn]: self._certain(messages[turns[turn]], open_calls[turns[turn]], then)
            for turn, then in lost.items()
        }
        last = max((index for index, message in enumerate(messages) if isinstance(message, AIMessage)), default=-1)
        return _put_in(messages, found, last)

    def _certain(self, turn: AIMessage, wanted: Sequence[str], then: LostTurn) -> list[Lost]:
        """Return the lost results of those of the calls `wanted` that are what they were when the tools ran."""
        now, ran = _single_calls(turn), _single_calls(then.message)
        lost = then.results
        return [
            lost[call_id]
            for call_id in wanted
            if call_id in lost and now.get(call_id) == ran.get(call_id, ()) and self._is_real(lost[call_id])
        ]

    def _is_real(self, lost: Lost) -> bool:
        text, complete = WIRE.result_text(WIRE.view(lost.result).results[0])
        test = self._options.is_placeholder
        return not (complete and test is not None and test(text))


def _single_calls(turn: AIMessage) -> dict[str, tuple[str, Any]]:
    """Return name and arguments of the calls of `turn` by id; nothing of those that share an id."""
    calls: Sequence[Call] = WIRE.view(turn).calls
    counts = Counter(call.id for call in calls)
    return {call.id: (call.name, call.arguments) for call in calls if counts[call.id] == 1}


def _put_in(messages: Sequence[Any], found: Mapping[int, Sequence[Lost]], last: int) -> _Recovered:
    """Put results behind their turns. One whose tool wrote into the state, too, counts only with what it wrote."""
    tasks = {id(lost.writes): lost.writes for lost in found.get(last, ()) if lost.writes}
    update = combined([write for writes in tasks.values() for write in writes])
    made: list[Any] = []
    behind: list[int] = []
    for index, message in enumerate(messages):
        made.append(message)
        for lost in found.get(index, ()):
            if not lost.writes or (index == last and update is not None):
                made.append(lost.result)
                behind.append(index)
    return _Recovered(made, tuple(behind), update or {})


def _moved_summary(state: Mapping[str, Any], recovered: _Recovered, paired: Paired) -> dict[str, Any]:
    """Return what the state says of a summary, with its places in the list of messages moved to where they are now."""
    event: Any = state.get(_SUMMARY)
    if not isinstance(event, dict):
        return {}
    old = len(state["messages"])
    origins = paired.origins
    moved: dict[str, Any] = {**event}
    for name in _PLACES:
        place = moved.get(name)
        if isinstance(place, int) and not isinstance(place, bool):
            now = place + sum(at < place for at in recovered.behind)
            moved[name] = bisect_left(origins, now) if place < old else len(paired.messages) + place - old
    return {_SUMMARY: moved} if moved != event else {}
