"""What helps to test agents and their parts."""

from suture.testing._scripted import ScriptedModel
from suture.testing._store_contract import StoreContract

__all__ = ["ScriptedModel", "StoreContract"]
