"""Profiles: what each provider accepts, as data. Each rule has an id, a source, and the operation that repairs it.

The code that acts on them is in `suture.repair`; each provider's profile is beside its wire in `suture.providers`.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import StrEnum
from functools import cache, lru_cache
from importlib import import_module

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import force_setattr, replace

from suture.errors import ConfigError
from suture.messages import FrozenMap
from suture.wires import Wire, get_wire

__all__ = [
    "GUESTS",
    "PRINTABLE",
    "PROBLEMS",
    "PROFILES",
    "IdForm",
    "Operation",
    "Profile",
    "Rule",
    "default_profile",
    "get_profile",
    "profile_for",
    "profile_of",
    "rules",
]

GUESTS = ("langchain", "pydantic-ai", "agent-framework")
"""The wires of other frameworks; every profile has rules for them, too."""


class Operation(StrEnum):
    """What repairs a broken rule: a closed list.

    >>> Operation.ANSWER.value
    'answer'
    """

    ANSWER = "answer"
    """Put a placeholder where a result is missing."""
    MOVE = "move"
    """Put a result after its call."""
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
    DROP_THINKING = "drop-thinking"
    ORDER_RESULTS = "order-results"
    REPLACE_TEXT = "replace-text"
    BRIDGE = "bridge"
    FILL = "fill"
    UNREPAIRABLE = "unrepairable"


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One demand of a provider.

    >>> Rule(id="x.y", problems=("orphan",), says="…", source="…", operation=Operation.RETELL).id
    'x.y'
    >>> Rule(id="x.z", problems=("orphans",), says="…", operation=Operation.RETELL)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    suture.errors.ConfigError: rule x.z: unknown problem 'orphans'; known: dangling, orphan, ...
    """

    id: str
    problems: tuple[str, ...]
    """The problems that break it."""
    says: str
    operation: Operation
    """What repairs it; `unrepairable` only reports it."""
    source: str = ""
    """The evidence for it, such as the provider's error."""
    wires: tuple[str, ...] = ()
    """The wires on which it can be broken; if empty, all wires of its profile that know its problem."""

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        if self.operation in set(Operation):
            force_setattr(self, "operation", Operation(self.operation))  # it may be passed as a text
        problems: object = self.problems
        if isinstance(problems, str):
            force_setattr(self, "problems", (problems,))  # a single one may be passed as a text
        for problem in self.problems:
            if problem not in PROBLEMS:
                raise ConfigError(f"rule {self.id}: unknown problem {problem!r}; known: {', '.join(PROBLEMS)}")
            if self.operation not in {PROBLEMS[problem], Operation.UNREPAIRABLE}:
                raise ConfigError(
                    f"rule {self.id}: {self.operation} does not repair {problem}; {PROBLEMS[problem]} does"
                )
            if problem in STRUCTURAL and self.operation is Operation.UNREPAIRABLE:
                raise ConfigError(f"rule {self.id}: {problem} is always repaired; it cannot be unrepairable")


_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
PRINTABLE = r"[^\x00-\x1f\x7f]+"
"""The pattern of an id that may be anything but control characters."""


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
    """The length of a new id with its prefix; the limit may make it shorter."""

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        _check_pattern(self.pattern)
        if self.scope not in {"turn", "history", ""}:
            raise ConfigError(f"unknown scope {self.scope!r} of ids; known: turn, history, or none")

    @property
    def match(self) -> Callable[[str], object]:
        """A quick test for the pattern; for printable ids it is stricter than the pattern."""
        return str.isprintable if self.pattern == PRINTABLE else _matcher(self.pattern)

    def accepts(self, text: str) -> bool:
        """Return whether `text` may be an id."""
        return (self.limit is None or len(text) <= self.limit) and _matcher(self.pattern)(text) is not None

    def make(self, seed: str) -> str:
        """Return the id that `seed` always gives; a pattern whose places allow different characters may refuse it.

        >>> IdForm(pattern="[0-9]{9}", prefix="", length=9).make("call_1").isdigit()
        True
        """
        from hashlib import blake2b  # noqa: PLC0415 - only histories that need a new id pay for it

        alphabet, made = _alphabet(self), self.prefix
        number = int.from_bytes(blake2b(seed.encode("utf-8", "surrogatepass")).digest())
        while len(made) < min(self.length, self.limit or self.length):
            number, place = divmod(number, len(alphabet))
            made += alphabet[place]
        return made


@cache
def _alphabet(form: IdForm) -> str:
    """Return the letters and digits that can fill an id of this form; all of them if none fits everywhere."""
    length = min(form.length, form.limit or form.length) - len(form.prefix)
    return "".join(each for each in _ALPHABET if form.accepts(form.prefix + each * length)) or _ALPHABET


_TABLE = """
answer | answered | dangling | Every tool call has a result.
retell | has-call | orphan | Every tool result has a call before it.
retell | system-place | late-system | A system message does not follow an assistant or tool message.
retell | no-developer | developer-role | There is no role developer.
collapse | single-result | duplicate | A tool call has one result.
move | adjacent | late early out-of-order result-in-model-message | The results of a turn follow it, with nothing between.
rename-id | id-form | illegal-id missing-id | An id is made of letters, digits, _ and -.
rename-id | same-id | wrong-id | A tool result carries the id of its call.
rename-id | id-unique | repeated-id | Ids differ within one message.
rename-id | item-id | repeated-item | An item id is used once.
rename-id | item-id-form | illegal-item-id | An item id begins with the letters of its type, and has at most 64 letters, digits, _ and -.
rename-id | document-names | repeated-document | Documents have different names.
name-call | call-named | missing-name | A call names its tool.
unrepairable | name-form | illegal-name | A tool's name has 1 to 64 letters, digits, _ and -.
unrepairable | functions-only | custom-call | A call is a function's.
unrepairable | server-tools | split-server-tool | The result of a server's tool stands in one message with its use.
empty-arguments | arguments | bad-arguments | The arguments of a call are a JSON object.
name-result | result-named | result-name | A response carries the name of its call.
name-result | result-name-form | illegal-result-name | The name in a tool message has 1 to 64 letters, digits, _ and -.
name-result | function-named | missing-result-name | A function message carries the name of its function.
results-first | results-first | results-not-first | In a message with tool results, these come first.
order-results | results-in-order | results-order | The responses stand in the order of their calls.
promote-media | text-results | media-in-result | A tool message is text; media go into a user message after the last result of the turn.
promote-media | text-errors | media-in-error | A result that reports an error is text.
fill | result-content | no-content | A tool message has content, which may be empty.
fill | response-object | bad-response | A response is an object.
fill | error-told | empty-error | A result that reports an error has content.
fill | reasoning-field | missing-field | The messages of a turn with tool calls have reasoning_content, which may be empty.
drop-empty | not-empty | empty-message empty-calls | A message has content or calls, and a list of calls is not empty.
drop-empty | text-not-blank | blank-text | A text block is not blank.
drop-empty | server-tools-end | open-server-tool | A use of a server's tool has its result, unless the model may still go on.
drop-thinking | thinking-signed | unsigned-thinking | A thinking block has a signature.
drop-thinking | thinking-not-last | trailing-thinking | The last block of an assistant turn is no thinking.
drop-thinking | no-thought-fields | thought-field | A message has no reasoning_content and no reasoning_details.
drop-thinking | reasoning-pair | lone-reasoning | A reasoning item is followed by the item it produced.
merge | roles-alternate | same-role | Two neighbouring messages have different roles.
merge | one-result-message | split-results | All results of a turn are in the next message.
split | results-alone | trailing-text | A tool message holds nothing but its result.
split | own-results | split-turn | The results of each assistant message follow it, before the next one.
split | one-turn | turn-order | Neighbouring assistant messages are one turn: nothing but calls stands behind its first call.
text-first | calls-last | text-after-calls | In a message with tool calls, these come last.
text-first | calls-together | text-between-calls | The calls of one turn stand together.
bridge | user-first | model-first | The conversation starts with the user.
bridge | tool-then-user | tool-then-user | A user message does not follow a tool message.
replace-text | sendable | lone-surrogate | A text can be written as UTF-8.
"""  # noqa: E501 - one row a rule
"""All rules: the operation that repairs each, its name, the problems that break it, and what it says."""

_RULES = {
    name: (Operation(operation), tuple(problems.split()), says)
    for operation, name, problems, says in [row.split(" | ") for row in _TABLE.strip().splitlines()]
}

PROBLEMS = {problem: operation for operation, problems, _ in _RULES.values() for problem in problems}
"""The operation for every problem that a rule can name: a closed list."""

STRUCTURAL = frozenset(
    (
        *("dangling", "orphan", "duplicate", "late", "early", "out-of-order", "result-in-model-message", "wrong-id"),
        "lone-surrogate",
    )
)
"""The problems that are always repaired, whatever the profile."""


def _check_pattern(pattern: str) -> None:
    """Raise `ConfigError` if `pattern` is not a regular expression."""
    try:
        _matcher(pattern)("")
    except (re.error, TypeError) as error:
        raise ConfigError(f"{pattern!r} is no pattern: {error}") from None


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
    """The pattern of a tool's name, if the provider has one."""
    field: str = ""
    """The field or part of a thought in a message of the model; a rule may demand it on messages with calls."""
    adjacent: bool = True
    """Whether results come right after their turn, even on a wire that does not demand it."""

    reads_compacted: bool = True
    """Whether messages before the provider's own compaction are still read and billed, not ignored."""
    system_outside: bool = False
    """Whether system messages are sent outside the list, so that the first other message is the first in it."""

    @staticmethod
    def extend(
        base: "str | Profile",
        *,
        name: str,
        ids: "IdForm | UnsetType | None" = UNSET,
        names: str | None = None,
        rules: "Sequence[Rule]" = (),
        without: Collection[str] = (),
    ) -> "Profile":
        """Return a profile of your own: `base` with another form of ids, more rules, or without some rules, by id.

        Raises `ConfigError` for unknown rule ids, a structural rule in `without`, a name that is taken, or a rule that
        no wire of the profile can repair. `ids=None` demands nothing of ids.

        >>> from suture.profiles import Profile
        >>> mine = Profile.extend("openai-chat", name="mine", without={"openai-chat.text-results"})
        >>> mine.speaks_of("openai-chat"), len(mine.rules) < len(get_profile("openai-chat").rules)
        (True, True)
        """
        parent = get_profile(base)
        if not isinstance(name, str) or not name or name in PROFILES:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"a profile of your own needs a name of its own, not {name!r}")
        if not isinstance(ids, IdForm | UnsetType | None) or not all(isinstance(rule, Rule) for rule in rules):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError("rules must be a list of Rule, ids an IdForm or None")
        known = {rule.id: rule for rule in parent.rules}
        left_out = {without} if isinstance(without, str) else set(without)
        for rule_id in left_out - known.keys():
            raise ConfigError(f"{parent.name} has no rule {rule_id!r}; it has: {', '.join(known)}")
        new = {rule.id: rule.problems for rule in rules}
        gone = [rule for rule in parent.rules if rule.id in left_out or rule.id in new]
        for rule in gone:
            if STRUCTURAL.intersection(rule.problems).difference(new.get(rule.id, ())):
                raise ConfigError(f"rule {rule.id} is structural: pairing always runs")
        _check_pattern(names or "")
        says = _describe_forms(ids, names)
        return _check_rules(
            replace(
                parent,
                name=name,
                rules=(*[_restate(rule, says) for rule in parent.rules if rule not in gone], *rules),
                ids=parent.ids if isinstance(ids, UnsetType) else ids,
                names=parent.names if names is None else names,
            ),
            rules,
        )

    @property
    def has_fit(self) -> bool:
        """Whether it has rules beyond structure."""
        return any(not set(rule.problems) <= STRUCTURAL for rule in self.rules)

    def speaks_of(self, wire: str) -> bool:
        """Return whether this profile has rules for `wire`."""
        return wire in self.wires

    def accepts_name(self, name: str) -> bool:
        """Return whether a tool may have this name."""
        return not self.names or _matcher(self.names)(name) is not None

    def rules_for(self, wire: Wire) -> dict[str, Rule]:
        """Return the rule that each problem breaks, for the problems that can be repaired on `wire`."""
        operations = wire.operations
        return {
            problem: rule
            for rule in self.rules
            if not rule.wires or wire.name in rule.wires
            for problem in rule.problems
            if problem in operations
        }


def _describe_forms(ids: IdForm | UnsetType | None, names: str | None) -> dict[str, str]:
    """Return what rules about these ids and names say, by problem; raise `ConfigError` if no id can be made."""
    says = {"illegal-name": f"A tool's name fits {names}."} if names else {}
    if isinstance(ids, IdForm):
        if not any(ids.accepts(ids.make(str(salt))) for salt in range(10_000)):
            raise ConfigError(f"no id like {ids.make('')!r} fits {ids.pattern!r}; set prefix and length of IdForm")
        limit = f" and has at most {ids.limit} characters" if ids.limit else ""
        says["illegal-id"] = f"An id fits {ids.pattern}{limit}."
    return says


def _restate(rule: Rule, says: Mapping[str, str]) -> Rule:
    """Return `rule`; if `says` has one of its problems, with that text and without its source."""
    said = next((says[problem] for problem in rule.problems if problem in says), "")
    return replace(rule, says=said, source="") if said else rule


def _check_rules(profile: Profile, new: Sequence[Rule]) -> Profile:
    """Return `profile`; raise `ConfigError` if it lacks a wire, a field or an operation that a new rule needs."""
    for rule in new:
        for name in rule.wires:
            if name not in profile.wires:
                raise ConfigError(f"rule {rule.id}: {profile.name} has no rules for the wire {name!r}")
        wires = [get_wire(name) for name in rule.wires or profile.wires if name not in GUESTS]
        if "missing-field" in rule.problems and not profile.field:
            raise ConfigError(f"rule {rule.id}: {profile.name} names no field")
        for problem in rule.problems:
            unable = [wire.name for wire in wires if problem not in wire.operations]
            if unable and (rule.wires or len(unable) == len(wires)):
                raise ConfigError(f"rule {rule.id}: the wire {unable[0]} cannot do {rule.operation} ({problem})")
    return profile


def rules(
    profile: str, shared: Mapping[str, str] = FrozenMap(), /, **sources: str | tuple[str, str]
) -> tuple[Rule, ...]:
    """Return the rules that `sources` names, each with its source, or with a pair of its own text and its source.

    `shared` maps one source to several rules, which are named in one text.

    >>> [rule.id for rule in rules("x", answered="400: …", id_form=("An id has 9 letters.", "400: …"))]
    ['x.answered', 'x.id-form']
    """
    made: list[Rule] = []
    sources |= {name: source for source, names in shared.items() for name in names.split()}
    for name, source in sources.items():
        rule = name.replace("_", "-")
        operation, problems, says = _RULES[rule]
        says, known_from = (says, source) if isinstance(source, str) else source
        made.append(Rule(id=f"{profile}.{rule}", problems=problems, says=says, source=known_from, operation=operation))
    return tuple(made)


PAIRING = Profile(
    name="pairing",
    wires=("message", "agentic", *GUESTS, "openai-chat", "openai-responses", "anthropic", "gemini", "bedrock"),
    adjacent=False,
    rules=rules("pairing", {"common to all providers": "answered has_call single_result adjacent same_id"}),
)

_OWN = ("openai-chat", "openai-responses", "anthropic", "gemini", "bedrock")
_HOMES = {
    **{name: name.replace("-", "_") for name in _OWN},
    **dict.fromkeys(("mistral", "deepseek", "groq", "kimi", "minimax"), "compatible"),
}
"""The module of each profile below `suture.providers`, which is loaded on first use."""

PROFILES = (PAIRING.name, *_HOMES)
"""The names of all profiles."""


def get_profile(name: str | Profile) -> Profile:
    """Return the profile called `name`; a `Profile` is returned as it is.

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
    """Return the default profile of a wire: its provider's, or `pairing` for the native ones.

    >>> default_profile("anthropic").name, default_profile("message").name
    ('anthropic', 'pairing')
    """
    return get_profile(wire) if wire in _HOMES else PAIRING


# Profiles by provider and model

_NAMES = {
    "anthropic": "anthropic claude",
    "bedrock": "bedrock",
    "gemini": "gemini google vertex",
    "mistral": "mistral",
    "deepseek": "deepseek",
    "kimi": "moonshot kimi",
    "minimax": "minimax",
    "openai-chat": ("openai azure openrouter fireworks together cerebras nvidia litellm ollama grok xai vllm"),
    "groq": "groq",
}
"""Parts of the names of each profile's providers. The first that fits counts: Claude on Vertex AI is Anthropic's."""

_ID_PROBLEMS = frozenset(("illegal-id", "missing-id", "repeated-id"))


def profile_of(provider: str) -> Profile:
    """Return the profile of a provider by any of its names; for an unknown one, the strictest rules.

    The name may be that of a framework (`google_vertexai`, `amazon_bedrock`) or of a class (`ChatOpenAI`).

    >>> profile_of("openai").name, profile_of("google_genai").name, profile_of("ChatMistralAI").name
    ('openai-chat', 'gemini', 'mistral')
    >>> profile_of("somebody else's").name
    'strictest'
    """
    name = provider.lower()
    known = next((profile for profile, parts in _NAMES.items() if any(part in name for part in parts.split())), None)
    return _strictest() if known is None else get_profile(known)


@cache
def _strictest() -> Profile:
    """Return Anthropic's rules with OpenAI's short ids and split turns, which nearly every provider accepts."""
    base = get_profile("anthropic")
    ids = IdForm(pattern="[a-zA-Z0-9_-]+", limit=40, scope="history", prefix="toolu_", length=30)
    own = rules("strictest", own_results="as Chat Completions")
    return replace(base, name="strictest", rules=(*base.rules, *own), ids=ids)


@lru_cache(maxsize=256)
def profile_for(wire: str, base: Profile, model: Profile) -> Profile:
    """Return the profile for messages that a framework keeps on `wire` and sends to a model with the profile `model`.

    If `model` has rules for the wire, it is returned as it is. Else only its rules about ids replace those of `base`,
    because the framework translates everything else for that provider.

    >>> profile_for("bedrock", get_profile("bedrock"), get_profile("mistral")).ids == get_profile("mistral").ids
    True
    """
    if model.speaks_of(wire):
        return model
    kept = [rule for rule in base.rules if not _ID_PROBLEMS.issuperset(rule.problems)]
    taken = [rule for rule in model.rules if _ID_PROBLEMS.issuperset(rule.problems)]
    return replace(base, name=f"{base.name}, ids of {model.name}", ids=model.ids, rules=(*kept, *taken))
