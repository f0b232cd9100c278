"""What can go wrong with a store."""

from suture.errors import SutureError

__all__ = ["StoreConflictError", "StoreError"]


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
