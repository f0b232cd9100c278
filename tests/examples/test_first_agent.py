"""`examples/first_agent.py`: on the local model what happens, on a scripted one every word."""

import asyncio
import re
import runpy

import pytest

from suture import ConfigError, Message, ToolCall
from suture.testing import ScriptedModel
from tests.examples.program import EXAMPLES, run_example
from tests.models.local.asking import needs_model


@needs_model
def test_the_first_agent_calls_a_tool_and_answers_on_the_model_of_this_machine():
    shown = run_example("first_agent.py")
    called = r"  (?P<tool>tides|boats) \{[^{}]*\} …\n  (?P=tool) gave .+\n"
    assert re.fullmatch(rf"{called}model: .*\nfinished: 4 messages\n", shown, re.DOTALL)


def test_the_first_agent_runs_both_tools_of_a_turn_on_a_model_that_asks_for_both(capsys: pytest.CaptureFixture[str]):
    calls = [ToolCall("call_1", "tides", '{"port": "Dover"}'), ToolCall("call_2", "boats", '{"port": "Dover"}')]
    model = ScriptedModel([Message.assistant("Let me look.", tool_calls=calls), "At 06:12, and two boats."])
    asyncio.run(runpy.run_path(str(EXAMPLES / "first_agent.py"))["main"](model))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "model: Let me look."
    assert sorted(lines[1:5]) == sorted(
        [
            '  tides {"port": "Dover"} …',
            "  tides gave 06:12 in Dover",
            '  boats {"port": "Dover"} …',
            '  boats gave ["Alma","Perle"]',
        ]
    )
    assert lines[5:] == ["model: At 06:12, and two boats.", "finished: 5 messages"]


def test_the_first_agent_says_which_models_there_are_if_it_does_not_know_one():
    with pytest.raises(ConfigError, match="'nobody' is no provider and no module; providers: local, openai"):
        asyncio.run(runpy.run_path(str(EXAMPLES / "first_agent.py"))["main"]("nobody:model"))
