"""What holds for every history that is reduced, on every wire, whatever the settings."""

import copy
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import suture
from suture import reduction
from suture.messages import Message, TextPart, ToolCall
from suture.profiles import PROFILES, get_profile
from suture.reduction import Plan
from tests.histories import Step
from tests.reduction.drawing import choices, everywhere, histories
from tests.reduction.planning import planned, saved
from tests.reduction.rounds import CLEARED, WIRES, Read, long, one_round, read, saved_at, write

PAIRS = [(wire, profile) for profile in PROFILES for wire in WIRES if get_profile(profile).speaks_of(wire)]
NAMED = re.compile(r"(?:saved to|保存到|保存至): ([^\n]+)\n")


def problems(wire: str, profile: str, messages: Any) -> set[str]:
    return {finding.problem for finding in suture.check(list(messages), wire=wire, profile=profile).findings}


def new_problems(wire: str, before: Any, after: Any) -> dict[str, set[str]]:
    """Return what any profile that speaks of the wire finds wrong afterwards and did not find before."""
    profiles = [profile for spoken, profile in PAIRS if spoken == wire]
    found = {profile: problems(wire, profile, after) - problems(wire, profile, before) for profile in profiles}
    return {profile: some for profile, some in found.items() if some}


@everywhere
@given(history=histories(clean=True) | histories(), settings=choices())
def test_what_a_provider_accepted_it_accepts_afterwards(wire: str, history: list[Step], settings: dict[str, Any]):
    """Every one that speaks of the wire; and of a history that it would have refused, it finds nothing new to say."""
    messages = write(wire, history)
    plan = planned(wire, messages, **settings)
    assert new_problems(wire, messages, plan.messages) == {}


@everywhere
@given(history=histories(clean=True), settings=choices(), removed=st.lists(st.booleans(), min_size=5, max_size=5))
def test_a_rewriter_that_removes_rounds_leaves_what_a_provider_accepts(
    wire: str, history: list[Step], settings: dict[str, Any], removed: list[bool]
):
    """Whole rounds go: no half of one, and nothing that belongs to it, is left behind."""
    offered: list[Any] = []

    def rewriter(turn: Any, results: Any) -> list[Any]:
        offered.append(turn)
        kept = [*turn, *results] if isinstance(turn, list) else [turn, *results]
        return [] if removed[len(offered) % 5] else kept

    messages = write(wire, history)
    plan = planned(wire, messages, **settings, clear_message_rewriter=rewriter)
    assert new_problems(wire, messages, plan.messages) == {}


@pytest.mark.parametrize(("wire", "profile"), PAIRS, ids=[f"{wire}-{profile}" for wire, profile in PAIRS])
def test_the_properties_above_are_not_about_nothing(wire: str, profile: str):
    """Each provider accepts a history that is then reduced."""
    ids = ("functions.search:0", "functions.search:1") if profile == "kimi" else ("nine9nine", "ten9tenth")
    rounds = [step for call_id in ids for step in one_round(call_id)]
    thoughtful = [("signed", step[1]) if step[0] == "turn" else step for step in rounds]
    # Some want the thoughts behind a turn with calls, and behind what was said.
    spoken = [("think", "done")] if profile in {"kimi", "deepseek"} else [("say", "done")]
    steps = rounds if profile == "groq" else thoughtful  # it has no place for thoughts
    messages = write(wire, [("user", "go"), *steps, *spoken, ("user", "so?")])
    assert problems(wire, profile, messages) == set()
    plan = planned(wire, messages)
    assert plan.changed
    assert problems(wire, profile, plan.messages) == set()


def held(thing: Any) -> Iterator[Any]:
    """Give all values in plain data."""
    if isinstance(thing, dict):
        for value in thing.values():
            yield from held(value)
    elif isinstance(thing, list):
        for value in thing:
            yield from held(value)
    else:
        yield thing


def same_json(one: Any, other: str) -> bool:
    try:
        return json.loads(one) == json.loads(other)
    except (TypeError, ValueError):
        return False


def check_kept(wire: str, before: Read, after: Read, files: dict[str, Any], *, offload: bool) -> set[str]:
    """Fail unless each text that left this result is in the file that stands in its place; return the files' paths."""
    assert after.others == before.others
    assert len(after.texts) == len(before.texts)
    paths: set[str] = set()
    for was, now in zip(before.texts, after.texts, strict=True):
        if not was or was == now:
            continue
        if not offload:
            assert now in {CLEARED, "[工具输出结果已清理]"}
            continue
        (path,) = NAMED.findall(now)
        paths.add(path)
        if len(before.texts) == 1 and not before.others:
            # Gemini's answer is a mapping; where that holds several values its text is JSON.
            assert files[path] == was or (wire == "gemini" and same_json(files[path], was))
        else:
            found = list(held(json.loads(files[path])))
            assert was in found or (wire == "gemini" and any(same_json(text, was) for text in found))
    return paths


def named_in(plan: Plan[Any], wire: str) -> list[str]:
    return [path for result in read(wire, plan.messages) for text in result.texts for path in NAMED.findall(text)]


@everywhere
@given(history=histories(), settings=choices())
def test_nothing_is_lost(wire: str, history: list[Step], settings: dict[str, Any]):
    """Each text that left the history is under the path that stands in its place; nothing else is saved."""
    messages = write(wire, history)
    plan = planned(wire, messages, **settings)
    files = saved(plan)
    assert len({path.casefold() for path in files}) == len(files)
    before, after = read(wire, messages), read(wire, plan.messages)
    assert [result.id for result in after] == [result.id for result in before]
    paths = [check_kept(wire, *pair, files, offload=settings["offload"]) for pair in zip(before, after, strict=True)]
    assert sorted(path for some in paths for path in some) == sorted(files)
    if not settings["offload"]:
        assert files == {}


@everywhere
@given(history=histories(), settings=choices())
def test_a_reduced_history_is_not_reduced_again(wire: str, history: list[Step], settings: dict[str, Any]):
    """With the ledger of the first plan, and without it."""
    plan = planned(wire, write(wire, history), **settings)
    for kept in ({"ledger": plan.ledger}, {}):
        again = planned(wire, plan.messages, **settings, **kept)
        assert again.messages is plan.messages
        assert (again.changed, again.changes, again.saves) == (False, (), ())


def test_a_stray_result_does_not_bring_back_a_round_whose_calls_share_an_id():
    """Once the results are cleared, the output that the stray one had displaced is the call's again."""
    outputs = [f"output {number} of a tool; " * 5 for number in (1, 2)]
    turn = ("turn", [("b", "search", "{}"), ("b", "search", "{}")])
    answers = ("bundle", [("b", "search", outputs[0]), ("b", "search", outputs[1])])
    history: list[Step] = [("user", "go"), turn, answers, ("user", "again"), ("result", "b", "search", "stray " * 20)]
    settings = {"max_tokens_for_clear": 0, "clear_retention_suffix_limit": 0, "offload": False}
    plan = planned("openai-responses", write("openai-responses", history), **settings)
    assert plan.changed
    assert planned("openai-responses", plan.messages, ledger=plan.ledger, **settings).messages is plan.messages


@everywhere
@pytest.mark.parametrize(
    "settings",
    [{"max_length_for_trunc": 10}, {"max_length_for_trunc": 900, "clear_exclude_tools": ["search"]}],
    ids=["cleared", "truncated"],
)
def test_results_with_images_are_known_again_when_the_history_has_grown(wire: str, settings: dict[str, Any]):
    """Without a ledger, and with one id for all calls, so that the path that is free for it next is shorter."""
    tagged = [f"<persisted-output>{word}; " * 60 for word in ("one", "two")]  # longer in a notice, where it is escaped
    shown = [[], *([("text", text), ("image", "iVBORw0KGgo=")] for text in tagged)]
    calls = ("turn", [("a", "search", "{}") for _ in shown])
    results = ("bundle", [("a", "search", content) for content in shown])
    settings = {**settings, "offload": True, "max_tokens_for_clear": 0, "clear_retention_suffix_limit": 0}
    plan = planned(wire, write(wire, [("user", "go"), calls, results, ("user", "again")]), **settings)
    following = planned(wire, [*plan.messages, *write(wire, one_round("new"))], **settings)
    assert len(saved(plan)) > 0
    assert [now for now, was in zip(following.messages, plan.messages, strict=False) if now is not was] == []
    assert saved(plan).keys() & saved(following).keys() == set()


def cleared_places(wire: str, messages: Any) -> list[int]:
    """Return which messages hold what stands in place of a cleared result."""
    told = (CLEARED, "[工具输出结果已清理]", saved_at("")[:40], "<persisted-output>工具结果已保存至")
    found = [(place, read(wire, [message])) for place, message in enumerate(messages)]
    return [place for place, results in found if any(text.startswith(told) for one in results for text in one.texts)]


@everywhere
@given(history=histories(), settings=choices(), rounds=st.integers(1, 4), ledger=st.booleans())
def test_what_was_cleared_stays_the_same_bytes_however_the_history_goes_on(
    wire: str, history: list[Step], settings: dict[str, Any], rounds: int, ledger: bool
):
    """Prompt caches depend on it. And no file is ever written a second time."""
    messages = write(wire, history)
    plan = planned(wire, messages, **settings)
    done = cleared_places(wire, plan.messages)
    files, kept = saved(plan), plan.ledger
    for number in range(rounds):
        grown = [*plan.messages, *write(wire, one_round(f"new{number}"))]
        following = planned(wire, grown, **settings, **({"ledger": kept} if ledger else {}))
        for place in done:
            assert following.messages[place] is plan.messages[place]
        assert not set(files) & set(saved(following))
        files |= saved(following)
        done = cleared_places(wire, following.messages)
        plan, kept = following, following.ledger


@everywhere
@given(history=histories(), settings=choices())
def test_the_input_is_never_changed(wire: str, history: list[Step], settings: dict[str, Any]):
    """What needs no change is the same object, and a history that needs none the same list."""
    messages = write(wire, history)
    before, objects = copy.deepcopy(messages), list(messages)
    plan = planned(wire, messages, **settings)
    assert messages == before
    assert all(mine is theirs for mine, theirs in zip(messages, objects, strict=True))
    assert len(plan.messages) == len(messages)
    assert plan.changed == (plan.messages is not messages)
    for mine, theirs in zip(plan.messages, messages, strict=True):
        assert mine is theirs or mine != theirs


@everywhere
@given(history=histories(), settings=choices())
def test_a_plan_is_the_same_each_time_and_can_be_told_as_json(wire: str, history: list[Step], settings: dict[str, Any]):
    messages = write(wire, history)
    plan, again = (planned(wire, messages, **settings) for _ in range(2))
    assert list(plan.messages) == list(again.messages)
    assert [(save.path, save.content) for save in plan.saves] == [(save.path, save.content) for save in again.saves]
    assert plan.to_dict() == again.to_dict()
    assert json.loads(plan.to_json()) == json.loads(json.dumps(plan.to_dict()))
    told = str(plan)
    assert [letter for letter in told if letter != "\n" and not letter.isprintable()] == []
    assert "of a tool; output" not in told + str(plan.to_dict())
    if any("of a tool; output" in str(save.content) for save in plan.saves):
        assert "of a tool; output" in str(plan.to_dict(content=True))


def test_the_properties_above_would_notice_a_text_that_is_lost():
    """The guard bites: another text in the file, none at all, or a result that names no file."""
    before, after = Read("a", (long("a"),)), Read("a", (saved_at("/r/clear/a"),))
    assert check_kept("message", before, after, {"/r/clear/a": long("a")}, offload=True) == {"/r/clear/a"}
    with pytest.raises(AssertionError):
        check_kept("message", before, after, {"/r/clear/a": long("b")}, offload=True)
    with pytest.raises(KeyError):
        check_kept("message", before, after, {}, offload=True)
    with pytest.raises(ValueError, match="not enough values"):
        check_kept("message", before, Read("a", ("gone",)), {}, offload=True)


def test_a_result_that_is_shorter_truncated_than_cleared_does_not_keep_others_from_being_cleared():
    texts = (TextPart(""), TextPart("long " * 60))
    history = [
        Message.assistant(tool_calls=[ToolCall("a", "search"), ToolCall("b", "search")]),
        Message("tool", user_input_multi_content=texts, tool_call_id="a", tool_name="search"),
        Message.tool("result " * 15, "b", "search"),
    ]
    made = reduction.plan(history, max_tokens_for_clear=0, clear_retention_suffix_limit=0, max_length_for_trunc=10)
    assert [change.action for change in made.changes] == ["truncate", "clear"]
