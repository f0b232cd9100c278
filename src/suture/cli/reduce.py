"""`suture reduce`: take long and old tool output out of a history, and keep it elsewhere.

Without `--save-to` or `--discard` only the plan is printed, as `check` prints its findings: exit status 0 if there is
nothing to do, 1 if there is something. Otherwise the output is saved (or discarded) and the history is written, in the
container and wire it came in. Both are done, or neither.
"""

import os
from argparse import Namespace
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from suture._text import plural
from suture.cli.files import Conversation, open_source
from suture.cli.output import Outputs
from suture.cli.refusals import Refusal, refusing
from suture.errors import ContextOverflowError
from suture.reduction import Plan, Save, Settings, ToolDetail, compact, plan
from suture.reduction.phases import content_of
from suture.reduction.texts import folded, safe_name
from suture.stores import LocalBackend, PathNotFoundError, PathTakenError, StoreError, encode_text
from suture.tokens import CharacterCounter, ExactCounter

T = TypeVar("T")
_LONGEST_ROOT = 1000


def run(asked: Namespace) -> int:
    """Plan how every conversation of a file is reduced, and carry the plan out if that was asked."""
    applies = _applies(asked)
    if asked.output == "-":
        asked.output = None
    settings = _settings(asked)
    many, changed, before, after = False, 0, 0, 0
    with open_source(asked.file, asked) as source, Outputs() as outputs:
        history = outputs.open(asked.output) if applies else None
        folder = _Folder(asked.save_to, asked.root)
        # Runs before `history` is discarded: after that, its `published` is always true.
        outputs.callback(lambda: folder.close(keep=history is None or history.published))
        folder.probe()
        plans = outputs.open() if asked.json else None
        screen = None
        if not asked.json:
            screen = outputs.screen_beside(asked.output) if applies else outputs.screen()
        for conversation in map(Conversation.sendable, source):
            taken, wire = conversation.take(asked.wire)
            made = _plan(asked, settings, folder, conversation, taken, wire)
            if history is not None:
                folder.save(made.saves, asked.output)
                history.write_pieces(conversation.encode(conversation.give(taken, made.messages)))
            if plans is not None:
                plans.write(msgspec.json.encode({"line": conversation.line, "plan": made.to_dict()}) + b"\n")
            elif screen is not None and (made.changed or not (applies or conversation.many)):
                source.pause()
                screen.plan(made, conversation.title)
            many, changed = conversation.many, changed + made.changed
            before, after = before + made.tokens_before, after + made.tokens_after
        if screen is not None and (applies or many):
            tokens = f", {before} -> {after} tokens" if changed else ""
            saved = f"; {plural(folder.count, 'file')} saved in {asked.save_to}" if folder.count else ""
            place = f"; written to {asked.output}" if applies and asked.output is not None else ""
            done = f"{changed} {'changed' if applies else 'to reduce'}"
            screen.say(f"{plural(source.count, 'conversation')}, {done}{tokens}{saved}{place}")
        outputs.publish()
    source.tell_bad()
    return 1 if changed and not applies else 0


def _plan(
    asked: Namespace,
    settings: Settings,
    folder: "_Folder",
    conversation: Conversation,
    messages: Sequence[Any],
    wire: str | None,
) -> Plan[Any]:
    """Return the plan for one conversation; if there are many, its files get a folder of their own."""
    shared: dict[str, Any] = {"wire": wire, "offload": not asked.discard, "language": asked.language}
    shared |= folder.makers(f"line-{conversation.line}/" if conversation.many else "")
    if asked.compact is None:
        return plan(messages, settings, **shared)
    counter: Any = settings.token_counter
    try:
        return compact(messages, max_tokens=asked.compact, token_counter=counter, root_dir=folder.root, **shared)
    except ContextOverflowError as error:
        hint = "; with --save-to more can be taken out, also what users said" if asked.discard else ""
        raise Refusal(f"{error}{hint}") from None


def _applies(asked: Namespace) -> bool:
    """Return whether the plan is also carried out; refuse options that contradict each other."""
    if asked.plan:
        return False
    if asked.save_to is None and not asked.discard:
        if asked.output is not None:
            raise Refusal("give --save-to DIR to save old output, or --discard to clear it for good")
        return False
    if asked.json and asked.output in (None, "-"):
        raise Refusal("the history and the plan cannot both go to standard output; give -o, or --plan")
    return True


def _settings(asked: Namespace) -> Settings:
    """Return the engine's settings; the options have their names."""
    given = {field.name: value for field in fields(Settings) if (value := getattr(asked, field.name, None)) is not None}
    given["skip_truncation"] = asked.skip_truncation or asked.discard  # what is truncated must be saved
    excluded = asked.exclude or ()
    counter = CharacterCounter() if asked.tokenizer == "characters" else ExactCounter(asked.tokenizer)
    return Settings(**given, token_counter=counter, trunc_exclude_tools=excluded, clear_exclude_tools=excluded)


# --- where the output goes ------------------------------------------------------------------------


class _Folder:
    """The files of one command: `directory` is where they are, if anything is saved, `root` its path for the model.

    A file is named after its call. If a file of that name has other content, a digest of the content is appended: so
    the same history always gets the same names, and no saved output is ever overwritten. If the history that refers to
    the files is not written in the end, the files that were made for it are removed.
    """

    def __init__(self, directory: str | None, root: str | None = None) -> None:
        self._directory = directory
        shown = (directory or "") if root is None else root
        if not shown.isprintable() or len(shown) > _LONGEST_ROOT:
            reason = "cannot stand in a notice, being too long or no plain text"
            raise Refusal(reason if root is not None else f"{reason}; say what shall, with --root", shown)
        self._root = shown if not shown or shown.endswith("/") else f"{shown}/"
        self._below = ""
        self._planned: dict[str, bytes] = {}
        self._made: list[str] = []
        """The paths of the files that were not there before."""
        self._backend: LocalBackend | None = None
        if directory is not None:
            with refusing("--save-to"):
                self._backend = LocalBackend(directory, fsync=True)  # the history may be the only other copy
            outwards = (Path(self._backend.directory), *Path(self._backend.directory).parents)
            self._missing = [folder for folder in outwards if not os.path.lexists(folder)]

    def probe(self) -> None:
        """Raise `Refusal` if the path of the directory is something else."""
        self._read("probe")

    @property
    def count(self) -> int:
        """How many files were made."""
        return len(self._made)

    @property
    def root(self) -> str:
        """The folder of the current conversation's files, as the model sees it."""
        return self._root + self._below

    def makers(self, below: str) -> dict[str, Any]:
        """Return the functions that name the files of the next conversation, in the folder `below`."""
        self._below, self._planned = below, {}
        return {f"gen_{phase}_offload_file_path": partial(self._path, phase) for phase in ("trunc", "clear")}

    def save(self, saves: Sequence[Save], history: str | None) -> None:
        """Write the files of a plan; refuse if one of them is the file that the history goes to."""
        if self._backend is None:
            if saves:
                raise LookupError("there is output to save, but no place for it")
            return
        target = None if history is None else os.path.realpath(history)
        for save in saves:
            path = save.path.removeprefix(self._root)
            if target == os.path.realpath(Path(self._backend.directory, path)):
                raise Refusal("the history would be written over the output of one of its calls", history or "")
            self._put(self._backend, path, encode_text(save.content))

    def close(self, *, keep: bool) -> None:
        """Remove the saved files and the new folders, unless they are to be kept."""
        if keep or self._backend is None:
            return
        for path in self._made:
            with suppress(Refusal):
                self._run(self._backend.delete(path))
        for folder in self._missing:  # one that somebody else uses meanwhile stays
            with suppress(OSError):
                folder.rmdir()

    def _path(self, phase: str, detail: ToolDetail) -> str:
        """Return the path of a call's output, as a notice names it."""
        path = f"{self._below}{phase}/{safe_name(detail.tool_context.call_id)}"
        content = encode_text(content_of(detail.tool_result.parts)) if detail.tool_result is not None else b""
        digest = sha256(content).digest()
        other = self._planned.setdefault(folded(path), digest) != digest
        if other or self._read(path) not in (None, content):
            path = f"{path}-{digest.hex()[:16]}"
        return self._root + path

    def _read(self, path: str) -> bytes | None:
        """Return the content of a file, `None` if there is none."""
        backend = self._backend
        if backend is None:
            return None

        async def read() -> bytes | None:
            try:
                return b"".join([piece async for piece in backend.read(path)])
            except PathNotFoundError:
                return None

        return self._run(read())

    def _put(self, backend: LocalBackend, path: str, content: bytes) -> None:
        """Write a file; one that is there with the same content stays."""

        async def chunks() -> AsyncGenerator[bytes, None]:
            yield content

        async def write() -> None:
            if is_new:
                self._made.append(path)  # noted first, so that it is removed even if writing is interrupted
                try:
                    await backend.write_stream(path, chunks())
                    return
                except PathTakenError:
                    self._made.pop()  # somebody else made it meanwhile
            await backend.write(path, content)  # the same content again is no error

        is_new = self._read(path) is None
        self._run(write())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        """Await work of the backend; its errors become a `Refusal`."""
        import asyncio

        try:
            with asyncio.Runner() as runner:  # it waits for writes that were going on, however it ends
                runner.get_loop().set_exception_handler(lambda _loop, _context: None)  # what is cancelled cleans up
                return runner.run(work)
        except StoreError as error:
            where = self._backend.directory if self._backend is not None else ""
            raise Refusal(str(error).removeprefix(where).lstrip(": "), self._directory or "") from None
