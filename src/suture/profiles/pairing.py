"""Structure alone: what every provider demands of calls and results."""

from suture.profiles._profile import NEUTRAL, Profile
from suture.profiles._rules import rules

__all__ = ["PAIRING"]

PAIRING = Profile(
    name="pairing",
    wires=(*NEUTRAL, "openai-chat", "openai-responses", "anthropic", "gemini", "bedrock"),
    adjacent=False,
    rules=rules(
        "pairing",
        answered="common to all providers",
        has_call="common to all providers",
        single_result="common to all providers",
        adjacent="common to all providers",
    ),
)
