"""Profiles: what each provider accepts, as data. Every rule has an id, a source, and the operation that mends it.

Code that acts on it lives in `suture.repair`; each provider's own profile stands with its wire in `suture.providers`.
"""

import re
from collections.abc import Callable
from enum import StrEnum
from functools import cache
from importlib import import_module

import msgspec
from msgspec.structs import replace

from suture.errors import ConfigError

__all__ = ["NEUTRAL", "PROFILES", "IdForm", "Operation", "Profile", "Rule", "default_profile", "get_profile", "rules"]

NEUTRAL = ("message", "agentic", "langchain", "pydantic-ai", "agent-framework")
"""The wires of no provider in particular: every profile speaks of them besides its own."""


class Operation(StrEnum):
    """What can be done about a broken rule: a closed list.

    >>> Operation.ANSWER.value
    'answer'
    """

    ANSWER = "answer"
    """Put a placeholder where a result is missing."""
    MOVE = "move"
    """Put a result behind its call."""
    COLLAPSE = "collapse"
    """Keep one of several results."""
    RETELL = "retell"
    """Keep a result without a call as user text, or drop it."""
    RENAME_ID = "rename-id"
    EMPTY_ARGUMENTS = "empty-arguments"
    NAME_CALL = "name-call"
    NAME_RESULT = "name-result"
    MERGE = "merge"
    SPLIT = "split"
    TEXT_FIRST = "text-first"
    RESULTS_FIRST = "results-first"
    PROMOTE_MEDIA = "promote-media"
    DROP_EMPTY = "drop-empty"
    BRIDGE = "bridge"
    FILL = "fill"
    UNREPAIRABLE = "unrepairable"


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One thing a provider demands.

    >>> Rule(id="x.y", problems=("orphan",), says="…", source="…", operation=Operation.RETELL).id
    'x.y'
    """

    id: str
    problems: tuple[str, ...]
    """The findings that break it."""
    says: str
    operation: Operation
    source: str = ""
    """Where it is known from."""
    wires: tuple[str, ...] = ()
    """Where it can be broken; empty: on all wires of its profile."""


class IdForm(msgspec.Struct, frozen=True, kw_only=True):
    """What a call id must look like, and how far it must be unique: within a `turn`, the `history`, or not at all.

    >>> IdForm(pattern="[a-z]+", limit=3, scope="turn").accepts("abcd")
    False
    """

    pattern: str
    limit: int | None = None
    scope: str = ""
    prefix: str = "call_"
    length: int = 29
    """How long a made id is, its prefix included."""

    def accepts(self, text: str) -> bool:
        """Tell whether `text` may be an id."""
        return (self.limit is None or len(text) <= self.limit) and _matcher(self.pattern)(text) is not None


_STRUCTURAL = (Operation.ANSWER, Operation.MOVE, Operation.COLLAPSE, Operation.RETELL)


@cache
def _matcher(pattern: str) -> Callable[[str], object]:
    return re.compile(pattern).fullmatch


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """What one provider accepts.

    >>> from suture.profiles import get_profile
    >>> get_profile("anthropic").speaks_of("anthropic")
    True
    """

    name: str
    wires: tuple[str, ...]
    rules: tuple[Rule, ...]
    ids: IdForm | None = None
    names: str = ""
    """The pattern of a tool's name, where the provider has one."""
    field: str = ""
    """The text field that must be present on a message with calls."""
    adjacent: bool = True
    """Results stand right behind their turn, even on a wire that would not mind."""

    system_outside: bool = False
    """System messages are sent outside of the list: the first of the others is the first."""

    @property
    def has_fit(self) -> bool:
        """Whether it demands anything beyond structure."""
        return any(rule.operation not in _STRUCTURAL for rule in self.rules)

    def speaks_of(self, wire: str) -> bool:
        """Tell whether this profile has something to say about `wire`."""
        return wire in self.wires

    def accepts_name(self, name: str) -> bool:
        """Tell whether a tool may be called `name`."""
        return not self.names or _matcher(self.names)(name) is not None

    def rules_for(self, wire: str) -> dict[str, Rule]:
        """Return the rule that each problem breaks on `wire`."""
        return {
            problem: rule for rule in self.rules if not rule.wires or wire in rule.wires for problem in rule.problems
        }


BLOCK_WIRES = ("agentic", "anthropic", "gemini", "bedrock")
ORDERED_WIRES = (*BLOCK_WIRES, "pydantic-ai", "agent-framework")
"""Where the order of the blocks in a message is the order in which they are sent."""

_TABLE = (
    Rule(
        id="answered",
        problems=("dangling",),
        says="Every tool call has a result.",
        operation=Operation.ANSWER,
    ),
    Rule(
        id="has-call",
        problems=("orphan",),
        says="Every tool result has a call before it.",
        operation=Operation.RETELL,
    ),
    Rule(
        id="single-result",
        problems=("duplicate",),
        says="A tool call has one result.",
        operation=Operation.COLLAPSE,
    ),
    Rule(
        id="adjacent",
        problems=("late", "early", "out-of-order"),
        says="The results of a turn follow it, with nothing between.",
        operation=Operation.MOVE,
    ),
    Rule(
        id="id-form",
        problems=("illegal-id", "missing-id", "wrong-id"),
        says="An id is made of letters, digits, _ and -.",
        operation=Operation.RENAME_ID,
    ),
    Rule(
        id="id-unique",
        problems=("repeated-id",),
        says="Ids differ within one message.",
        operation=Operation.RENAME_ID,
    ),
    Rule(
        id="call-named",
        problems=("missing-name",),
        says="A call names its tool.",
        operation=Operation.NAME_CALL,
    ),
    Rule(
        id="arguments",
        problems=("bad-arguments",),
        says="The arguments of a call are a JSON object.",
        operation=Operation.EMPTY_ARGUMENTS,
    ),
    Rule(
        id="results-first",
        problems=("results-not-first",),
        says="In a message with tool results, these come first.",
        operation=Operation.RESULTS_FIRST,
        wires=(*BLOCK_WIRES, "pydantic-ai"),
    ),
    Rule(
        id="text-results",
        problems=("media-in-result",),
        says="A tool message is text; media go into a user message after the last result of the turn.",
        operation=Operation.PROMOTE_MEDIA,
        wires=("agentic", "message", "openai-chat"),
    ),
    Rule(
        id="result-content",
        problems=("no-content",),
        says="A tool message has content, which may be empty.",
        operation=Operation.FILL,
        wires=("openai-chat",),
    ),
    Rule(
        id="not-empty",
        problems=("empty-message", "empty-calls"),
        says="A message has content or calls, and a list of calls is not empty.",
        operation=Operation.DROP_EMPTY,
    ),
    Rule(
        id="item-id",
        problems=("repeated-item",),
        says="An item id is used once.",
        operation=Operation.RENAME_ID,
        wires=("openai-responses",),
    ),
    Rule(
        id="reasoning-pair",
        problems=("lone-reasoning",),
        says="A reasoning item is followed by the item it produced.",
        operation=Operation.UNREPAIRABLE,
        wires=("openai-responses",),
    ),
    Rule(
        id="one-result-message",
        problems=("split-results",),
        says="All results of a turn are in the next message.",
        operation=Operation.MERGE,
        wires=("agentic", "anthropic", "agent-framework"),
    ),
    Rule(
        id="calls-last",
        problems=("text-after-calls",),
        says="In a message with tool calls, these come last.",
        operation=Operation.TEXT_FIRST,
        wires=ORDERED_WIRES,
    ),
    Rule(
        id="text-not-blank",
        problems=("blank-text",),
        says="A text block is not blank.",
        operation=Operation.DROP_EMPTY,
        wires=ORDERED_WIRES,
    ),
    Rule(
        id="error-told",
        problems=("empty-error",),
        says="A result that reports an error has content.",
        operation=Operation.FILL,
    ),
    Rule(
        id="roles-alternate",
        problems=("same-role",),
        says="Two neighbouring messages have different roles.",
        operation=Operation.MERGE,
        wires=BLOCK_WIRES,
    ),
    Rule(
        id="user-first",
        problems=("model-first",),
        says="The conversation starts with the user.",
        operation=Operation.BRIDGE,
    ),
    Rule(
        id="result-named",
        problems=("result-name",),
        says="A response carries the name of its call.",
        operation=Operation.NAME_RESULT,
    ),
    Rule(
        id="name-form",
        problems=("illegal-name",),
        says="A tool's name has 1 to 64 letters, digits, _ and -.",
        operation=Operation.UNREPAIRABLE,
    ),
    Rule(
        id="tool-then-user",
        problems=("tool-then-user",),
        says="A user message does not follow a tool message.",
        operation=Operation.BRIDGE,
    ),
    Rule(
        id="results-alone",
        problems=("trailing-text",),
        says="A tool message holds nothing but its result.",
        operation=Operation.SPLIT,
        wires=("agentic", "anthropic", "pydantic-ai"),
    ),
    Rule(
        id="system-place",
        problems=("late-system",),
        says="A system message does not follow an assistant or tool message.",
        operation=Operation.UNREPAIRABLE,
    ),
    Rule(
        id="calls-together",
        problems=("text-between-calls",),
        says="The calls of one turn stand together.",
        operation=Operation.TEXT_FIRST,
        wires=("openai-responses",),
    ),
    Rule(
        id="reasoning-field",
        problems=("missing-field",),
        says="A message with tool calls has reasoning_content, which may be empty.",
        operation=Operation.FILL,
        wires=("openai-chat",),
    ),
)
_RULES = {rule.id: rule for rule in _TABLE}


def rules(profile: str, **sources: str | tuple[str, str]) -> tuple[Rule, ...]:
    """Return the rules named by `sources`, each with its source, or with (its own words, its source).

    >>> [rule.id for rule in rules("x", answered="400: …", id_form=("An id has 9 letters.", "400: …"))]
    ['x.answered', 'x.id-form']
    """
    made: list[Rule] = []
    for name, source in sources.items():
        rule = _RULES[name.replace("_", "-")]
        says, known_from = (rule.says, source) if isinstance(source, str) else source
        made.append(replace(rule, id=f"{profile}.{rule.id}", says=says, source=known_from))
    return tuple(made)


PAIRING = Profile(
    name="pairing",
    wires=(*NEUTRAL, "openai-chat", "openai-responses", "anthropic", "gemini", "bedrock"),
    adjacent=False,
    rules=rules(
        "pairing",
        answered="common to all providers",
        has_call="common to all providers",
        single_result="common to all providers",
        adjacent="common to all providers",
    ),
)

_HOMES = {
    "openai-chat": "openai_chat.rules",
    "openai-responses": "openai_responses.rules",
    "anthropic": "anthropic.rules",
    "gemini": "gemini.rules",
    "bedrock": "bedrock.rules",
    "mistral": "compatible",
    "deepseek": "compatible",
    "kimi": "compatible",
    "minimax": "compatible",
}
"""Where each profile stands below `suture.providers`; it is loaded when it is asked for."""

PROFILES = (PAIRING.name, *_HOMES)
"""The names of all profiles."""


def get_profile(name: str | Profile) -> Profile:
    """Return the profile called `name`; one of your own is its own name.

    >>> get_profile("mistral").ids.limit
    9
    """
    if isinstance(name, Profile):
        return name
    if name == PAIRING.name:
        return PAIRING
    try:
        home = _HOMES[name]
    except (KeyError, TypeError):
        raise ConfigError(f"unknown profile {name!r}; known: {', '.join(PROFILES)}") from None
    return getattr(import_module(f"suture.providers.{home}"), name.replace("-", "_").upper())


def default_profile(wire: str) -> Profile:
    """Return the profile a wire has by default: its own provider's, `pairing` for the native ones.

    >>> default_profile("anthropic").name, default_profile("message").name
    ('anthropic', 'pairing')
    """
    return get_profile(wire) if wire in _HOMES else PAIRING
