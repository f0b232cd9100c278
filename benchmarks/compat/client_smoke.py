"""`wrap` around each client of `openai` and `anthropic` that is installed: what arrives is a history that passes."""

import asyncio
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from _smoke import SDKS, is_installed, make_client, run_checks

import suture
from tests.histories import write
from tests.models.loopback import Asked, serving
from tests.models.providers import history_in, streamed, text_reply, whole

NAMES = {"openai-chat": "chat", "openai-responses": "responses", "anthropic": "messages"}
BROKEN = [("user", "When is high tide?"), ("turn", [("call_1", "tides", "{}")]), ("user", "Never mind.")]


def main() -> int:
    checks: dict[str, Callable[[], object]] = {}
    for wire, name in NAMES.items():
        if is_installed(SDKS[wire]):
            checks[f"wrap {name}"] = partial(send_all, wire, SDKS[wire])
    return run_checks(checks)


def send_all(wire: str, sdk: str) -> None:
    """Send a broken history in the four ways there are."""
    wrap = import_module(f"suture.integrations.{sdk}").wrap
    history = write(wire, BROKEN)
    assert suture.check(history, wire=wire).findings, "the history is not broken"

    def answer(asked: Asked) -> Any:
        return (streamed if asked.payload.get("stream") else whole)(wire, text_reply())

    for streams in (False, True):
        for asynchronous in (False, True):
            with serving(answer) as server:
                client = make_client(wire, server.url, asynchronous=asynchronous)
                if asynchronous:
                    asyncio.run(_send_async(wire, wrap(client), history, streams=streams))
                else:
                    _send(wire, wrap(client), history, streams=streams)
                    client.close()
                (asked,) = server.requests
                assert not suture.check(history_in(wire, asked.payload), wire=wire).findings, (
                    f"{asked.payload} is broken"
                )
                assert b"call_1" in asked.body, "the call was lost"


def _call(wire: str, client: Any, history: Any, **how: Any) -> Any:
    if wire == "openai-chat":
        return client.chat.completions.create(model="m", messages=history, **how)
    if wire == "openai-responses":
        return client.responses.create(model="m", input=history, **how)
    return client.messages.create(model="m", max_tokens=9, messages=history, **how)


def _send(wire: str, client: Any, history: Any, *, streams: bool) -> None:
    reply = _call(wire, client, history, **({"stream": True} if streams else {}))
    assert list(reply) if streams else reply


async def _send_async(wire: str, client: Any, history: Any, *, streams: bool) -> None:
    reply = await _call(wire, client, history, **({"stream": True} if streams else {}))
    assert [event async for event in reply] if streams else reply
    await client.close()


if __name__ == "__main__":
    raise SystemExit(main())
