"""`suture reduce` on every wire: what goes is saved, what stays is the same, and a second time changes nothing."""

import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from suture.messages import AgenticMessage, Message, from_json, message_from_dict, message_to_dict, to_json
from suture.wires import WIRES, get_wire
from tests.cli.program import read_lines, write_json, write_lines
from tests.cli.reducing import Reduce, cleared, files, output, reduce
from tests.corpus import conversations, needs_corpus, recorded_requests
from tests.histories import flat, write

__all__ = ["reduce"]  # a fixture

LENGTHS = (900, 400, 900)


def steps(lengths: Sequence[int] = LENGTHS) -> list[tuple[Any, ...]]:
    """Return a conversation with one call per round, in the notation of `tests/histories.py`."""
    made: list[tuple[Any, ...]] = [("user", "What is it like outside?")]
    for number, length in enumerate(lengths):
        made.append(("turn", [(f"call_{number}", "look", json.dumps({"window": number}))]))
        made.append(("result", f"call_{number}", "look", output(number, length)))
    return [*made, ("say", "It rains.")]


def stored(wire: str, history: Sequence[Any]) -> list[dict[str, Any]]:
    """Return messages of any wire as they stand in a file."""
    return [message_to_dict(message) if get_wire(wire).native else message for message in history]


def results(wire: str, plain: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return what each result in a file says, by its call."""
    history = [message_from_dict(message) if get_wire(wire).native else message for message in plain]
    return {atom[1]: atom[2] for atom in flat(history) if atom[0] == "result"}


@pytest.mark.parametrize("told", [False, True], ids=["recognised", "told"])
@pytest.mark.parametrize("wire", WIRES)
def test_old_output_is_saved_on_every_wire_and_a_second_time_changes_nothing(
    tmp_path: Path, reduce: Reduce, wire: str, told: bool
):
    before = stored(wire, write(wire, steps()))
    path, saved = write_json(tmp_path / "h.json", before), tmp_path / "saved"
    out, again = tmp_path / "out.json", tmp_path / "again.json"
    options = ("--max-tokens", "100", "--save-to", saved, "--root", "x", *(("--wire", wire) if told else ()))
    assert reduce(*options, path, "-o", out).status == 0
    after = json.loads(out.read_text(encoding="utf-8"))
    assert results(wire, after) == {
        "call_0": cleared("x/clear/call_0"),
        "call_1": cleared("x/clear/call_1"),
        "call_2": output(2, 900),
    }
    assert files(saved) == {"clear/call_0": output(0, 900), "clear/call_1": output(1)}
    kept = [index for index, message in enumerate(after) if message == before[index]]
    touched = {1, 2, 3, 4} if get_wire(wire).native else {2, 4}  # a native turn is marked when it is done
    assert set(range(len(before))) - set(kept) == touched
    done = reduce(*options, out, "-o", again)
    assert done.out == f"1 conversation, 0 changed; written to {again}\n"
    assert again.read_bytes() == out.read_bytes()
    assert len(files(saved)) == 2


@pytest.mark.parametrize("wire", WIRES)
def test_long_output_is_saved_on_every_wire_and_a_second_time_changes_nothing(
    tmp_path: Path, reduce: Reduce, wire: str
):
    before = stored(wire, write(wire, steps()))
    saved, out, again = tmp_path / "saved", tmp_path / "out.json", tmp_path / "again.json"
    options = ("--max-length", "100", "--save-to", saved, "--root", "x", "--wire", wire)
    assert reduce(*options, write_json(tmp_path / "h.json", before), "-o", out).status == 0
    after = json.loads(out.read_text(encoding="utf-8"))
    assert files(saved) == {f"trunc/call_{n}": output(n, length) for n, length in enumerate(LENGTHS)}
    assert {call: text.splitlines()[1] for call, text in results(wire, after).items()} == {
        f"call_{n}": f"Output too large ({length}). Full output saved to: x/trunc/call_{n}"
        for n, length in enumerate(LENGTHS)
    }
    assert [index for index, message in enumerate(after) if message != before[index]] == [2, 4, 6]
    assert reduce(*options, out, "-o", again).out == f"1 conversation, 0 changed; written to {again}\n"
    assert again.read_bytes() == out.read_bytes()


@pytest.mark.parametrize("wire", WIRES)
def test_output_that_is_too_long_and_too_old_is_cleared_and_saved_once(tmp_path: Path, reduce: Reduce, wire: str):
    before = stored(wire, write(wire, steps((900, 900))))
    saved, out, again = tmp_path / "saved", tmp_path / "out.json", tmp_path / "again.json"
    options = ("--max-tokens", "100", "--max-length", "100", "--save-to", saved, "--root", "x", "--wire", wire)
    assert reduce(*options, write_json(tmp_path / "h.json", before), "-o", out).status == 0
    after = results(wire, json.loads(out.read_text(encoding="utf-8")))
    assert after["call_0"] == cleared("x/trunc/call_0")
    assert after["call_1"].startswith(
        "<persisted-output>\nOutput too large (900). Full output saved to: x/trunc/call_1\n"
    )
    assert files(saved) == {"trunc/call_0": output(0, 900), "trunc/call_1": output(1, 900)}
    assert reduce(*options, out, "-o", again).out == f"1 conversation, 0 changed; written to {again}\n"
    assert again.read_bytes() == out.read_bytes()


@pytest.mark.parametrize("wire", WIRES)
def test_discarded_output_is_gone_on_every_wire_and_a_second_time_changes_nothing(
    tmp_path: Path, reduce: Reduce, wire: str
):
    before = stored(wire, write(wire, steps()))
    out, again = tmp_path / "out.json", tmp_path / "again.json"
    options = ("--max-tokens", "100", "--discard", "--wire", wire)
    assert reduce(*options, write_json(tmp_path / "h.json", before), "-o", out).status == 0
    gone = "[Old tool result content cleared]"
    after = json.loads(out.read_text(encoding="utf-8"))
    assert results(wire, after) == {"call_0": gone, "call_1": gone, "call_2": output(2, 900)}
    assert reduce(*options, out, "-o", again).out == f"1 conversation, 0 changed; written to {again}\n"
    assert again.read_bytes() == out.read_bytes()


@pytest.mark.parametrize("wire", ["message", "agentic"])
def test_an_envelope_of_suture_s_own_messages_comes_back_as_one(tmp_path: Path, reduce: Reduce, wire: str):
    before: list[Message] | list[AgenticMessage] = write(wire, steps())
    path = tmp_path / "h.json"
    path.write_bytes(to_json(before))
    done = reduce("--max-tokens", "100", "--save-to", tmp_path / "saved", path)
    after = from_json(done.out)
    assert [message == before[index] for index, message in enumerate(after)] == [True, *[False] * 4, *[True] * 3]
    assert json.loads(done.out)["schema"] == 1


def test_a_native_message_that_is_not_touched_is_written_as_it_stood(tmp_path: Path, reduce: Reduce):
    spoken = {"kind": "message", "content": "", "role": "user", "name": "", "extra": {"z": 1.0, "a": 2}}
    history = [spoken, *stored("message", write("message", steps())), spoken]
    done = reduce("--max-tokens", "100", "--save-to", tmp_path / "saved", write_json(tmp_path / "h.json", history))
    after = json.loads(done.out)
    for place in (0, 1, 6, 7, 8, 9):
        assert json.dumps(after[place]) == json.dumps(history[place])


def test_a_conversation_that_grew_is_reduced_where_it_grew(tmp_path: Path, reduce: Reduce):
    saved, out = tmp_path / "saved", tmp_path / "out.json"
    options = ("--max-tokens", "100", "--save-to", saved, "--root", "x", "-o", out)
    for wire in WIRES:
        reduce(*options, "--wire", wire, write_json(tmp_path / "h.json", stored(wire, write(wire, steps((900, 400))))))
        before = json.loads(out.read_text(encoding="utf-8"))
        more = stored(wire, write(wire, steps((900, 400, 700))))
        grown = [*before[:-1], *more[len(before) - 1 :]]
        assert reduce(*options, "--wire", wire, write_json(tmp_path / "h.json", grown)).status == 0
        after = json.loads(out.read_text(encoding="utf-8"))
        assert after[:3] == before[:3]
        assert list(results(wire, after).values()) == [
            cleared("x/clear/call_0"),
            cleared("x/clear/call_1"),
            output(2, 700),
        ]
    assert sorted(files(saved)) == ["clear/call_0", "clear/call_1"]


def test_calls_without_ids_have_files_of_their_own(tmp_path: Path, reduce: Reduce):
    made = [("user", "hi")]
    for number in range(4):
        made += [("turn", [("", "look", "{}")]), ("result", "", "look", output(number))]
    saved, path = tmp_path / "saved", write_json(tmp_path / "h.json", write("gemini", made))
    options = ("--max-tokens", "10", "--save-to", saved, "--root", "x", path, "-o")
    assert reduce(*options, tmp_path / "one.json").status == 0
    assert sorted(files(saved).values()) == [output(0), output(1), output(2)]
    assert reduce(*options, tmp_path / "two.json").status == 0
    assert len(files(saved)) == 3
    assert (tmp_path / "two.json").read_bytes() == (tmp_path / "one.json").read_bytes()


def test_media_stay_where_text_goes(tmp_path: Path, reduce: Reduce):
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    text = {"type": "text", "text": output(0)}
    content = [{"type": "tool_result", "tool_use_id": "call_0", "content": [text, image], "is_error": False}]
    history = write("anthropic", steps((900, 400)))
    history[2] = {"role": "user", "content": content}
    saved = tmp_path / "saved"
    done = reduce("--max-tokens", "100", "--save-to", saved, "--root", "x", write_json(tmp_path / "h.json", history))
    (block,) = json.loads(done.out)[2]["content"]
    assert block == {**content[0], "content": [{"type": "text", "text": cleared("x/clear/call_0")}, image]}
    assert json.loads(files(saved)["clear/call_0"]) == [{"type": "text", "text": output(0)}, image]


@needs_corpus
def test_recorded_requests_are_reduced_once_and_then_left_alone(tmp_path: Path, reduce: Reduce):
    by_wire: dict[str, list[list[Any]]] = {}
    for _, wire, messages, _ in recorded_requests():
        by_wire.setdefault(wire, []).append(messages)
    for wire, histories in by_wire.items():
        path, out, again = write_lines(tmp_path / "h.jsonl", histories), tmp_path / "out", tmp_path / "again"
        options = ("--wire", wire, "--max-tokens", "0", "--keep", "0", "--discard", "-o")
        assert reduce(*options, out, path).status == 0
        assert reduce(*options, again, out).out.startswith(f"{len(histories)} conversations, 0 changed;")
        assert again.read_bytes() == out.read_bytes()


@needs_corpus
@pytest.mark.parametrize("name", ["swe-agent", "tau-bench"])
def test_real_conversations_are_reduced_once_and_nothing_of_them_is_lost(tmp_path: Path, reduce: Reduce, name: str):
    histories = [found["messages"] for found in islice(conversations(name), 10)]
    path, out, saved = write_lines(tmp_path / "h.jsonl", histories), tmp_path / "out.jsonl", tmp_path / "saved"
    options = ("--max-tokens", "2000", "--save-to", saved, "--root", "x")
    assert reduce(*options, path, "-o", out).status == 0
    kept = files(saved)
    assert len(kept) > 20
    assert reduce(*options, out, "-o", tmp_path / "again").out.startswith(f"{len(histories)} conversations, 0 changed;")
    notices = {cleared(f"x/{place}"): content for place, content in kept.items()}
    for before, after in zip(histories, read_lines(out.read_text(encoding="utf-8")), strict=True):
        for old, new in zip(before, after, strict=True):
            whole = notices.get(new["content"]) if isinstance(new["content"], str) else None
            if whole is None:
                assert new == old
            else:  # one part of text is written as text
                assert old in ({**new, "content": whole}, {**new, "content": [{"type": "text", "text": whole}]})
