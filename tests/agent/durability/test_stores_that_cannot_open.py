"""A store that cannot be opened: each way to use it says so in one line, logs nothing and changes nothing."""

import asyncio
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from suture import ChatModelAgent
from suture.errors import SutureError
from suture.sessions import recover
from suture.stores import PostgresStore, SQLiteBackend, SQLiteStore
from suture.testing import ScriptedModel
from tests.stores.servers import closed_port


def directory(path: Path) -> None:
    path.mkdir()


def text_file(path: Path) -> None:
    path.write_text("a text file\n" * 500)


def short_file(path: Path) -> None:
    path.write_text("x")


def other_program(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE customers (name)")
    connection.close()


def backend(path: Path) -> None:
    with SQLiteBackend(path) as other:
        asyncio.run(other.write("/a", "x"))


def damaged(path: Path) -> None:
    with SQLiteStore(path) as store:
        asyncio.run(store.append("run", 0, [b"0"]))
    content = path.read_bytes()
    path.write_bytes(content[:100] + b"\xff" * 3000 + content[3100:])


def link(path: Path) -> None:
    path.symlink_to(path.with_name("elsewhere.db"))


OBSTACLES = {
    directory: "it is not a regular file; give the path of a file, which may be new",
    text_file: "it is not a SQLite database; give a path of its own (SQLITE_NOTADB)",
    short_file: "it is not a SQLite database; give a path of its own",
    other_program: "it is the SQLite database of another program; give a path of its own",
    backend: "it is the file of a SQLiteBackend; give the SQLiteStore a path of its own",
    damaged: "the file is damaged; move it away, or bring back a copy (SQLITE_CORRUPT)",
    link: "it is a symbolic link; give the path of the file itself",
}

WAYS: dict[str, Callable[[Any], Any]] = {
    "run": lambda agent: agent.run("hi", checkpoint_id="talk"),
    "resume": lambda agent: agent.resume("talk"),
    "session.run": lambda agent: agent.session("talk").run("hi"),
    "session.status": lambda agent: agent.session("talk").status(),
    "session.result": lambda agent: agent.session("talk").result(),
    "session.delete": lambda agent: agent.session("talk").delete(),
    "recover": lambda agent: recover([agent], agent.checkpoint_store),
}


@pytest.mark.parametrize("obstacle", OBSTACLES, ids=lambda obstacle: obstacle.__name__)
@pytest.mark.parametrize("way", WAYS)
def test_it_says_so_in_one_line(obstacle: Any, way: str, tmp_path: Path, caplog: pytest.LogCaptureFixture):
    path = tmp_path / "runs.db"
    obstacle(path)
    before = {file.name: file.is_file() and file.read_bytes() for file in tmp_path.iterdir()}
    model = ScriptedModel(["never asked"])
    with SQLiteStore(path) as store, pytest.raises(SutureError) as caught:
        asyncio.run(WAYS[way](ChatModelAgent(model=model, checkpoint_store=store)))
    assert str(caught.value) == f"cannot open the store {path}: {OBSTACLES[obstacle]}"
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert (caplog.text, model.requests) == ("", [])
    assert {file.name: file.is_file() and file.read_bytes() for file in tmp_path.iterdir()} == before


@pytest.mark.skipif(not os.path.exists("/proc/self"), reason="a directory in which nobody can make files")  # noqa: PTH110
def test_a_directory_that_takes_no_files_is_named(caplog: pytest.LogCaptureFixture):
    store = SQLiteStore("/proc/runs.db")
    with pytest.raises(SutureError) as caught:
        ChatModelAgent(model=ScriptedModel([]), checkpoint_store=store).run_sync("hi", checkpoint_id="talk")
    where = "give a path where this process may write files"
    assert (
        str(caught.value) == f"cannot open the store /proc/runs.db: No such file or directory (/proc/runs.db); {where}"
    )
    assert caplog.text == ""


@pytest.mark.parametrize("way", WAYS)
def test_a_server_that_is_not_there_is_named_in_one_line(way: str, caplog: pytest.LogCaptureFixture):
    model = ScriptedModel(["never asked"])
    with closed_port() as port:
        conninfo = f"postgresql://user:SECRET@127.0.0.1:{port}/runs"
        with PostgresStore(conninfo) as store, pytest.raises(SutureError) as caught:
            asyncio.run(WAYS[way](ChatModelAgent(model=model, checkpoint_store=store)))
    said = str(caught.value)
    assert said.startswith("cannot open the store PostgresStore('runs' at '127.0.0.1'): connection ")
    assert said.endswith("; check its address and your rights there, and that the server runs")
    assert "\n" not in said
    assert "SECRET" not in said
    assert (caplog.text, model.requests) == ("", [])


PROGRAM = """
from suture import ChatModelAgent
from suture.stores import SQLiteStore
from suture.testing import ScriptedModel
agent = ChatModelAgent(model=ScriptedModel([]), checkpoint_store=SQLiteStore("runs.db"))
"""


def test_the_command_line_says_so_in_one_line(tmp_path: Path):
    (tmp_path / "program.py").write_text(PROGRAM)
    text_file(tmp_path / "runs.db")
    command = [sys.executable, "-m", "suture", "recover", "program:agent"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    told = f"suture: cannot open the store {tmp_path}/runs.db: {OBSTACLES[text_file]}\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", told)
