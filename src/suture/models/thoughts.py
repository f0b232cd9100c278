"""The fields of a thought that servers refuse in a message of Chat Completions, as data, and how they refuse one.

Servers name this field differently, and most take it back or ignore it. A thought goes back in the field that
it came in, so one that was made elsewhere may be refused: it is then left out, now and from then on.
"""

import re
from urllib.parse import urlsplit

__all__ = ["REFUSED_AT", "find_refused", "refused_at"]

_OTHERS = ("reasoning_content", "reasoning_details")
REFUSED_AT: dict[str, tuple[str, ...]] = {
    # 400: "property 'reasoning_content' is unsupported" (janhq/jan#8136, freellmapi#1070); both (agentjido/req_llm#772)
    "groq.com": _OTHERS,
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


def refused_at(address: object) -> frozenset[str]:
    """Return the fields that the server at `address` is known to refuse.

    >>> sorted(refused_at("https://api.groq.com/openai/v1")), refused_at("http://127.0.0.1:8000/v1")
    (['reasoning_content', 'reasoning_details'], frozenset())
    """
    host = urlsplit(str(address or "")).hostname or ""
    return frozenset(next((fields for end, fields in REFUSED_AT.items() if f".{host}".endswith(f".{end}")), ()))


def find_refused(text: str) -> str:
    """Return the field that a refusal names as one that the server does not take; empty if it says nothing of that.

    >>> find_refused("'messages.1' : property 'reasoning_content' is unsupported")
    'reasoning_content'
    >>> find_refused("The `reasoning_content` in the thinking mode must be passed back to the API.")
    ''
    """
    found = _NAMED.search(text)
    return found[0] if found is not None and _REFUSAL.search(text) else ""
