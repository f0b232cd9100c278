"""Tools: made from functions and objects, with schemas, checked arguments and four kinds of endpoints.

The loop, approvals and timeouts are the kernel's.
"""

from suture.tools.definition import AnyTool, Tool, ToolObject, as_tools, exit_tool, tool
from suture.tools.execution import Kind, RunContext, ToolArgumentsError

__all__ = [
    "AnyTool",
    "Kind",
    "RunContext",
    "Tool",
    "ToolArgumentsError",
    "ToolObject",
    "as_tools",
    "exit_tool",
    "tool",
]
