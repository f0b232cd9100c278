"""A run can be followed through few files and few functions: 11 files for a model call, 15 with a tool."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import suture
from suture import ChatModelAgent, Message, ToolCall, tool
from suture.testing import ScriptedModel

HOME = Path(suture.__file__).parent
VALUES = ("messages/", "events.py", "errors.py", "language.py", "wires/values.py", "repair/report.py", "testing/")
"""What a run is made of, and the scripted model, which stands for a provider's."""


@tool
async def look() -> str:
    """Look."""
    return "seen"


def trace(work: Callable[[], Any]) -> list[tuple[str, str]]:
    """Return the files and functions of ours that `work` enters, in the order in which they are entered first."""
    entered: dict[tuple[str, str], None] = {}

    def note(frame: FrameType, what: str, _: object) -> None:
        file = frame.f_code.co_filename
        if what == "call" and file.startswith(str(HOME)):
            name = Path(file).relative_to(HOME).as_posix()
            if not name.startswith(VALUES) and "<" not in frame.f_code.co_name:
                entered[name, frame.f_code.co_qualname] = None

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return list(entered)


@pytest.mark.parametrize(
    ("with_tool", "repair", "most_files", "most_functions"),
    [(False, False, 11, 60), (False, True, 11, 60), (True, False, 15, 100), (True, True, 15, 100)],
    ids=["bare", "repairing", "bare, with a tool", "repairing, with a tool"],
)
def test_a_run_goes_through_few_files_and_functions(
    with_tool: bool, repair: bool, most_files: int, most_functions: int
):
    def reply(messages: Any) -> Any:
        is_first = with_tool and len(messages) == 1
        return Message.assistant(tool_calls=[ToolCall("c1", "look", "{}")]) if is_first else "done"

    agent = ChatModelAgent(model=ScriptedModel(reply), tools=[look] if with_tool else [], repair=repair)

    async def run() -> None:
        await agent.run("go")

    asyncio.run(run())
    entered = trace(lambda: asyncio.run(run()))
    files = dict.fromkeys(file for file, _ in entered)
    for file in files:
        print(file, *(function for each, function in entered if each == file), sep="\n    ")
    assert (len(files) <= most_files, len(entered) <= most_functions) == (True, True), (len(files), len(entered))
