"""What differs between the releases of an SDK: one value for each, read from what is installed.

Nothing else in the models knows which release it is. Older releases stand on `httpx`, newer ones on `httpx2`, which are
alike but for their names.
"""

from functools import cache
from inspect import signature
from typing import Any, NamedTuple

from suture._extras import import_extra


class StainlessSDK(NamedTuple):
    """A release of the package `openai` or `anthropic`.

    >>> find_stainless("openai", "OpenAI").http in ("httpx", "httpx2")
    True
    """

    module: Any
    http: str
    """The library under its clients."""
    takes_bytes: bool
    """Whether a request takes a ready body; older releases write the JSON themselves."""


@cache
def find_stainless(package: str, brand: str) -> StainlessSDK:
    """Return the release of `openai` or `anthropic` that is installed."""
    module = import_extra(package, package)
    http = module.DefaultAsyncHttpxClient.__base__.__module__.partition(".")[0]
    return StainlessSDK(module, http, "content" in signature(getattr(module, f"Async{brand}").post).parameters)


class GoogleSDK(NamedTuple):
    """A release of the package `google-genai`.

    >>> find_google().http in ("httpx", "httpx2")
    True
    """

    module: Any
    errors: Any
    http: str
    """The library under its clients."""
    switches: dict[str, Any]
    """Turns off what this release would do by itself: that is the agent's work."""


_SWITCHES = {"automatic_function_calling": {"disable": True}, "automatic_continuation": False}


@cache
def find_google() -> GoogleSDK:
    """Return the release of `google-genai` that is installed."""
    module, errors = import_extra("google.genai", "google"), import_extra("google.genai.errors", "google")
    http = getattr(import_extra("google.genai._api_client", "google"), "_DEFAULT_HTTP_CLIENT_BACKEND", "httpx")
    known = module.types.GenerateContentConfig.model_fields
    return GoogleSDK(module, errors, http, {name: off for name, off in _SWITCHES.items() if name in known})
