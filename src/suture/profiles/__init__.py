"""Profiles: what each provider accepts, as data. Every rule has an id, a source, and the operation that mends it.

To add a rule: one `Rule` in a provider's file, and one case in the tests' table that cites its id.
"""

from suture.errors import ConfigError
from suture.profiles._profile import IdForm, Operation, Profile, Rule
from suture.profiles.anthropic import ANTHROPIC
from suture.profiles.bedrock import BEDROCK
from suture.profiles.deepseek import DEEPSEEK
from suture.profiles.gemini import GEMINI
from suture.profiles.kimi import KIMI
from suture.profiles.minimax import MINIMAX
from suture.profiles.mistral import MISTRAL
from suture.profiles.openai_chat import OPENAI_CHAT
from suture.profiles.openai_responses import OPENAI_RESPONSES
from suture.profiles.pairing import PAIRING

__all__ = ["PROFILES", "IdForm", "Operation", "Profile", "Rule", "default_profile", "get_profile"]

_PROFILES = {
    profile.name: profile
    for profile in (
        PAIRING,
        OPENAI_CHAT,
        OPENAI_RESPONSES,
        ANTHROPIC,
        GEMINI,
        BEDROCK,
        MISTRAL,
        DEEPSEEK,
        KIMI,
        MINIMAX,
    )
}

PROFILES = tuple(_PROFILES)
"""The names of all profiles."""


def get_profile(name: str | Profile) -> Profile:
    """Return the profile called `name`; one of your own is its own name.

    >>> get_profile("mistral").ids.limit
    9
    """
    if isinstance(name, Profile):
        return name
    try:
        return _PROFILES[name]
    except (KeyError, TypeError):
        raise ConfigError(f"unknown profile {name!r}; known: {', '.join(PROFILES)}") from None


def default_profile(wire: str) -> Profile:
    """Return the profile a wire has by default: its own provider's, `pairing` for the native ones.

    >>> default_profile("anthropic").name, default_profile("message").name
    ('anthropic', 'pairing')
    """
    return _PROFILES.get(wire, PAIRING)
