"""`suture doctor` on session files as the agents write them, torn or not."""

import json
import resource
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import suture
from suture.cli.main import main
from suture.cli.transcripts import read_lines, recognise_format


def claude(*messages: Any) -> list[Any]:
    records: list[Any] = [{"type": "summary", "summary": "A session", "leafUuid": "u0"}]
    parent = None
    for number, message in enumerate(messages):
        envelope = {"parentUuid": parent, "isSidechain": False, "sessionId": "s1", "version": "2.1.0", "cwd": "/x"}
        records.append({**envelope, "type": message["role"], "message": message, "uuid": f"u{number}"})
        parent = f"u{number}"
    return records


def use(call_id: str) -> Any:
    return {"type": "tool_use", "id": call_id, "name": "Bash", "input": {"command": "ls"}}


def reply(*blocks: Any, **fields: Any) -> Any:
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "content": [*blocks], **fields}


def result(call_id: str) -> Any:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": "a.txt"}]}


ASK: Any = {"role": "user", "content": "List the files."}
MORE: Any = {"role": "user", "content": "Are you there?"}
CLAUDE = claude(ASK, reply(use("toolu_1")), MORE)


def codex(*items: Any) -> list[Any]:
    meta = {"timestamp": "t0", "type": "session_meta", "payload": {"id": "c1", "cwd": "/x"}}
    return [
        meta,
        *[{"timestamp": "t1", "type": "response_item", "payload": item} for item in items],
        {"timestamp": "t2", "type": "event_msg", "payload": {"type": "turn_aborted"}},
    ]


SAID: Any = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "List the files."}]}
CALL: Any = {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "call_1"}
CODEX = codex(SAID, CALL, SAID)


def pi(*messages: Any) -> list[Any]:
    records: list[Any] = [{"type": "session", "version": 3, "id": "p", "timestamp": "t", "cwd": "/x"}]
    parent = None
    for number, message in enumerate(messages):
        records.append(
            {"type": "message", "id": f"e{number}", "parentId": parent, "timestamp": "t", "message": message}
        )
        parent = f"e{number}"
    return records


def pi_call(call_id: str, **fields: Any) -> Any:
    call = {"type": "toolCall", "id": call_id, "name": "bash", "arguments": {"command": "ls"}}
    return {"role": "assistant", "content": [call], "stopReason": "toolUse", "timestamp": 2, **fields}


PI = pi(
    {"role": "user", "content": "List the files.", "timestamp": 1},
    pi_call("call_1"),
    {"role": "user", "content": [{"type": "text", "text": "Are you there?"}], "timestamp": 3},
)


def write(path: Path, records: list[Any], tail: bytes = b"") -> Path:
    path.write_bytes(b"".join(json.dumps(record).encode() + b"\n" for record in records) + tail)
    return path


def read(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def examine(path: Path, *options: str) -> tuple[int, list[Any]]:
    before = path.read_bytes()
    status = main(["doctor", *options, str(path)])
    assert path.read_bytes() == before
    copy = path.with_name(path.name + ".repaired")
    return status, read(copy) if copy.exists() else []


@pytest.mark.parametrize(
    ("records", "rule"),
    [(CLAUDE, "anthropic.answered"), (CODEX, "openai-responses.answered"), (PI, "pairing.answered")],
    ids=["Claude Code", "Codex", "pi"],
)
def test_a_call_that_never_ended_is_found_and_answered_in_a_copy(
    records: list[Any], rule: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = write(tmp_path / "session.jsonl", records)
    status, copy = examine(path, "--fix")
    printed = capsys.readouterr().out
    assert (status, rule in printed, "1 session: 0 sound, 1 broken" in printed) == (1, True, True)
    kept = [record for record in copy if record in records]
    assert len(copy) == len(records) + 1
    assert len(kept) >= len(records) - 1  # one may have another parent now
    assert main(["doctor", str(path.with_name("session.jsonl.repaired"))]) == 0
    lines = read_lines(b"\n".join(json.dumps(record).encode() for record in copy))
    known = recognise_format(lines)
    assert known is not None
    messages = [member.message for member in known.select(lines)]
    assert len(messages) == 4
    assert suture.check(messages, wire=known.wire, profile=known.profile).acceptable


def test_what_is_put_in_stands_in_the_chain_of_parents(tmp_path: Path):
    _, copy = examine(write(tmp_path / "s.jsonl", CLAUDE), "--fix")
    links = {record["uuid"]: record["parentUuid"] for record in copy if "uuid" in record}
    answer = next(record for record in copy if record.get("uuid", "u").startswith("u") is False)
    assert links == {"u0": None, "u1": "u0", answer["uuid"]: "u1", "u2": answer["uuid"]}
    assert (answer["type"], answer["sessionId"]) == ("user", "s1")


def test_a_sound_session_has_no_findings_and_no_copy(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    parts = [reply({"type": "text", "text": "I look."}), reply(use("toolu_1")), reply(use("toolu_2"))]
    records = claude(ASK, *parts, result("toolu_1"), result("toolu_2"), reply({"type": "text", "text": "a."}, id="m2"))
    records[5]["parentUuid"] = "u2"  # the results of parallel calls have different parents
    records[6]["parentUuid"] = "u3"
    assert examine(write(tmp_path / "s.jsonl", records), "--fix") == (0, [])
    assert "1 session: 1 sound, 0 broken" in capsys.readouterr().out


@pytest.mark.parametrize("first", [b"", b'{"parentUuid": nu\n'], ids=["a summary", "a torn line"])
def test_a_message_that_is_put_first_is_of_the_session_and_has_no_other_parent(first: bytes, tmp_path: Path):
    path = write(tmp_path / "session.jsonl", claude(result("toolu_0"), reply(), MORE))
    path.write_bytes(first + path.read_bytes())
    assert main(["doctor", "--fix", str(path)]) == 1
    _, put, *_ = records = read(Path(f"{path}.repaired"))
    assert (put["parentUuid"], put["sessionId"], put["cwd"], put["message"]["role"]) == (None, "s1", "/x", "user")
    assert [record["parentUuid"] for record in records[2:]] == [record["uuid"] for record in records[1:-1]]


def test_half_a_character_beside_a_message_is_kept(tmp_path: Path):
    records = claude(ASK, reply(use("toolu_1")), {**MORE})
    records[-1]["toolUseResult"] = "caf\ud83d"
    path = write(tmp_path / "session.jsonl", records)
    assert main(["doctor", "--fix", str(path)]) == 1
    assert read(Path(f"{path}.repaired"))[-1]["toolUseResult"] == "caf\ud83d"


def test_a_branch_that_was_left_does_not_count(tmp_path: Path):
    records = claude(ASK, reply(use("toolu_1")), MORE)
    records[3]["parentUuid"] = "u0"  # the user went back to the first message
    assert examine(write(tmp_path / "s.jsonl", records), "--fix") == (0, [])


def test_what_pi_gave_up_does_not_count(tmp_path: Path):
    records = pi(PI[1]["message"], pi_call("call_1", stopReason="aborted"), PI[3]["message"])
    assert examine(write(tmp_path / "s.jsonl", records), "--fix") == (0, [])


def test_what_was_compacted_away_does_not_count(tmp_path: Path):
    compacted = {"timestamp": "t", "type": "compacted", "payload": {"message": "…", "replacement_history": [SAID]}}
    assert examine(write(tmp_path / "s.jsonl", [*CODEX, compacted, *codex(SAID)[1:]]), "--fix") == (0, [])


def test_a_turn_that_was_taken_back_does_not_count(tmp_path: Path):
    taken = {"timestamp": "t", "type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}}
    assert examine(write(tmp_path / "s.jsonl", [*codex(SAID, SAID, CALL), taken, *codex(SAID)[1:]]), "--fix") == (0, [])


def test_lines_that_codex_numbers_stay_where_they_are(tmp_path: Path):
    lost = {"type": "function_call_output", "call_id": "call_9", "output": "lost"}
    records = [{**record, "ordinal": number} for number, record in enumerate(codex(SAID, lost, CALL, SAID))]
    path = write(tmp_path / "s.jsonl", records, b'{"ordinal": 6, "type": "resp')
    before = path.read_bytes()
    status, copy = examine(path, "--fix")
    rows = path.with_name("s.jsonl.repaired").read_bytes().split(b"\n")
    assert [len(row) for row in rows[:7]] == [len(row) for row in before.split(b"\n")]
    assert (status, copy[:2], copy[3:6]) == (1, records[:2], records[3:])
    assert (copy[2], copy[6]) == ({}, {})  # Codex passes over these, and their places are known elsewhere
    text, answer = copy[7:]
    assert (answer["ordinal"], answer["payload"]["call_id"]) == (7, "call_1")
    assert (text["ordinal"], text["payload"]["type"], text["payload"]["role"]) == (6, "message", "user")
    assert "lost" in text["payload"]["content"][0]["text"]
    assert main(["doctor", f"{path}.repaired"]) == 0


@pytest.mark.parametrize(
    ("spoil", "torn"),
    [
        (lambda data: data + b'{"type": "user", "mess', 1),
        (lambda data: data.replace(b"}\n{", b"}{", 2), 0),
        (lambda data: data.replace(b"List the", b"List\nthe"), 0),
        (lambda data: data.replace(b"List the", "List\u2028the".encode()), 0),
        (lambda data: data + b"\x00" * 4096, 0),
        (lambda data: b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"), 0),
        (lambda data: data + b"\xff\xfe garbage\n", 1),
    ],
    ids=["cut off", "two on a line", "a raw newline", "U+2028", "zeros", "a mark and CRLF", "no UTF-8"],
)
def test_a_file_that_was_torn_is_read(
    spoil: Callable[[bytes], bytes], torn: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = write(tmp_path / "s.jsonl", CLAUDE)
    path.write_bytes(spoil(path.read_bytes()))
    status, copy = examine(path, "--fix", "--json")
    report = json.loads(capsys.readouterr().out.splitlines()[0])["report"]
    problems = sorted(finding["problem"] for finding in report["findings"])
    assert (status, problems) == (1, ["dangling"] + ["torn-line"] * torn)
    assert len(copy) == len(CLAUDE) + 1


def test_a_copy_is_never_written_over_another_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = write(tmp_path / "s.jsonl", CLAUDE)
    other = tmp_path / "s.jsonl.repaired"
    other.write_text("mine")
    assert main(["doctor", "--fix", str(path)]) == 2
    assert (other.read_text(), "already exists" in capsys.readouterr().err) == ("mine", True)


STATE: Any = {"status": "running", "input": {"command": "ls"}, "time": {"start": 5}}
PARTS: list[Any] = [
    {"type": "text", "text": "hi"},
    {"type": "tool", "tool": "bash", "callID": "call_1", "state": STATE},
]


def test_half_a_copy_is_not_left_where_the_disk_is_full(tmp_path: Path):
    path, limits = write(tmp_path / "session.jsonl", CLAUDE), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        assert main(["doctor", "--fix", str(path)]) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [each.name for each in tmp_path.iterdir()] == ["session.jsonl"]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_call_that_never_ended_is_found_in_a_database_of_opencode(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "opencode.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data TEXT)")
        for number, part in enumerate(PARTS):
            database.execute("INSERT INTO part VALUES (?, 'm', 'ses_1', ?)", (f"prt_{number}", json.dumps(part)))
        database.commit()
    before = contents(tmp_path)
    assert main(["doctor", "--fix", str(tmp_path)]) == 1
    printed = capsys.readouterr().out
    assert ("pairing.answered" in printed, "repaired copy: " in printed) == (True, True)
    assert main(["doctor", f"{path}.repaired"]) == 0
    after = contents(tmp_path)
    assert after == {**before, "opencode.db.repaired": after["opencode.db.repaired"]}  # nothing else was left there
    with closing(sqlite3.connect(tmp_path / "opencode.db.repaired")) as database:
        data = [json.loads(row[0]) for row in database.execute("SELECT data FROM part ORDER BY id")]
    assert (data[0], data[1]["state"]["status"], "call_1" in data[1]["state"]["error"]) == (PARTS[0], "error", True)


def test_half_a_character_in_a_part_of_opencode_is_kept(tmp_path: Path):
    path, half = tmp_path / "opencode.db", json.dumps({"type": "text", "text": "caf\ud83d"})
    running = json.dumps({**PARTS[1], "title": "caf\ud83d"})
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE part (id TEXT PRIMARY KEY, session_id TEXT, data TEXT)")
        database.executemany("INSERT INTO part VALUES (?, 's', ?)", [("prt_0", half), ("prt_1", running)])
        database.commit()
    assert main(["doctor", "--fix", str(path)]) == 1
    with closing(sqlite3.connect(f"{path}.repaired")) as database:
        kept, mended = [row[0] for row in database.execute("SELECT data FROM part ORDER BY id")]
    assert (kept, json.loads(mended)["title"]) == (half, "caf\ud83d")


def test_a_call_that_never_ended_and_a_torn_part_are_found_in_files_of_opencode(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    storage = tmp_path / "opencode" / "storage"
    files = {
        "session/global/ses_1.json": json.dumps({"id": "ses_1"}),
        "message/ses_1/msg_1.json": json.dumps({"id": "msg_1", "sessionID": "ses_1"}),
        **{f"part/msg_1/prt_{number}.json": json.dumps(part) for number, part in enumerate(PARTS)},
        "part/msg_1/prt_2.json": '{"type": "te',
    }
    for name, text in files.items():
        (storage / name).parent.mkdir(parents=True, exist_ok=True)
        (storage / name).write_text(text)
    assert main(["doctor", "--fix", "--json", str(tmp_path)]) == 1
    (told,) = map(json.loads, capsys.readouterr().out.splitlines())
    problems = [finding["problem"] for finding in told["report"]["findings"]]
    assert (told["session"], problems) == ("ses_1", ["dangling", "torn-line"])
    assert contents(storage) == {name: text.encode() for name, text in files.items()}
    copy = contents(Path(told["copy"]))
    changed = json.loads(copy.pop("part/msg_1/prt_1.json"))
    assert (changed["callID"], changed["state"]["status"], changed["state"]["input"]) == (
        "call_1",
        "error",
        STATE["input"],
    )
    assert copy == {name: text.encode() for name, text in files.items() if name[-6] not in "12" or "part" not in name}
    assert main(["doctor", told["copy"]]) == 0


def test_the_sessions_of_all_agents_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "PI_CODING_AGENT_DIR", "XDG_DATA_HOME"):
        monkeypatch.delenv(variable, raising=False)
    places = [
        ".claude/projects/-x/s.jsonl",
        ".codex/sessions/2026/01/02/rollout-1.jsonl",
        ".pi/agent/sessions/--x--/s.jsonl",
    ]
    for place, records in zip(places, (CLAUDE, CODEX, PI), strict=True):
        (tmp_path / place).parent.mkdir(parents=True)
        write(tmp_path / place, records)
    part = tmp_path / ".local/share/opencode/storage/part/msg_1/prt_1.json"
    part.parent.mkdir(parents=True)
    part.write_text(json.dumps(PARTS[1]))
    assert main(["doctor"]) == 1
    printed = capsys.readouterr().out
    names = ("(Claude Code)", "(Codex)", "(pi)", "(opencode ")
    assert all(name in printed for name in (*names, "4 sessions: 0 sound, 4 broken"))


def test_what_is_no_session_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["doctor", str(tmp_path / "nothing")]) == 2
    assert main(["doctor", str(write(tmp_path / "x.jsonl", [{"a": 1}]))]) == 2
    assert "not a session of a known agent" in capsys.readouterr().err
    assert main(["doctor", str(tmp_path / ("n" * 300)), str(write(tmp_path / "b.jsonl", PI))]) == 2
    out, err = capsys.readouterr()
    assert "name too long" in err
    assert "1 session: 0 sound, 1 broken" in out


@pytest.mark.parametrize(
    "records",
    [
        pytest.param(
            claude({"role": "user", "content": [{"type": "tool_result", "tool_use_id": ["x"]}]}), id="Claude Code"
        ),
        pytest.param(codex({**SAID, "content": None}, {**CALL, "call_id": {}}), id="Codex"),
        pytest.param(
            [*CODEX, {"type": "compacted", "payload": {"replacement_history": [None]}}], id="Codex, compacted"
        ),
        pytest.param(pi({"role": "user", "content": [{"type": "text", "text": None}]}), id="pi"),
    ],
)
def test_a_session_that_cannot_be_read_is_named_and_does_not_hide_the_others(
    records: list[Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    write(tmp_path / "a.jsonl", records)
    write(tmp_path / "b.jsonl", PI)
    assert main(["doctor", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert (len(err.splitlines()), "a.jsonl: " in err, "internal error" in err) == (1, True, False)
    assert "1 session: 0 sound, 1 broken" in out
