"""A real terminal with a program in it: one that draws what is written, and one that only keeps it."""

import fcntl
import os
import re
import select
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import termios
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from time import monotonic

from tests.cli.program import TIMEOUT, environment

SUTURE = Path(sys.executable).with_name("suture")
PROGRAM = [str(SUTURE)] if SUTURE.exists() else [sys.executable, "-m", "suture"]
ROWS, COLUMNS = 40, 100
KEYS = {"C-c": b"\x03", "C-d": b"\x04", "Enter": b"\r", "Up": b"\x1b[A"}

_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]")
_TAKE_TERMINAL = (
    "import fcntl, os, signal, sys, termios; signal.signal(signal.SIGINT, signal.SIG_DFL); "
    "fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)


class Terminal(ABC):
    """Somebody who types, and sees what is shown."""

    raw: bytes
    """What the program wrote, as it wrote it."""

    @abstractmethod
    def type(self, text: str) -> None:
        """Type letters."""

    @abstractmethod
    def press(self, key: str) -> None:
        """Press a key of `KEYS`."""

    @abstractmethod
    def screen(self) -> str:
        """Return all that was shown so far."""

    @abstractmethod
    def close(self) -> None:
        """Take the terminal away."""

    @abstractmethod
    def _more(self, seconds: float) -> bool:
        """Wait until the program writes more; tell whether it may write still more, as far as that can be known."""

    def wait_until(self, is_shown: Callable[[], bool], what: str) -> None:
        """Wait until something is shown."""
        deadline, goes_on = monotonic() + TIMEOUT, True
        while not is_shown():
            assert goes_on, f"it ended, and did not show {what}:\n{self.screen()}"
            assert monotonic() < deadline, f"waited for {what}, saw:\n{self.screen()}"
            goes_on = self._more(deadline - monotonic())


class Tmux(Terminal):
    """A pane of tmux: what is seen is what its terminal emulator makes of it."""

    def __init__(
        self, command: Sequence[str], directory: Path, variables: Mapping[str, str], columns: int = COLUMNS
    ) -> None:
        self._home = Path(mkdtemp(prefix="suture-tmux-"))  # the path of a socket must be short
        self._socket = str(self._home / "socket")
        self._variables = environment(LC_ALL="C.UTF-8", TMUX=None, **variables)
        pipe = self._home / "written"
        os.mkfifo(pipe)
        self.raw = b""
        self._pipe = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)  # so that it does not end before somebody writes to it
        wait_for = shlex.join(["tmux", "-S", self._socket, "wait-for"])
        program = ["sh", "-c", 'echo $$ > "$0"; exec "$@"', str(self._home / "pid"), *command]
        around = (
            f"trap : INT; {wait_for} begin; {shlex.join(program)}; echo $? > {self._home}/status; {wait_for} -S ended"
        )
        size = ["-x", str(columns), "-y", str(ROWS), "-c", str(directory)]
        self._tmux("-f", "/dev/null", "-u", "new-session", "-d", *size, f"{around}; {wait_for} never")
        self._tmux("pipe-pane", "-O", f"cat > {shlex.quote(str(pipe))}")
        self._tmux("wait-for", "-S", "begin")

    def _tmux(self, *arguments: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", self._socket, *arguments],
            env=self._variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT,
            check=True,
        )
        return done.stdout.decode()

    def type(self, text: str) -> None:
        self._tmux("send-keys", "-l", "--", text)

    def press(self, key: str) -> None:
        self._tmux("send-keys", key)

    def paste(self, text: str) -> None:
        self._tmux("set-buffer", "--", text)
        self._tmux("paste-buffer", "-p")

    def screen(self) -> str:
        return self.rows("-J")

    def rows(self, *options: str) -> str:
        """Return all rows that were shown so far; with `-J` those that one line was wrapped into are one."""
        shown = self._tmux("capture-pane", "-p", "-S", "-", *options)
        return "\n".join(line.rstrip() for line in shown.splitlines()).rstrip("\n") + "\n"

    def wait(self) -> int:
        self._tmux("wait-for", "ended")
        return int((self._home / "status").read_text())

    def close(self) -> None:
        with suppress(subprocess.CalledProcessError):
            self._tmux("kill-server")
        os.close(self._pipe)
        shutil.rmtree(self._home)

    @property
    def pid(self) -> int:
        return int((self._home / "pid").read_text())

    @property
    def title(self) -> str:
        return self._tmux("display-message", "-p", "#{pane_title}")

    def enter(self, text: str) -> None:
        """Type a line."""
        self.type(text)
        self.press("Enter")

    def see(self, text: str, times: int = 1) -> str:
        """Wait until `text` is shown so many times; return all that is shown then."""
        self.wait_until(lambda: self.screen().count(text) >= times, repr(text))
        return self.screen()

    def say(self, text: str) -> str:
        """Type a line; return what is shown behind it up to the next prompt."""
        prompts = self.screen().count("you>")
        self.enter(text)
        shown = self.see("you>", prompts + 1)
        return shown[shown.rindex(f"you> {text}\n") + len(f"you> {text}\n") : shown.rindex("you>")].rstrip("\n")

    def _more(self, seconds: float) -> bool:
        select.select([self._pipe], [], [], max(0.0, seconds))
        try:
            written = os.read(self._pipe, 65536)
        except BlockingIOError:
            return True
        self.raw += written
        return True


class Bare(Terminal):
    """A pseudo-terminal that nothing is drawn on: what is seen is what was written, without its escapes."""

    def __init__(self, command: Sequence[str], directory: Path, variables: Mapping[str, str]) -> None:
        self._ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self._process = subprocess.Popen(
            [sys.executable, "-c", _TAKE_TERMINAL, shutil.which(command[0]) or command[0], *command[1:]],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=directory,
            start_new_session=True,
            env=environment(LC_ALL="C.UTF-8", **variables),
        )
        os.close(theirs)
        self.raw = b""

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def press(self, key: str) -> None:
        os.write(self._ours, KEYS[key])

    def screen(self) -> str:
        return _ESCAPE.sub("", self.raw.decode(errors="replace").replace("\r\n", "\n")).replace("\r", "")

    def close(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._ours)

    def _more(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._ours], [], [], max(0.0, seconds))
        if not ready:
            return True
        try:
            written = os.read(self._ours, 65536)
        except OSError:  # how Linux says that nobody holds the other end any more
            return False
        self.raw += written
        return bool(written)
