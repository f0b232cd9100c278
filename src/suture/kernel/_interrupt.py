"""Interrupts: code inside a run asks somebody outside, and the run stops until the answer comes.

The id of an interrupt is its address (run path, turn, call, frame, occurrence), so it is the same each time
the place is run again. On resume the place runs again from the top, and `interrupt` returns the answer.
"""

from typing import Any, NamedTuple, TypeVar, overload

from suture.errors import ResumeError
from suture.events import Interrupt
from suture.kernel._scope import Frame, current_frame
from suture.kernel._typed import encode_value

__all__ = ["Approval", "InterruptSignal", "Waiting", "ask", "check_answer", "interrupt", "interrupt_state"]

T = TypeVar("T")
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
    expects: str


class InterruptSignal(BaseException):
    """Carries interrupts out to the loop. No `Exception`, so that no `except Exception` swallows it."""

    def __init__(self, waiting: tuple[Waiting, ...]) -> None:
        self.waiting = waiting
        super().__init__(", ".join(item.interrupt.id for item in waiting))


@overload
async def interrupt(info: Any, *, state: Any = None, expects: type[T]) -> T: ...
@overload
async def interrupt(info: Any, *, state: Any = None, expects: str = "") -> Any: ...
async def interrupt(info: Any, *, state: Any = None, expects: str | type = "") -> Any:
    """Stop the run here and wait for an answer; when the run is resumed with one, return it.

    The code around it runs again from the top then, so effects belong after it. `info` is for whoever answers;
    `state` is kept and can be read with `interrupt_state`. `expects` (`bool`, `str`, `int`, `float`, `list`,
    `dict`, or `"approval"`) makes resuming with anything else an error.

    >>> import asyncio
    >>> asyncio.run(interrupt("Send it?"))
    Traceback (most recent call last):
        ...
    suture.errors.NotInRunError: interrupt works inside a run only: in a hook, a wrapper or a tool of a running agent
    """
    frame = current_frame("interrupt")
    return ask(frame, frame.owner, info, state, expects)


def ask(frame: Frame, owner: str, info: Any, state: Any, expects: str | type) -> Any:
    """Return the answer to the next interrupt of `owner`, or raise the signal that asks for it."""
    scope = frame.scope
    address = frame.next_address(owner)
    if address in scope.answers:
        return scope.answers[address]
    for value in (info, state):
        encode_value(value)  # refused now rather than when it must be stored
    wanted = expects if isinstance(expects, str) else expects.__name__
    if wanted not in ("", "approval", *_EXPECTED):
        raise ResumeError(f"interrupt cannot expect {wanted!r}; known: {', '.join((*_EXPECTED, 'approval'))}")
    asked = Interrupt(id=address, info=info, run_path=scope.path, call_id=frame.call_id, name=frame.tool)
    raise InterruptSignal((Waiting(asked, state, wanted),))


def interrupt_state() -> tuple[Any, bool]:
    """Return what the last interrupt of this code kept, and whether there is any: on the way to being answered.

    >>> interrupt_state()
    Traceback (most recent call last):
        ...
    suture.errors.NotInRunError: interrupt_state works inside a run only: in a hook, a wrapper or a tool of a running \
agent
    """
    frame = current_frame("interrupt_state")
    prefix = f"{frame.scope.address}/{frame.place}/{frame.owner}/"
    found = [address for address in frame.scope.states if address.startswith(prefix)]
    if not found:
        return None, False
    return frame.scope.states[max(found, key=lambda address: int(address.rpartition("/")[2]))], True


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


def check_answer(address: str, expects: str, data: Any) -> None:
    """Raise `ResumeError` where `data` is not the kind of answer that the interrupt takes."""
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
