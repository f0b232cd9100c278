"""Agents on the local model: loops that end, answers of a type, runs that are stopped and runs at once."""

import asyncio
import re
import sys
from pathlib import Path
from shlex import quote
from typing import Any, Literal
from urllib.request import Request, urlopen

import pytest
from msgspec import Struct

from suture import ChatModelAgent, check, tool
from suture.events import MessageDelta, ModelStarted, ToolStarted
from suture.messages import AgenticMessage, Message
from suture.models import LocalModel, ModelRequest, closing
from suture.models.local import _KEY, _STEP
from tests.models.local.asking import ENDLESS, PATIENCE, ask, needs_model

pytestmark = needs_model

Port = Literal["Dover", "Hull"]


@pytest.mark.parametrize("wire", ["message", "agentic"])
def test_a_tool_gets_typed_arguments_and_the_run_ends_with_words(wire: Any):
    taken: list[tuple[object, object]] = []

    @tool(thread=False)
    def tides(port: Port, days: Literal[1, 2]) -> str:
        """Look up the tides."""
        taken.append((port, days))
        return "06:12"

    agent: Any = ChatModelAgent(model=LocalModel(wire=wire, options={"max_tokens": 40}), tools=[tides])
    result = agent.run_sync("Tides in Dover for 2 days?", options={"tool_choice": "required"})
    ((port, days),) = taken
    assert port in {"Dover", "Hull"}
    assert days in {1, 2}
    assert (result.outcome, len(result.messages)) == ("finished", 4)
    assert result.output
    assert result.usage.completion_tokens > 0


def test_an_answer_of_a_type_is_of_that_type():
    class Boat(Struct):
        colour: Literal["red", "green"]
        length: int

    result = ChatModelAgent(model=LocalModel(), output_type=Boat).run_sync("A red boat of 9 metres.")
    assert isinstance(result.output, Boat)


def test_two_runs_at_once_take_turns_and_each_gets_its_own_answer():
    async def said(word: str) -> object:
        agent = ChatModelAgent(model=LocalModel())
        result = await agent.run("Say it.", options={"output_schema": {"enum": [f"this is {word}"]}})
        return result.output

    async def main() -> tuple[object, ...]:
        return tuple(await asyncio.gather(said("red"), said("green"), said("blue")))

    assert asyncio.run(main()) == ('"this is red"', '"this is green"', '"this is blue"')


def test_events_call_the_model_by_its_weights():
    async def main() -> list[str]:
        async with ChatModelAgent(model=LocalModel(options={"max_tokens": 1})).stream("Hi.") as run:
            return [event.model async for event in run if isinstance(event, ModelStarted)]

    assert asyncio.run(main()) == ["local:SmolLM2-135M-Instruct.Q4_1"]


def test_a_run_that_is_cancelled_in_the_middle_of_a_text_keeps_it_and_frees_the_model():
    async def main() -> None:
        model = LocalModel()
        before = await steps_of(model)
        agent = ChatModelAgent(model=model)
        said = ""
        async with agent.stream("Go.", options={"output_schema": ENDLESS, "max_tokens": 6000}) as run:
            async for event in run:
                if isinstance(event, MessageDelta):
                    said += event.text
                if len(said) > 10:
                    break
            stopped = await run.cancel()
        assert stopped.outcome == "cancelled"
        assert stopped.messages[1].content.startswith(said)
        await ask(model, "Hi.", max_tokens=2)
        assert await steps_of(model) - before < 6000  # a step is a token: the rest was never said

    asyncio.run(main())


def test_a_run_that_is_cancelled_while_its_prompt_is_read_frees_the_model():
    async def main() -> None:
        model = LocalModel()
        before = await steps_of(model)
        reading = asyncio.create_task(ask(model, "The sea is blue. " * 1000, max_tokens=1))
        while await steps_of(model) == before:  # noqa: ASYNC110 - what another process does is no event here
            await asyncio.sleep(0.01)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await ask(model, "Hi.", max_tokens=1)
        assert await steps_of(model) - before < 5 * 1000 // _STEP  # the rest of the prompt was never read

    asyncio.run(main())


async def steps_of(model: LocalModel[Any]) -> int:
    """Return how many steps the engine has computed: of a prompt `_STEP` tokens each, of a reply one."""
    if model.base_url is None:
        await ask(model, "Hi.", max_tokens=1)
    asked = Request(f"{str(model.base_url).removesuffix('/v1')}/metrics", headers={"Authorization": f"Bearer {_KEY}"})
    with await asyncio.to_thread(urlopen, asked, timeout=PATIENCE) as answer:
        (steps,) = re.findall(r"^llamacpp:n_decode_total (\d+)", answer.read().decode(), re.MULTILINE)
    return int(steps)


@pytest.mark.parametrize("wire", ["message", "agentic"])
def test_a_tool_that_is_interrupted_leaves_a_history_that_can_be_gone_on_with(wire: Any):
    @tool
    async def forecast(port: Port) -> str:
        """Ask the weather service."""
        await asyncio.Event().wait()
        return port

    async def main() -> None:
        agent: Any = ChatModelAgent(model=LocalModel(wire=wire, options={"max_tokens": 8}), tools=[forecast])
        async with agent.stream("Rain in Hull?", options={"tool_choice": "required"}) as run:
            async for event in run:
                if isinstance(event, ToolStarted):
                    break
            stopped = await run.cancel()
        assert len(stopped.messages) == 3
        assert check(stopped.messages).acceptable
        user: Any = Message.user if wire == "message" else AgenticMessage.user
        result = await agent.run([*stopped.messages, user("Never mind. Hello!")], options={"tool_choice": "none"})
        assert result.outcome == "finished"
        assert result.messages[:3] == stopped.messages

    asyncio.run(main())


SLOW_INTERPRETER = """#!/bin/sh
touch {place}/waits
for second in $(seq {patience}); do
    [ -e {place}/go ] && exec {python} "$@"
    sleep 1
done
"""
"""An interpreter that begins once there is a file that says so."""


def test_the_event_loop_turns_while_the_model_is_loaded_and_speaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    interpreter = tmp_path / "python"
    interpreter.write_text(
        SLOW_INTERPRETER.format(place=quote(str(tmp_path)), patience=PATIENCE, python=quote(sys.executable))
    )
    interpreter.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(interpreter))
    turns = 0

    async def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0.001)

    async def load() -> None:
        while not (tmp_path / "waits").exists():  # noqa: ASYNC110 - what another process does is no event here
            await asyncio.sleep(0.01)
        (tmp_path / "go").touch()  # if the loop stood still meanwhile, the model would never be loaded

    async def main() -> list[int]:
        model: LocalModel[Message] = LocalModel(context_size=2048)  # no other test has loaded this one
        turning, loading = asyncio.create_task(turn()), asyncio.create_task(load())
        request = ModelRequest("", [Message.user("Say hello.")], (), {"max_tokens": 20})
        async with closing(model.stream(request)) as pieces:
            seen = [turns async for _ in pieces]
        turning.cancel()
        await loading
        return seen

    seen = asyncio.run(main())
    assert 0 < seen[0] < seen[-1]
