"""Suture in Agent Framework: a chat client whose requests never carry a broken history."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, Literal, TypeVar

from agent_framework import BaseChatClient, Message

from suture.errors import ConfigError, InputError
from suture.integrations._agent_framework_wire import HELD, WIRE
from suture.integrations._following import Following
from suture.integrations._providers import profile_of
from suture.profiles import Profile, get_profile
from suture.repair import Generator

__all__ = ["wrap"]

ClientT = TypeVar("ClientT", bound=BaseChatClient[Any])

_CONTINUES = ("conversation_id", "conversation", "previous_response_id")


def wrap(
    client: ClientT,
    *,
    profile: str | Profile | None = None,
    orphans: Literal["text", "drop"] = "text",
    generator: Generator | None = None,
    language: str | None = None,
) -> ClientT:
    """Return a chat client like `client`, of the same class, that sends acceptable histories.

    This is the innermost place there is: each model call of an agent's tool loop passes it, behind all middlewares,
    history providers and compaction. What is mended is mended for that call alone; sessions keep what they have. The
    given client stays as it is, and both use the same connections.

    Args:
        client: any chat client that derives from `BaseChatClient`, as those of the framework do.
        profile: whose rules hold; that of the client's provider by default.
        orphans: what becomes of a result whose call is nowhere: kept as user text (`"text"`), or removed (`"drop"`).
        generator: the text that stands for a missing result, of `(name, call_id)` or `(name, call_id, cause=…)`.
        language: of the texts, `"en"` or `"zh"`.

    >>> from agent_framework import Agent, BaseChatClient
    >>> class MyClient(BaseChatClient):
    ...     def _inner_get_response(self, *, messages, stream, options, **kwargs):
    ...         raise NotImplementedError
    >>> agent = Agent(client=wrap(MyClient()))
    """
    if not isinstance(client, BaseChatClient):  # pyright: ignore[reportUnnecessaryIsInstance] - the caller's code
        raise ConfigError(f"expected a chat client that derives from BaseChatClient, found {type(client).__name__}")
    own = get_profile(profile) if profile else _profile(client)
    following = Following(WIRE.name, orphans=orphans, generator=generator, language=language)

    def mend(messages: Sequence[Message], options: Mapping[str, Any]) -> Sequence[Message]:
        held = any(options.get(key) for key in _CONTINUES)
        known = [HELD, *messages] if held else messages
        try:
            mended = following.mend(known, "pairing" if held else own)
        except InputError:
            return messages  # the client says what is wrong with it
        return messages if mended is known else [message for message in mended if message is not HELD]

    return _dress(copy(client), mend)


def _dress(client: Any, mend: Callable[[Sequence[Message], Mapping[str, Any]], Sequence[Message]]) -> Any:
    """Give `client`, which is nobody else's, a last step that mends what it is about to send."""
    kind = client.__class__

    def inner(*, messages: Sequence[Message], options: Mapping[str, Any], **named: Any) -> Any:
        return kind._inner_get_response(client, messages=mend(messages, options), options=options, **named)  # noqa: SLF001

    client._inner_get_response = inner  # noqa: SLF001 - what each client implements, and nobody else calls
    return client


def _profile(client: BaseChatClient[Any]) -> Profile:
    """Return the profile of a client's provider, which the framework's classes and their telemetry name."""
    kinds = [kind.__name__ for kind in type(client).__mro__ if kind.__module__.startswith("agent_framework")]
    found = profile_of(" ".join([*kinds, client.OTEL_PROVIDER_NAME]))
    return get_profile("openai-responses") if found.name == "openai-chat" and client.STORES_BY_DEFAULT else found
