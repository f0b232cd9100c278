"""Suture on a real Temporal server that this program starts: the model's turns are activities."""

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from _contest import Case, contest
from ours import make_model
from temporalio.testing import WorkflowEnvironment

from suture import ChatModelAgent
from suture.integrations.temporal import DurableAgent, make_worker
from suture.stores import MemoryStore

_SERVER = Path(sys.executable).parent / "temporal"
_clients: list[Any] = []


@asynccontextmanager
async def _server() -> AsyncIterator[None]:
    start = WorkflowEnvironment.start_local(dev_server_existing_path=str(_SERVER), dev_server_log_level="never")
    async with await start as server:
        _clients.append(server.client)
        yield


async def _ask(case: Case, pay: Callable[[], str]) -> str:
    name, client = f"hiccups-{case['id']}", _clients[0]
    agent = ChatModelAgent(
        name=name, model=make_model(case, case["model"]), tools=[pay], checkpoint_store=MemoryStore()
    )
    async with make_worker(agent, client):
        return str((await DurableAgent(agent, client).run("go", id=name, live=case["streamed"])).output)


if __name__ == "__main__":
    contest(_ask, _server)
