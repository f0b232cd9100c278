"""The clients of the `openai` and `anthropic` packages, without a framework: what they send over the wire.

A loop written by hand asks, runs the tool, and adds both to its history. For the table a server on the loopback takes
what comes. Where steps are measured, a transport in the process does.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import httpx2
from _apis import Api, Chat, Messages, Responses
from _cases import PROMPT, Step
from _guest import ANSWER, WITH, Guest, Run, Script
from _judge import Message

from suture.integrations import anthropic as suture_anthropic
from suture.integrations import openai as suture_openai

_sent: list[bytes] = []
"""What came over the wire last."""


def _answer(script: Script, body: bytes) -> bytes:
    _sent[:] = [body]
    return script.reply()


@contextmanager
def _on_loopback(api: Api, script: Script) -> Iterator[Any]:
    """Give a client of a server that replies what the script says."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            answer = _answer(script, self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None: ...  # noqa: A002

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=partial(server.serve_forever, poll_interval=0.01))
        thread.start()
        try:
            with api.make(base_url=f"http://127.0.0.1:{server.server_port}") as client:
                yield client
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def _in_process(api: Api, script: Script) -> Iterator[Any]:
    """Give a client whose requests are answered in the process, as the script says."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        headers = {"content-type": "application/json"}
        return httpx2.Response(200, content=_answer(script, request.content), headers=headers)

    with httpx2.Client(transport=httpx2.MockTransport(answer)) as http, api.make(http_client=http) as client:
        yield client


Connect = Callable[[Api, Script], AbstractContextManager[Any]]


def _begin(api: Api, wrap: Any, connect: Connect, kind: str, script: Script, steps: Sequence[Step]) -> Run:
    calls = [api.reply(call=(f"new_{n}", f"city {n}")) for n in range(script.steps)]
    script.replies = [json.dumps(reply).encode() for reply in [*calls, api.reply(ANSWER)]]
    history = api.write([*steps, ("user", PROMPT)])

    async def run() -> str:
        with connect(api, script) as client:
            asked = wrap(client) if kind == WITH else client
            while (heard := api.ask(asked, history)).calls:
                history.extend(heard.added)
                history.extend(api.write([("result", name, script.run(city)) for name, city in heard.calls]))
        return heard.text

    return run


def _guests(api: Api, package: str, provider: str, wrap: Any, *titles: str) -> Iterator[Guest]:
    """Yield the guest of the table, and the one that is measured."""
    for title, connect in zip(titles, (_on_loopback, _in_process), strict=True):
        begin = partial(_begin, api, wrap, connect)
        received = partial(_received, api)
        yield Guest(title=title, package=package, provider=provider, begin=begin, received=received)


def _received(api: Api) -> list[Message]:
    return api.read(json.loads(_sent[0]))


_CHAT = ("openai", "OpenAI, Chat Completions", suture_openai.wrap, "`openai`, Chat Completions", "openai, chat")
_RESPONSES = ("openai", "OpenAI, Responses", suture_openai.wrap, "`openai`, Responses", "openai, responses")
_MESSAGES = ("anthropic", "Anthropic", suture_anthropic.wrap, "`anthropic`, Messages", "anthropic")
GUESTS, MEASURED = zip(
    _guests(Chat(), *_CHAT), _guests(Responses(), *_RESPONSES), _guests(Messages(), *_MESSAGES), strict=True
)
