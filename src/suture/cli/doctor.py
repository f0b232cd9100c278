"""`suture doctor`: reads the sessions that coding agents left on this machine, and says what is broken in them.

Nothing that is read is ever opened for writing. With `--fix` a repaired copy is written beside the original.
"""

import os
import sqlite3
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from suture._text import plural
from suture.cli.files import Refusal, refuse_system
from suture.cli.output import Outputs
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
"""What the name of a copy ends in: no agent takes it for a session."""
_TORN = Finding(index=0, problem="torn-line", done="left out", rule="file.lines", says="A line is a JSON object.")
_encode = msgspec.json.Encoder().encode


class Examined(NamedTuple):
    """A session that was looked at."""

    path: Path
    agent: str
    report: Report
    copy: bytes | None = None
    """The repaired file; of a database there is none."""
    title: str = ""


def run(asked: Namespace) -> int:
    """Examine the sessions that were named, or all that are found; return 1 where something is broken."""
    count = broken = 0
    with ExitStack() as stack:
        outputs = Outputs(stack)
        output = outputs.open()
        screen = outputs.screen(output)
        for path in _find(asked.paths):
            for found in _examine(path, asked):
                count += 1
                broken += not found.report.acceptable
                copy = _write_beside(found.path, found.copy) if asked.fix and found.copy is not None else None
                if asked.json:
                    told = {"file": str(found.path), "agent": found.agent, "session": found.title}
                    told |= {"copy": str(copy)} if copy else {}
                    output.write(visible_json({**told, "report": found.report.to_dict()}).encode() + b"\n")
                elif not found.report.acceptable:
                    screen.report(found.report, f"{found.path} ({found.agent}{found.title and f' {found.title}'})")
                    if copy is not None:
                        screen.say(f"  repaired copy: {copy}")
        if not asked.json:
            screen.say(f"{plural(count, 'session')}: {count - broken} sound, {broken} broken")
        outputs.publish()
    return 1 if broken else 0


def _find(paths: Sequence[str]) -> Iterator[Path]:
    """Yield the files that were named, those in folders that were, and without a name those of all known agents."""
    for name in paths:
        path = Path(name)
        if not path.exists():
            raise Refusal("there is no such file or folder", name)
        found = sorted([*path.rglob("*.jsonl"), *path.rglob("opencode*.db")]) if path.is_dir() else [path]
        yield from found
    if not paths:
        for known in FORMATS:
            yield from sorted(known.folder().glob(known.pattern))
        yield from sorted(_opencode_folder().glob("opencode*.db"))


def _examine(path: Path, asked: Namespace) -> Iterator[Examined]:
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size > asked.max_bytes:
                raise Refusal(f"larger than --max-bytes {asked.max_bytes}", str(path))
            data = file.read()
    except OSError as error:
        raise refuse_system("read", error, str(path)) from None
    if data.startswith(b"SQLite format 3\0"):
        yield from _examine_database(path, asked)
        return
    lines = read_lines(data)
    known = recognise_format(lines)
    if known is None:
        if asked.paths:
            raise Refusal("not a session of a known agent", str(path))
        return
    try:
        yield Examined(path, known.name, *_repair_file(known, lines, asked.language))
    except InputError as error:
        raise Refusal(str(error), str(path)) from None


# --- files of lines -------------------------------------------------------------------------------


def _repair_file(known: Format, lines: Sequence[Line], language: str | None) -> tuple[Report, bytes | None]:
    """Return what is broken in a file, and the file as it should be, if that is another."""
    members = known.select(lines)
    messages = [member.message for member in members]
    fixed: Repaired[Any] = repair(
        messages, wire=known.wire, profile=known.profile, cause=Cause.UNKNOWN, tail="cancel", language=language
    )
    torn = [replace(_TORN, index=line.number) for line in lines if line.torn]
    numbers = [0 if member.line is None else member.line.number for member in members]
    found = [replace(finding, index=numbers[finding.index]) for finding in fixed.report.findings]
    report = replace(fixed.report, findings=tuple(sorted([*torn, *found], key=lambda each: each.index)))
    if not torn and not fixed.changed:
        return report, None
    return report, _rewrite(known, lines, members, fixed.messages)


def _rewrite(known: Format, lines: Sequence[Line], members: Sequence[Member], repaired: Sequence[Any]) -> bytes:
    """Return a file with a repaired conversation; every line that is not concerned is as it was."""
    stood = {id(member.message): member.line for member in members}
    left = {id(message) for message in repaired}
    gone = [member for member in members if id(member.message) not in left and member.line is not None]
    conversation = {member.line for member in members}
    written: list[Line] = []
    like = lines[0]
    for count, message in enumerate(repaired):
        line = stood.get(id(message)) or _replaced(gone, message)
        if line is None and id(message) not in stood:
            seed = f"{like.record.get(known.links[0])} {count}" if known.links else str(count)
            line = Line(0, known.dress(message, like.record, make_identity(seed)))
        if line is not None:
            written.append(line)
            like = line
    if known.links is not None:
        _relink(known.links, lines, conversation, written)
    kept = [line for line in lines if not line.torn]
    rows = interleave(kept, written, conversation.__contains__)
    return b"".join([(_encode(row.record) if row.raw is None else row.raw) + b"\n" for row in rows])


def _replaced(gone: list[Member], message: Any) -> Line | None:
    """Return the line of the model's message that was changed into another one, with that in its place."""
    for member in gone:
        line = member.line
        field = next((name for name in ("payload", "message") if line and line.record.get(name) is member.message), "")
        if line and field and member.message.get("role") == message.get("role") == "assistant":
            gone.remove(member)
            line.change(**{field: message})
            return line
    return None


def _relink(links: tuple[str, str], lines: Sequence[Line], members: set[Line | None], written: list[Line]) -> None:
    """Give the lines that were put in, moved or left out their place in the chain of parents."""
    own, parent = links
    path = path_to_leaf(lines, links, next((line for line in reversed(lines) if line in members), None))
    known = {*lines} - {*path}  # a branch beside it stays as it is
    chain = [line for line in written if line not in known]
    before: Line | None = None
    for line in [*interleave(path, chain, members.__contains__)]:
        if before is not None and line.record.get(parent) != before.record.get(own):
            line.change(**{parent: before.record.get(own)})
        before = line


def _write_beside(path: Path, data: bytes) -> Path:
    """Write a copy beside a file, and return its path; never over another."""
    copy = path.with_name(path.name + SUFFIX)
    try:
        with copy.open("xb") as file:
            copy.chmod(path.stat().st_mode & 0o777)
            file.write(data)
    except FileExistsError:
        raise Refusal("already exists; move it away first", str(copy)) from None
    except OSError as error:
        raise refuse_system("written", error, str(copy)) from None
    return copy


# --- opencode's database --------------------------------------------------------------------------
# A call and its result are one part, so there is one thing that can be wrong: a call that never ended.


def _opencode_folder() -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "opencode"


def _examine_database(path: Path, asked: Namespace) -> Iterator[Examined]:
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            rows = database.execute("SELECT id, session_id, data FROM part ORDER BY session_id, id").fetchall()
            parts = [(identity, session, _read_part(data)) for identity, session, data in rows]
            if asked.fix and any(map(_is_open, [part for *_, part in parts])):
                _copy_database(path, database, parts, asked.language)
    except sqlite3.Error as error:
        raise Refusal(f"no database of opencode's: {error}", str(path)) from None
    sessions: dict[str, list[Any]] = {}
    for _, session, part in parts:
        sessions.setdefault(session, []).append(part)
    for session, found in sessions.items():
        findings = [_finding(place, part) for place, part in enumerate(found) if _is_open(part)]
        report = Report(wire="openai-chat", profile="pairing", findings=tuple(findings))
        yield Examined(path, "opencode", report, title=session)


def _read_part(data: Any) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, TypeError):
        return None


def _is_open(part: Any) -> bool:
    state: Any = part.get("state") if is_map(part) and part.get("type") == "tool" else None
    return is_map(state) and state.get("status") in {"pending", "running"}


def _finding(place: int, part: Any) -> Finding:
    rule = next(rule for rule in get_profile("pairing").rules if "dangling" in rule.problems)
    named = {"call_id": str(part.get("callID", "")), "name": str(part.get("tool", ""))}
    told = Finding(index=place, problem="dangling", done="answered: unknown", **named)
    return told.cite(rule.id, rule.says, rule.source)


def _copy_database(path: Path, database: sqlite3.Connection, parts: Sequence[Any], language: str | None) -> None:
    """Write a copy of a database in which every call has ended."""
    target = _write_beside(path, b"")
    spoken = resolve_language(language)
    with closing(sqlite3.connect(target)) as copy:
        database.backup(copy)
        for identity, _, part in parts:
            if _is_open(part):
                text = placeholder_text(Cause.UNKNOWN, str(part.get("tool", "")), str(part.get("callID", "")), spoken)
                start: Any = (part["state"].get("time") or {"start": 0}).get("start", 0)
                ended = {"status": "error", "error": text, "time": {"start": start, "end": start}}
                state = {"input": part["state"].get("input", {}), **ended}
                copy.execute(
                    "UPDATE part SET data = ? WHERE id = ?", (_encode({**part, "state": state}).decode(), identity)
                )
        copy.commit()
