"""Print docs/proxy-measured.md: the seven histories through proxies, from each SDK, and what a proxy costs.

Each proxy is a real process. Behind it a server on the loopback notes what comes and replies; the judge of the guests'
table says what would have become of it.
"""

import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from pathlib import Path
from threading import Thread
from typing import Any, cast

from _traffic import APIS, CASES, RIGHT, SAYS, Interface, find_interface, judged, write_history

_HERE = Path(__file__).parent
_SDKS = os.environ.get("SUTURE_NODE_SDKS", str(Path(sys.prefix) / "node"))
_TITLES = {
    "chat": "Chat Completions",
    "responses": "Responses",
    "messages": "Messages",
    "contents": "generateContent",
}
_MODELS = {"fake": ("openai/fake", "/v1"), "fake-claude": ("anthropic/fake", ""), "fake-gemini": ("gemini/fake", "")}
"""Where LiteLLM sends what is asked of each model: to whose interface, and below which path."""
_NOTHING, _LITELLM, _HOOK, _SUTURE = "nothing", "LiteLLM", "LiteLLM with our callback", "`suture proxy`"
_ALONE = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true"}
"""LiteLLM is to run without the network, and without a key: only this machine can reach it."""
_MEASURED, _SIZES = ("chat", "messages"), (4_000, 460_000)
_SECONDS = 0.5
"""How much CPU a round takes, about."""
_HEAD = """\
<!-- Made by benchmarks/guests/proxies.py. Change that, not this page. -->

# Proxies, measured

The [seven histories](guests/seven-histories.md) are sent by each provider's own SDK, whole replies and streamed ones.
A cell says how many of the seven the provider takes, with nothing lost. LiteLLM has `modify_params: true`.
"""
_COST = """
## What a proxy costs

CPU of the proxy's process for one request that needs no repair, in milliseconds; the least of three rounds.
"""


class Upstream(ThreadingHTTPServer):
    """Notes what comes, and replies."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bodies: list[Any] = []


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        cast("Upstream", self.server).bodies.append(body)
        streamed = "stream" in self.path or body.get("stream", False)
        kind, reply = find_interface(self.path).reply(stream=streamed)
        self.send_response(200)
        self.send_header("content-type", kind.decode())
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, format: str, *args: Any) -> None: ...  # noqa: A002


@contextmanager
def serving() -> Iterator[Upstream]:
    with Upstream() as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield server
        server.shutdown()


@contextmanager
def started(command: list[str], port: int, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a proxy until the block ends; wait until it listens."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env={**os.environ, **environment}, **quiet) as program:  # pyright: ignore[reportCallIssue,reportArgumentType]
        try:
            for _ in range(6000):
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except OSError:
                    if program.poll() is not None:
                        raise RuntimeError(f"{command} ended") from None
                    time.sleep(0.1)
            yield program
        finally:
            program.terminate()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextmanager
def proxied(kind: str, upstream: str) -> Iterator[tuple[str, int]]:
    """Start a proxy; yield its address, and its process id."""
    if kind == _NOTHING:
        yield upstream, 0
        return
    port = free_port()
    with ExitStack() as stack:
        if kind == _SUTURE:
            command = [sys.executable, "-m", "suture.cli", "proxy", "--upstream", upstream, "--port", str(port)]
            program = stack.enter_context(started(command, port))
        else:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            models = [
                {"model_name": name, "litellm_params": {"model": model, "api_base": upstream + base, "api_key": "none"}}
                for name, (model, base) in _MODELS.items()
            ]
            settings: dict[str, Any] = {"modify_params": True}
            if kind == _HOOK:
                settings["callbacks"] = "suture.integrations.litellm.handler"
            config = {"model_list": models, "litellm_settings": settings}
            (folder / "config.yaml").write_text(json.dumps(config))
            command = [str(Path(sys.executable).with_name("litellm")), "--config", str(folder / "config.yaml")]
            command += ["--host", "127.0.0.1", "--port", str(port)]
            program = stack.enter_context(started(command, port, **_ALONE))
        yield f"http://127.0.0.1:{port}", program.pid


def count_right(server: Upstream, api: str, url: str, sdk: str, *, stream: bool) -> str:
    """Return how many of the histories arrive as they must, and are answered."""
    interface = APIS[api]
    histories = [write_history(interface, case) for case in CASES]
    server.bodies.clear()
    if sdk == "Python":
        said = [_ask(interface, url, history, stream=stream) for history in histories]
    else:
        command = ["node", str(_HERE / "ask.mjs"), _SDKS, api, url, "streamed" if stream else "whole"]
        said = json.loads(subprocess.check_output(command, input=json.dumps(histories).encode()))
    answered = [case for case, text in zip(CASES, said, strict=True) if text == SAYS]
    if len(answered) != len(server.bodies):
        raise RuntimeError(f"{len(answered)} replies, but {len(server.bodies)} requests")
    right = [judged(interface, case, body) == RIGHT for case, body in zip(answered, server.bodies, strict=True)]
    return f"{sum(right)}/{len(CASES)}"


def _ask(interface: Interface, url: str, history: list[Any], *, stream: bool) -> str:
    try:
        return interface.ask(url, history, stream=stream)
    except Exception as error:  # noqa: BLE001 - whatever the SDK says, it was no answer
        return f"raises {type(error).__name__}"


def history_of(api: str, size: int) -> bytes:
    steps: list[Any] = [("user", "go")]
    while len(json.dumps(APIS[api].api.write(steps))) < size:
        name = f"call_{len(steps)}"
        steps += [("calls", (name, "Rome")), ("result", name, "line of text\n" * 60)]
    steps += [("user", "on")] if api == "chat" else []
    field = {"responses": "input", "contents": "contents"}.get(api, "messages")
    model = "fake-claude" if api == "messages" else "fake"
    return json.dumps({"model": model, "max_tokens": 5, field: APIS[api].api.write(steps)}).encode()


def cpu_of(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cost(api: str, size: int, url: str, process: int) -> float:
    """Return the CPU of one request, in milliseconds."""
    body, path = history_of(api, size), {"chat": "/v1/chat/completions", "messages": "/v1/messages"}[api]
    client = http.client.HTTPConnection(url.removeprefix("http://"))
    headers = {"content-type": "application/json", "x-api-key": "none", "anthropic-version": "2023-06-01"}

    def ask(count: int) -> None:
        for _ in range(count):
            client.request("POST", path, body, headers)
            client.getresponse().read()

    ask(5)
    before = cpu_of(process)
    ask(10)
    count = int(min(400, max(5, _SECONDS / max(0.001, (cpu_of(process) - before) / 10))))
    rounds: list[float] = []
    for _ in range(3):
        before = cpu_of(process)
        ask(count)
        rounds.append((cpu_of(process) - before) / count * 1000)
    client.close()
    return min(rounds)


def page() -> Iterator[str]:
    peers = [_LITELLM, _HOOK] if Path(sys.executable).with_name("litellm").exists() else []
    kinds = [_NOTHING, _SUTURE, *peers]
    sdks = ["Python", "Node"] if shutil.which("node") and Path(_SDKS, "node_modules", "openai").is_dir() else ["Python"]
    yield _HEAD
    yield f"| interface | SDK | reply | {' | '.join(kinds)} |"
    yield "|---" * (3 + len(kinds)) + "|"
    costs: dict[tuple[str, str, int], float] = {}
    cells: dict[tuple[str, str, bool], list[str]] = {}
    with serving() as server:
        for kind in kinds:
            with proxied(kind, f"http://127.0.0.1:{server.server_port}") as (url, process):
                for row in product(_TITLES, sdks, (False, True)):
                    cells.setdefault(row, []).append(count_right(server, row[0], url, row[1], stream=row[2]))
                    print(kind, row, cells[row][-1], file=sys.stderr, flush=True)
                if process:
                    costs |= {(kind, *what): cost(*what, url, process) for what in product(_MEASURED, _SIZES)}
    for (api, sdk, stream), row in cells.items():
        yield f"| {_TITLES[api]} | {sdk} | {'streamed' if stream else 'whole'} | {' | '.join(row)} |"
    yield _COST
    sizes = [*product(_MEASURED, _SIZES)]
    yield f"| proxy | {' | '.join(f'{_TITLES[api]}, {size // 1000} kB' for api, size in sizes)} |"
    yield "|---" * (1 + len(sizes)) + "|"
    for kind in kinds[1:]:
        yield f"| {kind} | {' | '.join(f'{costs[kind, api, size]:.2f}' for api, size in sizes)} |"
    yield "\n## Releases\n"
    for package in ("aiohttp", "anthropic", "google-genai", "litellm", "openai", "uvicorn"):
        try:
            yield f"- {package} {version(package)}"
        except PackageNotFoundError:
            continue
    for package in ("openai", "@anthropic-ai/sdk", "@google/genai"):
        manifest = Path(_SDKS, "node_modules", package, "package.json")
        if "Node" in sdks:
            yield f"- {package} {json.loads(manifest.read_text())['version']} (Node)"


if __name__ == "__main__":
    for line in page():
        print(line, flush=True)
