"""What the tests of compaction share: small histories, summarisers that do all they should not, and what must hold."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import suture
from suture.errors import ContextLengthError, ContextOverflowError
from suture.reduction import Plan, compact
from suture.reduction.draft import rounds_of
from suture.tokens import CharacterCounter
from suture.wires import get_wire
from tests.histories import Step, write

KINDS = ("user", "say", "think", "turn a", "turn a b", "result a", "result b", "mixed a")
LENGTH = 480
"""How many characters each text has: a hundred tokens and twenty."""
COUNTER = CharacterCounter()

Summarizer = Callable[[str], str]


def text_of(place: int) -> str:
    """Return a text that no other message has, all of it told apart by its place."""
    return "".join(f"<{place}.{number}>" for number in range(LENGTH // 6))


def step_of(kind: str, place: int) -> Step:
    name, *ids = kind.split()
    match name:
        case "turn":
            return ("turn", [(call_id, "f", f'{{"at": {place}}}') for call_id in ids])
        case "result":
            return ("result", ids[0], "f", text_of(place))
        case "mixed":
            return ("mixed", [(ids[0], "f", text_of(place))], text_of(place + 50))
    return (name, text_of(place))


def small_histories(length: int) -> Iterator[list[Step]]:
    """Yield every history of `length` messages behind a user's."""
    for kinds in product(KINDS, repeat=length - 1):
        yield [step_of("user", 0), *[step_of(kind, place) for place, kind in enumerate(kinds, 1)]]


def _raise(_: str) -> str:
    raise RuntimeError("overloaded")


def _refuse_long(prompt: str) -> str:
    if COUNTER.count_text(prompt) > 420:
        raise ContextLengthError("too long")
    return "short"


SUMMARIZERS: dict[str, Summarizer | None] = {
    "none": None,
    "sound": lambda _: "They talked.",
    "raises": _raise,
    "empty": lambda _: "  \n",
    "longer than what it got": lambda prompt: prompt * 3,
    "another language": lambda _: "他们聊了聊。",
    "broken tags": lambda _: '</conversation-summary><conversation-summary id="x" saved="">',
    "small window": _refuse_long,
}


def user_texts(steps: Sequence[Step]) -> list[str]:
    return [step[-1] for step in steps if step[0] in {"user", "mixed"}]


def open_calls(wire: str, messages: Sequence[Any]) -> list[tuple[str, Any]]:
    """Return the calls of turns that are not answered."""
    found = rounds_of(get_wire(wire), messages)
    return [
        (call.id, str(call.arguments)) for each in found if len(each.answers) < len(each.calls) for call in each.calls
    ]


def problems(wire: str, messages: Sequence[Any]) -> list[str]:
    report = suture.check(messages, wire=wire, profile="pairing", tail="keep")
    return sorted(finding.problem for finding in report.findings)


def all_words(wire: str, messages: Sequence[Any], plan: Plan[Any]) -> str:
    spoken = ["\n".join(get_wire(wire).words(message).texts) for message in messages]
    return "\n".join([*spoken, *[save.content for save in plan.saves]])


def total(wire: str, messages: Sequence[Any]) -> int:
    return sum(COUNTER.count(message, wire) for message in messages)


def check(
    wire: str,
    steps: Sequence[Step],
    limit: int,
    summarizer: Summarizer | None,
    *,
    repaired: bool = False,
    **options: Any,
) -> Plan[Any] | None:
    """Compact a history and check all that is promised; `None` where it was refused."""
    messages = write(wire, steps)
    if repaired:
        messages = list(suture.repair(messages, wire=wire, profile="pairing", tail="keep").messages)
    before = list(messages)
    try:
        plan = compact(messages, max_tokens=limit, summarizer=summarizer, wire=wire, **options)
    except ContextOverflowError:
        return None
    finally:
        assert all(one is other for one, other in zip(messages, before, strict=True))
    after = plan.messages
    assert total(wire, after) == plan.tokens_after <= limit or plan.messages is messages
    assert plan.tokens_after <= plan.tokens_before == total(wire, messages)
    if plan.tokens_before <= limit:
        assert plan.messages is messages
    if not problems(wire, messages):
        assert problems(wire, after) == []
        assert set(open_calls(wire, messages)) <= set(open_calls(wire, after))
    said = all_words(wire, after, plan)
    for text in user_texts(steps):
        assert text in said
    return plan


def shown_places(prompt: str) -> set[str]:
    """Return which messages a prompt shows pieces of."""
    return set(re.findall(r"<(\d+)\.", prompt))
