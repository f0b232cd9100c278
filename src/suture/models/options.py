"""The options of a request: what the SDKs do with theirs beside the body, and names that were probably meant otherwise.

An option that is none of these goes into the body as it is, because a server may have fields of its own.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from suture.codecs import OPTIONS
from suture.errors import ConfigError
from suture.messages import FrozenMap
from suture.models.limits import Limits
from suture.wires.fields import is_map

_BESIDE = ("extra_headers", "extra_query", "extra_body", "http_options")
"""Options of the SDKs that are mappings and stand beside the body; those of a run are added to the model's."""
_KNOWN = (
    *OPTIONS,
    *("extra_headers", "extra_query", "extra_body", "timeout"),
    *("max_completion_tokens", "reasoning_effort", "reasoning", "thinking", "response_format"),
    *("service_tier", "metadata", "stream_options", "logit_bias", "top_logprobs", "repetition_penalty", "min_p"),
)
"""Options with which a misspelt one is compared."""
_CLOSE = 0.85
"""How similar a name is to the one that was meant: one or two letters differ."""
_MISPLACED = {
    **dict.fromkeys(("api_key", "base_url", "client", "profile", "streaming", "wire"), "is a setting of the model"),
    **dict.fromkeys(("total_timeout", "connect_timeout"), "is a setting of the model"),
    **dict.fromkeys(("headers", "default_headers"), "is the option extra_headers, or headers= of the model"),
    "max_retries": "is model_retry_config= of the agent",
}
"""Names that are no options, and would be sent to the server as fields of the body."""
_NO_HEADERS = frozenset((bool, int, float, bytes, list, tuple, dict))
_SPECIAL = frozenset((*_BESIDE, "timeout", *_MISPLACED))
_ELSEWHERE = {
    **dict.fromkeys(("default_headers", "extra_headers", "http_headers"), "headers="),
    **dict.fromkeys(("default_query", "extra_query"), "options={'extra_query': …}"),
    **dict.fromkeys(("extra_body", "model_kwargs"), "options={'extra_body': …}"),
    **dict.fromkeys(("request_timeout", "read_timeout"), "timeout="),
    **dict.fromkeys(("http_client", "http_options", "organization", "project", "region_name"), "client="),
    **dict.fromkeys(("api_version", "azure_endpoint", "azure_deployment", "credentials", "vertexai"), "client="),
    **dict.fromkeys(("max_retries", "retries"), "model_retry_config= of the agent"),
    **dict.fromkeys(("stream", "disable_streaming"), "streaming="),
    **dict.fromkeys(("auth_token", "token"), "api_key="),
    **dict.fromkeys(("endpoint", "endpoint_url", "url", "host"), "base_url="),
    **dict.fromkeys(("settings", "model_settings", "generation_config", "params"), "options="),
}
"""What a setting is called here that other packages call otherwise."""


class Envelope(NamedTuple):
    """What a request has beside its body.

    >>> Envelope().limits.connect
    5.0
    """

    limits: Limits = Limits()
    timeout: Any = None
    """The SDK's own object for the time, in place of the limits."""
    is_timed: bool = False
    """Whether the request has a time of its own."""
    headers: Mapping[str, Any] = FrozenMap()
    query: Mapping[str, Any] = FrozenMap()
    body: Mapping[str, Any] = FrozenMap()
    """Fields that go into the body last, whatever is there."""
    http_options: Mapping[str, Any] = FrozenMap()
    """Those of google-genai."""


def explain_settings(unknown: Iterable[str], known: Iterable[str]) -> str:
    """Return where settings that a model does not have belong.

    >>> explain_settings(["default_headers", "temperature", "tiemout"], ["timeout"])
    "default_headers (headers=), temperature (options={'temperature': …}), tiemout (timeout=)"
    """
    names = list(known)

    def place_of(name: str) -> str:
        near = _nearest(name, names)
        return _ELSEWHERE.get(name) or (f"{near}=" if near else f"options={{{name!r}: …}}")

    return ", ".join([f"{name} ({place_of(name)})" for name in sorted(unknown)])


def merge_options(model: Mapping[str, Any], run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of the model with those of a run on top.

    >>> merge_options({"seed": 1, "extra_body": {"a": 1}}, {"seed": 2, "extra_body": {"b": 2}})
    {'seed': 2, 'extra_body': {'a': 1, 'b': 2}}
    """
    merged = {**model, **run}
    for name in _BESIDE:
        if is_map(above := model.get(name)) and is_map(own := run.get(name)):
            merged[name] = {**above, **own}
    return merged


def split_options(
    options: dict[str, Any], envelope: Envelope, without: Mapping[str, str]
) -> tuple[dict[str, Any], Envelope]:
    """Return the options that go into the body, and `envelope` with what the others mean.

    `without` names options that the provider does not have, and what there is instead.

    >>> split_options({"seed": 1, "extra_headers": {"x-team": "port"}}, Envelope(), {})[1].headers
    {'x-team': 'port'}
    """
    if _SPECIAL.isdisjoint(options):
        return options, envelope
    for name in options.keys() & (_MISPLACED.keys() | without.keys()):
        raise ConfigError(f"{name} is no option: {without[name] if name in without else f'it {_MISPLACED[name]}'}")
    beside = {name: _read_mapping(name, options[name]) for name in _BESIDE if options.get(name) is not None}
    http_options = beside.get("http_options", {})
    for name, value in beside.get("extra_headers", {}).items():
        if type(name) is not str or type(value) in _NO_HEADERS:  # `None` and an object of the SDK take one away
            raise ConfigError(f"extra_headers is a mapping of names to texts; found {name!r}: {value!r}")
    envelope = envelope._replace(
        headers={**envelope.headers, **beside.get("extra_headers", {})},
        query=beside.get("extra_query", {}),
        body={**http_options.get("extra_body", {}), **beside.get("extra_body", {})},
        http_options=http_options,
    )
    if "timeout" in options:
        envelope = _with_timeout(envelope, options["timeout"])
    return {name: value for name, value in options.items() if name not in _SPECIAL}, envelope


def _with_timeout(envelope: Envelope, timeout: Any) -> Envelope:
    """Return an envelope with a time of its own: seconds, or an object of the SDK."""
    if type(timeout).__module__ == "builtins":
        return envelope._replace(limits=envelope.limits.with_silence(timeout), is_timed=True)
    return envelope._replace(limits=Limits(None, None, envelope.limits.total), timeout=timeout, is_timed=True)


def _read_mapping(name: str, value: Any) -> Mapping[str, Any]:
    if hasattr(value, "model_dump"):  # google-genai's HttpOptions
        value = value.model_dump(exclude_none=True)
    if not is_map(value):
        raise ConfigError(f"{name} is a mapping of names to values, not {type(value).__name__}")
    return value


def find_misspelt(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return the options that are nearly a known one, each with the one that was probably meant.

    >>> find_misspelt(["max_tokns", "maxTokens", "min_p", "top_a", "enable_thinking"])
    [('max_tokns', 'max_tokens'), ('maxTokens', 'max_tokens')]
    """
    return [(name, near) for name in names if name not in _KNOWN and (near := _nearest(name, _KNOWN))]


def _nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name that `name` nearly is, or an empty text."""
    from difflib import get_close_matches  # noqa: PLC0415 - only for a name that is not known

    plain = {each.replace("_", ""): each for each in known}
    found = get_close_matches(name.replace("_", "").lower(), plain, 1, _CLOSE)
    return plain[found[0]] if found else ""
