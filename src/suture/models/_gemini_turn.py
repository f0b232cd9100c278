"""Gemini 3 wants its signature on the calls of the turn at hand; calls that another model made have none.

For these the API has a word that stands in place of a signature. It is put only where a request would be refused.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

__all__ = ["sign_foreign_calls"]

_NO_SIGNATURE = "skip_thought_signature_validator"
_DEMANDS = re.compile(r"(?:^|/)gemini-(?:[3-9]|\d\d)")


def sign_foreign_calls(model: str, contents: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return `contents` with the word on the first call of each step of this turn that has no signature.

    >>> asks = {"role": "model", "parts": [{"functionCall": {"name": "f"}}]}
    >>> sign_foreign_calls("gemini-3-pro", [{"role": "user", "parts": [{"text": "hi"}]}, asks])[1]["parts"][0]
    {'functionCall': {'name': 'f'}, 'thoughtSignature': 'skip_thought_signature_validator'}
    >>> sign_foreign_calls("gemini-2.5-flash", [asks])[0] is asks
    True
    """
    signed: list[Any] = list(contents)
    if _DEMANDS.search(model) is None:
        return signed
    for place in range(len(signed) - 1, -1, -1):
        parts: list[dict[str, Any]] = signed[place].get("parts") or []
        if signed[place].get("role") == "model":
            signed[place] = {**signed[place], "parts": _with_first_signed(parts)}
        elif any("functionResponse" not in part for part in parts):
            break
    return signed


def _with_first_signed(parts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    first = next((place for place, part in enumerate(parts) if "functionCall" in part), None)
    if first is None or parts[first].get("thoughtSignature"):
        return list(parts)
    marked = {**parts[first], "thoughtSignature": _NO_SIGNATURE}
    return [*parts[:first], cast("dict[str, Any]", marked), *parts[first + 1 :]]
