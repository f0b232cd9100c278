"""Structure alone: what every provider demands of calls and results."""

from suture.profiles._profile import Profile, structure

__all__ = ["PAIRING"]

_SOURCE = "common to all providers"

PAIRING = Profile(
    name="pairing",
    wires=("message", "agentic", "openai-chat", "openai-responses", "anthropic", "gemini", "bedrock"),
    rules=structure("pairing", answered=_SOURCE, orphaned=_SOURCE, single=_SOURCE, adjacent=_SOURCE),
    adjacent=False,
)
