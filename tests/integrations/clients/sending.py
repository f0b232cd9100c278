"""Clients of the SDKs against a server on loopback: how each method is called, and what the server saw."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import anthropic
import openai
import pydantic

from suture.integrations import anthropic as suture_anthropic
from suture.integrations import openai as suture_openai
from tests.models.loopback import Answer, Asked, Loopback, json_answer, loopback
from tests.models.providers import streamed, text_reply, whole

FIELDS = {"openai-chat": "messages", "openai-responses": "input", "anthropic": "messages"}
WIRES = tuple(FIELDS)
ANSWER = '{"high": "06:12"}'


class Tide(pydantic.BaseModel):
    """What `parse` is asked for."""

    high: str


@asynccontextmanager
async def plain_client(wire: str, url: str, *, asynchronous: bool = False, **settings: Any) -> AsyncIterator[Any]:
    """Give a plain client of the SDK that speaks `wire`, and close it in the end."""
    if wire == "anthropic":
        kind: Any = anthropic.AsyncAnthropic if asynchronous else anthropic.Anthropic
        client = kind(api_key="none", base_url=url, **settings)
    else:
        kind = openai.AsyncOpenAI if asynchronous else openai.OpenAI
        client = kind(api_key="none", base_url=f"{url}/v1", **settings)
    async with closed_at_the_end(client):
        yield client


@asynccontextmanager
async def closed_at_the_end(client: Any) -> AsyncIterator[None]:
    try:
        yield
    finally:
        closing = client.close()
        if inspect.isawaitable(closing):
            await closing


def wrap(client: Any, **settings: Any) -> Any:
    """Return the client wrapped by the module for its SDK."""
    packages = {kind.__module__.partition(".")[0] for kind in type(client).__mro__}
    ours = suture_anthropic if "anthropic" in packages else suture_openai
    return ours.wrap(client, **settings)


class Method(NamedTuple):
    """One way to send a history."""

    wire: str
    name: str
    call: Callable[[Any, Any], Any]
    counts: bool = False
    """What comes back is a number of tokens."""


def _chat(name: str, call: Callable[..., Any]) -> Method:
    return Method("openai-chat", name, lambda client, messages: call(client, model="m", messages=messages))


def _responses(name: str, call: Callable[..., Any], **more: bool) -> Method:
    return Method("openai-responses", name, lambda client, items: call(client, model="m", input=items), **more)


def _messages(name: str, call: Callable[..., Any]) -> Method:
    return Method("anthropic", name, lambda client, messages: call(client, model="m", max_tokens=9, messages=messages))


def _counted(name: str, call: Callable[..., Any]) -> Method:
    return Method("anthropic", name, lambda client, messages: call(client, model="m", messages=messages), True)


METHODS = (
    _chat("create", lambda c, **k: c.chat.completions.create(**k)),
    _chat("create stream", lambda c, **k: c.chat.completions.create(stream=True, **k)),
    _chat("stream", lambda c, **k: c.chat.completions.stream(**k)),
    _chat("parse", lambda c, **k: c.chat.completions.parse(response_format=Tide, **k)),
    _chat("raw", lambda c, **k: c.chat.completions.with_raw_response.create(**k)),
    _chat("streaming response", lambda c, **k: c.chat.completions.with_streaming_response.create(**k)),
    _chat("raw from the client", lambda c, **k: c.with_raw_response.chat.completions.create(**k)),
    _responses("create", lambda c, **k: c.responses.create(**k)),
    _responses("create stream", lambda c, **k: c.responses.create(stream=True, **k)),
    _responses("stream", lambda c, **k: c.responses.stream(**k)),
    _responses("parse", lambda c, **k: c.responses.parse(text_format=Tide, **k)),
    _responses("raw", lambda c, **k: c.responses.with_raw_response.create(**k)),
    _responses("streaming response", lambda c, **k: c.responses.with_streaming_response.create(**k)),
    _responses("beta create", lambda c, **k: c.beta.responses.create(**k)),
    _responses("compact", lambda c, **k: c.responses.compact(**k)),
    _responses("input_tokens", lambda c, **k: c.responses.input_tokens.count(**k), counts=True),
    _messages("create", lambda c, **k: c.messages.create(**k)),
    _messages("create stream", lambda c, **k: c.messages.create(stream=True, **k)),
    _messages("stream", lambda c, **k: c.messages.stream(**k)),
    _messages("parse", lambda c, **k: c.messages.parse(output_format=Tide, **k)),
    _messages("raw", lambda c, **k: c.messages.with_raw_response.create(**k)),
    _messages("streaming response", lambda c, **k: c.messages.with_streaming_response.create(**k)),
    _messages("beta create", lambda c, **k: c.beta.messages.create(betas=["some-beta"], **k)),
    _messages("beta stream", lambda c, **k: c.beta.messages.stream(**k)),
    _counted("count_tokens", lambda c, **k: c.messages.count_tokens(**k)),
    _counted("beta count_tokens", lambda c, **k: c.beta.messages.count_tokens(**k)),
)
CREATE = {method.wire: method for method in METHODS if method.name == "create"}


async def send(client: Any, call: Callable[[Any, Any], Any], messages: Any) -> Any:
    """Send `messages`, and take all that comes back; return it."""
    if "Async" not in type(client).__name__:
        return await asyncio.to_thread(_send, client, call, messages)
    given = call(client, messages)
    given = await given if inspect.isawaitable(given) else given
    if not hasattr(given, "__aenter__"):
        return given
    async with given as opened:
        return [item async for item in opened] if hasattr(opened, "__aiter__") else await opened.json()


def _send(client: Any, call: Callable[[Any, Any], Any], messages: Any) -> Any:
    given = call(client, messages)
    if not hasattr(given, "__enter__"):
        return given
    with given as opened:
        return list(opened) if hasattr(opened, "__iter__") else opened.json()


def answered(wire: str) -> Callable[[Asked], Answer]:
    """Return what the server says: a text, streamed where that was asked for, or a number of tokens."""

    def answer(asked: Asked) -> Answer:
        if "tokens" in asked.path:
            return json_answer({"input_tokens": 7, "object": "response.input_tokens"})
        reply = text_reply(ANSWER)
        return streamed(wire, reply) if asked.payload.get("stream") else whole(wire, reply)

    return answer


def talk(
    wire: str,
    use: Callable[[Loopback], Awaitable[Any]],
    answer: Callable[[Asked], Answer] | Sequence[Answer] = (),
) -> list[Asked]:
    """Let `use` talk to a server; return what the server was asked."""

    async def main() -> list[Asked]:
        async with loopback(answer or answered(wire)) as server:
            await use(server)
            return server.requests

    return asyncio.run(main())
