"""What every contestant does: read cases, run them several at once, and print how each went as a JSON line."""

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

__all__ = ["Case", "contest"]

Case = Mapping[str, Any]
"""The `id` of a case, its `wire`, the `model`'s name, whether it is `streamed`, and the `url`."""
_AT_ONCE = 6


def contest(
    ask: Callable[[Case, Callable[[], str]], Awaitable[str]],
    around: Callable[[], AbstractAsyncContextManager[object]] = nullcontext,
) -> None:
    """Run the cases that come as one JSON line: `ask` is given a case and its tool, and returns the answer.

    `around` is entered before the first and left behind the last.
    """
    os.environ.update(OPENAI_API_KEY="none", ANTHROPIC_API_KEY="none", GEMINI_API_KEY="none")
    os.environ.update(AWS_ACCESS_KEY_ID="none", AWS_SECRET_ACCESS_KEY="none", AWS_DEFAULT_REGION="us-east-1")

    async def play() -> None:
        async with around():
            await _all(json.loads(sys.stdin.readline()), ask)

    asyncio.run(play())


async def _all(cases: list[Case], ask: Callable[[Case, Callable[[], str]], Awaitable[str]]) -> None:
    free = asyncio.Semaphore(_AT_ONCE)

    async def one(case: Case) -> None:
        ran: list[str] = []

        def pay() -> str:
            """Pay."""
            ran.append("paid")
            return "paid"

        async with free:
            start, answer = time.monotonic(), ""
            try:
                async with asyncio.timeout(30):
                    answer = await ask(case, pay)
            except Exception as error:  # noqa: BLE001 - it is what the case is for
                answer = f"{type(error).__name__}: {error}"[:200]
            seconds = time.monotonic() - start
        print(json.dumps({"id": case["id"], "answer": answer, "ran": len(ran), "seconds": seconds}), flush=True)

    await asyncio.gather(*map(one, cases))
