"""An agent that reads a 50 MB log through a context of 8,000 tokens, and loses nothing of it.

The log is streamed into the agent's backend while the tool runs; the model sees how it begins and where it is. Then
it searches, reads a window here and there, and notes what it found. Old windows leave the context by themselves.
The model is scripted, so this runs anywhere; what it does is what a model does with the texts it is given.
"""

import asyncio
import re
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

from suture import ChatModelAgent, Message, ToolCall, tool
from suture.events import HistoryRewritten, MessageFinished
from suture.middleware import ToolReduction
from suture.stores import LocalBackend
from suture.testing import ScriptedModel
from suture.tokens import CharacterCounter

LIMIT = 8_000
"""Tokens that the model takes."""
LINES, FAILURES = 940_000, (12_345, 98_765, 200_001, 333_333, 471_100, 555_555, 640_404, 712_345, 790_000)


def write_log(path: Path) -> None:
    """Write the log of a shop: one line a request, and a few payments that fail after a slow lock."""
    with path.open("w") as log:
        for line in range(1, LINES + 1):
            if line + 2 in FAILURES:
                log.write(f"{line:07d} WARN  lock on account {line % 89} held for 9 s by job nightly-{line % 7}\n")
            elif line in FAILURES:
                log.write(f"{line:07d} ERROR payment failed for customer {line % 97}: lock timeout\n")
            else:
                log.write(f"{line:07d} INFO  GET /items/{line % 5003} 200 in {line % 37} ms, cart of {line % 11}\n")


def script(messages: Sequence[Message]) -> Message:
    """Play a model: fetch the log, search it, look before each failure, and answer from its own notes."""
    notes = [message.content for message in messages if message.role == "assistant"]
    last = messages[-1].content
    turn = len(notes)
    if turn == 0:
        return call("fetch_log", "{}", "I fetch the log.")
    if turn == 1:
        path = re.findall(r"saved to: (\S+)\. Use", last)[-1]
        return call("grep", f'{{"pattern": "ERROR", "path": "{path}"}}', f"The log is at {path} .")
    path = re.findall(r"at (\S+) \.", notes[1])[0]
    if turn == 2:
        found = ", ".join(re.findall(r"(\d{7}) ERROR", last))
        return look(path, found, f"Failures in lines {found}.")
    lines = re.findall(r"\d{7}", notes[2])
    seen = ", ".join(re.findall(r"job (nightly-\d)", last))
    if turn < len(lines) + 2:
        return look(path, lines[turn - 2], f"Before line {lines[turn - 3]}: {seen}.")
    blamed = sorted({*re.findall(r"nightly-\d", " ".join(notes)), *re.findall(r"nightly-\d", seen)})
    answer = f"{len(lines)} payments failed, each behind a lock held by one of: {', '.join(blamed)}."
    return Message.assistant(f"Before line {lines[-1]}: {seen}. {answer}")


def look(path: str, line: str, text: str) -> Message:
    return call("read_file", f'{{"path": "{path}", "offset": {int(line[:7]) - 88}, "limit": 95}}', text)


def call(name: str, arguments: str, text: str) -> Message:
    return Message.assistant(text, tool_calls=[ToolCall(f"call_{abs(hash((name, arguments))):x}", name, arguments)])


def build(log: Path, directory: Path) -> tuple[ChatModelAgent[str], ScriptedModel[Message]]:
    @tool
    async def fetch_log() -> AsyncIterator[str]:
        """Fetch the whole log of the shop."""
        with log.open() as file:
            while chunk := file.read(65_536):
                yield chunk

    model = ScriptedModel(script)
    reduction = ToolReduction(
        LocalBackend(directory), max_length_for_trunc=4_000, max_tokens_for_clear=6_000, max_length_for_read=6_000
    )
    agent = ChatModelAgent(
        name="reader",
        instruction="You find out why payments fail.",
        model=model,
        tools=[fetch_log],
        middlewares=[reduction],
        max_iterations=40,
    )
    return agent, model


async def investigate(log: Path, kept: Path, tell: Callable[[str], None] = print) -> list[int]:
    """Run the agent, tell what happens, and return how many tokens each request had."""
    agent, model = build(log, kept)
    async with agent.stream("Why do payments fail?") as run:
        async for event in run:
            if isinstance(event, MessageFinished):
                tell(f"model: {event.text}")
            elif isinstance(event, HistoryRewritten) and event.report is not None:
                before, after = event.report["tokens_before"], event.report["tokens_after"]
                cleared = len(event.report["changes"])
                tell(f"  {cleared} old results left out: {before:,} -> {after:,} tokens to send")
    counter = CharacterCounter()
    return [sum(map(counter.count, request.messages)) for request in model.requests]


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        log, kept = Path(place, "shop.log"), Path(place, "kept")
        write_log(log)
        print(f"the log has {log.stat().st_size / 1e6:.0f} MB, the context {LIMIT:,} tokens")
        sizes = asyncio.run(investigate(log, kept))
        saved = [path for path in kept.rglob("*") if path.is_file()]
        whole = any(path.read_bytes() == log.read_bytes() for path in saved)
        print(f"{len(sizes)} requests, the largest of {max(sizes):,} tokens; {len(saved)} files kept")
        print(f"the log is kept as it was: {'yes' if whole else 'no'}")


if __name__ == "__main__":
    main()
