"""`suture worker` does the steps of an agent that a module names."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from temporalio.client import Client

from suture.cli import main
from suture.integrations.temporal import DurableAgent
from tests.integrations.temporal.crew import ROOT, make_agent

MODULE = """
import atexit, threading, time
from asyncio import selector_events
from pathlib import Path
from tests.integrations.temporal.crew import make_agent

HERE = Path(__file__).parent
wake = selector_events.BaseSelectorEventLoop._write_to_self

def wake_and_linger(loop):  # as a thread of Temporal's does on a machine that is busy
    wake(loop)
    if (HERE / "busy").exists() and threading.current_thread() is not threading.main_thread():
        for _ in range(50):
            time.sleep(0.01)

selector_events.BaseSelectorEventLoop._write_to_self = wake_and_linger
atexit.register(print, "left")
agent = make_agent(HERE)
"""


def test_a_worker_from_the_command_line_runs_an_agent_and_ends_when_it_is_told_to(target: str, tmp_path: Path):
    (tmp_path / "agents.py").write_text(MODULE)
    command = [sys.executable, "-m", "suture", "worker", "agents:agent", "--address", target, "--task-queue", "cli"]
    with subprocess.Popen(
        command, cwd=tmp_path, env={"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}, stdout=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stdout is not None
        try:
            assert worker.stdout.readline() == "working for agents:agent on task queue cli\n"

            async def scene() -> Any:
                durable = DurableAgent(make_agent(tmp_path), await Client.connect(target), task_queue="cli")
                return await durable.run("post", id=f"cli-{tmp_path.name}")

            assert asyncio.run(scene()).output == "done"
            (tmp_path / "busy").touch()
            worker.send_signal(signal.SIGTERM)
            assert (worker.stdout.read(), worker.wait(30)) == ("left\n", 0)
        finally:
            worker.kill()


def test_what_is_no_agent_is_refused(capsys: Any):
    assert main(["worker", "json:loads"]) == 2
    assert capsys.readouterr().err == "suture: worker: json:loads is not an agent but a function\n"
