"""Input items of the OpenAI Agents SDK, made acceptable to the models that it may send them to.

Which model that is, an adapter is not told: a run may replace the agent's. So the items suit both kinds: Responses
takes them as they are, and for Chat Completions the SDK makes messages of them, where results must stand right behind
their calls. And no two calls have one id, for the SDK itself would keep only one of them.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

from msgspec.structs import replace

from suture.errors import InputError
from suture.integrations._following import Following
from suture.profiles import Profile, get_profile
from suture.repair import Generator, Repairer
from suture.wires import get_wire
from suture.wires.fields import get, put, word

__all__ = ["Generator", "Items", "Orphans"]

Orphans = Literal["text", "drop"]

_WIRE = "openai-responses"
_OF_ITEMS = {"repeated-item", "illegal-item-id", "lone-reasoning"}
"""What is left to the SDK: it gives all items of a Chat Completions model one id, and takes that from them again."""
_PROFILE = replace(
    get_profile(_WIRE),
    name="openai-agents",
    adjacent=True,
    rules=tuple([rule for rule in get_profile(_WIRE).rules if not _OF_ITEMS.intersection(rule.problems)]),
)
_HELD: Any = {"type": "item_reference", "id": "what the service keeps"}
_LOCAL_SHELL = "local_shell_call_output"


class Items:
    """Mends lists of items. One that needs nothing, or that cannot be read, comes back as the same list.

    >>> call = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
    >>> [item.get("type", "message") for item in Items().mend([call, {"role": "user", "content": "hi"}])]
    ['function_call', 'function_call_output', 'message']
    """

    def __init__(
        self,
        *,
        profile: str | Profile | None = None,
        orphans: Orphans = "text",
        generator: Generator | None = None,
        is_placeholder: Callable[[str], bool] | None = None,
        language: str | None = None,
    ) -> None:
        choices: dict[str, Any] = {
            "orphans": orphans,
            "generator": generator,
            "is_placeholder": is_placeholder,
            "language": language,
        }
        Repairer[Any](wire=_WIRE, profile=profile, **choices)  # refuses what cannot be meant
        passes = [_PROFILE] if profile is None else [get_profile(profile), _PROFILE]
        self._passes = [(each, Following(_WIRE, **choices)) for each in passes]
        self._wire = get_wire(_WIRE)

    def mend(self, items: list[Any], *, held: bool | None = False) -> list[Any]:
        """Return what is acceptable in the place of `items`.

        `held`: the service keeps what came before, so results may speak of calls that are not in the list. `None` takes
        it so where the list holds nothing that a model made.
        """
        try:
            if held is None:
                held = not any(self._wire.made_by_model(item, index) for index, item in enumerate(items))
            known = [_HELD, *_with_ids(items)] if held else _with_ids(items)
            mended: Sequence[Any] = known
            for profile, following in self._passes:
                mended = following.mend(mended, profile)
        except InputError:
            return items  # the provider says what is wrong with it
        if mended is known:
            return items
        return [_with_other(item, "call_id", "id") for item in mended if item is not _HELD]


def _with_ids(items: list[Any]) -> list[Any]:
    """Return results of the local shell with their `id`, which the SDK calls `call_id`; the same list without any."""
    if not any(word(item, "type") == _LOCAL_SHELL for item in items):
        return items
    return [_with_other(item, "id", "call_id") for item in items]


def _with_other(item: Any, name: str, other: str) -> Any:
    """Return a result of the local shell that says under `name` what it says under `other`."""
    told = get(item, other)
    same = word(item, "type") != _LOCAL_SHELL or told is None or get(item, name) == told
    return item if same else put(item, **{name: told})
