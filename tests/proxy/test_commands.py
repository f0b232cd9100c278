"""`suture proxy` and `suture run`, as a user runs them."""

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from suture.cli.main import main
from tests.proxy.serving import upstream
from tests.proxy.test_traffic import BROKEN, PATHS, send

SUTURE = [sys.executable, "-m", "suture"]
ASK = """
import http.client, os, sys
url = os.environ["OPENAI_BASE_URL"].removeprefix("http://")
host, _, path = url.partition("/")
client = http.client.HTTPConnection(host)
client.request("POST", f"/{path}/chat/completions", sys.stdin.buffer.read(), {"content-type": "application/json"})
print(client.getresponse().getheader("x-suture-repaired"))
sys.exit(7)
"""


@contextmanager
def started(*arguments: str) -> Any:
    program = subprocess.Popen([*SUTURE, "proxy", "--port", "0", *arguments], stderr=subprocess.PIPE, text=True)
    assert program.stderr is not None
    try:
        yield program, program.stderr.readline().split()
    finally:
        program.terminate()
        program.wait()
        program.stderr.close()


def test_a_proxy_serves_until_it_is_told_to_stop(tmp_path: Path):
    report = tmp_path / "report.jsonl"
    with upstream() as provider, started("--upstream", f"/x={provider.url}", "--report", str(report)) as running:
        program, (address, _, target) = running
        assert target == provider.url
        reply, _ = send(address.removesuffix("/x"), f"/x{PATHS['openai-chat']}", BROKEN)
        assert (reply.getheader("x-suture-repaired"), len(provider.requests)) == ("1", 1)
        program.send_signal(signal.SIGTERM)
        assert program.wait(60) == 0
    assert json.loads(report.read_text())["changed"] is True


def test_a_command_finds_the_proxy_in_its_environment_and_its_status_is_passed_on():
    with upstream() as provider:
        environment = {**os.environ, "OPENAI_BASE_URL": f"{provider.url}/v1"}
        command = [*SUTURE, "run", "--", sys.executable, "-c", ASK]
        ran = subprocess.run(command, input=BROKEN, capture_output=True, env=environment, check=False)
    assert (ran.stdout.strip(), ran.returncode) == (b"1", 7), ran.stderr
    assert provider.requests[0].target == "/v1/chat/completions"
    assert json.loads(provider.requests[0].body)["messages"][-1]["role"] == "tool"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_reaches_the_command(number: signal.Signals):
    script = "import signal, time; print('up', flush=True); time.sleep(60)"
    command = [*SUTURE, "run", "--", sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"up\n"
        program.send_signal(number)
        assert program.wait(60) == 128 + number


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (
            ["proxy", "--upstream", "ftp://x"],
            "an upstream is an address such as https://api.openai.com, which begins with",
        ),
        (["proxy", "--upstream", "127.0.0.1:80"], "begins with http:// or https:// and has no query"),
        (["proxy", "--upstream", "http://me:pass@x"], "must not hold a password"),
        (["proxy", "--compact", "/nowhere=5"], "nothing goes to /nowhere"),
        (["proxy", "--clear", "many"], "expected a number of tokens"),
        (["proxy", "--profile", "nobody"], "unknown profile 'nobody'"),
        (["proxy", "--host", "203.0.113.1", "--port", "1"], "cannot listen on 203.0.113.1"),
        (["proxy", "--report", "/nowhere/x"], "the report cannot be written"),
        (["run"], "there is no command to run"),
        (["run", "--", "/no/such/command"], "cannot be run"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]):
    assert main(arguments) == 2
    assert reason in capsys.readouterr().err


def test_a_variable_that_is_no_address_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("OPENAI_BASE_URL", "api.example/v1")
    assert main(["run", "--", "true"]) == 2
    assert capsys.readouterr().err.startswith("suture: OPENAI_BASE_URL: an upstream is an address")
