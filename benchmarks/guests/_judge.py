"""What becomes of a request: whether its provider takes it, and whether it tells the model all that was there.

The rules are the providers' own, as they say them in their errors and references. Nothing here is Suture's.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from _cases import PROMPT, Case

__all__ = ["PROVIDERS", "RIGHT", "WORDS", "Atom", "Message", "Provider", "judge"]

Atom = tuple[Any, ...]
"""`("text", text)`, `("call", id, name)` or `("result", id, text)`."""
Message = tuple[str, list[Atom]]
"""Who speaks (`"user"`, `"assistant"`, or `"tool"` where results are messages of their own), and what."""

RIGHT = "right"
_UNANSWERED, _STRAY, _TWICE = "unanswered call", "orphan result", "two results"
_LATE, _REPEATED, _SHUFFLED = "late result", "id twice", "results out of order"
_DROPPED, _LOST, _STRAY_LOST = "call dropped", "real result lost", "orphan dropped"
_SILENCED, _SWAPPED = "words lost", "wrong result at a call"

WORDS = {
    RIGHT: "The provider accepts it, and the model sees every call, every real result at its call, and all words.",
    "refused: …": "The provider answers with an error, for this reason, now and to every later message.",
    "raises …": "The framework raises, and the model is never asked.",
    _UNANSWERED: "A call has no result.",
    _STRAY: "A result has no call.",
    _TWICE: "A call has more than one result.",
    _LATE: "A result is not where its call is.",
    _REPEATED: "Two calls have the same id.",
    "… twice in a row": "Two messages of one role are neighbours.",
    _DROPPED: "The provider accepts it. The model never learns that it made a call, and may repeat it.",
    _STRAY_LOST: "The provider accepts it. A tool's result is gone.",
    _LOST: "The provider may accept it. A tool's result is gone, or replaced by an older one.",
    _SHUFFLED: "The provider takes it. It tells the results of a turn apart by their order, which is not the calls'.",
    _SWAPPED: "The provider takes it. The model takes one call's result for another's.",
    _SILENCED: "Something that the user or the assistant said is gone.",
}
"""All that can stand in a cell."""


class Provider(NamedTuple):
    """What one provider asks for, beyond one result for each call and one call for each result."""

    adjacent: bool = True
    """The results of a turn come first in what follows it."""
    unique: bool = True
    """A call's id is used once in a request; else once in a message."""
    joins: bool = False
    """Neighbours of one role are taken for one message."""
    alternates: bool = False
    """Nobody speaks twice in a row."""
    calls_after_user: bool = False
    """What is before a turn with calls is the user's."""
    by_order: bool = False
    """Results are told apart by their order."""


PROVIDERS = {
    "OpenAI, Chat Completions": Provider(unique=False),
    "OpenAI, Responses": Provider(adjacent=False),
    "Anthropic": Provider(joins=True),
    "Gemini": Provider(unique=False, calls_after_user=True, by_order=True),
    "Bedrock": Provider(alternates=True),
}


def judge(sent: Sequence[Message], case: Case, provider: Provider) -> str:
    """Return in a few words what comes of it that this is sent."""
    messages = _taken(sent, provider)
    refusals = [*dict.fromkeys(_refusals(messages, provider))]
    losses = [*_losses(messages, case)]
    if not refusals and not losses:
        losses = [*_mistakes(messages, case, provider)]
    told = [f"refused: {', '.join(refusals)}"] if refusals else []
    return "; ".join([*told, *losses]) or RIGHT


def _taken(sent: Sequence[Message], provider: Provider) -> list[Message]:
    """Return the messages as the provider takes them: what is not the assistant's is the user's."""
    taken: list[Message] = []
    before = ""
    for speaker, atoms in sent:
        role = "assistant" if speaker == "assistant" else "user"
        # Where results are messages of their own, those of a turn and what follows are as one.
        is_same = bool(taken) and role == taken[-1][0] and (provider.joins or (role == "user" and before == "tool"))
        if is_same:
            taken[-1][1].extend(atoms)
        else:
            taken.append((role, list(atoms)))
        before = speaker
    return taken


def _refusals(messages: Sequence[Message], provider: Provider) -> Iterator[str]:
    for (role, _), (following, atoms) in pairwise(messages):
        if role == following and (provider.alternates or (provider.calls_after_user and _ids("call", atoms))):
            yield f"{role} twice in a row"
    calls = Counter(name for _, atoms in messages for name in _ids("call", atoms))
    results = Counter(name for _, atoms in messages for name in _ids("result", atoms))
    yield from _misplaced(messages, calls, results) if provider.adjacent else _unmatched(messages, calls, results)
    in_a_turn = [Counter(_ids("call", atoms)) for _, atoms in messages]
    if any(count > 1 for counts in ([calls] if provider.unique else in_a_turn) for count in counts.values()):
        yield _REPEATED


def _misplaced(messages: Sequence[Message], calls: Counter[str], results: Counter[str]) -> Iterator[str]:
    """Yield what is wrong where the results of a turn must come first in the next message."""
    turn: list[str] = []
    for _, atoms in [*messages, ("user", [])]:
        given = _ids("result", atoms)
        first = _ids("result", atoms[: next((n for n, atom in enumerate(atoms) if atom[0] != "result"), len(atoms))])
        for name in turn:
            if name not in first:
                yield _UNANSWERED if results[name] < calls[name] else _LATE
        for place, name in enumerate(given):
            if name not in calls:
                yield _STRAY
            elif name not in turn:
                yield _TWICE if results[name] > calls[name] else _LATE
            elif name in given[:place]:
                yield _TWICE
        turn = _ids("call", atoms)


def _unmatched(messages: Sequence[Message], calls: Counter[str], results: Counter[str]) -> Iterator[str]:
    """Yield what is wrong where a result may stand anywhere behind its call."""
    seen: set[str] = set()
    for _, atoms in messages:
        for kind, name, *_ in atoms:
            if kind == "call":
                seen.add(name)
            elif kind == "result" and name not in seen:
                yield _STRAY
    for name, count in calls.items():
        if results[name] != count:
            yield _UNANSWERED if results[name] < count else _TWICE


def _losses(messages: Sequence[Message], case: Case) -> Iterator[str]:
    """Yield what the model is not told although the history has it."""
    atoms = [atom for _, said in messages for atom in said]
    shown = [atom[2] for atom in atoms if atom[0] == "result"]
    texts = "\n".join(atom[1] for atom in atoms if atom[0] == "text")
    if len(_ids("call", atoms)) < len(case.answers):
        yield _DROPPED
    if any(answer is not None and answer not in shown for answer in case.answers):
        yield _LOST
    if case.stray and case.stray not in shown and case.stray not in texts:
        yield _STRAY_LOST
    if any(text not in texts for text in (*(step[1] for step in case.steps if step[0] in {"user", "say"}), PROMPT)):
        yield _SILENCED


def _mistakes(messages: Sequence[Message], case: Case, provider: Provider) -> Iterator[str]:
    """Yield what the model is told wrongly, in a request that is not refused."""
    everything = [atom for _, atoms in messages for atom in atoms]
    answers: list[str] = []
    for place, (_, atoms) in enumerate(messages):
        turn = _ids("call", atoms)
        if not turn:
            continue
        following = messages[place + 1][1] if provider.adjacent else everything
        answers += [next(atom[2] for atom in following if atom[:2] == ("result", name)) for name in turn]
        if provider.by_order and _ids("result", following) != turn:
            yield _SHUFFLED
    if not _are_told(answers, case):
        yield _SWAPPED


def _are_told(answers: Iterable[str], case: Case) -> bool:
    """Tell whether each call has the result that it had, and one that had none has none of another's."""
    real = {step[2] for step in case.steps if step[0] == "result"}
    return all(
        answer == wanted if wanted is not None else answer not in real
        for answer, wanted in zip(answers, case.answers, strict=True)
    )


def _ids(kind: str, atoms: Sequence[Atom]) -> list[str]:
    return [atom[1] for atom in atoms if atom[0] == kind]
