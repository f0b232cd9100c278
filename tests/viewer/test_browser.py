"""The page in a real browser: it is clicked through, hostile contents do nothing, and a long run opens at once."""

import asyncio
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from suture.stores import SQLiteStore
from suture.viewer import serve_store, show_history, write_page
from tests.viewer.test_viewer import BROKEN, HOSTILE, a_run, served

MODULES = Path(os.environ.get("SUTURE_BROWSER") or Path(__file__).parents[2] / ".venv-browser") / "node_modules"
pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(
        not (shutil.which("node") and (MODULES / "@sparticuz").exists()),
        reason="no browser: npm install --prefix .venv-browser @sparticuz/chromium playwright-core",
    ),
]


def browse(url: str, *steps: list[str]) -> dict[str, Any]:
    script = Path(__file__).with_name("browse.mjs")
    ended = subprocess.run(
        ["node", str(script), str(MODULES), url, json.dumps(steps)], capture_output=True, text=True, check=True
    )
    seen = json.loads(ended.stdout)
    assert seen["problems"] == []
    assert all(request.startswith(url.partition("?")[0].rstrip("/")) for request in seen["requests"])
    return seen


def page_of(tmp_path: Path, messages: list[Any]) -> str:
    path = tmp_path / "page.html"
    path.write_text(write_page([show_history(messages, name="log.json")]), encoding="utf-8")
    return path.as_uri()


def test_hostile_contents_are_shown_as_text_and_do_nothing(tmp_path: Path):
    tricky = [
        *BROKEN,
        {"role": "user", "content": "\x1b[31m <svg onload=alert(3)> {{constructor}} javascript:alert(4)"},
    ]
    seen = browse(page_of(tmp_path, tricky), ["press", "2"], ["text", "main"], ["count", "img, main script, iframe"])
    said, elements = seen["answers"]
    assert HOSTILE in said
    assert "<svg onload=alert(3)>" in said
    assert elements == 0


def test_keys_choose_the_view_search_and_go_to_the_next_finding(tmp_path: Path):
    seen = browse(
        page_of(tmp_path, BROKEN),
        *(["text", "section"], ["press", "4"], ["text", "section"], ["press", "2"], ["press", "n"], ["focused"]),
        *(["press", "/"], ["type", "weather"], ["press", "Enter"], ["text", "section"], ["count", "article"]),
    )
    findings, rewrites, focused, found, shown = seen["answers"]
    assert "dangling" in findings
    assert "was canceled" in rewrites
    assert "tides" in focused
    assert "1 of 3 messages" in found
    assert shown == 1


def test_a_history_of_10000_messages_opens_within_two_seconds(tmp_path: Path):
    messages: list[Any] = []
    for number in range(2_500):
        call = {"id": f"call_{number}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        messages += [
            {"role": "user", "content": f"question {number}"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_{number}", "content": "result " * 60},
            {"role": "assistant", "content": "answer " * 30},
        ]
    seen = browse(page_of(tmp_path, messages), ["text", "h1"], ["count", "article"])
    assert seen["answers"] == ["log.json", 10_000]
    assert seen["milliseconds"] < 2_000  # under soak alone: it is about the clock


def test_a_run_that_goes_on_is_followed(tmp_path: Path):
    store = tmp_path / "runs.db"
    with SQLiteStore(store) as opened:
        asyncio.run(a_run(opened, "first"))
        asyncio.run(a_run(opened, "second"))
    with served(serve_store(lambda: SQLiteStore(store))) as port:
        seen = browse(
            f"http://127.0.0.1:{port}/",
            *(["text", "section"], ["click", "first"], ["wait", "first"], ["press", "4"], ["text", "section"]),
        )
    timeline, rewrites = seen["answers"]
    assert "1 retry" in timeline
    assert "waits for an answer" in timeline
    assert "PatchToolCalls" in rewrites
