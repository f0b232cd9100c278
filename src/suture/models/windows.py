"""The context windows of known models, as data: how many tokens a request and its reply may have together.

Look at the page that is named where a window matters: no test can ask the providers, and windows change. A model that
is not here has no known window; `Compaction(max_tokens=…)` or `model.context_window` says it then. The most specific
name wins: `gpt-4.1-mini` is found by `gpt-4.1`, not by `gpt-4`.
"""

__all__ = ["WINDOWS", "context_window"]

WINDOWS: dict[str, int] = {
    # https://platform.openai.com/docs/models
    "gpt-5": 400_000,
    "gpt-5-chat": 128_000,
    "gpt-4.1": 1_047_576,
    "gpt-4o": 128_000,
    "gpt-4-turbo": 128_000,
    "gpt-4": 8_192,
    "gpt-3.5-turbo": 16_385,
    "gpt-oss": 131_072,
    "o1": 200_000,
    "o1-mini": 128_000,
    "o3": 200_000,
    "o4-mini": 200_000,
    "codex-mini": 200_000,
    # https://docs.anthropic.com/en/docs/about-claude/models: a longer window is asked for by a header of its own
    "claude": 200_000,
    # https://ai.google.dev/gemini-api/docs/models: what is said there is the limit of the input
    "gemini-1.5-pro": 2_097_152,
    "gemini-1.5-flash": 1_048_576,
    "gemini-2": 1_048_576,
    "gemini-3": 1_048_576,
    # https://api-docs.deepseek.com/quick_start/pricing
    "deepseek-chat": 128_000,
    "deepseek-reasoner": 128_000,
    # https://platform.moonshot.ai/docs; MoonshotAI/kimi-cli#2011 shows 262144
    "kimi-k2": 262_144,
    "kimi-k2-instruct": 131_072,
    "moonshot-v1-8k": 8_192,
    "moonshot-v1-32k": 32_768,
    "moonshot-v1-128k": 131_072,
    # https://docs.mistral.ai/getting-started/models
    "mistral-large": 131_072,
    "mistral-medium": 131_072,
    "mistral-small": 131_072,
    "codestral": 262_144,
    "devstral": 131_072,
    "ministral": 131_072,
    "magistral": 40_960,
    # https://docs.x.ai/docs/models
    "grok-3": 131_072,
    "grok-4": 262_144,
    # https://platform.minimax.io/docs
    "minimax-m1": 1_000_000,
    "minimax-m2": 204_800,
    # https://docs.aws.amazon.com/nova/latest/userguide/what-is-nova.html
    "nova-micro": 128_000,
    "nova-lite": 300_000,
    "nova-pro": 300_000,
}
"""How many tokens, by the beginning of a model's name."""


def context_window(model: str) -> int | None:
    """Return how many tokens the model called `model` takes; `None` where that is not known.

    A provider's own prefix does not matter: routers write `anthropic/claude-…`, Bedrock `us.anthropic.claude-…`.

    >>> context_window("gpt-4.1-mini"), context_window("us.anthropic.claude-sonnet-4-5-v1:0"), context_window("my-own")
    (1047576, 200000, None)
    """
    name = model.lower().rpartition("/")[2]
    names = [name, *[name[at + 1 :] for at, letter in enumerate(name) if letter == "."]]
    found = [
        known for known in WINDOWS for each in names if each == known or each.startswith((f"{known}-", f"{known}."))
    ]
    return WINDOWS[max(found, key=len)] if found else None
