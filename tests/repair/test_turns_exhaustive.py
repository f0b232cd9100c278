"""Every history of up to four messages behind a user's, over twelve kinds of message, on four forms of three wires."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product, takewhile
from typing import Any

import pytest

import suture

KINDS = ("U", "M", "M0", "A[a]", "A[b]", "A[a,b]", "A[a,a]", "A[-]", "T[a]", "T[b]", "T[-]", "T[z]")


@dataclass(frozen=True)
class Step:
    """A message in neutral form; a call is known by its mark, a result by its text. `M0` says nothing."""

    kind: str  # U, M, A or T
    ids: tuple[str, ...]
    text: str
    marks: tuple[str, ...] = ()


def steps_of(kinds: Sequence[str]) -> list[Step]:
    made = [Step("U", (), "u")]
    for place, kind in enumerate(kinds, 1):
        ids = tuple(id_.replace("-", "") for id_ in re.findall(r"[abz-]", kind[1:]))
        marks = tuple(f"c{place}{number}" for number in range(len(ids))) if kind[0] == "A" else ()
        made.append(Step(kind[0], ids, "" if kind == "M0" else f"t{place}t", marks))
    return made


# --- rendering and reading --------------------------------------------------------------------

Atom = tuple[str, str, str]  # (user | model, text, what) | (call, id, mark) | (result, id, text)


def _chat(step: Step) -> dict[str, Any]:
    if step.kind == "T":
        return {"role": "tool", "tool_call_id": step.ids[0], "content": step.text}
    if step.kind != "A":
        return {"role": "user" if step.kind == "U" else "assistant", "content": step.text}
    calls = [
        {"id": id_, "type": "function", "function": {"name": "f", "arguments": f'{{"mark":"{mark}"}}'}}
        for id_, mark in zip(step.ids, step.marks, strict=True)
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _chat_atoms(message: dict[str, Any]) -> Iterator[Atom]:
    if message["role"] == "tool":
        yield "result", message["tool_call_id"], message["content"]
        return
    if message.get("content"):
        yield "user" if message["role"] == "user" else "model", "text", message["content"]
    for call in message.get("tool_calls") or ():
        yield "call", call["id"], json.loads(call["function"]["arguments"])["mark"]


def _anthropic(step: Step) -> dict[str, Any]:
    if step.kind == "T":
        return {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": step.ids[0], "content": step.text}],
        }
    if step.kind != "A":
        return {"role": "user" if step.kind == "U" else "assistant", "content": step.text}
    calls = [
        {"type": "tool_use", "id": id_, "name": "f", "input": {"mark": mark}}
        for id_, mark in zip(step.ids, step.marks, strict=True)
    ]
    return {"role": "assistant", "content": calls}


def _anthropic_atoms(message: dict[str, Any]) -> Iterator[Atom]:
    who = "user" if message["role"] == "user" else "model"
    content = message["content"]
    blocks: list[dict[str, Any]] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for block in blocks:
        match block["type"]:
            case "text":
                yield who, "text", block["text"]
            case "tool_use":
                yield "call", block["id"], block["input"]["mark"]
            case _:
                yield "result", block["tool_use_id"], block["content"]


def _gemini(step: Step) -> dict[str, Any]:
    """With ids, where a call has one; all tools are called f."""
    return _content(step, [({"id": id_} if id_ else {}) | {"name": "f"} for id_ in step.ids])


def _named(step: Step) -> dict[str, Any]:
    """Without any id, as Google's own service records it; the name tells calls apart."""
    return _content(step, [{"name": id_ or "f"} for id_ in step.ids])


def _content(step: Step, heads: list[dict[str, str]]) -> dict[str, Any]:
    if step.kind == "T":
        return {"role": "user", "parts": [{"functionResponse": {**heads[0], "response": {"result": step.text}}}]}
    if step.kind != "A":
        return {"role": "user" if step.kind == "U" else "model", "parts": [{"text": step.text}]}
    calls = [{**head, "args": {"mark": mark}} for head, mark in zip(heads, step.marks, strict=True)]
    return {"role": "model", "parts": [{"functionCall": call} for call in calls]}


def _gemini_atoms(content: dict[str, Any]) -> Iterator[Atom]:
    for part in content["parts"]:
        if "functionCall" in part:
            yield "call", part["functionCall"].get("id", ""), part["functionCall"]["args"]["mark"]
        elif "functionResponse" in part:
            (text,) = part["functionResponse"]["response"].values()
            yield "result", part["functionResponse"].get("id", ""), text
        else:
            yield "user" if content["role"] == "user" else "model", "text", part["text"]


# --- what each provider accepts, and whom it takes a result for ---------------------------------

Credit = dict[str, str]  # mark of a call → text of its result


def chat_verdict(messages: Sequence[dict[str, Any]]) -> tuple[str, Credit]:
    """Return why Chat Completions refuses `messages`, or nothing, and whose result is whose."""
    credit: Credit = {}
    open_: dict[str, str] = {}
    for number, message in enumerate(messages):
        atoms = list(_chat_atoms(message))
        for kind, id_, text in atoms:
            if kind == "result":
                if id_ not in open_:
                    return f"{number}: {id_!r} is not open", credit
                credit[open_.pop(id_)] = text
        if message["role"] == "tool":
            continue
        if open_:
            return f"{number}: {open_} has no result", credit
        calls = [(id_, mark) for kind, id_, mark in atoms if kind == "call"]
        open_ = dict(calls)
        if len(open_) != len(calls) or any(not 0 < len(id_) <= 40 for id_ in open_):
            return f"{number}: ids {calls}", credit
        if not atoms:
            return f"{number}: nothing in it", credit
    return (f"end: {open_} has no result" if open_ else ""), credit


def _runs(messages: Sequence[dict[str, Any]], atoms: Callable[[Any], Iterator[Atom]]) -> list[tuple[str, list[Atom]]]:
    runs: list[tuple[str, list[Atom]]] = []
    for message in messages:
        if runs and runs[-1][0] == message["role"]:
            runs[-1][1].extend(atoms(message))
        else:
            runs.append((message["role"], list(atoms(message))))
    return runs


def anthropic_verdict(messages: Sequence[dict[str, Any]]) -> tuple[str, Credit]:
    """As for Chat; the Messages API joins neighbours of one role before it looks."""
    credit: Credit = {}
    seen: set[str] = set()
    open_: dict[str, str] = {}
    if any(not list(_anthropic_atoms(message)) for message in messages):
        return "an empty message", credit
    for role, atoms in _runs(messages, _anthropic_atoms):
        kinds = [kind for kind, _, _ in atoms]
        results = [(id_, text) for kind, id_, text in atoms if kind == "result"]
        calls = [(id_, mark) for kind, id_, mark in atoms if kind == "call"]
        if (results and role != "user") or (calls and role != "assistant"):
            return f"{kinds} of {role}", credit
        if Counter(id_ for id_, _ in results) != Counter(open_.keys()) or "result" in kinds[len(results) :]:
            return f"results {results} for {open_}", credit
        if "call" in kinds[: len(kinds) - len(calls)]:
            return f"calls are not last: {kinds}", credit
        credit |= {open_[id_]: text for id_, text in results}
        open_ = dict(calls)
        if len(open_) != len(calls) or seen & set(open_):
            return f"an id twice: {calls}", credit
        if any(not re.fullmatch(r"[a-zA-Z0-9_-]+", id_) for id_ in open_):
            return f"ids {calls}", credit
        seen |= set(open_)
    return (f"end: {open_} has no result" if open_ else ""), credit


def gemini_verdict(messages: Sequence[dict[str, Any]]) -> tuple[str, Credit]:
    """As for Chat; Gemini wants roles in turn, and goes by number and order, where both have ids by these."""
    credit: Credit = {}
    open_: list[tuple[str, str]] = []
    previous = "model"
    for number, content in enumerate(messages):
        atoms = list(_gemini_atoms(content))
        kinds = [kind for kind, _, _ in atoms]
        results = [(id_, text) for kind, id_, text in atoms if kind == "result"]
        if content["role"] == previous or not atoms:
            return f"{number}: roles do not alternate, or nothing is in it", credit
        if len(results) != len(open_) or "result" in kinds[len(results) :]:
            return f"{number}: results {results} for {open_}", credit
        names = [part["functionResponse"]["name"] for part in content["parts"] if "functionResponse" in part]
        before = messages[number - 1]["parts"] if number else []
        if names != [part["functionCall"]["name"] for part in before if "functionCall" in part]:
            return f"{number}: names {names}", credit
        credit |= {mark: text for (_, mark), (_, text) in zip(open_, results, strict=True)}
        open_ = [(id_, mark) for kind, id_, mark in atoms if kind == "call"]
        previous = content["role"]
    return (f"end: {open_} has no result" if open_ else ""), credit


@dataclass(frozen=True)
class Form:
    wire: str
    render: Callable[[Step], dict[str, Any]]
    atoms: Callable[[dict[str, Any]], Iterator[Atom]]
    verdict: Callable[[Sequence[dict[str, Any]]], tuple[str, Credit]]


FORMS = {
    "openai-chat": Form("openai-chat", _chat, _chat_atoms, chat_verdict),
    "anthropic": Form("anthropic", _anthropic, _anthropic_atoms, anthropic_verdict),
    "gemini": Form("gemini", _gemini, _gemini_atoms, gemini_verdict),
    "gemini without ids": Form("gemini", _named, _gemini_atoms, gemini_verdict),
}


# --- what must hold ---------------------------------------------------------------------------


def wrong_credit(form: str, steps: Sequence[Step], credit: Credit) -> str:
    """Return which result was given to another call than its own, where ids tell; or nothing."""
    calls = {
        mark: (place, id_) for place, step in enumerate(steps) for id_, mark in zip(step.ids, step.marks, strict=False)
    }
    made = Counter(id_ for _, id_ in calls.values())
    if any(count > 1 for count in made.values()):
        return ""
    results = {step.text: (place, step.ids[0]) for place, step in enumerate(steps) if step.kind == "T"}
    for mark, text in credit.items():
        if text not in results:
            continue
        (called, own), (place, id_) = calls[mark], results[text]
        before = [other for other, name in calls.values() if name == id_ and other < place]
        if own != id_ and ((before and id_) or form == "gemini without ids"):
            return f"{text} of {id_!r} was given to the call {mark} of {own!r}"
        if not id_ and form != "gemini without ids" and called > place and before:
            return f"{text} without an id went ahead to {mark}"
    return ""


def out_of_order(steps: Sequence[Step], credit: Credit) -> list[tuple[str, str]]:
    """Return the calls of the first turn that did not get the result of their place.

    This is judged where only calls without ids are in that turn and only results without ids directly behind it.
    """
    first = next((place for place, step in enumerate(steps) if step.kind in "AT"), len(steps))
    run = list(takewhile(lambda step: step.kind in "AM", steps[first:]))
    behind = list(takewhile(lambda step: step.kind == "T", steps[first + len(run) :]))
    if any(id_ for step in (*run, *behind) for id_ in step.ids):
        return []
    pairs = zip((mark for step in run for mark in step.marks), (step.text for step in behind), strict=False)
    return [(mark, text) for mark, text in pairs if credit.get(mark) != text]


def flat(form: Form, messages: Sequence[Any]) -> list[tuple[str, Atom]]:
    return [(message["role"], atom) for message in messages for atom in form.atoms(message)]


def grow(form: Form, messages: Sequence[Any]) -> suture.Repairer[Any]:
    grown = suture.Repairer[Any](wire=form.wire)
    for message in messages:
        grown.extend([message])
    return grown


def complaint(name: str, kinds: Sequence[str]) -> str:
    """Return the first thing that is wrong with the repair of this history, or nothing."""
    form = FORMS[name]
    steps = steps_of(kinds)
    given = [form.render(step) for step in steps]
    before = repr(given)
    fixed = suture.repair(given, wire=form.wire)
    said = flat(form, fixed.messages)
    told = [atom[2] for _, atom in said]
    refusal, credit = form.verdict(fixed.messages)
    shown = "\n".join(told) + repr([each.content for each in fixed.report.displaced])
    marks = [mark for step in steps for mark in step.marks]
    grown = grow(form, given)
    claims: dict[str, Callable[[], Any]] = {
        "the input changed": lambda: repr(given) != before,
        "refused": lambda: refusal,
        "a finding is left": lambda: fixed.unresolved or not suture.check(fixed.messages, wire=form.wire).acceptable,
        "a call was lost, moved or made up": lambda: [text for _, (kind, _, text) in said if kind == "call"] != marks,
        "a text was lost": lambda: [
            step.text for step in steps if step.kind in "UM" and step.text and step.text not in told
        ],
        "a result was lost": lambda: [step.text for step in steps if step.kind == "T" and step.text not in shown],
        "a result was shown twice": lambda: [
            s.text for s in steps if s.kind == "T" and "\n".join(told).count(s.text) > 1
        ],
        "given to a wrong call": lambda: wrong_credit(name, steps, credit),
        "given to the call of another place": lambda: out_of_order(steps, credit),
        "not idempotent": lambda: suture.repair(fixed.messages, wire=form.wire).messages is not fixed.messages,
        "changed, yet the same": lambda: fixed.changed != (fixed.messages is not given),
        "grown one by one it differs": lambda: (
            list(grown.messages) != list(fixed.messages) or grown.report != fixed.report
        ),
        "the prefix changed": lambda: kinds[-1] in "UM" and _prefix_changed(form, given, said),
    }
    return next((f"{claim}: {why}" for claim, holds in claims.items() if (why := holds())), "")


def _prefix_changed(form: Form, given: list[Any], said: list[Any]) -> bool:
    more = [form.render(Step("U", (), "more")), form.render(Step("M", (), "and more"))]
    return flat(form, suture.repair([*given, *more], wire=form.wire).messages)[: len(said)] != said


def sweep(form: str, length: int) -> tuple[int, dict[str, list[str]]]:
    """Return how many histories there are, and for each complaint the histories that have it."""
    wrong: dict[str, list[str]] = {}
    count = 0
    for kinds in product(KINDS, repeat=length):
        count += 1
        if why := complaint(form, kinds):
            wrong.setdefault(why.partition(":")[0], []).append(f"{' '.join(kinds)} ({why})")
    return count, wrong


def judge(form: str, length: int) -> int:
    count, wrong = sweep(form, length)
    assert not wrong, "; ".join(f"{len(those)} x {those[0]}" for those in wrong.values())
    return count


@pytest.mark.parametrize("form", FORMS)
def test_every_short_history_comes_out_whole(form: str) -> None:
    """Of three messages where results have no ids, which is the hardest to settle; of two elsewhere."""
    longest = 3 if form == "gemini without ids" else 2
    assert sum(judge(form, length) for length in range(1, longest + 1)) == sum(
        len(KINDS) ** length for length in range(1, longest + 1)
    )


@pytest.mark.soak
@pytest.mark.parametrize("length", [3, 4])
@pytest.mark.parametrize("form", FORMS)
def test_every_longer_history_comes_out_whole(form: str, length: int) -> None:
    assert judge(form, length) == len(KINDS) ** length
