"""`suture doctor`: reads the sessions that coding agents left on this machine, and says what is broken in them.

The originals are never opened for writing. With `--fix` a repaired copy is written beside each broken one.
"""

import json
import os
import shutil
import sqlite3
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from suture._text import plural
from suture.cli.output import Outputs
from suture.cli.refusals import Refusal, refusing
from suture.cli.repair import go_through
from suture.cli.transcripts import (
    FORMATS,
    Format,
    Line,
    Member,
    interleave,
    make_identity,
    path_to_leaf,
    read_lines,
    recognise_format,
)
from suture.errors import InputError
from suture.language import resolve_language
from suture.profiles import get_profile
from suture.repair import Cause, Finding, Repaired, Report, placeholder_text, repair, visible_json
from suture.wires.fields import is_map

SUFFIX = ".repaired"
"""The ending of a copy's name, so that no agent takes it for a session."""
_TORN = Finding(
    index=0,
    problem="torn-line",
    done="left out",
    rule="file.lines",
    says="A record is a JSON object.",
    source="RFC 8259",
)


class Examined(NamedTuple):
    """A session that was examined."""

    path: Path
    agent: str
    report: Report
    write: Callable[[Path], object] | None
    """Writes the repaired copy, if there is something to repair."""
    title: str = ""


def run(asked: Namespace) -> int:
    """Examine the sessions that were named, or all that are found; return 1 if something is broken."""
    count = broken = 0
    copies: dict[Path, Path] = {}
    with Outputs() as outputs:
        output = outputs.open()
        screen = outputs.screen(output)

        def examine(path: Path) -> int:
            nonlocal count, broken
            for found in _examine(path, asked):
                count += 1
                broken += not found.report.acceptable
                if asked.fix and found.write is not None and found.path not in copies:  # one may hold many sessions
                    copies[found.path] = _write_beside(found.path, found.write)
                copy = copies.get(found.path)
                if asked.json:
                    entry = {"file": str(found.path), "agent": found.agent, "session": found.title}
                    entry |= {"copy": str(copy)} if copy else {}
                    output.write(visible_json({**entry, "report": found.report.to_dict()}).encode() + b"\n")
                elif not found.report.acceptable:
                    screen.report(found.report, f"{found.path} ({found.agent}{found.title and f' {found.title}'})")
                    if copy:
                        screen.say(f"  repaired copy: {copy}")
            return 0

        status = go_through(list(_find(asked.paths)), examine)
        if not asked.json:
            screen.say(f"{plural(count, 'session')}: {count - broken} sound, {broken} broken")
            if not count and not asked.paths:
                folders = ", ".join(str(known.folder) for known in FORMATS)
                screen.say(f"looked in {folders} and for opencode; suture doctor FILE|FOLDER looks elsewhere")
        outputs.publish()
    return max(status, 1 if broken else 0)


def _find(paths: Sequence[str]) -> Iterator[Path]:
    """Yield the named files and those in the named folders; without names, the files of all known agents."""
    for name in paths:
        path = Path(name)
        if os.path.isdir(path):  # noqa: PTH112 - a bad path is reported when it is opened
            folders = {
                part.parent for part in path.rglob("part") if path == part.parent or part.parent.suffix != SUFFIX
            }
            storages = [folder for folder in folders if (folder / "message").is_dir()]
            yield from sorted([*path.rglob("*.jsonl"), *path.rglob("opencode*.db"), *storages])
        else:
            yield path
    if not paths:
        for known in FORMATS:
            yield from sorted(known.folder.glob(known.pattern))
        data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "opencode"
        databases = sorted(data.glob("opencode*.db"))
        yield from databases or data.glob("storage")  # opencode ignores the folder once it has a database


def _examine(path: Path, asked: Namespace) -> Iterator[Examined]:
    if os.path.isdir(path):  # noqa: PTH112 - as above
        with _refused("opencode", path):
            yield from _examine_parts(path, _read_storage(path), _copy_storage, asked.language)
        return
    with _refused("a coding agent", path), refusing(str(path), verb="read"), path.open("rb") as file:
        if os.fstat(file.fileno()).st_size > asked.max_bytes:
            raise Refusal(f"larger than --max-bytes {asked.max_bytes}", str(path))
        data = file.read()
    if data.startswith(b"SQLite format 3\0"):
        with _refused("opencode", path):
            yield from _examine_parts(path, _read_database(path), _copy_database, asked.language)
        return
    with _refused("a coding agent", path):
        lines = read_lines(data)
        known = recognise_format(lines)
    if known is None:
        if asked.paths:
            raise Refusal("not a session of a known agent; try suture check", str(path))
        return
    with _refused(known.name, path):
        report, copy = _File(known, data, lines).repair(asked.language)
    yield Examined(path, known.name, report, None if copy is None else partial(_write_file, data=copy))


@contextmanager
def _refused(agent: str, path: Path) -> Generator[None]:
    """Turn the errors of a record that is not in the agent's form into a `Refusal`."""
    try:
        yield
    except InputError as error:
        raise Refusal(str(error), str(path)) from None
    except MemoryError as error:
        error.__traceback__ = None  # lets go of what could not be finished
        raise Refusal("there is not enough memory for it: give it more", str(path)) from None
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise Refusal(f"a record is not as {agent} writes it ({type(error).__name__})", str(path)) from None


def _encode(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # half a surrogate pair: `json` writes it as an escape, as the agent did
        return json.dumps(value).encode()


# --- files of lines -------------------------------------------------------------------------------


class _File:
    """A session in a file of lines, and the conversation in it."""

    def __init__(self, known: Format, data: bytes, lines: Sequence[Line]) -> None:
        self._known, self._data, self._lines, self._members = known, data, lines, known.select(lines)

    def repair(self, language: str | None) -> tuple[Report, bytes | None]:
        """Return what is broken, and the bytes of the repaired file if that differs."""
        known, members = self._known, self._members
        options: dict[str, Any] = {"wire": known.wire, "profile": known.profile, "language": language}
        fixed: Repaired[Any] = repair([member.message for member in members], cause=Cause.UNKNOWN, **options)
        torn = [replace(_TORN, index=line.number) for line in self._lines if line.torn]
        numbers = [0 if member.line is None else member.line.number for member in members]
        found = [replace(finding, index=numbers[finding.index]) for finding in fixed.report.findings]
        report = replace(fixed.report, findings=tuple(sorted([*torn, *found], key=lambda each: each.index)))
        if not torn and not fixed.changed:
            return report, None
        numbered = any("ordinal" in line.record for line in self._lines)
        return report, (self._append if numbered else self._rewrite)(fixed.messages)

    def _rewrite(self, repaired: Sequence[Any]) -> bytes:
        """Return the file with the repaired conversation; all other lines stay as they were."""
        known, members, left = self._known, self._members, {id(message) for message in repaired}
        stood = {id(member.message): member.line for member in members}
        gone = [member for member in members if id(member.message) not in left and member.line is not None]
        conversation = {member.line for member in members}
        written: list[Line] = []
        like = next((member.line for member in members if member.line is not None), self._lines[0])
        for count, message in enumerate(repaired):
            line = stood.get(id(message)) or _replace_line(gone, message)
            if line is None and id(message) not in stood:
                seed = f"{like.record.get(known.links[0])} {count}" if known.links else str(count)
                line = Line(0, known.dress(message, like.record, make_identity(seed)))
            if line is not None:
                written.append(line)
                like = line
        if known.links:
            self._relink(known.links, conversation, written)
        kept = [line for line in self._lines if not line.torn]
        rows = interleave(kept, written, conversation.__contains__)
        return b"".join([(_encode(row.record) if row.raw is None else row.raw) + b"\n" for row in rows])

    def _relink(self, links: tuple[str, ...], members: set[Line | None], written: list[Line]) -> None:
        """Fix the chain of parents after lines were added, moved or removed."""
        own, parent = links
        path = path_to_leaf(self._lines, links, next((line for line in reversed(self._lines) if line in members), None))
        beside = {*self._lines} - {*path}  # another branch stays as it is
        before = path[0].record.get(parent) if path else None
        chain = [line for line in written if line not in beside]
        for line in [*interleave(path, chain, members.__contains__)]:
            if line.record.get(parent) != before:
                line.change(**{parent: before})
            before = line.record.get(own)

    def _append(self, repaired: Sequence[Any]) -> bytes:
        """Return the file with the repaired conversation: no line moves, and new ones come at the end.

        Codex numbers these lines, and keeps elsewhere how many bytes it has read: a byte more in between breaks it.
        """
        rows, left = self._data.split(b"\n"), {id(message) for message in repaired}
        gone = {member.line for member in self._members if id(member.message) not in left}
        for line in self._lines:
            if line.torn or line in gone:
                rows[line.number - 1] = b"{}".ljust(len(rows[line.number - 1]))
        stood = {id(member.message) for member in self._members}
        like = next(line.record for line in reversed(self._lines) if "ordinal" in line.record)
        new = [self._known.dress(message, like, "") for message in repaired if id(message) not in stood]
        added = [_encode({**record, "ordinal": number}) for number, record in enumerate(new, like["ordinal"] + 1)]
        return b"\n".join([b"\n".join(rows).removesuffix(b"\n"), *added, b""])


def _replace_line(gone: list[Member], message: Any) -> Line | None:
    """Put a changed message of the model into the line of the message that it replaces, and return that line."""
    for member in gone:
        line = member.line
        field = next((name for name in ("payload", "message") if line and line.record.get(name) is member.message), "")
        if line and field and member.message.get("role") == message.get("role") == "assistant":
            gone.remove(member)
            line.change(**{field: message})
            return line
    return None


def _write_beside(path: Path, write: Callable[[Path], object]) -> Path:
    """Write a copy beside a file or a folder, and return its path. An older copy is never overwritten."""
    copy = path.with_name(path.name + SUFFIX)
    try:
        write(copy)
    except FileExistsError:
        raise Refusal("already exists; move it away first", str(copy)) from None
    except (OSError, sqlite3.Error) as error:
        shutil.rmtree(copy, ignore_errors=True)  # leave no half-written copy
        with suppress(OSError):
            copy.unlink()
        with refusing(str(copy), verb="written"):
            raise (error if isinstance(error, OSError) else ValueError(str(error))) from None
    return copy


def _write_file(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        path.chmod(path.with_name(path.name.removesuffix(SUFFIX)).stat().st_mode & 0o777)
        file.write(data)


# --- opencode -------------------------------------------------------------------------------------
# A call and its result are one part, so only two things can be wrong: a call that never ended, and a torn part. The
# parts are rows of a database; before release 1.2 each was a file.


class _Part(NamedTuple):
    key: Any
    """The row's id, or the file's path."""
    session: str
    value: Any
    """What it holds; `None` if that cannot be read."""


def _examine_parts(
    path: Path,
    parts: Sequence[_Part],
    copy: Callable[[Path, Mapping[Any, bytes | None], Path], object],
    language: str | None,
) -> Iterator[Examined]:
    """Yield the sessions that these parts belong to; `copy` writes all of them, with the changes."""
    lang = resolve_language(language)
    sessions: dict[str, list[Finding]] = {}
    changes: dict[Any, bytes | None] = {}
    places = Counter[str]()
    for part in parts:
        findings, place = sessions.setdefault(part.session, []), places[part.session]
        places[part.session] += 1
        if part.value is None:
            findings.append(replace(_TORN, index=place))
            changes[part.key] = None
            continue
        state: Any = part.value.get("state")
        if part.value.get("type") == "tool" and is_map(state) and state.get("status") in {"pending", "running"}:
            call_id, name = str(part.value.get("callID", "")), str(part.value.get("tool", ""))
            rule = next(rule for rule in get_profile("pairing").rules if "dangling" in rule.problems)
            found = Finding(index=place, problem="dangling", call_id=call_id, name=name, done="answered: unknown")
            findings.append(found.cite(rule))
            times: Any = state.get("time") or {}
            ended: dict[str, Any] = {"status": "error", "error": placeholder_text(Cause.UNKNOWN, name, call_id, lang)}
            start = times.get("start", 0)
            ended |= {"input": state.get("input", {}), "time": {"start": start, "end": start}}
            changes[part.key] = _encode({**part.value, "state": ended})
    for session, findings in sessions.items():
        report = Report(wire="openai-chat", profile="pairing", findings=tuple(findings))
        yield Examined(path, "opencode", report, partial(copy, path, changes) if changes else None, session)


def _read(data: bytes | str) -> Any:
    """Return what a part holds; `None` if it is torn."""
    try:
        value: Any = json.loads(data)
    except (ValueError, TypeError):
        return None
    return value if is_map(value) else None


def _open_database(path: Path) -> sqlite3.Connection:
    """Open a database for reading, and make no file beside it if its write-ahead log is empty."""
    log = path.with_name(path.name + "-wal")
    alone = "" if log.exists() and log.stat().st_size else "&immutable=1"
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro{alone}", uri=True)


def _read_database(path: Path) -> list[_Part]:
    try:
        with closing(_open_database(path)) as database:
            rows = database.execute("SELECT id, session_id, data FROM part ORDER BY session_id, id").fetchall()
    except sqlite3.Error as error:
        raise Refusal(f"no database of opencode's: {error}", str(path)) from None
    return [_Part(identity, session, _read(data)) for identity, session, data in rows]


def _copy_database(path: Path, changes: Mapping[str, bytes | None], target: Path) -> None:
    _write_file(target, b"")
    with closing(_open_database(path)) as database, closing(sqlite3.connect(target)) as copy:
        database.backup(copy)
        for identity, data in changes.items():
            if data is None:
                copy.execute("DELETE FROM part WHERE id = ?", (identity,))
            else:
                copy.execute("UPDATE part SET data = ? WHERE id = ?", (data.decode(), identity))
        copy.commit()


def _read_storage(folder: Path) -> list[_Part]:
    """Return the messages and the parts in the files of a folder."""
    with refusing(str(folder), verb="read"):
        found = {path: _read(path.read_bytes()) for path in sorted(folder.glob("*/**/*.json"))}
    owners = {path.stem: path.parent.name for path in found if path.stem.startswith("msg_")}
    return [
        _Part(path, owners.get(path.parent.name, path.parent.name), value)
        for path, value in found.items()
        if path.stem.startswith(("msg_", "prt_"))
    ]


def _copy_storage(folder: Path, changes: Mapping[Path, bytes | None], target: Path) -> None:
    def torn(place: str, names: list[str]) -> list[str]:
        return [name for name in names if changes.get(Path(place, name), b"") is None]

    shutil.copytree(folder, target, ignore=torn)
    for path, data in changes.items():
        if data is not None:
            target.joinpath(path.relative_to(folder)).write_bytes(data)
