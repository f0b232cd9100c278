"""A directory with an agent to talk to, and the gates at which it waits until a test opens them."""

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.chat.terminal import PROGRAM, Tmux
from tests.cli.program import TIMEOUT, Done, environment, run

AGENT = Path(__file__).with_name("agent_to_talk_to.py")
EVIL = "\x1b]0;owned\x07\x1b[31m\x9b31m\x7f\u202egnp.exe\x00"
"""What the agent says when it is evil."""


class Harbour:
    """Where `suture chat` is started."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.history = directory / "talk.json"
        self.tools = "harbour:tools"
        shutil.copy(AGENT, directory / "harbour.py")
        self._gates: dict[str, int] = {}
        for name in ("gate", "lock", "word"):
            os.mkfifo(directory / name)
            self._gates[name] = os.open(directory / name, os.O_RDWR | os.O_NONBLOCK)

    def open(self, name: str) -> None:
        """Let one pass."""
        os.write(self._gates[name], b".")

    def hear(self) -> None:
        """Wait until a tool gives word."""
        ready, _, _ = select.select([self._gates["word"]], [], [], TIMEOUT)
        assert ready, "there was no word from it"
        os.read(self._gates["word"], 1)

    def close(self) -> None:
        for pipe in self._gates.values():
            os.close(pipe)

    def command(self, *options: str) -> list[str]:
        return [*PROGRAM, "chat", "--model", "harbour:model", "--tools", self.tools, *options]

    @contextmanager
    def terminal(self, *options: str, **variables: str) -> Iterator[Tmux]:
        """Open a terminal in which somebody talks to the agent."""
        if shutil.which("tmux") is None:
            pytest.skip("tmux is not installed")
        terminal = Tmux(self.command(*options), self.directory, {"TMPDIR": str(self.directory), **variables})
        try:
            terminal.see("you>")
            yield terminal
        finally:
            terminal.close()

    def pipe(self, typed: str | bytes, *options: str) -> Done:
        """Talk to the agent through pipes, to the end, in this process."""
        stdin = typed.encode() if isinstance(typed, str) else typed
        modules, path, scratch = set(sys.modules), [*sys.path], tempfile.tempdir
        try:
            tempfile.tempdir = str(self.directory)
            with chdir(self.directory):
                return run(*self.command(*options)[len(PROGRAM) :], stdin=stdin)
        finally:
            tempfile.tempdir, sys.path[:] = scratch, path
            for name in set(sys.modules) - modules:  # those of this directory: another test has others of their names
                if str(self.directory) in str(getattr(sys.modules[name], "__file__", "")):
                    del sys.modules[name]

    def pipe_apart(self, typed: str | bytes, *options: str, **variables: str) -> Done:
        """Talk to the agent through pipes, to the end, in a process of its own."""
        ended = subprocess.run(
            self.command(*options),
            input=typed.encode() if isinstance(typed, str) else typed,
            capture_output=True,
            timeout=TIMEOUT,
            check=False,
            cwd=self.directory,
            env=environment(**{"TMPDIR": str(self.directory), **variables}),
        )
        return Done(ended.returncode, ended.stdout.decode(), ended.stderr.decode())

    def write(self, messages: list[dict[str, Any]]) -> Path:
        """Make the history file."""
        self.history.write_text(json.dumps({"schema": 1, "messages": messages}), encoding="utf-8")
        return self.history

    def messages(self) -> list[dict[str, Any]]:
        """Return what the history file holds."""
        return json.loads(self.history.read_bytes())["messages"]

    def kept(self) -> list[tuple[str, str]]:
        """Return who said what, as the history file has it."""
        return [(message["role"], message.get("content", "")) for message in self.messages()]
