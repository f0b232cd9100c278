"""What a glance at a framework's own objects passes over, the thorough look finds whole; and it sees each change."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suture
from suture.integrations.agent_framework import TEXT_WIRE as AGENT_FRAMEWORK_TEXT
from suture.integrations.agent_framework import WIRE as AGENT_FRAMEWORK
from suture.integrations.langchain.wire import WIRE as LANGCHAIN
from suture.integrations.pydantic_ai import WIRE as PYDANTIC_AI
from suture.profiles import PROFILES, get_profile
from suture.wires import Demands, Wire
from tests.guests.agent_framework.talking import write as write_agent_framework
from tests.guests.langchain.wire_messages import write as write_langchain
from tests.guests.pydantic_ai.written import write as write_pydantic_ai
from tests.histories import Step
from tests.repair.test_properties import spread_histories

Write = Callable[[list[Step]], list[Any]]
WIRES: list[tuple[Wire, Write]] = [
    (AGENT_FRAMEWORK, write_agent_framework),
    (AGENT_FRAMEWORK_TEXT, write_agent_framework),
    (LANGCHAIN, write_langchain),
    (PYDANTIC_AI, write_pydantic_ai),
]
each_wire = pytest.mark.parametrize(("wire", "write"), WIRES, ids=lambda value: getattr(value, "name", ""))
histories = spread_histories.map(lambda steps: [step for step in steps if step[0] not in {"inner", "system"}])
profiles = st.sampled_from([name for name in PROFILES if get_profile(name).speaks_of("langchain")])


def thorough(wire: Wire) -> Wire:
    """Return a wire like `wire` that passes nothing at a glance."""
    kind = type(wire)
    return type(kind.__name__, (kind,), {"glance": lambda _, messages, start, demands: start})()  # noqa: ARG005


@each_wire
@given(history=histories, profile=profiles)
@settings(max_examples=30)
def test_a_glance_hides_nothing(wire: Wire, write: Write, history: list[Step], profile: str):
    messages = write(history)
    expected = suture.check(messages, wire=thorough(wire), profile=profile).findings
    assert suture.check(messages, wire=wire, profile=profile).findings == expected


STEPS: list[Step] = [
    step
    for number in range(30)
    for step in [
        ("user", "go"),
        ("turn", [(f"c{number}", "f", '{"q": 1}')]),
        ("result", f"c{number}", "f", "real"),
        ("say", "well"),
    ]
]


@each_wire
def test_a_whole_history_passes_at_a_glance(wire: Wire, write: Write):
    messages = write(STEPS)
    if wire is AGENT_FRAMEWORK_TEXT:
        for message in messages:
            for content in message.contents:
                content.arguments = content.arguments and '{"q": 1}'
    assert wire.glance(messages, 0, Demands()) == len(messages)


@each_wire
def test_a_message_that_was_whole_is_looked_at_anew_when_it_was_changed(wire: Wire, write: Write):
    messages = write(STEPS[:40])
    assert not suture.repair(messages, wire=wire).changed or wire is AGENT_FRAMEWORK_TEXT
    turn = messages[21]
    if wire is LANGCHAIN:
        turn.tool_calls[0]["id"] = "other"
    elif wire is PYDANTIC_AI:
        turn.parts[0].tool_call_id = "other"
    else:
        turn.contents[0].call_id = "other"
    assert {finding.index for finding in suture.repair(messages, wire=wire).report.findings} & {21, 22}


@each_wire
@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_half_a_surrogate_pair_is_replaced_wherever_it_is_sent(wire: Wire, write: Write, place: int):
    half = [
        ("user", "caf\ud83d"),
        ("turn", [("c0", "f", '{"q": "caf\ud83d"}')]),
        ("result", "c0", "f", "caf\ud83d"),
        ("say", "caf\ud83d"),
    ]
    steps: list[Step] = [*STEPS[:place], half[place], *STEPS[place + 1 : 8]]
    messages = write(steps)
    fixed = suture.repair(messages, wire=wire, profile="openai-chat")
    told = str([wire.words(message).texts for message in fixed.messages])
    assert ("caf\ufffd" in told, "ud83d" in told) == (True, False)
    assert {finding.index for finding in fixed.report.findings if finding.problem == "lone-surrogate"} == {place}
    assert suture.repair(fixed.messages, wire=wire, profile="openai-chat").messages is fixed.messages
