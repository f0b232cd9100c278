"""The real command, run as a user runs it, and small histories to feed it with."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Mapping, Sequence
from io import BytesIO, TextIOWrapper
from pathlib import Path
from tempfile import gettempdir
from typing import Any, NamedTuple

from suture.cli import main

TIMEOUT = 60
BYTECODE = str(Path(gettempdir()) / f"suture-bytecode-{os.getuid()}")
COMMAND = [sys.executable, "-m", "suture"]
USER = {"role": "user", "content": "What is the weather in Kyoto?"}
ANSWER = {"role": "assistant", "content": "Sunny."}
STOP = {"role": "user", "content": "Never mind."}


def turn(*ids: str, arguments: str = '{"city": "Kyoto"}') -> dict[str, Any]:
    """Return an assistant message that calls `weather` once per id, as Chat writes it."""
    function = {"name": "weather", "arguments": arguments}
    return {"role": "assistant", "tool_calls": [{"id": i, "type": "function", "function": function} for i in ids]}


def result(call_id: str, text: str = "sunny") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


GOOD = [USER, turn("call_1"), result("call_1"), ANSWER]
DANGLING = [USER, turn("call_1"), STOP]
UNMENDABLE = [
    USER,
    {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "get weather!", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "sunny"}]},
]


class Done(NamedTuple):
    """How a run ended and what it wrote."""

    status: int
    out: str
    err: str


def environment(**changes: str | None) -> dict[str, str]:
    """Return this environment, changed, without what would change what is printed, and with compiled modules kept."""
    neutral = {
        "NO_COLOR": None,
        "FORCE_COLOR": None,
        "COLUMNS": None,
        "PYTHONUNBUFFERED": None,
        "TERM": "xterm-256color",
        "PYTHONDONTWRITEBYTECODE": None,
        "PYTHONPYCACHEPREFIX": BYTECODE,
    }
    merged = {**os.environ, **neutral, **changes}
    return {name: value for name, value in merged.items() if value is not None}


def without(module: str, directory: Path) -> dict[str, str]:
    """Return an environment in which `module` cannot be imported; the directory is used for that."""
    directory.mkdir(exist_ok=True)
    (directory / "sitecustomize.py").write_text(f"import sys; sys.modules[{module!r}] = None", encoding="utf-8")
    return {"PYTHONPATH": os.pathsep.join([str(directory), os.environ.get("PYTHONPATH", "")])}


def run(*arguments: str | Path, stdin: bytes = b"") -> Done:
    """Run the command with pipes on all sides, in this process: as a user's, but quick."""
    streams = [TextIOWrapper(BytesIO(data), "utf-8", "backslashreplace") for data in (stdin, b"", b"")]
    before = sys.stdin, sys.stdout, sys.stderr
    sys.stdin, sys.stdout, sys.stderr = streams
    try:
        status = main([*map(str, arguments)])
    finally:
        sys.stdin, sys.stdout, sys.stderr = before
    out, err = [stream.buffer.getvalue().decode() for stream in streams[1:]]
    return Done(status, out, err)


def run_apart(*arguments: str | Path, stdin: bytes = b"", **variables: str | None) -> Done:
    """Run the command with pipes on all sides, in a process of its own."""
    ended = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        timeout=TIMEOUT,
        check=False,
        env=environment(**variables),
    )
    return Done(ended.returncode, ended.stdout.decode(), ended.stderr.decode())


def run_on_terminal(
    *arguments: str | Path,
    output: int = -1,
    variables: Mapping[str, str] | None = None,
    command: Sequence[str] = COMMAND,
) -> Done:
    """Run the command with a terminal as its standard output (unless `output` is another) and standard error."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*command, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=theirs if output < 0 else output,
        stderr=theirs,
        env=environment(**{"COLUMNS": "120", **(variables or {})}),
    ) as process:
        os.close(theirs)
        shown = b""
        while chunk := _read(ours):
            shown += chunk
        process.wait(TIMEOUT)
    os.close(ours)
    return Done(process.returncode, shown.decode().replace("\r\n", "\n"), "")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # how Linux says that nobody holds the other end any more
        return b""


def write_json(path: Path, value: Any, **layout: Any) -> Path:
    path.write_text(json.dumps(value, ensure_ascii=False, **layout), encoding="utf-8")
    return path


def write_lines(path: Path, values: Sequence[Any]) -> Path:
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    return path


def read_lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]
