"""Suture with other software: MCP servers, OpenTelemetry, Temporal, other frameworks, and the SDKs' clients.

Nothing is imported here. Each module needs the package it is named after; import the one that you use.
"""

__all__: list[str] = []
