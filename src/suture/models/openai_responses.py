"""`OpenAIResponsesModel`: OpenAI's Responses API."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, ClassVar

from suture.codecs import Codec, get_codec
from suture.messages import NativeM
from suture.models._stainless import StainlessModel

__all__ = ["OpenAIResponsesModel"]

_UNSTORED = get_codec("openai-responses", store=False)


class OpenAIResponsesModel(StainlessModel[NativeM]):
    """A model behind the Responses API, through the `openai` package (extra `openai`).

    Nothing is left at the provider: `store` is off, and reasoning comes back encrypted and is sent again with the
    next turn. Both can be set in `options`.

    >>> OpenAIResponsesModel("gpt-5", wire="agentic").profile
    'openai-responses'
    """

    codec_name: ClassVar[str] = "openai-responses"
    key_from: ClassVar[str] = "OPENAI_API_KEY, or api_key="
    package: ClassVar[str] = "openai"
    client_class: ClassVar[str] = "AsyncOpenAI"
    error_class: ClassVar[str] = "OpenAIError"

    path: ClassVar[str] = "/responses"

    def create(self, client: Any, payload: dict[str, Any]) -> AbstractAsyncContextManager[Any]:
        """Return the SDK's raw streaming response to `payload`."""
        return client.responses.with_streaming_response.create(extra_body=payload)

    def codec_for(self, options: Mapping[str, Any]) -> Codec:
        """Return the codec; where nothing is stored, items have no ids that the service would have to know."""
        return self.codec if options.get("store") else _UNSTORED

    def chosen(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the options; unless they say otherwise, nothing is stored."""
        stateless = {"store": False, "include": ["reasoning.encrypted_content"]}
        return options if options.get("store") else {**stateless, **options}
