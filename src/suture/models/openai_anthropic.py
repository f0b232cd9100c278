"""The models over the packages `openai` and `anthropic`, which Stainless generates alike.

The SDK handles the address, the key and the connection; our own decoder reads the bytes of the reply and limits them.
"""

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, ClassVar, cast

from suture.codecs import Codec, get_codec
from suture.errors import ConfigError, ModelError, SutureError
from suture.kernel import closing
from suture.messages import NativeM
from suture.models.http import Bound, brief, secrets_in, status_error
from suture.models.provider import NO_KEY, Body, ProviderModel, WholeBody, to_json
from suture.models.sampling import renames_max_tokens
from suture.models.sdks import StainlessSDK, find_stainless
from suture.wires import get_wire
from suture.wires.fields import parse_json

_RAW = "X-Stainless-Raw-Response"
"""The header that makes both packages return the raw response."""
_HEAD, _SHORTEST = 80, 6
"""How much of a body that is not a stream is quoted, and how much of it must have arrived to say so."""
_FIELD = re.compile(rb"\s*(\xef\xbb\xbf)?(data|event|id|retry)?:")
_ENVIRONMENT: dict[str, Any] = {"organization": None, "project": None, "_custom_headers": {}}
"""What else the packages read from the environment, which is meant for the provider and not for another server."""


class SDKModel(ProviderModel[NativeM]):
    """A model over one of the two packages, `openai` unless it says otherwise."""

    key_from: ClassVar[str] = "OPENAI_API_KEY, or api_key="
    key_names: ClassVar[tuple[str, ...]] = ("OPENAI_API_KEY",)
    asks_for_keys: ClassVar[bool] = True
    key_paths: ClassVar[tuple[str, ...]] = ("api_key", "auth_token", "_azure_ad_token")
    brand: ClassVar[str] = "OpenAI"
    """The prefix of the names of the package's client and errors."""
    without: ClassVar[Mapping[str, str]] = {"http_options": "extra_headers, extra_body and timeout are, or client="}
    takes_timeout: ClassVar[bool] = True
    client_from: ClassVar[tuple[str, str]] = ("openai", "openai.AsyncOpenAI()")
    path: ClassVar[str]
    """The path of requests, below the client's base URL."""

    async def events(self, body: Body) -> AsyncGenerator[dict[str, Any]]:
        client = await self.client()
        framing = self.codec.framing()
        whole: list[bytes] = []
        bound = Bound()
        is_stream: bool | None = None if body.streaming else False
        head, has_begun = b"", False
        async with self._ask(client, body) as response:
            if response.headers.get("content-type", "").startswith("text/html"):
                raise ModelError("it answers with a web page; check base_url", provider=self.codec_name)
            async with closing(response.iter_bytes()) as chunks:
                async for chunk in chunks:
                    taken = bound.take(chunk)
                    if is_stream is None and taken.strip():
                        is_stream = not taken.lstrip().startswith((b"{", b"["))  # some report an error as plain JSON
                    if is_stream is False:
                        whole.append(taken)
                        continue
                    head = head if has_begun else (head + taken)[:_HEAD]
                    for event in framing.feed(taken):
                        has_begun = True
                        yield event
        for event in framing.finish():
            has_begun = True
            yield event
        if not has_begun and len(head) > _SHORTEST and _FIELD.match(head) is None:
            told = f"it sends no events, but {head.decode(errors='replace')!r}; check base_url, or what stands between"
            raise ModelError(told, provider=self.codec_name, retryable=True)
        if is_stream is False:
            data = b"".join(whole)
            found: Any = parse_json(data)
            found = found[0] if found.__class__ is list and found else found
            if found.__class__ is not dict:
                told = f"the reply is not a JSON object: {data[:80].decode(errors='replace')!r}"
                raise ModelError(told, provider=self.codec_name, retryable=True)
            yield found if found.get("error") else WholeBody(found)

    @asynccontextmanager
    async def _ask(self, client: Any, body: Body) -> AsyncGenerator[Any]:
        """Yield the SDK's raw streaming response; the body is sent as ready bytes if the client takes them."""
        takes_bytes = self._sdk.takes_bytes and not hasattr(client, "_api_version")  # Azure's reads the model's name
        sent: dict[str, Any] = {"content": body.content} if takes_bytes else {"body": body.payload}
        envelope, headers = body.envelope, {**body.envelope.headers, "Content-Type": "application/json", _RAW: "stream"}
        options: dict[str, Any] = {"headers": headers, "params": envelope.query}
        if envelope.timeout is not None:
            options["timeout"] = envelope.timeout
        elif self.is_timed or envelope.is_timed:
            options["timeout"] = self._sdk.module.Timeout(envelope.limits.silence, connect=envelope.limits.connect)
        await self.renew_key(client)
        response = await client.post(self.path, **sent, cast_to=object, options=options)
        try:
            yield response
        finally:
            await response.close()

    def form(self, message: Any) -> bytes:
        return to_json(message)

    def lay_over(self, body: Body) -> Body:
        """Return the body with the model's name and the `stream` flag."""
        return body._replace(settings={"model": self.model, **body.settings, "stream": body.streaming})

    @property
    def _sdk(self) -> StainlessSDK:
        return find_stainless(self.brand.lower(), self.brand)

    def http_library(self) -> str:
        return self._sdk.http

    def failure(self, error: Exception) -> SutureError | None:
        sdk, given, provider = self._sdk.module, cast("Any", error), self.codec_name
        if isinstance(error, sdk.APIStatusError):
            body = given.body if given.body is not None else given.response.text
            about = {"key": self.key_hint, "request_id": given.request_id or ""}
            return status_error(provider, given.status_code, body, given.response.headers, **about)
        if isinstance(error, sdk.APIConnectionError):
            return self.unreached(error.__cause__ or error)
        is_own = isinstance(error, getattr(sdk, f"{self.brand}Error"))
        return ModelError(brief(error), provider=provider) if is_own else None

    def keys_of(self, client: Any) -> list[str]:
        """Return the secrets of a client, in its headers too."""
        headers: Mapping[str, Any] = getattr(client, "_custom_headers", {})
        return [*super().keys_of(client), *secrets_in(headers)]

    def make_client(self, http: Any) -> Any:
        sdk = self._sdk.module
        chosen: dict[str, Any] = {}
        if self.base_url is not None:
            chosen = {"base_url": self.base_url, "api_key": NO_KEY}
        if self.api_key is not None:
            chosen["api_key"] = self.api_key
        try:
            make = getattr(sdk, f"Async{self.brand}")
            client = make(max_retries=0, http_client=http, **chosen)
        except getattr(sdk, f"{self.brand}Error"):
            client = None
        ways = ("api_key", "auth_token", "credentials")
        if client is None or not any(getattr(client, way, None) for way in ways):
            raise ConfigError(f"{type(self).__name__} has no key: set {self.key_from}")
        if self.base_url is not None:
            for name, nothing in _ENVIRONMENT.items():
                setattr(client, name, nothing)
        if chosen and hasattr(client, "auth_token"):  # older releases send the environment's beside a key
            client.auth_token = None
        return client


_TELL_USAGE = frozenset(("mistral",))
"""Profiles whose servers report usage unasked and refuse the option: 422, extra_forbidden (avante#2347)."""


class OpenAIChatModel(SDKModel[NativeM]):
    """A model behind Chat Completions, through the `openai` package (extra `openai`).

    With `base_url` it is any compatible server: Ollama, vLLM, llama.cpp, OpenRouter. Such a server gets `api_key`,
    never the OpenAI key of your environment. `profile` says whose rules apply there.

    >>> model = OpenAIChatModel("qwen3", base_url="http://127.0.0.1:11434/v1", options={"temperature": 0})
    >>> model.wire, model.profile
    ('message', 'openai-chat')
    """

    codec_name: ClassVar[str] = "openai-chat"
    path: ClassVar[str] = "/chat/completions"
    strict_field: ClassVar[str] = "response_format.json_schema.strict"

    def lay_over(self, body: Body) -> Body:
        """Return the body; a stream also asks for its usage."""
        settings = dict(body.settings)
        if not body.streaming:
            settings.pop("stream_options", None)
        elif self.profile not in _TELL_USAGE:
            settings.setdefault("stream_options", {"include_usage": True})
        if "max_tokens" in settings and renames_max_tokens(settings.get("model", self.model)):
            settings.setdefault("max_completion_tokens", settings.pop("max_tokens"))
        return super().lay_over(body._replace(settings=settings))


_UNSTORED = get_codec("openai-responses", store=False)
_NO_REASONING = re.compile(r"(?:^|[/:])(?:gpt-3|gpt-4|chatgpt|gpt-5-chat)")
"""Models that do not reason: 400, 'Encrypted content is not supported with this model' (agent-framework#7483)."""


class OpenAIResponsesModel(SDKModel[NativeM]):
    """A model behind the Responses API, through the `openai` package (extra `openai`).

    The provider stores nothing: `store` is off, and reasoning comes back encrypted and is sent again with the next
    turn. Both can be set in `options`.

    >>> OpenAIResponsesModel("gpt-5", wire="agentic").profile
    'openai-responses'
    """

    codec_name: ClassVar[str] = "openai-responses"
    path: ClassVar[str] = "/responses"
    strict_field: ClassVar[str] = "text.format.strict"

    def choose(self, options: Mapping[str, Any]) -> tuple[Codec, Mapping[str, Any]]:
        """Return codec and options; if nothing is stored, items are sent without ids, which would be unknown."""
        if options.get("store"):
            return self.codec, options
        thoughts = {} if _NO_REASONING.search(self.model) else {"include": ["reasoning.encrypted_content"]}
        return _UNSTORED, {"store": False, **thoughts, **options}


_CACHE = {True: {"type": "ephemeral"}, "5m": {"type": "ephemeral"}, "1h": {"type": "ephemeral", "ttl": "1h"}}
_MARK = b'"cache_control":'
_CALL = b'"tool_use"'
_MARKS = 4
"""The most marks that a request may have."""


class AnthropicModel(SDKModel[NativeM]):
    """A model behind the Messages API, through the `anthropic` package (extra `anthropic`).

    The option `cache` (`True`, `"5m"` or `"1h"`) marks the end of the conversation, the instruction and the tools for
    Anthropic's prompt cache. Marks of your own are `extra={"anthropic": {"cache_control": …}}` on a block; a request
    takes four in all.

    >>> AnthropicModel("claude-sonnet-4-5", options={"cache": True, "max_tokens": 2000}).profile
    'anthropic'
    """

    codec_name: ClassVar[str] = "anthropic"
    closes_schema: ClassVar[bool] = True  # 400: 'additionalProperties must be explicitly set to false' (ax#458)
    key_from: ClassVar[str] = "ANTHROPIC_API_KEY, or api_key="
    key_names: ClassVar[tuple[str, ...]] = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
    brand: ClassVar[str] = "Anthropic"
    client_from: ClassVar[tuple[str, str]] = ("anthropic", "anthropic.AsyncAnthropic()")
    path: ClassVar[str] = "/v1/messages"

    def lay_over(self, body: Body) -> Body:
        """Return the body with cache marks if they are asked for; if it has no tools, those called are declared."""
        body = super().lay_over(body)
        if "tools" not in body.settings and any(_CALL in form for form in body.forms):
            view, form = get_wire(self.codec_name).view, self.codec.request_form
            tools = form.name_tools([call.name for message in body.messages for call in view(message).calls])
            body.settings.update({"tools": tools, "tool_choice": form.choices["none"]} if tools else {})
        asked = body.settings.pop("cache", None)
        if not asked:
            return body
        if not isinstance(asked, bool | str) or asked not in _CACHE:
            raise ConfigError(f"cache takes True, '5m' or '1h', not {asked!r}")
        return _add_marks(body, _CACHE[asked])


def _add_marks(body: Body, mark: dict[str, str]) -> Body:
    """Return the body with a mark on the end of the conversation, of the instruction and of the tools, in this order.

    Existing marks count towards the limit, so the later places may get none.
    """
    settings, messages, forms = dict(body.settings), body.messages, body.forms
    left = _MARKS - sum([form.count(_MARK) for form in forms]) - to_json(settings).count(_MARK)
    if messages and left > 0 and _takes_mark(messages[-1]["content"]):
        last = {**messages[-1], "content": _mark_last(messages[-1]["content"], mark)}
        messages, forms = [*messages[:-1], last], [*forms[:-1], to_json(last)]
        left -= 1
    for name in ("system", "tools"):
        if left > 0 and _takes_mark(settings.get(name)):
            settings[name] = _mark_last(settings[name], mark)
            left -= 1
    return body._replace(settings=settings, messages=messages, forms=forms)


def _takes_mark(blocks: Any) -> bool:
    """Return whether the last block can have a mark and has none yet."""
    if not blocks or not isinstance(blocks, list):
        return False
    last = cast("dict[str, Any]", blocks[-1])
    return "cache_control" not in last and last.get("type") not in {"thinking", "redacted_thinking"}


def _mark_last(blocks: list[Any], mark: Mapping[str, str]) -> list[Any]:
    return [*blocks[:-1], {**blocks[-1], "cache_control": dict(mark)}]
