"""`make demo`: a provider's 400 and its repair, an agent that is killed, and a log that is larger than any context.

Everything happens on this machine. The provider is `strict_provider.py`; what its model says is scripted, and the
rest is real: HTTP, the openai SDK, a process that gets SIGKILL, a file that the next process goes on from.
"""

import argparse
import asyncio
import json
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import long_log
from strict_provider import serve

import suture
from suture import ChatModelAgent, Message, tool
from suture.stores import SQLiteStore

WIDTH = 79
HISTORY: list[dict[str, Any]] = [
    {"role": "user", "content": "When is high tide in Dover?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "tides", "arguments": '{"port": "Dover"}'}}
        ],
    },
    {"role": "user", "content": "Never mind. How is the weather?"},
]


def say(text: str = "", indent: str = "   ", label: str = "") -> None:
    """Print a paragraph that fits 80 columns; its first line begins with `label`."""
    first = f"{indent}{label}"
    print(textwrap.fill(text, WIDTH, initial_indent=first, subsequent_indent=" " * len(first)) if text else first)


# --- 1. a tool call without its result ---------------------------------------------------------


def send(address: str, messages: Sequence[dict[str, Any]]) -> bool:
    """Send a history to the provider, print the answer, and return whether it was accepted."""
    print(f"\n   POST /v1/chat/completions with {len(messages)} messages")
    body = json.dumps({"model": "any", "messages": messages}).encode()
    try:
        with urlopen(Request(f"{address}/chat/completions", body, {"content-type": "application/json"})) as answer:
            say(json.load(answer)["choices"][0]["message"]["content"], label="200  ")
            return True
    except HTTPError as refused:
        with refused:
            say(json.load(refused)["error"]["message"], label="400  ")
        return False


def show(messages: Sequence[dict[str, Any]]) -> None:
    for message in messages:
        for call in message.get("tool_calls") or ():
            function = call["function"]
            say(f"calls {function['name']}({function['arguments']}) as {call['id']}", label=f"{message['role']:11}")
        if message["content"]:
            say(message["content"], label=f"{message['role']:11}")


def repair_a_history() -> None:
    print("1. A tool call without its result\n")
    say("A user interrupted while a tool was running. The history since then:")
    print()
    show(HISTORY)
    with serve(lambda _: {"content": "Wind from the south-west, and dry."}) as address:
        refused = not send(address, HISTORY)
        say("Every retry gets this 400: the conversation is dead.")
        fixed = suture.repair(HISTORY)
        print("\n   suture.repair(history) adds the message that is missing:\n")
        show([message for message in fixed.messages if message not in HISTORY])
        if not (refused and send(address, fixed.messages)):
            raise SystemExit("the provider should refuse the first and accept the second")


# --- 2. a process that dies in a tool call -----------------------------------------------------


def play_clerk(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Play a model: pay the invoice, and be careful where nobody knows whether it was paid."""
    if messages[-1]["role"] != "tool":
        function = {"name": "pay", "arguments": '{"invoice": 17, "euros": 240}'}
        return {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]}
    if "paid" in messages[-1]["content"]:
        return {"content": "Invoice 17 is paid."}
    return {"content": "The payment may have been made. Please look before I pay again."}


def run_clerk(address: str, folder: Path, *, resumed: bool) -> None:
    """Be the process that pays, or the one that goes on after it: started by `kill_an_agent`."""
    from suture.models import OpenAIChatModel

    @tool
    async def pay(invoice: int, euros: int) -> str:
        """Pay an invoice."""
        with (folder / "payments.txt").open("a") as payments:
            payments.write(f"invoice {invoice}: {euros} euros\n")
        print("paying", flush=True)
        await asyncio.Event().wait()  # the bank never answers
        return "paid"

    async def main() -> None:
        model = OpenAIChatModel("any", base_url=address, api_key="none")
        with SQLiteStore(folder / "runs.db") as store:
            agent = ChatModelAgent(name="clerk", model=model, tools=[pay], checkpoint_store=store)
            if resumed:
                result = await agent.resume("invoice-17")
            else:
                result = await agent.run("Pay invoice 17: 240 euros.", checkpoint_id="invoice-17")
        print(json.dumps([tell(message) for message in result.messages]))

    asyncio.run(main())


def tell(message: Message) -> tuple[str, str]:
    calls = " ".join(f"calls {call.name}({call.arguments})" for call in message.tool_calls)
    return message.role, calls or message.content


def kill_an_agent() -> None:
    print("\n\n2. An agent whose process is killed in a tool call\n")
    with tempfile.TemporaryDirectory() as place, serve(play_clerk) as address:
        command = [sys.executable, __file__, "--clerk", address, "--folder", place]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first:
            say(f"process {first.pid}: an agent is asked to pay an invoice, and its tool begins.")
            if first.stdout is None or first.stdout.readline() != "paying\n":
                raise SystemExit("the agent did not begin to pay")
            first.send_signal(signal.SIGKILL)
        say(f"process {first.pid}: kill -9. The tool had begun; nothing says how it ended.")
        second = subprocess.run([*command, "--resumed"], stdout=subprocess.PIPE, text=True, check=True)
        say('A new process goes on with agent.resume("invoice-17"). The history is now:')
        print()
        for role, text in json.loads(second.stdout):
            say(text, label=f"{role:11}")
        payments = Path(place, "payments.txt").read_text().count("\n")
    print(f"\n   payments that were made: {payments}")
    if payments != 1:
        raise SystemExit("a tool that is not idempotent must not run twice")


# --- 3. a log that is larger than the context --------------------------------------------------


def read_a_log() -> None:
    print(f"\n\n3. A log of 50 MB, and a context of {long_log.LIMIT:,} tokens\n")
    with tempfile.TemporaryDirectory() as place:
        log, kept = Path(place, "shop.log"), Path(place, "kept")
        long_log.write_log(log)
        done = asyncio.run(long_log.investigate(log, kept, say))
        whole = any(path.read_bytes() == log.read_bytes() for path in kept.rglob("*") if path.is_file())
    print(f"\n   requests sent: {len(done)}, the largest of {max(done):,} tokens")
    print(f"   the whole log is still there to be read: {'yes' if whole else 'no'}")
    if not whole or max(done) > long_log.LIMIT:
        raise SystemExit("the log must be kept, and no request may be over the limit")


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description="A 400 and its repair, a killed agent, a log of 50 MB.")
    parser.add_argument("--clerk", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--resumed", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace", line_buffering=True)  # not every terminal has all letters
    if asked.clerk:
        run_clerk(asked.clerk, asked.folder, resumed=asked.resumed)
        return
    say(
        "Suture keeps the histories of LLM agents whole and their contexts small. A server on this machine "
        "plays the provider: it refuses what OpenAI's API refuses, in its words. What its model says is "
        "scripted; everything else happens as you read it.",
        indent="",
    )
    print()
    repair_a_history()
    kill_an_agent()
    read_a_log()
    print("\nNext: docs/first-agent.md, your first agent in five minutes;")
    print("      docs/four-hundred.md, if you have such a 400 now.")


if __name__ == "__main__":
    main(sys.argv[1:])
