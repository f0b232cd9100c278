"""What outlives a step: journals, so that a run can go on after its process has died, and files of tool output.

`Store` is what the kernel needs of a journal; `MemoryStore` and `SQLiteStore` are two of them. A store keeps bytes
under the id of a run and a sequence number, and knows nothing of what they say. `suture.testing.StoreContract` tests
a store of your own.

`Backend` is what keeps tool output that was taken out of a conversation; `FileBackend` is what the backends here can
do. `suture.testing.BackendContract` tests a backend of your own.
"""

from suture.stores._backend import Backend, FileBackend, encode_text
from suture.stores._errors import PathNotFoundError, PathTakenError, StoreConflictError, StoreError
from suture.stores._store import Store
from suture.stores.local_backend import LocalBackend
from suture.stores.memory import MemoryStore
from suture.stores.memory_backend import MemoryBackend
from suture.stores.object_backend import ObjectBackend
from suture.stores.sqlite import SQLiteStore
from suture.stores.sqlite_backend import SQLiteBackend

__all__ = [
    "Backend",
    "FileBackend",
    "LocalBackend",
    "MemoryBackend",
    "MemoryStore",
    "ObjectBackend",
    "PathNotFoundError",
    "PathTakenError",
    "SQLiteBackend",
    "SQLiteStore",
    "Store",
    "StoreConflictError",
    "StoreError",
    "encode_text",
]
