"""The context windows of known models, as data: how many tokens a request may have.

Two public catalogues were compared: `models.dev` (github.com/anomalyco/models.dev, 2 July 2026) and LiteLLM's
`model_prices_and_context_window.json` (github.com/BerriAI/litellm, 8 August 2026). The comments name the providers' own
pages, to look things up; of these only Anthropic's was read. Where they differ the smaller number is here: it costs an
earlier compaction, the larger one a refused request. Where a provider limits the input by itself (OpenAI since GPT-5),
that limit is here.

No test can ask the providers, and windows change: look at the page where one matters. A model that is not here has no
known window; `Compaction(max_tokens=…)` or `model.context_window` says it then. The most specific name wins:
`gpt-4.1-mini` is found by `gpt-4.1`, not by `gpt-4`.
"""

__all__ = ["WINDOWS", "context_window"]

WINDOWS: dict[str, int] = {
    # OpenAI, "Models" (developers.openai.com/api/docs/models); both catalogues, gpt-5-chat and o1-mini LiteLLM alone
    "gpt-3.5-turbo": 16_385,
    "gpt-4": 8_192,
    "gpt-4-turbo": 128_000,
    "gpt-4o": 128_000,
    "gpt-4.1": 1_047_576,
    "gpt-5": 272_000,
    "gpt-5-chat": 128_000,
    "gpt-5.1-chat": 128_000,
    "gpt-5.2-chat": 128_000,
    "gpt-5.3-chat": 128_000,
    "gpt-5.3-codex-spark": 100_000,
    "gpt-5.4": 922_000,
    "gpt-5.4-mini": 272_000,
    "gpt-5.4-nano": 272_000,
    "gpt-5.5": 922_000,
    "gpt-oss": 128_000,
    "o1": 200_000,
    "o1-mini": 128_000,
    "o3": 200_000,
    "o4-mini": 200_000,
    "codex-mini": 200_000,
    # Anthropic, "Models overview" (platform.claude.com/docs/en/models/overview) and both catalogues
    "claude": 200_000,
    "claude-fable-5": 1_000_000,
    "claude-opus-4-6": 1_000_000,
    "claude-opus-4-7": 1_000_000,
    "claude-opus-4-8": 1_000_000,
    "claude-opus-5": 1_000_000,
    "claude-sonnet-4-6": 1_000_000,
    "claude-sonnet-5": 1_000_000,
    # Google, "Gemini models" (ai.google.dev/gemini-api/docs/models), the limit of the input; both catalogues
    "gemini-2.0-flash": 1_048_576,
    "gemini-2.5-flash": 1_048_576,
    "gemini-2.5-flash-image": 32_768,
    "gemini-2.5-pro": 1_048_576,
    "gemini-3-flash": 1_048_576,
    "gemini-3-pro": 1_048_576,
    "gemini-3-pro-image": 65_536,
    "gemini-3.1-flash-lite": 1_048_576,
    "gemini-3.1-pro": 1_048_576,
    "gemini-3.5-flash": 1_048_576,
    # DeepSeek, "Models & Pricing" (api-docs.deepseek.com/quick_start/pricing); the catalogues differ on the aliases
    "deepseek-chat": 128_000,
    "deepseek-reasoner": 128_000,
    "deepseek-v4": 1_000_000,
    # Moonshot, "Main concepts" (platform.moonshot.ai/docs); both catalogues, v1 and instruct LiteLLM alone
    "kimi-k2": 262_144,
    "kimi-k2-0711": 131_072,
    "kimi-k2-instruct": 131_072,
    "moonshot-v1-8k": 8_192,
    "moonshot-v1-32k": 32_768,
    "moonshot-v1-128k": 131_072,
    # Mistral, "Models" (docs.mistral.ai/getting-started/models); older releases of a name have the smaller window
    "mistral-large": 128_000,
    "mistral-large-latest": 262_144,
    "mistral-large-2512": 262_144,
    "mistral-medium-2505": 131_072,
    "mistral-medium-2508": 131_072,
    "mistral-medium-2604": 262_144,
    "mistral-small-latest": 131_072,
    "mistral-small-2506": 128_000,
    "codestral-2508": 256_000,
    "devstral": 128_000,
    "devstral-latest": 256_000,
    "devstral-2512": 256_000,
    "ministral": 128_000,
    "magistral": 40_000,
    # xAI, "Models" (docs.x.ai/docs/models); grok-3, grok-4 and grok-code LiteLLM alone
    "grok-3": 131_072,
    "grok-4": 256_000,
    "grok-4.20": 1_000_000,
    "grok-4.3": 1_000_000,
    "grok-4.5": 500_000,
    "grok-code-fast": 256_000,
    # MiniMax, "Models" (platform.minimax.io/docs); both catalogues
    "minimax-m2": 196_608,
    "minimax-m3": 1_000_000,
    # Amazon, "What is Amazon Nova?" (docs.aws.amazon.com/nova/latest/userguide); both catalogues
    "nova-micro": 128_000,
    "nova-lite": 300_000,
    "nova-pro": 300_000,
}
"""How many tokens, by the beginning of a model's name."""


def context_window(model: str) -> int | None:
    """Return how many tokens a request to the model called `model` may have; `None` where that is not known.

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
