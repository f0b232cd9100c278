"""What can go wrong with a store."""

from suture.errors import SutureError

__all__ = ["PathNotFoundError", "PathTakenError", "StoreConflictError", "StoreError", "shown"]


class StoreError(SutureError):
    """A store cannot be opened, read or written; what was to be written is not there, not even in part.

    >>> from suture.stores import StoreError
    >>> raise StoreError("/data/runs.db: record 3 of run 'a' was not written: the disk is full")
    Traceback (most recent call last):
        ...
    suture.stores._errors.StoreError: /data/runs.db: record 3 of run 'a' was not written: the disk is full
    """


class StoreConflictError(StoreError):
    """Somebody else writes the same run: the next record of `run` is number `expected`, not `given`.

    >>> from suture.stores import StoreConflictError
    >>> StoreConflictError("a", given=3, expected=5).expected
    5
    """

    def __init__(self, run: str, *, given: int, expected: int) -> None:
        self.run = run
        self.given = given
        self.expected = expected
        fault = "is taken" if given < expected else "would leave a gap"
        super().__init__(
            f"record {given} of run {run!r} {fault}: the next one is {expected}. "
            "Something else has written or deleted this run; load it again, or give each writer a run of its own"
        )


class PathTakenError(StoreError):
    """A backend has a file at `path` already, which is as it was: a saved file is never overwritten.

    >>> from suture.stores import PathTakenError
    >>> PathTakenError("/run-1/trunc/call_1").path
    '/run-1/trunc/call_1'
    """

    def __init__(self, path: str, reason: str = "a saved file is never overwritten") -> None:
        self.path = path
        super().__init__(f"{shown(path)} is taken: {reason}; choose another path")


class PathNotFoundError(StoreError):
    """A backend has no file at `path`.

    >>> from suture.stores import PathNotFoundError
    >>> raise PathNotFoundError("/run-1/a")
    Traceback (most recent call last):
        ...
    suture.stores._errors.PathNotFoundError: there is no file at '/run-1/a'; it was never written, or is deleted
    """

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"there is no file at {shown(path)}; it was never written, or is deleted")


def shown(path: object) -> str:
    r"""Return what an error says of a path: in quotes, no control characters, and not endless.

    >>> shown("/run\n1/" + "x" * 500)
    "'/run\\n1/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx … xxxxxxxxxxxxxxxxxxx'"
    """
    if isinstance(path, str) and len(path) > 200:
        path = path[:100] + path[-100:]
    text = repr(path)
    return text if len(text) <= 80 else f"{text[:40]} … {text[-20:]}"
