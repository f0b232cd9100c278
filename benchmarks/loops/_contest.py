"""What every contestant shares: the script of its fake model, the clock, and the way it talks with the parent.

It runs in environments that hold nothing but one framework, so it needs the standard library alone.

A contestant is a program. It gets one JSON object a line, `{"variant": …, "steps": …, "least": …}`, does that run, and
answers with one JSON object a line. Its first line says what it is: `{"name": …, "version": …}`.
"""

import asyncio
import gc
import json
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

__all__ = ["ANSWER", "NOOPS", "WINDOW", "Script", "call", "sdk_client", "serve"]

ANSWER = "done"
"""What the model says in the end."""
NOOPS = 5
"""Middlewares that pass everything through."""
WINDOW = 20
"""Steps at the start and at the end of a run whose cost is compared."""

_LEAST_SAMPLE = 0.02
"""CPU seconds of a sample; shorter runs are repeated within it, and their mean is the sample."""
_OUTPUT = "it was read, and nothing in it speaks against the plan; " * 6


class Script:
    """One run of the fake model: what it replies, when it was asked, and how often the tool ran."""

    def __init__(self, steps: int, *, each: bool = False) -> None:
        window = min(WINDOW, steps // 2)
        self.steps = steps
        self.window = window
        self.marks = frozenset(range(steps + 1) if each else (0, window, steps - window, steps))
        self.stamps: dict[int, float] = {}
        self.replies: list[Any] = []
        self.asked = 0
        self.ran = 0

    def stamp(self, index: int, seconds: float | None = None) -> None:
        self.stamps[index] = time.process_time() if seconds is None else seconds

    def reply(self) -> Any:
        """Return the next reply. What is stamped is the moment the model is asked."""
        index = self.asked
        self.asked = index + 1
        if index in self.marks:
            self.stamps[index] = time.process_time()
        return self.replies[index]

    def run(self, n: object) -> str:
        """Do the tool's work."""
        self.ran += 1
        return f"step {n} is done"

    def work(self, n: object, seconds: float | None = None) -> str:
        """Do the tool's work, of some more text, where the model cannot be stamped: the tool is."""
        if self.ran in self.marks:
            self.stamp(self.ran, seconds)
        return f"{self.run(n)}: {_OUTPUT}"

    def skip(self) -> list[tuple[str, dict[str, Any], str]]:
        """Return id, arguments and result of each step up to the last ones; they count as made, and are not run."""
        skipped = range(self.ran, self.steps - self.window - 1)
        return [(*call(n), self.work(n)) for n in skipped]


def call(number: int) -> tuple[str, dict[str, Any]]:
    """Return id and arguments of the call that a real model asks for in a step."""
    return f"call_{number}", {"n": number, "path": f"src/module_{number}.py"}


Run = Callable[[], Awaitable[object]]
"""Runs the agent to its end and returns the text of its last message."""
Prepare = Callable[[Script], Run]
"""Makes, before the clock starts, all that a run needs: the replies and, where it can be used but once, the agent.

Another run may be prepared, and run, before this one: where the model or the tool is shared, the run itself gives them
their script."""


def sdk_client(wire: str, url: str) -> Any:
    """Return a client of a provider's SDK, to ask the server at `url`."""
    if wire.startswith("openai"):
        from openai import AsyncOpenAI

        return AsyncOpenAI(api_key="none", base_url=f"{url}/v1", max_retries=0)
    if wire == "anthropic":
        from anthropic import AsyncAnthropic

        return AsyncAnthropic(api_key="none", base_url=url, max_retries=0)
    if wire == "gemini":
        import google.genai as genai  # noqa: PLR0402 - stubs of another package hide it from `from google import`

        return genai.Client(api_key="none", http_options={"base_url": url})
    import boto3

    keys = {"aws_access_key_id": "none", "aws_secret_access_key": "none", "region_name": "us-east-1"}
    return boto3.client("bedrock-runtime", endpoint_url=url, **keys)


def serve(name: str, version: str, variants: Mapping[str, Prepare]) -> None:
    """Answer the parent until it closes our standard input."""
    gc.collect()
    gc.freeze()  # what the framework's modules hold is not looked through again before each run
    _say({"name": name, "version": version})
    with asyncio.Runner() as runner:
        for line in sys.stdin:
            asked = json.loads(line)
            prepare, steps = variants[asked["variant"]], asked["steps"]
            sample = _least if asked.get("least") else _sample
            _say(runner.run(sample(prepare, steps)))


async def _least(prepare: Prepare, steps: int) -> dict[str, float]:
    """Do one run: a step that takes milliseconds is over, at least once, before anything else disturbs it."""
    script = Script(steps, each=True)
    seconds, start = await _time(prepare, script)
    costs = [script.stamps[n + 1] - script.stamps[n] for n in range(steps)]
    window = script.window
    begin = script.stamps[0] - start
    return {"step": seconds / steps, "first": min(costs[:window]), "last": min(costs[-window:]), "begin": begin}


async def _sample(prepare: Prepare, steps: int) -> dict[str, float]:
    total = first = last = 0.0
    runs = 0
    while total < _LEAST_SAMPLE:
        script = Script(steps)
        total += (await _time(prepare, script))[0]
        first += script.stamps[script.window] - script.stamps[0]
        last += script.stamps[steps] - script.stamps[steps - script.window]
        runs += 1
    window = runs * min(WINDOW, steps // 2)
    return {"step": total / runs / steps, "first": first / window, "last": last / window, "begin": 0.0, "runs": runs}


async def _time(prepare: Prepare, script: Script) -> tuple[float, float]:
    # As in the rest of the benchmark: no garbage is collected while the clock runs.
    run, short = prepare(script), prepare(Script(min(WINDOW, script.steps // 4)))
    gc.collect()
    gc.disable()
    try:
        # Preparing and collecting leave the processor's caches cold; the first steps would pay for that.
        await asyncio.create_task(_clock(short))
        # A task of its own, as a service has it: nothing that a run sets in its context outlives the run.
        seconds, start, answer = await asyncio.create_task(_clock(run))
    finally:
        gc.enable()
    if answer != ANSWER or script.ran != script.steps or len(script.stamps) != len(script.marks):
        raise SystemExit(f"asked for {script.steps} steps, {script.ran} were made; the answer is {answer!r}")
    return seconds, start


async def _clock(run: Run) -> tuple[float, float, object]:
    start = time.process_time()
    answer = await run()
    return time.process_time() - start, start, answer


def _say(what: dict[str, Any]) -> None:
    print(json.dumps(what), flush=True)
