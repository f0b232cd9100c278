"""OpenAI's Responses API: a flat list of items."""

from suture.codecs.openai_responses._codec import OpenAIResponsesCodec

__all__ = ["OpenAIResponsesCodec"]
