"""Whose rules hold: the profile that goes with the name by which a framework knows a provider."""

from msgspec.structs import replace

from suture.profiles import IdForm, Profile, get_profile, rules

__all__ = ["profile_of"]

_PROFILES = (
    ("anthropic", "anthropic"),
    ("claude", "anthropic"),
    ("bedrock", "bedrock"),
    ("gemini", "gemini"),
    ("google", "gemini"),
    ("vertex", "gemini"),
    ("mistral", "mistral"),
    ("deepseek", "deepseek"),
    ("moonshot", "kimi"),
    ("kimi", "kimi"),
    ("minimax", "minimax"),
    ("openai", "openai-chat"),
    ("azure", "openai-chat"),
    ("openrouter", "openai-chat"),
    ("fireworks", "openai-chat"),
    ("together", "openai-chat"),
    ("cerebras", "openai-chat"),
    ("nvidia", "openai-chat"),
    ("litellm", "openai-chat"),
    ("ollama", "openai-chat"),
    ("groq", "openai-chat"),
    ("grok", "openai-chat"),
    ("xai", "openai-chat"),
    ("vllm", "openai-chat"),
)
"""What a provider's name holds, and its profile. The first that fits counts: a Claude at Google's is Anthropic's."""

_STRICTEST = replace(
    get_profile("anthropic"),
    name="strictest",
    rules=(*get_profile("anthropic").rules, *rules("strictest", own_results="as Chat Completions")),
    ids=IdForm(pattern="[a-zA-Z0-9_-]+", limit=40, scope="history", prefix="toolu_", length=30),
)
"""Anthropic's rules, ids as short and turns as split as OpenAI wants them: what nearly every provider accepts."""


def profile_of(provider: str) -> Profile:
    """Return the profile of a provider by any of its names; for one that nobody knows, the strictest rules.

    The name may be a framework's own (`google_vertexai`, `amazon_bedrock`) or that of a class (`ChatOpenAI`).

    >>> profile_of("openai").name, profile_of("google_genai").name, profile_of("ChatMistralAI").name
    ('openai-chat', 'gemini', 'mistral')
    >>> profile_of("somebody else's").name
    'strictest'
    """
    name = provider.lower()
    known = next((profile for part, profile in _PROFILES if part in name), None)
    return _STRICTEST if known is None else get_profile(known)
