"""Models: the interface that an agent speaks to, and the providers behind it. Each loads its SDK when it is used."""

from typing import TYPE_CHECKING, Any

from suture.kernel import Model, ModelRequest, ModelWrapper, closing
from suture.messages import Delta

if TYPE_CHECKING:
    from suture.models.anthropic import AnthropicModel as AnthropicModel
    from suture.models.bedrock import BedrockModel as BedrockModel
    from suture.models.gemini import GeminiModel as GeminiModel
    from suture.models.local import LocalModel as LocalModel
    from suture.models.names import PROVIDERS as PROVIDERS
    from suture.models.names import get_model as get_model
    from suture.models.openai import OpenAIChatModel as OpenAIChatModel
    from suture.models.openai import OpenAIResponsesModel as OpenAIResponsesModel

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
    "PROVIDERS": "names",
    "get_model": "names",
    "AnthropicModel": "anthropic",
    "BedrockModel": "bedrock",
    "GeminiModel": "gemini",
    "LocalModel": "local",
    "OpenAIChatModel": "openai",
    "OpenAIResponsesModel": "openai",
}


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - only where a provider is used

    found = getattr(import_module(f"{__name__}.{place}"), name)
    globals()[name] = found
    return found
