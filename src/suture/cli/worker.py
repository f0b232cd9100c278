"""`suture worker` does the steps of runs that Temporal keeps going, `suture recover` goes on with what was left."""

import asyncio
import signal
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from typing import Any

from suture._text import visible
from suture.agent import ChatModelAgent
from suture.cli.files import Refusal
from suture.cli.talk import import_named
from suture.errors import SutureError
from suture.kernel import Outcome
from suture.sessions import recover


def run(asked: Namespace) -> int:
    """Be a worker until Ctrl-C or SIGTERM: steps that have begun may end, others go to other workers."""
    try:
        from suture.integrations.temporal import make_worker
    except ModuleNotFoundError as error:
        raise Refusal(f"{error.name} is missing: pip install 'temporalio>=1.35'", "worker") from None
    agent, deps = _import_agent(asked.agent, "worker"), _import_deps(asked)
    try:
        asyncio.run(_work(asked, partial(make_worker, agent, task_queue=asked.task_queue, deps=deps)))
    except SutureError as error:
        raise Refusal(str(error), "worker") from None
    return 0


def recover_runs(asked: Namespace) -> int:
    """Resume every run of these agents whose process is gone; print how each came out."""
    agents = [_import_agent(name, "recover") for name in asked.agents]
    for agent in agents:
        if agent.checkpoint_store is None:
            raise Refusal(f"agent {agent.name!r} has no checkpoint_store", "recover")
    try:
        return asyncio.run(_recover(agents, deps=_import_deps(asked)))
    except SutureError as error:
        raise Refusal(str(error), "recover") from None


async def _recover(agents: list[ChatModelAgent[Any]], **options: Any) -> int:
    failed = 0
    for store in {id(agent.checkpoint_store): agent.checkpoint_store for agent in agents}.values():
        crew = [agent for agent in agents if agent.checkpoint_store is store]
        for result in await recover(crew, store, **options):
            print(visible(f"{result.checkpoint_id}: {result.outcome.value}"), flush=True)
            failed += result.outcome is Outcome.FAILED
    return 1 if failed else 0


def _import_agent(name: str, command: str) -> ChatModelAgent[Any]:
    agent: Any = import_named(name, command)
    if not isinstance(agent, ChatModelAgent):
        raise Refusal(f"{name} is no agent, but {type(agent).__name__}", command)
    return agent  # pyright: ignore[reportUnknownVariableType] - whatever its output is


def _import_deps(asked: Namespace) -> Any:
    return import_named(asked.deps, "--deps") if asked.deps else None


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
