"""Whoever stops listening hangs up: the server sees it, and nothing is left behind."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from suture import ChatModelAgent
from suture._aio import _THREADS
from suture.events import MessageDelta
from suture.models import closing
from tests.models.loopback import Answer, Loopback, loopback
from tests.models.providers import HELLO, WIRES, frames, http_of, make_model, stream_headers, streamed, text_reply

pytestmark = pytest.mark.usefixtures("surroundings")
SOON = 60.0
"""How long a test waits for what should come at once, before it fails."""


def silent() -> Answer:
    """Return an answer that never begins."""
    return Answer(head=b"", then="hang")


def broken_off(wire: str) -> Answer:
    """Return an answer that begins to say something, and stays silent then."""
    events = frames(wire, text_reply())
    said = next(place for place, event in enumerate(events) if b"calm" in event)
    return Answer(events[: said + 1], headers=stream_headers(wire), then="hang")


async def gone(server: Loopback) -> None:
    await asyncio.wait_for(server.left.wait(), SOON)
    await asyncio.wait_for(no_busy_threads(), SOON)


async def no_busy_threads() -> None:
    """Wait until the threads that worked for boto3 are free."""
    while len(_THREADS.idle) < _THREADS.count:  # noqa: ASYNC110 - what another thread does is no event here
        await asyncio.sleep(0.01)


async def read(model: Any) -> None:
    async with closing(model.stream(HELLO)) as items:
        async for _ in items:
            pass


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("wire", WIRES)
def test_a_task_that_is_cancelled_before_the_answer_hangs_up(wire: str, streaming: bool):
    async def run() -> None:
        async with loopback([silent()]) as server:
            task = asyncio.create_task(read(make_model(wire, server.url, streaming=streaming)))
            await server.came.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await gone(server)

    asyncio.run(run())


@pytest.mark.parametrize("wire", WIRES)
def test_a_task_that_is_cancelled_while_the_answer_comes_hangs_up(wire: str):
    async def run() -> None:
        async with loopback([broken_off(wire)]) as server:
            heard = asyncio.Event()

            async def listen() -> None:
                async with closing(make_model(wire, server.url).stream(HELLO)) as items:
                    async for _ in items:
                        heard.set()

            task = asyncio.create_task(listen())
            await asyncio.wait_for(heard.wait(), SOON)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await gone(server)

    asyncio.run(run())


@pytest.mark.parametrize("wire", WIRES)
def test_a_run_that_is_cancelled_before_the_answer_hangs_up(wire: str):
    async def run() -> str:
        async with loopback([silent()]) as server:
            running = ChatModelAgent(model=make_model(wire, server.url)).stream("hi")
            async with running:
                await server.came.wait()
                result = await running.cancel()
            await gone(server)
            return result.outcome.value

    assert asyncio.run(run()) == "cancelled"


@pytest.mark.parametrize("wire", WIRES)
def test_a_run_that_is_cancelled_while_the_answer_comes_hangs_up_and_keeps_what_was_said(wire: str):
    async def run() -> Any:
        async with loopback([broken_off(wire)]) as server:
            async with ChatModelAgent(model=make_model(wire, server.url)).stream("hi") as running:
                async for event in running:
                    if isinstance(event, MessageDelta) and event.delta.text:
                        break
                result = await running.cancel()
            await gone(server)
            return result

    result = asyncio.run(run())
    assert result.outcome.value == "cancelled"
    assert result.messages[-1].content == "The sea is calm."


@pytest.mark.parametrize("wire", WIRES)
def test_a_reader_that_stops_early_hangs_up(wire: str):
    async def run() -> None:
        async with loopback([broken_off(wire)]) as server:
            async with closing(make_model(wire, server.url).stream(HELLO)) as items:
                async for _ in items:
                    break
            await gone(server)

    asyncio.run(run())


@pytest.mark.parametrize("wire", WIRES)
def test_a_server_that_is_silent_is_left_after_the_timeout(wire: str):
    from suture.errors import ModelTimeoutError

    async def run(answer: Answer) -> float:
        loop = asyncio.get_running_loop()
        async with loopback([answer]) as server:
            model = make_model(wire, server.url, timeout=0.3)
            await model_is_ready(model)
            began = loop.time()
            with pytest.raises(ModelTimeoutError, match=r"0\.3 seconds") as caught:
                await read(model)
            assert caught.value.provider == wire
            assert caught.value.retryable
            took = loop.time() - began
            await gone(server)
            return took

    assert asyncio.run(run(silent())) > 0.25
    assert asyncio.run(run(broken_off(wire))) > 0.25


@pytest.mark.parametrize("timeout", [None, 600.0])
def test_a_timeout_of_somebody_elses_is_not_taken_for_ours(timeout: float | None):
    import openai

    from suture.errors import ModelTimeoutError
    from suture.models import OpenAIChatModel

    library = http_of("openai-chat")

    class Late(library.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b": wait\n\n"
            raise TimeoutError("the tunnel is slow")

    def answer(_: Any) -> Any:
        return library.Response(200, headers={"content-type": "text/event-stream"}, stream=Late())

    async def run() -> None:
        http = library.AsyncClient(transport=library.MockTransport(answer))
        async with openai.AsyncOpenAI(base_url="http://127.0.0.1", api_key="none", http_client=http) as client:
            with pytest.raises(ModelTimeoutError, match="the tunnel is slow"):
                await read(OpenAIChatModel("m", client=client, timeout=timeout))

    asyncio.run(run())


async def model_is_ready(model: Any) -> None:
    """Have the SDK make its client first: that takes longer than the timeout on a busy machine."""
    if hasattr(model, "_get_client"):  # boto3's, which blocks
        await asyncio.to_thread(model._get_client)
    else:
        await model.client()


@pytest.mark.parametrize("wire", WIRES)
def test_a_slow_server_is_heard_to_the_end(wire: str):
    async def run() -> list[Any]:
        turns = asyncio.Semaphore(0)
        body = b"".join(frames(wire, text_reply()))
        pieces = [body[place : place + 1] for place in range(len(body))]

        async def wait(_: int) -> None:
            await turns.acquire()

        async def tick() -> None:
            for _ in pieces:
                turns.release()
                await asyncio.sleep(0)

        async with loopback([Answer(pieces, headers=stream_headers(wire), after=wait)]) as server:
            ticking = asyncio.create_task(tick())
            said = [item async for item in make_model(wire, server.url, timeout=60).stream(HELLO)]
            await ticking
            return said

    assert asyncio.run(run())[-1].content == "The sea is calm."


PROGRAM = """
import asyncio, sys
sys.path.insert(0, {root!r})
from tests.models.providers import HELLO, make_model

async def ask():
    async for _ in make_model({wire!r}, {url!r}).stream(HELLO):
        pass

async def main():
    task = asyncio.create_task(ask())
    await asyncio.to_thread(sys.stdin.readline)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

asyncio.run(main())
print("over")
"""


@pytest.mark.parametrize("wire", ["bedrock", "openai-chat"])
def test_a_program_that_gives_up_ends_at_once(wire: str, tmp_path: Path):
    async def run() -> tuple[int, bytes, bytes]:
        async with loopback([silent()]) as server:
            path = tmp_path / "program.py"
            path.write_text(PROGRAM.format(root=str(Path(__file__).parents[2]), wire=wire, url=server.url))
            program = await asyncio.create_subprocess_exec(
                sys.executable,
                "-W",
                "error",
                str(path),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(os.environ),
            )
            await asyncio.wait_for(server.came.wait(), 60)
            said, failed = await asyncio.wait_for(program.communicate(b"\n"), 120)
            return program.returncode or 0, said, failed

    assert asyncio.run(run()) == (0, b"over\n", b"")


@pytest.mark.parametrize("wire", WIRES)
def test_a_connection_is_used_again_after_a_reader_that_stopped_early(wire: str):
    async def run() -> tuple[int, Any]:
        async with loopback([broken_off(wire), streamed(wire, text_reply())]) as server:
            model = make_model(wire, server.url)
            async with closing(model.stream(HELLO)) as items:
                async for _ in items:
                    break
            await gone(server)
            said = [item async for item in model.stream(HELLO)]
            return server.connections, said[-1].content

    assert asyncio.run(run()) == (2, "The sea is calm.")
