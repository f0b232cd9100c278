"""What the tests of the reading tools share: files that were saved, the tools on them, and a follower of hints."""

import asyncio
import codecs
import json
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from suture import ToolResult
from suture.messages import TextPart, ToolArgument
from suture.middleware import ToolReduction
from suture.middleware.reading_tools import reading_tools
from suture.reduction import Saved
from suture.stores import LocalBackend, MemoryBackend

FILE = "/run/trunc/c0"
EMPTY = "[the file is empty]"


class InChunks(MemoryBackend):
    """Gives its files in pieces of the sizes it was given, over and over."""

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        self.sizes = sizes

    async def read(self, path: str, start: int = 0, stop: int | None = None) -> AsyncGenerator[bytes, None]:
        content = b"".join([chunk async for chunk in super().read(path, start, stop)])
        at, number = 0, 0
        while at < len(content):
            size = self.sizes[number % len(self.sizes)]
            yield content[at : at + size]
            at, number = at + size, number + 1


class Desk:
    """Files that a history outside of any run has saved, and the tools that read them."""

    def __init__(self, files: Mapping[str, bytes], backend: Any = None, most: int = 2_000, **settings: Any) -> None:
        self.backend = MemoryBackend() if backend is None else backend
        self.reduction = ToolReduction(self.backend, max_length_for_read=most, **settings)
        self.most = most
        for path, content in files.items():
            asyncio.run(self.backend.write(path, content))
        self.record(*[Saved(path, "c0", "dump", "trunc", len(content)) for path, content in files.items()])
        made = reading_tools(self.reduction._record, self.reduction.backend_of, "read_file", most)
        self.tools = {tool.name: tool for tool in made}

    def record(self, *saved: Saved) -> None:
        """Let the history know of what was saved."""
        self.reduction._record().keep(saved)

    async def result(self, name: str, **arguments: Any) -> ToolResult:
        """Return what a tool gives."""
        return await self.tools[name].endpoint(ToolArgument(json.dumps(arguments)))

    def told(self, name: str, **arguments: Any) -> str:
        """Return the text of a result that is no error."""
        result = asyncio.run(self.result(name, **arguments))
        assert not result.is_error, result
        return only_text(result)

    def refused(self, name: str, **arguments: Any) -> str:
        """Return the text of a result that is an error."""
        result = asyncio.run(self.result(name, **arguments))
        assert result.is_error, result
        return only_text(result)

    def read(self, path: str = FILE, **arguments: Any) -> str:
        """Return a window on a file."""
        return self.told("read_file", path=path, **arguments)

    def read_all(self, **arguments: Any) -> str:
        """Return a whole file, by following what each window says; every one goes further than the one before."""
        return asyncio.run(self._read_all(arguments))

    async def _read_all(self, arguments: dict[str, Any]) -> str:
        kept = {key: value for key, value in arguments.items() if key.endswith("limit")}
        found: list[str] = []
        while True:
            text = only_text(await self.result("read_file", path=FILE, **arguments))
            assert len(text) <= self.most
            if text == EMPTY:
                return ""
            body, following = body_of(text), hint_in(text)
            assert body  # it went further
            found.append(body)
            if following is None:
                return "".join(found)
            arguments = {**kept, **following}


def desk_of(content: bytes, backend: Any = None, most: int = 2_000) -> Desk:
    """Return a desk with one file."""
    return Desk({FILE: content}, backend, most)


def only_text(result: ToolResult) -> str:
    (part,) = result.parts
    assert isinstance(part, TextPart)
    return part.text


def body_of(text: str) -> str:
    """Return what a window shows of its file."""
    *lines, foot = text.split("\n")
    if lines[0].startswith("[characters "):
        return "\n".join(lines[1:])
    body = "".join(line.partition("\t")[2] + "\n" for line in lines)
    return body[:-1] if "goes on" in foot or "no final newline" in foot else body


def hint_in(text: str) -> dict[str, int] | None:
    """Return how a window says to go on."""
    foot = text.rpartition("\n")[2]
    found = re.search(r"(?:go on with|read it with) (offset|char_offset)=(\d+)", foot)
    if found is None:
        assert foot.startswith("[end of file, "), foot
        return None
    return {found[1]: int(found[2])}


def rows(*lines: str, first: int = 1) -> str:
    """Return lines as they are shown."""
    return "".join(f"{number:6d}\t{line}\n" for number, line in enumerate(lines, first))


def _unknown(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    stored = error.object[error.start : error.start + 3]
    try:
        stored.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return "\ufffd", error.end
    return "\ufffd", error.start + 3


codecs.register_error("tests.unknown", _unknown)


def text_in(content: bytes) -> str:
    """Return what a file says: U+FFFD for each lone surrogate, and for what is no UTF-8."""
    return content.decode("utf-8", "tests.unknown")


@pytest.fixture(params=["memory", "local"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return MemoryBackend() if request.param == "memory" else LocalBackend(tmp_path / "outputs")
