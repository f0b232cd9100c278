"""The words with which providers and servers refuse to stream a reply, or to give it whole, as data.

Each is a part of a refusal's text, with a public report of it. A request refused so is sent again the other way.
"""

import re

__all__ = ["ONLY_STREAMS", "ONLY_WHOLE", "is_refused"]

ONLY_WHOLE = (
    ("must be verified to stream this model", "OpenAI, 400, param stream: continuedev/continue#8209"),
    ("'stream' does not support true", "OpenAI and Azure on o1, 400: litellm#7693, gh-models#31"),
    ("model is unsupported for streaming", "Bedrock, 400: amazon-bedrock-client-for-mac#112"),
    ("support tool use in streaming mode", "Bedrock on Llama, Palmyra …, 400: strands#393, pi#3739, fx#900"),
    ("cannot use tools with stream", "llama.cpp until May 2025, 500: llama.cpp#12379, ramalama#1431"),
    ("streaming completion is not support", "azure-openai-proxy, 400: azure-openai-proxy#63, dify#2897"),
    ("`stream` is not supported for this model", "Hugging Face's inference server: chat-ui#296"),
)
"""How a stream is refused, and who says so."""
ONLY_STREAMS = (
    ("only support stream mode", "Model Studio on QwQ, 400: ragflow#5912"),
    ("for non-streaming calls", "Model Studio on Qwen 3 with thinking, 400: langchain4j#3974, web-ui#659"),
    ("support when `stream=false`", "ModelScope on Qwen 3 with thinking, 400: claude-code-router#948"),
    ("stream must be set to true", "Codex's backend, 400: new-api#5031, loreai#1597"),
)
"""How a whole reply is refused, and who says so."""
_IN_GENERAL = r"stream(?:ing)? (?:mode )?is not (?:yet )?supported|do(?:es)? ?n[o']t (?:yet )?support stream(?:ing)?\b"
"""How other servers refuse a stream."""
_NO_STREAM = re.compile("|".join([*(re.escape(words) for words, _ in ONLY_WHOLE), _IN_GENERAL]), re.IGNORECASE)
_NO_WHOLE = re.compile("|".join([re.escape(words) for words, _ in ONLY_STREAMS]), re.IGNORECASE)


def is_refused(text: str, *, streaming: bool) -> bool:
    """Return whether a refusal says that the reply cannot be streamed, or that it can only be.

    >>> is_refused("Your organization must be verified to stream this model. Please go to …", streaming=True)
    True
    >>> is_refused("no such model", streaming=True)
    False
    >>> is_refused("This model only support stream mode, please enable the stream parameter", streaming=False)
    True
    """
    return (_NO_STREAM if streaming else _NO_WHOLE).search(text) is not None
