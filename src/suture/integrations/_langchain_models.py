"""Whose rules hold for a chat model of LangChain."""

from typing import Any

from suture.integrations._providers import profile_of
from suture.profiles import Profile, get_profile

__all__ = ["ModelProfiles"]

_KEPT = 8
_OF_CONFIGURABLE = {"_default_config", "_queued_declarative_operations"}
"""What a model has that is chosen anew for each run."""


class ModelProfiles:
    """Tells the profile of a model, and remembers the last few.

    >>> class ChatMistralAI:
    ...     pass
    >>> ModelProfiles().of(ChatMistralAI()).name
    'mistral'
    """

    def __init__(self) -> None:
        self._known: tuple[tuple[Any, Profile], ...] = ()

    def of(self, model: Any) -> Profile:
        """Return the profile for `model`; for one that is chosen for each run, that of the run at hand."""
        for known, profile in self._known:
            if known is model:
                return profile
        if getattr(model, "__dict__", {}).keys() >= _OF_CONFIGURABLE:
            return _profile(_asked(model, "_model") or model)
        profile = _profile(model)
        self._known = ((model, profile), *self._known[: _KEPT - 1])
        return profile


def _profile(model: Any) -> Profile:
    """Return the profile by what the model says of its provider, else by the name of its class."""
    provider = _asked(model, "_get_ls_params")
    named: Any = provider.get("ls_provider") if isinstance(provider, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    # A server that speaks OpenAI's language goes by its own rules.
    server = _read(model, "openai_api_base") or ""
    profile = profile_of(f"{server} {named or type(model).__name__}")
    if profile.name == "openai-chat" and _asked(model, "_use_responses_api", {}) is True:
        return get_profile("openai-responses")
    return profile


def _asked(model: Any, method: str, *arguments: Any) -> Any:
    """Return what a method of the model says; nothing where it has none, or that fails."""
    ask = _read(model, method)
    try:
        return None if ask is None else ask(*arguments)
    except Exception:  # noqa: BLE001 - a guess that fails is no reason to end a run
        return None


def _read(model: Any, name: str) -> Any:
    """Return an attribute of the model; nothing where it has none, or reading it fails."""
    try:
        return getattr(model, name, None)
    except Exception:  # noqa: BLE001 - one that is chosen for each run may fail to make the model that it would ask
        return None
