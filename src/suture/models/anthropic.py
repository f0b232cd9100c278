"""`AnthropicModel`: Anthropic's Messages API."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, ClassVar, cast

from suture.errors import ConfigError
from suture.messages import NativeM
from suture.models.encoding import Body, to_json
from suture.models.openai import StainlessModel

__all__ = ["AnthropicModel"]

_CACHE = {True: {"type": "ephemeral"}, "5m": {"type": "ephemeral"}, "1h": {"type": "ephemeral", "ttl": "1h"}}

_MARK = b'"cache_control":'
_MARKS = 4
"""How many marks a request may have."""


class AnthropicModel(StainlessModel[NativeM]):
    """A model behind the Messages API, through the `anthropic` package (extra `anthropic`).

    The option `cache` (`True`, `"5m"` or `"1h"`) marks the end of the conversation, the instruction and the tools for
    Anthropic's prompt cache. Marks of your own are `extra={"anthropic": {"cache_control": …}}` on a block; a request
    takes four in all.

    >>> AnthropicModel("claude-sonnet-4-5", options={"cache": True, "max_tokens": 2000}).profile
    'anthropic'
    """

    codec_name: ClassVar[str] = "anthropic"
    key_from: ClassVar[str] = "ANTHROPIC_API_KEY, or api_key="
    package: ClassVar[str] = "anthropic"
    requirement: ClassVar[str] = "anthropic>=2"
    client_class: ClassVar[str] = "AsyncAnthropic"
    error_class: ClassVar[str] = "AnthropicError"

    path: ClassVar[str] = "/v1/messages"

    def create(self, client: Any, payload: dict[str, Any]) -> AbstractAsyncContextManager[Any]:
        """Return the SDK's raw streaming response to `payload`."""
        messages = client.messages.with_streaming_response
        return messages.create(model=self.model, max_tokens=1, messages=[], stream=self.streaming, extra_body=payload)

    def lay_over(self, body: Body) -> Body:
        """Return the body with cache marks where they are asked for."""
        asked = body.settings.get("cache")
        settings = {name: value for name, value in body.settings.items() if name != "cache"}
        if not asked:
            return body._replace(settings=settings)
        if not isinstance(asked, bool | str) or asked not in _CACHE:
            raise ConfigError(f"cache takes True, '5m' or '1h', not {asked!r}")
        return _marked(body._replace(settings=settings), _CACHE[asked])


def _marked(body: Body, mark: dict[str, str]) -> Body:
    """Return the body with a mark on the end of the conversation, of the instruction and of the tools.

    Marks that are there count: where no more are taken, the first of these come first.
    """
    settings, messages, forms = dict(body.settings), body.messages, body.forms
    left = _MARKS - sum([form.count(_MARK) for form in forms]) - to_json(settings).count(_MARK)
    if messages and left > 0 and _takes_mark(messages[-1]["content"]):
        last = {**messages[-1], "content": _last_marked(messages[-1]["content"], mark)}
        messages, forms = [*messages[:-1], last], [*forms[:-1], to_json(last)]
        left -= 1
    for name in ("system", "tools"):
        if left > 0 and _takes_mark(settings.get(name)):
            settings[name] = _last_marked(settings[name], mark)
            left -= 1
    return body._replace(settings=settings, messages=messages, forms=forms)


def _takes_mark(blocks: Any) -> bool:
    """Tell whether the last block can be marked, and is not yet."""
    if not blocks or not isinstance(blocks, list):
        return False
    last = cast("dict[str, Any]", blocks[-1])
    return "cache_control" not in last and last.get("type") not in {"thinking", "redacted_thinking"}


def _last_marked(blocks: list[Any], mark: Mapping[str, str]) -> list[Any]:
    return [*blocks[:-1], {**blocks[-1], "cache_control": dict(mark)}]
