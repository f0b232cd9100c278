"""`tools/install.py`, which `make setup` runs: how it ends when somebody has had enough of it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

INSTALL = Path(__file__).parents[2] / "tools" / "install.py"
TIMEOUT = 60
PIP = """\
import os, signal, sys

signal.signal(signal.SIGINT, signal.{reaction})
print("Collecting harbour", flush=True)
with open("started", "w") as started:
    started.write(str(os.getpid()))
signal.pause()
"""
"""A pip that takes long."""


def _hear_interrupts() -> None:
    """A shell that runs us in the background has us ignore them."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("reaction", ["default_int_handler", "SIG_IGN"])
def test_ctrl_c_ends_it_and_pip_on_one_line(tmp_path: Path, reaction: str):
    (tmp_path / "pip.py").write_text(PIP.format(reaction=reaction), encoding="utf-8")
    os.mkfifo(tmp_path / "started")
    with subprocess.Popen(
        [sys.executable, str(INSTALL), "harbour"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        start_new_session=True,
        preexec_fn=_hear_interrupts,  # noqa: PLW1509 - the tests start no threads
        text=True,
    ) as process:
        pip = int((tmp_path / "started").read_text())
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        out, err = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, out, err) == (130, "", "stopped; the next make begins this installation again\n")
    with pytest.raises(ProcessLookupError):
        os.kill(pip, 0)
