"""The errors that a server of Chat Completions reports in a reply or in the middle of a stream."""

from collections.abc import Mapping
from typing import Any

from suture.errors import (
    ContextLengthError,
    ModelAuthError,
    ModelError,
    ModelRequestError,
    ModelServerError,
    ModelTimeoutError,
    RateLimitError,
)
from suture.providers.openai_chat.parts import WIRE, is_map

__all__ = ["nonsense", "raise_error"]

_WORDS: Mapping[str, type[ModelError]] = {
    "context_length_exceeded": ContextLengthError,
    "invalid_api_key": ModelAuthError,
    "authentication_error": ModelAuthError,
    "invalid_authentication_error": ModelAuthError,
    "permission_denied": ModelAuthError,
    "permission_error": ModelAuthError,
    "insufficient_quota": RateLimitError,
    "rate_limit_exceeded": RateLimitError,
    "rate_limit_error": RateLimitError,
    "rate_limit_reached_error": RateLimitError,
    "server_error": ModelServerError,
    "internal_server_error": ModelServerError,
    "internalservererror": ModelServerError,
    "engine_overloaded_error": ModelServerError,
    "overloaded_error": ModelServerError,
    "service_unavailable": ModelServerError,
    "timeout": ModelTimeoutError,
    "model_not_found": ModelRequestError,
    "content_filter": ModelRequestError,
    "invalid_request_error": ModelRequestError,
    "badrequesterror": ModelRequestError,
}
_STATUSES: Mapping[int, type[ModelError]] = {
    401: ModelAuthError,
    402: ModelAuthError,
    403: ModelAuthError,
    408: ModelTimeoutError,
    429: RateLimitError,
}
_TOO_LONG = ("context length", "context window", "context_length", "prompt is too long")
_USED_UP = "insufficient_quota"


def nonsense(reason: str) -> ModelError:
    """Return the error for what makes no sense; the next attempt may."""
    return ModelError(reason, provider=WIRE, retryable=True)


def raise_error(body: Mapping[str, Any]) -> None:
    """Raise the error that `body`, a reply or an event, reports; do nothing where it reports none."""
    error = body.get("error")
    if not error and body.get("object") == "error":
        error = body
    if error:
        raise _made(error if is_map(error) else {"message": error})


def _made(error: Mapping[str, Any]) -> ModelError:
    code, kind = error.get("code"), error.get("type")
    said = error.get("message")
    reason = said if isinstance(said, str) and said else "the model failed, and the server does not say why"
    status = _status(code)
    words = [word for word in (code, kind) if isinstance(word, str)]
    known = (_WORDS.get(word.lower()) for word in words)
    made = next((found for found in known if found), None) or _by_status(status)
    if issubclass(made, ModelRequestError) and any(told in reason.lower() for told in _TOO_LONG):
        made = ContextLengthError
    return made(
        reason,
        provider=WIRE,
        status=status,
        code="" if not words or status else words[0],
        retryable=False if _USED_UP in words else None,
    )


def _status(code: Any) -> int | None:
    """Return the status that a code is, where it is one: some servers give that."""
    number = int(code) if isinstance(code, str) and code.isascii() and code.isdigit() else code
    return number if type(number) is int and 400 <= number < 600 else None


def _by_status(status: int | None) -> type[ModelError]:
    if status is None or status >= 500:
        return ModelServerError
    return _STATUSES.get(status, ModelRequestError)
