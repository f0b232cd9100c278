"""Workers in several processes, on one PostgreSQL server, with encrypted journals."""

import asyncio
from pathlib import Path
from typing import Any

from temporalio.client import Client

from suture.integrations.temporal import DurableAgent, make_worker
from suture.stores import EncryptedStore, PostgresStore
from tests.agent.durability.victim import Effects
from tests.integrations.temporal.crew import make_agent
from tests.stores.servers import Postgres


def test_workers_with_stores_of_their_own_share_a_run_on_one_server(target: str, tmp_path: Path, postgres: Postgres):
    stores: list[PostgresStore] = []

    def agent() -> Any:
        stores.append(PostgresStore(postgres.conninfo, schema="temporal"))
        return make_agent(tmp_path, store=EncryptedStore(stores[-1], b"k" * 32))

    async def scene() -> Any:
        one, two = [await Client.connect(target) for _ in range(2)]
        durable = DurableAgent(agent(), one, task_queue="pg")
        async with make_worker(agent(), one, task_queue="pg"), make_worker(agent(), two, task_queue="pg"):
            asked = await durable.run("3*post post post / ask", id="pg")
            while asked.interrupts:
                asked = await durable.resume("pg", "you may")
            return asked, b"".join(await stores[0].load("pg"))

    try:
        result, stored = asyncio.run(scene())
    finally:
        for store in stores:
            store.close()
    assert (result.output, len(result.messages)) == ("done", 2 + 3 * (4 + 2))
    assert len(set(Effects(tmp_path / "effects").all())) == len(Effects(tmp_path / "effects").all()) == 9
    assert b"posted" not in stored
