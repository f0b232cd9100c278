"""Starts a run with every framework, each with its own store, and says so when all hang in a tool. Then it is killed.

Usage: python -m tests.guests.scenarios.killed URL FOLDER
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

from tests.guests.scenarios.frameworks import FRAMEWORKS
from tests.guests.scenarios.talking import Setting


async def hang(kind: Any, folder: Path) -> Any:
    """Return what must be held on to while the run hangs."""
    setting = Setting(kind.apis[0], sys.argv[1], ours=False, folder=folder)
    talk = kind(setting)
    running = asyncio.create_task(talk.say("Pay."))
    await setting.shop.hanging.wait()
    await talk.settle()
    return talk, running


async def main() -> None:
    held = await asyncio.gather(*[hang(kind, Path(sys.argv[2], name)) for name, kind in FRAMEWORKS.items()])
    print("hanging", flush=True)
    await asyncio.Event().wait()
    del held


if __name__ == "__main__":
    asyncio.run(main())
