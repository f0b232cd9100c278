"""`OpenAIChatModel`: Chat Completions, of OpenAI and of every server that speaks alike."""

from contextlib import AbstractAsyncContextManager
from typing import Any, ClassVar

from suture.messages import NativeM
from suture.models._stainless import StainlessModel

__all__ = ["OpenAIChatModel"]


class OpenAIChatModel(StainlessModel[NativeM]):
    """A model behind Chat Completions, through the `openai` package (extra `openai`).

    With `base_url` it is any server that speaks alike: Ollama, vLLM, llama.cpp, OpenRouter. Such a server is sent
    `api_key`, never the key that the environment holds for OpenAI. `profile` says whose rules hold there.

    >>> model = OpenAIChatModel("qwen3", base_url="http://127.0.0.1:11434/v1", options={"temperature": 0})
    >>> model.wire, model.profile
    ('message', 'openai-chat')
    """

    codec_name: ClassVar[str] = "openai-chat"
    key_from: ClassVar[str] = "OPENAI_API_KEY, or api_key="
    package: ClassVar[str] = "openai"
    client_class: ClassVar[str] = "AsyncOpenAI"
    error_class: ClassVar[str] = "OpenAIError"

    path: ClassVar[str] = "/chat/completions"

    def create(self, client: Any, payload: dict[str, Any]) -> AbstractAsyncContextManager[Any]:
        """Return the SDK's raw streaming response to `payload`."""
        completions = client.chat.completions.with_streaming_response
        return completions.create(model=self.model, messages=[], extra_body=payload)

    def addressed(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the settings with the model's name; of a stream, the usage is asked for."""
        usage = {"stream_options": {"include_usage": True}} if self.streaming else {}
        return super().addressed({**usage, **settings})
