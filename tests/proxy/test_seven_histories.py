"""The seven broken histories, from the official SDKs through the proxy to a strict upstream."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from suture.proxy import Proxy, Route
from tests.docs.pages import ROOT
from tests.proxy.serving import Reply, Request, Upstream, proxy, upstream

FOLDER = ROOT / "benchmarks" / "guests"
SDKS = os.environ.get("SUTURE_NODE_SDKS", str(ROOT / ".venv-bench-proxies" / "node"))
sys.path.append(str(FOLDER))

import _traffic as traffic  # noqa: E402 # pyright: ignore[reportMissingImports]

has_node = shutil.which("node") is not None and Path(SDKS, "node_modules", "openai").is_dir()


def answer(request: Request) -> Reply:
    interface = traffic.find_interface(request.target)
    stream = "stream" in request.target or json.loads(request.body).get("stream", False)
    kind, body = interface.reply(stream=stream)
    return Reply([body], headers=[(b"content-type", kind)], framing="chunked" if stream else "length")


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[Upstream, str]]:
    with upstream(answer) as provider, proxy(Proxy([Route(upstream=provider.url)])) as url:
        yield provider, url


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("api", traffic.APIS)
def test_each_history_reaches_the_provider_as_it_must_be(servers: tuple[Upstream, str], api: str, stream: bool):
    provider, url = servers
    interface = traffic.APIS[api]
    told: dict[str, str] = {}
    for case in traffic.CASES:
        assert interface.ask(url, traffic.write_history(interface, case), stream=stream) == traffic.SAYS
        told[case.letter] = traffic.judged(interface, case, json.loads(provider.requests[-1].body))
    assert told == dict.fromkeys("ABCDEFG", traffic.RIGHT)


@pytest.mark.skipif(not has_node, reason="the Node SDKs are not on this machine (SUTURE_NODE_SDKS)")
@pytest.mark.parametrize("api", ["chat", *[pytest.param(api, marks=pytest.mark.soak) for api in [*traffic.APIS][1:]]])
def test_the_sdks_of_node_get_the_same(servers: tuple[Upstream, str], api: str):
    provider, url = servers
    interface = traffic.APIS[api]
    histories = [traffic.write_history(interface, case) for case in traffic.CASES]
    for how in ("whole", "streamed"):
        provider.requests.clear()
        command = ["node", str(FOLDER / "ask.mjs"), SDKS, api, url, how]
        said = json.loads(subprocess.check_output(command, input=json.dumps(histories).encode()))
        assert said == [traffic.SAYS] * len(histories)
        sent = [json.loads(request.body) for request in provider.requests]
        told = [traffic.judged(interface, case, body) for case, body in zip(traffic.CASES, sent, strict=True)]
        assert told == [traffic.RIGHT] * len(histories)


@pytest.mark.parametrize("api", traffic.APIS)
def test_without_the_proxy_a_provider_would_refuse_them(servers: tuple[Upstream, str], api: str):
    provider, _ = servers
    interface = traffic.APIS[api]
    for case in traffic.CASES:
        interface.ask(provider.url, traffic.write_history(interface, case), stream=False)
        refused = traffic.judged(interface, case, json.loads(provider.requests[-1].body)) != traffic.RIGHT
        assert refused or (api, case.letter) == ("responses", "E")
