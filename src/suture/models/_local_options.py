"""The options of a local model: what may be given, and what is said of anything else."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec

from suture.errors import ConfigError
from suture.messages import ToolInfo

__all__ = ["Options", "read_options", "tools_for"]


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How one reply is to be made.

    >>> Options().max_tokens
    256
    """

    tool_choice: str = "auto"
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] = 256
    temperature: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    seed: int | None = None
    output_schema: dict[str, Any] | None = None
    stop: str | list[str] = ""


def read_options(given: Mapping[str, Any]) -> Options:
    """Return options that are sound; raise `ConfigError` for one that is unknown or wrong.

    >>> read_options({"max_tokens": 0})
    Traceback (most recent call last):
        ...
    suture.errors.ConfigError: option max_tokens of a LocalModel: expected `int` >= 1
    >>> read_options({"top_k": 3})
    Traceback (most recent call last):
        ...
    suture.errors.ConfigError: a LocalModel has no option top_k; it has max_tokens, output_schema, seed, stop, \
temperature, tool_choice
    """
    known = sorted(Options.__struct_fields__)
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise ConfigError(f"a LocalModel has no option {', '.join(unknown)}; it has {', '.join(known)}")
    try:
        return msgspec.convert(dict(given), Options)
    except msgspec.ValidationError as error:
        reason, _, place = str(error).partition(" - at `$.")
        reason = reason[:1].lower() + reason[1:]
        raise ConfigError(f"option {place.rstrip('`')} of a LocalModel: {reason}") from None


def tools_for(choice: str, tools: Sequence[ToolInfo]) -> tuple[ToolInfo, ...]:
    """Return the tools that may be chosen from; where there are none, as in a last turn, no choice is wrong.

    >>> tools_for("none", [ToolInfo("tides")]), tools_for("tides", [])
    ((), ())
    >>> tools_for("boats", [ToolInfo("tides")])
    Traceback (most recent call last):
        ...
    suture.errors.ConfigError: tool_choice is auto, required, none or the name of a tool (tides), not 'boats'
    """
    if choice in {"auto", "required"}:
        return tuple(tools)
    if choice == "none" or not tools:
        return ()
    chosen = tuple(info for info in tools if info.name == choice)
    if not chosen:
        names = ", ".join(info.name for info in tools)
        raise ConfigError(f"tool_choice is auto, required, none or the name of a tool ({names}), not {choice!r}")
    return chosen
