"""Suture together with what others speak: tools of MCP servers, OpenTelemetry, other frameworks, the SDKs' clients.

Nothing is imported here. Each module needs what it is named after, which its extra brings, and is imported by those who
use it.
"""

__all__: list[str] = []
