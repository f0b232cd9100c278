"""OpenAI's Chat Completions, which many servers speak."""
