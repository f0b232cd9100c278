"""Tools: from functions and objects to what a model can call, with schemas, checked arguments and four endpoints.

Nothing here runs a loop, asks for approval or counts time: that is the kernel's.
"""

from suture.tools._collect import as_tools
from suture.tools._errors import ToolArgumentsError, ToolDependencyError
from suture.tools._exit import exit_tool
from suture.tools._function import tool
from suture.tools._signature import Injected
from suture.tools._tool import AnyTool, Kind, Tool, ToolObject

__all__ = [
    "AnyTool",
    "Injected",
    "Kind",
    "Tool",
    "ToolArgumentsError",
    "ToolDependencyError",
    "ToolObject",
    "as_tools",
    "exit_tool",
    "tool",
]
