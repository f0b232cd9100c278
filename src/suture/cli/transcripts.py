"""Session files of coding agents: where they are, and how messages are stored in them.

A file is read line by line, torn or not. Each agent's format says which lines make up the conversation that the model
would be sent, how a line holds a message, and how lines refer to each other.
"""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from uuid import NAMESPACE_URL, uuid5

import msgspec

from suture.profiles import Profile, get_profile
from suture.wires.fields import is_list, is_map

Record = dict[str, Any]
_decode = msgspec.json.Decoder().decode
_MOST_JOINED = 64
"""How many lines a torn record may be spread over."""


@dataclass(eq=False)
class Line:
    """A line of a file: its number, its record (empty if it cannot be read), and its bytes, unless it was changed."""

    number: int
    record: Record
    raw: bytes | None = None
    torn: bool = False

    def change(self, **fields: Any) -> None:
        """Set fields of the record."""
        self.record, self.raw = {**self.record, **fields}, None


class Member(NamedTuple):
    """A message of the conversation, and its line; `None` if another record holds it."""

    line: Line | None
    message: Any


class Format(ABC):
    """How one agent writes its sessions."""

    name: str
    home: tuple[str, ...]
    """Where they are: an environment variable, the folder at home if it is not set, and the folders below."""
    pattern = "**/*.jsonl"
    wire: str
    profile: Profile
    links: tuple[str, ...] = ()
    """The fields with a record's id and its parent's."""

    @property
    def folder(self) -> Path:
        """The folder with all sessions."""
        variable, usual, *below = self.home
        return Path(os.environ.get(variable) or Path.home() / usual, *below)

    @abstractmethod
    def claims(self, record: Record) -> bool:
        """Return whether a record is one of this agent's."""

    @abstractmethod
    def select(self, lines: Sequence[Line]) -> list[Member]:
        """Return the messages of the conversation, in order."""

    @abstractmethod
    def dress(self, message: Any, like: Record, identity: str) -> Record:
        """Make the record of a message, after the model of another record, with an id."""


# --- lines ----------------------------------------------------------------------------------------


def read_lines(data: bytes) -> list[Line]:
    r"""Return the lines of a file; records that are spread over several lines or share one are found, too.

    >>> [line.record for line in read_lines(b'{"a": 1}{"a": 2}\n{"a": "x\ny"}\n{"a": ')]
    [{'a': 1}, {'a': 2}, {'a': 'x\ny'}, {}]
    """
    rows = data.replace(b"\r\n", b"\n").split(b"\n")
    lines: list[Line] = []
    at = 0
    while at < len(rows):
        row = rows[at].strip(b"\x00 \t\xef\xbb\xbf")
        used = 1
        if row:
            records = _read_row(row)
            if records is None:
                used, records = _join_rows(rows, at)
            lines += [Line(at + 1, record, row if len(records) == 1 and used == 1 else None) for record in records]
            lines += [] if records else [Line(at + 1, {}, row, torn=True)]
        at += used
    return lines


def _read_row(row: bytes) -> list[Record] | None:
    """Return the records in a row (normally one); `None` if it holds anything else."""
    try:
        value = _decode(row)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return _read_several(row)
    return [dict(value)] if is_map(value) else None


def _read_several(row: bytes) -> list[Record] | None:
    text, reader = row.decode(errors="replace"), json.JSONDecoder()
    found: list[Record] = []
    at = 0
    while at < len(text):
        try:
            value, at = reader.raw_decode(text, at)
        except (ValueError, RecursionError):
            return None
        if not is_map(value):
            return None
        found.append(dict(value))
        at += len(text[at:]) - len(text[at:].lstrip())
    return found


def _join_rows(rows: Sequence[bytes], at: int) -> tuple[int, list[Record]]:
    """Join the rows from `at` on that are one record, torn by newlines in a text; return their count and the record."""
    text = rows[at]
    if not text.lstrip().startswith(b"{"):
        return 1, []
    for more in range(at + 1, min(len(rows), at + _MOST_JOINED)):
        if rows[more].startswith((b'{"type"', b'{"parentUuid"', b'{"timestamp"')):
            break
        text += b"\\n" + rows[more]
        try:
            return more + 1 - at, [_decode(text)]
        except (msgspec.MsgspecError, UnicodeError):
            continue
    return 1, []


def interleave(slots: Iterable[Any], members: Sequence[Any], is_member: Callable[[Any], bool]) -> Iterator[Any]:
    """Yield `slots` in order, but in the places of those that are members yield `members`, in their own order.

    >>> "".join(interleave("a1b2c", "2x1", str.isdigit))
    'a2x1bc'
    """
    emitted = 0
    places = {id(member): place for place, member in enumerate(members)}
    for slot in slots:
        if not is_member(slot):
            yield slot
            continue
        place = places.get(id(slot), -1)
        if place >= emitted:
            yield from members[emitted : place + 1]
            emitted = place + 1
    yield from members[emitted:]


# --- what the formats share -----------------------------------------------------------------------


def path_to_leaf(lines: Sequence[Line], links: tuple[str, ...], leaf: Line | None) -> list[Line]:
    """Return the lines from the root to a leaf, following each line's parent."""
    own, parent = links
    known = {line.record[own]: line for line in lines if line.record.get(own)}
    path: list[Line] = []
    while leaf is not None:
        path.append(leaf)
        known.pop(leaf.record.get(own), None)  # a circle ends where it began
        leaf = known.get(leaf.record.get(parent))
    return path[::-1]


def _blocks(message: Mapping[str, Any], kind: str) -> list[Any]:
    content: Any = message.get("content")
    found = content if is_list(content) else ()
    return [block for block in found if is_map(block) and block.get("type") == kind]


# --- Claude Code ----------------------------------------------------------------------------------

_KEPT_BY_CLAUDE = ("one-result-message", "results-first", "thinking-not-last", "not-empty")
"""Anthropic's rules that Claude Code takes care of itself: it joins, sorts and drops blocks when it sends."""


class _Claude(Format):
    """Claude Code writes each block of a reply as a record; the results of parallel calls have different parents."""

    name, wire, home = "Claude Code", "anthropic", ("CLAUDE_CONFIG_DIR", ".claude", "projects")
    links = ("uuid", "parentUuid")
    profile = Profile.extend("anthropic", name="claude-code", without=[f"anthropic.{rule}" for rule in _KEPT_BY_CLAUDE])

    def claims(self, record: Record) -> bool:
        return "parentUuid" in record and "sessionId" in record

    def select(self, lines: Sequence[Line]) -> list[Member]:
        """Return the branch of the last message, with the other blocks of its replies and the results of its calls."""
        said = [Member(line, message) for line in lines if (message := _read_message(line.record))]
        main = [member for member in said if member.line and not member.line.record.get("isSidechain")] or said
        path = {*path_to_leaf(lines, self.links, main[-1].line if main else None)}
        replies = {message.get("id") for line, message in main if line in path and message.get("id")}
        kept = [member for member in main if member.line in path or member.message.get("id") in replies]
        calls = {block.get("id") for member in kept for block in _blocks(member.message, "tool_use")}
        start, chosen = main.index(kept[0]) if kept else 0, {member.line for member in kept}

        def belongs(member: Member) -> bool:
            results = _blocks(member.message, "tool_result")
            return member.line in chosen or any(block.get("tool_use_id") in calls for block in results)

        return list(filter(belongs, main[start:]))

    def dress(self, message: Any, like: Record, identity: str) -> Record:
        kept = ("isSidechain", "userType", "cwd", "sessionId", "version", "gitBranch", "agentId", "slug", "timestamp")
        envelope = {"parentUuid": like.get("uuid"), **{name: like[name] for name in kept if name in like}}
        return {**envelope, "type": message["role"], "message": message, "uuid": identity}


def _read_message(record: Record) -> Any:
    """Return the message of a record, `None` if it would not be sent to the model."""
    if record.get("type") not in ("user", "assistant") or record.get("isApiErrorMessage"):
        return None
    message: Any = record.get("message")
    return message if is_map(message) and message.get("model") != "<synthetic>" else None


# --- Codex ----------------------------------------------------------------------------------------

_ITEMS = ("message", "reasoning", "web_search_call", "compaction", "tool_search_output")


class _Codex(Format):
    """Codex writes records with one item each; early releases wrote bare items."""

    name, wire, home = "Codex", "openai-responses", ("CODEX_HOME", ".codex", "sessions")
    pattern = "**/rollout-*.jsonl"
    profile = get_profile("openai-responses")

    def claims(self, record: Record) -> bool:
        kind, payload = record.get("type"), record.get("payload")
        old = "instructions" in record and "id" in record and "timestamp" in record
        return old or (kind in ("session_meta", "response_item", "turn_context") and is_map(payload))

    def select(self, lines: Sequence[Line]) -> list[Member]:
        """Return what the last compaction left and the items since then, without turns that were rolled back."""
        members: list[Member] = []
        for line in lines:
            record = line.record
            payload: Any = record.get("payload")
            if record.get("type") == "compacted" and is_map(payload):
                members = [Member(None, item) for item in payload.get("replacement_history") or ()]
            elif record.get("type") == "event_msg" and is_map(payload) and payload.get("type") == "thread_rolled_back":
                turns = [at for at, member in enumerate(members) if _begins_turn(member.message)]
                count = min(payload.get("num_turns") or 0, len(turns))
                members = members[: turns[-count]] if count else members
            elif record.get("type") == "response_item" and is_map(payload):
                members.append(Member(line, payload))
            elif "payload" not in record and _is_item(record.get("type")):
                members.append(Member(line, record))
        return [member for member in members if _is_item(member.message.get("type") or "message")]

    def dress(self, message: Any, like: Record, identity: str) -> Record:
        if isinstance(message.get("content"), str):  # Codex reads no short form
            message = {"type": "message", **message, "content": [{"type": "input_text", "text": message["content"]}]}
        if "payload" not in like:
            return message
        return {"timestamp": like.get("timestamp"), "type": "response_item", "payload": message}


def _is_item(kind: Any) -> bool:
    return isinstance(kind, str) and (kind in _ITEMS or kind.endswith(("_call", "_call_output", "_output")))


def _begins_turn(item: Mapping[str, Any]) -> bool:
    """Return whether an item is a message of the user, not one that Codex writes in the user's name."""
    text = "".join([block.get("text", "") for block in _blocks(item, "input_text")])
    return item.get("role") == "user" and not text.startswith(("<", "# AGENTS.md instructions"))


# --- pi -------------------------------------------------------------------------------------------

_NOT_SENT_AGAIN = ("error", "aborted")
"""The stop reasons of replies that pi does not send again."""


class _Pi(Format):
    """pi links its entries; early releases wrote no ids."""

    name, wire, home = "pi", "openai-chat", ("PI_CODING_AGENT_DIR", ".pi", "agent", "sessions")
    links = ("id", "parentId")
    profile = get_profile("pairing")

    def claims(self, record: Record) -> bool:
        return record.get("type") == "session" and "cwd" in record and "version" in record

    def select(self, lines: Sequence[Line]) -> list[Member]:
        """Return the branch of the last entry, from the first entry that its last compaction kept."""
        entries = [line for line in lines if line.record.get("type") != "session"]
        linked = [line for line in entries if line.record.get("id")]
        path = path_to_leaf(entries, self.links, linked[-1]) if linked else entries  # early releases wrote no ids
        folded = [at for at, line in enumerate(path) if line.record.get("type") == "compaction"]
        if folded:
            first = path[folded[-1]].record.get("firstKeptEntryId")
            path = path[next((at for at, line in enumerate(path) if line.record.get("id") == first), folded[-1]) :]
        return [Member(line, message) for line in path if (message := _from_pi(line.record))]

    def dress(self, message: Any, like: Record, identity: str) -> Record:
        original: Any = like.get("message")
        when: Any = original.get("timestamp", 0) if is_map(original) else 0
        made: Record = {"role": "user", "content": message.get("content") or "", "timestamp": when}
        if message["role"] == "tool":
            text = [{"type": "text", "text": message.get("content") or ""}]
            named = {"toolCallId": message["tool_call_id"], "toolName": message.get("name") or "unknown_tool"}
            made = {"role": "toolResult", **named, "content": text, "isError": True, "timestamp": when}
        envelope = {"id": identity[:8], "parentId": like.get("id"), "timestamp": like.get("timestamp")}
        return {"type": "message", **envelope, "message": made}


def _from_pi(record: Record) -> Any:
    """Return an entry as a message of Chat Completions, `None` if it holds no message that pi would send."""
    message: Any = record.get("message")
    if record.get("type") != "message" or not is_map(message) or message.get("stopReason") in _NOT_SENT_AGAIN:
        return None
    texts = [block.get("text", "") for block in _blocks(message, "text")]
    text = message["content"] if isinstance(message.get("content"), str) else "\n".join(texts)
    if message.get("role") == "toolResult":
        named = {"tool_call_id": message.get("toolCallId"), "name": message.get("toolName")}
        return {"role": "tool", **named, "content": text}
    if message.get("role") != "assistant":
        return {"role": "user", "content": text}
    calls = [
        {"id": block.get("id"), "type": "function", "function": {"name": block.get("name"), "arguments": "{}"}}
        for block in _blocks(message, "toolCall")
    ]
    return {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}


FORMATS = (_Claude(), _Codex(), _Pi())
"""The agents whose sessions are files of lines. opencode's are in a database, see `suture.cli.doctor`."""


def recognise_format(lines: Sequence[Line]) -> Format | None:
    """Return the format of a file, by the first record that identifies it.

    >>> recognise_format(read_lines(b'{"type": "session_meta", "payload": {}}')).name
    'Codex'
    """
    return next((known for line in lines for known in FORMATS if known.claims(line.record)), None)


def make_identity(seed: str) -> str:
    """Return an id that is always the same for the same seed."""
    return str(uuid5(NAMESPACE_URL, f"suture:{seed}"))
