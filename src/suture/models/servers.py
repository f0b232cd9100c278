"""What is known of servers that speak another provider's wire, as data, by their address.

Whose rules apply there; and the fields of a thought that they refuse in a message. Servers name this field differently,
and most take it back or ignore it. A thought goes back in the field that it came in, so one that was made elsewhere may
be refused: it is then left out, now and from then on.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import TypeVar
from urllib.parse import urlsplit

from suture.profiles import get_profile

__all__ = ["PROFILE_AT", "REFUSED_AT", "find_refused", "profile_at", "refused_at"]

T = TypeVar("T")
PROFILE_AT = {
    "deepseek.com": "deepseek",
    "groq.com": "groq",
    "mistral.ai": "mistral",
    **dict.fromkeys(("moonshot.ai", "moonshot.cn"), "kimi"),
    **dict.fromkeys(("minimax.io", "minimaxi.com"), "minimax"),
}
"""The profile of a server, by the end of its host's name."""
_OTHERS = ("reasoning_content", "reasoning_details")
REFUSED_AT: dict[str, tuple[str, ...]] = {
    # 400: "property 'messages.2.assistant.reasoning_content' is unsupported"; `reasoning` is taken, of any model
    # (qwen-code#11045, vercel/ai#15049, hermes-agent#45655)
    "cerebras.ai": _OTHERS,
    # 422: extra_forbidden at assistant.reasoning_content (charmbracelet/crush#1590, litellm#30835)
    "mistral.ai": (*_OTHERS, "reasoning"),
}
"""The fields that a server refuses, by the end of its host's name."""
_NAMED = re.compile(r"\b(reasoning_content|reasoning_details|reasoning)\b")
_REFUSAL = re.compile(
    r"unsupported|not supported|not permitted|not allowed|forbidden|unexpected|unrecogni[sz]ed|unknown|cannot find",
    re.IGNORECASE,
)


def _find(address: object, table: Mapping[str, T], default: T) -> T:
    """Return what a table has for the host of an address."""
    host = ""
    with suppress(ValueError):
        host = urlsplit(str(address or "")).hostname or ""
    return next((found for end, found in table.items() if f".{host}".endswith(f".{end}")), default)


def profile_at(address: object, wire: str) -> str:
    """Return the profile of the server at `address`, if it speaks of `wire`; else that of the wire's own provider.

    >>> profile_at("https://api.deepseek.com", "openai-chat")
    'deepseek'
    >>> profile_at("https://api.deepseek.com/anthropic", "anthropic")
    'anthropic'
    """
    known = _find(address, PROFILE_AT, wire)
    return known if get_profile(known).speaks_of(wire) else wire


def refused_at(address: object) -> frozenset[str]:
    """Return the fields that the server at `address` is known to refuse.

    >>> sorted(refused_at("https://api.cerebras.ai/v1")), refused_at("http://127.0.0.1:8000/v1")
    (['reasoning_content', 'reasoning_details'], frozenset())
    """
    return frozenset(_find(address, REFUSED_AT, ()))


def find_refused(text: str) -> str:
    """Return the field that a refusal names as one that the server does not take; empty if it says nothing of that.

    >>> find_refused("'messages.1' : property 'reasoning_content' is unsupported")
    'reasoning_content'
    >>> find_refused("The `reasoning_content` in the thinking mode must be passed back to the API.")
    ''
    """
    found = _NAMED.search(text)
    return found[0] if found is not None and _REFUSAL.search(text) else ""
