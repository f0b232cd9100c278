"""Suture in LangChain's agents and in deepagents. Needs the extra `langchain`.

`PatchToolCallsMiddleware` goes into `create_agent(middleware=[…])`, or into `create_deep_agent(middleware=[…])`, where
it replaces deepagents' own class of that name.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from suture._extras import import_extra

if TYPE_CHECKING:
    from suture.integrations.langchain.compaction import CompactionMiddleware
    from suture.integrations.langchain.patch import PatchToolCallsMiddleware
    from suture.integrations.langchain.reduction import ToolReductionMiddleware

__all__ = ["CompactionMiddleware", "PatchToolCallsMiddleware", "ToolReductionMiddleware"]

_HOMES = {
    "CompactionMiddleware": "compaction",
    "PatchToolCallsMiddleware": "patch",
    "ToolReductionMiddleware": "reduction",
}


def __getattr__(name: str) -> Any:
    """Load a middleware when it is first used, because the wire alone only needs langchain-core."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import_extra("langchain", "langchain")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
