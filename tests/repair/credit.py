"""Whose result is whose, read from a history as its provider reads it; shared by the attacks on repair."""

import json
import re
from collections.abc import Sequence
from typing import Any

import suture
from tests.shapes.notation import Call, Step, call
from tests.shapes.wires import BLOCK_WIRES, Form, arguments_of, read, render

FOREIGN = ("openai-chat", "openai-responses", "anthropic", "gemini", "bedrock")
NATIVE = ("message", "agentic")
WIRES = (*FOREIGN, *NATIVE)

INTERRUPTED = "was canceled - another message came in before it could be completed."
UNKNOWN = "has no recorded result - it may or may not have run. Check before running it again."
MALFORMED = "was not run - its arguments were malformed or cut off."
REJECTED = "was not run - it was rejected."
STOPPED = "was stopped before it finished - the run was canceled."


def told(ending: str, id_: str, name: str = "search") -> str:
    """Return the English text of a placeholder."""
    return f"Tool call {name} with id {id_} {ending}" if id_ else f"Tool call {name} {ending}"


class Minted:
    """The English text for a call that came without an id, on a wire where it was given one."""

    def __init__(self, ending: str, name: str = "search") -> None:
        self.pattern = re.compile(rf"Tool call {name}( with id [\w-]+)? {re.escape(ending)}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and self.pattern.fullmatch(other) is not None

    def __hash__(self) -> int:
        return hash(self.pattern)

    def __repr__(self) -> str:
        return f"Minted({self.pattern.pattern!r})"


def told_without_id(wire: str, ending: str, name: str = "search") -> Any:
    """Return the English text for a call without an id; where the provider demands one it may name the new one."""
    return told(ending, "", name) if wire in (*NATIVE, "gemini") else Minted(ending, name)


def asks(id_: Any, mark: str, name: str = "search") -> Call:
    """Return a call that is known by its argument, whatever becomes of its id."""
    return call(id_, name, {"mark": mark})


def history(wire: str, *steps: Step, bundle: bool = False) -> list[Any]:
    """Return the steps as a history of `wire`, where an empty id on Gemini is none at all."""
    messages = render(Form(wire, bundle=bundle and wire in BLOCK_WIRES), steps).messages
    return [_without_empty_ids(message) for message in messages] if wire == "gemini" else messages


def _without_empty_ids(content: dict[str, Any]) -> dict[str, Any]:
    parts = [
        {kind: {key: held for key, held in value.items() if key != "id" or held} if isinstance(value, dict) else value}
        for part in content["parts"]
        for kind, value in part.items()
    ]
    return {**content, "parts": parts}


def marks(wire: str, messages: Sequence[Any]) -> list[str]:
    """Return what marks each call, in order."""
    values = arguments_of(wire, messages)
    return [(json.loads(value) if isinstance(value, str) else value).get("mark", "") for value in values]


def answers(wire: str, messages: Sequence[Any]) -> list[tuple[str, str | None]]:
    """Return each call's mark, in order, with the text of the result that the provider takes for its own."""
    names = iter(marks(wire, messages))
    calls: list[list[Any]] = []  # mark, id, text
    start = 0  # where the calls of the turn begin; on Responses an output may stand anywhere behind its call
    after_model = False
    for role, events in read(wire, messages):
        model = role == "assistant"
        for event in events:
            if event[0] == "call":
                if not after_model and wire != "openai-responses":
                    start = len(calls)
                after_model = True
                calls.append([next(names), event[1], None])
            elif event[0] in {"result", "failed"}:
                open_ = _named(wire, [each for each in calls[start:] if each[2] is None], event[1])
                assert open_, f"a result of {event[1]!r} answers no call of its turn: {event[2]!r}"
                open_[0][2] = event[2]
        after_model = model
    return [(mark, text) for mark, _, text in calls]


def _named(wire: str, waiting: list[list[Any]], id_: str) -> list[list[Any]]:
    """Return the calls that a result of this id may answer, best first.

    Gemini goes by the order, and native messages are fitted only when they are sent: there another id is no fault.
    """
    exact = [each for each in waiting if each[1] == id_]
    halves = [each for each in waiting if id_ in each[1].split("|")] if wire in NATIVE else []
    return exact or halves or (waiting if wire in (*NATIVE, "gemini") else [])


def texts(wire: str, messages: Sequence[Any]) -> list[str]:
    """Return all texts that are no results, in order."""
    return [event[1] for _, events in read(wire, messages) for event in events if event[0] == "text"]


def orphans(wire: str, messages: Sequence[Any]) -> list[str]:
    """Return the texts that keep a result whose call is not there."""
    return [text for text in texts(wire, messages) if "not an instruction" in text]


def sound(wire: str, messages: Sequence[Any], **options: Any) -> suture.Repaired[Any]:
    """Repair, and assert what holds for every repair: nothing left over, acceptable, done once and for all."""
    before = repr(messages)
    fixed = suture.repair(messages, wire=wire, **options)
    profile = {"profile": options["profile"]} if "profile" in options else {}
    assert repr(messages) == before, "the input was changed"
    assert fixed.unresolved == ()
    assert suture.check(fixed.messages, wire=wire, **profile).acceptable
    again = suture.repair(fixed.messages, wire=wire, **options)
    assert again.messages is fixed.messages, f"repaired again: {again.report}"
    assert fixed.changed == (fixed.messages is not messages)
    return fixed


def untouched(wire: str, messages: Sequence[Any], **options: Any) -> None:
    """Assert that there is nothing to repair: the same list comes back."""
    fixed = suture.repair(messages, wire=wire, **options)
    assert fixed.messages is messages, str(fixed.report)
    assert not fixed.changed
    assert fixed.report.acceptable, str(fixed.report)
    assert fixed.report.displaced == ()
