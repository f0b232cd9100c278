"""Journals: what a run wrote down, so that it can go on after the process has died.

`Store` is what the kernel needs; `MemoryStore` and `SQLiteStore` are two of them. A store keeps bytes under the
id of a run and a sequence number, and knows nothing of what they say. `suture.testing.StoreContract` tests a
store of your own.
"""

from suture.stores._errors import StoreConflictError, StoreError
from suture.stores._store import Store
from suture.stores.memory import MemoryStore
from suture.stores.sqlite import SQLiteStore

__all__ = ["MemoryStore", "SQLiteStore", "Store", "StoreConflictError", "StoreError"]
