"""Suture in Agent Framework: a chat client whose requests never carry a broken history. Needs `agent-framework`."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from inspect import isawaitable
from typing import Any, TypeVar, Unpack, cast

from agent_framework import BaseChatClient, ChatResponse, ChatResponseUpdate, Content, Message

from suture.errors import ConfigError
from suture.integrations.agent_framework.wire import HELD, TEXT_WIRE, WIRE
from suture.integrations.clients import OpenCalls
from suture.integrations.guest import GuestOptions, Options, repair_request
from suture.profiles import Profile, get_profile, profile_of

__all__ = ["wrap"]

ClientT = TypeVar("ClientT", bound=BaseChatClient[Any])

_CONTINUES = ("conversation_id", "conversation", "previous_response_id")


def wrap(client: ClientT, **options: Unpack[Options]) -> ClientT:
    """Return a chat client like `client`, of the same class, that sends acceptable histories.

    This is the innermost place there is: each model call of an agent's tool loop passes it, behind all middlewares,
    history providers and compaction. What is repaired is repaired for that call alone; sessions keep what they have.
    Calls that the service keeps, and that a request leaves open, are answered, if their response went through this
    client. The given client stays as it is, and both use the same connections.

    Args:
        client: any chat client that derives from `BaseChatClient`, as those of the framework do.
        options: those of every guest, see `suture.integrations.guest.Options`.

    >>> from agent_framework import Agent, BaseChatClient
    >>> class MyClient(BaseChatClient):
    ...     def _inner_get_response(self, *, messages, stream, options, **kwargs):
    ...         raise NotImplementedError
    >>> agent = Agent(client=wrap(MyClient()))
    """
    if not isinstance(client, BaseChatClient):  # pyright: ignore[reportUnnecessaryIsInstance] - the caller's code
        raise ConfigError(f"expected a chat client that derives from BaseChatClient, found {type(client).__name__}")
    chosen = GuestOptions.of(__name__, **options)
    profile, calls = chosen.profile or _profile(client), OpenCalls()
    # OpenAI's Responses take arguments as text alone, and the framework sends them as they are.
    wire = TEXT_WIRE if profile.name == "openai-responses" else WIRE

    def repaired(messages: Sequence[Message], asked: Mapping[str, Any]) -> Sequence[Message]:
        known = next((asked[key] for key in _CONTINUES if asked.get(key)), None)
        kept = calls.before(HELD, known, None)
        rules = get_profile("pairing") if known else profile
        return cast("Sequence[Message]", repair_request(messages, wire, chosen, profile=rules, kept=kept))

    return _dress(copy(client), repaired, calls)


def _dress(client: Any, repaired: Callable[..., Sequence[Message]], calls: OpenCalls) -> Any:
    """Give `client`, which is nobody else's, a last step that repairs what it is about to send, and hears the reply."""
    kind = client.__class__

    def inner(*, messages: Sequence[Message], options: Mapping[str, Any], **named: Any) -> Any:
        given = kind._inner_get_response(client, messages=repaired(messages, options), options=options, **named)  # noqa: SLF001
        if isawaitable(given) and not hasattr(given, "with_transform_hook"):
            return _heard(given, calls)
        return _watched(given, calls)

    client._inner_get_response = inner  # noqa: SLF001 - what each client implements, and nobody else calls
    return client


async def _heard(given: Any, calls: OpenCalls) -> Any:
    response = await given
    if hasattr(response, "with_transform_hook"):
        return _watched(response, calls)
    _note(response, calls)
    return response


def _note(response: Any, calls: OpenCalls) -> None:
    """Remember what calls a response leaves open, if the service keeps it."""
    if isinstance(response, ChatResponse) and response.conversation_id:
        found = [call for message in response.messages for call in _calls(message.contents)]
        # A response stays what it is; to a conversation others may add.
        complete = response.conversation_id == response.response_id and not response.continuation_token
        calls.note(response.conversation_id, found, complete=complete)


def _watched(stream: Any, calls: OpenCalls) -> Any:
    """Return a stream of updates with the calls that come in it remembered, even if it is broken off."""
    known: dict[str, Message] = {}

    def hear(update: ChatResponseUpdate) -> None:
        known.update({str(call.contents[0].call_id): call for call in _calls(update.contents) if call.contents[0].name})
        calls.note(update.conversation_id, [*known.values()], complete=False)

    def finish(response: Any) -> None:
        _note(response, calls)

    if hasattr(stream, "with_transform_hook"):
        stream.with_transform_hook(hear)
        stream.with_result_hook(finish)
    return stream


def _calls(contents: Sequence[Content]) -> list[Message]:
    """Return the calls among `contents` that the program has to answer, without their arguments."""
    found = [content for content in contents if content.type == "function_call" and not getattr(content, "hosted", 0)]
    return [
        Message("assistant", [Content.from_function_call(call.call_id or "", call.name or "", arguments="{}")])
        for call in found
    ]


def _profile(client: BaseChatClient[Any]) -> Profile:
    """Return the profile of a client's provider, which the framework's classes and their telemetry name."""
    kinds = [kind.__name__ for kind in type(client).__mro__ if kind.__module__.startswith("agent_framework")]
    found = profile_of(" ".join([*kinds, client.OTEL_PROVIDER_NAME]))
    return get_profile("openai-responses") if found.name == "openai-chat" and client.STORES_BY_DEFAULT else found
