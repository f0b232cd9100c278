"""What goes wrong between Suture and an MCP server."""

from suture.errors import SutureError

__all__ = ["MCPServerError"]


class MCPServerError(SutureError, ConnectionError):
    """An MCP server could not be reached, went away, or answered with what cannot be used; says which, and why.

    Raised where a server is entered. In a tool call it is told to the model, like every exception of a tool.

    >>> from suture.integrations.mcp import MCPServerError
    >>> issubclass(MCPServerError, ConnectionError)
    True
    """
