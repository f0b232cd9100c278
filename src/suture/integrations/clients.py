"""Clients of the official SDKs whose requests carry acceptable histories.

Every method of such a client, plain or streaming, raw or parsed, stable or beta, ends in one public method, `request`.
A copy of the client gets its own `request`, which repairs the body and passes everything else on. It returns what the
original returns, a response or an awaitable, so sync and async clients are the same here.
"""

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from copy import copy
from functools import partial
from inspect import isawaitable
from operator import is_
from threading import Lock
from typing import Any, TypeVar, cast

from suture._extras import check_extra
from suture.errors import ConfigError
from suture.integrations.guest import GuestOptions, repair_request
from suture.profiles import PROFILES, default_profile, get_profile
from suture.providers import BATCHES, KEPT, PLACES, continues
from suture.wires import get_wire
from suture.wires.fields import get, given, is_list, is_map, word

__all__ = ["ClientT", "OpenCalls", "id_of", "wrap_client"]

_Body = Mapping[str, Any]
_Hear = Callable[[Any], None]
"""Called with each response, or each event of its stream."""
ClientT = TypeVar("ClientT")
_RESPONSES = PLACES["responses"]


class _Requests:
    """Repairs the histories in the bodies of requests, if they are of one of `wires`; other bodies stay as they are."""

    def __init__(self, options: GuestOptions, wires: Sequence[str]) -> None:
        self._options, self.calls, profile = options, OpenCalls(), options.profile
        spoken = [wire for wire in wires if profile is not None and profile.speaks_of(wire)]
        if profile is not None and not spoken:
            known = [name for name in PROFILES if any(map(get_profile(name).speaks_of, wires))]
            reason = f"the profile {profile.name!r} has no rules for what this client sends"
            raise ConfigError(f"{reason}; these do: {', '.join(known)}")
        self._profiles = {wire: profile if wire in spoken else default_profile(wire) for wire in wires}

    def repair(self, path: str, body: _Body, added: _Body) -> _Body:
        """Return the body to send: `body` itself if that is acceptable; the SDK will merge `added` into it."""
        path = path.removeprefix("v1/")
        place, batch = PLACES.get(path), body.get("requests")
        if place is None or place.wire not in self._profiles:
            return body
        if path == BATCHES and batch.__class__ is list:
            requests = [self._repair_params(request) for request in cast("list[Any]", batch)]
            return body if all(map(is_, requests, cast("list[Any]", batch))) else {**body, "requests": requests}
        sent, kept = {**body, **added}, list[Any]()
        if place is _RESPONSES:
            kept = self.calls.before(KEPT, sent.get("previous_response_id"), id_of(sent.get("conversation")))
        elif place.wire == "anthropic" and continues(sent):
            return body
        history = body.get(place.field)
        messages: Any = list(cast("Iterator[Any]", history)) if isinstance(history, Iterator) else history
        if kept and kept[-1] is not KEPT and (history is None or isinstance(history, str)):
            messages = [{"role": "user", "content": history}] if history else []
        if not is_list(messages):
            return body
        messages = repair_request(messages, place.wire, self._options, profile=self._profiles[place.wire], kept=kept)
        return body if messages is history else {**body, place.field: messages}

    def _repair_params(self, request: Any) -> Any:
        """Return one request of a batch."""
        params: Any = get(request, "params")
        repaired = self.repair("messages", params, {}) if is_map(params) else params
        return request if repaired is params else {**request, "params": repaired}


class OpenCalls:
    """The calls that a service keeps and waits for, as far as their responses were seen.

    A service that keeps a conversation (`previous_response_id`, `conversation`) refuses its next request without their
    results. Nothing else of a conversation is remembered, and only for the last few thousand responses.

    >>> calls = OpenCalls()
    >>> calls.note("resp_1", ["a call"], complete=True)
    >>> calls.before("…", "resp_1", None), calls.before("…", "resp_2", None), calls.before("…", None, None)
    (['a call'], ['…'], [])
    """

    _MOST = 4_096

    def __init__(self) -> None:
        self._lock = Lock()
        self._calls: OrderedDict[str, tuple[list[Any], bool]] = OrderedDict()

    def note(self, key: Any, calls: Sequence[Any], *, complete: bool) -> None:
        """Remember the open calls of a response or a conversation; `complete` means that there can be no others."""
        if key:
            with self._lock:
                self._calls[key] = [*calls], complete
                self._calls.move_to_end(key)
                while len(self._calls) > self._MOST:
                    self._calls.popitem(last=False)

    def before(self, marker: Any, response: Any, conversation: Any) -> list[Any]:
        """Return what comes before a request that continues a response or a conversation kept by the service.

        That is its open calls, after a `marker` if there may be others.
        """
        if not response and not conversation:
            return []
        with self._lock:
            calls, complete = self._calls.get(response) or self._calls.get(conversation) or ([], False)
        return [*calls] if complete else [marker, *calls]

    def hear(self) -> _Hear:
        """Return a function that reads one response of OpenAI's, whole or event by event."""
        keys: list[Any] = []
        calls: list[Any] = []

        def hear(thing: Any) -> None:
            response = thing if is_list(get(thing, "output")) else get(thing, "response")
            if response is not None:
                keys[:] = [get(response, "id"), id_of(get(response, "conversation"))]
                output = get(response, "output")
                found = [call for item in output or () if (call := _open_call(item)) is not None]
                self.note(keys[0], found, complete=get(response, "status") == "completed")
                self.note(keys[1], found, complete=False)
            elif word(thing, "type") == "response.output_item.done" and keys:
                calls.extend([call for call in [_open_call(get(thing, "item"))] if call is not None])
                for key in keys:
                    self.note(key, calls, complete=False)

        return hear


def id_of(conversation: Any) -> Any:
    """Return the id of a conversation, which may be given as an object.

    >>> id_of({"id": "conv_1"}), id_of("conv_1"), id_of(None)
    ('conv_1', 'conv_1', None)
    """
    return conversation if isinstance(conversation, str) else get(conversation, "id")


def _open_call(item: Any) -> Any:
    """Return the fields of a call that an answer needs; `None` if `item` is not a call that can be answered."""
    wire = get_wire("openai-responses")
    calls = wire.view(item).calls if str(word(item, "type") or "").endswith(("_call", "_request")) else ()
    if not calls or not wire.can_answer(calls[0]):
        return None
    call = given(**{name: get(item, name) for name in ("type", "call_id", "id", "name", "server_label")})
    if call["type"] == "function_call":
        call.pop("id", None)
        call["arguments"] = "{}"
    return call


def wrap_client(client: ClientT, package: str, wires: Sequence[str], options: GuestOptions) -> ClientT:
    """Return a copy of a client of the SDK `package` whose POST requests carry acceptable histories."""
    original: Any = client
    kind = cast("type", original.__class__)
    known = package in {base.__module__.partition(".")[0] for base in kind.__mro__}
    if not known or not all(hasattr(kind, name) for name in ("request", "copy", "with_options")):
        raise ConfigError(f"expected a client of the package {package}, found {kind.__name__}; pass the client itself")
    check_extra(package, package)
    return _dress(original.copy(**_same_connections(original)), _Requests(options, wires))


def _same_connections(client: Any) -> dict[str, Any]:
    """Return what makes a copy use the connections of `client`; older clients of platforms would open their own."""
    return {"http_client": client._client}  # noqa: SLF001 - there is no other way


def _dress(client: Any, requests: _Requests) -> Any:
    """Give `client`, which nobody else uses yet, and all its copies a `request` that repairs."""
    kind = client.__class__

    def request(cast_to: Any, options: Any, *rest: Any, **named: Any) -> Any:
        path = options.url.partition("?")[0].strip("/")
        body, added = options.json_data, options.extra_json
        if options.method.lower() == "post" and is_map(body):
            repaired = requests.repair(path, body, added if is_map(added) else {})
            if repaired is not body:
                options = copy(options)
                options.json_data = repaired
        reply = kind.request(client, cast_to, options, *rest, **named)
        return _listen(reply, requests.calls.hear()) if path.startswith("responses") else reply

    def copied(how: Callable[..., Any], *rest: Any, **named: Any) -> Any:
        return _dress(how(client, *rest, **{**_same_connections(client), **named}), requests)

    client.request = request
    client.copy, client.with_options = partial(copied, kind.copy), partial(copied, kind.with_options)
    return client


def _listen(reply: Any, hear: _Hear) -> Any:
    """Return the reply of a request, and call `hear` with it: now, when it is awaited or parsed, or as it streams."""

    async def later() -> Any:
        return _listen(await reply, hear)

    if isawaitable(reply):
        return later()
    events: Any = getattr(reply, "_iterator", None)
    if hasattr(events, "__anext__"):
        reply._iterator = _watch_async(events, hear)  # noqa: SLF001 - the one place that all events pass
    elif events is not None:
        reply._iterator = _watch(events, hear)  # noqa: SLF001
    elif hasattr(reply, "http_response") and callable(getattr(reply, "parse", None)):
        parse = reply.parse
        reply.parse = lambda *rest, **named: _listen(parse(*rest, **named), hear)  # pyright: ignore[reportUnknownLambdaType]
    else:
        hear(reply)
    return reply


def _watch(events: Iterator[Any], hear: _Hear) -> Iterator[Any]:
    for event in events:
        hear(event)
        yield event


async def _watch_async(events: Any, hear: _Hear) -> AsyncIterator[Any]:
    async with aclosing(events) as coming:
        async for event in coming:
            hear(event)
            yield event
