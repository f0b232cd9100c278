"""The code that all provider models share: from a request to a body, from events to deltas and a message.

The messages come from the conversation of their history. What is only true at the end of it, such as a cache mark, is
added for one request and never kept.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from functools import reduce
from os import environ
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypedDict, Unpack, cast
from urllib.parse import urlsplit

import msgspec

from suture._aio import LOG, settle
from suture._text import secrets_of_address
from suture.codecs import Codec, Loss, Losses, Lost, Request, encode, get_codec
from suture.codecs.contents import overlay
from suture.codecs.refusals import read_refusal
from suture.codecs.requests import close_schema, make_strict, put_at
from suture.errors import (
    ConfigError,
    ModelConnectionError,
    ModelError,
    ModelRequestError,
    NotInRunError,
    StreamCutError,
    SutureError,
)
from suture.events import Custom
from suture.kernel import ModelRequest, closing, current_run
from suture.language import Language, resolve_language
from suture.messages import AgenticMessage, Delta, FrozenMap, History, NativeM
from suture.models.clients import check_client, client_of_loop
from suture.models.conversation import Conversation, follow
from suture.models.http import brief, json_fault, may_pass, own_clients, scrubbed, secrets_in
from suture.models.limits import Limits, find_timeout, innermost, limit_time, ran_out, read_limits
from suture.models.options import Envelope, explain_settings, find_misspelt, merge_options, split_options
from suture.models.sampling import leave_out
from suture.models.servers import find_refused, profile_at, refused_at
from suture.models.streaming import is_refused
from suture.models.windows import context_window
from suture.profiles import Profile, get_profile
from suture.tools import RunContext
from suture.wires import sendable

NO_KEY = "none-needed"
"""The key for a user's own server, which must never get the provider's key from the environment."""
_QUIET = (Lost.META, Lost.EXTRA)
"""Losses that nobody misses in a request."""
_ABOUT_TOOLS = ("tool_choice", "parallel_tool_calls")
_NETWORK = frozenset(("httpx2", "httpcore2", "httpx", "httpcore", "h11", "aiohttp", "urllib3", "http"))
"""Packages below the SDKs whose exceptions some SDKs let through."""
to_json = msgspec.json.Encoder().encode


class Settings(TypedDict, total=False):
    """The keyword arguments that the models of all providers take."""

    profile: str | Profile | None
    """Whose rules apply to requests; by default the provider's own, or those of the server at `base_url` if known."""
    client: Any
    """A client of the provider's SDK; it is neither changed nor closed, and each event loop has its own connections."""
    api_key: str | Callable[[], str | Awaitable[str]] | None
    """The key; by default from the environment. For `openai` and `anthropic` also a function that each request asks."""
    base_url: str | None
    """The provider's address; by default the SDK's."""
    headers: Mapping[str, str] | None
    """Headers of every request, beside those of the SDK."""
    timeout: float | None
    """How many seconds a silence may last: until the first byte of a reply, and between two."""
    connect_timeout: float | None
    """How many seconds connecting may take."""
    total_timeout: float | None
    """How many seconds a whole reply may take."""
    streaming: bool
    """Whether the reply is requested as a stream."""
    options: Mapping[str, Any] | None
    """Options of every request, such as `{"temperature": 0}`; those of a run override them."""


class Body(NamedTuple):
    """The body of a request: its settings, and its messages as plain data and in the form that the SDK takes.

    >>> body = Body({"model": "m"}, "messages", [{"role": "user"}], [b'{"role":"user"}'])
    >>> body.payload
    {'model': 'm', 'messages': [{'role': 'user'}]}
    >>> body.content
    b'{"model":"m","messages":[{"role":"user"}]}'
    """

    settings: dict[str, Any]
    field: str
    messages: list[Any]
    forms: list[Any]
    """The messages in the form that the SDK takes: bytes, if it takes a ready body."""
    streaming: bool = True
    """Whether the reply is requested as a stream."""
    envelope: Envelope = Envelope()
    """What the request has beside its body."""

    @property
    def payload(self) -> dict[str, Any]:
        """The body as plain data."""
        return {**self.settings, self.field: self.messages}

    @property
    def content(self) -> bytes:
        """The body as JSON, joined from messages that are bytes already."""
        head = to_json(self.settings)[:-1] + (b"," if self.settings else b"")
        return b"".join((head, to_json(self.field), b":[", b",".join(self.forms), b"]}"))


class ProviderModel(ABC, Generic[NativeM]):
    """A model of one provider. Its messages are `Message`, or `AgenticMessage` with `wire="agentic"`."""

    codec_name: ClassVar[str]
    key_from: ClassVar[str]
    """Where the key comes from, for the error if it is refused."""
    key_names: ClassVar[tuple[str, ...]] = ()
    """The variables of the environment that hold the provider's own key."""
    closes_schema: ClassVar[bool] = False
    """Whether objects in an answer schema must forbid additional fields."""
    without: ClassVar[Mapping[str, str]] = {}
    """Options of other SDKs that have no place here, and what there is instead."""
    takes_timeout: ClassVar[bool] = False
    """Whether the SDK has an object of its own for the time of a request."""
    client_from: ClassVar[tuple[str, str]] = ("", "")
    """The package of the SDK, and an example of its client."""
    strict_field: ClassVar[str] = ""
    """Where a request says that its answer schema is strict, if the provider has such a mode."""
    asks_for_keys: ClassVar[bool] = False
    """Whether `api_key` may be a function."""
    key_paths: ClassVar[tuple[str, ...]] = ()
    """The attributes of an SDK client that hold keys, to keep these out of errors."""

    def __init__(
        self, model: str, *, wire: Literal["message", "agentic"] = "message", **settings: Unpack[Settings]
    ) -> None:
        unknown = set(settings) - set(Settings.__annotations__)
        if unknown:
            told = explain_settings(unknown, Settings.__annotations__)
            raise ConfigError(f"{type(self).__name__} has no such setting; here it is called: {told}")
        if not isinstance(model, str) or not model:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"{type(self).__name__} takes the name of a model first, not {model!r}")
        if wire not in {"message", "agentic"}:
            raise ConfigError(f"a model speaks 'message' or 'agentic', not {wire!r}")
        options: Any = settings.get("options") or {}
        if not isinstance(options, Mapping):
            raise ConfigError(f"options are a mapping of names to values, not {type(options).__name__}")
        self.model, self.wire = model, wire
        self.limits = read_limits(settings)
        self._envelope = Envelope(self.limits, headers=_read_headers(settings.get("headers")))
        address = settings.get("base_url") or getattr(settings.get("client"), "base_url", None)
        profile = get_profile(settings.get("profile") or profile_at(address, self.codec_name))
        if not profile.speaks_of(self.codec_name):
            raise ConfigError(f"profile {profile.name} has no rules for {self.codec_name} messages")
        self.profile, self.rules = profile.name, profile
        self.streaming = settings.get("streaming", True)
        self.options: Mapping[str, Any] = FrozenMap(cast("Mapping[str, Any]", options))
        self.base_url = settings.get("base_url")
        _check_address(self.base_url)
        self.api_key, self.find_key = self._read_key(settings.get("api_key"))
        self.key_variable = ""
        """The variable of the environment that `api_key` was read from, if known."""
        self.given_client: Any = settings.get("client")
        self._secrets = {self.api_key} - {NO_KEY} if self.api_key else set[str]()
        self.codec: Codec = get_codec(self.codec_name, field=profile.field, without=refused_at(address))
        self.is_timed = self.given_client is None or not settings.keys().isdisjoint(("timeout", "connect_timeout"))
        """Whether the limits hold; a client that is passed in has its own."""
        self._logged: dict[str, object] = {}
        """What was logged already, which is once for a model."""
        self._names: set[str] = set()
        """The options that were looked at for misspelt names."""
        self._only: bool | None = None
        """Whether the provider only streams, or never does, once it has refused the other."""
        if self.given_client is not None:
            self._check_client()

    def _read_key(self, given: Any) -> tuple[str | None, Callable[[], Any] | None]:
        """Return the key, and the function that gives the key of each request, if it is not always the same."""
        if given is None or isinstance(given, str):
            return given, None
        if not (callable(given) and self.asks_for_keys):
            raise ConfigError(f"{type(self).__name__}: api_key takes a text, not {type(given).__name__}")
        return NO_KEY, given

    def _check_client(self) -> None:
        """Raise `ConfigError` if the client that was passed in cannot be used, or not with the other settings."""
        if self.base_url is not None or self.api_key is not None:
            raise ConfigError("a client that is passed in has its own key and address; give one or the other")
        check_client(type(self).__name__, self.given_client, *self.client_from)

    @property
    def name(self) -> str:
        """The model's name in events."""
        return self.model

    @property
    def context_window(self) -> int | None:
        """The size of its context in tokens, if known; `Compaction` uses it."""
        return context_window(self.model)

    @property
    def key_hint(self) -> str:
        """Where a refused key came from; a user's own server never gets the provider's from the environment."""
        if self.base_url is None or self.key_variable:
            return self.key_variable or self.key_from
        present = next((name for name in self.key_names if environ.get(name)), "") if self.api_key is None else ""
        unsent = f"api_key=: {present} is set, but base_url= is sent no key unless you pass it, as "
        return f"{unsent}api_key=os.environ[{present!r}]" if present else "api_key="

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r})"

    async def stream(self, request: ModelRequest[NativeM], /) -> AsyncIterator[Delta | NativeM]:
        """Send a request, and yield the reply's deltas as they come, then the whole message.

        If the provider refuses to stream, it is asked again, and from then on, for whole replies; or the other way. If
        it refuses the field of a thought, it is asked again, and from then on, without.
        """
        codec, body = self.codec, self.body(request)
        failure: SutureError | None = None
        has_begun = False
        try:
            async with closing(self._receive(body)) as items:
                async for item in items:
                    has_begun = True
                    yield item
        except Exception as error:  # noqa: BLE001 - any error of an SDK becomes one of ours
            held = [*self._secrets, *self.keys_of(self.given_client), *secrets_in(body.envelope.headers)]
            address = self.base_url or getattr(self.given_client, "base_url", None) or ""
            failure = scrubbed(self._explain(error, body), [*held, *secrets_of_address(str(address))])
        if failure is None:
            return
        failure.__cause__ = failure.__context__ = None  # handled here, so that it does not refer to the SDK's error
        if has_begun or not isinstance(failure, ModelError) or not self._learn(failure, body, codec):
            raise failure
        async with closing(self.stream(request)) as items:
            async for item in items:
                yield item

    def _learn(self, failure: ModelError, body: Body, codec: Codec) -> bool:
        """Return whether a refusal says how to ask instead, of a body that `codec` wrote; remember it."""
        if self._only != body.streaming and is_refused(failure.reason, streaming=body.streaming):
            self._only = not body.streaming
            ways = ("whole replies", "streams") if self._only else ("streams", "whole replies")
            self._log("stream", f"the provider refuses {ways[0]} ({failure.reason}); it is asked for {ways[1]} instead")
            return True
        field = find_refused(failure.reason) if type(failure) is ModelRequestError else ""
        if not field or field in codec.without or not any(field in message for message in body.messages):
            return False
        self.codec = get_codec(codec.name, field=codec.field, without=self.codec.without | {field})
        self._log(field, f"the server refuses a thought in {field} ({failure.reason}); it is left out instead")
        return True

    async def _receive(self, body: Body) -> AsyncGenerator[Delta | NativeM]:
        """Send a body, and yield the reply's deltas, then the whole message."""
        reader = self.codec.reader()
        whole: Mapping[str, Any] | None = None
        stream, silence, total = self.events(body), self.event_silence(body), body.envelope.limits.total
        if silence is not None or total is not None:
            stream = limit_time(stream, silence, total, self.codec_name)
        async with closing(stream) as events:
            async for event in events:
                if not body.streaming or isinstance(event, WholeBody):
                    whole = event  # some servers never stream
                    continue
                for delta in reader.feed(event):
                    yield delta
        message = reader.finish() if whole is None else self._read(whole)
        yield cast("NativeM", encode([message], self.wire).messages[0])

    def event_silence(self, body: Body) -> float | None:
        """Return how long to wait for an event, if the SDK's client does not limit the silence between bytes."""
        del body
        return None

    def _log(self, what: str, text: str) -> None:
        """Log a warning about this model once."""
        if self._logged.setdefault(what, mark := object()) is mark:
            LOG.warning("%s %s: %s", type(self).__name__, self.model, text)

    def _read(self, whole: Mapping[str, Any]) -> AgenticMessage:
        """Decode a whole body; if it is not a reply, add the reason that it gives to the error."""
        try:
            return self.codec.decode_reply(whole)
        except ModelError as error:
            said = read_refusal(whole).reason
            if not said or said in error.reason or type(error) is not ModelError:
                raise
            told = f"{error.reason}; it says: {said}"
            raise ModelError(told, provider=self.codec_name, retryable=error.retryable) from None

    @abstractmethod
    def events(self, body: Body) -> AsyncGenerator[dict[str, Any]]:
        """Send `body` and yield the events of the stream, or the whole body if this model does not stream."""

    async def client(self) -> Any:
        """Return the client of the running loop: a copy of the one that was passed in, or one over our HTTP client."""
        if self.given_client is not None:
            return await client_of_loop(self.given_client)
        clients = await own_clients(self.http_library())
        address, client = clients.by_model.get(self, ("", None))
        if client is None or address != self.base_url:
            client = self.make_client(clients.http)
            self._secrets.update(self.keys_of(client))
            clients.by_model[self] = self.base_url, client
        return client

    def http_library(self) -> str:
        """Return the name of the library under the SDK's clients."""
        raise NotImplementedError

    def make_client(self, http: Any) -> Any:
        """Return a client of the SDK over an HTTP client."""
        raise NotImplementedError

    @abstractmethod
    def failure(self, error: Exception) -> SutureError | None:
        """Return our error for an exception of the SDK, or `None` if it is not the SDK's."""

    async def renew_key(self, client: Any) -> None:
        """Give a client of ours the key that the program's function has now."""
        if self.find_key is not None and self.given_client is None:
            key: Any = await settle(self.find_key())
            if not isinstance(key, str) or not key:
                raise ConfigError(f"the function given as api_key returned {type(key).__name__}, not a key")
            self._secrets.add(key)
            client.api_key = key

    def keys_of(self, client: Any) -> list[str]:
        """Return the secrets of a client, which must never appear in an error."""
        held = [reduce(lambda holder, name: getattr(holder, name, None), p.split("."), client) for p in self.key_paths]
        return [key for key in held if isinstance(key, str) and key not in ("", NO_KEY)]

    def choose(self, options: Mapping[str, Any]) -> tuple[Codec, Mapping[str, Any]]:
        """Return the codec and the options of a request, including this model's own defaults."""
        return self.codec, options

    def form(self, message: Any) -> Any:
        """Return a message in the form that the SDK takes; the result is kept."""
        return message

    def lay_over(self, body: Body) -> Body:
        """Return the body with what every request has, such as the model's name, and what only this one has."""
        return body

    def unreached(self, error: BaseException) -> ModelConnectionError:
        """Return the error for a server that cannot be reached."""
        where = self.base_url or "the provider"
        told = f"{where} was not reached ({brief(error)})"
        return ModelConnectionError(told, provider=self.codec_name, retryable=may_pass(error))

    def cut(self, error: BaseException) -> StreamCutError:
        """Return the error for a reply that broke off."""
        return StreamCutError(f"{self.codec_name}: the connection broke before the message was whole ({brief(error)})")

    def _explain(self, error: Exception, body: Body) -> SutureError:
        if isinstance(error, ModelError) and not error.provider:
            return type(error)(error.reason, provider=self.codec_name, retryable=error.retryable)
        if isinstance(error, SutureError):
            return error
        if name := find_timeout(error):
            limits = body.envelope.limits if self.is_timed or body.envelope.is_timed else Limits(None, None)
            seconds = limits.connect if name == "connect_timeout" else limits.silence
            inner = innermost(error)
            return ran_out(name, seconds, self.codec_name, brief(inner) if str(inner) else "")
        meaning, kind = self.failure(error), type(error)
        if meaning is not None:
            return meaning
        below = kind.__name__ if kind.__module__.partition(".")[0] in _NETWORK else ""
        if below:
            return self.unreached(error) if "Connect" in below else self.cut(error)
        if isinstance(error, OSError):
            return ModelConnectionError(f"the connection broke ({brief(error)})", provider=self.codec_name)
        told = f"the exchange failed ({brief(error)})"
        failed = ModelError(told, provider=self.codec_name, retryable=may_pass(error))
        return json_fault(body.payload, self.codec_name) or failed

    def lay_fields(self, settings: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings of a body with those of `extra_body` in their place, as the SDK does it."""
        return {**settings, **fields}

    def _adapt(self, options: Mapping[str, Any], losses: Losses) -> Mapping[str, Any]:
        """Leave out the options that this model refuses, and warn of names that are nearly those of others."""
        if not options:
            return options
        new = [name for name in options if name not in self._names]
        for name in new:
            if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance] - the caller's code
                raise ConfigError(f"options are a mapping of names to values; {name!r} is no name")
        self._names.update(new)
        for name, meant in find_misspelt(new):
            self._log(name, f"the option {name} is sent as it is; was {meant} meant?")
        model = str(options.get("model", self.model))
        refused = leave_out(model, options)
        if not refused:
            return options
        for name in refused:
            losses.add(Lost.OPTION, f"{name}, which {model} refuses")
            self._log(name, f"the option {name} is left out, since {model} refuses it; extra_body= would send it")
        return {name: value for name, value in options.items() if name not in refused}

    def _fit_options(self, options: Mapping[str, Any], losses: Losses, *, has_tools: bool) -> Mapping[str, Any]:
        """Drop options about tools if there are none, and fit the answer schema to what the provider takes."""
        if not has_tools and self.codec.request_form.tools.partition(".")[0] not in options:
            options = {name: value for name, value in options.items() if name not in _ABOUT_TOOLS}
        if self.closes_schema and "output_schema" in options:
            closed = close_schema(options["output_schema"])
            options = {name: value for name, value in options.items() if name != "output_schema"}
            if closed is None:
                losses.add(Lost.OPTION, "output_schema, which has objects with any fields")
            else:
                options["output_schema"] = closed
        strict = make_strict(options["output_schema"]) if self.strict_field and "output_schema" in options else None
        if strict is not None:
            field: dict[str, Any] = {}
            put_at(field, self.strict_field, True)  # noqa: FBT003 - a value of JSON
            options = overlay(field, {**options, "output_schema": strict})
        return options

    def body(self, request: ModelRequest[NativeM]) -> Body:
        """Return the body of a request; only its new messages are encoded and fitted."""
        merged = merge_options(self.options, request.options)
        wants_stream = bool(merged.pop("stream", True)) and self.streaming and request.streaming
        is_stream = wants_stream if self._only is None else self._only
        merged, envelope = split_options(merged, self._envelope, self.without)
        if self.codec.messages_field in merged.keys() | envelope.body.keys():
            raise ConfigError(f"{self.codec.messages_field} is no option: the history is what the run is given")
        if envelope.timeout is not None and not self.takes_timeout:
            raise ConfigError(f"timeout counts seconds, not {type(envelope.timeout).__name__}")
        codec, options = self.choose(merged)
        losses = Losses()
        options = self._fit_options(self._adapt(options, losses), losses, has_tools=bool(request.tool_infos))
        run = _find_run()
        language = cast("Language", run.language) if run is not None else resolve_language(None)
        key = (codec.name, codec.field, codec.without, codec.store, self.rules, language, type(self))
        history: History[Any] = History.of(request.messages)
        conversation = follow(history, key, lambda: Conversation(codec, self.rules, language, self.form))
        asked = Request(conversation.outside, request.instruction, request.tool_infos, options)
        settings = sendable(codec.write_settings(asked, losses))
        _send_losses(run, (*conversation.losses, *losses.found()))
        messages, head = conversation.fitted(), codec.write_head(sendable(request.instruction))
        forms = [*map(self.form, head), *conversation.forms(messages)]
        body = self.lay_over(Body(settings, codec.messages_field, [*head, *messages], forms, is_stream, envelope))
        return body._replace(settings=self.lay_fields(body.settings, envelope.body)) if envelope.body else body


class WholeBody(dict[str, Any]):
    """A reply that came in one piece, although a stream was asked for.

    >>> WholeBody({"choices": []})["choices"]
    []
    """


def _check_address(address: Any) -> None:
    """Raise `ConfigError` if a provider's address is none of HTTP."""
    if address is None:
        return
    with suppress(ValueError):  # such as an IPv6 address that is not closed
        parts = urlsplit(str(address))
        if parts.scheme in ("http", "https") and parts.hostname:
            return
    raise ConfigError(f"base_url begins with http:// or https:// and names a server; got {address!r}")


def _read_headers(headers: Any) -> Mapping[str, str]:
    if headers is None:
        return FrozenMap()
    if not isinstance(headers, Mapping) or not all(isinstance(item, str) for pair in headers.items() for item in pair):  # pyright: ignore[reportUnknownVariableType]
        raise ConfigError("headers are a mapping of names to texts")
    return FrozenMap(cast("Mapping[str, str]", headers))


def _find_run() -> RunContext[Any] | None:
    """Return the current run, if there is one."""
    with suppress(NotInRunError):
        return current_run()
    return None


def _send_losses(run: RunContext[Any] | None, losses: Iterable[Loss]) -> None:
    """Send an event about losses in the request, once for each loss, if there is a run."""
    missed = [loss for loss in losses if loss.name not in _QUIET]
    sent: set[Loss] = run.cache.setdefault(Loss, set()) if run is not None and missed else set()
    new = [loss for loss in missed if loss not in sent]
    if new and run is not None:
        sent.update(new)
        named = [{"name": loss.name.value, "what": loss.what, "index": loss.index, "path": loss.path} for loss in new]
        run.send(Custom("losses", named))
