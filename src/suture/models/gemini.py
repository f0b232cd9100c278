"""`GeminiModel`: Google's Gemini, through the Gemini API or Vertex AI."""

import re
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from os import environ
from typing import Any, ClassVar

from suture.codecs.contents import overlay, rest_of
from suture.codecs.requests import take_out
from suture.errors import ConfigError, InputError, ModelError, SutureError
from suture.kernel import closing
from suture.messages import NativeM
from suture.models.http import answers, brief, status_error, time_limits
from suture.models.options import Envelope
from suture.models.provider import NO_KEY, Body, ProviderModel
from suture.models.sdks import find_google
from suture.providers.gemini.stream import read_details
from suture.wires.fields import is_map, map_of

_DUMMY = [{"role": "user", "parts": [{"text": "."}]}]
"""A dummy for the SDK's own arguments, which `extra_body` replaces."""
_KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_ENTERPRISE")


class GeminiModel(ProviderModel[NativeM]):
    """A model of Google's, through the `google-genai` package (extra `google`).

    For Vertex AI, pass a client: `GeminiModel("gemini-3-pro", client=genai.Client(vertexai=True, …))`.

    >>> GeminiModel("gemini-2.5-flash").profile
    'gemini'
    """

    codec_name: ClassVar[str] = "gemini"
    key_from: ClassVar[str] = "GEMINI_API_KEY, or api_key="
    key_names: ClassVar[tuple[str, ...]] = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
    client_from: ClassVar[tuple[str, str]] = ("google", "genai.Client()")
    key_paths: ClassVar[tuple[str, ...]] = ("_api_client.api_key",)
    without: ClassVar[Mapping[str, str]] = {"extra_query": "http_options may have a base_url with a query of its own"}

    async def events(self, body: Body) -> AsyncGenerator[dict[str, Any]]:
        client = await self.client()
        models = getattr(client, "aio", client).models
        if getattr(getattr(client, "_api_client", None), "vertexai", False):
            body = body._replace(messages=[_without_ids(content) for content in body.messages])
        envelope = body.envelope
        headers = {**envelope.http_options.get("headers", {}), **envelope.headers}
        options = {**envelope.http_options, "headers": headers, "extra_body": body.payload}
        asked = {"model": self.model, "contents": _DUMMY, "config": {**find_google().switches, "http_options": options}}
        if not body.streaming:
            with _waiting(envelope):
                whole = await models.generate_content(**asked)
            yield _plain(whole)
            return
        responses: list[Any] = []
        try:
            noting = answers.set(responses)
            try:
                with _waiting(envelope):
                    chunks = await models.generate_content_stream(**asked)
                    chunk = await anext(chunks, None)
            finally:
                answers.reset(noting)
            async with closing(chunks):
                while chunk is not None:
                    yield _plain(chunk)
                    chunk = await anext(chunks, None)
        finally:
            for response in responses:  # the SDK leaves closing to the garbage collector
                await response.aclose()

    def event_silence(self, body: Body) -> float | None:
        """Return the silence that a client that was passed in may show, since it has one limit for all."""
        is_timed = self.given_client is not None and (self.is_timed or body.envelope.is_timed)
        return body.envelope.limits.silence if is_timed else None

    def lay_fields(self, settings: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings of a body with those of `extra_body` merged into them, as the SDK does it."""
        return overlay(dict(settings), fields)

    def lay_over(self, body: Body) -> Body:
        """Return the body, in which Gemini also accepts calls of this turn that another model made.

        Before Gemini 3, tools and an answer schema exclude each other; the instruction describes the schema as well.
        """
        if "tools" in body.settings and _GEMINI_3.search(self.model) is None:
            for path in ("generationConfig.responseJsonSchema", "generationConfig.responseMimeType"):
                take_out(body.settings, path)
        return body._replace(messages=sign_foreign_calls(self.model, body.messages))

    def failure(self, error: Exception) -> SutureError | None:
        errors = find_google().errors
        given: Any = error
        if isinstance(error, errors.APIError):
            headers: Mapping[str, str] = getattr(given.response, "headers", None) or {}
            code, wait = "", None
            with suppress(InputError):
                code, wait = read_details(map_of(given.details if is_map(given.details) else {}, "error"))
            status = given.code or 500
            made = status_error("gemini", status, given.details, headers, key=self.key_hint, code=code)
            made.retry_after = wait if made.retry_after is None else made.retry_after
            return made
        kind = type(error).__module__.partition(".")[0]
        if type(error).__name__ in {"UnknownApiResponseError", "JSONDecodeError"}:
            return ModelError(f"it sent what is no JSON ({brief(error)})", provider="gemini", retryable=True)
        return ModelError(brief(error), provider="gemini") if kind in {"google", "pydantic_core"} else None

    def http_library(self) -> str:
        return find_google().http

    def make_client(self, http: Any) -> Any:
        genai = find_google().module
        key = self.api_key or (NO_KEY if self.base_url is not None else None)
        if key is None and not any(environ.get(name) for name in _KEYS):  # the SDK would leave half a client behind
            raise ConfigError(f"GeminiModel has no key: set {self.key_from}")
        options = {"httpx_async_client": http, "base_url": self.base_url}
        try:
            return genai.Client(api_key=key, http_options=options)
        except ValueError as error:
            raise ConfigError(f"GeminiModel has no key: set {self.key_from} ({error})") from None


@contextmanager
def _waiting(envelope: Envelope) -> Generator[None]:
    """Have the HTTP client wait as long as the limits say; the SDK's one number would limit the whole reply as well."""
    if "timeout" in envelope.http_options:
        yield
        return
    silence = envelope.limits.silence
    steps = {"connect": envelope.limits.connect, "read": silence, "write": silence, "pool": silence}
    setting = time_limits.set(steps)
    try:
        yield
    finally:
        time_limits.reset(setting)


def _without_ids(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a content without the ids of calls and responses: Vertex AI refuses them, and uses names and order.

    400: 'Unknown name "id" at contents[1].parts[0].function_call' (pydantic-ai#5081, fantasy#265, vercel/ai#15891).
    """
    parts: list[dict[str, Any]] = list(content["parts"])
    for place, part in enumerate(parts):
        kept = {name: rest_of(part[name], "id") for name in ("functionCall", "functionResponse") if name in part}
        parts[place] = {**part, **kept} if kept else part
    return {**content, "parts": parts}


def _plain(response: Any) -> dict[str, Any]:
    """Return one of the SDK's responses as the body it was made from."""
    return response.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"sdk_http_response"})


_NO_SIGNATURE = "skip_thought_signature_validator"
_GEMINI_3 = re.compile(r"(?:^|/)gemini-(?:[3-9]|\d\d)")


def sign_foreign_calls(model: str, contents: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Mark the first call of each step of this turn if it has no signature, which Gemini 3 demands.

    >>> asks = {"role": "model", "parts": [{"functionCall": {"name": "f"}}]}
    >>> sign_foreign_calls("gemini-3-pro", [{"role": "user", "parts": [{"text": "hi"}]}, asks])[1]["parts"][0]
    {'functionCall': {'name': 'f'}, 'thoughtSignature': 'skip_thought_signature_validator'}
    >>> sign_foreign_calls("gemini-2.5-flash", [asks])[0] is asks
    True
    """
    signed: list[Any] = list(contents)
    if _GEMINI_3.search(model) is None:
        return signed
    for place in range(len(signed) - 1, -1, -1):
        parts: list[dict[str, Any]] = signed[place].get("parts") or []
        if signed[place].get("role") == "model":
            first = next((at for at, part in enumerate(parts) if "functionCall" in part), None)
            if first is not None and not parts[first].get("thoughtSignature"):
                marked = {**parts[first], "thoughtSignature": _NO_SIGNATURE}
                signed[place] = {**signed[place], "parts": [*parts[:first], marked, *parts[first + 1 :]]}
        elif any("functionResponse" not in part for part in parts):
            break
    return signed
