"""An agent with a tool over each model whose SDK is installed: streamed, by itself and with a given client."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from _smoke import SDKS, is_installed, make_client, run_checks

from suture import ChatModelAgent, tool
from suture.events import MessageDelta
from tests.models.loopback import Loopback, loopback
from tests.models.providers import KINDS, call_reply, make_model, streamed, text_reply

SAID = "High tide is at 06:12 in Dover."


def main() -> int:
    wires = [wire for wire, module in SDKS.items() if is_installed(module)]
    checks: dict[str, Callable[[], object]] = {}
    for wire in wires:
        checks[KINDS[wire].__name__] = partial(ask, wire, given=False)
        checks[f"{KINDS[wire].__name__} with a client"] = partial(ask, wire, given=True)
    return run_checks(checks)


def ask(wire: str, *, given: bool) -> None:
    asyncio.run(_ask(wire, given=given))


async def _ask(wire: str, *, given: bool) -> None:
    answers = [streamed(wire, call_reply(("call_1", "tides", '{"port": "Dover"}'))), streamed(wire, text_reply(SAID))]
    async with loopback(answers) as server:
        client = make_client(wire, server.url) if given else None
        key = {} if wire == "bedrock" else {"api_key": "none"}
        model: Any = KINDS[wire]("m", client=client) if given else make_model(wire, server.url, **key)
        await _converse(model, server)
        if client is not None:
            await _close(client)


async def _converse(model: Any, server: Loopback) -> None:
    """Ask once; the tool must run, its result reach the provider, and the pieces add up to the answer."""
    ran: list[str] = []

    @tool
    async def tides(port: str) -> str:
        """Look up today's high tide."""
        ran.append(port)
        return f"06:12 in {port}"

    async with ChatModelAgent(model=model, tools=[tides]).stream("When is high tide in Dover?") as run:
        pieces = [event.text async for event in run if isinstance(event, MessageDelta)]
        result = await run.result()
    assert ran == ["Dover"], f"the tool ran with {ran}"
    assert result.output == SAID, f"the answer is {result.output!r}"
    assert "".join(pieces) == SAID, f"the pieces are {pieces}"
    assert len(server.requests) == 2, f"{len(server.requests)} requests came"
    assert b"06:12 in Dover" in server.requests[1].body, "the result was not sent"


async def _close(client: Any) -> None:
    if hasattr(client, "aio") and hasattr(client.aio, "aclose"):
        await client.aio.aclose()
    closing = client.close() if hasattr(client, "close") else None
    if closing is not None:
        await closing


if __name__ == "__main__":
    raise SystemExit(main())
