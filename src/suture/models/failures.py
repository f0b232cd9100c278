"""What providers say when they refuse or fail, as Suture's own errors. What is secret never gets into one."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any, cast
from urllib.parse import urlsplit

from suture.codecs.replies import TOO_LONG
from suture.errors import (
    ConfigError,
    ContextLengthError,
    ModelAuthError,
    ModelError,
    ModelRequestError,
    ModelServerError,
    ModelTimeoutError,
    RateLimitError,
    StreamCutError,
    SutureError,
)

__all__ = ["brief", "json_fault", "retry_after", "scrubbed", "status_error"]

_FOR_GOOD = (
    *("insufficient_quota", "insufficient_balance", "exceeded_current_quota_error"),
    *("billing_hard_limit_reached", "billing_not_active", "billing_error"),
)
"""What waiting does not change: somebody has to pay."""
_LONGEST = 500
_SHORTEST = 8
"""A piece of a secret that is told: what is shorter gives nothing away."""
_REQUEST_IDS = ("x-request-id", "request-id", "x-amzn-requestid")
_KINDS: Mapping[int, type[ModelError]] = {
    401: ModelAuthError,
    403: ModelAuthError,
    408: ModelTimeoutError,
    409: ModelServerError,
    413: ContextLengthError,
    425: ModelServerError,
    429: RateLimitError,
}


def status_error(
    provider: str, status: int, body: Any, headers: Mapping[str, str], *, key: str = "", request_id: str = ""
) -> ModelError:
    """Return what an HTTP response that is no success says; `key` names where the key comes from.

    >>> error = status_error("openai-chat", 429, {"error": {"message": "Slow down."}}, {"retry-after": "2"})
    >>> type(error).__name__, error.retry_after, error.retryable
    ('RateLimitError', 2.0, True)
    >>> status_error("openai-chat", 307, "", {"location": "https://elsewhere.example/v1?key=x"}).reason
    'it redirects to https://elsewhere.example, and is not followed; give that as base_url if it is right'
    """
    reason, code = _told(body)
    kind = _KINDS.get(status) or (ModelServerError if status >= 500 else ModelRequestError)
    if kind is ModelRequestError and any(words in f"{code} {reason}".lower() for words in TOO_LONG):
        kind = ContextLengthError
    if kind is ModelAuthError and key:
        reason = f"{reason or 'the key is refused'}; check {key}"
    if 300 <= status < 400:
        where = _host(headers.get("location", ""))
        reason = f"it redirects to {where}, and is not followed; give that as base_url if it is right"
    return kind(
        reason or "it gives no reason",
        provider=provider,
        status=status,
        code=code,
        request_id=(request_id or next((headers[name] for name in _REQUEST_IDS if name in headers), ""))[:_LONGEST],
        retryable=False if code.lower() in _FOR_GOOD else None,
        retry_after=retry_after(headers),
    )


def brief(error: BaseException) -> str:
    """Return what an exception says, and no more of it than fits into another.

    >>> brief(ValueError("no such thing"))
    'ValueError: no such thing'
    """
    return f"{type(error).__name__}: {error}"[:_LONGEST]


def json_fault(payload: Any, provider: str) -> ModelRequestError | None:
    """Return why a request cannot be written as JSON, where it cannot: to send it again would not help.

    >>> print(json_fault({"temperature": {0.5}}, "anthropic"))
    anthropic: the request cannot be written as JSON (TypeError: Object of type set is not JSON serializable)
    """
    try:
        json.dumps(payload, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        return ModelRequestError(f"the request cannot be written as JSON ({brief(error)})", provider=provider)
    return None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds a provider asks to be left alone.

    >>> retry_after({"retry-after-ms": "1500"}), retry_after({"retry-after": "soon"}), retry_after({})
    (1.5, None, None)
    """
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        said = headers.get(name)
        if said is None:
            continue
        try:
            seconds = float(said) / unit
        except ValueError:
            seconds = _until(said)
        if seconds is not None and isfinite(seconds) and seconds >= 0:
            return seconds
    return None


def scrubbed(error: SutureError, secrets: Iterable[str]) -> SutureError:
    """Return `error`, without the secrets that a provider may have repeated in it.

    >>> str(scrubbed(ModelError("bad key sk-123456"), ["sk-123456"]))
    'bad key ***'
    """
    known = sorted(filter(None, secrets), key=len, reverse=True)
    if not isinstance(error, ModelError):
        told = str(error)
        clean = _without(told, known)
        kind = next((kind for kind in (StreamCutError, ConfigError) if isinstance(error, kind)), SutureError)
        return error if clean == told else kind(clean)
    facts = (error.reason, error.code, error.request_id)
    clean_facts = tuple([_without(fact, known) for fact in facts])
    if clean_facts == facts:
        return error
    reason, code, request_id = clean_facts
    return type(error)(
        reason,
        provider=error.provider,
        status=error.status,
        code=code,
        request_id=request_id,
        retryable=error.retryable,
        retry_after=error.retry_after,
    )


def _without(text: str, secrets: Iterable[str]) -> str:
    """Return `text` without the secrets, and without the beginning of one where the text was cut in it."""
    for secret in secrets:
        for length in range(len(secret), min(_SHORTEST, len(secret)) - 1, -1):
            if secret[:length] in text:
                text = text.replace(secret[:length], "***")
    return text


def _host(location: str) -> str:
    """Return where a redirect leads, without what else an address may hold."""
    try:
        parts = urlsplit(location)
    except ValueError:
        return "elsewhere"
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}"[:_LONGEST] if host else "elsewhere"


def _told(body: Any) -> tuple[str, str]:
    if isinstance(body, Sequence) and not isinstance(body, str | bytes) and body:
        body = cast("Sequence[Any]", body)[0]
    if not isinstance(body, Mapping):
        return (body.strip()[:_LONGEST] if isinstance(body, str) else ""), ""
    said = cast("Mapping[str, Any]", body)
    inner = said.get("error")
    if isinstance(inner, Mapping):
        said = cast("Mapping[str, Any]", inner)
    elif isinstance(inner, str):
        said = {"message": inner, **said}
    reason = said.get("message") or said.get("detail") or ""
    code = said.get("code") if isinstance(said.get("code"), str) else said.get("status") or said.get("type") or ""
    return str(reason)[:_LONGEST], str(code)[:64]


def _until(date: str) -> float | None:
    try:
        when = parsedate_to_datetime(date)
    except ValueError:
        return None
    return max(0.0, (when - datetime.now(UTC if when.tzinfo else None)).total_seconds())
