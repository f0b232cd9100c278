"""pydantic-ai's own models for providers, with a provider that is a function: what they would post is kept."""

import json
from typing import Any

import httpx2
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

_ANTHROPIC = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "content": [{"type": "text", "text": "done"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
}
_OPENAI = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "done"}}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}


class Posting:
    """A model whose provider says "done" to everything; `posted` are the messages of the last request."""

    def __init__(self, provider: str) -> None:
        self.posted: list[dict[str, Any]] = []
        self._reply = _ANTHROPIC if provider == "anthropic" else _OPENAI
        client = httpx2.AsyncClient(transport=httpx2.MockTransport(self._serve))
        self.model: Model
        if provider == "anthropic":
            anthropic = AsyncAnthropic(api_key="none", http_client=client, max_retries=0)
            self.model = AnthropicModel("claude", provider=AnthropicProvider(anthropic_client=anthropic))
        else:
            openai = AsyncOpenAI(api_key="none", http_client=client, max_retries=0)
            self.model = OpenAIChatModel("gpt", provider=OpenAIProvider(openai_client=openai))

    def _serve(self, request: httpx2.Request) -> httpx2.Response:
        self.posted = json.loads(request.content)["messages"]
        return httpx2.Response(200, json=self._reply)
