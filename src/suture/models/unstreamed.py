"""The words with which providers and servers refuse to stream a reply that they would give whole, as data.

Each is a part of a refusal's text, with a public report of it. A request that is refused so is sent again without a
stream.
"""

import re

__all__ = ["REFUSALS", "refuses_stream"]

REFUSALS = (
    ("must be verified to stream this model", "OpenAI, 400, param stream: continuedev/continue#8209"),
    ("'stream' does not support true", "OpenAI and Azure on o1, 400: litellm#7693, gh-models#31"),
    ("model is unsupported for streaming", "Bedrock, 400: amazon-bedrock-client-for-mac#112"),
    ("support tool use in streaming mode", "Bedrock on Llama, Palmyra …, 400: strands#393, pi#3739, fx#900"),
    ("cannot use tools with stream", "llama.cpp until May 2025, 500: llama.cpp#12379, ramalama#1431"),
    ("streaming completion is not support", "azure-openai-proxy, 400: azure-openai-proxy#63, dify#2897"),
    ("`stream` is not supported for this model", "Hugging Face's inference server: chat-ui#296"),
)
"""The words, and who uses them."""
_GENERAL = r"stream(?:ing)? (?:mode )?is not (?:yet )?supported|do(?:es)? ?n[o']t (?:yet )?support stream(?:ing)?\b"
"""The same in other servers' words."""
_REFUSED = re.compile("|".join([*(re.escape(words) for words, _ in REFUSALS), _GENERAL]), re.IGNORECASE)


def refuses_stream(text: str) -> bool:
    """Return whether a refusal says that the reply cannot be streamed.

    >>> refuses_stream("Your organization must be verified to stream this model. Please go to …")
    True
    >>> refuses_stream("This model does not support streaming."), refuses_stream("no such model")
    (True, False)
    """
    return _REFUSED.search(text) is not None
