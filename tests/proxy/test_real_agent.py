"""Real coding agents from npm, through the proxy: killed in two tool calls, examined, repaired, and resumed."""

import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from suture.cli.main import main
from tests.guests.strict_rules import anthropic_faults, openai_chat_faults, responses_faults
from tests.proxy.serving import Reply, Request, proxy, upstream

PACKAGES = "@earendil-works/pi-coding-agent @anthropic-ai/claude-code @openai/codex opencode-ai"
FOLDER = Path(os.environ.get("SUTURE_AGENTS", "no-such-folder"), "node_modules", ".bin")
pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(
        shutil.which("node") is None or not FOLDER.exists(),
        reason=f"no agents on this machine: npm install --prefix DIR {PACKAGES}, SUTURE_AGENTS=DIR",
    ),
]
SAYS = "It is done."
COMMAND = "touch begun; sleep 120"


class Interface(NamedTuple):
    """One way to ask a model: how a conversation is found in a request, and how a reply is streamed."""

    field: str
    faults: Callable[[Any], list[str]]
    stream: Callable[[list[Any]], Iterator[tuple[str, Any]]]


def stream_chat(calls: list[Any]) -> Iterator[tuple[str, Any]]:
    told = [{"index": at, "id": f"call_{at}", "type": "function", "function": call} for at, call in enumerate(calls)]
    said = {"role": "assistant", **({"tool_calls": told} if calls else {"content": SAYS})}
    for delta, reason in ((said, None), ({}, "tool_calls" if calls else "stop")):
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        yield "", {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "fake", "choices": [choice]}


def stream_messages(calls: list[Any]) -> Iterator[tuple[str, Any]]:
    begun = {"id": "msg_1", "type": "message", "role": "assistant", "model": "fake", "content": [], "stop_reason": None}
    yield "message_start", {"message": {**begun, "usage": {"input_tokens": 5, "output_tokens": 1}}}
    blocks: list[tuple[Any, Any]] = [({"type": "text", "text": ""}, {"type": "text_delta", "text": SAYS})]
    if calls:
        use = {"type": "tool_use", "name": calls[0]["name"], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": calls[0]["arguments"]}
        blocks = [({**use, "id": f"toolu_{at}"}, delta) for at in range(len(calls))]
    for place, (block, delta) in enumerate(blocks):
        yield "content_block_start", {"index": place, "content_block": block}
        yield "content_block_delta", {"index": place, "delta": delta}
        yield "content_block_stop", {"index": place}
    reason = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    yield "message_delta", {"delta": reason, "usage": {"output_tokens": 5}}
    yield "message_stop", {}


def stream_responses(calls: list[Any]) -> Iterator[tuple[str, Any]]:
    content = [{"type": "output_text", "text": SAYS, "annotations": []}]
    items: list[Any] = [
        {"type": "function_call", "id": f"fc_{at}", "call_id": f"call_{at}", **call} for at, call in enumerate(calls)
    ] or [{"type": "message", "id": "msg_1", "role": "assistant", "content": content}]
    response = {"id": "resp_1", "object": "response", "created_at": 1, "model": "fake"}
    yield "response.created", {"response": {**response, "status": "in_progress", "output": []}}
    for place, item in enumerate(items):
        yield "response.output_item.added", {"output_index": place, "item": item}
        yield "response.output_item.done", {"output_index": place, "item": item}
    used = {"input_tokens": 5, "output_tokens": 5, "total_tokens": 10}
    yield "response.completed", {"response": {**response, "status": "completed", "output": items, "usage": used}}


INTERFACES = {
    "/chat/completions": Interface("messages", openai_chat_faults, stream_chat),
    "/messages": Interface("messages", anthropic_faults, stream_messages),
    "/responses": Interface("input", responses_faults, stream_responses),
}
PLAIN = json.dumps({"command": COMMAND, "description": "wait"})
SHELLS = {"bash": PLAIN, "Bash": PLAIN, "exec_command": json.dumps({"cmd": COMMAND, "yield_time_ms": 120_000})}
"""The arguments that each agent's shell takes."""


def answer(request: Request) -> Reply:
    """Ask for two calls that take long, then accept only what a strict provider does."""
    path = request.target.partition("?")[0]
    interface = next((known for end, known in INTERFACES.items() if path.endswith(end)), None)
    if interface is None:
        return Reply([b"{}"], status=b"404 Not Found")
    body = json.loads(request.body)
    faults = interface.faults(body[interface.field])
    if faults:
        return Reply([json.dumps({"error": {"message": "; ".join(faults)}}).encode()], status=b"400 Bad Request")
    names = [tool.get("name") or tool.get("function", {}).get("name") for tool in body.get("tools", ())]
    name = next((name for name in names if name in SHELLS), None)  # none where it asks for a title
    calls = [] if name is None or COMMAND in request.body.decode() else [{"name": name, "arguments": SHELLS[name]}] * 2
    events = [(kind, {"type": kind, **event} if kind else event) for kind, event in interface.stream(calls)]
    pieces = [(f"event: {kind}\n" if kind else "") + f"data: {json.dumps(event)}\n\n" for kind, event in events]
    done = [] if path.endswith(("/responses", "/messages")) else ["data: [DONE]\n\n"]
    kind = [(b"content-type", b"text/event-stream")]
    return Reply([piece.encode() for piece in [*pieces, *done]], headers=kind, framing="chunked")


class Agent(NamedTuple):
    """How one agent is pointed at an address, started, and resumed; and where it keeps its sessions."""

    program: str
    start: list[str]
    resume: list[str]
    sessions: str
    settings: str = ""
    text: str = ""
    """What stands in its settings, with a place for the address."""
    environment: Mapping[str, str] = MappingProxyType({})


PI = {"baseUrl": "HERE/v1", "api": "openai-completions", "apiKey": "none", "models": [{"id": "fake"}]}
OPENCODE = {
    "npm": "@ai-sdk/openai-compatible",
    "options": {"baseURL": "HERE/v1", "apiKey": "none"},
    "models": {"fake": {}},
}
AGENTS = {
    "pi": Agent(
        "pi",
        ["--provider", "loopback", "--model", "fake", "-p", "Go."],
        ["--provider", "loopback", "--model", "fake", "-p", "--continue", "Go on."],
        ".pi/agent/sessions",
        ".pi/agent/models.json",
        json.dumps({"providers": {"loopback": PI}}),
        {"PI_OFFLINE": "1"},
    ),
    "Claude Code": Agent(
        "claude",
        ["--allowedTools", "Bash", "-p", "Go."],
        ["--allowedTools", "Bash", "-p", "--continue", "Go on."],
        ".claude/projects",
        environment={
            "ANTHROPIC_BASE_URL": "HERE",
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
    ),
    "Codex": Agent(
        "codex",
        ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "Go."],
        ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "resume", "--last", "Go on."],
        ".codex/sessions",
        ".codex/config.toml",
        'model = "fake"\nmodel_provider = "loopback"\n[model_providers.loopback]\nname = "loopback"\n'
        'base_url = "HERE/v1"\nwire_api = "responses"\nenv_key = "LOOPBACK_KEY"\n',
        {"LOOPBACK_KEY": "none"},
    ),
    "opencode": Agent(
        "opencode",
        ["run", "Go."],
        ["run", "--continue", "Go on."],
        ".local/share/opencode",
        ".config/opencode/opencode.json",
        json.dumps({"provider": {"loopback": OPENCODE}, "model": "loopback/fake", "permission": "allow"}),
        {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
    ),
}


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_that_was_killed_in_a_tool_call_goes_on(name: str, tmp_path: Path):
    agent = AGENTS[name]
    with upstream(answer) as provider, proxy(provider.url) as url:
        if agent.settings:
            (tmp_path / agent.settings).parent.mkdir(parents=True)
            (tmp_path / agent.settings).write_text(agent.text.replace("HERE", url))
        given = {variable: value.replace("HERE", url) for variable, value in agent.environment.items()}
        plain = {variable: value for variable, value in os.environ.items() if not variable.startswith("XDG_")}
        plain |= {"HOME": str(tmp_path), "PWD": str(tmp_path)}
        shared: Any = {"cwd": tmp_path, "stdin": subprocess.DEVNULL, "env": {**plain, **given}}
        program, sessions = str(FOLDER / agent.program), tmp_path / agent.sessions
        with subprocess.Popen([program, *agent.start], start_new_session=True, **shared) as killed:
            while not (tmp_path / "begun").exists() or main(["doctor", str(sessions)]) != 1:
                assert killed.poll() is None
                threading.Event().wait(0.2)
            os.killpg(killed.pid, signal.SIGKILL)
        assert main(["doctor", "--fix", str(sessions)]) == 1
        (copy,) = sessions.rglob("*.repaired")
        assert main(["doctor", str(copy)]) == 0
        session = copy.with_suffix("")
        for other in session.parent.glob(f"{session.name}-*"):  # of a database
            other.unlink()
        shutil.move(copy, session)
        ran = subprocess.run(
            [program, *agent.resume], capture_output=True, text=True, timeout=300, check=False, **shared
        )
        assert SAYS in ran.stdout, ran.stderr
    assert provider.requests[-1].body.decode().count("may or may not have run") == 2
