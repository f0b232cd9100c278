"""What a profile is: what one provider accepts, as data. Code that acts on it lives in `suture.repair`."""

import re
from collections.abc import Callable
from enum import StrEnum
from functools import cache

import msgspec

__all__ = ["NEUTRAL", "IdForm", "Operation", "Profile", "Rule"]

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
