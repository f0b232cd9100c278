"""Suture together with other software: MCP servers, OpenTelemetry, other frameworks, the SDKs' clients.

Nothing is imported here. Each module needs the package that it is named after, which its extra installs; import the
modules that you use.
"""

__all__: list[str] = []
