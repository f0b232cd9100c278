"""One agent or one client for many conversations at once, structured answers, and what a handoff leaves behind."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner, handoff
from openai import BadRequestError, OpenAI
from pydantic import BaseModel

from suture.integrations.openai import wrap
from suture.integrations.openai_agents import PatchToolCalls
from tests.guests.agent_framework import talking as agent_framework
from tests.guests.pydantic_ai import written as pydantic_ai
from tests.guests.scenarios.frameworks import FRAMEWORKS
from tests.guests.scenarios.talking import Setting
from tests.guests.scenarios.with_openai_agents import AgentsTalk
from tests.guests.scenarios.with_pydantic_ai import PydanticTalk
from tests.guests.strict_provider import Script, StrictServer
from tests.histories import Step

CALL: Step = ("turn", [("call_1", "pay", '{"eur": 5}')])
BROKEN: list[Step] = [("user", "Pay."), CALL]


class Answer(BaseModel):
    text: str


@pytest.mark.parametrize(
    ("framework", "option", "tool", "without"),
    [
        ("pydantic-ai", {"output_type": Answer}, "final_result", "raises UserError"),
        ("strands", {"structured_output_model": Answer}, "Answer", "refused"),
    ],
)
def test_a_structured_answer_comes_of_a_broken_history(
    framework: str, option: Any, tool: str, without: str, strict: StrictServer
):
    kind = FRAMEWORKS[framework]
    api = kind.apis[0]

    def answer(*, ours: bool) -> Any:
        async def main() -> Any:
            talk = kind(Setting(api, script.url, ours), **option)
            try:
                return await talk.say("And?", BROKEN)
            finally:
                await talk.close()

        script = strict.script([("call_9", tool, {"text": "Paid."})])
        try:
            return asyncio.run(main())
        except Exception as error:  # noqa: BLE001 - each framework has its own
            return "refused" if script.refused else f"raises {type(error).__name__}"

    assert answer(ours=False) == without
    assert "Paid." in str(answer(ours=True))


def test_what_the_filter_of_a_handoff_leaves_behind_is_mended(strict: StrictServer):
    """The clerk is sent what came last: the result of a call that is cut off, and its own handoff."""

    def cut(data: Any) -> Any:
        return data.clone(input_history=(), pre_handoff_items=data.pre_handoff_items[1:])

    async def play(script: Script, choices: dict[str, Any]) -> str:
        talk = AgentsTalk(Setting("responses", script.url, ours=False))
        try:
            clerk = Agent(name="clerk", model=talk.agent.model)
            talk.agent.handoffs = [handoff(clerk, input_filter=cut)]
            config = RunConfig(tracing_disabled=True, **choices)
            return (await Runner.run(talk.agent, "Pay.", run_config=config)).final_output
        finally:
            await talk.close()

    replies: Any = [[("call_1", "pay", {"eur": 5})], [("call_2", "transfer_to_clerk", {})]]
    with pytest.raises(BadRequestError):
        asyncio.run(play(strict.script(*replies), {}))
    script = strict.script(*replies)
    assert asyncio.run(play(script, {"call_model_input_filter": PatchToolCalls()})) == "Done."
    assert "paid 5" in str(script.bodies[-1])


def echo(body: dict[str, Any]) -> str:
    return f"You said: {body['messages'][-1]['content']}"


async def with_pydantic_ai(url: str, *, ours: bool) -> list[bool]:
    talk = PydanticTalk(Setting("chat", url, ours))

    async def one(number: int) -> bool:
        result = await talk.agent.run(f"I am {number}.", message_history=pydantic_ai.write(broken(number)))
        return result.output == f"You said: I am {number}."

    try:
        return await tried(one)
    finally:
        await talk.close()


async def with_agent_framework(url: str, *, ours: bool) -> list[bool]:
    pytest.importorskip("agent_framework_openai")
    talk = FRAMEWORKS["agent-framework"](Setting("chat", url, ours))

    async def one(number: int) -> bool:
        response = await talk.agent.run(
            [*agent_framework.write(broken(number)), *agent_framework.write([("user", f"I am {number}.")])]
        )
        return response.text == f"You said: I am {number}."

    try:
        return await tried(one)
    finally:
        await talk.close()


async def tried(one: Callable[[int], Awaitable[bool]]) -> list[bool]:
    """Return which of fifty were answered, and rightly."""
    return [each is True for each in await asyncio.gather(*map(one, range(50)), return_exceptions=True)]


def broken(number: int) -> list[Step]:
    """Return the history of a conversation; every other one is broken."""
    return [("user", "Pay."), ("turn", [(f"call_{number}", "pay", '{"eur": 5}')])] if number % 2 else []


@pytest.mark.parametrize("run", [with_pydantic_ai, with_agent_framework])
def test_one_agent_serves_fifty_conversations_at_once(run: Any, strict: StrictServer):
    assert asyncio.run(run(strict.script(say=echo).url, ours=False)) == [number % 2 == 0 for number in range(50)]
    script = strict.script(say=echo)
    assert all(asyncio.run(run(script.url, ours=True)))
    for body in script.bodies:
        number = int(body["messages"][-1]["content"].split()[-1].rstrip("."))
        named = {*re.findall(r"call_\d+", str(body["messages"]))}
        assert named == ({f"call_{number}"} if number % 2 else set())


def test_one_wrapped_client_serves_fifty_threads_at_once(strict: StrictServer):
    script = strict.script(say=echo)
    with OpenAI(api_key="none", base_url=f"{script.url}/v1", max_retries=0) as plain:
        client = wrap(plain)

        def one(number: int) -> str | None:
            call = {"id": f"call_{number}", "type": "function", "function": {"name": "pay", "arguments": "{}"}}
            history: list[Any] = [{"role": "user", "content": "Pay."}, {"role": "assistant", "tool_calls": [call]}]
            said: Any = {"role": "user", "content": f"I am {number}."}
            with pytest.raises(BadRequestError):
                plain.chat.completions.create(model="m", messages=[*history, said])
            return client.chat.completions.create(model="m", messages=[*history, said]).choices[0].message.content

        with ThreadPoolExecutor(50) as pool:
            assert list(pool.map(one, range(50))) == [f"You said: I am {number}." for number in range(50)]
