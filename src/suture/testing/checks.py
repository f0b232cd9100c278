"""The checks of the contracts. They are functions, because outside of test files pytest does not explain `assert`."""

import asyncio
import reprlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from itertools import cycle
from typing import Any, NamedTuple

from suture._aio import closing
from suture.stores import Lease, StoreError


class Step(NamedTuple):
    """A method to call."""

    name: str
    arguments: Sequence[Any] = ()
    options: Mapping[str, Any] = {}

    async def take(self, thing: Any) -> Any:
        """Return the result of the call: a value, or the type and the attributes of its error."""
        try:
            given = [each() if callable(each) else each for each in self.arguments]  # each call needs a new stream
            found = getattr(thing, self.name)(*given, **self.options)
            if not hasattr(found, "__aiter__"):
                found = await found
            else:  # pieces of a file have at most a mebibyte, and none is empty
                async with closing(found) as read:
                    pieces = [piece async for piece in read]
                same([len(piece) for piece in pieces if not 0 < len(piece) <= 1 << 20], [])
                found = b"".join(pieces)
        except StoreError as error:
            return type(error).__name__, vars(error)
        return found.owner if isinstance(found, Lease) else found

    def __str__(self) -> str:
        return f"{self.name}{reprlib.repr(tuple(self.arguments))}"


async def walk(things: Sequence[Any], reference: Any, steps: AsyncIterator[Step]) -> None:
    """Take the same steps with `reference` and with `things` in turn.

    Raises `AssertionError` if a step has different results.
    """
    taken: list[Step] = []
    turns = cycle(things)
    async with closing(steps) as chosen:
        async for step in chosen:
            expected, found = await step.take(reference), await step.take(next(turns))
            if found != expected:
                gap = f"{type(reference).__name__} gives {reprlib.repr(expected)}, this gives {reprlib.repr(found)}"
                raise AssertionError(f"{step}: {gap}; after {'; '.join(map(str, taken))}")
            taken.append(step)


async def cancel_after(turns: int, work: Coroutine[Any, Any, Any]) -> bool:
    """Cancel work after `turns` iterations of the event loop, wait for its end, and return whether it returned.

    >>> asyncio.run(cancel_after(3, asyncio.sleep(60))), asyncio.run(cancel_after(3, asyncio.sleep(0)))
    (False, True)
    """
    returned = False

    async def note() -> None:  # a cancellation may also come after the end of the work
        nonlocal returned
        await work
        returned = True

    task = asyncio.ensure_future(note())
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    work.close()  # if it never began
    return returned


def run_with(maker: str) -> Callable[[Callable[[Any, Any], Coroutine[Any, Any, None]]], Callable[[Any], None]]:
    """Return a decorator that turns a coroutine function into a plain test, called with what `maker` returns."""

    def decorate(test: Callable[[Any, Any], Coroutine[Any, Any, None]]) -> Callable[[Any], None]:
        def run(self: Any) -> None:
            asyncio.run(test(self, getattr(self, maker)()))

        # Not `functools.wraps`: pytest would take the argument for a fixture.
        run.__name__, run.__qualname__, run.__doc__ = test.__name__, test.__qualname__, test.__doc__
        return run

    return decorate


def same(found: object, expected: object) -> None:
    """Raise `AssertionError` unless both are equal.

    >>> same(1, 1)
    """
    if found != expected:
        raise AssertionError(f"expected {reprlib.repr(expected)}, found {reprlib.repr(found)}")


def ensure(fact: object) -> None:
    """Raise `AssertionError` unless `fact` is true.

    >>> ensure(1 < 2)
    """
    if not fact:
        raise AssertionError("that does not hold")


async def refused(call: Awaitable[Any], kind: type[Exception]) -> Any:
    """Return the error that a call raises; raise `AssertionError` if it raises none.

    >>> import asyncio
    >>> asyncio.run(refused(asyncio.sleep(0), ValueError))
    Traceback (most recent call last):
        ...
    AssertionError: no ValueError was raised
    """
    try:
        await call
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__} was raised")
