"""Google's Gemini, generateContent: requests, replies and streams from and into native values."""

from suture.codecs.gemini._codec import GeminiCodec

__all__ = ["GeminiCodec"]
