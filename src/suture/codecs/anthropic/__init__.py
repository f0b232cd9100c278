"""Anthropic's Messages API: requests, replies and streams from and into native values."""

from suture.codecs.anthropic._codec import AnthropicCodec

__all__ = ["AnthropicCodec"]
