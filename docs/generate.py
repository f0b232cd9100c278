# ruff: noqa: INP001 - a program, not a package
"""Print docs/profiles.md, made from the profiles themselves.

python docs/generate.py > docs/profiles.md
"""

import sys
from collections.abc import Iterable, Iterator

from suture.profiles import PROFILES, IdForm, Operation, Profile, Rule, default_profile, get_profile
from suture.wires import WIRES

HEAD = """\
<!-- Made by docs/generate.py from the profiles in src/suture/profiles. Change those, not this page. -->

# Profiles

A profile is what one provider accepts, as data. `suture.repair` and `suture.check` take its name as `profile=`,
the command line as `--profile`. Without one, a wire's own provider is meant. `message` and `agentic` have no
provider of their own: for them it is `pairing`, the rules of structure alone.

Each rule has an id, which findings cite, a sentence, the operation that mends it, and a source: the provider's
own error, its reference, its validator, or a report that shows it. What a profile does not say is in
[limits.md](limits.md). What happens to each kind of breakage is in [repair.md](repair.md).
"""

MEANINGS = {
    Operation.ANSWER: "A placeholder is put where a result is missing.",
    Operation.MOVE: "A result is put behind its call.",
    Operation.COLLAPSE: "One of several results is kept.",
    Operation.RETELL: "A result without a call is kept as user text, or dropped.",
    Operation.RENAME_ID: "An id is replaced, on the call and on its result. An item id is left out.",
    Operation.EMPTY_ARGUMENTS: "Arguments that are no object become `{}`.",
    Operation.NAME_CALL: "A call without a name gets `unknown_tool`.",
    Operation.NAME_RESULT: "A result gets the name of its call.",
    Operation.MERGE: "Neighbouring messages become one.",
    Operation.SPLIT: "A message becomes two.",
    Operation.TEXT_FIRST: "Everything but the calls is put before the calls.",
    Operation.RESULTS_FIRST: "Results are put before everything else in their message.",
    Operation.PROMOTE_MEDIA: "Media in a result go into a user message after the last result of the turn.",
    Operation.DROP_EMPTY: "What says nothing is left out.",
    Operation.BRIDGE: "A short message is put between two that may not touch.",
    Operation.FILL: "A field that must be there is filled.",
    Operation.UNREPAIRABLE: "Nothing can be done. The finding is in `unresolved`.",
}


def page() -> str:
    """Return the whole page."""
    return "\n".join([HEAD, *_overview(), *_operations(), *(line for name in PROFILES for line in _profile(name))])


def _overview() -> Iterator[str]:
    yield "| profile | wires | default for | rules |"
    yield "|---|---|---|---|"
    for name in PROFILES:
        profile = get_profile(name)
        meant = [wire for wire in WIRES if default_profile(wire) is profile]
        yield f"| [`{name}`](#{name}) | {_codes(profile.wires)} | {_codes(meant) or '-'} | {len(profile.rules)} |"
    yield ""


def _operations() -> Iterator[str]:
    yield "## Operations"
    yield ""
    yield "The list is closed. A rule names one of these."
    yield ""
    yield "| operation | what it does |"
    yield "|---|---|"
    for operation in Operation:
        yield f"| `{operation}` | {MEANINGS[operation]} |"
    yield ""


def _profile(name: str) -> Iterator[str]:
    profile = get_profile(name)
    yield f"## {name}"
    yield ""
    yield from _facts(profile)
    yield "| rule | what it says | problems | operation | source |"
    yield "|---|---|---|---|---|"
    for rule in profile.rules:
        yield _row(rule, profile)
    yield ""


def _facts(profile: Profile) -> Iterator[str]:
    yield f"- Wires: {_codes(profile.wires)}"
    if profile.ids is not None:
        yield f"- Ids: {_ids(profile.ids)}"
    if profile.names:
        yield f"- Tool names: `{_cell(profile.names)}`"
    if profile.field:
        yield f"- Field on a message with calls: `{profile.field}`"
    if not profile.adjacent:
        yield "- On `openai-responses` an output may stand anywhere after its call."
    yield ""


def _ids(form: IdForm) -> str:
    scopes = {"": "may repeat", "turn": "unique within a turn", "history": "unique within the history"}
    made = f"a made one begins with `{form.prefix}`" if form.prefix else "a made one has no prefix"
    limit = "" if form.limit is None else f", at most {form.limit} characters"
    return f"`{_cell(form.pattern)}`{limit}, {scopes[form.scope]}; {made}"


def _row(rule: Rule, profile: Profile) -> str:
    wires = [wire for wire in profile.wires if not rule.wires or wire in rule.wires]
    says = _cell(rule.says) + (f" (On {_codes(wires)}.)" if len(wires) < len(profile.wires) else "")
    return f"| `{rule.id}` | {says} | {_codes(rule.problems)} | `{rule.operation}` | {_cell(rule.source)} |"


def _codes(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _cell(text: str) -> str:
    """Return text as it may stand in a cell of a table."""
    return text.strip().replace("|", "\\|").replace("*", "\\*")


if __name__ == "__main__":
    sys.stdout.write(page())
