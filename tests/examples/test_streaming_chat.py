"""`examples/streaming_chat.py`, driven as at a terminal: a Ctrl-C stops the turn, and the conversation goes on."""

import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from time import monotonic

import pytest

from tests.cli.program import TIMEOUT, environment
from tests.examples.program import EXAMPLES, run_example

# A test runner in the background may have been told to ignore it, and would hand that on.
MINDS_CTRL_C = (
    "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    f"runpy.run_path({str(EXAMPLES / 'streaming_chat.py')!r}, run_name='__main__')"
)


class Chat:
    """The program, with somebody who types and reads."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", MINDS_CTRL_C],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment(),
        )
        assert self.process.stdin
        assert self.process.stdout
        self.keys, self.screen = self.process.stdin, self.process.stdout

    def read_to(self, end: str) -> str:
        """Read until `end` is shown; return all that was shown up to there."""
        shown, deadline = "", monotonic() + TIMEOUT
        while not shown.endswith(end):
            ready, _, _ = select.select([self.screen], [], [], max(0.0, deadline - monotonic()))
            piece = os.read(self.screen.fileno(), 1) if ready else b""
            assert piece, f"waited for {end!r}, saw {shown!r}"
            shown += piece.decode()
        return shown

    def say(self, text: str) -> str:
        """Type a line; return what is shown up to the next prompt."""
        self.type(text)
        return self.read_to("you> ").removesuffix("\nyou> ")

    def type(self, text: str) -> None:
        self.keys.write(f"{text}\n".encode())
        self.keys.flush()

    def press_ctrl_c(self) -> None:
        """Press it until something comes of it: one that falls just before the program waits is not noticed."""
        for _ in range(TIMEOUT):
            self.process.send_signal(signal.SIGINT)
            if select.select([self.screen], [], [], 1.0)[0]:
                return


@pytest.fixture
def chat() -> Iterator[Chat]:
    chat = Chat()
    try:
        chat.read_to("you> ")
        yield chat
    finally:
        chat.keys.close()
        chat.process.kill()
        chat.process.wait()
        chat.screen.close()


def test_it_works_out_sums_and_tells_the_time(chat: Chat):
    assert chat.say("what is 6 * 7?") == 'One moment. [calculate {"expression": "6 * 7"}] The tool says: 42.'
    assert re.fullmatch(r"One moment\. \[clock \{\}\] The tool says: \d\d:\d\d UTC\.", chat.say("What time is it?"))


def test_an_answer_comes_in_pieces(chat: Chat):
    chat.type("hello")
    assert chat.read_to("I ca") == "I ca"
    assert chat.read_to("you> ").startswith("n work out sums")


def test_ctrl_c_stops_a_tool_that_is_running_and_the_model_learns_of_it(chat: Chat):
    chat.type("wait 600 seconds")
    chat.read_to('[wait {"seconds": 600}] ')
    chat.press_ctrl_c()
    assert chat.read_to("you> ") == "[stopped]\nyou> "
    assert chat.say("what happened?") == (
        "The last thing I was told is: Tool call wait with id call_1 was stopped before it finished - "
        "the run was canceled."
    )
    assert chat.say("and 1 + 1?").endswith("The tool says: 2.")


def test_ctrl_c_stops_an_answer_that_is_being_said(chat: Chat):
    chat.type("hello")
    chat.read_to("I ca")
    chat.press_ctrl_c()
    assert chat.read_to("you> ").endswith("[stopped]\nyou> ")
    assert chat.say("2 * 3").endswith("The tool says: 6.")


def test_ctrl_c_at_the_prompt_does_not_end_the_program(chat: Chat):
    chat.press_ctrl_c()
    assert chat.read_to("you> ") == "\n(Ctrl-D ends the program)\nyou> "
    assert chat.say("2 * 3").endswith("The tool says: 6.")


def test_the_end_of_input_ends_it():
    assert run_example("streaming_chat.py") == "you> \nBye.\n"
