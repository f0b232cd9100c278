"""Tools: from functions and objects to what a model can call, with schemas, checked arguments and four endpoints.

Nothing here runs a loop, asks for approval or counts time: that is the kernel's.
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
