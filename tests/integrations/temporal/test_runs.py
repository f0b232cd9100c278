"""Runs that Temporal keeps going, on a real server."""

import asyncio
import gzip
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowHistory
from temporalio.worker import Replayer
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from suture import Outcome, tool
from suture.errors import ModelServerError, ResumeError, RunError
from suture.events import Custom, MessageDelta, RetryScheduled, RunFinished, ToolFinished
from suture.integrations import temporal
from suture.integrations.temporal import AgentWorkflow, DurableAgent, make_worker
from suture.kernel import ChatModelAgentMiddleware, interrupt
from suture.sessions import recover
from suture.testing import ScriptedModel
from tests.agent.durability.victim import Effects
from tests.integrations.temporal.crew import make_agent, reply

HISTORIES = Path(__file__).parent / "histories"
RECORDING = "SUTURE_RECORD" in os.environ
"""Whether the histories that runs of later releases must be able to go on from are written anew."""
RUNNER = SandboxedWorkflowRunner(restrictions=SandboxRestrictions.default.with_passthrough_modules("suture", "msgspec"))


def play(target: str, directory: Path, scene: Callable[[DurableAgent, Client], Awaitable[Any]], **settings: Any) -> Any:
    """Play a scene with a worker beside it, in the name of its directory; every workflow in it must replay."""

    async def played() -> Any:
        async with asyncio.timeout(60):
            client = await Client.connect(target)
            agent, queue = make_agent(directory, **settings), str(directory)
            durable = DurableAgent(agent, client, task_queue=queue, heartbeat=5)
            async with make_worker(agent, client, task_queue=queue):
                value = await scene(durable, client)
            async for flow in client.list_workflows(f"TaskQueue = '{queue}'"):
                history = await client.get_workflow_handle(flow.id, run_id=flow.run_id).fetch_history()
                await replay(history)
                if RECORDING:
                    path = HISTORIES / f"{directory.name.removesuffix('0')}.json.gz"
                    path.write_bytes(gzip.compress(history.to_json().encode(), mtime=0))
            return value

    return asyncio.run(played())


async def replay(history: WorkflowHistory) -> None:
    await Replayer(workflows=[AgentWorkflow], workflow_runner=RUNNER).replay_workflow(history)


def name(directory: Path) -> str:
    return f"run-{directory.name}"


@tool(timeout=2)
async def glance() -> str:
    """Take at most two seconds."""
    return "seen"


def test_a_worker_that_dies_in_a_call_is_noticed_by_the_timeout_of_its_tool(target: str, tmp_path: Path):
    async def scene(durable: DurableAgent, client: Client) -> Any:
        await durable.run("post glance", id=name(tmp_path))
        history = await client.get_workflow_handle(name(tmp_path)).fetch_history()
        planned = [event.activity_task_scheduled_event_attributes for event in history.events]
        return sorted(each.heartbeat_timeout.seconds for each in planned if each.activity_type.name == "call")

    assert play(target, tmp_path, scene, tools=[glance]) == [2, 5]


def busy_first(times: int, wait: float = 0.0) -> ScriptedModel[Any]:
    """Return the crew's model, which fails so often before each turn."""

    def say(messages: Any) -> Any:
        attempt = sum(request.messages == messages for request in model.requests)
        return reply(messages) if attempt > times else ModelServerError("busy", status=503, retry_after=wait)

    model: ScriptedModel[Any] = ScriptedModel(say)
    return model


def test_a_failure_that_passes_is_tried_again_inside_of_the_step(target: str, tmp_path: Path):
    async def scene(durable: DurableAgent, _: Client) -> Any:
        result = await durable.run("post", id=name(tmp_path), live=True)
        run = await durable.attach(name(tmp_path))
        return result, [event.attempt async for event in run.events() if isinstance(event, RetryScheduled)]

    model = busy_first(2)
    result, told = play(target, tmp_path, scene, model=model)
    assert (result.output, len(model.requests), told) == ("done", 6, [1, 2, 1, 2])
    assert len(Effects(tmp_path / "effects").all()) == 1


def test_a_failure_that_stays_ends_the_run_and_the_step_is_not_repeated(target: str, tmp_path: Path):
    model = busy_first(100)
    with pytest.raises(RunError, match=r"busy \(status 503\); 3 attempts failed"):
        play(target, tmp_path, lambda durable, _: durable.run("post", id=name(tmp_path)), model=model)
    assert len(model.requests) == 3


def test_a_cancel_ends_the_wait_for_another_attempt(target: str, tmp_path: Path):
    model = busy_first(1, wait=50.0)

    async def scene(durable: DurableAgent, _: Client) -> Any:
        run = await durable.start("post", id=name(tmp_path), live=True)
        async for event in run.events():
            if isinstance(event, RetryScheduled):
                return await run.cancel()
        raise AssertionError("it never waited")

    result = play(target, tmp_path, scene, model=model)
    assert (result.outcome, len(model.requests)) == (Outcome.CANCELLED, 1)


def test_a_run_with_parallel_calls_comes_to_its_end(target: str, tmp_path: Path):
    result = play(target, tmp_path, lambda durable, _: durable.run("2*post post", id=name(tmp_path)))
    assert (result.outcome, result.output) == (Outcome.FINISHED, "done")
    assert [message.role for message in result.messages] == ["user", *["assistant", "tool", "tool"] * 2, "assistant"]
    assert len(set(Effects(tmp_path / "effects").all())) == 4


def test_an_interrupt_is_answered_by_an_update_and_a_wrong_answer_is_refused(target: str, tmp_path: Path):
    async def scene(durable: DurableAgent, client: Client) -> Any:
        asked = await durable.run("post ask", id=name(tmp_path))
        with pytest.raises(ResumeError, match="expects str"):
            await durable.resume(name(tmp_path), 3)
        assert await (await durable.attach(name(tmp_path))).status() == "waiting"
        assert await client.get_workflow_handle(name(tmp_path)).query(AgentWorkflow.status) == "waiting"
        return asked, await durable.resume(name(tmp_path), "you may")

    asked, result = play(target, tmp_path, scene)
    assert (asked.outcome, [item.info for item in asked.interrupts]) == (Outcome.INTERRUPTED, ["May I?"])
    assert [message.content for message in result.messages][-3:] == ["posted", "you may", "done"]
    assert len(Effects(tmp_path / "effects").all()) == 1


def test_of_two_answers_to_one_question_the_second_is_refused(target: str, tmp_path: Path):
    async def scene(durable: DurableAgent, _: Client) -> Any:
        await durable.run("ask", id=name(tmp_path))
        run = await durable.attach(name(tmp_path))
        with pytest.raises(ResumeError, match="ended before this answer was used"):
            await asyncio.gather(run.answer("one"), run.answer("two"))
        return await run.result()

    assert play(target, tmp_path, scene).messages[2].content in ("one", "two")


def test_a_hook_may_interrupt_too(target: str, tmp_path: Path):
    class Gate(ChatModelAgentMiddleware[Any]):
        async def before_model_rewrite_state(self, state: Any, model_context: Any) -> Any:
            assert await interrupt("go on?", expects=bool) is True

    async def scene(durable: DurableAgent, _: Client) -> Any:
        asked = await durable.run("post", id=name(tmp_path))
        for _turn in range(2):
            assert [item.info for item in asked.interrupts] == ["go on?"]
            asked = await durable.resume(name(tmp_path), True)
        return asked

    assert play(target, tmp_path, scene, middlewares=[Gate()]).output == "done"


def test_a_conversation_goes_on_and_the_same_key_is_run_once(target: str, tmp_path: Path):
    async def scene(durable: DurableAgent, _: Client) -> Any:
        await durable.run("post", id=name(tmp_path), key="first")
        again = await durable.run("post", id=name(tmp_path), key="first")
        return again, await durable.run("post post", id=name(tmp_path), key="second")

    again, result = play(target, tmp_path, scene)
    assert len(again.messages) == 4
    assert len(result.messages) == 9
    assert len(Effects(tmp_path / "effects").all()) == 3


def test_a_cancelled_run_stops_its_tools_before_it_ends(target: str, tmp_path: Path):
    async def scene(durable: DurableAgent, _: Client) -> Any:
        run = await durable.start("post hang", id=name(tmp_path), live=True)
        seen: set[type] = set()
        async for event in run.events():
            seen.add(type(event))
            if seen >= {Custom, ToolFinished}:  # one call hangs, the other has ended
                break
        return await run.cancel(), await run.status()

    result, status = play(target, tmp_path, scene)
    assert (result.outcome, status) == (Outcome.CANCELLED, "stopped")
    assert result.messages[2].content == "posted"
    assert "stopped" in str(result.messages[3].content) or "cancel" in str(result.messages[3].content)


def test_a_run_that_waits_can_be_cancelled(target: str, tmp_path: Path):
    async def scene(durable: DurableAgent, _: Client) -> Any:
        await durable.run("ask", id=name(tmp_path))
        return await (await durable.attach(name(tmp_path))).cancel()

    assert play(target, tmp_path, scene).outcome is Outcome.CANCELLED


def test_live_events_come_with_deltas_in_order_and_without_gaps(target: str, tmp_path: Path):
    async def scene(durable: DurableAgent, _: Client) -> Any:
        run = await durable.start("post", id=name(tmp_path), live=True)
        return [event async for event in run.events()]

    events = play(target, tmp_path, scene)
    assert [event.sequence for event in events] == list(range(len(events)))
    assert "".join(event.text for event in events if isinstance(event, MessageDelta)) == "done"
    assert isinstance(events[-1], RunFinished)


def test_a_reader_of_events_that_never_come_is_let_go_when_the_run_has_ended(target: str, tmp_path: Path):
    async def scene(durable: DurableAgent, _: Client) -> Any:
        run = await durable.start("post", id=name(tmp_path))
        return [event async for event in run.events()], await run.status()

    assert play(target, tmp_path, scene) == ([], "finished")


def test_a_tool_error_that_ends_the_run_is_told_to_the_client(target: str, tmp_path: Path):
    async def scene(durable: DurableAgent, _: Client) -> Any:
        with pytest.raises(RunError, match="no such page"):
            await durable.run("post fail", id=name(tmp_path))
        return await (await durable.attach(name(tmp_path))).status()

    assert play(target, tmp_path, scene, tool_errors="raise") == "failed"


def test_a_workflow_goes_on_as_new_with_an_answer_on_its_way(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(temporal, "LARGEST", 8_000)

    async def scene(durable: DurableAgent, client: Client) -> Any:
        run = await durable.start("30*post", id=name(tmp_path))
        result = await run.result()
        first = client.get_workflow_handle(name(tmp_path))
        executions = [flow async for flow in client.list_workflows(f"WorkflowId = '{first.id}'")]
        return result, len(executions)

    result, executions = play(target, tmp_path, scene)
    assert (result.output, len(result.messages)) == ("done", 62)
    assert executions > 2
    assert len(set(Effects(tmp_path / "effects").all())) == 30


def test_nobody_else_runs_what_temporal_keeps_going(target: str, tmp_path: Path):
    async def scene(durable: DurableAgent, _: Client) -> Any:
        agent = durable.agent
        await durable.run("ask", id=name(tmp_path))
        with pytest.raises(ResumeError, match="run by temporal"):
            await agent.resume(name(tmp_path), "yes")
        with pytest.raises(ResumeError, match="run by temporal"):
            await agent.run("post", checkpoint_id=name(tmp_path))
        recovered = await recover([agent], agent.checkpoint_store)
        return recovered, await durable.resume(name(tmp_path), "yes")

    recovered, result = play(target, tmp_path, scene)
    assert recovered == []
    assert result.output == "done"


def test_a_run_whose_workflow_is_lost_goes_on_when_it_is_attached_to(target: str, tmp_path: Path):
    async def scene(durable: DurableAgent, client: Client) -> Any:
        await durable.run("post ask", id=name(tmp_path))
        await client.get_workflow_handle(name(tmp_path)).terminate()
        return await durable.resume(name(tmp_path), "yes")

    assert play(target, tmp_path, scene).output == "done"
    assert len(Effects(tmp_path / "effects").all()) == 1


@pytest.mark.parametrize("path", sorted(HISTORIES.glob("*.json.gz")), ids=lambda path: path.name.partition(".")[0])
def test_a_workflow_of_an_earlier_release_goes_on_as_it_began(path: Path):
    text = gzip.decompress(path.read_bytes()).decode()
    asyncio.run(replay(WorkflowHistory.from_json(path.name.partition(".")[0], text)))


def test_there_are_workflows_of_earlier_releases():
    assert len(list(HISTORIES.glob("*.json.gz"))) >= 5
