"""Generated histories: parallel calls, ids that come back, results out of order or missing, media, signed turns."""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import strategies as st

from tests.histories import Step
from tests.reduction.planning import Letters
from tests.reduction.rounds import WIRES, Content

everywhere = pytest.mark.parametrize("wire", WIRES)

SIZES = (0, 3, 60, 100, 140, 300, 1_500)
ODDITIES = ("", "", "", "<persisted-output>", "\x00\n", "工具", "\r\n\t")
REUSED = ("a", "b", "A", "", "fn.read:0", "../../etc/x", "x" * 70, "nine9nine")
NAMES = ("search", "fetch", "keep")
"""Of these, `keep` is excluded in half of the drawn settings."""


@dataclass
class _Numbers:
    """Counts what was drawn, so that every text and every fresh id is nobody else's."""

    count: int = 0

    def next(self) -> int:
        self.count += 1
        return self.count


@st.composite
def _texts(draw: st.DrawFn, numbers: _Numbers) -> str:
    size = draw(st.sampled_from(SIZES))
    label = f"{draw(st.sampled_from(ODDITIES))}output {numbers.next()} of a tool; "
    return (label * (size // len(label) + 1))[:size] if size > 60 else label[:size]


@st.composite
def _contents(draw: st.DrawFn, numbers: _Numbers) -> Content:
    if draw(st.integers(0, 3)):
        return draw(_texts(numbers))
    kinds = draw(st.lists(st.sampled_from(["text", "image", "unknown"]), max_size=3))
    values: dict[str, Any] = {"image": "iVBORw0KGgo=", "unknown": 7}
    return [(kind, draw(_texts(numbers)) if kind == "text" else values[kind]) for kind in kinds]


@st.composite
def _rounds(draw: st.DrawFn, numbers: _Numbers, *, clean: bool) -> list[Step]:
    """Return a turn with calls and what came of them. A clean one is whole and in order."""
    fresh = clean or draw(st.booleans())
    ids = [
        f"call{numbers.next():05d}" if fresh else draw(st.sampled_from(REUSED)) for _ in range(draw(st.integers(1, 3)))
    ]
    arguments = "{}" if clean else draw(st.sampled_from(["{}", '{"q": 1}', '{"q": ', "[]"]))
    calls = [(call_id, draw(st.sampled_from(NAMES)), arguments) for call_id in ids]
    turn: Step = (draw(st.sampled_from(["turn", "turn", "signed"])), calls)
    results = [(call_id, name, draw(_contents(numbers))) for call_id, name, _ in calls]
    if clean:
        return [turn, ("bundle", results)]
    results = draw(st.permutations(results))[: draw(st.integers(0, len(results)))]
    match draw(st.sampled_from(["together", "apart", "interrupted", "with text", "failed"])):
        case "together" if results:
            return [turn, ("bundle", results)]
        case "interrupted":
            return [turn, *[("bundle", [result]) for result in results[:1]], ("user", "wait"), *_apart(results[1:])]
        case "with text" if results and all(isinstance(content, str) for _, _, content in results):
            return [turn, ("mixed", results, "and hurry")]
        case "failed" if results and isinstance(results[0][2], str) and results[0][2]:
            return [turn, ("failed", *results[0]), *_apart(results[1:])]
    return [turn, *_apart(results)]


def _apart(results: Any) -> list[Step]:
    return [("bundle", [result]) for result in results]


@st.composite
def histories(draw: st.DrawFn, *, clean: bool = False, most: int = 5) -> list[Step]:
    """Return a history; a clean one is acceptable to providers that do not ask for more than order."""
    numbers = _Numbers()
    steps: list[Step] = [("user", "go")]
    for _ in range(draw(st.integers(0, most))):
        steps += draw(_rounds(numbers, clean=clean))
        match draw(st.integers(0, 5)):
            case 0:
                steps += [("say", "well"), ("user", "again")]
            case 1 if not clean:
                steps += [("user", "hello"), ("user", "again")]
            case 2 if not clean:
                steps += [("think", "so"), ("user", "and?")]
            case 3 if not clean:
                steps.append(("result", draw(st.sampled_from(REUSED)), "search", f"stray {numbers.next()} " * 20))
    return [*steps, ("say", "done"), ("user", "and now?")] if clean else steps


def _whole(messages: Any, _tools: Any) -> int:
    counter = Letters()
    return sum(counter.count(message) for message in messages)


@st.composite
def choices(draw: st.DrawFn, *, truncation: bool = True) -> dict[str, Any]:
    """Return settings under which most histories are cleared."""
    threshold = draw(st.sampled_from([0, 0, 0, 100, 400]))
    chosen: dict[str, Any] = {
        "max_tokens_for_clear": threshold,
        "clear_retention_suffix_limit": draw(st.integers(0, 3)),
        "clear_exclude_tools": draw(st.sampled_from([[], ["keep"]])),
        "clear_at_least_tokens": draw(st.sampled_from([0, 0, 0, 50])),
        "clear_down_to_tokens": draw(st.sampled_from([None, None, threshold // 2])),
        "offload": draw(st.sampled_from([True, True, True, False])),
        "language": draw(st.sampled_from(["en", "zh"])),
        "token_counter": draw(st.sampled_from([None, None, Letters(), _whole])),
    }
    if truncation and draw(st.booleans()):
        chosen["max_length_for_trunc"] = draw(st.sampled_from([10, 200, 900]))
    else:
        chosen["skip_truncation"] = True
    return chosen
