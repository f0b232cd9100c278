"""Interrupts: code inside a run asks somebody outside, and the run stops until the answer comes.

The id of an interrupt is its address (run path, turn, call, frame, occurrence), so it is the same each time
the place is run again. On resume the place runs again from the top, and `interrupt` returns the answer.
"""

from typing import Any, NamedTuple

from suture.errors import ResumeError
from suture.events import Interrupt
from suture.kernel.values import encode_value

_EXPECTED: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "int": (int,),
    "float": (float, int),
    "str": (str,),
    "list": (list, tuple),
    "dict": (dict,),
}


class Waiting(NamedTuple):
    """An interrupt that was not answered yet, with what it keeps and what kind of answer it takes."""

    interrupt: Interrupt
    state: Any
    terms: str
    """The kind of answer that it takes, and a digest of what the answer is about."""


class InterruptSignal(BaseException):
    """Carries interrupts out to the loop. It is not an `Exception`, so that no `except Exception` swallows it."""

    def __init__(self, waiting: tuple[Waiting, ...]) -> None:
        self.waiting = waiting
        super().__init__(", ".join(item.interrupt.id for item in waiting))


def ask(frame: Any, owner: str, info: Any, state: Any, expects: str | type, about: str = "") -> Any:
    """Return the answer to the next interrupt of `owner`, or raise the signal that asks for it.

    An answer holds for what was asked: with another `about` than it was given for, it is asked for again.
    """
    run = frame.run
    address = f"{run.address}/{frame.place}/{owner}/{frame.count(owner)}"
    wanted = expects if isinstance(expects, str) else expects.__name__
    if wanted not in ("", "approval", *_EXPECTED):
        raise ResumeError(f"interrupt cannot expect {wanted!r}; known: {', '.join((*_EXPECTED, 'approval'))}")
    terms = f"{wanted} {about}".rstrip()
    if address in run.state.answers and run.state.asked.get(address, terms) == terms:
        return run.state.answers[address]
    for value in (info, state):
        encode_value(value)  # refused now rather than when it must be stored
    asked = Interrupt(id=address, info=info, run_path=run.path, call_id=frame.call_id, name=frame.tool)
    raise InterruptSignal((Waiting(asked, state, terms),))


class Rejected(Exception):
    """A call was not approved; the text is for the model."""


class Approval(NamedTuple):
    """An answer to a tool that asks for approval: yes or no, and why.

    >>> Approval.of({"approved": False, "reason": "too dear"})
    Approval(approved=False, reason='too dear')
    """

    approved: bool
    reason: str = ""

    @classmethod
    def of(cls, data: Any) -> "Approval | None":
        """Return what `data` says: a bool, or a mapping with `approved` and perhaps `reason`."""
        if isinstance(data, cls):
            return data
        if isinstance(data, bool):
            return cls(data)
        if isinstance(data, dict):
            approved: Any = data.get("approved")  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
            reason: Any = data.get("reason", "")  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
            if isinstance(approved, bool) and isinstance(reason, str):
                return cls(approved, reason)
        return None


def check_answer(address: str, terms: str, data: Any) -> None:
    """Raise `ResumeError` where `data` is not the kind of answer that the interrupt takes."""
    expects = terms.partition(" ")[0]
    if expects == "approval":
        if Approval.of(data) is None:
            raise ResumeError(
                f"{address} asks for approval: answer True, False or {{'approved': …, 'reason': …}}, "
                f"not {type(data).__name__}"
            )
        return
    kinds = _EXPECTED.get(expects)
    if kinds is not None and (not isinstance(data, kinds) or (isinstance(data, bool) and bool not in kinds)):
        raise ResumeError(f"{address} expects {expects}, not {type(data).__name__}")
