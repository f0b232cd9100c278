"""`ChatModelAgent`: a model, tools and middlewares put together; the rest is the kernel's."""

from suture.agent._agent import ChatModelAgent
from suture.agent._sync import run_to_end

__all__ = ["ChatModelAgent", "run_to_end"]
