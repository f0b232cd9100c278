"""What each provider refuses, written from the providers' own rules and not from the code under test.

A validator returns what is wrong with a history, as a list of sentences.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from tests.shapes.notation import Outline
from tests.shapes.wires import read

Events = tuple[tuple[Any, ...], ...]
RESULTS = {"result", "failed"}


def _ids(events: Events, kinds: set[str]) -> list[str]:
    return [event[1] for event in events if event[0] in kinds]


def _object(arguments: Any) -> bool:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return False
    return isinstance(arguments, dict)


def chat(messages: Sequence[dict[str, Any]]) -> list[str]:
    """The results of a turn are the contiguous run right behind it."""
    wrong: list[str] = []
    open_: Counter[str] = Counter()
    for n, message in enumerate(messages):
        if message["role"] == "tool":
            id_ = message["tool_call_id"]
            if not open_[id_]:
                wrong.append(f"{n}: {id_!r} is not open in the turn before")
            open_[id_] -= 1
            continue
        if +open_:
            wrong.append(f"{n}: {dict(+open_)} had no response")
        calls = message.get("tool_calls") or []
        open_ = Counter(call["id"] for call in calls)
        wrong += [f"{n}: bad id {id_!r}" for id_ in open_ if not 1 <= len(id_) <= 40]
        wrong += [f"{n}: id {id_!r} twice" for id_, count in open_.items() if count > 1]
        wrong += [f"{n}: no name" for call in calls if not call["function"]["name"]]
        wrong += [f"{n}: arguments" for call in calls if not _object(call["function"]["arguments"])]
        if message["role"] == "assistant" and not calls and not message["content"]:
            wrong.append(f"{n}: nothing in it")
    return wrong + ([f"end: {dict(+open_)} had no response"] if +open_ else [])


def responses(items: Sequence[dict[str, Any]]) -> list[str]:
    """One output for each call, somewhere behind it."""
    wrong: list[str] = []
    seen: set[str] = set()
    answered: set[str] = set()
    for n, item in enumerate(items):
        id_ = item.get("call_id", "")
        if item.get("type") == "function_call":
            if not 1 <= len(id_) <= 64 or id_ in seen:
                wrong.append(f"{n}: bad or repeated call id {id_!r}")
            if not item["name"] or not _object(item["arguments"]):
                wrong.append(f"{n}: bad call")
            seen.add(id_)
        if item.get("type") == "function_call_output":
            if id_ not in seen or id_ in answered:
                wrong.append(f"{n}: no call, or a second output, for {id_!r}")
            answered.add(id_)
    return wrong + [f"no output for {id_!r}" for id_ in seen - answered]


def _turns(outline: Outline) -> Outline:
    """Neighbouring messages of the model are one turn."""
    turns: Outline = []
    for role, events in outline:
        if role == "assistant" and events and turns and turns[-1][0] == role:
            turns[-1] = (role, turns[-1][1] + events)
        else:
            turns.append((role, events))
    return turns


def _in_order(given: list[str], wanted: list[str]) -> bool:
    """A result may leave out its id."""
    return len(given) == len(wanted) and all(one in {"", other} for one, other in zip(given, wanted, strict=True))


def _blocks(
    wire: str, messages: Sequence[Any], *, alternate: bool, ids: str, unique: bool, in_order: bool = False
) -> list[str]:
    """All results of a turn come first in the next message, and nowhere else."""
    wrong: list[str] = []
    wanted: list[str] = []
    all_ids: Counter[str] = Counter()
    previous = ""
    outline = read(wire, messages) if alternate else _turns(read(wire, messages))
    for n, (role, events) in enumerate(outline):
        kinds = [event[0] for event in events]
        given = _ids(events, RESULTS)
        calls = _ids(events, {"call"})
        matched = _in_order(given, wanted) if in_order else Counter(given) == Counter(wanted)
        if not matched:
            wrong.append(f"{n}: results {given}, wanted {wanted}")
        if any(kind in RESULTS for kind in kinds[len(given) :]):
            wrong.append(f"{n}: results are not first")
        if not alternate and calls and "call" in kinds and kinds != sorted(kinds, key=lambda kind: kind == "call"):
            wrong.append(f"{n}: calls are not last")
        if alternate and role == previous:
            wrong.append(f"{n}: roles do not alternate")
        if not events or (wire != "gemini" and any(event[0] == "text" and not event[1].strip() for event in events)):
            wrong.append(f"{n}: empty")
        wrong += [f"{n}: bad id {id_!r}" for id_ in calls if not re.fullmatch(ids, id_)]
        wrong += [f"{n}: no name" for event in events if event[0] == "call" and not event[2]]
        wanted, previous = calls, role
        all_ids += Counter(calls)
    if wanted:
        wrong.append(f"end: no results for {wanted}")
    if unique:
        wrong += [f"id {id_!r} {count} times" for id_, count in all_ids.items() if count > 1]
    if alternate and messages and read(wire, messages)[0][0] != "user":
        wrong.append("0: the user is not first")
    return wrong


def anthropic(messages: Sequence[Any]) -> list[str]:
    wrong = _blocks("anthropic", messages, alternate=False, ids=r"[a-zA-Z0-9_-]+", unique=True)
    for n, message in enumerate(messages):
        blocks = message["content"] if isinstance(message["content"], list) else []
        for block in blocks:
            if block["type"] == "tool_use" and not isinstance(block["input"], dict):
                wrong.append(f"{n}: input")
            if block["type"] == "tool_result" and block.get("is_error") and not block.get("content"):
                wrong.append(f"{n}: an error without content")
    return wrong


def gemini(messages: Sequence[Any]) -> list[str]:
    """Results are matched by name and order."""
    wrong = _blocks("gemini", messages, alternate=True, ids=r"(?s).*", unique=False, in_order=True)
    names: list[str] = []
    for n, message in enumerate(messages):
        given = [part["functionResponse"]["name"] for part in message["parts"] if "functionResponse" in part]
        if given != names:
            wrong.append(f"{n}: results of {given}, wanted {names}")
        names = [part["functionCall"]["name"] for part in message["parts"] if "functionCall" in part]
    return wrong


def bedrock(messages: Sequence[Any]) -> list[str]:
    return _blocks("bedrock", messages, alternate=True, ids=r"[a-zA-Z0-9_-]{1,64}", unique=True)


VALIDATORS: dict[str, Callable[[Sequence[Any]], list[str]]] = {
    "openai-chat": chat,
    "openai-responses": responses,
    "anthropic": anthropic,
    "gemini": gemini,
    "bedrock": bedrock,
}
