"""Talking to the process that holds a local model: one for each file and its settings, for all runs and event loops.

It is started when something is first asked, and again if it should have ended. Threads write to it and read from it,
so no event loop waits for a pipe. It ends with this program, or if it goes on with what was called off.
"""

import asyncio
import atexit
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread, Timer
from typing import Any, NamedTuple, TypeAlias

from suture.errors import ContextLengthError, ModelError, ModelRequestError, ModelServerError
from suture.models import _local_turns

__all__ = ["Question", "Settings", "ask"]

Tell: TypeAlias = Callable[[Mapping[str, Any]], None]

_PROGRAM = Path(__file__).with_name("_local_child.py")
_WAIT = 5.0
"""How many seconds a process that was killed may take to end."""


class Settings(NamedTuple):
    """What a process is started with; those who have the same share one.

    >>> Settings("weights.gguf") == Settings("weights.gguf", threads=1)
    True
    """

    path: str
    threads: int = 1
    context_size: int = 8192


class Question(NamedTuple):
    """One request: in the form of Chat Completions, and a `response_format` in case that in it is refused.

    >>> Question({"messages": []}).fallback is None
    True
    """

    payload: Mapping[str, Any]
    fallback: Mapping[str, Any] | None = None


async def ask(settings: Settings, question: Question) -> AsyncGenerator[Mapping[str, Any]]:
    """Yield `{"text": …}` as it is made, and `{"end": …, "usage": …}` last. Closing this stops the model."""
    loop = asyncio.get_running_loop()
    events: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()

    def tell(event: Mapping[str, Any]) -> None:
        # The loop may be gone by the time something that nobody waits for is told.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(events.put_nowait, event)

    process = _PROCESSES.get(settings)
    number = process.ask(question, tell)
    try:
        ended = False
        while not ended:
            event = await events.get()
            if "error" in event:
                raise _failure(event["error"])
            ended = "end" in event
            yield event
    finally:
        process.call_off(number)


def _failure(error: Mapping[str, Any]) -> ModelError:
    reason, kind = str(error.get("message", "it gives no reason")), error.get("type")
    if kind == "exceed_context_size_error":
        tokens, room = error.get("n_prompt_tokens"), error.get("n_ctx")
        return ContextLengthError(
            f"the prompt has {tokens} tokens, and the context {room}; give a larger context_size, or a shorter history",
            provider="local",
        )
    if kind == "ended":
        return ModelServerError(reason, provider="local")
    if kind == "fatal":
        return ModelError(reason, provider="local")
    return ModelRequestError(reason, provider="local")


class _Process:
    """One process from its start to its end, and who waits for what it says."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = Lock()
        self._numbers = count(1)
        self._listeners: dict[int, Tell] = {}
        self._turns = _local_turns.Turns()
        self._watcher: Timer | None = None
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        self._child: subprocess.Popen[bytes] | None = None
        self._fatal = ""
        self.ended = False
        self._thread = Thread(target=self._run, name="suture-local-model", daemon=True)
        self._thread.start()

    def ask(self, question: Question, tell: Tell) -> int:
        """Send a request, to be served when its turn comes; `tell` is called from another thread."""
        with self._lock:
            number = next(self._numbers)
            if self.ended:
                tell(self._epitaph())
            else:
                self._send({"id": number, **question._asdict()})
                self._listeners[number] = tell
                self._turns.ask(number)
        return number

    def call_off(self, number: int) -> None:
        """Let go of a request, whether it was served or not."""
        with self._lock:
            if self._listeners.pop(number, None) is not None:
                self._send({"cancel": number})
                self._turns.call_off(number)
                if self._watcher is None:
                    self._watch()

    def _watch(self) -> None:
        self._watcher = Timer(_local_turns.PATIENCE, self._look)
        self._watcher.daemon = True
        self._watcher.start()

    def _look(self) -> None:
        """End the process if it is stuck: whoever waits for it is told so, and the next to ask starts another."""
        with self._lock:
            self._watcher = None
            if self._turns.is_stuck:
                self._kill()
            elif self._turns.is_watched and not self.ended:
                self._watch()

    def stop(self) -> None:
        """End the process, and wait until it has."""
        with self._lock:
            self._kill()
        self._thread.join(_WAIT)

    def _kill(self) -> None:
        self.ended = True
        if self._child is not None:
            self._child.kill()

    def disown(self) -> None:
        """Leave the process to the one that we were forked from: it sees that end once nobody else holds its pipes."""
        for stream in (self._child.stdin, self._child.stdout) if self._child is not None else ():
            if stream is not None:
                stream.close()

    def _send(self, line: Mapping[str, Any]) -> None:
        self._lines.put(json.dumps(line).encode() + b"\n")

    def _run(self) -> None:
        """See the process from its start to its end; then tell those who still wait."""
        try:
            try:
                child = self._start()
            except (OSError, TypeError) as error:  # the latter where there is no interpreter to start
                self._fatal = f"no process could be started for the model: {error}"
            else:
                self._attend(child)
        finally:
            with self._lock:
                self.ended = True
                listeners, self._listeners = list(self._listeners.values()), {}
            for tell in listeners:
                tell(self._epitaph())

    def _attend(self, child: subprocess.Popen[bytes]) -> None:
        """Pass on what the process says, until it says nothing more."""
        writer = Thread(target=self._write, args=(child,), name="suture-local-model-writer", daemon=True)
        writer.start()
        with child:
            try:
                self._read(child)
            finally:
                child.kill()
                self._lines.put(None)
                writer.join()

    def _start(self) -> subprocess.Popen[bytes]:
        """Start the process: away from the terminal, whose Ctrl-C is not for it, and with our own search path."""
        path = os.pathsep.join(entry for entry in sys.path if entry)
        child = subprocess.Popen(  # noqa: S603 - our own program in our own interpreter
            [sys.executable, "-P", str(_PROGRAM), json.dumps(self._settings._asdict())],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        with self._lock:
            self._child = child
            if self.ended:
                child.kill()
        return child

    def _write(self, child: subprocess.Popen[bytes]) -> None:
        with suppress(OSError):  # it has ended: the one who reads finds out
            while (line := self._lines.get()) is not None:
                rest = memoryview(line)
                while rest:
                    rest = rest[child.stdin.write(rest) :]  # pyright: ignore[reportOptionalMemberAccess]

    def _read(self, child: subprocess.Popen[bytes]) -> None:
        read, rest = child.stdout.read, b""  # pyright: ignore[reportOptionalMemberAccess]
        while chunk := read(65536):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._pass_on(json.loads(line))

    def _pass_on(self, event: Mapping[str, Any]) -> None:
        if "fatal" in event:
            self._fatal = (
                f"{self._settings.path} could not be loaded ({event['fatal']}): "
                "is it a whole GGUF file, and is there memory for it?"
            )
            return
        if "loaded" in event:
            with self._lock:
                self._turns.begin()
            return
        number = event["id"]
        with self._lock:
            ends = "end" in event or "error" in event
            if ends:
                self._turns.end(number)
            tell = self._listeners.pop(number, None) if ends else self._listeners.get(number)
        if tell is not None:
            tell(event)

    def _epitaph(self) -> Mapping[str, Any]:
        if self._fatal:
            return {"error": {"type": "fatal", "message": self._fatal}}
        status = self._child.returncode if self._child is not None else None
        return {"error": {"type": "ended", "message": f"the process of the model ended (status {status}); ask again"}}


class _Processes:
    """The processes that there are."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._held: dict[Settings, _Process] = {}

    def get(self, settings: Settings) -> _Process:
        """Return the process for `settings`, started if need be."""
        with self._lock:
            process = self._held.get(settings)
            if process is None or process.ended:
                process = self._held[settings] = _Process(settings)
        return process

    def stop(self) -> None:
        """End them all."""
        for process in list(self._held.values()):
            process.stop()

    def forget(self) -> None:
        """Begin anew in a process that was forked: the threads have stayed behind."""
        self._lock = Lock()
        held, self._held = self._held, {}
        for process in held.values():
            process.disown()


_PROCESSES = _Processes()
atexit.register(_PROCESSES.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_PROCESSES.forget)
