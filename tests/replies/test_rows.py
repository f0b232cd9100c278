"""Each row's bytes, from a real server to a real agent: what it gets is what the server meant."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from msgspec.structs import replace

from tests.models.loopback import loopback
from tests.replies.row import (
    FOLDER,
    Call,
    Failure,
    Reading,
    Row,
    Servers,
    Usage,
    differences,
    read_file,
    read_rows,
    shown_differences,
)
from tests.replies.trial import read

STILL_WRONG: dict[str, tuple[str, ...]] = {
    "boto3 refuses the start before anything of it can be read": (
        "bedrock/stream-with-an-empty-start-and-a-call-with-empty-input",
    ),
    "botocore reads no reason from this body": ("bedrock/unknown-operation-has-no-message-at-all",),
    "google-genai drops the field of the reason, but for Vertex": ("gemini/malformed-function-call-without-content",),
}
"""Rows that are not read as they should be, by the reason."""

_REASONS = {name: reason for reason, names in STILL_WRONG.items() for name in names}

Run = Callable[[Coroutine[Any, Any, Reading]], Reading]


def cases() -> list[Any]:
    """Return each row as it was asked for; a refusal must be told alike, whichever way was asked."""
    found: list[Any] = []
    for number, row in enumerate(read_rows()):
        marks = [pytest.mark.xfail(reason=_REASONS[row.name], strict=True)] if row.name in _REASONS else []
        for streaming in [row.streamed] if row.status < 300 else [row.streamed, not row.streamed]:
            way = "" if streaming == row.streamed else "-streamed" if streaming else "-whole"
            found.append(pytest.param(number, row, streaming, id=f"{row.name}{way}", marks=marks))
    return found


@pytest.fixture(scope="module")
def world() -> Iterator[tuple[str, Run]]:
    """Serve all rows from one address, in one event loop; return the address, and what runs in that loop."""
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        server = runner.run(stack.enter_async_context(loopback(Servers(read_rows()))))
        yield server.url, runner.run
        runner.run(stack.aclose())


@pytest.mark.usefixtures("surroundings")
@pytest.mark.parametrize(("number", "row", "streaming"), cases())
def test_a_reply_is_read_as_its_server_means_it(world: tuple[str, Run], number: int, row: Row, streaming: bool) -> None:
    url, run = world
    assert differences(row, run(read(row, f"{url}/{streaming}/{number}", streaming=streaming))) == []


def test_a_row_stands_in_the_file_of_its_make_under_a_name_of_its_own() -> None:
    found = [(path.stem, row) for path in sorted(FOLDER.iterdir()) for row in read_file(path)]
    assert [row.name for make, row in found if row.make != make] == []
    names = [row.name for _, row in found]
    assert len(names) == len(set(names)) >= 250
    assert set(_REASONS) <= set(names)


def test_a_row_says_what_it_must_give() -> None:
    told = ("text", "calls", "finish", "usage", "error")
    assert [row.name for row in read_rows() if not row.source or all(getattr(row, name) is None for name in told)] == []


ROW = Row(
    id="a",
    make="m",
    wire="openai-chat",
    source="s",
    status=200,
    headers={},
    streamed=False,
    body="",
    text="Low.",
    calls=[Call("tides", {"port": "Brest"}, "c1")],
    finish="tool_calls",
    usage=Usage(prompt=3),
)
RIGHT = Reading("Low.", ROW.calls or [], [("tides", {"port": "Brest"})], "tool_calls", Usage(3, 2, 0, 0))
REFUSED = replace(ROW, calls=None, text=None, error=Failure("rate_limit", True, ["wait"]))
TOLD = Reading("", error="please wait", kinds=("rate_limit",), retryable=True)


def test_what_agrees_has_no_differences() -> None:
    assert differences(ROW, RIGHT) == differences(REFUSED, TOLD) == []


@pytest.mark.parametrize(
    "change",
    [
        {"text": "High."},
        {"calls": [Call("tides", {"port": "Brest"}, "c2")]},
        {"calls": [Call("tides", {"port": "Oslo"}, "c1")]},
        {"ran": []},
        {"ran": [*RIGHT.ran, *RIGHT.ran]},
        {"finish": "stop"},
        {"usage": Usage(4)},
        {"error": "no", "kinds": ("server",)},
    ],
    ids=str,
)
def test_what_differs_from_an_answer_is_found(change: dict[str, Any]) -> None:
    assert len(differences(ROW, RIGHT._replace(**change))) == 1


@pytest.mark.parametrize(
    "change",
    [{"error": ""}, {"error": "no"}, {"kinds": ("server",)}, {"retryable": False}, {"retryable": None}],
    ids=str,
)
def test_what_differs_from_an_error_is_found(change: dict[str, Any]) -> None:
    assert len(differences(REFUSED, TOLD._replace(**change))) == 1


@pytest.mark.parametrize(
    ("change", "reading", "asked", "wrong"),
    [
        ({}, RIGHT, 2, 0),
        ({}, RIGHT._replace(finish="stop", usage=Usage()), 2, 0),
        ({}, RIGHT._replace(text="High."), 2, 1),
        ({}, RIGHT._replace(ran=[]), 1, 1),
        ({}, Reading("", error="no"), 1, 1),
        ({"calls": [], "finish": "length"}, Reading("", error="no"), 1, 0),
        ({"calls": [], "finish": "pause"}, Reading("Low. And rising."), 2, 0),
        ({"calls": [], "finish": "stop"}, Reading("Low. And rising."), 1, 1),
        ({"error": Failure("cut")}, Reading("Low."), 1, 1),
        ({"error": Failure("server", True, ["busy"])}, Reading("", error="too busy"), 1, 0),
        ({"error": Failure("server", True, ["busy"])}, Reading("", error="failed"), 1, 1),
        ({"error": Failure("slip", True, ["no call"])}, Reading("", error="failed"), 1, 0),
        ({"error": Failure("slip", True, ["no call"])}, Reading("done"), 2, 0),
        ({"error": Failure("slip", True, ["no call"])}, Reading(""), 1, 1),
    ],
)
def test_any_program_is_judged_by_what_its_user_sees(
    change: dict[str, Any], reading: Reading, asked: int, wrong: int
) -> None:
    assert len(shown_differences(replace(ROW, **change), reading, asked)) == wrong
