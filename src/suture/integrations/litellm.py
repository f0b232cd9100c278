"""LiteLLM's proxy with histories that never break, on every route: a callback for its configuration.

Name it in the configuration::

    litellm_settings:
      callbacks: suture.integrations.litellm.handler
"""

from importlib import import_module
from typing import Any, Unpack

from suture.integrations.guest import GuestOptions, Options, repair_request
from suture.profiles import default_profile, profile_for, profile_of
from suture.providers import KEPT, PLACES, Place, continues, find_place
from suture.wires.fields import is_list

__all__ = ["PatchToolCalls", "handler"]

_Logger: Any = import_module("litellm.integrations.custom_logger").CustomLogger  # not installed where types are checked


class PatchToolCalls(_Logger):
    """Repairs the history of each request before LiteLLM sends it anywhere; nothing else in a request changes.

    LiteLLM converts a history for its provider, except for the ids: these are made to suit the model that a request
    names. It is not known yet where the request will go, so if the name says nothing, the ids must suit all providers.

    Args:
        options: the options of every guest, see `suture.integrations.guest.Options`.

    >>> PatchToolCalls(cause="interrupted").__class__.__name__
    'PatchToolCalls'
    """

    def __init__(self, **options: Unpack[Options]) -> None:
        _Logger.__init__(self)
        self._options = GuestOptions.of(__name__, **options)

    async def async_pre_call_hook(
        self, user_api_key_dict: Any, cache: Any, data: dict[str, Any], call_type: str
    ) -> Any:
        """Return the request for LiteLLM to send."""
        place = _place(data, call_type)
        messages: Any = None if place is None else data.get(place.field)
        if place is None or not is_list(messages):
            return data
        if continues(data) and place.wire != "openai-responses":
            return data
        wanted, base = self._options.profile or profile_of(str(data.get("model") or "")), default_profile(place.wire)
        profile = base if wanted.ids is None else profile_for(place.wire, base, wanted)
        kept = [KEPT] if continues(data) else []
        repaired = repair_request(messages, place.wire, self._options, profile=profile, kept=kept)
        return data if repaired is messages else {**data, place.field: list(repaired)}


def _place(data: dict[str, Any], call_type: str) -> Place | None:
    if "contents" in data:
        return find_place(":generateContent")
    if "responses" in call_type:
        return PLACES["responses"]
    if "messages" in data:
        return PLACES["messages" if "anthropic" in call_type else "chat/completions"]
    return None


handler = PatchToolCalls()
"""The callback for the configuration; make one with your own options in a file beside that."""
