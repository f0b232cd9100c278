"""`EncryptedStore`: journals that nobody reads or changes without the key, in any other store."""

from collections.abc import Sequence
from os import urandom

from suture.errors import ConfigError
from suture.stores.protocols import DamagedJournalError, Entry, Lease, Store, check_append

_NONCE = 12
_APPENDED, _CLAIMED = b"a", b"c"


class EncryptedStore:
    """A store that encrypts each record (AES-GCM) before another store keeps it.

    What was changed is a `DamagedJournalError` when it is read, and so is a record that stands at another number of its
    run than it was appended at. The ids of runs, the keys of records, how many there are and how long, are not hidden.

    Args:
        store: keeps the records.
        keys: of 16, 24 or 32 bytes. The first one encrypts; with older ones behind it, what they encrypted is read.

    >>> import asyncio
    >>> from suture.stores import EncryptedStore, MemoryStore
    >>> inner = MemoryStore()
    >>> store = EncryptedStore(inner, b"0123456789abcdef")
    >>> asyncio.run(store.append("run-1", 0, [b"started"]))
    >>> asyncio.run(store.load("run-1")), b"started" in asyncio.run(inner.load("run-1"))[0]
    ([b'started'], False)
    """

    def __init__(self, store: Store, *keys: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - an extra

        if not keys or any(len(key) not in (16, 24, 32) for key in keys):
            raise ConfigError("an EncryptedStore takes keys of 16, 24 or 32 bytes; os.urandom(32) makes one")
        self.store = store
        self._ciphers = [AESGCM(key) for key in keys]

    async def append(self, run: str, first: int, records: Sequence[bytes], *, owner: str | None = None) -> None:
        """Write `records` as number `first`, `first` + 1, … of `run`: all of them, or none."""
        check_append(run, first, records, owner)
        await self.store.append(run, first, self._seal_all(records, first), owner=owner)

    async def replace(self, run: str, length: int, records: Sequence[bytes], *, owner: str | None = None) -> None:
        """Put `records` in the place of all records of `run`, which are `length`, at once."""
        check_append(run, length, records, owner)
        await self.store.replace(run, length, self._seal_all(records, 0), owner=owner)

    async def claim(self, run: str, key: str, record: bytes) -> Entry:
        """Write a record under a key as the next one of `run`, unless there is one; return what is under the key."""
        check_append(run, 0, [record])
        number, sealed = await self.store.claim(run, key, self._seal(_CLAIMED, record, 0))
        return Entry(number, self._open(run, sealed, number))

    async def load(self, run: str, first: int = 0) -> list[bytes]:
        """Return the records of `run` from number `first` on, in order; none if there is no such run."""
        return [self._open(run, sealed, first + at) for at, sealed in enumerate(await self.store.load(run, first))]

    async def fork(self, run: str, position: int, new_run: str) -> None:
        """Let `new_run` begin with the records of `run` below `position`, without copying them."""
        await self.store.fork(run, position, new_run)

    async def delete(self, run: str) -> None:
        """Delete `run`, the runs nested in it, and their leases."""
        await self.store.delete(run)

    async def runs(self) -> list[str]:
        """Return the ids of all runs, the one that changed last first."""
        return await self.store.runs()

    async def expire(self, seconds: float) -> int:
        """Delete the runs that, with all those nested in them, have not changed for `seconds`; return how many."""
        return await self.store.expire(seconds)

    async def acquire(self, run: str, owner: str, seconds: float, *, queue: bool = False) -> bool:
        """Take the lease of `run` for `seconds`, or a place in the queue for it; return whether it is `owner`'s now."""
        return await self.store.acquire(run, owner, seconds, queue=queue)

    async def renew(self, run: str, owner: str, seconds: float) -> bool:
        """Hold a lease for `seconds` from now on; return `False` if it is not `owner`'s any more."""
        return await self.store.renew(run, owner, seconds)

    async def release(self, run: str, owner: str) -> None:
        """Give the lease of `run` back, if it is `owner`'s."""
        await self.store.release(run, owner)

    async def lease(self, run: str) -> Lease | None:
        """Return who holds the lease of `run`, if anybody does."""
        return await self.store.lease(run)

    def _seal_all(self, records: Sequence[bytes], first: int) -> list[bytes]:
        return [self._seal(_APPENDED, record, first + at) for at, record in enumerate(records)]

    def _seal(self, kind: bytes, record: bytes, number: int) -> bytes:
        nonce = urandom(_NONCE)
        return kind + nonce + self._ciphers[0].encrypt(nonce, record, kind + number.to_bytes(8, "big"))

    def _open(self, run: str, sealed: bytes, number: int) -> bytes:
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - an extra

        kind, nonce, body = sealed[:1], sealed[1 : 1 + _NONCE], sealed[1 + _NONCE :]
        about = kind + (number if kind == _APPENDED else 0).to_bytes(8, "big")
        for cipher in self._ciphers:
            try:
                return cipher.decrypt(nonce, body, about)
            except (InvalidTag, ValueError):
                continue
        raise DamagedJournalError(f"record {number} of run {run!r} was changed, or encrypted with another key")
