"""The ways to run an agent, as one: each drives the run to its end and returns what can be asked for its messages."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from pydantic_ai import Agent


async def _plain(agent: Agent[Any, Any], prompt: str | None, **settings: Any) -> Any:
    return await agent.run(prompt, **settings)


async def _streaming(agent: Agent[Any, Any], prompt: str | None, **settings: Any) -> Any:
    async with agent.run_stream(prompt, **settings) as run:
        await run.get_output()
    return run


async def _step_by_step(agent: Agent[Any, Any], prompt: str | None, **settings: Any) -> Any:
    async with agent.iter(prompt, **settings) as run:
        async for _ in run:
            pass
    return run.result


WAYS: dict[str, Callable[..., Awaitable[Any]]] = {
    "run": _plain,
    "run_stream": _streaming,
    "iter": _step_by_step,
}


def run(agent: Agent[Any, Any], prompt: str | None, *, way: str = "run", **settings: Any) -> Any:
    """Run `agent` to its end."""

    async def main() -> Any:
        return await WAYS[way](agent, prompt, **settings)

    return asyncio.run(main())
