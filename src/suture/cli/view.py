"""`suture view`: a page on which a history, or the runs in a store, can be looked at."""

import asyncio
from argparse import Namespace
from pathlib import Path

from suture.cli.files import Refusal, open_source, read_conversations, refuse_system
from suture.errors import SutureError
from suture.stores import SQLiteStore
from suture.viewer import Run, serve, serve_store, show_history, show_run, write_page

_SQLITE = b"SQLite format 3\0"


def run(asked: Namespace) -> int:
    """Write the page to a file, or serve it to browsers on this machine until Ctrl-C."""
    try:
        is_store = asked.file != "-" and _is_store(asked.file)
        if asked.output:
            runs = asyncio.run(_read_store(asked.file)) if is_store else _read_histories(asked)
            Path(asked.output).write_text(write_page(runs), encoding="utf-8")
            return 0
        if is_store:
            server = serve_store(lambda: SQLiteStore(asked.file), port=asked.port)
        else:
            page = write_page(_read_histories(asked))
            server = serve(lambda: page, port=asked.port)
    except OSError as error:
        raise refuse_system("written" if asked.output else "served", error, asked.output or asked.file) from None
    except SutureError as error:
        raise Refusal(str(error), asked.file) from None
    with server:
        print(f"http://127.0.0.1:{server.server_port}/ shows {asked.file}; Ctrl-C ends it", flush=True)
        server.serve_forever()
    return 0


def _is_store(name: str) -> bool:
    try:
        with Path(name).open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError as error:
        raise refuse_system("read", error, name) from None


async def _read_store(name: str) -> list[Run]:
    with SQLiteStore(name) as store:
        names = await store.runs()
        if not names:
            raise Refusal("there is no run in this store", name)
        return [await show_run(store, each) for each in names]


def _read_histories(asked: Namespace) -> list[Run]:
    with open_source(asked.file, asked.max_bytes) as source:
        shown: list[Run] = []
        for conversation in read_conversations(source):
            messages, wire = conversation.take(asked.wire)
            name = ", ".join(part for part in (asked.file, conversation.title) if part)
            shown.append(show_history(messages, name=name, wire=wire, profile=asked.profile))
    if not shown:
        raise Refusal("there is no conversation in it", asked.file)
    return shown
