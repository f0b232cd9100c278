"""Input items of the OpenAI Agents SDK, made acceptable to the models that it may send them to.

Which model that is, an adapter is not told: a run may replace the agent's. So the items suit both kinds: Responses
takes them as they are, and for Chat Completions the SDK makes messages of them, where results must stand right behind
their calls. And no two calls have one id, for the SDK itself would keep only one of them.
"""

from collections.abc import Mapping
from typing import Any, Unpack, cast

from agents.tracing import custom_span, get_current_trace
from msgspec.structs import replace

from suture.integrations.guest import GuestOptions, Options, repair_request
from suture.profiles import Profile, get_profile, profile_for, profile_of
from suture.providers.openai_responses.wire import OpenAIResponsesWire
from suture.wires import Call
from suture.wires.fields import get, put, word

_OF_ITEMS = {"repeated-item", "illegal-item-id", "lone-reasoning"}
"""What is left to the SDK: it gives all items of a Chat Completions model one id, and takes that from them again."""
_KEPT: Any = {"type": "item_reference", "id": "what the service keeps"}
_LOCAL_SHELL = "local_shell_call_output"


class _ItemWire(OpenAIResponsesWire):
    """Items as the SDK stores them: models leave arguments blank, and its compaction goes by the very text."""

    def arguments_ok(self, call: Call) -> bool:
        """Tell whether the arguments of `call` are the text of an object, or blank."""
        return call.arguments == "" or super().arguments_ok(call)


_WIRE, _CHAT_WIRE = _ItemWire(), OpenAIResponsesWire()


_ANY = profile_for(_WIRE.name, get_profile(_WIRE.name), profile_of(""))
_PROFILE = replace(
    _ANY, adjacent=True, rules=tuple([rule for rule in _ANY.rules if not _OF_ITEMS.intersection(rule.problems)])
)


def _wanted(profile: Profile) -> Profile:
    """Return `profile` for items of the SDK: results behind their calls, and no id for two of them."""
    wanted = profile_for(_WIRE.name, _PROFILE, profile)
    known = {problem for rule in wanted.rules for problem in rule.problems}
    more = [rule for rule in _PROFILE.rules if "id" in rule.id and not known.issuperset(rule.problems)]
    ids = replace(wanted.ids or cast("Any", _PROFILE.ids), scope="history")
    return replace(wanted, adjacent=True, rules=(*wanted.rules, *more), ids=ids)


def _trace(name: str, attributes: Mapping[str, Any]) -> None:
    """Add a span to the trace of the run at hand."""
    if get_current_trace() is not None:
        with custom_span(name, dict(attributes)):
            pass


class Items:
    """Repairs lists of items. One that needs nothing, or that cannot be read, comes back as the same list.

    >>> call = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
    >>> [item.get("type", "message") for item in Items("doctest").repair([call, {"role": "user", "content": "hi"}])]
    ['function_call', 'function_call_output', 'message']
    """

    def __init__(self, guest: str, **options: Unpack[Options]) -> None:
        self._options = replace(GuestOptions.of(guest, **options), trace=_trace)
        wanted = self._options.profile
        self._profile = _PROFILE if wanted is None else _wanted(wanted)

    def repair(self, items: list[Any], *, kept: bool | None = False, chat: bool = False) -> list[Any]:
        """Return what is acceptable in the place of `items`; `chat` says that Chat Completions will be made of them.

        `kept`: the service keeps what came before, so results may speak of calls that are not in the list. `None` takes
        it so where the list holds nothing that a model made.
        """
        if kept is None:
            kept = not any(map(_is_made_by_model, items))
        known = items
        if any(word(item, "type") == _LOCAL_SHELL for item in items):  # its `id` is what the SDK calls `call_id`
            known = [_with_other(item, "id", "call_id") for item in items]
        before = (_KEPT,) if kept else ()
        wire = _CHAT_WIRE if chat else _WIRE
        repaired = repair_request(known, wire, self._options, profile=self._profile, kept=before)
        return items if repaired is known else [_with_other(item, "call_id", "id") for item in repaired]


def _is_made_by_model(item: Any) -> bool:
    try:
        return _WIRE.made_by_model(item)
    except ValueError:  # it cannot be read: the repair will say so
        return True


def _with_other(item: Any, name: str, other: str) -> Any:
    """Return a result of the local shell that says under `name` what it says under `other`."""
    said = get(item, other)
    same = word(item, "type") != _LOCAL_SHELL or said is None or get(item, name) == said
    return item if same else put(item, **{name: said})
