"""One room for each provider: its wire, its rules, its codec and its streams. Each is loaded when it is asked for."""

__all__: list[str] = []
