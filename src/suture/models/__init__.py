"""Models: the interface that agents use, and a class for each provider, which loads its SDK when it is used."""

from importlib import import_module
from os import environ
from typing import TYPE_CHECKING, Any

from suture.errors import ConfigError
from suture.kernel import Model, ModelRequest, ModelWrapper, closing
from suture.messages import Delta, Message

if TYPE_CHECKING:
    from suture.models.bedrock import BedrockModel as BedrockModel
    from suture.models.gemini import GeminiModel as GeminiModel
    from suture.models.local import LocalModel as LocalModel
    from suture.models.openai_anthropic import AnthropicModel as AnthropicModel
    from suture.models.openai_anthropic import OpenAIChatModel as OpenAIChatModel
    from suture.models.openai_anthropic import OpenAIResponsesModel as OpenAIResponsesModel
    from suture.models.provider import ProviderModel

__all__ = [
    "PROVIDERS",
    "AnthropicModel",
    "BedrockModel",
    "Delta",
    "GeminiModel",
    "LocalModel",
    "Model",
    "ModelRequest",
    "ModelWrapper",
    "OpenAIChatModel",
    "OpenAIResponsesModel",
    "closing",
    "get_model",
]

_CLASSES = {
    "local": "local.LocalModel",
    "openai": "openai_anthropic.OpenAIChatModel",
    "openai-responses": "openai_anthropic.OpenAIResponsesModel",
    "anthropic": "openai_anthropic.AnthropicModel",
    "gemini": "gemini.GeminiModel",
    "bedrock": "bedrock.BedrockModel",
}
_SERVERS = {
    "ollama": ("http://127.0.0.1:11434/v1", ""),
    "openrouter": ("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "deepseek": ("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "mistral": ("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "moonshot": ("https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
    "groq": ("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
}
"""Servers that speak Chat Completions: the address, and the variable with the key."""
_BY_CLIENT = {
    "azure": "OpenAIChatModel(…, client=openai.AsyncAzureOpenAI(…))",
    "azure-openai": "OpenAIChatModel(…, client=openai.AsyncAzureOpenAI(…))",
    **dict.fromkeys(("vertexai", "vertex", "google-vertex"), "GeminiModel(…, client=genai.Client(vertexai=True, …))"),
    **dict.fromkeys(
        ("xai", "grok", "together", "fireworks", "cerebras", "vllm", "lmstudio", "qwen"),
        "OpenAIChatModel(…, base_url=…, api_key=…)",
    ),
}
"""Providers without a name of their own, and the model that asks them."""
PROVIDERS = (*_CLASSES, *_SERVERS)
"""The names that may come before the colon in the name of a model."""


def __getattr__(name: str) -> Any:
    for place in _CLASSES.values():
        module, _, kind = place.partition(".")
        if kind == name:
            found = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def get_model(name: str, **settings: Any) -> "ProviderModel[Message]":
    """Return the model called `name`: `provider:model`, `local`, or `module:attribute` for one of your own.

    The settings are those of the model's class. Type checkers take every model for a provider's.

    >>> get_model("anthropic:claude-sonnet-4-5", timeout=30)
    AnthropicModel('claude-sonnet-4-5')
    >>> get_model("ollama:qwen3").base_url
    'http://127.0.0.1:11434/v1'
    """
    provider, _, model = name.partition(":")
    if provider == "local" or (provider in _CLASSES and model):
        kind = __getattr__(_CLASSES[provider].partition(".")[2])
        return kind(model, **settings) if model else kind(**settings)
    if provider in _SERVERS and model:
        return _make_server_model(name, model, *_SERVERS[provider], settings)
    if settings:
        raise ConfigError(f"{name!r} is no provider's model, and takes no settings here: {', '.join(settings)}")
    if not model or not provider or provider in PROVIDERS:
        raise ConfigError(f"a model is named as provider:model, such as openai:gpt-5-mini; got {name!r}")
    return _import_model(provider, model)


def _make_server_model(name: str, model: str, address: str, variable: str, settings: dict[str, Any]) -> Any:
    """Return a model on a known server, whose key is in a variable of the environment unless it is given."""
    if "client" not in settings:
        settings = {"base_url": address, "api_key": environ.get(variable) if variable else None, **settings}
        if variable and not settings["api_key"]:
            raise ConfigError(f"{name} has no key: set {variable}")
    made = __getattr__("OpenAIChatModel")(model, **settings)
    made.key_variable = variable
    return made


def _import_model(module: str, attribute: str) -> Any:
    """Import a model from a user's module."""
    try:
        found: Any = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise
        raise ConfigError(
            f"{module!r} is no provider and no module{_suggest(module)}; providers: {', '.join(PROVIDERS)}"
        ) from None
    if not hasattr(found, attribute):
        raise ConfigError(f"module {module} has no {attribute!r}{_suggest(module)}")
    model = getattr(found, attribute)
    if not hasattr(model, "stream"):
        raise ConfigError(f"{module}:{attribute} is no model: it has no stream")
    return model


def _suggest(provider: str) -> str:
    """Return a hint at the provider that was probably meant."""
    from difflib import get_close_matches  # noqa: PLC0415 - only for an error

    if provider in _BY_CLIENT:
        return f"; it goes through {_BY_CLIENT[provider]}"
    meant = "gemini" if provider == "google" else next(iter(get_close_matches(provider, PROVIDERS, 1)), "")
    return f" (did you mean {meant}:?)" if meant else ""
