"""Settings are looked at when an agent is made: what is wrong is said there and then, with what it should be."""

from collections.abc import Mapping, Sequence
from typing import Any

from suture.errors import ConfigError
from suture.kernel import Budget, Callbacks, ModelFailoverConfig, ModelRetryConfig, ToolsConfig
from suture.language import resolve_language
from suture.profiles import get_profile
from suture.wires import get_chat_wire

__all__ = ["check_choices", "check_settings"]

_TYPES: dict[str, type] = {
    "budget": Budget,
    "model_retry_config": ModelRetryConfig,
    "failover": ModelFailoverConfig,
    "callbacks": Callbacks,
}
_FUNCTIONS = ("format_tool_error", "input_builder", "redact")
_WORDS = {"on_max_iterations": ("raise", "answer"), "tool_errors": ("result", "raise")}


def check_settings(agent: Any) -> None:
    """Raise `ConfigError` where a setting of an agent is wrong."""
    _check_name(agent.name)
    for name, known in _WORDS.items():
        if getattr(agent, name) not in known:
            raise ConfigError(f"unknown {name} {getattr(agent, name)!r}; known: {', '.join(known)}")
    if type(agent.max_iterations) is not int or agent.max_iterations < 1:
        raise ConfigError(f"max_iterations counts model turns, 1 or more; got {agent.max_iterations!r}")
    for name in ("tools", "middlewares", "return_directly"):
        _check_list(name, getattr(agent, name))
    for name, kind in _TYPES.items():
        given = getattr(agent, name)
        if given is not None and not isinstance(given, kind):
            raise ConfigError(f"{name} takes a {kind.__name__}, not {type(given).__name__}")
    for name in _FUNCTIONS:
        given = getattr(agent, name)
        if given is not None and not callable(given):
            raise ConfigError(f"{name} must be a function, found {type(given).__name__}")
    store = agent.checkpoint_store
    if store is not None and not (hasattr(store, "append") and hasattr(store, "load")):
        raise ConfigError(f"checkpoint_store takes a store, such as SQLiteStore(path), not {type(store).__name__}")
    resolve_language(agent.language)
    _check_models(agent.model, agent.failover)


def check_choices(**choices: Mapping[str, Any] | None) -> None:
    """Raise `ConfigError` where a choice of one run that must be a mapping is none.

    >>> check_choices(answers=None)
    """
    for name, given in choices.items():
        if given is not None and not isinstance(given, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            hint = "; answer interrupts by their ids: {id: data}" if name == "answers" else ""
            raise ConfigError(f"{name} takes a mapping, not {type(given).__name__}{hint}")


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name or "/" in name or "#" in name:
        raise ConfigError(f"an agent's name is part of addresses: a text, not empty, without / and #; got {name!r}")


def _check_list(name: str, given: object) -> None:
    if isinstance(given, ToolsConfig) or (name == "return_directly" and isinstance(given, set | frozenset)):
        return
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise ConfigError(f"{name} takes a list; put a single one into a list. Got {type(given).__name__}")


def _check_models(model: Any, failover: ModelFailoverConfig | None) -> None:
    _check_model(model)
    for other in failover.models if failover is not None else ():
        _check_model(other)
        if other.wire != model.wire:
            raise ConfigError(f"a failover model speaks {other.wire}, and the agent's model speaks {model.wire}")


def _check_model(model: Any) -> None:
    if isinstance(model, type):
        raise ConfigError(f"model takes an instance of {model.__name__}, not the class")
    for part in ("wire", "profile", "stream"):
        if not hasattr(model, part):
            raise ConfigError(f"{type(model).__name__} is no model: it has no {part}")
    wire = get_chat_wire(model.wire)
    profile = get_profile(model.profile)
    if not wire.native and not profile.speaks_of(wire.name):
        raise ConfigError(f"profile {profile.name} does not speak of {wire.name} messages")
