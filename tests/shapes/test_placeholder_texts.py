"""The text of a missing result: its cause, its language, the caller's own, and who comes after it."""

import threading
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

import suture
from suture.messages import Message, ToolCall
from tests.shapes.notation import Step, call, flat, result, says, turn, user
from tests.shapes.texts import CAUSES, TEXTS, answered, placeholder
from tests.shapes.wires import WIRES, expect, read, render

GO = user("go")
X = turn(call("x"))
XY = turn(call("x"), call("y", "fetch"))


@pytest.fixture(autouse=True)
def _english() -> Iterator[None]:
    suture.set_language("en")
    yield
    suture.set_language("en")


def results(wire: str, messages: Any) -> list[tuple[str, str]]:
    return [(event[1], event[2]) for event in flat(read(wire, messages)) if event[0] in {"result", "failed"}]


def repaired(wire: str, steps: list[Step], **options: Any) -> list[tuple[str, str]]:
    return results(wire, suture.repair(render(wire, steps).messages, wire=wire, **options).messages)


def repaired_messages(wire: str, messages: list[Any]) -> list[tuple[str, str]]:
    return results(wire, suture.repair(messages, wire=wire).messages)


def extras(message: Any) -> list[Any]:
    """Return the `extra` maps of a native message and its blocks."""
    return [message.extra, *(block.extra for block in getattr(message, "content_blocks", ()))]


# --- causes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.parametrize("cause", CAUSES)
def test_a_cause_that_the_caller_knows_is_told_in_his_language(cause: str, language: str, wire: str):
    """F4, F9, F12, F54: with error status where the wire has one."""
    rendered = render(wire, [GO, X, user("next")])
    fixed = suture.repair(
        rendered.messages, wire=wire, causes={(rendered.at[1], 0): suture.Cause(cause)}, language=language
    )
    wanted = [GO, X, answered(cause, "x", language=language), user("next")]
    assert read(wire, fixed.messages) == expect(wire, wanted)
    assert fixed.report.findings[0].done.endswith(cause)


def test_a_cause_may_be_given_by_its_name():
    messages = render("openai-chat", [GO, X, user("next")]).messages
    fixed = suture.repair(messages, causes={(1, 0): "rejected"})
    assert fixed.messages[2]["content"] == placeholder("rejected", "x")


def test_causes_are_keyed_by_the_turn_and_the_number_of_the_call():
    steps = [GO, XY, user("no"), XY, user("next")]
    causes = {(1, 1): suture.Cause.REJECTED, (3, 0): suture.Cause.STOPPED, (9, 9): suture.Cause.COMPACTED}
    assert repaired("message", steps, causes=causes) == [
        ("x", placeholder("interrupted", "x")),
        ("y", placeholder("rejected", "y", "fetch")),
        ("x", placeholder("stopped", "x")),
        ("y", placeholder("interrupted", "y", "fetch")),
    ]


def test_a_known_cause_outranks_what_the_arguments_look_like():
    steps = [GO, turn(call("x", arguments='{"q')), user("next")]
    causes = {(1, 0): suture.Cause.REJECTED}
    assert repaired("message", steps, causes=causes) == [("x", placeholder("rejected", "x"))]


def test_an_unknown_cause_is_refused():
    messages = render("openai-chat", [GO, X, user("next")]).messages
    with pytest.raises(suture.ConfigError):
        suture.repair(messages, causes={(1, 0): "bored"})


@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.parametrize(
    ("steps", "cause"),
    [
        ([GO, X, user("next")], "interrupted"),
        ([GO, X, says("on")], "interrupted"),
        ([GO, X, X, result("x", "1")], "interrupted"),
        ([GO, X], "unknown"),
        ([GO, XY, result("y", "2")], "unknown"),
        ([GO, turn(call("x", arguments='{"q')), user("next")], "malformed"),
        ([GO, turn(call("x", arguments="[1]"))], "malformed"),
    ],
)
def test_without_a_known_cause_the_history_decides(steps: list[Step], cause: str, language: str):
    """F54: interrupted only if something came in, malformed if the arguments are, else unknown."""
    told = dict(reversed(repaired("message", steps, language=language)))
    assert told["x"] == placeholder(cause, "x", language=language)


# --- language ---------------------------------------------------------------------------------


def test_the_language_of_the_process_is_english_until_it_is_set():
    assert repaired("openai-chat", [GO, X]) == [("x", placeholder("unknown", "x"))]
    suture.set_language("zh")
    assert repaired("openai-chat", [GO, X]) == [("x", placeholder("unknown", "x", language="zh"))]


def test_a_block_of_code_overrides_the_language_of_the_process_and_an_option_overrides_both():
    with suture.using_language("zh"):
        assert repaired("message", [GO, X]) == [("x", placeholder("unknown", "x", language="zh"))]
        with suture.using_language("en"):
            assert repaired("message", [GO, X]) == [("x", placeholder("unknown", "x"))]
        assert repaired("message", [GO, X], language="en") == [("x", placeholder("unknown", "x"))]
    assert repaired("message", [GO, X]) == [("x", placeholder("unknown", "x"))]


def test_the_language_of_a_block_ends_with_it_whatever_happens():
    with pytest.raises(ZeroDivisionError), suture.using_language("zh"):
        raise ZeroDivisionError
    assert repaired("message", [GO, X]) == [("x", placeholder("unknown", "x"))]


def test_the_language_of_a_block_is_not_that_of_another_thread():
    told: list[Any] = []
    with suture.using_language("zh"):
        thread = threading.Thread(target=lambda: told.append(repaired("message", [GO, X])))
        thread.start()
        thread.join()
    assert told == [[("x", placeholder("unknown", "x"))]]


def test_a_repairer_keeps_the_language_it_was_made_with():
    repairer = suture.Repairer(wire="message", language="zh")
    for message in render("message", [GO, X, user("next")]).messages:
        repairer.extend([message])
    assert results("message", repairer.messages) == [("x", placeholder("interrupted", "x", language="zh"))]


@pytest.mark.parametrize("unknown", ["fr", "", "EN"])
def test_an_unknown_language_is_refused(unknown: str):
    with pytest.raises(suture.ConfigError):
        suture.set_language(unknown)
    with pytest.raises(suture.ConfigError), suture.using_language(unknown):
        pass
    with pytest.raises(suture.ConfigError):
        suture.repair([Message.user("go")], language=unknown)


def test_a_text_in_one_language_is_not_rewritten_into_another():
    """F51: the same bytes in every request."""
    for wire in WIRES:
        first = suture.repair(render(wire, [GO, X, user("next")]).messages, wire=wire, language="zh")
        again = suture.repair(first.messages, wire=wire, language="en")
        assert again.messages is first.messages


# --- names and ids in texts -------------------------------------------------------------------


def test_names_and_ids_are_stripped_of_control_characters_and_cut_in_the_text_alone():
    name, id_ = "sea\x1b[31mrch\n", "i\x00d" + "9" * 100
    messages = [
        Message.user("go"),
        Message.assistant(tool_calls=[ToolCall(id_, name, "{}")]),
        Message.user("next"),
    ]
    fixed = suture.repair(messages, wire="message")
    told = fixed.messages[2]
    assert told.tool_call_id == id_
    assert told.content == placeholder("interrupted", ("id" + "9" * 100)[:64], "sea[31mrch")


def test_a_text_of_a_long_id_is_recognised_as_a_placeholder():
    id_ = "9" * 100
    messages = [Message.user("go"), Message.assistant(tool_calls=[ToolCall(id_, "search", "{}")])]
    synthetic = Message.tool(placeholder("unknown", id_[:64]), id_, "search")
    fixed = suture.repair([*messages, synthetic, Message.tool("42", id_, "search")], wire="message")
    assert [message.content for message in fixed.messages[2:]] == ["42"]


# --- generator --------------------------------------------------------------------------------


@pytest.mark.parametrize("wire", WIRES)
def test_a_generator_writes_the_text(wire: str):
    told = repaired(
        wire,
        [GO, XY, result("x", "1"), user("next")],
        generator=lambda name, call_id: f"123 {name} {call_id}",
    )
    assert told == [("x", "1"), ("y", "123 fetch y")]


@pytest.mark.parametrize("wire", WIRES)
def test_a_generator_is_called_once_for_each_missing_result_in_the_order_of_the_history(wire: str):
    asked: list[tuple[str, str]] = []

    def generate(name: str, call_id: str) -> str:
        asked.append((name, call_id))
        return f"no {call_id}"

    steps = [
        GO,
        XY,
        result("y", "2"),
        user("no"),
        turn(call("v"), call("w")),
        user("no"),
        turn(call("z", "fetch")),
    ]
    told = repaired(wire, steps, generator=generate)
    assert asked == [("search", "x"), ("search", "v"), ("search", "w"), ("fetch", "z")]
    assert [text for _, text in told] == ["no x", "2", "no v", "no w", "no z"]


def test_a_generator_may_ask_for_the_cause():
    def generate(name: str, call_id: str, cause: suture.Cause) -> str:
        assert isinstance(cause, suture.Cause)
        return f"{name} {call_id} {cause.value}"

    steps = [GO, XY, user("no"), turn(call("v", arguments='{"q')), user("no"), turn(call("w"))]
    told = repaired("message", steps, generator=generate, causes={(1, 1): suture.Cause.REJECTED})
    assert [text for _, text in told] == [
        "search x interrupted",
        "fetch y rejected",
        "search v malformed",
        "search w unknown",
    ]


@pytest.mark.parametrize("keyword_only", [True, False])
def test_the_cause_is_given_by_its_keyword(keyword_only: bool):
    def strict(name: str, call_id: str, *, cause: suture.Cause) -> str:
        return f"{name} {call_id} {cause.value}"

    def loose(name: str, call_id: str, **more: Any) -> str:
        return f"{name} {call_id} {more['cause'].value}"

    told = repaired("message", [GO, X], generator=strict if keyword_only else loose)
    assert told == [("x", "search x unknown")]


def test_an_empty_text_means_the_built_in_one():
    for wire in WIRES:
        told = repaired(wire, [GO, XY], generator=lambda name, _id: "" if name == "search" else "own")
        assert told == [("x", placeholder("unknown", "x")), ("y", "own")]


@pytest.mark.parametrize("wire", WIRES)
def test_the_error_of_a_generator_is_the_callers_and_nothing_has_changed(wire: str):
    """P1."""

    def generate(_name: str, call_id: str) -> str:
        if call_id == "y":
            raise LookupError("no text for y")
        return "own"

    messages = render(wire, [GO, XY, user("next")]).messages
    given, before = list(messages), deepcopy(messages)
    with pytest.raises(LookupError, match="no text for y"):
        suture.repair(messages, wire=wire, generator=generate)
    assert messages == before
    assert all(one is other for one, other in zip(messages, given, strict=True))


def test_the_error_of_a_generator_leaves_a_repairer_as_it_was():
    broken = True

    def generate(_name: str, call_id: str) -> str:
        if broken:
            raise LookupError(call_id)
        return "own"

    messages = render("openai-chat", [GO, X, user("next")]).messages
    repairer = suture.Repairer(messages[:1], wire="openai-chat", generator=generate)
    with pytest.raises(LookupError):
        repairer.extend(messages[1:])
    assert list(repairer.messages) == messages[:1]
    broken = False
    repairer.extend(messages[1:])
    assert results("openai-chat", repairer.messages) == [("x", "own")]


def test_a_generator_is_not_asked_where_nothing_is_missing():
    def generate(_name: str, _call_id: str) -> str:
        raise AssertionError("asked")

    for wire in WIRES:
        messages = render(wire, [GO, X, result("x", "1"), says("done")]).messages
        assert suture.repair(messages, wire=wire, generator=generate).messages is messages
        suture.repair(render(wire, [GO, X]).messages, wire=wire, generator=generate, tail="keep")


@pytest.mark.parametrize("wire", ["message", "agentic"])
def test_on_native_wires_a_generators_text_is_marked_and_gives_way_to_the_real_result(wire: str):
    """F17."""
    fixed = suture.repair(
        render(wire, [GO, X, user("next")]).messages, wire=wire, generator=lambda _name, _id: "[skipped]"
    )
    assert any(extras(fixed.messages[2]))
    late = render(wire, [result("x", "42", "search")]).messages
    assert repaired_messages(wire, [*fixed.messages, *late]) == [("x", "42")]


def test_on_foreign_wires_the_caller_tells_which_texts_only_stand_for_a_result():
    """F17, F53."""
    steps = [GO, X, result("x", "[skipped]"), user("next"), result("x", "42")]
    for wire in WIRES:
        told = repaired(wire, steps, is_placeholder=lambda text: text == "[skipped]")
        assert told == [("x", "42")]
        told = repaired(
            wire, [GO, X, result("x", "42"), result("x", "[skipped]")], is_placeholder=lambda t: t[0] == "["
        )
        assert told == [("x", "42")]
    displaced = suture.repair(render("openai-chat", steps).messages).report.displaced
    assert [each.content for each in displaced] == ["[skipped]"]


# --- a real result beats a placeholder --------------------------------------------------------


def variants(cause: str, id_: str = "x", name: str = "search") -> list[str]:
    """All spellings of a cause's text that are recognised."""
    texts = [placeholder(cause, id_, name, language) for language in TEXTS]
    texts.append(texts[0].replace("canceled", "cancelled"))
    texts.append(texts[1].replace("(", "（").replace(")", "）"))
    return list(dict.fromkeys(texts))


SYNTHETIC = [pytest.param(text, id=f"{cause} {n}") for cause in CAUSES for n, text in enumerate(variants(cause))]


@pytest.mark.parametrize("text", SYNTHETIC)
def test_a_real_result_beats_a_placeholder_in_any_order(text: str):
    """F17, openclaw#84134: keep-first drops the real one."""
    orders: list[list[Step]] = [
        [GO, X, result("x", text), result("x", "42"), user("next")],
        [GO, X, result("x", "42"), result("x", text), user("next")],
        [GO, X, result("x", text), user("no"), result("x", "42"), says("done")],
        [GO, X, result("x", "42"), user("no"), result("x", text), says("done")],
        [GO, X, user("no"), result("x", "42"), result("x", text), says("done")],
        [GO, X, result("x", text), result("x", text), user("no"), result("x", "42"), says("done")],
    ]
    for wire in WIRES:
        for steps in orders:
            fixed = suture.repair(render(wire, steps).messages, wire=wire)
            assert results(wire, fixed.messages) == [("x", "42")]
            assert fixed.report.displaced == ()  # a placeholder is no loss
            assert suture.check(fixed.messages, wire=wire).acceptable


@pytest.mark.parametrize("text", SYNTHETIC)
def test_a_placeholder_alone_is_an_answer(text: str):
    """F51: it stays as it is."""
    for wire in WIRES:
        messages = render(wire, [GO, X, result("x", text), says("done")]).messages
        assert suture.repair(messages, wire=wire).messages is messages


def test_two_placeholders_for_one_call_are_one_too_many():
    """F37: double repair."""
    first, second = placeholder("interrupted", "x"), placeholder("unknown", "x", language="zh")
    for wire in WIRES:
        told = repaired(wire, [GO, X, result("x", first), result("x", second), says("done")])
        assert told in ([("x", first)], [("x", second)])


@pytest.mark.parametrize(
    "text",
    [
        placeholder("interrupted", "y"),
        placeholder("interrupted", "x", "fetch"),
        "He said: " + placeholder("interrupted", "x"),
        placeholder("interrupted", "x") + " Really.",
        placeholder("interrupted", "x").upper(),
    ],
    ids=["another id", "another name", "quoted", "continued", "shouted"],
)
def test_a_text_that_only_looks_like_a_placeholder_is_a_real_result(text: str):
    for wire in ("message", "openai-chat", "anthropic"):
        messages = render(
            wire, [GO, X, result("x", "41", "search"), result("x", text, "search"), says("done")]
        ).messages
        fixed = suture.repair(messages, wire=wire)
        assert results(wire, fixed.messages) == [("x", text)]
        assert [each.content for each in fixed.report.displaced] == ["41"]


@pytest.mark.parametrize("wire", WIRES)
def test_a_real_result_goes_to_a_call_without_one_before_it_replaces_a_placeholder(wire: str):
    """To the first call of that id that has no result at all; else to the first whose result is synthetic."""
    steps = [
        GO,
        turn(call("x"), call("x")),
        result("x", placeholder("unknown", "x")),
        result("x", "42"),
        says("done"),
    ]
    told = [text for _, text in repaired(wire, steps, profile="pairing")]
    assert told == [placeholder("unknown", "x"), "42"]
    steps = [*steps[:4], result("x", "43"), says("done")]
    assert [text for _, text in repaired(wire, steps, profile="pairing")] == ["43", "42"]
