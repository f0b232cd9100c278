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
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from pathlib import Path
from threading import Thread
from typing import Any, cast

from _traffic import APIS, CASES, RIGHT, SAYS, find_interface, judged, write_history

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
            command = [sys.executable, "-m", "suture", "proxy", "--upstream", upstream, "--port", str(port)]
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
    interface, right = APIS[api], 0
    for case, (said, body) in zip(CASES, _ask_all(server, api, url, sdk, stream=stream), strict=True):
        right += said == SAYS and body is not None and judged(interface, case, body) == RIGHT
    return f"{right}/{len(CASES)}"


def _ask_all(server: Upstream, api: str, url: str, sdk: str, *, stream: bool) -> list[tuple[str, Any]]:
    """Return what each history was answered, and what was sent of it last."""
    histories = [write_history(APIS[api], case) for case in CASES]
    if sdk == "Node":
        server.bodies.clear()
        said = _ask_node(api, url, histories, stream=stream)
        if len(server.bodies) == len(histories):  # one request each, in their order
            return [*zip(said, server.bodies, strict=True)]
    told: list[tuple[str, Any]] = []
    for history in histories:
        server.bodies.clear()
        said = (
            _ask_node(api, url, [history], stream=stream) if sdk == "Node" else [_ask(api, url, history, stream=stream)]
        )
        told.append((said[0], server.bodies[-1] if server.bodies else None))
    return told


def _ask(api: str, url: str, history: list[Any], *, stream: bool) -> str:
    try:
        return APIS[api].ask(url, history, stream=stream)
    except Exception as error:  # noqa: BLE001 - whatever the SDK says, it was no answer
        return f"raises {type(error).__name__}"


def _ask_node(api: str, url: str, histories: list[Any], *, stream: bool) -> list[str]:
    command = ["node", str(_HERE / "ask.mjs"), _SDKS, api, url, "streamed" if stream else "whole"]
    return json.loads(subprocess.check_output(command, input=json.dumps(histories).encode()))


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
        done = 0
        while done < count:
            try:
                client.request("POST", path, body, headers)
                client.getresponse().read()
                done += 1
            except ConnectionError:  # on a busy machine it may have been idle for too long
                client.close()

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


Row = tuple[str, str, bool]


def measure(kind: str, sdks: Sequence[str]) -> tuple[dict[Row, str], dict[tuple[str, int], float]]:
    """Put the histories through one kind of proxy, and return how many are right, and what a request costs."""
    with serving() as server, proxied(kind, f"http://127.0.0.1:{server.server_port}") as (url, process):
        rows = product(_TITLES, sdks, (False, True))
        right = {row: count_right(server, row[0], url, row[1], stream=row[2]) for row in rows}
        return right, {what: cost(*what, url, process) for what in product(_MEASURED, _SIZES)} if process else {}


def page() -> Iterator[str]:
    peers = [_LITELLM, _HOOK] if Path(sys.executable).with_name("litellm").exists() else []
    kinds = [_NOTHING, _SUTURE, *peers]
    sdks = ["Python", "Node"] if shutil.which("node") and Path(_SDKS, "node_modules", "openai").is_dir() else ["Python"]
    found = {kind: measure(kind, sdks) for kind in kinds}  # one after the other: costs are measured
    yield _HEAD
    yield f"| interface | SDK | reply | {' | '.join(kinds)} |"
    yield "|---" * (3 + len(kinds)) + "|"
    for row in product(_TITLES, sdks, (False, True)):
        cells = " | ".join(found[kind][0][row] for kind in kinds)
        yield f"| {_TITLES[row[0]]} | {row[1]} | {'streamed' if row[2] else 'whole'} | {cells} |"
    yield _COST
    sizes = [*product(_MEASURED, _SIZES)]
    yield f"| proxy | {' | '.join(f'{_TITLES[api]}, {size // 1000} kB' for api, size in sizes)} |"
    yield "|---" * (1 + len(sizes)) + "|"
    for kind in kinds[1:]:
        yield f"| {kind} | {' | '.join(f'{found[kind][1][api, size]:.2f}' for api, size in sizes)} |"
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
