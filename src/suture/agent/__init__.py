"""`ChatModelAgent`: a model, tools and middlewares put together; the rest is the kernel's."""

from suture.agent._agent import ChatModelAgent

__all__ = ["ChatModelAgent"]
