"""`suture worker`: does the steps of an agent's runs that Temporal keeps going, until it is stopped."""

import asyncio
import signal
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from typing import Any

from suture.agent import ChatModelAgent
from suture.cli.files import Refusal
from suture.cli.talk import import_named
from suture.errors import SutureError


def run(asked: Namespace) -> int:
    """Be a worker until Ctrl-C or SIGTERM: steps that have begun may end, others go to other workers."""
    try:
        from suture.integrations.temporal import make_worker
    except ModuleNotFoundError as error:
        raise Refusal(f"{error.name} is missing: pip install 'temporalio>=1.35'", "worker") from None
    agent: Any = import_named(asked.agent, "worker")
    if not isinstance(agent, ChatModelAgent):
        raise Refusal(f"{asked.agent} is no agent, but {type(agent).__name__}", "worker")
    deps = import_named(asked.deps, "--deps") if asked.deps else None
    try:
        asyncio.run(_work(asked, partial(make_worker, agent, task_queue=asked.task_queue, deps=deps)))
    except SutureError as error:
        raise Refusal(str(error), "worker") from None
    return 0


async def _work(asked: Namespace, make: Callable[[Any], Any]) -> None:
    from temporalio.client import Client

    try:
        client = await Client.connect(asked.address, namespace=asked.namespace)
    except RuntimeError as error:
        raise Refusal(f"there is no Temporal server: {error}", f"--address {asked.address}") from None
    worker = make(client)
    loop, stopping = asyncio.get_running_loop(), list[asyncio.Task[None]]()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, lambda: stopping.append(loop.create_task(worker.shutdown())))
    print(f"working for {asked.agent} on task queue {worker.task_queue}", flush=True)
    await worker.run()
