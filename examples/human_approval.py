"""Somebody is asked before a tool runs, and answers in another process, perhaps tomorrow.

    python examples/human_approval.py start          # runs until the approval is needed, and ends
    python examples/human_approval.py answer         # shows what is waited for, asks in the terminal, goes on
    python examples/human_approval.py answer yes     # the same, with the answer as an argument

What the run did so far is in a SQLite file (`--store`), readable by you alone.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from suture import Approval, ChatModelAgent, Message, Outcome, RunResult, SutureError, ToolCall, tool
from suture.events import Interrupt
from suture.stores import SQLiteStore
from suture.testing import ScriptedModel

CONVERSATION = "invoice-7"
STORE = Path(__file__).parents[1] / "build" / "approvals.db"


@tool
async def find_invoice(number: int) -> str:
    """Look an invoice up."""
    print(f"  [find_invoice {number} runs]")
    return f"invoice {number}: 120 euros, to Nord Hosting"


@tool(requires_approval=True)
async def pay(number: int, euros: int) -> str:
    """Pay an invoice."""
    print(f"  [pay {number} runs]")
    return f"paid {euros} euros for invoice {number}"


def script(messages: Sequence[Message]) -> Message:
    """Play a model: look it up, pay it, tell what came of it. It knows only what is in the messages."""
    results = [message for message in messages if message.role == "tool"]
    if not results:
        return Message.assistant(tool_calls=[ToolCall("call_1", "find_invoice", '{"number": 7}')])
    if len(results) == 1:
        return Message.assistant(tool_calls=[ToolCall("call_2", "pay", '{"number": 7, "euros": 120}')])
    return Message.assistant(f"It did not work. {results[1].content}" if results[1].is_error else "Invoice 7 is paid.")


def make_agent(store: SQLiteStore) -> ChatModelAgent[str]:
    return ChatModelAgent(name="clerk", model=ScriptedModel(script), tools=[find_invoice, pay], checkpoint_store=store)


async def start(store: SQLiteStore) -> RunResult[str]:
    await store.delete(CONVERSATION)  # an id that is there already would go on with its conversation
    return await make_agent(store).run("Pay invoice 7, please.", checkpoint_id=CONVERSATION)


async def answer(store: SQLiteStore, given: str | None, reason: str) -> RunResult[str]:
    agent = make_agent(store)
    # Resumed without answers, a run stops at once where it was, and says again what it waits for.
    waiting = await agent.resume(CONVERSATION)
    answers: dict[str, Approval] = {}
    for asked in waiting.interrupts:
        yes = (given or ask(asked)) == "yes"
        answers[asked.id] = Approval(approved=yes, reason="" if yes else reason)
    return await agent.resume(CONVERSATION, answers=answers)


def ask(asked: Interrupt) -> str:
    while True:
        said = input(f"{asked.info['tool']} {asked.info['arguments']}: yes or no? ").strip().lower()
        if said in {"yes", "no"}:
            return said


def tell(result: RunResult[str]) -> None:
    if result.outcome is Outcome.INTERRUPTED:
        for asked in result.interrupts:
            print(f"waits for: {asked.info['tool']} {asked.info['arguments']}")
        print("Go on with: python examples/human_approval.py answer [yes|no]")
    else:
        print(f"{result.outcome}: {result.output}")


def main() -> int:
    parser = argparse.ArgumentParser(description="An agent that asks before it pays.")
    parser.add_argument("--store", default=STORE, help="the file that keeps the run")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("start", help="run until somebody must say yes")
    reply = commands.add_parser("answer", help="go on, in this process")
    reply.add_argument("given", nargs="?", choices=["yes", "no"], help="asked in the terminal if left out")
    reply.add_argument("--reason", default="", help="what the model is told with a no")
    asked = parser.parse_args()
    with SQLiteStore(asked.store) as store:
        work = start(store) if asked.command == "start" else answer(store, asked.given, asked.reason)
        try:
            tell(asyncio.run(work))
        except EOFError:
            print("\nNo answer. It waits on.")
            return 1
        except SutureError as error:
            print(error)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
