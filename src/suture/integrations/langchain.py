"""Suture in LangChain's agents and in deepagents. Needs `suture[langchain]`.

`PatchToolCallsMiddleware` goes into `create_agent(middleware=[…])`, and into `create_deep_agent(middleware=[…])`, where
it takes the place of deepagents' own class of that name.
"""

from suture.integrations._langchain_patch import PatchToolCallsMiddleware
from suture.integrations._langchain_reduction import ToolReductionMiddleware

__all__ = ["PatchToolCallsMiddleware", "ToolReductionMiddleware"]
