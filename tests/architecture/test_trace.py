"""One model call can be followed through few files."""

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import suture
from suture import ChatModelAgent, Message
from suture.middleware import PatchToolCalls
from suture.testing import ScriptedModel

HOME = Path(suture.__file__).parent
MOST = 8


def test_one_model_call_goes_through_at_most_eight_files() -> None:
    path: list[str] = []

    def reply(messages: Any) -> Message:
        frame: FrameType | None = sys._getframe()  # pyright: ignore[reportPrivateUsage]
        while frame is not None:
            file = Path(frame.f_code.co_filename)
            if file.is_relative_to(HOME):
                name = str(file.relative_to(HOME))
                if not path or path[-1] != name:
                    path.append(name)
            frame = frame.f_back
        del messages
        return Message.assistant("hello")

    agent = ChatModelAgent(name="a", model=ScriptedModel([reply]), middlewares=[PatchToolCalls()])
    agent.run_sync("hi")
    ours = [name for name in reversed(path) if not name.startswith("testing/")]
    print(" > ".join(ours))
    assert ours[-1] == "kernel/_attempts.py"
    assert len(set(ours)) <= MOST
