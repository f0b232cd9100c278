"""Reports: what was found and what was done about it, as data and as a table for people.

A report has places, ids and lengths. The content of messages is only in it for displaced results, and is shown
only on request.
"""

from typing import Any

import msgspec

from suture._text import plural
from suture.profiles import Rule
from suture.repair.texts import visible

_CELL = 64
"""How many characters of an id a table shows."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a provider would refuse, and what was done about it.

    >>> Finding(index=1, problem="dangling", call_id="a", done="answered as interrupted").mended
    True
    """

    index: int
    """The position of the message in the original history."""
    problem: str
    """What is wrong, in one word: `dangling`, `orphan`, `duplicate`, `late`, `bad-arguments` …"""
    call_id: str = ""
    name: str = ""
    done: str = ""
    """What was done, or would be done; empty if nothing can be done."""
    rule: str = ""
    """The id of the provider's rule."""
    says: str = ""
    """The rule in one sentence."""
    source: str = ""
    """Where the rule is documented or was observed."""

    @property
    def mended(self) -> bool:
        """Whether an operation repairs it."""
        return bool(self.done)

    def cite(self, rule: Rule | None) -> "Finding":
        """Return the finding with the rule that it breaks, if there is one."""
        if rule is None:
            return self
        return msgspec.structs.replace(self, rule=rule.id, says=rule.says, source=rule.source)


class Displaced(msgspec.Struct, frozen=True, kw_only=True):
    """A real result that is not, or not completely, in the output; so nothing is ever lost silently.

    >>> Displaced(index=4, call_id="a", name="f", reason="duplicate", length=2, content="42")
    Displaced(index=4, call_id='a', name='f', reason='duplicate', length=2)
    """

    index: int
    call_id: str
    name: str
    reason: str
    length: int
    content: Any
    """The result as it was in its message."""

    def __repr__(self) -> str:
        """Show place and length, but no content."""
        return (
            f"Displaced(index={self.index}, call_id={self.call_id!r}, name={self.name!r}, "
            f"reason={self.reason!r}, length={self.length})"
        )

    def __str__(self) -> str:
        """Return a line for people, without the content."""
        who = visible(self.call_id or self.name)
        return f"displaced ({self.reason}): message {self.index}, {who}, {plural(self.length, 'character')}"


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """A call at the end that is left open because its result is still to come.

    >>> Pending(index=3, position=0, call_id="a", name="f").call_id
    'a'
    """

    index: int
    """The position of the message in the original history."""
    position: int
    """The number of the call in that message."""
    call_id: str
    """The id of the call in the output, which its result must carry."""
    name: str


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All findings on one history, in the order of its messages.

    >>> report = Report(wire="openai-chat", profile="openai-chat")
    >>> report.acceptable
    True
    >>> print(report)
    openai-chat, profile openai-chat: acceptable
    """

    wire: str
    profile: str
    findings: tuple[Finding, ...] = ()
    displaced: tuple[Displaced, ...] = ()

    @property
    def acceptable(self) -> bool:
        """Whether there are no findings."""
        return not self.findings

    @property
    def unresolved(self) -> tuple[Finding, ...]:
        """The findings that no operation repairs."""
        return tuple(finding for finding in self.findings if not finding.mended)

    def to_dict(self, *, content: bool = False) -> dict[str, Any]:
        """Return the report as plain data, with the content of displaced results only if `content` is set."""
        plain: dict[str, Any] = {
            "wire": self.wire,
            "profile": self.profile,
            "acceptable": self.acceptable,
            "findings": msgspec.to_builtins(self.findings),
        }
        fields = Displaced.__struct_fields__ if content else Displaced.__struct_fields__[:-1]
        plain["displaced"] = [{field: getattr(item, field) for field in fields} for item in self.displaced]
        return plain

    def to_json(self, *, content: bool = False) -> str:
        """Return the report as JSON text that is safe to print in a terminal."""
        return visible_json(self.to_dict(content=content))

    def __str__(self) -> str:
        """Return a table that a person can read."""
        head = f"{self.wire}, profile {self.profile}: "
        if not self.findings:
            return head + "acceptable"
        count = len(self.findings)
        lines = [head + ("1 finding" if count == 1 else f"{count} findings")]
        rows = [("#", "problem", "call", "rule", "repair")]
        rows += [
            (
                str(item.index),
                item.problem,
                visible(item.call_id)[:_CELL],
                item.rule,
                visible(item.done) or "NOT REPAIRED",
            )
            for item in self.findings
        ]
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        for row in rows:
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            lines.append("  ".join(["", *cells]).rstrip())
        broken = dict.fromkeys((item.rule, item.says, item.source) for item in self.findings if item.rule)
        lines += [f"  {rule}: {says}" + (f" [{source}]" if source else "") for rule, says, source in broken]
        lines += [f"  {item}" for item in self.displaced]
        return "\n".join(lines)


def visible_json(value: Any) -> str:
    r"""Return `value` as JSON without characters that a terminal would act on.

    >>> visible_json({"id": chr(0x9B)})
    '{"id":"\\u009b"}'
    """
    text = msgspec.json.encode(value, enc_hook=repr).decode()
    if text.isascii():
        return text
    import json  # noqa: PLC0415 - only what a terminal would act on needs it

    return "".join([letter if letter.isprintable() else json.dumps(letter)[1:-1] for letter in text])
