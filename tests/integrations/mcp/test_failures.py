"""What goes wrong with a server is told clearly, at entering to the program, in a call to the model; nothing hangs."""

import asyncio
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path
from traceback import format_exception

import pytest
from msgspec.structs import replace

from suture import ChatModelAgent, ConfigError, Message, Outcome
from suture.integrations.mcp import MCPServer, MCPServerError
from tests.integrations.mcp.calling import listening, model_that, odd, results, served, sound, texts
from tests.integrations.mcp.odd_http import odd_http


async def enter(server: MCPServer) -> None:
    async with server:
        pass


def refused(server: MCPServer) -> MCPServerError:
    with pytest.raises(MCPServerError) as caught:
        asyncio.run(enter(server))
    return caught.value


# --- entering ---------------------------------------------------------------------------------


def test_a_program_that_is_not_there_is_named():
    error = refused(MCPServer.stdio("no-such-program", ["server.py"]))
    assert str(error).startswith("the MCP server 'no-such-program server.py' cannot be used: FileNotFoundError: ")
    assert isinstance(error.__cause__, FileNotFoundError)


def test_a_server_that_ends_at_once_is_quoted():
    error = refused(odd("crash"))
    assert str(error).endswith("cannot be used: it ended before it answered; the last it said: no such harbour")
    assert "first line\nno such harbour" in error.__notes__[0]


def test_a_server_that_never_answers_is_given_up():
    assert str(refused(odd("silent", timeout=0.5))).endswith("cannot be used: it did not answer within 0.5 s")


def test_a_server_that_prints_to_its_stdout_and_never_answers_is_told_so():
    said = str(refused(odd("garbage", timeout=10)))  # long enough for a program to start
    assert "it did not answer within 10 s; it wrote what is no message: " in said
    assert "hello from a print" in said


@pytest.mark.parametrize(
    ("habit", "said"),
    [
        ("bad list", "cannot be used: ValidationError: "),
        ("circles", "cannot be used: ValueError: its list of tools never ends"),
        ("no type", "the tool 'bad' cannot be offered: "),
    ],
)
def test_a_list_of_tools_that_is_none_is_refused(habit: str, said: str):
    assert said in str(refused(odd(habit)))


def test_a_tool_that_cannot_be_offered_can_be_left_out():
    async def main() -> list[str]:
        async with odd("no type", exclude=["bad"]) as server:
            return [tool.name for tool in server.tools]

    assert asyncio.run(main()) == ["echo"]


def test_an_address_where_nobody_listens_is_named():
    with odd_http() as web:
        url = web.url
    error = refused(MCPServer.http(url))
    assert str(error).startswith(f"the MCP server {url!r} cannot be used: ConnectError: ")


def test_a_server_that_wants_to_know_who_asks_is_told_by_headers():
    with odd_http() as web:
        web.status = 401
        assert "(HTTP status 401)" in str(refused(MCPServer.http(web.url)))
        web.status = 200
        asyncio.run(enter(MCPServer.http(web.url, headers={"Authorization": "Bearer open"})))
        assert {sent["Authorization"] for sent in web.headers[-3:]} == {"Bearer open"}


def test_a_page_that_is_no_server_is_told_so():
    with odd_http() as web:
        web.html = True
        assert "Unexpected content type: text/html" in str(refused(MCPServer.http(web.url)))


def test_a_failed_entering_can_be_tried_again():
    async def main() -> list[str]:
        server = odd("silent", timeout=0.2)
        for _ in range(2):
            with pytest.raises(MCPServerError, match="did not answer"):
                await enter(server)
        return [tool.name for tool in server.tools]

    assert asyncio.run(main()) == []


def test_a_missing_sdk_is_named_with_the_command_that_installs_it():
    program = "import sys; sys.modules['mcp'] = None; import suture.integrations.mcp"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    told = ended.stderr.splitlines()[-1]
    assert told.startswith("suture.errors.ConfigError: this needs mcp>=")
    assert "(extra mcp), and mcp is not installed: " in told


# --- in a call --------------------------------------------------------------------------------


def failure(habit: str, seconds: float = 60.0) -> Message:
    """Return the answer of a server that has time to start, and then so many seconds for a call."""

    async def main() -> Message:
        async with odd(habit) as server:
            tools = [replace(tool, timeout=seconds) for tool in server.tools]
            result = await ChatModelAgent(model=model_that(("echo", "{}")), tools=tools).run("hi")
            return next(message for message in result.messages if message.role == "tool")

    return asyncio.run(main())


@pytest.mark.parametrize("habit", ["refusing", "refusing in general"])
def test_a_refusal_by_the_protocol_is_an_error_result(habit: str):
    answer = failure(habit)
    assert answer.is_error
    assert re.fullmatch(
        r"MCPServerError: the MCP server 'python\S* odd_server\.py' refused echo: no such berth", answer.content
    )


@pytest.mark.parametrize(
    ("habit", "text"),
    [("no structure", "{}"), ("other structure", '{"length": 3}'), ("no schema", '{"length": 3}')],
)
def test_a_result_that_does_not_fit_the_schema_of_its_tool_is_a_result(habit: str, text: str):
    answer = failure(habit)
    assert (answer.is_error, answer.content) == (False, text)


def test_an_answer_that_is_no_result_is_an_error_result():
    answer = failure("bad result")
    assert answer.is_error
    assert "answered echo with what cannot be used: " in answer.content
    assert answer.content.endswith("; whether echo was carried out is not known")


@pytest.mark.parametrize("habit", ["no result", "no error"])
def test_an_answer_that_cannot_be_read_ends_its_call_at_once(habit: str):
    answer = failure(habit)
    assert answer.is_error
    assert "answered echo with what cannot be used: " in answer.content


def test_a_call_that_takes_too_long_is_an_error_result_and_the_server_lives_on():
    async def main() -> tuple[Message, list[str]]:
        async with listening() as notes, sound(include=["tides", "wait"], env={"NOTES": notes.port}) as server:
            hurried = [replace(tool, timeout=0.3) if tool.name == "wait" else tool for tool in server.tools]
            late = (
                await ChatModelAgent(model=model_that(("wait", '{"mark": "x"}')), tools=hurried).run("hi")
            ).messages[2]
            assert [await notes.next(), await notes.next()] == ["x started", "x cancelled"]
            return late, await texts(server, ("tides", '{"port": "Dover"}'))

    late, after = asyncio.run(main())
    assert (late.content, late.is_error) == ("TimeoutError: wait did not finish within 0.3 s", True)
    assert after == ["06:01 in Dover"]


def test_the_timeout_of_a_server_is_that_of_its_tools():
    async def main() -> list[float | None]:
        async with odd("sound", timeout=7) as seven, odd("sound", timeout=None) as any_time, odd("sound") as usual:
            return [server.tools[0].timeout for server in (seven, any_time, usual)]

    assert asyncio.run(main()) == [7, None, 60.0]


@pytest.mark.parametrize(
    ("habit", "seconds", "said"),
    [
        ("mute", 0.5, "TimeoutError: echo did not finish within 0.5 s"),
        ("closes", 60, "went away during echo: the connection was"),
    ],
)
def test_a_server_that_says_nothing_more_holds_nobody_up(habit: str, seconds: float, said: str):
    answer = failure(habit, seconds)
    assert answer.is_error
    assert said in answer.content


def test_a_server_that_dies_in_a_call_is_told_and_started_anew_by_the_next():
    async def main() -> tuple[list[Message], list[str]]:
        async with sound(include=["die", "pid"]) as server:
            (before,) = await texts(server, ("pid", "{}"))
            died = await results(server, ("die", "{}"), ("die", "{}"))
            return died, [before, *await texts(server, ("pid", "{}"), ("pid", "{}"))]

    died, (before, *after) = asyncio.run(main())
    assert [message.is_error for message in died] == [True, True]
    for message in died:
        assert "went away during die: the connection was closed; whether die was carried out is not" in message.content
        assert message.content.endswith("the last it said: the boiler burst")
    assert after[0] == after[1] != before


def test_a_server_over_http_that_dies_is_an_error_and_found_again_when_it_is_back():
    async def main() -> list[str]:
        with served() as (url, process):
            async with MCPServer.http(url, include=["tides"]) as server:
                process.kill()
                process.wait()
                told = await texts(server, ("tides", '{"port": "Dover"}'))
                told += await texts(server, ("tides", '{"port": "Dover"}'))
        return told

    first, second = asyncio.run(main())
    assert "whether tides was carried out is not known" in first
    assert "cannot be used: ConnectError: " in second


def test_a_session_that_the_server_has_forgotten_is_begun_anew_by_the_next_call():
    async def main(url: str) -> list[str]:
        async with MCPServer.http(url) as server:
            told = await texts(server, ("echo", "{}"))
            web.session = 2
            return [*told, *await texts(server, ("echo", "{}")), *await texts(server, ("echo", "{}"))]

    with odd_http() as web:
        first, forgotten, again = asyncio.run(main(web.url))
        assert web.methods[-1] == "DELETE"
    assert (first, again) == ("session 1", "session 2")
    assert forgotten.endswith("has ended the session, and echo was not called; call it once more")


def test_a_status_that_refuses_one_call_is_named():
    async def main(url: str) -> list[str]:
        async with MCPServer.http(url) as server:
            web.status = 503
            told = await texts(server, ("echo", "{}"))
            web.status = 200
            return [*told, *await texts(server, ("echo", "{}"))]

    with odd_http() as web:
        refusal, after = asyncio.run(main(web.url))
    assert refusal.endswith("refused echo: Server returned an error response (HTTP status 503)")
    assert after == "session 1"


JSON, EVENTS = "application/json", "text/event-stream"
REFUSAL = b'{"jsonrpc": "2.0", "id": %d, "error": {"code": -32602, "message": "no such berth"}}'


@pytest.mark.parametrize(
    ("status", "kind", "body", "said"),
    [
        (400, JSON, REFUSAL, "refused echo: no such berth (HTTP status 400)"),
        (200, "text/html", b"<html>hello</html>", "refused echo: Unexpected content type: text/html"),
        (202, "text/plain", b"", "refused echo: server answered a request with 202 Accepted"),
        (200, JSON, b"{", "answered echo with what cannot be used: "),
        (200, JSON, b'{"jsonrpc": "2.0"}', "answered echo with what cannot be used: "),
        (200, EVENTS, b"", "broke off echo: SSE stream ended without a response; whether echo was carried out is not"),
        (200, EVENTS, b"event: message\ndata: {", "broke off echo: SSE stream ended without a response; whether"),
    ],
)
def test_a_call_that_http_does_not_answer_is_an_error_at_once_and_the_connection_lives_on(
    status: int, kind: str, body: bytes, said: str
):
    async def main(url: str) -> list[str]:
        async with MCPServer.http(url) as server:
            web.call_status, web.kind, web.call = status, kind, body
            told = await texts(server, ("echo", "{}"))
            web.kind = ""
            return [*told, *await texts(server, ("echo", "{}"))]

    with odd_http() as web:
        failed, after = asyncio.run(main(web.url))
        assert web.methods.count("initialize") == 1
    assert said in failed
    assert after == "session 1"


def test_a_server_that_refuses_notifications_is_usable():
    async def main(url: str) -> list[str]:
        async with MCPServer.http(url) as server:
            return await texts(server, ("echo", "{}"))

    with odd_http() as web:
        web.notification_status = 400
        assert asyncio.run(main(web.url)) == ["session 1"]


@pytest.mark.parametrize(
    ("place", "headers"),
    [
        ("", {"Authorization": "Bearer harbour-master-key", "X-Key": "quayside-key"}),
        ("bosun:harbour-master@", {"X-Key": "quayside-key"}),
    ],
)
def test_a_secret_that_a_server_repeats_is_told_to_nobody(place: str, headers: dict[str, str]):
    async def main(url: str) -> list[str]:
        async with MCPServer.http(url, headers=headers) as server:
            web.repeats = True
            told = await texts(server, ("echo", "{}"))
            agent = ChatModelAgent(model=model_that(("echo", "{}")), tools=server.tools, tool_errors="raise")
            with pytest.raises(MCPServerError) as called:
                await agent.run("hi")
        with pytest.raises(MCPServerError) as entered:
            await enter(MCPServer.http(url, headers=headers))
        return [*told, *["".join(format_exception(each.value)) for each in (called, entered)]]

    with odd_http() as web:
        told = asyncio.run(main(f"{web.url}?token=lighthouse-key".replace("//", f"//{place}")))
        assert web.headers[-1]["X-Key"] == "quayside-key"
        assert "lighthouse" in web.path
    for text in told:
        assert "no entry for " in text
        assert "***" in text
        assert not re.search("master|quayside|lighthouse|Ym9zdW46", text)


def test_an_address_that_redirects_elsewhere_is_told_without_its_secrets():
    async def main(url: str) -> str:
        with pytest.raises(MCPServerError) as caught:
            await enter(MCPServer.http(url))
        return "".join(format_exception(caught.value))

    with odd_http() as web:
        web.elsewhere = "http://127.0.0.2:1/mcp?token=lighthouse-key"
        url = web.url.replace("//", "//bosun:harbour-master@").replace("/mcp", "/?token=lighthouse-key")
        assert not re.search("master|lighthouse", asyncio.run(main(url)))
        assert web.methods


# --- the program's own mistakes -----------------------------------------------------------------


def test_tools_of_a_server_that_was_left_end_the_run_with_a_clear_error():
    async def main() -> None:
        async with odd("sound") as server:
            pass
        await results(server, ("echo", "{}"))

    with pytest.raises(ConfigError, match="has been left; run the agent inside its async with block"):
        asyncio.run(main())


def test_tools_in_another_event_loop_end_the_run_instead_of_hanging():
    async def main() -> None:
        async with odd("sound") as server:
            ChatModelAgent(model=model_that(("echo", "{}")), tools=server.tools).run_sync("hi")

    with pytest.raises(ConfigError, match="was entered in another event loop; await agent"):
        asyncio.run(main())


def test_a_server_is_entered_once_at_a_time():
    async def main() -> list[str]:
        server = odd("sound")
        async with server:
            with pytest.raises(ConfigError, match="is entered already"):
                await enter(server)
            first = await texts(server, ("echo", "{}"))
        async with server:
            return first + await texts(server, ("echo", "{}"))

    assert asyncio.run(main()) == ["{}", "{}"]


def test_a_file_gets_what_the_server_writes_to_its_stderr(tmp_path: Path):
    with (tmp_path / "log").open("w+") as log:
        assert "the last it said" not in str(refused(odd("crash", stderr=log)))
        log.seek(0)
        assert log.read() == "first line\nno such harbour\n"
    with pytest.raises(MCPServerError, match="UnsupportedOperation"):
        asyncio.run(enter(odd("crash", stderr=StringIO())))


def test_tool_errors_can_end_the_run():
    async def main() -> Outcome:
        async with odd("refusing") as server:
            agent = ChatModelAgent(model=model_that(("echo", "{}")), tools=server.tools, tool_errors="raise")
            run = agent.stream("hi")
            with pytest.raises(MCPServerError, match="refused echo"):
                await run.result()
            assert run.final_result is not None
            return run.final_result.outcome

    assert asyncio.run(main()) is Outcome.FAILED
