"""Which of our errors a failure is, by the words that providers have for it in a reply or an event."""

from collections.abc import Iterable, Sequence

from suture.errors import (
    ContextLengthError,
    ModelAuthError,
    ModelError,
    ModelRequestError,
    ModelServerError,
    ModelTimeoutError,
    RateLimitError,
)

_WORDS: dict[type[ModelError], str] = {
    ContextLengthError: "context_length_exceeded request_too_large",
    ModelAuthError: "401 402 403 accessdeniedexception authentication_error billing_error expiredtokenexception "
    "invalid_api_key invalid_authentication_error permission_denied permission_error unauthenticated "
    "unrecognizedclientexception",
    RateLimitError: "429 insufficient_quota modelnotreadyexception rate_limit_error rate_limit_exceeded "
    "rate_limit_reached_error resource_exhausted servicequotaexceededexception throttlingexception too_many_requests",
    ModelTimeoutError: "408 deadline_exceeded modeltimeoutexception timeout timeout_error",
    ModelServerError: "aborted api_error cancelled engine_overloaded_error internal internal_server_error "
    "internalservererror overloaded_error server_error server_is_overloaded service_unavailable slow_down unavailable "
    "unknown vector_store_timeout",
    ModelRequestError: "badrequesterror bio_policy content_filter data_residency_mismatch failed_precondition "
    "invalid_argument invalid_prompt invalid_request_error misalignment_policy_violation model_not_found not_found "
    "not_found_error out_of_range resourcenotfoundexception unimplemented validationexception",
}
_KINDS = {word: kind for kind, words in _WORDS.items() for word in words.split()}


def failure_kind(
    words: Iterable[str], default: type[ModelError], reason: str = "", too_long: Sequence[str] = ()
) -> type[ModelError]:
    """Return the error that the first known of `words` is; `too_long` is what a provider says of a long request.

    >>> failure_kind(["invalid_request_error"], ModelError, "Prompt is too long", ["too long"]).__name__
    'ContextLengthError'
    """
    kind = next((_KINDS[word] for word in map(str.lower, words) if word in _KINDS), default)
    is_long = issubclass(kind, ModelRequestError) and any(sign in reason.lower() for sign in too_long)
    return ContextLengthError if is_long else kind
