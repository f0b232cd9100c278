"""The commands of a chat: none of them is sent to the model."""

import pytest

from tests.cli.chat.harbour import Harbour
from tests.cli.program import run


def test_the_history_is_shown_one_line_a_message(harbour: Harbour):
    shown = harbour.pipe("tide\n/history\n").out.partition("history:\n")[2]
    assert shown.splitlines() == [
        '      0  user       "tide"',
        '      1  assistant  calls tides {"port": "Dover"} as call_1  "One moment."',
        '      2  tool       answers call_1  "06:12 in Dover"',
        '      3  assistant  "It says: 06:12 in Dover"',
    ]


def test_a_history_of_nothing_is_told(harbour: Harbour):
    assert harbour.pipe("/history\n/check\n").out == "nothing was said so far\nmessage, profile pairing: acceptable\n"


def test_a_check_says_what_the_provider_would_refuse(harbour: Harbour):
    call = {"id": "call_1", "name": "tides", "arguments": "{}"}
    broken = [{"kind": "message", "role": "user", "content": "tide"}]
    broken += [{"kind": "message", "role": "assistant", "tool_calls": [call]}]
    harbour.write(broken)
    shown = harbour.pipe("/check\nhello\n/check\n", "--history", "talk.json").out
    before, after = shown.split("You said: hello\n")
    assert before == run("check", "--profile", "pairing", harbour.write(broken)).out
    assert "dangling" in before
    assert after == "message, profile pairing: acceptable\n"


def test_a_turn_is_taken_back_with_all_that_followed(harbour: Harbour):
    done = harbour.pipe("hello\ntide\n/undo\nhello again\n/undo\n/undo\n/undo\n", "--history", "talk.json")
    assert [line for line in done.out.splitlines() if not line.startswith(("You", "It", "One"))] == [
        'taken back: "tide" and 3 messages after it',
        'taken back: "hello again" and 1 message after it',
        'taken back: "hello" and 1 message after it',
        "there is nothing to take back",
    ]
    assert harbour.messages() == []


def test_what_was_taken_back_is_gone_from_the_file_and_from_what_the_model_sees(harbour: Harbour):
    done = harbour.pipe("tide\nhello\n/undo\nwhat happened\n", "--history", "talk.json")
    assert done.out.endswith("I was told: 06:12 in Dover\n")
    said = [text for role, text in harbour.kept() if role == "user"]
    assert said == ["tide", "what happened"]


def test_a_message_that_got_no_answer_is_taken_back_alone(harbour: Harbour):
    assert harbour.pipe("fail\n/undo\n").out == 'taken back: "fail"\n'


def test_tokens_are_those_that_were_reported_and_those_that_the_history_has(harbour: Harbour):
    done = harbour.pipe("/tokens\ncount\ncount\n/tokens\n")
    first, estimate, *_, second, now = done.out.splitlines()
    assert first == "used: the model reported nothing so far"
    assert second == "used: 180 tokens read, 20 written, 200 together"
    assert estimate.startswith("history: 0 messages, about ")
    assert now.startswith("history: 4 messages, about ")
    assert int(now.split()[4]) > int(estimate.split()[4]) > 0


def test_a_reply_that_was_cut_is_told(harbour: Harbour):
    assert harbour.pipe("count\n").err == "  (cut off: the reply reached its limit of tokens)\n"


def test_help_names_every_command(harbour: Harbour):
    done = harbour.pipe("/help\n")
    named = [line.split()[0] for line in done.out.splitlines() if line.startswith("/")]
    assert named == ["/history", "/check", "/undo", "/tokens", "/help", "/quit", "//…"]


@pytest.mark.parametrize("line", ["/nope", "/nope with words", "/undo now", "/", "/\\tmp/file"])
def test_what_is_no_command_is_told_and_not_sent(harbour: Harbour, line: str):
    done = harbour.pipe(f"hello\n{line}\n", "--history", "talk.json")
    assert done.out.startswith("You said: hello\n")
    assert done.out.count("\n") == 2
    assert "//" in done.out
    assert [text for _, text in harbour.kept()] == ["hello", "You said: hello"]


def test_two_slashes_send_one(harbour: Harbour):
    assert harbour.pipe("//undo\n").out == "You said: /undo\n"


def test_quit_leaves_at_once(harbour: Harbour):
    assert harbour.pipe("/quit\nhello\n") == (0, "", "")


def test_commands_work_at_a_terminal(harbour: Harbour):
    with harbour.terminal() as terminal:
        assert terminal.say("hello") == "You said: hello"
        assert '1  assistant  "You said: hello"' in terminal.say("/history")
        assert terminal.say("/check") == "message, profile pairing: acceptable"
        assert terminal.say("/nope").startswith("there is no /nope; /help lists")
        assert terminal.say("/undo") == 'taken back: "hello" and 1 message after it'
        terminal.enter("/quit")
        assert terminal.wait() == 0
