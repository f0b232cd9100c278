"""Run our agent and pydantic-ai's on a real Temporal server, and count the bytes of the workflows' histories.

Runs in `.venv-bench-temporal`. Like all programs of the benchmark it is asked by its parent: one JSON object a line.
"""

import asyncio
import json
import os
import sys
import tempfile
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic_ai.durable_exec.temporal import PydanticAIPlugin
from temporal_peer import PeerWorkflow
from temporalio.client import Client, WorkflowFailureError
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from suture import ChatModelAgent, Message, ToolCall, tool
from suture.events import MessageDelta
from suture.integrations.temporal import DurableAgent, make_worker
from suture.stores import SQLiteStore
from suture.testing import ScriptedModel


def _reply(messages: Any) -> Any:
    calls, size = map(int, str(messages[0].content).split())
    taken = sum(message.role == "assistant" for message in messages)
    return (
        "done"
        if taken == calls
        else Message.assistant("Go on.", [ToolCall(f"c{taken}", "read", f'{{"size": {size}}}')])
    )


@tool
async def read(size: int) -> str:
    """Return a page."""
    return "x" * size


async def _run_ours(client: Client, directory: Path, calls: int, size: int) -> dict[str, Any]:
    with SQLiteStore(directory / "runs.db") as store:
        model = ScriptedModel(_reply, chunk_size=2)
        agent = ChatModelAgent(name="ours", model=model, tools=[read], checkpoint_store=store, max_iterations=calls + 1)
        durable, deltas = DurableAgent(agent, client), 0
        async with make_worker(agent, client):
            run = await durable.start(f"{calls} {size}", id="ours", live=True)
            async for event in run.events():
                deltas += isinstance(event, MessageDelta)
            result = await run.result()
    executions: list[int] = []
    run_id: str | None = (await client.get_workflow_handle("ours").describe()).raw_info.first_run_id
    while run_id:
        handle = client.get_workflow_handle("ours", run_id=run_id)
        history = await handle.fetch_history()
        executions.append(sum(event.ByteSize() for event in history.events))
        run_id = history.events[-1].workflow_execution_continued_as_new_event_attributes.new_execution_run_id
    said = sum(len(str(message.content)) for message in result.messages)
    return {"outcome": result.outcome.value, "executions": executions, "deltas": deltas, "said": said}


async def _run_peer(client: Client, calls: int, size: int) -> dict[str, Any]:
    options: dict[str, Any] = {"id": "peer", "task_queue": "peer", "execution_timeout": timedelta(minutes=20)}
    async with Worker(client, task_queue="peer", workflows=[PeerWorkflow]):
        handle = await client.start_workflow(PeerWorkflow.run, f"{calls} {size}", **options)
        try:
            outcome = f"finished: {await handle.result()}"
        except WorkflowFailureError as error:
            outcome = f"{type(error.cause).__name__}: {error.cause}"
    info = (await handle.describe()).raw_info
    return {"outcome": outcome, "executions": [info.history_size_bytes], "events": info.history_length}


async def _main() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # the server has something to say as well
    server = str(Path(sys.executable).parent / "temporal")
    local = WorkflowEnvironment.start_local(
        dev_server_existing_path=server, dev_server_log_level="never", dev_server_startup_timeout=timedelta(minutes=2)
    )
    async with await local as environment:
        target = environment.client.service_client.config.target_host
        print(json.dumps({"version": f"pydantic-ai {version('pydantic-ai-slim')}"}), file=answers)
        while line := await asyncio.to_thread(sys.stdin.readline):
            asked = json.loads(line)
            calls, size = asked["calls"], asked["size"]
            with tempfile.TemporaryDirectory() as directory:
                if asked["who"] == "ours":
                    told = await _run_ours(await Client.connect(target), Path(directory), calls, size)
                else:
                    told = await _run_peer(await Client.connect(target, plugins=[PydanticAIPlugin()]), calls, size)
            print(json.dumps(told), file=answers)


if __name__ == "__main__":
    asyncio.run(_main())
