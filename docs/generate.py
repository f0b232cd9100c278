# ruff: noqa: INP001 - a program, not a package
"""Print docs/profiles.md, made from the profiles themselves.

python docs/generate.py > docs/profiles.md
"""

import sys
from collections.abc import Iterable, Iterator

from suture.profiles import (
    GUESTS,
    PROBLEMS,
    PROFILES,
    IdForm,
    Operation,
    Profile,
    Rule,
    default_profile,
    get_profile,
)
from suture.wires import WIRES, get_wire

HEAD = """\
<!-- Made by docs/generate.py from src/suture/profiles.py and src/suture/providers/. Change those, not this page. -->

# Profiles

A profile is what one provider accepts, as data. Pass its name to `suture.repair` and `suture.check` as `profile=`, on the
command line as `--profile`. The default is the wire's own provider. Suture's own messages, `message` and `agentic`, have no
provider: for them the default is `pairing`, the rules of structure alone. A model encodes them and
[fits each request](models.md#what-is-sent). `suture.check(messages, profile="anthropic")` checks that request.

Each rule has an id, which findings cite, a sentence, the operation that repairs it, and a source: the provider's own error, its
reference, its validator, or a report that shows it. [limits.md](limits.md) says what profiles cannot cover;
[repair.md](repair.md) shows each repair.
"""

EXTEND = """\
## A profile of your own

If your server, or a gateway, has other rules than a provider, change a profile with `Profile.extend`: `ids` is another form of
ids (`None` allows any), `names` the pattern of tool names, `rules` adds rules, `without` removes them by id.

```python
from typing import Any

import suture
from suture.profiles import IdForm, Operation, Profile, Rule

bridge = Rule(
    id="gateway.tool-then-user",
    problems=("tool-then-user",),
    says="A user message does not follow a tool message.",
    operation=Operation.BRIDGE,
    source="400 of our gateway",
)
gateway = Profile.extend(
    "openai-chat",
    name="gateway",
    ids=IdForm(pattern="[a-z0-9]{8}", limit=8, scope="turn", prefix="", length=8),
    rules=[bridge],
    without={"openai-chat.text-results"},
)

call = {"id": "c1x9k2m4", "type": "function", "function": {"name": "tides", "arguments": "{}"}}
history = [
    {"role": "user", "content": "When is high tide?"},
    {"role": "assistant", "content": None, "tool_calls": [call]},
    {"role": "tool", "tool_call_id": "c1x9k2m4", "content": "06:12"},
    {"role": "user", "content": "Thanks."},
]
fixed = suture.repair(history, profile=gateway)
print([message["role"] for message in fixed.messages])
print(suture.check(history).acceptable, fixed.report.findings[0].rule)
```

```text
['user', 'assistant', 'tool', 'assistant', 'user']
True gateway.tool-then-user
```

`repair`, `check`, `Repairer` and [models](models.md#settings) take a `Profile` wherever they take a name. A rule names problems from
[the table](#operations), with their operation, or with `unrepairable` to report them only. A rule with the id of an old one
replaces it.

A wrong profile is an error at once:

```python
def attempt(**changes: Any) -> None:
    try:
        Profile.extend("anthropic", **changes)
    except suture.ConfigError as error:
        print(str(error).partition(";")[0])


attempt(name="mine", without={"anthropic.answered"})
attempt(name="mine", without={"anthropic.nonsense"})
attempt(name="mine", rules=[Rule(id="a", problems=("split-turn",), says="", operation=Operation.SPLIT)])
attempt(name="mistral")
```

```text
rule anthropic.answered is structural: pairing always runs
anthropic has no rule 'anthropic.nonsense'
rule a: the wire anthropic cannot do split (split-turn)
a profile of your own needs a name of its own, not 'mistral'
```
"""

MEANINGS = {
    Operation.ANSWER: "A placeholder is put where a result is missing.",
    Operation.MOVE: "A result is put behind its call.",
    Operation.COLLAPSE: "One of several results is kept; parts of different kinds are joined.",
    Operation.RETELL: "A result without a call becomes user text, or is dropped. A refused role becomes another.",
    Operation.RENAME_ID: "An id is replaced, on the call and on its result. An item id is left out.",
    Operation.EMPTY_ARGUMENTS: "Arguments that are no object become `{}`.",
    Operation.NAME_CALL: "A call without a name gets `unknown_tool`.",
    Operation.NAME_RESULT: "A result gets the name of its call.",
    Operation.MERGE: "Neighbouring messages become one.",
    Operation.SPLIT: "A message becomes two; each step of a turn has its own results behind it.",
    Operation.TEXT_FIRST: "Everything but the calls is put before the calls.",
    Operation.RESULTS_FIRST: "Results are put before everything else in their message.",
    Operation.PROMOTE_MEDIA: "Media in a result go into a user message after the last result of the turn.",
    Operation.DROP_EMPTY: "Empty messages, fields and texts are left out.",
    Operation.DROP_THINKING: "Thinking that a cut stream left behind is left out.",
    Operation.ORDER_RESULTS: "Results are put in the order of their calls.",
    Operation.REPLACE_TEXT: "Half a character becomes U+FFFD.",
    Operation.BRIDGE: "A short message is put between two that may not touch.",
    Operation.FILL: "A field that must be there is filled.",
    Operation.UNREPAIRABLE: "Nothing can be done. The finding is in `unresolved`.",
}


def page() -> str:
    """Return the whole page."""
    rows = (line for name in PROFILES for line in _profile(name))
    return "\n".join([HEAD, *_overview(), EXTEND, *_operations(), *rows])


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
    yield "A rule names problems, and each problem has one operation."
    yield ""
    yield "| operation | what it does | problems |"
    yield "|---|---|---|"
    for operation in Operation:
        problems = [problem for problem, mended_by in PROBLEMS.items() if mended_by is operation]
        yield f"| `{operation}` | {MEANINGS[operation]} | {_codes(problems)} |"
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
    if any("missing-field" in rule.problems for rule in profile.rules):
        yield f"- Field on a message with calls: `{profile.field}`"
    if not profile.reads_compacted:
        yield "- Messages before the provider's own compaction are ignored, and not billed."
    if profile.system_outside:
        yield "- System messages are sent outside of the list."
    if not profile.adjacent:
        yield "- On `openai-responses` an output may stand anywhere after its call."
    yield ""


def _ids(form: IdForm) -> str:
    scopes = {"": "may repeat", "turn": "unique within a turn", "history": "unique within the history"}
    made = f"a made one begins with `{form.prefix}`" if form.prefix else "a made one has no prefix"
    limit = "" if form.limit is None else f", at most {form.limit} characters"
    return f"`{_cell(form.pattern)}`{limit}, {scopes[form.scope]}; {made}"


def _row(rule: Rule, profile: Profile) -> str:
    own = [wire for wire in profile.wires if wire not in GUESTS]
    wires = [wire for wire in own if rule in profile.rules_for(get_wire(wire)).values()]
    where = _codes(wires) if wires else "messages of other frameworks"
    says = _cell(rule.says) + (f" (On {where}.)" if len(wires) < len(own) else "")
    return f"| `{rule.id}` | {says} | {_codes(rule.problems)} | `{rule.operation}` | {_cell(rule.source)} |"


def _codes(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _cell(text: str) -> str:
    """Return text as it may stand in a cell of a table."""
    return text.strip().replace("|", "\\|").replace("*", "\\*")


if __name__ == "__main__":
    sys.stdout.write(page())
