"""Which codec a wire has; each is loaded when it is first used."""

from importlib import import_module

from suture.codecs._codec import Codec
from suture.codecs._values import CODECS
from suture.errors import ConfigError

__all__ = ["get_codec"]

_CLASSES = {
    "openai-chat": ("openai_chat", "OpenAIChatCodec"),
    "openai-responses": ("openai_responses", "OpenAIResponsesCodec"),
    "anthropic": ("anthropic", "AnthropicCodec"),
    "gemini": ("gemini", "GeminiCodec"),
    "bedrock": ("bedrock", "BedrockCodec"),
}


def get_codec(name: str, *, field: str = "") -> Codec:
    """Return the codec of the wire `name`; `field` is the text field that a profile demands (`Profile.field`).

    >>> get_codec("gemini").name
    'gemini'
    """
    try:
        module, kind = _CLASSES[name]
    except (KeyError, TypeError):
        raise ConfigError(f"no codec for {name!r}; there are: {', '.join(CODECS)}") from None
    return getattr(import_module(f"suture.providers.{module}.codec"), kind)(field)
