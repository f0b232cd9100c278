"""Suture in Agent Framework: a chat client whose requests never carry a broken history. Needs `agent-framework`."""

from collections import OrderedDict
from collections.abc import Awaitable, Mapping, Sequence
from copy import copy
from inspect import isawaitable
from typing import Any, NamedTuple, TypeVar, Unpack, cast

from agent_framework import BaseChatClient, ChatResponse, ChatResponseUpdate, Content, Message

from suture.errors import ConfigError
from suture.integrations.agent_framework.wire import HELD, TEXT_WIRE, WIRE
from suture.integrations.clients import OpenCalls
from suture.integrations.guest import GuestOptions, Options, announce, repair_request
from suture.profiles import Profile, get_profile, profile_of
from suture.repair import Finding, Report
from suture.wires.fields import given, word

__all__ = ["wrap"]

ClientT = TypeVar("ClientT", bound=BaseChatClient[Any])

_CONTINUES = ("conversation_id", "conversation", "previous_response_id")
_ENDS = ("response.completed", "response.incomplete", "response.failed")


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
    profile, service = chosen.profile or _profile(client), _Service()
    # OpenAI's Responses take arguments as text alone, and the framework sends them as they are.
    wire = TEXT_WIRE if profile.name == "openai-responses" else WIRE
    kind, dressed = cast("Any", client.__class__), cast("Any", copy(client))

    def inner(*, messages: Sequence[Message], options: Mapping[str, Any], **named: Any) -> Any:
        count = len(messages)
        messages, options, known = service.go_on(messages, options)
        if len(messages) > count:
            found = Finding(index=0, problem="unfinished-response", done="what it answered is sent once more")
            announce(Report(wire=wire.name, profile=profile.name, findings=(found,)), chosen)
        kept = service.calls.before(HELD, known, None)
        rules = get_profile("pairing") if known else profile
        repaired: Any = repair_request(messages, wire, chosen, profile=rules, kept=kept)
        reply = kind._inner_get_response(dressed, messages=repaired, options=options, **named)  # noqa: SLF001
        # What runs in the background goes on, whoever reads it.
        return service.hear(reply, None if options.get("background") else _Asked(known, messages))

    dressed._inner_get_response = inner  # noqa: SLF001 - what each client implements, and nobody else calls
    return dressed


class _Asked(NamedTuple):
    """A request: what it goes on with, and what is new in it."""

    known: Any
    messages: Sequence[Message]


class _Service:
    """What a service keeps of conversations, as far as it has gone by.

    It has not kept a response whose stream was left before its end. So what comes after it goes on with what was there
    before, and says again what was said then.
    """

    _MOST = 256
    """How many requests are remembered whose streams were left."""

    def __init__(self) -> None:
        self.calls = OpenCalls()
        self._left: OrderedDict[str, _Asked] = OrderedDict()

    def go_on(
        self, messages: Sequence[Message], options: Mapping[str, Any]
    ) -> tuple[Sequence[Message], Mapping[str, Any], Any]:
        """Return messages and options with which a request goes on with what the service has, and what that is."""
        key = next((key for key in _CONTINUES if options.get(key)), "")
        known: Any = options.get(key)
        left = self._left.get(known) if key and not options.get("continuation_token") else None
        if left is None:
            return messages, options, known
        others = {name: value for name, value in options.items() if name != key}
        return [*left.messages, *messages], {**others, **given(**{key: left.known})}, left.known

    def hear(self, reply: Any, asked: _Asked | None) -> Any:
        """Return what a client gave, of which all is noted as it comes."""
        if hasattr(reply, "with_transform_hook"):
            return self._watch(reply, asked)
        if isawaitable(reply):
            return self._hear_later(reply, asked)
        self._note(reply)
        return reply

    async def _hear_later(self, reply: Awaitable[Any], asked: _Asked | None) -> Any:
        return self.hear(await reply, asked)

    def _note(self, response: Any) -> None:
        """Remember what calls a response leaves open, if the service keeps it."""
        if isinstance(response, ChatResponse) and response.conversation_id:
            found = [call for message in response.messages for call in _calls(message.contents)]
            # A response stays what it is; to a conversation others may add.
            complete = response.conversation_id == response.response_id and not response.continuation_token
            self.calls.note(response.conversation_id, found, complete=complete)
            self._left.pop(response.conversation_id, None)

    def _watch(self, stream: Any, asked: _Asked | None) -> Any:
        """Return a stream of updates with the calls that come in it remembered, and whether it came to its end."""
        known: dict[str, Message] = {}

        def hear(update: ChatResponseUpdate) -> None:
            known.update(
                {str(call.contents[0].call_id): call for call in _calls(update.contents) if call.contents[0].name}
            )
            kept = update.conversation_id
            self.calls.note(kept, [*known.values()], complete=False)
            if update.finish_reason or word(update.raw_representation, "type") in _ENDS:
                self._left.pop(kept or "", None)
            elif kept and kept == update.response_id and kept not in self._left and asked is not None:
                self._left[kept] = asked
                while len(self._left) > self._MOST:
                    self._left.popitem(last=False)

        stream.with_transform_hook(hear)
        stream.with_result_hook(self._note)
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
