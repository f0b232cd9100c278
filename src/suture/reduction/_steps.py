"""Questions that a plan asks on its way: handlers and path makers, which may be async.

A plan is made by a generator that yields what is to be called and is sent what came of it. So it is written once,
and whoever drives it decides whether answers are awaited.
"""

from collections.abc import Callable, Generator
from typing import Any, NamedTuple, NoReturn, TypeAlias, TypeVar, cast

from suture.errors import ConfigError

__all__ = ["Ask", "Steps", "ask", "carry_through", "carry_through_async"]

T = TypeVar("T")


class Ask(NamedTuple):
    """A function to be called with these arguments."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


Steps: TypeAlias = Generator[Ask, Any, T]


def ask(function: Callable[..., Any], *arguments: Any) -> Steps[Any]:
    """Ask for `function(*arguments)`.

    >>> carry_through(ask(len, "abc"))
    3
    """
    return (yield Ask(function, arguments))


async def carry_through_async(steps: Steps[T], *, waits: bool = True) -> T:
    """Return what `steps` come to; answers are awaited where they must be, or refused if nobody `waits`."""
    wanted, end = _go_on(steps.send, None)
    while wanted is not None:
        try:
            answer: Any = wanted.function(*wanted.arguments)
            if hasattr(answer, "__await__"):
                answer = await (answer if waits else _refuse(wanted.function, answer))
        except Exception as error:  # noqa: BLE001 - it is for the steps to say what it means
            wanted, end = _go_on(steps.throw, error)
        else:
            wanted, end = _go_on(steps.send, answer)
    return cast("T", end)


def carry_through(steps: Steps[T]) -> T:
    """Return what `steps` come to; an async answer is refused."""
    work = carry_through_async(steps, waits=False)
    try:
        work.send(None)  # it never waits, so it is through at once
    except StopIteration as end:
        return end.value
    finally:
        work.close()
    raise RuntimeError("a plan waited for something")


def _refuse(function: Callable[..., Any], answer: Any) -> NoReturn:
    getattr(answer, "close", int)()
    name = getattr(function, "__qualname__", repr(function))
    raise ConfigError(f"{name} is async; only ToolReduction, inside an agent, can await it")


def _go_on(step: Callable[[Any], Ask], given: Any) -> tuple[Ask | None, Any]:
    """Return what is asked next, or what the steps came to."""
    try:
        return step(given), None
    except StopIteration as end:
        return None, end.value
