"""The context windows of known models, as data: how many tokens a request may have.

Two public catalogues were compared: `models.dev` (github.com/anomalyco/models.dev, 2 July 2026) and LiteLLM's
`model_prices_and_context_window.json` (github.com/BerriAI/litellm, 8 August 2026). The comments name the providers' own
pages for reference; of these only Anthropic's was read. If the catalogues differ, the smaller number is used: it costs
an earlier compaction, while the larger one could cost a refused request. If a provider has a separate limit for the
input (OpenAI since GPT-5), that limit is used.

No test can ask the providers, and windows change: check the page if one matters. A model that is not listed has no
known window; set `Compaction(max_tokens=…)` or `model.context_window` then. The most specific name wins:
`gpt-4.1-mini` is found by `gpt-4.1`, not by `gpt-4`.
"""

from collections.abc import Iterable

__all__ = ["WINDOWS", "context_window", "find_name"]

_SIZES = (
    # OpenAI, "Models" (developers.openai.com/api/docs/models); both catalogues, gpt-5-chat and o1-mini LiteLLM alone
    (16_385, "gpt-3.5-turbo"),
    (8_192, "gpt-4"),
    (128_000, "gpt-4-turbo gpt-4o gpt-5-chat gpt-5.1-chat gpt-5.2-chat gpt-5.3-chat gpt-oss o1-mini"),
    (1_047_576, "gpt-4.1"),
    (272_000, "gpt-5 gpt-5.4-mini gpt-5.4-nano"),
    (100_000, "gpt-5.3-codex-spark"),
    (922_000, "gpt-5.4 gpt-5.5"),
    (200_000, "o1 o3 o4-mini codex-mini"),
    # Anthropic, "Models overview" (platform.claude.com/docs/en/models/overview) and both catalogues
    (200_000, "claude"),
    (1_000_000, "claude-opus-4-6 claude-opus-4-7 claude-opus-4-8 claude-opus-5"),
    (1_000_000, "claude-fable-5 claude-sonnet-4-6 claude-sonnet-5"),
    # Google, "Gemini models" (ai.google.dev/gemini-api/docs/models), the limit of the input; both catalogues
    (1_048_576, "gemini-2.0-flash gemini-2.5-flash gemini-2.5-pro gemini-3-flash gemini-3-pro"),
    (1_048_576, "gemini-3.1-flash-lite gemini-3.1-pro gemini-3.5-flash"),
    (32_768, "gemini-2.5-flash-image"),
    (65_536, "gemini-3-pro-image"),
    # DeepSeek, "Models & Pricing" (api-docs.deepseek.com/quick_start/pricing); the catalogues differ on the aliases
    (128_000, "deepseek-chat deepseek-reasoner"),
    (1_000_000, "deepseek-v4"),
    # Moonshot, "Main concepts" (platform.moonshot.ai/docs); both catalogues, v1 and instruct LiteLLM alone
    (262_144, "kimi-k2"),
    (131_072, "kimi-k2-0711 kimi-k2-instruct moonshot-v1-128k"),
    (8_192, "moonshot-v1-8k"),
    (32_768, "moonshot-v1-32k"),
    # Mistral, "Models" (docs.mistral.ai/getting-started/models); older releases of a name have the smaller window
    (128_000, "mistral-large mistral-small-2506 devstral ministral"),
    (262_144, "mistral-large-latest mistral-large-2512 mistral-medium-2604"),
    (131_072, "mistral-medium-2505 mistral-medium-2508 mistral-small-latest"),
    (256_000, "codestral-2508 devstral-latest devstral-2512"),
    (40_000, "magistral"),
    # xAI, "Models" (docs.x.ai/docs/models); grok-3, grok-4 and grok-code LiteLLM alone
    (131_072, "grok-3"),
    (256_000, "grok-4 grok-code-fast"),
    (1_000_000, "grok-4.20 grok-4.3"),
    (500_000, "grok-4.5"),
    # MiniMax, "Models" (platform.minimax.io/docs); both catalogues
    (196_608, "minimax-m2"),
    (1_000_000, "minimax-m3"),
    # Amazon, "What is Amazon Nova?" (docs.aws.amazon.com/nova/latest/userguide); both catalogues
    (128_000, "nova-micro"),
    (300_000, "nova-lite nova-pro"),
)
WINDOWS: dict[str, int] = {name: size for size, names in _SIZES for name in names.split()}
"""The window in tokens, by the beginning of a model's name."""


def find_name(model: str, names: Iterable[str]) -> str:
    """Return the most specific of `names` that the model called `model` begins with; empty if none does.

    Prefixes do not matter: routers write `anthropic/claude-…`, Bedrock `us.anthropic.claude-…`. Nor does it whether a
    version has dots or dashes, or what follows a colon.

    >>> find_name("anthropic/claude-opus-4.7:thinking", ["claude", "claude-opus-4-7"]), find_name("my-own", ["claude"])
    ('claude-opus-4-7', '')
    """
    name = model.lower().rpartition("/")[2]
    tails = [name, *[name[at + 1 :] for at, letter in enumerate(name) if letter == "."]]
    tails = [f"{tail.partition(':')[0].replace('.', '-')}-" for tail in tails]
    found = [known for known in names if any(tail.startswith(f"{known.replace('.', '-')}-") for tail in tails)]
    return max(found, key=len, default="")


def context_window(model: str) -> int | None:
    """Return how many tokens a request to the model called `model` may have, or `None` if that is unknown.

    >>> context_window("gpt-4.1-mini"), context_window("us.anthropic.claude-sonnet-4-5-v1:0"), context_window("my-own")
    (1047576, 200000, None)
    """
    return WINDOWS.get(find_name(model, WINDOWS))
