"""Measure calls from plain code: connections and CPU of one run after another, beside one event loop and beside peers.

python benchmarks/plain_calls.py [RUNS]   # measures what is installed where it runs: Suture, and three peers

The server is a process of its own, so that its time does not count. It speaks Chat Completions, and streams if asked.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.request import urlopen

_ROUNDS = 5


class _Chat(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    connections = 0

    def setup(self) -> None:
        _Chat.connections += 1
        super().setup()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that it has
        """Say nothing."""

    def do_GET(self) -> None:
        _Chat.connections -= 1
        self._send(str(_Chat.connections).encode(), "text/plain")

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        said = {"role": "assistant", "content": "ok"}
        whole = {"id": "x", "created": 1, "model": "m", "usage": usage}
        if asked.get("stream"):
            kind = {**whole, "object": "chat.completion.chunk"}
            chunks = [{"index": 0, "delta": said, "finish_reason": None}]
            chunks.append({"index": 0, "delta": {}, "finish_reason": "stop"})
            lines = [f"data: {json.dumps({**kind, 'choices': [chunk]})}\n\n" for chunk in chunks]
            self._send("".join([*lines, "data: [DONE]\n\n"]).encode(), "text/event-stream")
        else:
            choice = {"index": 0, "finish_reason": "stop", "message": said}
            self._send(
                json.dumps({**whole, "object": "chat.completion", "choices": [choice]}).encode(), "application/json"
            )

    def _send(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _serve() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Chat)
    print(server.server_port, flush=True)
    server.serve_forever()


def _suture(url: str) -> dict[str, Callable[[], Any]]:
    from openai import AsyncOpenAI

    from suture import ChatModelAgent
    from suture.models import OpenAIChatModel

    agent = ChatModelAgent(model=OpenAIChatModel("m", base_url=url, api_key="none-needed"))
    given = AsyncOpenAI(base_url=url, api_key="none-needed", max_retries=0)
    with_client = ChatModelAgent(model=OpenAIChatModel("m", client=given))
    loop = asyncio.new_event_loop()

    def stream() -> None:
        with agent.stream("x") as run:
            list(run.text())

    return {
        "suture, await run in one loop": lambda: loop.run_until_complete(agent.run("x")),
        "suture, run_sync": lambda: agent.run_sync("x"),
        "suture, run_sync with client=": lambda: with_client.run_sync("x"),
        "suture, a stream in plain code": stream,
    }


def _pydantic_ai(url: str) -> dict[str, Callable[[], Any]]:
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    agent = Agent(OpenAIChatModel("m", provider=OpenAIProvider(base_url=url, api_key="none-needed")))
    return {"pydantic-ai, run_sync": lambda: agent.run_sync("x")}


def _langchain(url: str) -> dict[str, Callable[[], Any]]:
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI

    agent = create_agent(ChatOpenAI(model="m", base_url=url, api_key="none-needed"), [])
    return {"langchain, invoke": lambda: agent.invoke({"messages": [("user", "x")]})}


def _openai_agents(url: str) -> dict[str, Callable[[], Any]]:
    from agents import Agent, OpenAIChatCompletionsModel, Runner
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=url, api_key="none-needed")
    agent = Agent("a", model=OpenAIChatCompletionsModel("m", client))
    return {"openai-agents, run_sync": lambda: Runner.run_sync(agent, "x")}


def _connections(url: str) -> int:
    with urlopen(url.replace("/v1", "/connections")) as answer:
        return int(answer.read())


def _measure(url: str, runs: int) -> None:
    ways: dict[str, Callable[[], Any]] = {}
    for make in (_suture, _pydantic_ai, _langchain, _openai_agents):
        with suppress(ImportError):
            ways.update(make(url))
    first = 0.0
    for name, run in ways.items():
        run()
        before, spent = _connections(url), list[float]()
        for _ in range(_ROUNDS):
            began = time.process_time()
            for _ in range(runs):
                run()
            spent.append((time.process_time() - began) / runs * 1000)
        best = min(spent)
        first = first or best
        opened = _connections(url) - before
        print(f"{name:32} {opened:4} new connections  {best:6.2f} ms CPU a run  {best / first:5.2f} x the first line")


def main() -> None:
    """Start the server, and measure."""
    if sys.argv[1:] == ["serve"]:
        _serve()
        return
    os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"
    with subprocess.Popen([sys.executable, __file__, "serve"], stdout=subprocess.PIPE, text=True) as server:
        port = server.stdout.readline().strip() if server.stdout is not None else ""
        try:
            _measure(f"http://127.0.0.1:{port}/v1", int(sys.argv[1]) if sys.argv[1:] else 50)
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
