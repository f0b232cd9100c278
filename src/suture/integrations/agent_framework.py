"""Suture in Agent Framework: a chat client whose requests never carry a broken history. Needs `agent-framework`.

Its messages hold contents of many types; results are in messages of the role `tool`. A tool that the provider ran
itself has its call and its result in one assistant message, and both are left alone. What Suture attaches to a result
is in `additional_properties`, which no client sends.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cached_property
from inspect import isawaitable
from operator import is_
from typing import Any, NamedTuple, TypeVar, Unpack, cast

from suture._extras import check_extra
from suture.errors import ConfigError
from suture.integrations.clients import OpenCalls, id_of
from suture.integrations.guest import GuestOptions, Options, announce, repair_request
from suture.integrations.objects import ObjectWire, with_fields
from suture.profiles import Profile, get_profile, profile_of
from suture.repair import Finding, Report
from suture.wires import MARK, Call, Form, Piece, Result, ResultEdit, View
from suture.wires.fields import given, is_list, json_text, text_of, word
from suture.wires.parts import Telling
from suture.wires.values import CALL, MEDIA, OTHER, RESULT, TEXT, THINKING

try:
    from agent_framework import BaseChatClient, ChatResponse, ChatResponseUpdate, Content, Message
finally:  # an old release may lack some of these: its version says more than the ImportError
    check_extra("agent-framework", "agent_framework")

__all__ = ["wrap"]

ClientT = TypeVar("ClientT", bound=BaseChatClient[Any])

_CONTINUES = ("conversation_id", "conversation", "previous_response_id")
_Request = tuple[Any, Sequence[Message]]
"""A request: the id of what it continues, and its new messages."""
_ENDS = ("response.completed", "response.incomplete", "response.failed")


def wrap(client: ClientT, **options: Unpack[Options]) -> ClientT:
    """Return a chat client like `client`, of the same class, that sends acceptable histories.

    This is the innermost place: each model call of an agent's tool loop passes it, after all middlewares, history
    providers and compaction. A repair is for that call alone; sessions keep what they have. Calls that the service
    keeps, and that a request leaves open, are answered if their response went through this client. The given client
    does not change, and both use the same connections.

    Args:
        client: any chat client that derives from `BaseChatClient`, as those of the framework do.
        options: the options of every guest, see `suture.integrations.guest.Options`.

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
    # OpenAI's Responses only take arguments as text, and the framework sends them as they are.
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
        # A background response goes on, even if its stream is left.
        return service.hear(reply, None if options.get("background") else (known, messages))

    dressed._inner_get_response = inner  # noqa: SLF001 - what each client implements, and nobody else calls
    return dressed


class _Service:
    """What is known of the conversations that a service keeps, from the requests and responses of this client."""

    _MOST = 256
    """How many requests with abandoned streams are remembered."""

    def __init__(self) -> None:
        self.calls = OpenCalls()
        self._left: OrderedDict[str, _Request] = OrderedDict()
        """By response id: a request whose stream was left before its end, so that the service did not keep it."""

    def go_on(
        self, messages: Sequence[Message], options: Mapping[str, Any]
    ) -> tuple[Sequence[Message], Mapping[str, Any], Any]:
        """Return messages, options and the id to continue with; messages that the service lacks are sent again."""
        key = next((key for key in _CONTINUES if options.get(key)), "")
        known = id_of(options.get(key))
        left = self._left.get(known) if key and not options.get("continuation_token") else None
        if left is None:
            return messages, options, known
        before, said = left
        others = {name: value for name, value in options.items() if name != key}
        return [*said, *messages], {**others, **given(**{key: before})}, before

    def hear(self, reply: Any, asked: _Request | None) -> Any:
        """Return a client's reply, and record what comes in it."""

        async def later() -> Any:
            return self.hear(await reply, asked)

        if hasattr(reply, "with_transform_hook"):
            return self._watch(reply, asked)
        if isawaitable(reply):
            return later()
        self._note(reply)
        return reply

    def _note(self, response: Any) -> None:
        """Remember the calls that a response leaves open, if the service keeps it."""
        if isinstance(response, ChatResponse) and response.conversation_id:
            found = [call for message in response.messages for call in _calls(message.contents)]
            # A response does not change, but others may add to a conversation.
            complete = response.conversation_id == response.response_id and not response.continuation_token
            self.calls.note(response.conversation_id, found, complete=complete)
            self._left.pop(response.conversation_id, None)

    def _watch(self, stream: Any, asked: _Request | None) -> Any:
        """Return a stream of updates, and remember the calls in it and whether it came to its end."""
        known: dict[str, Message] = {}

        def hear(update: ChatResponseUpdate) -> None:
            kept, named = update.conversation_id, [call for call in _calls(update.contents) if call.contents[0].name]
            known.update({str(call.contents[0].call_id): call for call in named})
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
    """Return messages with the calls in `contents` that the program has to answer, without their arguments."""
    found = [content for content in contents if content.type == "function_call" and not getattr(content, "hosted", 0)]
    return [
        Message(
            "assistant",
            [
                Content.from_function_call(
                    call.call_id or "",
                    call.name or "",
                    arguments="{}",
                    # Texts are ids and kinds; the commands of a shell are not texts.
                    additional_properties={k: v for k, v in call.additional_properties.items() if isinstance(v, str)},
                )
            ],
        )
        for call in found
    ]


def _profile(client: BaseChatClient[Any]) -> Profile:
    """Return the profile of a client's provider, by the names of its classes and its telemetry."""
    kinds = [kind.__name__ for kind in type(client).__mro__ if kind.__module__.startswith("agent_framework")]
    found = profile_of(" ".join([*kinds, client.OTEL_PROVIDER_NAME]))
    return get_profile("openai-responses") if found.name == "openai-chat" and client.STORES_BY_DEFAULT else found


# --- its messages --------------------------------------------------------------------------------

HELD = Message("system", [])
"""Stands for the part of the conversation that the service keeps. It is not sent."""

_HOSTED = "hosted"
_MEDIA = dict.fromkeys(("data", "uri", "hosted_file"), MEDIA)
_KINDS = {"function_call": CALL, "function_result": RESULT, "text": TEXT, "text_reasoning": THINKING, **_MEDIA}


class _OwnCall(Call):
    """A call with the properties that its client attached, which the result (of a shell, say) must have as well."""

    properties: Mapping[str, Any]


class _Paired(NamedTuple):
    """A call or a result whose counterpart is in the same message."""

    content: Any


def _find_text(content: Any) -> str | None:
    return content.text if getattr(content, "type", "") == "text" else None


class AgentFrameworkWire(ObjectWire):
    """Histories of Agent Framework's message objects.

    >>> from agent_framework import Content, Message
    >>> WIRE.view(Message("tool", [Content.from_function_result("a", result="42")])).results[0].id
    'a'
    """

    name = "agent-framework"
    text_arguments = True
    form = Form(_find_text, cast("Any", Content.from_text))
    arranges = frozenset(("split-results", "split-turn"))
    types = (Message,)
    field, kinds, service_field, status_field = "contents", _KINDS, _HOSTED, "exception"
    extra_field, sent = "additional_properties", ("contents", "text", "arguments", "items", "result")

    @cached_property
    def mends(self) -> Mapping[str, Callable[[Any, View], Any]]:
        """The repairs of single messages; results have their own messages, so `results-not-first` cannot occur."""
        return {problem: mend for problem, mend in super().mends.items() if problem != "results-not-first"}

    def refers(self, message: Any) -> bool:
        return message is HELD

    def role(self, message: Any, index: int | None) -> str:
        """Return the role of `message`: tools are users, and so is any role that a program makes up."""
        role = super().role(message, index)
        return "system" if message.role in {"system", "developer"} else role

    def blocks(self, message: Any, index: int | None = None) -> Sequence[Any]:
        contents = super().blocks(message, index)
        has_results = False
        for content in contents:
            if not isinstance(content, Content):
                raise self.fault(index, "contents", "expected a list of contents")
            has_results = has_results or content.type == "function_result"
        return _mark_paired(contents) if has_results and message.role == "assistant" else contents

    def is_signed(self, block: Any) -> bool:
        return self.kind(block) == THINKING and bool(block.protected_data)

    def read_call(self, block: Any, index: int | None = None) -> Call:
        kind = _HOSTED if getattr(block, "hosted", False) else ""
        call = _OwnCall(*super().read_call(block, index)._replace(kind=kind))
        call.properties = block.additional_properties
        return call

    def read_result(self, block: Any, index: int | None = None) -> Result:
        """Return the result in `block`: its items, or the `result` of older releases."""
        extra = block.additional_properties
        content = block.items or block.result
        if content is not None and not isinstance(content, str) and not is_list(content):
            content = json_text(content)
        call_id, name = text_of(block, "call_id", index), text_of(block, "name", index)
        return Result(call_id, name, content, "", MARK in extra, block.exception is not None, extra)

    def can_answer(self, call: Call) -> bool:
        """Return whether a placeholder can be made; the service answers the calls that it runs itself."""
        return call.kind != _HOSTED

    def tell_block(self, block: Any, telling: Telling) -> None:
        """Tell one content: its words, its medium, or its fields."""
        content = block.content if isinstance(block, _Paired) else block
        if content is block and self.kind(block) != OTHER:
            super().tell_block(block, telling)
        else:
            telling.show(content.to_dict())

    def write_result(self, block: Any, edit: ResultEdit) -> Any:
        fields = given(call_id=edit.id, name=edit.name)
        content = self.content_after(edit, self.read_result(block).content)
        if content is not None:
            items = [Content.from_text(content)] if isinstance(content, str) else content
            texts = [text for text in map(_find_text, items) if text]
            fields |= {"items": items, "result": "\n".join(texts)}
        return self.with_extra(with_fields(block, **fields), edit.extra)

    def make_result(self, piece: Piece) -> Any:
        return Content.from_function_result(
            piece.call.id if piece.call else "",
            result=piece.text,
            exception=piece.cause or "unanswered",
            additional_properties={**getattr(piece.call, "properties", {}), MARK: piece.cause},
        )

    def make_message(self, role: str, blocks: Sequence[Any]) -> Any:
        return self.with_blocks(Message(role, []), blocks)

    def with_blocks(self, message: Any, blocks: Sequence[Any]) -> Any:
        """Return `message` with other contents; it is a tool's if all are results, and a user's if none is."""
        contents = [block.content if isinstance(block, _Paired) else block for block in blocks]
        results = sum(content.type == "function_result" for content in contents)
        role = message.role
        if results and results == len(contents):
            role = "tool"
        elif role == "tool" and not results:
            role = "user"
        return with_fields(message, role=role, contents=contents)

    def _in_order(self, message: Any, blocks: Sequence[Any]) -> Any:
        made = self.with_blocks(message, blocks)  # settled blocks are new objects each time, but their contents are not
        return message if all(map(is_, made.contents, message.contents)) else made


def _mark_paired(contents: Sequence[Any]) -> list[Any]:
    """Return `contents` with each result, and the call before it that it answers, marked as settled."""
    blocks = list(contents)
    open_calls: dict[Any, list[int]] = {}
    for place, content in enumerate(contents):
        if content.type == "function_call":
            open_calls.setdefault(content.call_id, []).append(place)
        elif content.type == "function_result" and open_calls.get(content.call_id):
            for settled in (place, open_calls[content.call_id].pop(0)):
                blocks[settled] = _Paired(contents[settled])
    return blocks


class _TextWire(AgentFrameworkWire):
    """The wire for a client that sends arguments as they are, to a provider that only takes text."""

    takes_objects = False


WIRE, TEXT_WIRE = AgentFrameworkWire(), _TextWire()
