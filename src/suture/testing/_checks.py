"""What the contracts check with. Not `assert`: outside of test files pytest does not say what was compared."""

import reprlib
from collections.abc import Coroutine
from typing import Any

__all__ = ["anything", "refused", "same"]


def same(found: object, expected: object) -> None:
    """Raise `AssertionError` unless both are equal.

    >>> same(1, 1)
    """
    if found != expected:
        raise AssertionError(f"expected {reprlib.repr(expected)}, found {reprlib.repr(found)}")


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
