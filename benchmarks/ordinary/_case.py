"""What a case is: a small program, what the provider answers it, and who judges the facts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from _server import Answer, Call, Reply, Request

__all__ = ["RAN", "Case", "Facts", "answer", "call_then_text", "say", "say_in_turn"]

RAN: list[Any] = []
"""What the tool of the program was given, one entry for each time it ran."""

# Before anything was sent these are no words about the cause, but a mistake inside.
_ACCIDENTS = (AttributeError, ImportError, IndexError, KeyError, NameError, RecursionError)


@dataclass(kw_only=True)
class Facts:
    """What happened while a program ran. The judges see this alone."""

    value: Any = None
    error: BaseException | None = None
    requests: Sequence[Request] = ()
    connections: int = 0
    ran: Sequence[Any] = ()
    seconds: float = 0.0
    logged: str = ""

    def refused(self, before: int) -> bool:
        """Return whether the program was told no before it had sent or done more than it should."""
        quiet = len(self.requests) <= before and not self.ran
        return self.error is not None and quiet and not isinstance(self.error, _ACCIDENTS)


Judge = Callable[[Facts], str]
"""Returns what is wrong, in a few words, or nothing; a request may be missing, so an `IndexError` is a wrong too."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One row: `program` is a function that every framework's file may have, `given` its arguments."""

    what: str
    program: str
    given: Mapping[str, Any] = field(default_factory=dict[str, Any])
    answer: Answer
    judge: Judge
    before: int = 0
    """How many requests a program has made when the thing that matters begins."""
    limit: float = 25.0
    """How many seconds it may take."""
    refusal_is_right: bool = False
    """Whether nothing better can be done than to refuse clearly."""


def say(*texts: str, **more: Any) -> Answer:
    """Answer every request with this text."""
    return lambda _body, _number: Reply(texts=texts, **more)


def say_in_turn(*replies: Reply) -> Answer:
    """Answer with these, one after another, and then with the last again and again."""
    return lambda _body, number: replies[min(number, len(replies) - 1)]


def call_then_text(arguments: str = "{}", *, name: str = "act", until: Callable[[str], bool] | None = None) -> Answer:
    """Call the tool and then say `done`; with `until`, call it again and again until its result is right."""

    def answer(body: dict[str, Any], number: int) -> Reply:
        results = [str(message["content"]) for message in body["messages"] if message["role"] == "tool"]
        if results and (until is None or until(results[-1])):
            return Reply(texts=["done"])
        return Reply(calls=[Call(name, arguments, f"call_{number}")])

    return answer


def answer(text: str) -> Judge:
    """The program got this text."""
    return lambda facts: "" if facts.value == text else f"gave {facts.value!r}"
