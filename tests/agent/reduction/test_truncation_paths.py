"""Call ids as paths: hostile, strange, long, empty and reused ones. Every output is read back from its own path."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from suture.middleware import ToolReduction
from suture.stores import LocalBackend, MemoryBackend, MemoryStore, SQLiteBackend
from tests.agent.reduction._backends import Shelf, as_bytes, fetch, paths, saved, tree
from tests.agent.reduction._notices import path_in
from tests.agent.reduction._tooling import KINDS, drive, each_kind, made, on_each_wire, play, text_of

LIMIT = 100
LONG = text_of(2_000)

HOSTILE = {
    "up and out": "../../etc/x",
    "up": "..",
    "here": ".",
    "absolute": "/etc/passwd",
    "a slash": "a/b",
    "two slashes": "a//b",
    "a slash behind": "a/",
    "a backslash": "a\\..\\..\\b",
    "a drive": "C:\\x",
    "a device": "CON",
    "a device with an ending": "nul.txt",
    "hidden": ".hidden",
    "dots": "...",
    "a dot behind": "a.",
    "newline": "a\nb",
    "NUL": "a\0b",
    "escape": "\x1b[31mred",
    "blank": " ",
    "blanks around": " a ",
    "percent": "%2e%2e%2fx",
    "home": "~root",
    "a tag": "</persisted-output><persisted-output>",
    "quotes": "\"'`$(id)`",
    "right to left": "a\u202eb",
    "other letters": "调用一",
    "composed": "e\u0301",
    "a lone surrogate": "a\ud800b",
    "300 characters": "x" * 300,
    "4,000 characters": "../" * 1_333 + "x",
    "4,000 letters": "y" * 4_000,
    "nothing": "",
    "temporary": "c0.tmp",
}


def inside(directory: Path) -> tuple[LocalBackend, list[str]]:
    """Return a backend within a directory that holds other things, and what it holds."""
    (directory / "etc").mkdir()
    (directory / "etc" / "passwd").write_text("root")
    (directory / "x").write_text("x")
    return LocalBackend(directory / "deep" / "down" / "files"), tree(directory)


def assert_readable(backend: Any, path: str, text: str) -> None:
    """Fail unless the file is there, byte for byte, and its path is one that nobody stumbles over."""
    assert saved(backend, path) == as_bytes(text)
    assert re.fullmatch(r"/r/trunc/[A-Za-z0-9_-][A-Za-z0-9_.-]*", path), path
    assert len(path) < 200


@each_kind
@pytest.mark.parametrize("strange", HOSTILE)
def test_a_strange_id_stays_inside_and_its_output_is_readable(tmp_path: Path, strange: str, kind: str):
    backend, before = inside(tmp_path)
    reduction = ToolReduction(backend, root_dir="/r", max_length_for_trunc=LIMIT)
    seen = play(reduction, made(kind, LONG), [(HOSTILE[strange], "dump")])
    seen.unharmed()
    path = path_in(seen.kept[0])
    assert_readable(backend, path, LONG)
    assert set(tree(tmp_path)) - set(before) == {f"deep/down/files{path}"}
    assert (tmp_path / "etc" / "passwd").read_text() == "root"
    assert (seen.kept[0].count("<persisted-output>"), seen.kept[0].count("</persisted-output>")) == (1, 1)


@on_each_wire
@pytest.mark.parametrize("kind", ["invokable", "streamable"])
def test_all_strange_ids_of_one_run_have_files_of_their_own(tmp_path: Path, kind: str, wire: str):
    backend, before = inside(tmp_path)
    reduction = ToolReduction(backend, root_dir="/r", max_length_for_trunc=LIMIT)
    tools = [made(kind, f"{number:03d}" + LONG, name=f"t{number}") for number in range(len(HOSTILE))]
    rounds = [[(id_, f"t{number}")] for number, id_ in enumerate(HOSTILE.values()) if "\ud800" not in id_]
    seen = play(reduction, tools, *rounds, wire=wire, max_iterations=100)
    seen.unharmed()
    named = [path_in(text) for text in seen.kept]
    assert len({path.lower() for path in named}) == len(rounds)
    for ((_, name),), path in zip(rounds, named, strict=True):
        assert_readable(backend, path, f"{int(name[1:]):03d}" + LONG)
    assert set(tree(tmp_path)) - set(before) == {f"deep/down/files{path}" for path in named}


@each_kind
@pytest.mark.parametrize("safe", ["call_1", "c", "A-b_c.d", "x" * 64, "0", "toolu_01A09q90qw90lq917835lq9"])
def test_a_safe_id_stays_as_it_is(safe: str, kind: str):
    backend = MemoryBackend()
    seen = play(ToolReduction(backend, root_dir="/r", max_length_for_trunc=LIMIT), made(kind, LONG), [(safe, "dump")])
    seen.unharmed()
    assert path_in(seen.kept[0]) == f"/r/trunc/{safe}"
    assert saved(backend, f"/r/trunc/{safe}") == as_bytes(LONG)


@each_kind
@on_each_wire
def test_an_empty_id_gets_a_name(wire: str, kind: str):
    backend = MemoryBackend()
    reduction = ToolReduction(backend, root_dir="/r", max_length_for_trunc=LIMIT)
    seen = play(reduction, made(kind, LONG), [("", "dump")], wire=wire)
    seen.unharmed()
    path = path_in(seen.kept[0])
    assert re.fullmatch(r"/r/trunc/call-[0-9a-f]+", path)
    assert saved(backend, path) == as_bytes(LONG)


# Ids that are, or look like, one

TWINS = {
    "the same": ("a", "a"),
    "one by its cleaning the other": ("a/b", "a_b"),
    "both cleaned to one": ("a/b", "a?b"),
    "two that differ by case": ("Call_A", "call_a"),
    "two that differ by case and are unsafe": ("Call/A", "call/a"),
    "two that are empty": ("", ""),
    "two long ones with one beginning": ("x" * 300 + "1", "x" * 300 + "2"),
    "composed and not": ("é", "e\u0301"),
    "with a blank": ("a ", "a"),
    "dot and dots": (".", ".."),
}


@pytest.mark.parametrize("kinds", [(a, b) for a in KINDS for b in KINDS])
@pytest.mark.parametrize("twins", TWINS)
@pytest.mark.parametrize("together", [True, False])
def test_calls_with_ids_that_meet_have_files_of_their_own(twins: str, kinds: tuple[str, str], together: bool):
    backend = MemoryBackend()
    first, second = "1" + LONG, "2" + LONG
    tools = [made(kinds[0], first, name="one"), made(kinds[1], second, name="two")]
    a, b = TWINS[twins]
    rounds = [[(a, "one"), (b, "two")]] if together else [[(a, "one")], [(b, "two")]]
    seen = play(ToolReduction(backend, root_dir="/r", max_length_for_trunc=LIMIT), tools, *rounds)
    seen.unharmed()
    named = [path_in(text) for text in seen.kept]
    assert named[0].lower() != named[1].lower()
    for path, text in zip(named, (first, second), strict=True):
        assert_readable(backend, path, text)
    assert len(paths(backend)) == 2


@pytest.mark.parametrize("make", ["local", "sqlite", "shelf"])
@pytest.mark.parametrize("kind", ["invokable", "streamable"])
@on_each_wire
def test_parallel_calls_with_one_id_have_files_of_their_own(tmp_path: Path, wire: str, kind: str, make: str):
    async def use() -> None:
        shelf = Shelf()
        backend: Any = {
            "local": lambda: LocalBackend(tmp_path / "files"),
            "sqlite": lambda: SQLiteBackend(tmp_path / "files.db"),
            "shelf": lambda: shelf,
        }[make]()
        texts = [f"{number}" + LONG for number in range(10)]
        tools = [made(kind, text, name=f"t{number}") for number, text in enumerate(texts)]
        reduction = ToolReduction(backend, root_dir="/r", max_length_for_trunc=LIMIT)
        seen = await drive(reduction, tools, [("same", f"t{number}") for number in range(10)], wire=wire)
        seen.unharmed()
        named = [path_in(text) for text in seen.kept]
        assert len({path.lower() for path in named}) == 10
        if make == "shelf":
            assert {path: shelf.files[path] for path in named} == dict(zip(named, texts, strict=True))
        else:
            assert [await fetch(backend, path) for path in named] == [as_bytes(text) for text in texts]

    asyncio.run(use())


@on_each_wire
@pytest.mark.parametrize("kind", ["invokable", "streamable"])
def test_an_id_that_comes_again_in_twenty_rounds_has_twenty_files(kind: str, wire: str):
    async def use() -> None:
        backend = MemoryBackend()
        tools = [made(kind, f"{number:02d}" + LONG, name=f"t{number}") for number in range(20)]
        reduction = ToolReduction(backend, root_dir="/r", max_length_for_trunc=LIMIT)
        rounds = [[("same", f"t{number}")] for number in range(20)]
        seen = await drive(reduction, tools, *rounds, wire=wire, max_iterations=30)
        seen.unharmed()
        named = [path_in(text) for text in seen.kept]
        assert len(set(named)) == 20
        files = [(await fetch(backend, path)).decode() for path in named]
        assert files == [f"{number:02d}" + LONG for number in range(20)]

    asyncio.run(use())


# Runs and roots


@each_kind
def test_runs_on_one_backend_do_not_meet_each_other(kind: str):
    backend = MemoryBackend()
    reduction = ToolReduction(backend, max_length_for_trunc=LIMIT)
    named = [path_in(play(reduction, made(kind, f"{number}" + LONG)).text) for number in range(3)]
    assert [saved(backend, path) for path in named] == [as_bytes(f"{number}" + LONG) for number in range(3)]
    assert len(set(named)) == 3


@each_kind
@pytest.mark.parametrize("make", ["memory", "local", "sqlite"])
@pytest.mark.parametrize("shared", [True, False])
def test_runs_with_one_root_do_not_overwrite_each_other(tmp_path: Path, shared: bool, make: str, kind: str):
    backend: Any = {
        "memory": MemoryBackend,
        "local": lambda: LocalBackend(tmp_path / "files"),
        "sqlite": lambda: SQLiteBackend(tmp_path / "files.db"),
    }[make]()
    one, two, three = (ToolReduction(backend, root_dir="/r", max_length_for_trunc=LIMIT) for _ in range(3))
    reductions = [one] * 3 if shared else [one, two, three]
    named = [path_in(play(each, made(kind, f"{n}" + LONG)).text) for n, each in enumerate(reductions)]
    assert [saved(backend, path) for path in named] == [as_bytes(f"{number}" + LONG) for number in range(3)]
    assert len(paths(backend)) == 3


@each_kind
@pytest.mark.parametrize("shared", [True, False])
@on_each_wire
def test_runs_that_go_on_at_once_with_one_root_do_not_overwrite_each_other(wire: str, shared: bool, kind: str):
    async def use() -> None:
        backend = MemoryBackend()
        reductions = [ToolReduction(backend, root_dir="/r", max_length_for_trunc=LIMIT) for _ in range(8)]
        dumps = [made(kind, f"{number}", *[LONG[at : at + 50] for at in range(0, 2_000, 50)]) for number in range(8)]
        seen = await asyncio.gather(
            *(
                drive(reductions[0 if shared else number], [dump], [("c0", "dump")], wire=wire)
                for number, dump in enumerate(dumps)
            )
        )
        for number, each in enumerate(seen):
            assert await fetch(backend, path_in(each.text)) == as_bytes(f"{number}" + LONG)
        assert len(await backend.paths()) == 8

    asyncio.run(use())


@each_kind
@pytest.mark.parametrize("checkpoint", ["../../etc", "a/b", "x" * 400, "line\nbreak", "..", "调用"])
def test_a_strange_checkpoint_id_stays_inside_and_the_output_is_readable(tmp_path: Path, checkpoint: str, kind: str):
    backend, before = inside(tmp_path)
    reduction = ToolReduction(backend, max_length_for_trunc=LIMIT)
    seen = play(reduction, made(kind, LONG), choices={"checkpoint_id": checkpoint}, checkpoint_store=MemoryStore())
    path = path_in(seen.text)
    assert saved(backend, path) == as_bytes(LONG)
    assert set(tree(tmp_path)) - set(before) == {f"deep/down/files{path}"}


@each_kind
def test_a_path_maker_that_gives_one_path_twice_overwrites_nothing_and_loses_nothing(kind: str):
    backend = MemoryBackend()
    reduction = ToolReduction(
        backend, max_length_for_trunc=LIMIT, gen_trunc_offload_file_path=lambda _: "/mine", on_backend_error="continue"
    )
    tools = [made(kind, f"{number}" + LONG, name=f"t{number}") for number in range(2)]
    seen = play(reduction, tools, [("a", "t0")], [("b", "t1")])
    assert saved(backend, "/mine") == as_bytes("0" + LONG)
    second = seen.kept[1]
    if second.startswith("<persisted-output>") or "stream" in kind:
        assert "Failed to save" in second or saved(backend, path_in(second)) == as_bytes("1" + LONG)
        assert "saved to: /mine." not in second
        assert "saved to: /mine\n" not in second
    else:
        assert "1" + LONG in second


@each_kind
@pytest.mark.parametrize("path", ["../out", "/etc/passwd", "a/../../x"])
def test_a_path_maker_cannot_leave_the_directory(tmp_path: Path, path: str, kind: str):
    backend, before = inside(tmp_path)
    reduction = ToolReduction(
        backend, max_length_for_trunc=LIMIT, gen_trunc_offload_file_path=lambda _: path, on_backend_error="continue"
    )
    seen = play(reduction, made(kind, LONG))
    seen.unharmed()
    if "stream" not in kind and path != "/etc/passwd":  # that is a path like any other, below the directory
        assert seen.text == LONG
    assert [name for name in set(tree(tmp_path)) - set(before) if not name.startswith("deep/down/files/")] == []
    assert (tmp_path / "etc" / "passwd").read_text() == "root"
