"""Models: the interface that an agent speaks to, and the providers behind it. Each loads its SDK when it is used."""

from importlib import import_module
from os import environ
from typing import TYPE_CHECKING, Any

from msgspec import Struct

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

_PLACES = {
    "AnthropicModel": "openai_anthropic",
    "BedrockModel": "bedrock",
    "GeminiModel": "gemini",
    "LocalModel": "local",
    "OpenAIChatModel": "openai_anthropic",
    "OpenAIResponsesModel": "openai_anthropic",
}


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{place}"), name)
    globals()[name] = found
    return found


# Models by name


class _Server(Struct, frozen=True):
    """A server that speaks Chat Completions: where it is, where its key is, and whose rules hold."""

    base_url: str
    key: str = ""
    profile: str = "openai-chat"


_SERVERS = {
    "ollama": _Server("http://127.0.0.1:11434/v1"),
    "openrouter": _Server("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "deepseek": _Server("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", "deepseek"),
    "mistral": _Server("https://api.mistral.ai/v1", "MISTRAL_API_KEY", "mistral"),
    "moonshot": _Server("https://api.moonshot.ai/v1", "MOONSHOT_API_KEY", "kimi"),
    "groq": _Server("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
}
_CLASSES = {
    "openai": "OpenAIChatModel",
    "openai-responses": "OpenAIResponsesModel",
    "anthropic": "AnthropicModel",
    "gemini": "GeminiModel",
    "bedrock": "BedrockModel",
}

PROVIDERS = ("local", *_CLASSES, *_SERVERS)
"""What may stand before the colon in the name of a model."""


def get_model(name: str) -> Model[Message]:
    """Return the model called `name`: `provider:model`, `local`, or `module:attribute` for one of your own.

    >>> get_model("anthropic:claude-sonnet-4-5")
    AnthropicModel('claude-sonnet-4-5')
    >>> get_model("ollama:qwen3").base_url
    'http://127.0.0.1:11434/v1'
    """
    provider, _, model = name.partition(":")
    if provider == "local":
        kind = __getattr__("LocalModel")
        return kind(model) if model else kind()
    if provider in _CLASSES and model:
        return __getattr__(_CLASSES[provider])(model)
    server = _SERVERS.get(provider)
    if server is not None and model:
        key = environ.get(server.key) if server.key else None
        if server.key and not key:
            raise ConfigError(f"{name} has no key: set {server.key}")
        kind = __getattr__(_CLASSES["openai"])
        return kind(model, base_url=server.base_url, api_key=key, profile=server.profile)
    if not model or not provider or provider in PROVIDERS:
        raise ConfigError(f"a model is named as provider:model, such as openai:gpt-5-mini; got {name!r}")
    return _own(provider, model)


def _own(module: str, attribute: str) -> Model[Message]:
    """Return the model that a module of the user's holds."""
    try:
        found: Any = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise
        raise ConfigError(
            f"{module!r} is no provider and no module{_guess(module)}; providers: {', '.join(PROVIDERS)}"
        ) from None
    if not hasattr(found, attribute):
        raise ConfigError(f"module {module} has no {attribute!r}{_guess(module)}")
    model = getattr(found, attribute)
    if not hasattr(model, "stream"):
        raise ConfigError(f"{module}:{attribute} is no model: it has no stream")
    return model


def _guess(provider: str) -> str:
    """Return a question after the provider that was probably meant."""
    from difflib import get_close_matches  # noqa: PLC0415 - only for an error

    meant = "gemini" if provider == "google" else next(iter(get_close_matches(provider, PROVIDERS, 1)), "")
    return f" (did you mean {meant}:?)" if meant else ""
