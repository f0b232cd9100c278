"""Where the reference is weak (research 2d), and the cases its suite lacks (R1 to R22), on every wire."""

import copy
from typing import Any

import pytest

import suture
import suture.reduction
from suture.messages import (
    AgenticMessage,
    AudioPart,
    FilePart,
    FunctionToolCall,
    FunctionToolResult,
    ImagePart,
    Message,
    TextPart,
    ToolInfo,
    ToolSearchPart,
    ToolSearchResult,
    UserInputAudio,
    UserInputFile,
    UserInputImage,
    UserInputText,
    UserInputVideo,
    VideoPart,
)
from tests.histories import Step
from tests.reduction.planning import (
    Letters,
    cleared,
    letters,
    on_each_wire,
    on_foreign_wires,
    on_native_wires,
    planned,
    saved,
)
from tests.reduction.rounds import MARK, WIRES, long, marked, one_round, read, saved_at, texts, write

TALK: list[Step] = [
    ("user", "go"),
    *one_round("a"),
    ("say", "An answer."),
    ("user", "And?"),
    *one_round("b"),
    *one_round("c"),
]
with_and_without_a_ledger = pytest.mark.parametrize("ledger", [True, False], ids=["ledger", "no ledger"])


@with_and_without_a_ledger
@on_each_wire
def test_a_plain_answer_in_between_does_not_make_old_rounds_new(wire: str, ledger: bool):
    """The reference clears them again, and writes the placeholder over the file."""
    files: dict[str, Any] = {}
    messages: Any = write(wire, TALK)
    kept = suture.reduction.Ledger()
    for new in ("d", "e", "f"):
        plan = planned(wire, messages, ledger=kept)
        assert not set(saved(plan)) & set(files)
        files |= saved(plan)
        kept = plan.ledger if ledger else kept
        messages = [*plan.messages, *write(wire, one_round(new))]
    assert files == {f"/r/clear/{call_id}": long(call_id) for call_id in "abcd"}
    said = texts(wire, messages)
    assert said == [*(saved_at(f"/r/clear/{call_id}") for call_id in "abcd"), long("e"), long("f")]


@on_each_wire
def test_an_id_that_comes_back_gets_a_file_of_its_own(wire: str):
    steps = [("user", "go"), *one_round("a", long("1")), *one_round("a", long("2")), *one_round("a", long("3"))]
    plan = planned(wire, write(wire, steps), clear_retention_suffix_limit=0)
    files = saved(plan)
    assert sorted(files.values()) == sorted([long("1"), long("2"), long("3")])
    assert texts(wire, plan.messages) == [saved_at(path) for path in files]
    assert list(files.values()) == [long("1"), long("2"), long("3")]


@with_and_without_a_ledger
@on_each_wire
def test_an_id_that_comes_back_in_a_later_pass_gets_a_file_of_its_own(wire: str, ledger: bool):
    first = planned(wire, write(wire, [("user", "go"), *one_round("a", long("1")), *one_round("a", long("2"))]))
    more = [*first.messages, *write(wire, one_round("a", long("3")))]
    second = planned(wire, more, **({"ledger": first.ledger} if ledger else {}))
    assert list(saved(first).values()) == [long("1")]
    assert list(saved(second).values()) == [long("2")]
    assert not set(saved(first)) & set(saved(second))
    (one, other) = [*saved(first), *saved(second)]
    assert texts(wire, second.messages) == [saved_at(one), saved_at(other), long("3")]


@on_each_wire
def test_ids_that_differ_by_case_alone_do_not_share_a_file_anywhere(wire: str):
    steps = [("user", "go"), *one_round("Call"), *one_round("call"), *one_round("CALL")]
    plan = planned(wire, write(wire, steps), clear_retention_suffix_limit=0)
    assert len({path.lower() for path in saved(plan)}) == 3
    assert texts(wire, plan.messages) == [saved_at(path) for path in saved(plan)]


@on_each_wire
def test_a_result_that_would_not_get_smaller_is_left_alone(wire: str):
    size = len(saved_at("/r/clear/a"))
    for text in ("ok", "x", "y" * size):
        messages = write(wire, [("user", "go"), *one_round("a", text), *one_round("b")])
        plan = planned(wire, messages)
        assert texts(wire, plan.messages) == [text, long("b")]
        assert plan.saves == ()
        assert cleared(plan) == []
    twice = write(wire, [("user", "go"), *one_round("a", "y" * size * 2), *one_round("b")])
    assert texts(wire, planned(wire, twice).messages)[0] == saved_at("/r/clear/a")


@on_each_wire
def test_if_too_little_is_freed_there_is_no_mark_and_no_file(wire: str):
    messages = write(wire, TALK)
    before = copy.deepcopy(messages)
    plan = planned(wire, messages, clear_at_least_tokens=100_000)
    assert plan.messages is messages
    assert plan.saves == ()
    assert messages == before
    # and what was not done can be done later
    later = planned(wire, messages, ledger=plan.ledger)
    assert cleared(later) == ["a", "b"]


@pytest.mark.parametrize("wrong", [-1, True, 1.0, "1"], ids=repr)
@pytest.mark.parametrize(
    "name",
    ["clear_retention_suffix_limit", "max_tokens_for_clear", "clear_at_least_tokens", "clear_down_to_tokens"],
)
def test_a_number_that_makes_no_sense_is_refused_by_its_name(name: str, wrong: Any):
    messages = write("message", [("user", "go"), ("turn", [("a", "search", "{}")])])
    with pytest.raises(suture.ConfigError, match=name):
        suture.reduction.plan(messages, **{name: wrong})


def test_none_means_not_given():
    messages = write("message", TALK)
    given = suture.reduction.plan(
        messages, max_tokens_for_clear=0, clear_retention_suffix_limit=None, clear_at_least_tokens=None
    )
    assert cleared(given) == ["a", "b"]


@on_each_wire
def test_what_is_no_text_survives_as_it_was(wire: str):
    image, unknown = ("image", "iVBORw0KGgo="), ("unknown", 7)
    messages = write(wire, [("user", "go"), *one_round("a", [("text", long("a")), image, unknown]), *one_round("b")])
    (before, _), plan = read(wire, messages), planned(wire, messages)
    after = read(wire, plan.messages)[0]
    assert after.texts == (saved_at("/r/clear/a"),)
    assert after.others == before.others
    assert len(after.others) == 2
    assert long("a").splitlines()[0] in saved(plan)["/r/clear/a"]


MEDIA = [
    ImagePart(base64_data="iVBO", mime_type="image/jpeg", detail="low", extra={"k": 1}),
    AudioPart(base64_data="UklG", mime_type="audio/mpeg", extra={"k": 2}),
    VideoPart(url="https://example.com/a.mp4", extra={"k": 3}),
    FilePart(base64_data="JVBE", mime_type="application/pdf", name="a.pdf", extra={"k": 4}),
]
BLOCKS = [
    UserInputImage(base64_data="iVBO", mime_type="image/jpeg", detail="low", extra={"k": 1}),
    UserInputAudio(base64_data="UklG", mime_type="audio/mpeg", extra={"k": 2}),
    UserInputVideo(url="", base64_data="AAAA", extra={"k": 3}),
    UserInputFile(base64_data="JVBE", mime_type="application/pdf", name="a.pdf", extra={"k": 4}),
]


@pytest.mark.parametrize("place", range(4))
def test_every_kind_of_media_survives_with_all_its_fields(place: int):
    old = Message.tool([TextPart(long("a"), extra={"own": 1}), MEDIA[place]], "a", "search")
    messages = [*write("message", [("user", "go"), ("turn", [("a", "search", "{}")])]), old, *CLEAN["message"]]
    changed = planned("message", messages).messages[2]
    assert changed.user_input_multi_content[1] == MEDIA[place]
    assert changed.user_input_multi_content[0].text == saved_at("/r/clear/a")
    block = FunctionToolResult("a", "search", (UserInputText(long("a")), BLOCKS[place]), extra={"own": 2})
    agentic = [*write("agentic", [("user", "go"), ("turn", [("a", "search", "{}")])]), AgenticMessage("user", [block])]
    (after,) = planned("agentic", [*agentic, *CLEAN["agentic"]]).messages[2].content_blocks
    assert after.content[1] == BLOCKS[place]
    assert after.content[0].text == saved_at("/r/clear/a")
    assert after.extra["own"] == 2


CLEAN = {wire: write(wire, one_round("z")) for wire in WIRES}
FOUND = (ToolInfo("fetch", "Get a page. " * 60),)


def test_the_result_of_a_tool_search_is_left_alone_and_stops_nothing():
    part = ToolSearchPart(tools=FOUND)
    calls = write("message", [("user", "go"), ("turn", [("s", "tool_search", "{}"), ("a", "search", "{}")])])
    searched, answered = Message.tool([part], "s", "tool_search"), Message.tool(long("a"), "a", "search")
    plan = planned("message", [*calls, searched, answered, *CLEAN["message"]])
    assert plan.messages[2] is searched
    assert plan.messages[3].content == saved_at("/r/clear/a")


def test_on_the_agentic_wire_as_well():
    made = [FunctionToolCall("s", "tool_search", "{}"), FunctionToolCall("a", "search", "{}")]
    searched = AgenticMessage("user", (ToolSearchResult("s", "tool_search", FOUND),))
    answered = AgenticMessage.tool_result("a", "search", long("a"))
    messages = [AgenticMessage.user("go"), AgenticMessage.assistant(made), searched, answered, *CLEAN["agentic"]]
    plan = planned("agentic", messages)
    assert plan.messages[2] is searched
    assert texts("agentic", plan.messages[3:4]) == [saved_at("/r/clear/a")]


@pytest.mark.parametrize("wire", ["agentic", "anthropic", "gemini", "bedrock"])
def test_several_results_in_one_message_are_cleared_one_by_one(wire: str):
    calls = [("a", "search", "{}"), ("b", "keep", "{}"), ("c", "search", "{}")]
    results = [("a", "search", long("a")), ("b", "keep", long("b")), ("c", "search", long("c"))]
    messages = write(wire, [("user", "go"), ("turn", calls), ("bundle", results), *one_round("z")])
    plan = planned(wire, messages, clear_exclude_tools=["keep"])
    said = [saved_at("/r/clear/a"), long("b"), saved_at("/r/clear/c"), long("z")]
    assert texts(wire, plan.messages) == said


@on_each_wire
def test_skip_clear_counts_marks_and_rewrites_nothing(wire: str):
    counter, asked = Letters(), list[Any]()
    rewriter = {"clear_message_rewriter": lambda *given: asked.append(given)}
    messages = write(wire, TALK)
    plan = planned(wire, messages, skip_clear=True, token_counter=counter, **rewriter)
    assert plan.messages is messages
    assert (counter.asked, asked) == ([], [])


@on_each_wire
def test_the_threshold_itself_does_not_trigger_and_one_more_does(wire: str):
    messages = write(wire, TALK)
    total = letters(messages)
    at = planned(wire, messages, token_counter=Letters(), max_tokens_for_clear=total)
    assert at.messages is messages
    assert at.tokens_before == total
    over = planned(wire, messages, token_counter=Letters(), max_tokens_for_clear=total - 1)
    assert cleared(over) == ["a", "b"]
    assert over.tokens_before == total
    assert over.tokens_after == letters(list(over.messages))


@pytest.mark.parametrize("kept", [3, 4, 100])
@on_each_wire
def test_with_no_more_rounds_than_are_kept_nothing_happens(wire: str, kept: int):
    messages = write(wire, TALK)
    assert planned(wire, messages, clear_retention_suffix_limit=kept).messages is messages


@on_each_wire
def test_nothing_of_the_input_is_changed_and_what_needs_no_change_is_the_same_object(wire: str):
    messages = write(wire, TALK)
    before, objects = copy.deepcopy(messages), list(messages)
    plan = planned(wire, messages)
    assert messages == before
    assert all(mine is theirs for mine, theirs in zip(messages, objects, strict=True))
    for place, (mine, theirs) in enumerate(zip(plan.messages, messages, strict=True)):
        assert (mine is theirs) == (mine == theirs), place


def test_a_history_with_nothing_in_it_is_refused_as_everywhere():
    history: list[Any] = [*write("message", TALK), None]
    with pytest.raises(suture.InputError):
        planned("message", history)


@on_native_wires
def test_the_mark_leaves_other_values_alone_and_only_true_counts(wire: str):
    for value in ("yes", 1, None, False):
        messages = [
            suture.replace(message, extra={"own": 7, MARK: value}) if place == 1 else message
            for place, message in enumerate(write(wire, TALK))
        ]
        plan = planned(wire, messages)
        assert cleared(plan) == ["a", "b"]
        assert (plan.messages[1].extra["own"], plan.messages[1].extra[MARK]) == (7, True)


@on_native_wires
def test_a_round_that_carries_the_mark_is_never_touched(wire: str):
    messages = [
        suture.replace(message, extra={MARK: True}) if place == 1 else message
        for place, message in enumerate(write(wire, TALK))
    ]
    plan = planned(wire, messages)
    assert cleared(plan) == ["b"]
    assert plan.messages[1] is messages[1]
    assert plan.messages[2] is messages[2]
    assert marked(plan.messages) == [False, True, False, False, False, True, False, False, False]


@on_foreign_wires
def test_a_foreign_message_gets_no_key_that_its_provider_does_not_know(wire: str):
    messages = write(wire, TALK)
    plan = planned(wire, messages)
    for mine, theirs in zip(plan.messages, messages, strict=True):
        assert set(mine) == set(theirs)
    assert MARK not in str(list(plan.messages))


@on_native_wires
def test_half_a_character_is_saved_as_it_was(wire: str):
    """Foreign wires refuse such a text themselves."""
    text = f"{long('a')}\ud800"
    plan = planned(wire, write(wire, [("user", "go"), *one_round("a", text), *one_round("z")]))
    assert saved(plan) == {"/r/clear/a": text}


@pytest.mark.parametrize("language", ["en", "zh"])
@on_each_wire
def test_the_placeholder_of_a_missing_result_is_left_alone_however_long_it_is(wire: str, language: Any):
    """It says that there is no result, and why; a real one may still take its place."""
    long_id, long_name = "i" * 60, "n" * 60
    steps: list[Step] = [("user", "go"), ("turn", [(long_id, long_name, "{}")]), ("user", "stop"), *one_round("z")]
    mended = suture.repair(write(wire, steps), wire=wire, profile="pairing", language=language)
    assert mended.changed
    plan = planned(wire, mended.messages, clear_retention_suffix_limit=0)
    assert plan.saves != ()
    assert cleared(plan) == ["z"]
    assert read(wire, plan.messages)[0] == read(wire, mended.messages)[0]


@pytest.mark.parametrize("text", [saved_at("/x") + long("more"), long("before") + saved_at("/x"), saved_at(long("p"))])
@on_each_wire
def test_output_that_merely_looks_like_a_placeholder_is_saved_like_any_other(wire: str, text: str):
    """A tool can say what it likes; nothing of it gets lost for that."""
    plan = planned(wire, write(wire, [("user", "go"), *one_round("a", text), *one_round("z")]))
    assert texts(wire, plan.messages) == [saved_at("/r/clear/a"), long("z")]
    assert saved(plan) == {"/r/clear/a": text}
