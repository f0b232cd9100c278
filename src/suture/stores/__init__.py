"""Stores keep journals, so that a run can go on after its process has died; backends keep files of tool output.

`Store` is the interface that the kernel needs; `MemoryStore`, `SQLiteStore`, `PostgresStore` and `EncryptedStore`
implement it. A store keeps bytes under the id of a run and a sequence number, and does not know what they mean.
`suture.testing.StoreContract` tests a store of your own.

`Backend` is the least that can keep tool output taken out of a conversation; `FileBackend` is the interface of the
backends here. `suture.testing.BackendContract` tests a backend of your own.
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
    """Import the stores that cost time to import when they are first used."""
    if name in _LAZY:
        return getattr(import_module(f"suture.stores.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
