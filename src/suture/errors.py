"""Every exception that Suture raises, as one tree.

::

    SutureError
    ├── InputError            what was handed in cannot be read (says which message, and where in it)
    │   ├── UnknownWireError    no known message shape fits
    │   ├── AmbiguousWireError  several fit, and they would give different results
    │   └── SchemaVersionError  written by a version this one cannot read
    ├── ConfigError           an argument of the call is wrong
    ├── NotInRunError         a function that belongs into a run was called outside of one
    ├── HistoryError          the history cannot be made acceptable; carries what is left
    ├── ResumeError           a checkpoint cannot be resumed like this; says what it waits for
    ├── OffloadError          tool output could not be saved; says which call's
    └── RunError              a run could not go on
        ├── MaxIterationsExceeded  it took all the model turns it may take
        ├── BudgetExceeded         it used up its tokens, its cost or its tool calls
        ├── RetryExhausted         every attempt at a model turn failed; the last exception is the cause
        ├── StreamCutError         a model's stream ended before its message was whole
        └── OutputError            the final answer is not of the type that was asked for

The first question an error answers is whose fault it is: the data's (`InputError`), the caller's
(`ConfigError`) or nobody's (`HistoryError`, `RunError`). An error that ends a run carries in `result` what
there is of it. This file imports nothing of Suture's.
"""

from collections.abc import Sequence
from typing import Any

__all__ = [
    "AmbiguousWireError",
    "BudgetExceeded",
    "ConfigError",
    "HistoryError",
    "InputError",
    "MaxIterationsExceeded",
    "NotInRunError",
    "OffloadError",
    "OutputError",
    "ResumeError",
    "RetryExhausted",
    "RunError",
    "SchemaVersionError",
    "StreamCutError",
    "SutureError",
    "UnknownWireError",
]


class SutureError(Exception):
    """The root of all of Suture's own exceptions.

    >>> issubclass(InputError, SutureError)
    True
    """

    result: Any = None
    """What there is of the run that this error ended: a `RunResult`."""


class InputError(SutureError, ValueError):
    """A message, or the list itself, is not what its wire says it must be.

    `index` is the position of the offending message (`None` for the list as a whole), `path` the
    place inside it. Nothing has been changed when this is raised.

    >>> str(InputError("expected a string", index=3, path="content"))
    'message 3, content: expected a string'
    """

    def __init__(self, reason: str, *, index: int | None = None, path: str = "") -> None:
        self.reason = reason
        self.index = index
        self.path = path
        place = ", ".join(part for part in ("" if index is None else f"message {index}", path) if part)
        super().__init__(f"{place}: {reason}" if place else reason)


class UnknownWireError(InputError):
    """No wire recognises these messages; pass `wire=` to say which one it is.

    >>> raise UnknownWireError("no wire knows the role 'x'", index=0)
    Traceback (most recent call last):
        ...
    suture.errors.UnknownWireError: message 0: no wire knows the role 'x'
    """


class AmbiguousWireError(InputError):
    """Several wires fit and would give different results; `candidates` names them.

    >>> AmbiguousWireError(("anthropic", "openai-chat")).candidates
    ('anthropic', 'openai-chat')
    """

    def __init__(self, candidates: tuple[str, ...]) -> None:
        self.candidates = candidates
        names = ", ".join(candidates)
        super().__init__(f"these messages could be any of {names}, and the results would differ; say which with wire=")


class SchemaVersionError(InputError):
    """Stored messages carry a schema version that this release cannot read.

    >>> issubclass(SchemaVersionError, InputError)
    True
    """


class ConfigError(SutureError, ValueError):
    """An argument of the call is wrong: an unknown name, or two that do not go together.

    >>> raise ConfigError("unknown profile 'opnai'; known: anthropic, openai-chat")
    Traceback (most recent call last):
        ...
    suture.errors.ConfigError: unknown profile 'opnai'; known: anthropic, openai-chat
    """


class HistoryError(SutureError):
    """A history that no operation can make acceptable; `unresolved` holds the findings that remain.

    >>> HistoryError("1 finding is left", unresolved=("…",)).unresolved
    ('…',)
    """

    def __init__(self, reason: str, *, unresolved: tuple[Any, ...] = ()) -> None:
        self.unresolved = unresolved
        super().__init__(reason)


class NotInRunError(SutureError, RuntimeError):
    """A function that belongs into a run (in a hook, a wrapper or a tool) was called outside of one.

    >>> issubclass(NotInRunError, SutureError)
    True
    """


class OffloadError(SutureError):
    """Tool output that was to be saved was not; the history is as it was. `calls` are their (name, id).

    >>> str(OffloadError([("read_log", "call_1")], "the disk is full"))
    'the output of read_log (call_1) was not saved: the disk is full'
    """

    def __init__(self, calls: Sequence[tuple[str, str]], reason: str) -> None:
        self.calls, self.reason = tuple(calls), reason
        named = ", ".join(f"{name[:64]} ({call_id[:64]})" for name, call_id in self.calls)
        super().__init__(f"the output of {named} was not saved: {reason}")

    def __reduce__(self) -> tuple[type["OffloadError"], tuple[Any, str]]:
        return OffloadError, (self.calls, self.reason)

    def joined(self, other: "OffloadError") -> "OffloadError":
        """Return one error for the calls of both; the first cause is told.

        >>> OffloadError([("a", "1")], "full").joined(OffloadError([("b", "2")], "full")).calls
        (('a', '1'), ('b', '2'))
        """
        made = OffloadError([*self.calls, *other.calls], self.reason)
        made.__cause__ = self.__cause__
        return made


class ResumeError(SutureError, ValueError):
    """A checkpoint cannot be resumed like this: it is unknown, has ended, or waits for something else.

    >>> issubclass(ResumeError, SutureError)
    True
    """


class RunError(SutureError):
    """A run could not go on.

    >>> issubclass(MaxIterationsExceeded, RunError)
    True
    """


class MaxIterationsExceeded(RunError):
    """A run took as many model turns as it may take, and the last one still asked for tools.

    >>> issubclass(MaxIterationsExceeded, RunError)
    True
    """


class BudgetExceeded(RunError):
    """A run used up its tokens, its cost or its tool calls.

    >>> issubclass(BudgetExceeded, RunError)
    True
    """


class RetryExhausted(RunError):
    """Every attempt at a model turn failed or was rejected; the last exception is the cause.

    >>> RetryExhausted("3 attempts failed", attempts=3).attempts
    3
    """

    def __init__(self, reason: str, *, attempts: int = 0, reject_reason: object = None) -> None:
        self.attempts = attempts
        self.reject_reason = reject_reason
        super().__init__(reason)


class StreamCutError(RunError):
    """A model's stream ended before its message was whole.

    >>> issubclass(StreamCutError, RunError)
    True
    """


class OutputError(RunError):
    """The final answer is not of the type that was asked for.

    >>> issubclass(OutputError, RunError)
    True
    """
