"""The options that known models refuse, as data, so that portable options work with every model.

Which models reason by default, and which can stop, was compared with pydantic-ai's table, which says that it was tried
at the live service (github.com/pydantic/pydantic-ai, profiles/openai.py and profiles/anthropic.py, November 2026). The
comments name reports of the refusals themselves. A model that is not listed is sent every option.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from suture.models.windows import find_name
from suture.wires.fields import is_map

__all__ = ["REFUSED", "leave_out", "renames_max_tokens"]

_OPENAI = (
    *("temperature", "top_p", "presence_penalty", "frequency_penalty"),
    *("logit_bias", "logprobs", "top_logprobs"),
)
_CLAUDE = ("temperature", "top_p", "top_k")


_TABLES = (
    # 400: "Unsupported value: 'temperature' does not support 0 with this model", "Unsupported parameter: …"
    # (nextai-translator#1781, BittnerPierre/AI-Agent-Casebook#133, OpenHands/software-agent-sdk#1837)
    (
        ("reasons", _OPENAI, "o1 o3 o4 gpt-5 gpt-5.1-codex gpt-5.1-chat gpt-5.2-chat gpt-5.3-chat"),
        ("reasons", _OPENAI, "gpt-5.2-pro gpt-5.4-pro gpt-5.5 gpt-5.6 gpt-6 gpt-6.1"),
        ("may reason", _OPENAI, "gpt-5.1 gpt-5.2 gpt-5.3 gpt-5.4"),
        ("", (), "gpt-5-chat"),
    ),
    # 400: "Unsupported parameter: 'stop' is not supported with this model" (litellm#15244, smolagents#1868, n8n#18149)
    (("", ("stop",), "o3 o4 gpt-5 gpt-5.1 gpt-5.2 gpt-5.3 gpt-5.4 gpt-5.5 gpt-5.6"), ("", (), "gpt-5-chat")),
    # 400: "Unsupported parameter: 'parallel_tool_calls' …" (defog#171, community.openai.com/t/1310788)
    (("", ("parallel_tool_calls",), "o1 o3 o4"),),
    # 400: "`temperature` is deprecated for this model", and so are the others (models.dev#1468, modelparams.dev#238)
    # 400: "`temperature` and `top_p` cannot both be specified for this model" (open-webui/pipelines#546, opik#3728)
    (
        ("", _CLAUDE, "claude-opus-4-7 claude-opus-4-8 claude-opus-5 claude-sonnet-5 claude-haiku-5-5"),
        ("", _CLAUDE, "claude-fable-5 claude-mythos-5"),
        ("has temperature", ("top_p",), "claude-opus-4-1 claude-opus-4-5 claude-opus-4-6"),
        ("has temperature", ("top_p",), "claude-sonnet-4-5 claude-sonnet-4-6 claude-haiku-4-5"),
    ),
    # 400: "`temperature` may only be set to 1 when thinking is enabled" (one-hub#529, quarkus-langchain4j#1812)
    (("thinks", _CLAUDE, "claude"),),
    # 400: "Argument not supported on this model: presencePenalty" (n8n#14581, open-webui#21266, page-assist#581)
    (("", ("presence_penalty", "frequency_penalty"), "grok-3 grok-4"),),
)
REFUSED: tuple[dict[str, tuple[str, tuple[str, ...]]], ...] = tuple(
    [{name: (when, options) for when, options, names in table for name in names.split()} for table in _TABLES]
)
"""Tables in which the most specific name counts: when the model refuses options (empty for always), and which."""
_COMPLETION_TOKENS = ("o1", "o3", "o4", "gpt-5", "gpt-6")
"""400: "Unsupported parameter: 'max_tokens' … Use 'max_completion_tokens' instead" (gollm#33, deepchat#336)."""


def renames_max_tokens(model: str) -> bool:
    """Return whether the model takes `max_completion_tokens` in place of `max_tokens` on Chat Completions.

    >>> renames_max_tokens("openai/gpt-5-mini"), renames_max_tokens("gpt-4.1"), renames_max_tokens("gpt-oss-120b")
    (True, False, False)
    """
    return find_name(model, _COMPLETION_TOKENS) != ""


def leave_out(model: str, options: Mapping[str, Any]) -> list[str]:
    """Return the names of the options that the model called `model` would refuse.

    >>> leave_out("gpt-5-mini", {"temperature": 0, "seed": 1}), leave_out("gpt-5-chat-latest", {"temperature": 0})
    (['temperature'], [])
    >>> leave_out("gpt-5.2", {"temperature": 0}), leave_out("gpt-5.2", {"temperature": 0, "reasoning_effort": "low"})
    ([], ['temperature'])
    """
    refused: set[str] = set()
    for when, names in _rows_of(model):
        if not options.keys().isdisjoint(names) and _holds(when, options):
            refused.update(names)
    return [name for name in options if name in refused and options[name] is not None] if refused else []


@lru_cache(256)
def _rows_of(model: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return what each table says of the model called `model`."""
    found = [(table, find_name(model, table)) for table in REFUSED]
    return [table[name] for table, name in found if name]


def _holds(when: str, options: Mapping[str, Any]) -> bool:
    """Return whether a condition of the tables holds for the options of a request."""
    match when:
        case "reasons":
            return _effort(options) != "none"
        case "may reason":
            return _effort(options) not in (None, "none")
        case "has temperature":
            return options.get("temperature") is not None
        case "thinks":
            return _thinks(options)
        case _:
            return True


def _effort(options: Mapping[str, Any]) -> Any:
    """Return how much the model shall reason, as Chat Completions, Responses and OpenRouter say it."""
    reasoning = options.get("reasoning")
    return options.get("reasoning_effort") or (reasoning.get("effort") if is_map(reasoning) else None)


def _thinks(options: Mapping[str, Any]) -> bool:
    """Return whether Claude shall think, as Anthropic and Bedrock say it."""
    fields = options.get("additionalModelRequestFields")
    thinking = options.get("thinking") or (fields.get("thinking") if is_map(fields) else None)
    return is_map(thinking) and thinking.get("type") in ("enabled", "adaptive")
