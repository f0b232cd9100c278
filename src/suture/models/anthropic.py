"""`AnthropicModel`: Anthropic's Messages API."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, ClassVar, cast

from suture.errors import ConfigError
from suture.messages import NativeM
from suture.models._stainless import StainlessModel

__all__ = ["AnthropicModel"]

_CACHE = {True: {"type": "ephemeral"}, "5m": {"type": "ephemeral"}, "1h": {"type": "ephemeral", "ttl": "1h"}}

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
    client_class: ClassVar[str] = "AsyncAnthropic"
    error_class: ClassVar[str] = "AnthropicError"

    def ask(self, client: Any, payload: dict[str, Any]) -> AbstractAsyncContextManager[Any]:
        """Return the SDK's raw streaming response to `payload`."""
        messages = client.messages.with_streaming_response
        return messages.create(model=self.model, max_tokens=1, messages=[], stream=self.streaming, extra_body=payload)

    def addressed(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Return the payload with the model's name, and with cache marks where they are asked for."""
        asked = payload.get("cache")
        rest = {name: value for name, value in payload.items() if name != "cache"}
        if asked:
            if not isinstance(asked, bool | str) or asked not in _CACHE:
                raise ConfigError(f"cache takes True, '5m' or '1h', not {asked!r}")
            rest = _marked(rest, _CACHE[asked])
        return super().addressed(rest)


def _marked(payload: dict[str, Any], mark: dict[str, str]) -> dict[str, Any]:
    """Return the payload with a mark on the end of the conversation, of the instruction and of the tools.

    Marks that are there count: where no more are taken, the first of these come first.
    """
    marked = dict(payload)
    left = _MARKS - _count_marks(payload)
    messages: list[dict[str, Any]] = list(marked.get("messages", ()))
    if messages and left > 0 and _takes_mark(messages[-1]["content"]):
        messages[-1] = {**messages[-1], "content": _last_marked(messages[-1]["content"], mark)}
        marked["messages"] = messages
        left -= 1
    for name in ("system", "tools"):
        if left > 0 and _takes_mark(marked.get(name)):
            marked[name] = _last_marked(marked[name], mark)
            left -= 1
    return marked


def _takes_mark(blocks: list[Any] | None) -> bool:
    """Tell whether the last block can be marked, and is not yet."""
    if not blocks:
        return False
    last = cast("dict[str, Any]", blocks[-1])
    return "cache_control" not in last and last.get("type") not in {"thinking", "redacted_thinking"}


def _last_marked(blocks: list[Any], mark: Mapping[str, str]) -> list[Any]:
    return [*blocks[:-1], {**blocks[-1], "cache_control": dict(mark)}]


def _count_marks(value: Any) -> int:
    """Return how many marks there are in a payload, at any depth that has blocks."""
    if isinstance(value, list):
        return sum([_count_marks(item) for item in cast("list[Any]", value)])
    if not isinstance(value, dict):
        return 0
    held = cast("dict[str, Any]", value)
    inside = sum([_count_marks(held.get(name)) for name in ("tools", "system", "messages", "content")])
    return inside + ("cache_control" in held)
