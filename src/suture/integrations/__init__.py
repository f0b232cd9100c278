"""Suture together with what others speak: tools of MCP servers, OpenTelemetry. Each file needs an extra of its own.

Nothing is imported here: `suture.integrations.mcp` and `suture.integrations.otel` are imported by those who use them.
"""

__all__: list[str] = []
