"""A real coding agent from npm, pi, through the proxy: killed in a tool call, examined, and resumed."""

import json
import os
import shutil
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from suture.cli.main import main
from tests.guests.strict_rules import openai_chat_faults
from tests.proxy.serving import Reply, Request, proxy, upstream

FOLDER = Path(os.environ.get("SUTURE_PI", "no-such-folder"), "node_modules", ".bin")
PI = str(FOLDER / "pi")
pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(
        shutil.which("node") is None or not Path(PI).exists(),
        reason="pi is not on this machine: npm install --prefix DIR @earendil-works/pi-coding-agent, SUTURE_PI=DIR",
    ),
]
CALL = {"index": 0, "id": "call_1", "type": "function"}
BASH = {**CALL, "function": {"name": "bash", "arguments": json.dumps({"command": "sleep 300"})}}


def chunk(delta: object, reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    told = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "fake", "choices": [choice]}
    return b"data: " + json.dumps(told).encode() + b"\n\n"


def answer(request: Request) -> Reply:
    """Ask for a call that takes long, then accept only what a strict provider does."""
    messages = json.loads(request.body)["messages"]
    faults = openai_chat_faults(messages)
    if faults:
        return Reply([json.dumps({"error": {"message": "; ".join(faults)}}).encode()], status=b"400 Bad Request")
    begun = any(message["role"] == "assistant" for message in messages)
    says = [chunk({"content": "It is done."}), chunk({}, "stop")]
    calls = [chunk({"role": "assistant", "tool_calls": [BASH]}), chunk({}, "tool_calls")]
    kind = [(b"content-type", b"text/event-stream")]
    return Reply([*(says if begun else calls), b"data: [DONE]\n\n"], headers=kind, framing="chunked")


def session_of(folder: Path) -> Path | None:
    """Return the session that holds the call, once it does."""
    return next((path for path in folder.rglob("*.jsonl") if b"toolCall" in path.read_bytes()), None)


def test_an_agent_that_was_killed_in_a_tool_call_goes_on(tmp_path: Path):
    with upstream(answer) as provider, proxy(provider.url) as url:
        model = {"baseUrl": f"{url}/v1", "api": "openai-completions", "apiKey": "none", "models": [{"id": "fake"}]}
        agent = tmp_path / "agent"
        agent.mkdir()
        (agent / "models.json").write_text(json.dumps({"providers": {"loopback": model}}))
        environment = {**os.environ, "HOME": str(tmp_path), "PI_CODING_AGENT_DIR": str(agent), "PI_OFFLINE": "1"}
        command = [PI, "--provider", "loopback", "--model", "fake", "-p"]
        shared = {"env": environment, "cwd": tmp_path, "stdin": subprocess.DEVNULL}
        with subprocess.Popen([*command, "Go."], start_new_session=True, **shared) as killed:
            while session_of(agent) is None:
                assert killed.poll() is None
                threading.Event().wait(0.05)
            os.killpg(killed.pid, signal.SIGKILL)
        session = session_of(agent)
        assert session is not None
        assert main(["doctor", "--fix", str(session)]) == 1
        assert main(["doctor", f"{session}.repaired"]) == 0
        shutil.move(f"{session}.repaired", session)
        ran = subprocess.run(
            [*command, "--continue", "Go on."], capture_output=True, text=True, timeout=300, check=False, **shared
        )
        assert "It is done." in ran.stdout, ran.stderr
    roles = [message["role"] for message in json.loads(provider.requests[-1].body)["messages"]]
    assert roles[-4:] == ["user", "assistant", "tool", "user"]
