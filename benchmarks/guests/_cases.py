"""The seven histories, written once; each guest writes them in its own objects.

A history is a list of steps: `("user", text)`, `("say", text)` for the assistant's words, `("calls", (id, city), …)`
for a turn that asks for the weather of some cities, and `("result", id, text)`. Then comes the next prompt.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

__all__ = ["CASES", "PROMPT", "TOOL", "Case", "Step", "long_history", "turns"]

TOOL = "weather"
PROMPT = "Go on, please."
Step = tuple[Any, ...]

_ASK = ("user", "How is the weather?")
_ROME = ("calls", ("call_1", "Rome"))
_SUNNY = ("result", "call_1", "Sunny in Rome.")


class Case(NamedTuple):
    """A history, and what must have become of it."""

    letter: str
    what: str
    steps: tuple[Step, ...]
    answers: tuple[str | None, ...]
    """For each call, in order, the result that the model must see at it; `None`: that there is none."""
    stray: str = ""
    """What a tool said although no call asks for it. The model must see it, and not as a result."""


CASES = (
    Case("A", "The history ends in a call; then comes a new user message.", (_ASK, _ROME), (None,)),
    Case(
        "B",
        "A call in the middle of the history has no result.",
        (_ASK, _ROME, ("user", "Never mind. Who are you?"), ("say", "An assistant.")),
        (None,),
    ),
    Case(
        "C",
        "A result has no call: it was cut off with the start of the history.",
        (_ASK, ("result", "call_0", "Foggy in Oslo."), ("say", "It is foggy.")),
        (),
        stray="Foggy in Oslo.",
    ),
    Case(
        "D",
        "One call has two results.",
        (_ASK, _ROME, ("result", "call_1", "Still loading."), _SUNNY, ("say", "It is sunny.")),
        ("Sunny in Rome.",),
    ),
    Case(
        "E",
        "The result is there, but behind another turn.",
        (_ASK, _ROME, ("user", "Still there?"), ("say", "One moment."), _SUNNY, ("say", "It is sunny.")),
        ("Sunny in Rome.",),
    ),
    Case(
        "F",
        "A later call has the id of an earlier one, and no result.",
        (_ASK, _ROME, _SUNNY, ("calls", ("call_1", "Oslo")), ("user", "Enough."), ("say", "As you wish.")),
        ("Sunny in Rome.", None),
    ),
    Case(
        "G",
        "Of two parallel calls one has a result.",
        (
            _ASK,
            ("calls", ("call_1", "Rome"), ("call_2", "Oslo")),
            ("result", "call_2", "Rainy in Oslo."),
            ("user", "Enough."),
            ("say", "As you wish."),
        ),
        (None, "Rainy in Oslo."),
    ),
)


def turns(steps: Sequence[Step]) -> list[tuple[str, list[Step]]]:
    """Return who speaks in turn, and what: for providers whose messages hold blocks, results among the user's.

    Of two results in a row each is a message of its own, as a program adds what comes one after the other.
    """
    said: list[tuple[str, list[Step]]] = []
    for step in steps:
        role = "assistant" if step[0] in {"say", "calls"} else "user"
        if said and said[-1][0] == role and not said[-1][1][-1][0] == step[0] == "result":
            said[-1][1].append(step)
        else:
            said.append((role, [step]))
    return said


def long_history(length: int) -> tuple[Step, ...]:
    """Return a history without a fault that has so many messages: a question, calls with their results, an answer."""
    rounds = [
        step
        for n in range((length - 1) // 2)
        for step in (("calls", (f"call_{n}", f"city {n}")), ("result", f"call_{n}", f"Sunny in city {n}. " * 4))
    ]
    return (_ASK, *rounds, ("say", "It is sunny."))[:length]
