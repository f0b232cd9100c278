"""The one bridge from plain code to a run."""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from threading import Thread
from typing import Any, TypeVar

__all__ = ["run_to_end"]

T = TypeVar("T")


def run_to_end(make: Callable[[], Awaitable[T]]) -> T:
    """Await what `make` returns, in an event loop of its own; inside a running loop that is in a thread."""

    async def work() -> T:
        return await make()

    if not _is_in_loop():
        return asyncio.run(work())
    outcome: list[Any] = []

    def in_thread() -> None:
        try:
            outcome.append((asyncio.run(work()), None))
        except BaseException as error:  # noqa: BLE001 - raised again where it was asked for
            outcome.append((None, error))

    thread = Thread(target=copy_context().run, args=(in_thread,), name="suture-run-sync")
    thread.start()
    thread.join()
    value, error = outcome[0]
    if error is not None:
        raise error
    return value


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
