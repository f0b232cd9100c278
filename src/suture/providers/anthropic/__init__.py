"""Anthropic's Messages API: requests, replies and streams from and into native values."""
