"""What helps to test agents and their parts."""

from suture.testing._backend_contract import BackendContract
from suture.testing._scripted import ScriptedModel
from suture.testing._store_contract import StoreContract

__all__ = ["BackendContract", "ScriptedModel", "StoreContract"]
