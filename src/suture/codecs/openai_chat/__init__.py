"""OpenAI's Chat Completions, which many servers speak."""

from suture.codecs.openai_chat._codec import OpenAIChatCodec

__all__ = ["OpenAIChatCodec"]
