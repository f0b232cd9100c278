"""What telemetry says of a model and its replies: whose it is, what it was asked for, what it gave and cost."""

from collections.abc import Mapping
from typing import Any, cast

from suture.kernel import ModelWrapper
from suture.messages import ResponseMeta, TokenUsage

__all__ = ["model_name", "provider_name", "request_attributes", "response_attributes", "usage_attributes"]

_PROVIDERS = {
    "anthropic": "anthropic",
    "bedrock": "aws.bedrock",
    "deepseek": "deepseek",
    "gemini": "gcp.gemini",
    "kimi": "moonshot_ai",
    "minimax": "minimax",
    "mistral": "mistral_ai",
    "openai-chat": "openai",
    "openai-responses": "openai",
}
"""The conventions' name for whoever a profile is of."""

_OPTIONS: Mapping[str, tuple[str, type | tuple[type, ...]]] = {
    "frequency_penalty": ("gen_ai.request.frequency_penalty", (int, float)),
    "max_tokens": ("gen_ai.request.max_tokens", int),
    "presence_penalty": ("gen_ai.request.presence_penalty", (int, float)),
    "seed": ("gen_ai.request.seed", int),
    "temperature": ("gen_ai.request.temperature", (int, float)),
    "top_k": ("gen_ai.request.top_k", (int, float)),
    "top_p": ("gen_ai.request.top_p", (int, float)),
}


def innermost(model: Any) -> Any:
    """Return the model inside all wrappers."""
    while isinstance(model, ModelWrapper):
        model = cast("ModelWrapper[Any]", model).inner
    return model


def model_name(model: Any) -> str:
    """Return the name by which a model is asked for: what it says itself, or the name of its class.

    >>> from suture.integrations._otel_models import model_name
    >>> from suture.testing import ScriptedModel
    >>> model_name(ScriptedModel([]))
    'ScriptedModel'
    """
    model = innermost(model)
    said = [getattr(model, "model", ""), getattr(model, "name", "")]
    return next((name for name in said if isinstance(name, str) and name), type(model).__name__)


def provider_name(model: Any) -> str:
    """Return whose model it is: what it says itself, or whom its profile is of; `suture` where nobody is known.

    >>> from suture.integrations._otel_models import provider_name
    >>> from suture.testing import ScriptedModel
    >>> provider_name(ScriptedModel([], "openai-chat")), provider_name(ScriptedModel([]))
    ('openai', 'suture')
    """
    said = getattr(innermost(model), "provider", "")
    return said if isinstance(said, str) and said else _PROVIDERS.get(model.profile, "suture")


def request_attributes(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the conventions have a name for among the options of a request.

    >>> from suture.integrations._otel_models import request_attributes
    >>> request_attributes({"temperature": 0.2, "user": "ada"})
    {'gen_ai.request.temperature': 0.2}
    """
    found = {
        name: options[option]
        for option, (name, kinds) in _OPTIONS.items()
        if option in options and isinstance(options[option], kinds) and not isinstance(options[option], bool)
    }
    if "output_schema" in options:
        found["gen_ai.output.type"] = "json"
    return found


def response_attributes(message: Any) -> dict[str, Any]:
    """Return what a reply says of itself: its id, the model that gave it, why it ended.

    >>> from suture.integrations._otel_models import response_attributes
    >>> from suture.messages import Message, ResponseMeta
    >>> meta = ResponseMeta(finish_reason="stop", extension={"id": "r1", "model": "m-1"})
    >>> response_attributes(Message("assistant", "hi", response_meta=meta))
    {'gen_ai.response.id': 'r1', 'gen_ai.response.model': 'm-1', 'gen_ai.response.finish_reasons': ('stop',)}
    """
    meta = getattr(message, "response_meta", None)
    if not isinstance(meta, ResponseMeta):
        return {}
    found: dict[str, Any] = {}
    for key in ("id", "model"):
        said = meta.extension.get(key)
        if isinstance(said, str) and said:
            found[f"gen_ai.response.{key}"] = said
    if meta.finish_reason:
        found["gen_ai.response.finish_reasons"] = (meta.finish_reason,)
    return found


def usage_attributes(usage: TokenUsage) -> dict[str, int]:
    """Return what was used.

    >>> from suture.integrations._otel_models import usage_attributes
    >>> usage_attributes(TokenUsage(prompt_tokens=9, completion_tokens=4, cached_tokens=8))
    {'gen_ai.usage.input_tokens': 9, 'gen_ai.usage.output_tokens': 4, 'gen_ai.usage.cache_read.input_tokens': 8}
    """
    found = {"gen_ai.usage.input_tokens": usage.prompt_tokens, "gen_ai.usage.output_tokens": usage.completion_tokens}
    special = {
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
    }
    return found | {name: count for name, count in special.items() if count}
