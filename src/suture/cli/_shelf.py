"""Where `suture reduce` keeps the output that leaves a history: in a directory, or nowhere at all.

A file is named after its call. Where that name holds something else, a digest of the content follows: so the
same history always comes to the same names, and nothing that was saved is ever overwritten. If the history that
speaks of the files is not written in the end, those that were made for it are removed.
"""

import os
from collections.abc import AsyncGenerator, Coroutine, Generator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from suture.cli._refusal import Refusal
from suture.errors import ConfigError
from suture.reduction import Save, ToolDetail, content_of, folded, safe_name
from suture.stores import LocalBackend, PathNotFoundError, PathTakenError, StoreError, encode_text

if TYPE_CHECKING:
    import asyncio

__all__ = ["Shelf"]

T = TypeVar("T")
_LONGEST_ROOT = 1000


class Shelf:
    """The files of one command: `directory` is where they are (none, if nothing is saved), `root` how it is told.

    >>> from suture.messages import ToolArgument, ToolContext
    >>> detail = ToolDetail(tool_context=ToolContext("search", "call_1"), tool_argument=ToolArgument("{}"))
    >>> Shelf(None, "/outputs").makers("line-3/")["gen_clear_offload_file_path"](detail)
    '/outputs/line-3/clear/call_1'
    """

    def __init__(self, directory: str | None, root: str | None = None) -> None:
        self._root = _told_root(root, directory)
        self._folder = None if directory is None else _Folder(directory)
        self._below = ""
        self._planned: dict[str, bytes] = {}

    def probe(self) -> None:
        """Raise `Refusal` if there is something in the place of the directory that is none."""
        if self._folder is not None:
            self._folder.holds("probe", b"")

    @property
    def count(self) -> int:
        """How many files were made."""
        return 0 if self._folder is None else len(self._folder.made)

    def makers(self, below: str) -> dict[str, Any]:
        """Return what names the files of the next conversation, which are kept `below` the directory."""
        self._below, self._planned = below, {}
        return {f"gen_{phase}_offload_file_path": partial(self._path, phase) for phase in ("trunc", "clear")}

    def save(self, saves: Sequence[Save], history: str | None) -> None:
        """Write the files of a plan, none of which may be the file that the history goes to."""
        if self._folder is None:
            if saves:
                raise LookupError("there is output to save, and nowhere to save it")
            return
        target = None if history is None else os.path.realpath(history)
        for save in saves:
            path = save.path.removeprefix(self._root)
            if target == os.path.realpath(self._folder.place(path)):
                raise Refusal("the history would be written over the output of one of its calls", history or "")
            self._folder.put(path, encode_text(save.content))

    def close(self, *, keep: bool) -> None:
        """Let go of everything; unless it is to be kept, leave no trace of what was saved."""
        if self._folder is not None:
            self._folder.close()  # whatever was being written has come to its end
            if not keep:
                self._folder.clear()

    def _path(self, phase: str, detail: ToolDetail) -> str:
        """Return where the output of a call is to be kept, as a notice tells it."""
        path = f"{self._below}{phase}/{safe_name(detail.tool_context.call_id)}"
        content = encode_text(content_of(detail.tool_result.parts)) if detail.tool_result is not None else b""
        digest = sha256(content).digest()
        other = self._planned.setdefault(folded(path), digest) != digest
        if other or (self._folder is not None and self._folder.holds(path, content) is False):
            path = f"{path}-{digest.hex()[:16]}"
        return self._root + path


class _Folder:
    """A directory whose files are written, and removed again, one by one."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._runner: asyncio.Runner | None = None
        self.made: list[str] = []
        """The paths of the files that were not there before."""
        try:
            self._backend = LocalBackend(directory, fsync=True)  # the history may be the only other copy
        except ConfigError as error:
            raise Refusal(str(error), "--save-to") from None
        outwards = (Path(self._backend.directory), *Path(self._backend.directory).parents)
        self._missing = [folder for folder in outwards if not os.path.lexists(folder)]

    def place(self, path: str) -> Path:
        """Return where a file is."""
        return Path(self._backend.directory, path)

    def holds(self, path: str, content: bytes) -> bool | None:
        """Tell whether a file holds just this; `None` where there is no file."""
        with self._told():
            return self._run(_compare(self._backend, path, content))

    def put(self, path: str, content: bytes) -> None:
        """Write a file, unless it is there with the same content."""
        with self._told():
            if self._run(_compare(self._backend, path, content)) is None:
                self.made.append(path)  # before it is there: whatever comes in between, it is not left behind
                try:
                    self._run(self._backend.write_stream(path, _chunks(content)))
                    return
                except PathTakenError:
                    self.made.pop()  # it is somebody else's
            self._run(self._backend.write(path, content))  # the same once more is no error

    def clear(self) -> None:
        """Remove what was made; directories, if nobody else has put something into them."""
        for path in self.made:
            with suppress(StoreError):
                self._run(self._backend.delete(path))
        self.close()
        for folder in self._missing:
            with suppress(OSError):
                folder.rmdir()

    def close(self) -> None:
        """Wait for what is being done."""
        if self._runner is not None:
            self._runner.close()
            self._runner = None

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if self._runner is None:
            import asyncio

            self._runner = asyncio.Runner()
            self._runner.get_loop().set_exception_handler(_keep_quiet)
        return self._runner.run(work)

    @contextmanager
    def _told(self) -> Generator[None]:
        """Turn what the backend says inside the block into a `Refusal`."""
        try:
            yield
        except StoreError as error:
            reason = str(error).removeprefix(self._backend.directory).lstrip(": ")
            raise Refusal(reason, self._directory) from None


async def _compare(backend: LocalBackend, path: str, content: bytes) -> bool | None:
    """Tell whether a file holds just this; `None` where there is no file."""
    try:
        same, start = await backend.size(path) == len(content), 0
        if same:
            async for piece in backend.read(path):  # to its end, so there is nothing to close
                same = same and piece == content[start : start + len(piece)]
                start += len(piece)
    except PathNotFoundError:
        return None
    return same


async def _chunks(content: bytes) -> AsyncGenerator[bytes, None]:
    yield content


def _keep_quiet(*_: object) -> None:
    """Say nothing of work that was left when the process was told to end: it is ending, and cleans up."""


def _told_root(root: str | None, directory: str | None) -> str:
    """Return what stands before the path of a file wherever it is told, or raise `Refusal`."""
    told = (directory or "") if root is None else root
    if not told.isprintable() or len(told) > _LONGEST_ROOT:
        reason = "cannot stand in a notice, being too long or no plain text"
        raise Refusal(reason if root is not None else f"{reason}; say what shall, with --root", told)
    return told if not told or told.endswith("/") else f"{told}/"
