"""One room for each provider: its wire, its rules, its codec and its streams. They are loaded when they are asked for."""

__all__: list[str] = []
