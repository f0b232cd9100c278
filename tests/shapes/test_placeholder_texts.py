"""The text of a missing result: its cause, its language, and who comes after it."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import suture
from suture.messages import Message, ToolCall
from tests.shapes.notation import Step, call, result, says, system, turn, user
from tests.shapes.repairing import GO, XY, X, repaired, results
from tests.shapes.texts import CAUSES, TEXTS, answered, placeholder
from tests.shapes.wires import WIRES, expect, read, render


@pytest.fixture(autouse=True)
def _english() -> Iterator[None]:
    suture.set_language("en")
    yield
    suture.set_language("en")


# --- causes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.parametrize("cause", CAUSES)
def test_a_cause_that_the_caller_knows_is_told_in_his_language(cause: str, language: str, wire: str):
    """With error status where the wire has one."""
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


def test_causes_are_keyed_by_the_message_and_the_position_of_the_call():
    steps = [GO, XY, user("no"), XY, user("next")]
    causes = {(1, 1): suture.Cause.REJECTED, (3, 0): suture.Cause.STOPPED}
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
        ([GO, X, says("on")], "unknown"),
        ([GO, X, system("note"), says("on"), user("next")], "unknown"),
        ([GO, X, system("note"), user("next")], "interrupted"),
        ([GO, X], "unknown"),
        ([GO, XY, result("y", "2")], "unknown"),
        ([GO, turn(call("x", arguments='{"q')), user("next")], "malformed"),
        ([GO, turn(call("x", arguments="[1]"))], "malformed"),
    ],
)
def test_without_a_known_cause_the_history_decides(steps: list[Step], cause: str, language: str):
    """Interrupted only if the user speaks next, malformed if the arguments are, else unknown."""
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
    """The same bytes in every request."""
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
    """Keep-first drops the real one."""
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
    """It stays as it is."""
    for wire in WIRES:
        messages = render(wire, [GO, X, result("x", text), says("done")]).messages
        assert suture.repair(messages, wire=wire).messages is messages


def test_two_placeholders_for_one_call_are_one_too_many():
    """Double repair."""
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
