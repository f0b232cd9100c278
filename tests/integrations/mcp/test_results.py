"""What tools of a real server give, over stdio and over HTTP: text, media, resources, data, failures."""

import asyncio
from collections.abc import Iterator
from importlib.metadata import version

import pytest
from mcp.types import CallToolResult

from suture import Message
from suture.integrations.mcp import MCPServer, as_tool_result
from suture.messages import AudioPart, FilePart, ImagePart, TextPart
from tests.integrations.mcp.calling import odd, results, served, sound, texts
from tests.integrations.mcp.odd_http import odd_http

CALLS = {
    "tides": '{"port": "Dover", "day": 7}',
    "depths": "",
    "files_read": '{"path": "log"}',
    "sink": "{}",
    "everything": "{}",
    "chart": "{}",
    "summary": "{}",
    "silent_failure": "{}",
    "chatty": "{}",
}


@pytest.fixture(scope="module", params=["stdio", "http"])
def answers(request: pytest.FixtureRequest) -> Iterator[dict[str, Message]]:
    """What each of the calls was answered with, all made at once."""

    async def main(server: MCPServer) -> dict[str, Message]:
        async with server:
            return dict(zip(CALLS, await results(server, *CALLS.items()), strict=True))

    if request.param == "stdio":
        yield asyncio.run(main(sound()))
    else:
        with served() as (url, _):
            yield asyncio.run(main(MCPServer.http(url)))


def test_a_text_is_the_result(answers: dict[str, Message]):
    assert (answers["tides"].content, answers["tides"].is_error) == ("06:07 in Dover", False)


def test_a_list_is_told_as_the_server_tells_it(answers: dict[str, Message]):
    assert answers["depths"].content == "3\n5\n8"


def test_data_that_a_text_repeats_is_told_once(answers: dict[str, Message]):
    assert answers["files_read"].content == '{\n  "path": "log",\n  "lines": 2\n}'


def test_data_that_no_text_repeats_is_told_beside_the_text(answers: dict[str, Message]):
    assert answers["summary"].content == 'Three ships.\n{"ships": ["a", "b", "c"]}'


def test_a_failure_is_an_error_that_says_what_the_server_said(answers: dict[str, Message]):
    assert (answers["sink"].content, answers["sink"].is_error) == ("Error executing tool sink: the ship is gone", True)


def test_a_failure_without_a_word_is_still_an_error(answers: dict[str, Message]):
    failure = answers["silent_failure"]
    assert (failure.content, failure.is_error) == ("The tool failed and did not say why.", True)


def test_every_kind_of_content_has_its_part(answers: dict[str, Message]):
    assert answers["everything"].user_input_multi_content == (
        TextPart("The chart:"),
        ImagePart(base64_data="iVBORw==", mime_type="image/png"),
        AudioPart(base64_data="AAAA", mime_type="audio/wav"),
        TextPart("Resource file:///log.txt:\nfog"),
        ImagePart(base64_data="iVBORw==", mime_type="image/png", extra={"uri": "file:///a/dot.png"}),
        FilePart(
            base64_data="AAAA",
            mime_type="application/octet-stream",
            name="log.pdf",
            extra={"uri": "file:///a/log.pdf"},
        ),
        TextPart("Resource almanac (text/plain): file:///almanac.txt\nAll tides."),
    )


def test_a_medium_that_is_no_base64_is_told_in_words_for_every_provider_would_refuse_it():
    content = [
        {"type": "image", "data": "no/base64!", "mimeType": "image/png"},
        {"type": "audio", "data": "AA\nAA", "mimeType": "audio/wav"},
    ]
    assert as_tool_result(CallToolResult.model_validate({"content": content})).parts == (
        TextPart("The server sent a medium (image/png), and its data is empty or no base64."),
        AudioPart(base64_data="AAAA", mime_type="audio/wav"),
    )


def test_a_medium_is_what_its_type_says():
    image = {"type": "image", "data": "AAAA", "mimeType": "application/pdf"}
    (part,) = as_tool_result(CallToolResult.model_validate({"content": [image]})).parts
    assert part == FilePart(base64_data="AAAA", mime_type="application/pdf")


def test_a_picture_that_a_tool_returns_is_a_picture(answers: dict[str, Message]):
    assert answers["chart"].user_input_multi_content == (ImagePart(base64_data="iVBORw==", mime_type="image/png"),)


def test_progress_and_log_lines_on_the_way_change_nothing(answers: dict[str, Message]):
    assert answers["chatty"].content == "done"


def test_lines_that_are_no_messages_change_nothing():
    async def main() -> list[Message]:
        async with odd("noisy") as server:
            return await results(server, ("echo", '{"say": "ahoy"}'))

    (answer,) = asyncio.run(main())
    assert (answer.content, answer.is_error) == ('{"say": "ahoy"}', False)


@pytest.mark.parametrize(
    ("habit", "said"),
    [
        ("no number", '{"depth": "NaN", "reach": [1.5, "-Infinity"]}'),
        ("no number twice", '{"depth": NaN}'),
    ],
)
def test_what_is_no_number_in_json_is_told_by_its_name_and_once(habit: str, said: str):
    async def main() -> list[str]:
        async with odd(habit) as server:
            return await texts(server, ("echo", "{}"))

    assert asyncio.run(main()) == [said]


@pytest.mark.parametrize("habit", ["half a character", "bytes that are no text"])
def test_what_is_no_character_is_told_as_the_replacement_character(habit: str):
    async def main() -> list[str]:
        async with odd(habit, timeout=60) as server:
            return [*await texts(server, ("echo", "{}")), *await texts(server, ("echo", "{}"))]

    assert asyncio.run(main()) == ["caf\ufffd", "caf\ufffd"]


def test_a_server_gets_a_few_harmless_variables_and_those_that_it_is_given(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SECRET_KEY", "do not tell")

    async def main() -> list[Message]:
        async with sound(env={"HARBOUR": "Dover"}, include=["environment"]) as server:
            return await results(server, ("environment", "{}"))

    (answer,) = asyncio.run(main())
    variables = answer.content.split("\n")
    assert {"HARBOUR", "PATH"} <= set(variables)
    assert "SECRET_KEY" not in variables


ANSWER = b'{"jsonrpc": "2.0", "id": %d, "result": {"content": [{"type": "text", "text": "TOLD"}]}}'

RELEASE = tuple(int(number) for number in version("mcp").split(".")[:2])
SMALL_EVENTS = pytest.mark.skipif((2, 0) <= RELEASE < (2, 3), reason="it reads events of 1 MiB at most")
NO_REDIRECTS = pytest.mark.skipif(RELEASE < (1, 30) or (2, 0) <= RELEASE < (2, 2), reason="it follows no redirect")
"""What a release of the SDK cannot do; docs/mcp.md names it."""


async def echo(url: str) -> str:
    async with MCPServer.http(url) as server:
        (told,) = await texts(server, ("echo", "{}"))
        return told


def test_a_stream_of_events_that_was_cut_goes_on_where_it_ended():
    with odd_http() as web:
        web.kind, web.call = "text/event-stream", b"id: 7\nretry: 1\ndata:\n\n"
        web.rest = b"id: 8\ndata: " + ANSWER + b"\n\n"
        assert asyncio.run(echo(web.url)) == "TOLD"


@NO_REDIRECTS
def test_an_address_that_redirects_to_another_path_is_good_enough():
    with odd_http() as web:
        assert asyncio.run(echo(web.url.replace("/mcp", "/"))) == "session 1"


@SMALL_EVENTS
def test_an_event_may_be_large():
    with odd_http() as web:
        web.kind = "text/event-stream"
        web.call = b"event: message\ndata: " + ANSWER.replace(b"TOLD", b"x" * 3_000_000) + b"\n\n"
        assert len(asyncio.run(echo(web.url))) == 3_000_000
