"""A scripted model for testing agents, and contracts for testing stores and backends."""

from suture.testing._scripted import ScriptedModel
from suture.testing.backend_contract import BackendContract
from suture.testing.store_contract import StoreContract

__all__ = ["BackendContract", "ScriptedModel", "StoreContract"]
