"""The HTTP client under the SDKs, and the errors for refusals and failures of providers.

Each event loop has one client, whose connections live as long as the loop. No redirect takes a key elsewhere, no body
is endless, and no secret gets into an error.
"""

import json
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from importlib import import_module
from math import isfinite
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from suture._loops import of_the_loop
from suture._text import mask
from suture.codecs.refusals import failure_kind, is_final, read_refusal, read_wait
from suture.errors import (
    ConfigError,
    ContextLengthError,
    ModelAuthError,
    ModelError,
    ModelRequestError,
    ModelServerError,
    ModelTimeoutError,
    RateLimitError,
    SutureError,
)
from suture.kernel import closing

MAX_REPLY = 256 * 1024 * 1024
"""How many bytes a reply may have, all its events together."""
MAX_ERROR = 1024 * 1024
"""How many bytes of an error are read; an SDK would read everything."""
_SHOULD_RETRY = {"true": True, "false": False}
"""What OpenAI and Anthropic say in the header `x-should-retry`, by which their own SDKs go."""
_LONGEST = 500
_REQUEST_IDS = ("x-request-id", "request-id", "x-amzn-requestid")
_KINDS: Mapping[int, type[ModelError]] = {
    401: ModelAuthError,
    402: ModelAuthError,
    403: ModelAuthError,
    408: ModelTimeoutError,
    409: ModelServerError,
    413: ContextLengthError,
    424: ModelServerError,
    425: ModelServerError,
    429: RateLimitError,
    498: ModelServerError,
}
_MISTAKES = (TypeError, AttributeError, LookupError, ImportError, NotImplementedError, UnicodeEncodeError)
"""What code of the program's raises, such as a hook of its client."""
_MALFORMED = frozenset(("UnsupportedProtocol", "LocalProtocolError", "InvalidURL"))
"""What an HTTP client raises for an address or a header that cannot be sent."""
_PUBLIC_HEADERS = frozenset(
    (
        "accept",
        "content-type",
        "user-agent",
        "referer",
        "http-referer",
        "x-title",
        "anthropic-beta",
        "anthropic-version",
    )
)
"""Headers whose values are no secrets; those of all others are masked in errors."""
answers: ContextVar[list[Any] | None] = ContextVar("suture_answers", default=None)
"""A list that collects responses, for an SDK that does not close them."""
time_limits: ContextVar[Mapping[str, float | None] | None] = ContextVar("suture_time_limits", default=None)
"""The seconds that the HTTP client waits, by step, for an SDK that has one number for all."""
_PIECE = 64 * 1024
_GZIP = ("gzip", "x-gzip", "deflate")
_ANY_GZIP = zlib.MAX_WBITS + 32
_CONNECTIONS = {"max_connections": 1000, "max_keepalive_connections": 100}
_ENVIRONMENT = "HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY and SSL_CERT_FILE"
"""What `httpx` and `httpx2` read."""
_ATTRIBUTE = "_suture_http"
_CLOSED = "disconnected without sending a response"
"""What a client says of a connection that closed before an answer; other violations of the protocol are answers."""


# Refusals and failures


def status_error(
    provider: str,
    status: int,
    body: Any,
    headers: Mapping[str, str],
    *,
    key: str = "",
    request_id: str = "",
    code: str = "",
) -> ModelError:
    """Return the error for an HTTP response that is not a success; `key` says where the key comes from.

    `code` is the provider's error code, if it is not in its usual place.

    >>> error = status_error("openai-chat", 429, {"error": {"message": "Slow down."}}, {"retry-after": "2"})
    >>> type(error).__name__, error.retry_after, error.retryable
    ('RateLimitError', 2.0, True)
    >>> status_error("openai-chat", 307, "", {"location": "https://elsewhere.example/v1?key=x"}).reason
    'it redirects to https://elsewhere.example, and is not followed; give that as base_url if it is right'
    """
    said = read_refusal(body)
    reason, own, code, text = said.reason, code, code or said.code, f"{code} {said.text}"
    kind = _KINDS.get(status) or (ModelServerError if status >= 500 else ModelRequestError)
    kind = failure_kind([own], kind, text)
    if kind is ModelAuthError and key and status != 402:
        reason = f"{reason or 'the key is refused'}; check {key}"
    if 300 <= status < 400:
        where = "elsewhere"
        with suppress(ValueError):
            parts = urlsplit(headers.get("location", ""))
            host = parts.netloc.rpartition("@")[2]  # nothing else of the address, which may hold a secret
            where = f"{parts.scheme}://{host}"[:_LONGEST] if host else where
        reason = f"it redirects to {where}, and is not followed; give that as base_url if it is right"
    return kind(
        reason or ("" if code.isdigit() else code) or "it gives no reason",
        provider=provider,
        status=status,
        code=code,
        request_id=(request_id or next((headers[name] for name in _REQUEST_IDS if name in headers), ""))[:_LONGEST],
        retryable=False if is_final(text) else _SHOULD_RETRY.get(headers.get("x-should-retry", "")),
        retry_after=read_wait(text) if (wait := retry_after(headers)) is None else wait,
    )


def brief(error: BaseException) -> str:
    """Return the type and the text of an exception, short enough for another error's text.

    >>> brief(ValueError("no such thing"))
    'ValueError: no such thing'
    """
    return f"{type(error).__name__}: {error}"[:_LONGEST]


def may_pass(error: BaseException) -> bool:
    """Return whether what failed below an SDK may pass; a mistake of the program's, or a certificate, stays.

    >>> may_pass(OSError("no route to host")), may_pass(TypeError("a hook of the client's"))
    (True, False)
    """
    is_mistake = isinstance(error, _MISTAKES) or type(error).__name__ in _MALFORMED
    return not is_mistake and "CERTIFICATE_VERIFY_FAILED" not in str(error)


def json_fault(payload: Any, provider: str) -> ModelRequestError | None:
    """Return an error if a request cannot be written as JSON; sending it again would not help.

    >>> print(json_fault({"temperature": {0.5}}, "anthropic"))
    anthropic: the request cannot be written as JSON (TypeError: Object of type set is not JSON serializable)
    """
    try:
        json.dumps(payload, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        return ModelRequestError(f"the request cannot be written as JSON ({brief(error)})", provider=provider)
    return None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds a provider asks to wait.

    `x-ratelimit-reset-…` is not read: it says when a limit is whole again, not when the next request may come.

    >>> retry_after({"retry-after-ms": "1500"}), retry_after({"retry-after": "soon"}), retry_after({})
    (1.5, None, None)
    """
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        seconds, said = -1.0, headers.get(name, "")
        try:
            seconds = float(said) / unit
        except ValueError:
            with suppress(ValueError):
                when = parsedate_to_datetime(said)
                seconds = max(0.0, (when - datetime.now(UTC if when.tzinfo else None)).total_seconds())
        if isfinite(seconds) and seconds >= 0:
            return seconds
    return None


def scrubbed(error: SutureError, secrets: Iterable[str]) -> SutureError:
    """Mask the secrets that a provider may have repeated in `error`, and return it.

    >>> str(scrubbed(ModelError("bad key sk-123456"), ["sk-123456"]))
    'bad key ***'
    """
    known = list(secrets)
    error.args = tuple([mask(told, known) if isinstance(told, str) else told for told in error.args])
    for name in ("reason", "code", "request_id"):
        if isinstance(said := getattr(error, name, None), str):
            setattr(error, name, mask(said, known))
    return error


def secrets_in(headers: Mapping[str, Any]) -> list[str]:
    """Return the values of headers that may be keys, and the key alone of one such as `Bearer KEY`.

    >>> secrets_in({"authorization": "Bearer sk-123456", "x-title": "harbour"})
    ['Bearer sk-123456', 'sk-123456']
    """
    said = [value for name, value in headers.items() if isinstance(value, str) and name.lower() not in _PUBLIC_HEADERS]
    return [text for value in said for text in (value.strip(), value.strip().rpartition(" ")[2])]


# The client


class Bound:
    """Limits the bytes of a body: an error that is too long is cut, a reply that is too long is refused.

    >>> bound = Bound(is_error=True)
    >>> len(bound.take(b"x" * 2 * MAX_ERROR)) == MAX_ERROR, bound.reached
    (True, True)
    """

    def __init__(self, *, is_error: bool = False, encoding: str = "") -> None:
        self._is_error, self._encoding = is_error, encoding
        self._left = MAX_ERROR if is_error else MAX_REPLY
        self._unpacker = zlib.decompressobj(_ANY_GZIP) if encoding in _GZIP else None

    @property
    def reached(self) -> bool:
        """Whether nothing more should be read."""
        return self._is_error and self._left <= 0

    def take(self, chunk: bytes) -> bytes:
        """Return the part of `chunk` within the limit; raise `ModelError` if the reply gets too long."""
        taken = chunk[: max(self._left, 0)] if self._is_error else chunk
        self._left -= len(chunk)
        if self._left < 0 and not self._is_error:
            raise ModelError(f"the reply has more than {MAX_REPLY} bytes")
        return taken

    def unpack(self, chunk: bytes) -> Iterator[bytes]:
        """Yield `chunk` unpacked and limited, piece by piece, because a small chunk may unpack to a huge one.

        Raises `ModelError` for a reply that is not compressed as it claims; for an error the status is enough.
        """
        if self._unpacker is None:
            yield self.take(chunk)
            return
        try:
            while not self.reached and (piece := self._unpacker.decompress(chunk, _PIECE)):
                chunk = self._unpacker.unconsumed_tail
                yield self.take(piece)
        except zlib.error as error:
            self._left = 0
            if not self._is_error:
                raise ModelError(
                    f"the body is not the {self._encoding} that it claims: {error}", retryable=True
                ) from None


class OwnClients(NamedTuple):
    """An event loop's HTTP client, and the SDK clients over it by model."""

    http: Any
    by_model: WeakKeyDictionary[Any, Any]


async def own_clients(library: str) -> OwnClients:
    """Return the clients of the running loop over `httpx` or `httpx2`, whichever the SDK stands on.

    Both are alike but for their names.
    """

    def make() -> OwnClients:
        return OwnClients(_make_client(import_module(library)), WeakKeyDictionary())

    return await of_the_loop(f"{_ATTRIBUTE}_{library}", make, lambda clients: clients.http.aclose())


def _make_client(library: Any) -> Any:
    class Client(library.AsyncClient):
        async def send(self, request: Any, **options: Any) -> Any:
            if (seconds := time_limits.get()) is not None:
                request.extensions["timeout"] = dict(seconds)
            above: Any = super()
            return await _send(partial(above.send, **options), request, library)

    class Bounded(library.AsyncByteStream):
        """A body with a limit: an error is cut, a reply that is too long is refused."""

        def __init__(self, whole: Any, bound: Bound) -> None:
            self._whole, self._bound = whole, bound

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async with closing(aiter(self._whole)) as chunks:
                async for chunk in chunks:
                    for piece in self._bound.unpack(chunk):
                        yield piece
                    if self._bound.reached:
                        return

        async def aclose(self) -> None:
            await self._whole.aclose()

    async def bound(response: Any) -> None:
        encoding = response.headers.pop("content-encoding", "").strip().lower()
        response.stream = Bounded(response.stream, Bound(is_error=response.status_code >= 300, encoding=encoding))
        noted = answers.get()
        if noted is not None:
            noted.append(response)

    try:
        return Client(
            follow_redirects=False,
            limits=library.Limits(**_CONNECTIONS),
            headers={"accept-encoding": "gzip"},
            event_hooks={"response": [bound]},
        )
    except Exception as error:  # noqa: BLE001 - whatever the library raises, the program can only change that
        # What is wrong about an address may be a part of its password.
        told = type(error).__name__ if type(error).__name__ in _MALFORMED else brief(error)
        raise ConfigError(f"the environment does not suit an HTTP client ({told}): check {_ENVIRONMENT}") from None


async def _send(send: Callable[[Any], Awaitable[Any]], request: Any, library: Any) -> Any:
    """Send `request`, again if it went out on a kept connection that the server was closing.

    Any server may close an idle connection, and llama.cpp's closes each behind a stream without saying so. If the next
    request meets the close, it was not read. Each time a connection leaves the pool, so at last there is a new one.
    """
    while True:
        seen: list[str] = []

        async def note(event: str, _: Any, seen: list[str] = seen) -> None:
            seen.append(event)

        request.extensions["trace"] = note
        try:
            return await send(request)
        except (library.ReadError, library.RemoteProtocolError) as error:
            is_new = any(".connect_" in event for event in seen)
            has_answer = any(event.endswith("receive_response_headers.complete") for event in seen)
            if is_new or has_answer or (isinstance(error, library.RemoteProtocolError) and _CLOSED not in str(error)):
                raise
