"""Stores for journals, with which a run can continue after its process has died, and backends for tool output.

`Store` is the interface that the kernel needs; `MemoryStore`, `SQLiteStore` and `PostgresStore` implement it. A store
keeps bytes under the id of a run and a sequence number, and does not interpret them.
`suture.testing.StoreContract` tests a custom store.

`Backend` is the least that a place for offloaded tool output must be able to do; `FileBackend` is the interface of the
backends here. `suture.testing.BackendContract` tests a custom backend.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from suture.stores.files import LocalBackend
from suture.stores.journals import EncryptedStore, MemoryStore
from suture.stores.objects import ObjectBackend
from suture.stores.protocols import (
    Backend,
    DamagedJournalError,
    Entry,
    FileBackend,
    Lease,
    LeaseError,
    PathNotFoundError,
    PathTakenError,
    Store,
    StoreConflictError,
    StoreError,
)
from suture.stores.uploads import MemoryBackend, encode_text

if TYPE_CHECKING:
    from suture.stores.postgres import PostgresStore
    from suture.stores.sqlite import SQLiteBackend, SQLiteStore

__all__ = [
    "Backend",
    "DamagedJournalError",
    "EncryptedStore",
    "Entry",
    "FileBackend",
    "Lease",
    "LeaseError",
    "LocalBackend",
    "MemoryBackend",
    "MemoryStore",
    "ObjectBackend",
    "PathNotFoundError",
    "PathTakenError",
    "PostgresStore",
    "SQLiteBackend",
    "SQLiteStore",
    "Store",
    "StoreConflictError",
    "StoreError",
    "encode_text",
]


_LAZY = {"PostgresStore": "postgres", "SQLiteBackend": "sqlite", "SQLiteStore": "sqlite"}


def __getattr__(name: str) -> Any:
    """Import a name on first use, since not everybody needs its module."""
    if name in _LAZY:
        return getattr(import_module(f"suture.stores.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
