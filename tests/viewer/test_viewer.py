"""`suture view`: what the page is given to show, that contents stay text, and that only this machine is served."""

import asyncio
import json
import re
import shutil
import sqlite3
import struct
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from socket import SO_LINGER, SOL_SOCKET, create_connection
from threading import Event, Thread
from typing import Any

import pytest

from suture import ChatModelAgent, Message, ModelRetryConfig, ToolCall, interrupt, tool
from suture.stores import SQLiteStore
from suture.testing import ScriptedModel
from suture.viewer import Run, serve, serve_store, show_history, show_run, write_page
from tests.cli.program import COMMAND, TIMEOUT, run_apart
from tests.cli.program import run as run_command

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
CALL = {"id": "call_1", "type": "function", "function": {"name": "tides", "arguments": "{}"}}
BROKEN = [
    {"role": "user", "content": HOSTILE},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "user", "content": "And the weather?"},
]


@tool
async def look(at: str) -> str:
    """Look at something."""
    if at == "nothing":
        raise ValueError("there is nothing")
    return f"saw {at}"


@tool
async def ask(what: str) -> str:
    """Ask somebody."""
    return str(await interrupt({"what": what}))


def call(*calls: tuple[str, str, str]) -> Message:
    return Message.assistant(tool_calls=[ToolCall(*each) for each in calls])


async def a_run(store: SQLiteStore, name: str = "a") -> None:
    """Store a run with a broken history, two calls, a retry, and a question that waits."""
    replies = [
        call(("c1", "look", '{"at": "sea"}'), ("c2", "look", '{"at": "nothing"}')),
        ConnectionError("lost"),
        call(("c3", "ask", '{"what": "now?"}')),
    ]
    agent = ChatModelAgent(
        name="watch",
        model=ScriptedModel(replies),
        tools=[look, ask],
        checkpoint_store=store,
        model_retry_config=ModelRetryConfig(max_retries=1, backoff=lambda *_: 0.0),
    )
    broken = [Message.user("hi"), call(("c0", "look", '{"at": "sky"}')), Message.user("again")]
    await agent.run(broken, checkpoint_id=name)


@pytest.fixture
def shown(tmp_path: Path) -> Run:
    async def main() -> Run:
        with SQLiteStore(tmp_path / "runs.db") as store:
            await a_run(store)
            return await show_run(store, "a")

    return asyncio.run(main())


def test_a_history_is_shown_with_its_findings_and_its_repair():
    run = show_history(BROKEN, name="log.json")
    assert (run.wire, run.profile) == ("openai-chat", "openai-chat")
    assert [message["role"] for message in run.messages] == ["user", "assistant", "user"]
    (finding,) = run.findings
    assert (finding["index"], finding["problem"], finding["call_id"]) == (1, "dangling", "call_1")
    assert finding["says"]
    (rewrite,) = run.rewrites
    assert (rewrite.by, rewrite.start, rewrite.before) == ("suture.repair", 2, [])
    assert [message["role"] for message in rewrite.after] == ["tool"]


def test_a_good_history_has_no_findings_and_no_rewrites():
    run = show_history(BROKEN[:1])
    assert (run.findings, run.rewrites) == ([], [])


def test_a_run_is_shown_turn_by_turn_with_the_times_of_its_calls(shown: Run):
    assert (shown.agent, shown.outcome) == ("watch", "interrupted")
    first, second = shown.turns
    assert [(each.name, each.id, each.outcome) for each in first.calls] == [
        ("look", "c1", "finished"),
        ("look", "c2", "error"),
    ]
    for turn in shown.turns:
        assert 0 < turn.start <= turn.replied
    for each in first.calls:
        assert first.replied <= each.start <= each.end <= second.replied
    assert (second.retries, first.retries) == (["ConnectionError: lost"], [])


def test_what_waits_for_an_answer_is_shown_open(shown: Run):
    (waiting,) = shown.interrupts
    assert waiting["call_id"] == "c3"
    assert json.loads(waiting["info"]) == {"what": "now?"}
    assert shown.turns[1].calls[0].end == 0
    assert shown.findings == []


def test_a_rewrite_is_shown_before_and_after_with_who_did_it(shown: Run):
    (rewrite,) = shown.rewrites
    assert rewrite.by == "PatchToolCalls"
    assert [message["role"] for message in rewrite.before] == ["user"]
    assert [message["role"] for message in rewrite.after] == ["tool", "user"]


def test_the_messages_of_a_run_are_those_of_its_history(shown: Run):
    roles = ["user", "assistant", "tool", "user", "assistant", "tool", "tool", "assistant"]
    assert [message["role"] for message in shown.messages] == roles


def embedded(page: str) -> Any:
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(data)


def test_contents_cannot_leave_the_data_block():
    page = write_page([show_history(BROKEN)])
    assert embedded(page)["runs"][0]["messages"][0]["text"] == HOSTILE
    assert "alert(1)</script>" not in page
    assert "<img" not in page


def test_only_the_pages_own_script_and_style_may_act_and_nothing_is_loaded():
    page = write_page([show_history(BROKEN)])
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["script-src"].startswith("'sha256-")
    assert "unsafe" not in policy
    assert not re.search(r'(?:src|href)\s*=\s*"|https?://(?!www\.w3\.org/2000/svg)', page.replace(HOSTILE, ""))


@contextmanager
def served(server: Any) -> Iterator[int]:
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def get(port: int, path: str, host: str = "127.0.0.1") -> tuple[int, bytes]:
    with closing(HTTPConnection("127.0.0.1", port)) as connection:
        connection.request("GET", path, headers={"host": host})
        answer = connection.getresponse()
        return answer.status, answer.read()


def test_a_store_is_followed_while_its_runs_go_on(tmp_path: Path):
    path = tmp_path / "runs.db"
    with SQLiteStore(path) as store:
        asyncio.run(a_run(store, "a"))
    with served(serve_store(lambda: SQLiteStore(path))) as port:
        status, page = get(port, "/")
        given = embedded(page.decode())
        assert (status, given["names"], given["live"]) == (200, ["a"], True)
        with SQLiteStore(path) as store:
            asyncio.run(a_run(store, "b"))
        status, body = get(port, "/run?name=b")
        assert (status, json.loads(body)["name"]) == (200, "b")
        assert get(port, "/run?name=c")[0] == 404
        assert get(port, "/../runs.db")[0] == 404


def test_a_request_for_another_host_is_refused():
    with served(serve(lambda: "page")) as port:
        assert get(port, "/") == (200, b"page")
        assert get(port, "/", host="evil.example")[0] == 403
        assert get(port, "/run?name=a")[0] == 404


def test_the_command_writes_a_page_of_a_file_and_of_a_store(tmp_path: Path):
    history, store, out = tmp_path / "log.json", tmp_path / "runs.db", tmp_path / "page.html"
    history.write_text(json.dumps(BROKEN), encoding="utf-8")
    assert run_command("view", history, "-o", out).status == 0
    assert embedded(out.read_text(encoding="utf-8"))["runs"][0]["findings"]
    with SQLiteStore(store) as opened:
        asyncio.run(a_run(opened))
    assert run_command("view", store, "-o", out).status == 0
    assert [run["name"] for run in embedded(out.read_text(encoding="utf-8"))["runs"]] == ["a"]


def test_the_command_writes_a_page_of_what_comes_through_a_pipe(tmp_path: Path):
    out = tmp_path / "page.html"
    assert run_apart("view", "/dev/stdin", "-o", out, stdin=json.dumps(BROKEN).encode()).status == 0
    assert embedded(out.read_text(encoding="utf-8"))["runs"][0]["findings"]


def test_the_command_serves_a_store_until_it_is_stopped_and_makes_none_where_it_is_gone(tmp_path: Path):
    path = tmp_path / "runs.db"
    with SQLiteStore(path) as opened:
        asyncio.run(a_run(opened))
    with subprocess.Popen([*COMMAND, "view", str(path)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as program:
        try:
            assert program.stdout is not None
            port = int(program.stdout.readline().partition(b"/ shows")[0].rpartition(b":")[2])
            found = get(port, "/run?name=a")[0]
            path.unlink()
            gone = get(port, "/run?name=a")
            program.terminate()
            said = program.communicate(timeout=TIMEOUT)[0]
        finally:
            program.kill()
    assert (found, gone) == (200, (404, f"{path} is gone".encode()))
    assert (program.returncode, said, path.exists()) == (0, b"", False)


def test_the_command_says_in_one_line_what_it_cannot_show(tmp_path: Path):
    for name, content in (("none.json", None), ("empty.json", ""), ("broken.json", "[{")):
        if content is not None:
            (tmp_path / name).write_text(content, encoding="utf-8")
        ended = run_command("view", tmp_path / name, "-o", tmp_path / "page.html")
        assert ended.status == 2
        assert len(ended.err.splitlines()) == 1


def test_the_command_shows_half_a_character_as_what_a_file_can_hold(tmp_path: Path):
    history, out = tmp_path / "log.json", tmp_path / "page.html"
    history.write_text('[{"role": "user", "content": "caf\\ud83d"}]', encoding="utf-8")
    assert run_command("view", "--wire", "openai-chat", history, "-o", out).status == 0
    assert "caf\ufffd" in out.read_text(encoding="utf-8")


class Journal:
    """A store of one run with these records."""

    def __init__(self, records: Sequence[bytes]) -> None:
        self.records = records

    async def load(self, name: str) -> Sequence[bytes]:
        return self.records


async def read_journal(tmp_path: Path) -> Sequence[bytes]:
    with SQLiteStore(tmp_path / "runs.db") as store:
        await a_run(store)
        return await store.load("a")


@pytest.mark.parametrize(
    "bad", [b"", b"\xff\x00junk", b"\x91\x93\xa6splice\x09\x09\x90", b"\x91\x91\xa4what"], ids=repr
)
def test_what_stands_before_a_record_that_cannot_be_read_is_shown(tmp_path: Path, bad: bytes):
    records = asyncio.run(read_journal(tmp_path))
    for place in range(len(records)):
        journal: Any = Journal([*records[:place], bad, *records[place:]])
        shown = asyncio.run(show_run(journal, "a"))
        assert shown.error.startswith(f"record {place} cannot be read (")
        assert (shown.agent, bool(shown.messages)) == (("watch", True) if place else ("", False))
        assert embedded(write_page([shown]))["runs"][0]["error"] == shown.error


def test_a_damaged_run_does_not_hide_the_others(tmp_path: Path):
    path, out = tmp_path / "runs.db", tmp_path / "page.html"
    with SQLiteStore(path) as store:
        asyncio.run(a_run(store, "a"))
        asyncio.run(a_run(store, "b"))
    for first in (True, False):
        with closing(sqlite3.connect(path)) as database:
            key = "min(key)" if first else "max(key)"
            database.execute(f"UPDATE records SET body = x'ff' WHERE key = (SELECT {key} FROM records)")
            database.commit()
        assert run_command("view", path, "-o", out).status == 0
        shown = {run["name"]: run for run in embedded(out.read_text(encoding="utf-8"))["runs"]}
        assert "is damaged" in shown["a"]["error"]
        assert (shown["b"]["error"] == "") == first
        with served(serve_store(lambda: SQLiteStore(path))) as port:
            assert get(port, "/")[0] == 200


def test_half_a_character_is_shown_as_what_a_page_can_hold():
    page = write_page([show_history([{"role": "user", "content": "caf\ud83d"}], name="\udcff", wire="openai-chat")])
    shown = embedded(page)["runs"][0]
    assert (shown["name"], shown["messages"][0]["text"]) == ("\ufffd", "caf\ufffd")


def test_a_request_for_no_address_is_refused():
    with served(serve(lambda: "page")) as port:
        assert get(port, "http://[")[0] == 404


def test_a_browser_that_goes_away_is_no_error(capfd: pytest.CaptureFixture[str]):
    def page() -> str:
        browser.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
        browser.close()  # at once, with a reset
        asked.set()
        return "x" * 10_000_000

    asked, server = Event(), serve(page)
    server.daemon_threads = False  # so that the end of the server is the end of the answer
    with served(server) as port:
        browser = create_connection(("127.0.0.1", port))
        browser.sendall(b"GET / HTTP/1.0\r\nhost: 127.0.0.1\r\n\r\n")
        assert asked.wait(60)
    assert capfd.readouterr().err == ""


SCRIPT = """\
const { runInNewContext } = require("node:vm")
const [, style, data, script] = require("node:fs").readFileSync(0, "utf-8").split(/<(?:style|script)[^>]*>/)
class Node {
  constructor() { this.children = [], this.classList = { toggle() {} } }
  append(...children) { this.children.push(...children) }
  replaceChildren(...children) { this.children = children }
  setAttribute() {}
  addEventListener() {}
}
const [nav, main] = [new Node(), new Node()]
const found = { nav, main }
const document = { body: new Node(), addEventListener() {},
  getElementById: () => ({ textContent: data.split("</script>")[0] }), querySelector: name => found[name],
  createElement: () => new Node(), createElementNS: () => new Node() }
const counts = runInNewContext(script.split("</script>")[0] + `
  ;names.map(name => { view = name; draw(); return main.children.at(-1).children.length })`, { document })
console.log(JSON.stringify(counts))
"""
"""Runs the page's script with the least of a document, and prints how many elements each view has."""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_a_history_is_shown_however_many_messages_it_has():
    run = Run("long", "message", messages=[{"role": "user", "text": "hi", "tokens": 1}] * 150_000)
    ended = subprocess.run(
        ["node", "-e", SCRIPT], input=write_page([run]), capture_output=True, text=True, check=False, timeout=120
    )
    assert ended.stderr == ""
    assert json.loads(ended.stdout) == [1, 150_001, 1, 1, 2]
