"""What the contracts check with. Not `assert`: outside of test files pytest does not say what was compared."""

import asyncio
import reprlib
from collections.abc import Callable, Coroutine
from typing import Any


def run_with(maker: str) -> Callable[[Callable[[Any, Any], Coroutine[Any, Any, None]]], Callable[[Any], None]]:
    """Return a decorator that makes a plain test of a coroutine, which is given what `maker` makes."""

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
    """Raise `AssertionError` unless something holds.

    >>> ensure(1 < 2)
    """
    if not fact:
        raise AssertionError("that does not hold")


def anything(value: object) -> Any:
    """Return a value as one of any type, where a wrong one is to be refused.

    >>> anything(7)
    7
    """
    return value


async def refused(call: Coroutine[Any, Any, Any], kind: type[Exception]) -> Any:
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
