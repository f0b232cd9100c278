"""`examples/writing_a_middleware.py`."""

import re

from tests.examples.program import run_example


def test_the_middleware_tells_of_every_step_in_its_order():
    shown = re.sub(r"\d+ ms", "… ms", run_example("writing_a_middleware.py"))
    head, _, rest = shown.partition("before_agent")
    around = "retry > event sender > Timing.wrap_model_call > fit > callbacks > ScriptedModel"
    turn = f"before_model_rewrite_state > {around}"
    assert f"model turn: PatchToolCalls.before_model_rewrite_state > Timing.{turn}" in head
    assert f"before_agent{rest}".splitlines() == [
        "before_agent: tools tides",
        "before turn 1: 1 messages",
        "  model harbour/1.1: … ms",
        "after turn 1: tides",
        "  tool tides: … ms",
        "before turn 2: 3 messages",
        "  model harbour/2.1: … ms",
        "after turn 2: At 06:12 in Dover.",
        "after_agent: finished, 2 turns, 3 timed",
        "event timing: model harbour/1.1, tool tides, model harbour/2.1",
        "the model was told: You know the tides. Be brief.",
    ]


def test_the_time_of_a_tool_is_the_time_that_it_took():
    found = re.search(r"tool tides: (\d+) ms", run_example("writing_a_middleware.py"))
    assert found
    assert int(found[1]) >= 20
