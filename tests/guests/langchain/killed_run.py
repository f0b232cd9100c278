"""Starts a run that never ends: one tool has finished, its sibling is at work. Whoever started this kills it.

Usage: python -m tests.guests.langchain.killed_run BUILDER DATABASE RECEIPTS
"""

import sqlite3
import sys
from pathlib import Path

from langchain_core.messages import HumanMessage

from suture.integrations.langchain import PatchToolCallsMiddleware
from tests.guests.langchain.recording import asks, call
from tests.guests.langchain.talks import Shop, Talk, WatchedSqlite


class _Printing(Shop):
    """Says when it may be killed, and writes down each payment where it outlives this process."""

    def _pay(self) -> str:
        with Path(sys.argv[3]).open("a") as receipts:
            receipts.write("1 euro\n")
        return super()._pay()

    def _ship(self) -> str:
        self.saver.written.wait()
        print("shipping", flush=True)
        return super()._ship()


def main() -> None:
    saver = WatchedSqlite(sqlite3.connect(sys.argv[2], check_same_thread=False))
    turn = asks(call("a", "pay"), call("b", "ship"))
    tools = _Printing(saver).sync_tools()
    talk = Talk(sys.argv[1], [turn], middleware=[PatchToolCallsMiddleware()], tools=tools, saver=saver)
    # Without this, LangGraph may begin a step before the one before it is on disk, and a kill then loses that one.
    talk.agent.invoke({"messages": [HumanMessage("Pay and ship.")]}, talk.config, durability="sync")


if __name__ == "__main__":
    main()
