"""Learns stricter rules from refusals, and remembers them in a file.

For each upstream and model the file holds a whole profile: the one that applied, with the rules that were learned.
"""

import os
import re
import tempfile
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from suture.errors import ConfigError, ContextLengthError
from suture.models.http import status_error
from suture.profiles import IdForm, Profile, rules
from suture.proxy.requests import Rules
from suture.wires import get_wire

_LONGEST = 4000
_LONGEST_UNPACKED = 1 << 18
_PACKED = zlib.MAX_WBITS + 32
"""The `wbits` with which `zlib` recognises gzip or deflate by itself."""
_SHARE = 0.8
"""The share of a provider's limit that is used, since tokens are only estimated."""


class Lesson(NamedTuple):
    """The rules that a refusal teaches."""

    name: str
    rules: Rules
    lasting: bool = True
    """Whether it applies to the upstream and the model, not only to this conversation."""


class Memory(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was learned about one model at one upstream."""

    upstream: str
    model: str
    wire: str
    profile: Profile
    compact: int | None = None


class Lessons:
    """Reads refusals, and remembers what they taught.

    >>> from suture.profiles import default_profile
    >>> said = b'{"error": {"message": "messages.1.tool_calls.0.id: string too long. Expected maximum length 9"}}'
    >>> lesson = Lessons().read(said, Rules(default_profile("openai-chat")), "openai-chat", 400)
    >>> lesson.name, lesson.rules.profile.ids.limit
    ('id-length', 9)
    """

    def __init__(self, path: str | None = None) -> None:
        self._path = None if path is None else Path(path)
        self._known: dict[tuple[str, str, str], Memory] = {}
        if self._path is not None and self._path.exists():
            try:
                known = msgspec.json.decode(self._path.read_bytes(), type=list[Memory])
            except (OSError, msgspec.MsgspecError, ConfigError) as error:
                raise ConfigError(f"what was learned cannot be read from {path}: {error}") from None
            self._known = {(each.upstream, each.model, each.wire): each for each in known}

    def apply(self, given: Rules, upstream: str, model: str, wire: str) -> Rules:
        """Return the rules, replaced by what was learned about a model."""
        known = self._known.get((upstream, model, wire))
        if known is None:
            return given
        limits = [limit for limit in (given.reduction.compact, known.compact) if limit is not None]
        reduction = given.reduction._replace(compact=min(limits, default=None))
        return given._replace(profile=known.profile, reduction=reduction)

    def read(self, said: bytes, given: Rules, wire: str, status: int, size: int = 0) -> Lesson | None:
        """Return the lesson of a refusal of a request of `size` bytes, if there is one and it is new."""
        text = _read_texts(said)
        error = status_error("", status, text, {})
        if isinstance(error, ContextLengthError):
            return _shorten(error, given, size)
        kept = re.search(r"no tool output found for [\w ]*call ([\w|.:-]+?)\.?(?:\W|$)", text, re.IGNORECASE)
        for name, pattern, learn in _LESSONS:
            found = re.search(pattern, text, re.IGNORECASE | re.DOTALL)
            if found is not None:
                taught = learn(given, found, wire)
                if kept is not None and wire == "openai-responses":
                    taught = taught._replace(open_calls=(kept[1],))
                lasting = not taught.without_thinking and not taught.open_calls
                return None if taught == given else Lesson(name, taught, lasting)
        return None

    def keep(self, lesson: Lesson, upstream: str, model: str, wire: str) -> None:
        """Remember a lesson that helped."""
        if not lesson.lasting:
            return
        taught = lesson.rules
        self._known[upstream, model, wire] = Memory(upstream, model, wire, taught.profile, taught.reduction.compact)
        if self._path is None:
            return
        text = msgspec.json.format(msgspec.json.encode(list(self._known.values())), indent=2)
        number, part = tempfile.mkstemp(prefix=".suture-", dir=self._path.parent)  # mode 0600
        with os.fdopen(number, "wb") as file:
            file.write(text + b"\n")
        Path(part).replace(self._path)


def _shorten(error: ContextLengthError, given: Rules, size: int) -> Lesson | None:
    """Return a lesson with a limit in tokens as we count them (four bytes each), unless a lower one is in force."""
    estimate = size / 4
    limit = error.limit or (error.tokens or estimate) * _SHARE
    scale = min(1.0, estimate / error.tokens) if error.tokens and estimate else 1.0
    tokens = int(limit * _SHARE * scale)
    before = given.reduction.compact
    if tokens < 1 or (before is not None and before <= tokens):
        return None
    return Lesson(
        "too-long", given._replace(reduction=given.reduction._replace(compact=tokens)), error.limit is not None
    )


# --- the table ------------------------------------------------------------------------------------

Learn = Callable[[Rules, "re.Match[str]", str], Rules]
_PLAIN = "[a-zA-Z0-9_-]+"
_ANY_ID = IdForm(pattern=_PLAIN, limit=64, scope="turn")


def _demand(*names: str, **fields: Any) -> Learn:
    """Return a function that adds rules that the wire supports, and sets fields of the profile."""

    def learn(given: Rules, _: "re.Match[str]", wire: str) -> Rules:
        return _extend(given, wire, names, **fields)

    return learn


def _extend(given: Rules, wire: str, names: Sequence[str], **fields: Any) -> Rules:
    profile, able = given.profile, get_wire(wire).operations
    held = profile.rules_for(get_wire(wire))
    sources: dict[str, Any] = dict.fromkeys(names, "learned from a refusal")
    new = [rule for rule in rules("learned", **sources) if set(rule.problems) & able - held.keys()]
    if not new and all(getattr(profile, name) == value for name, value in fields.items()):
        return given
    name = profile.name if profile.name.endswith(", learned") else f"{profile.name}, learned"
    return given._replace(profile=replace(profile, name=name, rules=(*profile.rules, *new), **fields))


def _id_form(**fields: Any) -> Learn:
    """Return a function that changes the form of ids; a group in the pattern is the length that the refusal names."""

    def learn(given: Rules, found: "re.Match[str]", wire: str) -> Rules:
        ids, changes = given.profile.ids or _ANY_ID, dict(fields)
        if found.groups():
            limit = int(found[1])
            changes |= {"limit": limit, "length": min(ids.length, limit)}
            changes["prefix"] = ids.prefix if len(ids.prefix) < limit // 2 else ""
            if "pattern" in fields:
                changes["pattern"] = fields["pattern"].format(limit)
        return _extend(given, wire, ("id_form", "id_unique"), ids=replace(ids, **changes))

    return learn


def _drop_thinking(given: Rules, *_: object) -> Rules:
    return given._replace(without_thinking=True)


_ID = r"\b(?:id|call_id|tool_call_id|tool_use_id)\b"
_UNPAIRED = (
    r"tool_result.{0,40}immediately after|followed by tool messages|insufficient tool messages|no tool output found|"
    r"follow tool call|call and result not match|comes immediately after|number of function (?:calls|response)"
)
_LESSONS: Sequence[tuple[str, str, Learn]] = (
    ("id-nine", r"must be a-z, A-Z, 0-9, with a length of (\d+)", _id_form(pattern="[a-zA-Z0-9]{{{}}}", scope="turn")),
    ("id-length", _ID + r".{0,40}too long.{0,60}maximum length (\d+)", _id_form()),
    ("id-pattern", _ID + r".{0,60}(?:match.{0,9}pattern|is invalid|invalid characters)", _id_form(pattern=_PLAIN)),
    ("id-unique", r"ids? must be unique|duplicated? (?:tool|function_call|item|id)", _id_form(scope="history")),
    ("signature", r"signature|encrypted[ _]content|thinking.{0,60}cannot be modified", _drop_thinking),
    (
        "thoughts",
        r"\breasoning(?:_content|_details)?\b.{0,200}(?:unsupported|not supported|not permitted)",
        _drop_thinking,
    ),
    ("tool-then-user", r"unexpected role .?user.? after role .?tool", _demand("tool_then_user")),
    ("alternate", r"alternat|multiple consecutive .?(?:user|assistant)", _demand("roles_alternate", "user_first")),
    ("reasoning-field", r"reasoning_content", _demand("reasoning_field", field="reasoning_content")),
    ("developer", r"(?:unknown|invalid|unsupported).{0,40}developer", _demand("no_developer")),
    (
        "unpaired",
        _UNPAIRED,
        _demand("own_results", "results_first", "one_result_message", "calls_together", "adjacent", adjacent=True),
    ),
    ("empty", r"non-empty|not be empty|either content or tool_calls", _demand("not_empty", "text_not_blank")),
    ("text-results", r"tool.{0,60}(?:image|(?:be|expected) a string)", _demand("text_results", "result_content")),
)
"""Each lesson: its name, the pattern of its refusals, and how it changes the rules; the first match counts."""


def _read_texts(said: bytes) -> str:
    """Return the texts in the JSON of a refusal, which may be compressed; all of it if it is not JSON."""
    with suppress(zlib.error):
        said = zlib.decompressobj(_PACKED).decompress(said, _LONGEST_UNPACKED)
    try:
        decoded: Any = msgspec.json.decode(said)
    except (msgspec.MsgspecError, RecursionError):
        return said[:_LONGEST].decode(errors="replace")
    texts: list[str] = []
    waiting: list[Any] = [decoded]
    while waiting:
        each = waiting.pop(0)
        if isinstance(each, str):
            texts.append(each)
        elif isinstance(each, dict | list):
            waiting += each.values() if isinstance(each, dict) else each
    return " ".join(texts)[:_LONGEST]
