"""`suture chat` at a real terminal: answers stream, Ctrl-C stops them, and the conversation goes on."""

import re

import pytest

from tests.cli.chat.harbour import EVIL, Harbour
from tests.cli.chat.terminal import Bare
from tests.cli.program import run


def test_an_answer_is_seen_before_it_is_whole(harbour: Harbour):
    with harbour.terminal() as terminal:
        terminal.enter("slow")
        shown = terminal.see("Half of it")
        assert "and the rest" not in shown
        assert shown.count("you>") == 1
        harbour.open("gate")
        terminal.see("Half of it|and the rest.\nyou>")


def test_calls_and_their_results_are_seen_as_they_happen(harbour: Harbour):
    with harbour.terminal() as terminal:
        terminal.enter("hold")
        assert "<- hold" not in terminal.see("One moment.\n  -> hold {}")
        harbour.open("lock")
        terminal.see("  <- hold the lock is open\nIt says: the lock is open\nyou>")
        assert terminal.say("broken").splitlines() == [
            "One moment.",
            "  -> broken {}",
            "  <- broken failed: ValueError: the gauge is broken",
            "It says: ValueError: the gauge is broken",
        ]


def test_a_long_result_is_one_line(harbour: Harbour):
    with harbour.terminal() as terminal:
        lines = terminal.say("log").splitlines()
        assert lines[:2] == ["One moment.", "  -> log {}"]
        assert lines[2].startswith("  <- log <persisted-output> Output too large (60000).")
        assert lines[2].endswith("…")
        assert lines[3].startswith("It says: ")


def test_ctrl_c_stops_what_is_being_said_and_the_next_turn_works(harbour: Harbour):
    with harbour.terminal("--history", "talk.json") as terminal:
        terminal.enter("slow")
        terminal.see("Half of it")
        terminal.press("C-c")
        terminal.see("  (stopped)\nyou>")
        assert harbour.kept() == [("user", "slow"), ("assistant", "Half of it")]
        assert terminal.say("hello") == "You said: hello"
    assert harbour.kept()[2:] == [("user", "hello"), ("assistant", "You said: hello")]
    assert run("check", harbour.history).status == 0


@pytest.mark.parametrize(
    ("tool", "told"),
    [("hold", "was stopped before it finished"), ("block", "it may or may not have run")],
    ids=["async", "in a thread"],
)
def test_ctrl_c_stops_a_tool_and_the_model_learns_of_it(harbour: Harbour, tool: str, told: str):
    with harbour.terminal("--history", "talk.json") as terminal:
        terminal.enter(tool)
        terminal.see(f"-> {tool} {{}}")
        terminal.press("C-c")
        terminal.see("  (stopped)\nyou>")
        assert run("check", harbour.history).status == 0
        answer = terminal.say("what happened").replace("\n", "")
        assert answer.startswith(f"I was told: Tool call {tool} with id call_1 ")
        assert told in answer
        terminal.press("C-d")
        assert terminal.wait() == 0
    assert run("check", harbour.history).status == 0
    assert [role for role, _ in harbour.kept()] == ["user", "assistant", "tool", "user", "assistant"]


def test_who_insists_on_ctrl_c_leaves_a_tool_that_does_not_stop(harbour: Harbour):
    with harbour.terminal("--history", "talk.json") as terminal:
        terminal.enter("stubborn")
        terminal.see("-> stubborn")
        terminal.press("C-c")
        harbour.hear()
        terminal.see("(stopping; Ctrl-C once more leaves)")
        terminal.press("C-c")
        assert terminal.wait() == 130
    assert harbour.kept() == [("user", "stubborn"), ("assistant", "One moment.")]


def test_a_tool_that_blocks_the_event_loop_cannot_hold_the_terminal(harbour: Harbour):
    harbour.tools = "harbour:hog"
    with harbour.terminal("--history", "talk.json") as terminal:
        terminal.enter("hog")
        harbour.hear()
        terminal.press("C-c")
        terminal.see("^C")
        terminal.press("C-c")
        assert terminal.wait() == 130
    assert harbour.kept() == [("user", "hog"), ("assistant", "One moment.")]


def test_a_tool_that_takes_its_time_to_stop_is_waited_for(harbour: Harbour):
    with harbour.terminal("--history", "talk.json") as terminal:
        terminal.enter("stubborn")
        terminal.see("-> stubborn")
        terminal.press("C-c")
        harbour.hear()
        terminal.see("(stopping")
        harbour.open("lock")
        terminal.see("  (stopped)\nyou>")
        assert terminal.say("hello") == "You said: hello"


def test_ctrl_c_at_the_prompt_clears_the_line(harbour: Harbour):
    with harbour.terminal() as terminal:
        for number in (1, 2, 3):
            terminal.type("not this")
            terminal.see("you> not this", number)
            terminal.press("C-c")
            terminal.see("you>", number + 1)
        assert "leaves)" not in terminal.screen().partition("you>")[2]
        assert terminal.say("but this") == "You said: but this"


def test_a_ctrl_c_that_comes_the_moment_a_letter_is_shown_is_not_lost(harbour: Harbour):
    terminal = Bare(harbour.command("--history", "talk.json"), harbour.directory, {"PROMPT_TOOLKIT_NO_CPR": "1"})

    def prompts() -> list[bytes]:
        """Return what was written behind the beginning of each prompt: a prompt is drawn anew when it is left."""
        return terminal.raw.split(b"\x1b[?2004h")[1:]

    try:
        for number in range(1, 11):
            terminal.wait_until(lambda at=number: len(prompts()) == at and b"you>" in prompts()[-1], "the prompt")
            terminal.type("x")
            terminal.wait_until(lambda: b"x" in prompts()[-1], "the letter")
            terminal.press("C-c")
        terminal.wait_until(lambda: len(prompts()) == 11, "the last prompt")
    finally:
        terminal.close()


def test_ctrl_c_on_an_empty_line_leaves_the_second_time(harbour: Harbour):
    with harbour.terminal() as terminal:
        terminal.press("C-c")
        terminal.see("(Ctrl-C once more, or Ctrl-D, leaves)\nyou>")
        assert terminal.say("not yet") == "You said: not yet"
        terminal.press("C-c")
        terminal.see("once more", 2)
        terminal.see("you>", 4)
        terminal.press("C-c")
        assert terminal.wait() == 0


def test_ctrl_d_leaves(harbour: Harbour):
    with harbour.terminal() as terminal:
        terminal.press("C-d")
        assert terminal.wait() == 0


def test_a_turn_that_fails_is_told_in_a_line_and_what_was_said_stays(harbour: Harbour):
    with harbour.terminal("--history", "talk.json") as terminal:
        shown = terminal.say("half fail").replace("\n", " ")
        assert shown.startswith("Half of it suture: ValueError: the line was cut (go on as you like, or take")
        assert harbour.kept() == [("user", "half fail"), ("assistant", "Half of it")]
        assert terminal.say("hello") == "You said: hello"
        assert "Traceback" not in terminal.screen()
        terminal.press("C-d")
        assert terminal.wait() == 0


def test_another_attempt_is_told(harbour: Harbour):
    with harbour.terminal() as terminal:
        lines = terminal.say("flaky").splitlines()
    assert re.match(r"  \(trying again in 0\.[5-8] s: ModelConnectionError: the line is down\)", lines[0])
    assert lines[1:] == ["You said: flaky"]


def test_a_line_that_ends_in_a_backslash_goes_on(harbour: Harbour):
    with harbour.terminal() as terminal:
        terminal.enter("one\\")
        terminal.see("...>")
        terminal.enter("two\\")
        terminal.see("...>", 2)
        terminal.enter("three")
        terminal.see("You said: one\ntwo\nthree\nyou>")


def test_lines_that_are_pasted_stay_together(harbour: Harbour):
    if "libedit" in (pytest.importorskip("readline").__doc__ or ""):
        pytest.skip("it takes pasted lines one by one")
    with harbour.terminal() as terminal:
        terminal.paste("one\ntwo\n\nthree")
        terminal.see("you> one\ntwo\n\nthree")
        terminal.press("Enter")
        terminal.see("You said: one\ntwo\n\nthree\nyou>")


def test_what_a_tool_began_goes_on_while_somebody_types(harbour: Harbour):
    with harbour.terminal() as terminal:
        terminal.say("later")
        terminal.type("half a line")
        terminal.see("you> half a line")
        harbour.open("lock")
        harbour.hear()
        terminal.press("Enter")
        terminal.see("You said: half a line\nyou>")


def test_ctrl_c_takes_all_lines_that_go_on_back(harbour: Harbour):
    with harbour.terminal() as terminal:
        terminal.enter("one\\")
        terminal.see("...>")
        terminal.press("C-c")
        terminal.see("you>", 2)
        assert terminal.say("two") == "You said: two"


def test_a_line_is_found_again_with_the_arrow_key(harbour: Harbour):
    pytest.importorskip("readline")
    with harbour.terminal() as terminal:
        terminal.say("hello")
        terminal.press("Up")
        terminal.see("you> hello", 2)
        terminal.press("Enter")
        terminal.see("You said: hello", 2)


def test_letters_of_any_language_are_sent_and_shown(harbour: Harbour):
    with harbour.terminal("--history", "talk.json") as terminal:
        terminal.enter("京都 ñandú žluťoučký")
        terminal.see("You said: 京都 ñandú žluťoučký\nyou>")
    assert harbour.kept()[0] == ("user", "京都 ñandú žluťoučký")


def test_lines_of_an_answer_stay_lines(harbour: Harbour):
    with harbour.terminal() as terminal:
        assert terminal.say("lines") == "one\ntwo\n\nthree"


@pytest.mark.parametrize("said", ["evil", "evil tool", "evil call", "fail"])
def test_escapes_never_reach_the_terminal(harbour: Harbour, said: str):
    with harbour.terminal() as terminal:
        title = terminal.title
        assert "gnp.exe" in terminal.say(said)
        assert "history" in terminal.say("/history")
        assert terminal.title == title
        assert b"\x1b]" not in terminal.raw
        assert not {"\x07", "\x9b", "\u202e", "\x00"} & set(terminal.raw.decode())
        assert EVIL[:3].encode() not in terminal.raw


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("yes", "It says: bought ropes"),
        ("no", "It says: Tool call buy with id call_1 was not run - it was rejected."),
        ("too dear", "Reason: too dear"),
    ],
)
def test_a_tool_that_asks_for_approval_runs_only_after_a_yes(harbour: Harbour, answer: str, told: str):
    with harbour.terminal("--history", "talk.json") as terminal:
        terminal.enter("buy")
        terminal.see('  run buy {"item": "ropes"}\nyes or no?')
        terminal.enter(answer)
        terminal.see("you>", 2)
        assert told in terminal.screen()
        assert terminal.screen().count("-> buy") == (answer == "yes")
    assert run("check", harbour.history).status == 0


def test_a_call_that_asks_for_approval_is_shown_to_its_last_letter(harbour: Harbour):
    with harbour.terminal() as terminal:
        terminal.enter("buy much")
        shown = terminal.see("yes or no?")
        asked = shown[shown.index("  run buy") : shown.index("yes or no?")].splitlines()
        assert len(asked) > 3
        assert all(line.startswith("  ") for line in asked)
        whole = "".join(line.removeprefix("  ") for line in asked)
        assert whole == 'run buy {"item": "' + "rope," * 60 + '\\x9b2K\\u202e and the harbour"}'
        terminal.enter("no")
        terminal.see("it was rejected.")


def test_ctrl_c_is_no_yes(harbour: Harbour):
    with harbour.terminal() as terminal:
        terminal.enter("buy")
        terminal.see("yes or no?")
        terminal.press("C-c")
        terminal.see("it was rejected.")
        terminal.see("you>", 2)
        assert terminal.say("hello") == "You said: hello"


def test_the_first_line_says_who_answers_and_how_to_leave(harbour: Harbour):
    with harbour.terminal() as terminal:
        assert terminal.screen().startswith("harbour:model, 9 tools. /help shows the commands, Ctrl-D leaves.\nyou>")
