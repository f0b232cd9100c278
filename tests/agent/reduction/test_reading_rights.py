"""The reading tools read what this history has saved and nothing else; what cannot be read is told, never raised."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from suture import Message, ToolCall
from suture.kernel import ChatModelAgentState, ModelContext
from suture.messages import History
from suture.middleware import ToolReduction, ToolReductionConfig
from suture.reduction import Saved
from suture.stores import LocalBackend, MemoryBackend
from tests.agent.reduction._backends import Shelf
from tests.agent.reduction._desk import FILE, Desk, backend, desk_of, rows

__all__ = ["backend"]

SECRET = "/other-run/trunc/c0"

ELSEWHERE = [
    SECRET,
    "/etc/passwd",
    "/run/trunc/../../other-run/trunc/c0",
    "/run/trunc/c0/../../../other-run/trunc/c0",
    "../other-run/trunc/c0",
    "/run/trunc/./c0",
    "/run//trunc/c0",
    "/run/trunc/c0/",
    "/run/trunc/c0\0",
    "/run/trunc/c0\n",
    " /run/trunc/c0",
    "/run/trunc",
    "/run/trunc/c*",
    "/run/trunc/c1",
    "file:///run/trunc/c0",
    "/",
    "",
    ".",
    "\\run\\trunc\\c0",
    "/run/trunc/c0" * 500,
    "\u202e/run/trunc/c0",
]


@pytest.mark.parametrize("path", ELSEWHERE, ids=lambda path: repr(path)[:40])
def test_a_path_that_this_history_has_not_saved_is_refused(path: str, tmp_path: Path):
    backend = LocalBackend(tmp_path / "outputs")
    asyncio.run(backend.write(SECRET, "secret"))
    desk = desk_of(b"names /other-run/trunc/c0 and /etc/passwd\n", backend)
    for arguments in ({}, {"tail": 3}, {"char_offset": 0}, {"search": "secret"}):
        text = desk.refused("read_file", path=path, **arguments)
        assert text.startswith("no output of this conversation was saved at '")
        assert text.endswith("; ls lists what was")
        assert len(text) < 160
        assert text.isprintable()
    if path:
        assert desk.refused("grep", pattern="secret", path=path) == desk.refused("read_file", path=path)
    assert desk.told("grep", pattern="secret") == "[no line contains 'secret' in 1 file]"
    assert SECRET not in desk.told("ls")


@pytest.mark.parametrize("path", ["/run/trunc/C0", "run/trunc/c0", "//run/trunc/c0", "/RUN/Trunc/c0"])
def test_a_path_is_known_however_a_file_system_may_spell_it(path: str, backend: Any):
    assert desk_of(b"found\n", backend).read(path) == rows("found") + "[end of file, 1 line]"


def test_a_file_that_is_not_of_this_history_is_not_read_under_a_similar_name():
    both = MemoryBackend()
    asyncio.run(both.write("/RUN/trunc/c0", "somebody else's"))
    assert desk_of(b"mine\n", both).read("/RUN/trunc/c0") == rows("mine") + "[end of file, 1 line]"


def test_a_file_is_read_where_it_was_saved_and_not_as_it_is_spelled(backend: Any):
    desk = Desk({"/Run/TRUNC/Call_A": b"found\n"}, backend)
    assert desk.read("/run/trunc/call_a") == rows("found") + "[end of file, 1 line]"


def test_a_file_that_is_gone_is_told(backend: Any):
    desk = Desk({FILE: b"one\n", "/run/clear/c1": b"one two\n"}, backend)
    asyncio.run(backend.delete(FILE))
    gone = f"'{FILE}' is gone: it was deleted, or has expired"
    assert desk.refused("read_file", path=FILE) == gone
    assert desk.refused("grep", pattern="one", path=FILE) == gone
    assert desk.told("grep", pattern="one") == (
        f"/run/clear/c1:1:one two\n[1 matching line in 1 file; 1 file could not be read: {gone}]"
    )
    assert desk.told("grep", pattern="x") == f"[no line contains 'x' in 1 file; 1 file could not be read: {gone}]"
    asyncio.run(backend.expire(0))
    assert desk.refused("grep", pattern="one").startswith("none of 2 files can be read: '/run/clear/c1' is gone")


def test_output_that_was_saved_where_nothing_can_be_read_is_told():
    desk = Desk({FILE: b"one\n"}, tool_config={"note": ToolReductionConfig(backend=Shelf())})
    desk.record(Saved("/run/trunc/n", "c1", "note"))
    assert desk.refused("read_file", path="/run/trunc/n") == (
        "'/run/trunc/n' was saved where it can be written only; no tool here can read it"
    )
    assert desk.read(FILE) == rows("one") + "[end of file, 1 line]"


def test_output_of_a_tool_with_a_backend_of_its_own_is_read_there():
    own = MemoryBackend()
    asyncio.run(own.write("/run/trunc/n", "from its own\n"))
    desk = Desk({"/run/trunc/n": b"from the other\n"}, tool_config={"note": ToolReductionConfig(backend=own)})
    assert desk.read("/run/trunc/n") == rows("from the other") + "[end of file, 1 line]"
    desk.record(Saved("/run/trunc/n", "c1", "note"))
    assert desk.read("/run/trunc/n") == rows("from its own") + "[end of file, 1 line]"
    assert "from its own" in desk.told("grep", pattern="from")


class Torn(MemoryBackend):
    """Fails in the middle of a file."""

    error: Exception = OSError("the disk fell down")

    async def read(self, path: str, start: int = 0, stop: int | None = None) -> AsyncGenerator[bytes, None]:
        yield b"one\n"
        raise self.error


class Odd(MemoryBackend):
    """Fails before there is anything to iterate."""

    def read(self, path: str, start: int = 0, stop: int | None = None) -> AsyncGenerator[bytes, None]:
        raise RuntimeError("x" * 100_000)


@pytest.mark.parametrize("kind", [Torn, Odd])
def test_a_backend_that_fails_is_told_in_bounded_words(kind: type[MemoryBackend]):
    desk = desk_of(b"one\n", kind())
    why = "OSError: the disk fell down" if kind is Torn else "RuntimeError: xxx"
    for name, arguments in (("read_file", {"path": FILE}), ("grep", {"pattern": "o", "path": FILE})):
        text = desk.refused(name, **arguments)
        assert text.startswith(f"'{FILE}' cannot be read just now: {why}")
        assert len(text) <= 2_000
    if kind is Odd:
        assert "cannot be read just now" in desk.refused("grep", pattern="o")


def test_a_cancellation_is_none_of_the_things_that_are_told():
    class Waiting(MemoryBackend):
        closed = False

        async def read(self, path: str, start: int = 0, stop: int | None = None) -> AsyncGenerator[bytes, None]:
            try:
                yield b"one\n"
                await asyncio.Event().wait()
            finally:
                self.closed = True

    waiting = Waiting()
    desk = desk_of(b"", waiting)

    async def cancel() -> None:
        task = asyncio.create_task(desk.result("read_file", path=FILE))
        for _ in range(20):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert waiting.closed


def test_the_tools_are_described_and_safe_to_run_again():
    tools = desk_of(b"").tools
    assert list(tools) == ["read_file", "ls", "grep"]
    for tool in tools.values():
        assert tool.info.description
        assert tool.idempotent
        assert not tool.requires_approval
        properties = (tool.info.parameters or {})["properties"]
        assert all(each["description"] for each in properties.values())
    assert "shelf" not in str([tool.info for tool in tools.values()])
    assert (tools["read_file"].info.parameters or {})["required"] == ["path"]
    assert (tools["grep"].info.parameters or {})["required"] == ["pattern"]


def test_outside_of_a_run_one_history_cannot_read_what_another_saved():
    def history(label: str) -> Any:
        calls = [ToolCall(f"{label}{number}", "f", "{}") for number in range(4)]
        said = [(Message.assistant(tool_calls=[call]), Message.tool("word " * 200, call.id, "f")) for call in calls]
        return ChatModelAgentState(messages=History([message for pair in said for message in pair]))

    async def scene() -> list[bool]:
        reduction = ToolReduction(MemoryBackend(), root_dir="/r", max_tokens_for_clear=100)
        for label in "ab":
            await reduction.before_model_rewrite_state(history(label), ModelContext(wire="message"))
        return [(await reduction.tools[0](path=path)).is_error for path in ("/r/clear/a0", "/r/clear/b0")]

    assert asyncio.run(scene()) == [True, False]
