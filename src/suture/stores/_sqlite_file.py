"""`SQLiteFile`: what a store and a backend in a SQLite file have alike, from its options to how work is done in it."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Literal, Self, TypeAlias, TypeVar

from suture.errors import ConfigError
from suture.stores._errors import StoreError
from suture.stores._store import check_seconds
from suture.stores._threads import in_thread, to_its_end

if TYPE_CHECKING:
    from sqlite3 import Connection

__all__ = ["PAGE", "SQLiteFile", "Way"]

_Result = TypeVar("_Result")

# How a piece of work is done: takes the work, and what to say if it is not done.
Way: TypeAlias = "Callable[[Callable[[Connection], _Result], Callable[[], str]], Awaitable[_Result]]"

PAGE: Final = 4096
"""How many bytes a page of the file has, which is the least that changes."""

_PAUSES: Final = (0.001, 0.002, 0.005, 0.01, 0.015, 0.025)


class SQLiteFile:
    """A SQLite file of a certain kind, opened at the first use, which work is done in one way or another."""

    _kind: ClassVar[str]
    """The kind of file, one of `suture.stores._database.KINDS`."""

    _in_memory: ClassVar[str]
    """What does the same in memory."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        synchronous: Literal["normal", "full"] = "normal",
        busy_timeout: float = 5.0,
    ) -> None:
        if synchronous not in ("normal", "full"):
            raise ConfigError(f"synchronous is 'normal' or 'full', not {synchronous!r}")
        check_seconds("busy_timeout", busy_timeout)
        # `sqlite3` is paid for by those who use it.
        from suture.stores._database import KINDS, Busy, Database, Occupied  # noqa: PLC0415

        self._busy, self._occupied = Busy, Occupied
        self._database = Database(self._checked(path), synchronous, KINDS[self._kind])
        self._quick = synchronous == "normal"
        self._busy_timeout = busy_timeout

    @property
    def path(self) -> str:
        """The absolute path of the file."""
        return self._database.path

    def close(self) -> None:
        """Close the file. It cannot be used any more; closing it again does nothing."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.path!r})"

    def _checked(self, path: str | os.PathLike[str]) -> str:
        given = os.fspath(path)
        if not isinstance(given, str) or not given or "\0" in given:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"the path of a {type(self).__name__} is the text of a file's path, not {given!r}")
        if given == ":memory:":
            raise ConfigError(f"a {type(self).__name__} keeps a file; in memory use {self._in_memory}()")
        return str(Path(given).absolute())

    async def _patiently(
        self, way: "Way[_Result]", work: "Callable[[Connection], _Result]", undone: Callable[[], str]
    ) -> _Result:
        """Do `work` the given way; again while another thread or, up to the timeout, another process is at it."""
        attempt, deadline = 0, 0.0
        while True:
            try:
                return await way(work, undone)
            except self._occupied:
                pass
            except self._busy:
                now = time.monotonic()
                deadline = deadline or now + self._busy_timeout
                if now >= deadline:
                    held = f"another writer has held the lock of the file for {self._busy_timeout:g} s"
                    raise StoreError(f"{self.path}: {undone()}: {held}") from None
            await asyncio.sleep(_PAUSES[min(attempt, len(_PAUSES) - 1)])
            attempt += 1

    async def _at_once(self, work: "Callable[[Connection], _Result]", undone: Callable[[], str]) -> _Result:
        """Do `work` right here. Whoever is cancelled meanwhile has not got that far, or is through."""
        if not self._database.opened:
            await self._in_thread(lambda _: None, undone)
        return self._database.perform(work, undone, wait=False)

    async def _in_thread(self, work: "Callable[[Connection], _Result]", undone: Callable[[], str]) -> _Result:
        """Do `work` in a thread; it goes on if this task is cancelled."""
        return await in_thread(partial(self._database.perform, work, undone, wait=True))

    async def _to_its_end(self, work: "Callable[[Connection], _Result]", undone: Callable[[], str]) -> _Result:
        """Do `work` in a thread and wait for it. If this task is cancelled meanwhile, that takes effect afterwards."""
        return await to_its_end(in_thread(partial(self._database.perform, work, undone, wait=True)))
