"""OpenAI's Responses API: a flat list of items."""
