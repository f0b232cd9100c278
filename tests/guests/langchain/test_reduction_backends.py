"""Every place that a LangChain program keeps things in can keep tool output, whichever way the agent is run."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from deepagents import create_deep_agent
from deepagents.backends import CompositeBackend, FilesystemBackend, StateBackend, StoreBackend
from deepagents.backends.protocol import BackendProtocol, FileDownloadResponse, ReadResult, WriteResult
from langchain_core.stores import BaseStore, InMemoryByteStore
from langchain_core.stores import InMemoryStore as InMemoryValues
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from suture import ConfigError, OffloadError
from suture.integrations.langchain import ToolReductionMiddleware
from suture.integrations.langchain.backends import Backends
from suture.middleware import ToolReductionConfig
from suture.reduction import Settings
from suture.stores import LocalBackend, MemoryBackend, PathNotFoundError, PathTakenError, SQLiteBackend, StoreError
from tests.guests.langchain.recording import RecordingModel, asks, call
from tests.guests.langchain.reducing import (
    WAYS,
    agent,
    config,
    invoke,
    log,
    log_of,
    path_in,
    reads,
    reads_back,
    results,
    run,
    say,
    text_of,
)


class Values(BaseStore[str, Any]):
    """A key-value store that takes values of one type only."""

    def __init__(self, kind: type) -> None:
        self.kind = kind
        self.values: dict[str, Any] = {}

    def mget(self, keys: Sequence[str]) -> list[Any]:
        return [self.values.get(key) for key in keys]

    def mset(self, key_value_pairs: Sequence[tuple[str, Any]]) -> None:
        for key, value in key_value_pairs:
            if not isinstance(value, self.kind):
                raise TypeError(f"expected {self.kind.__name__}")
            self.values[key] = value

    def mdelete(self, keys: Sequence[str]) -> None:
        for key in keys:
            self.values.pop(key, None)

    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        yield from self.values


class Garbled(Values):
    """A key-value store that gives back something else than it was given."""

    def mget(self, keys: Sequence[str]) -> list[Any]:
        return [None if value is None else {"not": "implemented"} for value in super().mget(keys)]


class LaterFiles(BackendProtocol):
    """A backend in the form of deepagents' that can be awaited only."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}

    async def awrite(self, file_path: str, content: str) -> WriteResult:
        await asyncio.sleep(0)
        self.files[file_path] = content
        return WriteResult(path=file_path)

    async def adownload_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        await asyncio.sleep(0)
        return [
            FileDownloadResponse(path=path, content=self.files[path].encode())
            if path in self.files
            else FileDownloadResponse(path=path, error="file_not_found")
            for path in paths
        ]


READABLE = {
    "suture-memory": lambda _: MemoryBackend(),
    "suture-local": lambda folder: LocalBackend(folder / "outputs"),
    "suture-sqlite": lambda folder: SQLiteBackend(folder / "outputs.db"),
    "langgraph-store": lambda _: InMemoryStore(),
    "langchain-bytes": lambda _: InMemoryByteStore(),
    "langchain-anything": lambda _: InMemoryValues(),
    "deepagents-filesystem": lambda folder: FilesystemBackend(root_dir=str(folder), virtual_mode=True),
    "deepagents-store": lambda _: StoreBackend(store=InMemoryStore(), namespace=lambda _: ("files",)),
    "deepagents-async": lambda _: LaterFiles(),
    "factory": lambda _: maker_of(MemoryBackend()),
}


def maker_of(backend: Any) -> Any:
    return lambda _: backend


async def pieces(text: str) -> AsyncIterator[bytes]:
    for line in text.splitlines(keepends=True):
        yield line.encode()


@pytest.mark.parametrize("kind", READABLE)
@pytest.mark.parametrize("way", WAYS)
def test_output_is_saved_never_overwritten_and_read_back(way: str, kind: str, tmp_path: Path):
    backend = READABLE[kind](tmp_path)
    turns = [
        asks(call("same", "log", lines=400, day=1), call("same", "log", lines=400, day=2)),
        asks(call("same", "log", lines=400, day=3)),
        reads_back(offset=400),
    ]
    made, _ = agent(turns, [ToolReductionMiddleware(backend, max_length_for_trunc=1_000)])
    *notices, read = results(invoke(way, made, say("go")))
    assert len({path_in(notice) for notice in notices}) == 3
    assert text_of(read).startswith("   400\t00400 day 1")
    if hasattr(backend, "close"):
        backend.close()


@pytest.mark.parametrize("kind", [kind for kind in READABLE if kind != "factory"])
@pytest.mark.parametrize("waits", [True, False])
def test_what_is_written_is_there_and_a_path_that_is_taken_is_refused(kind: str, waits: bool, tmp_path: Path):
    backend = READABLE[kind](tmp_path)

    async def use() -> None:
        port = Backends(Settings(), backend).in_run(None, waits=waits)("log")
        await port.write("/suture/t.1/trunc/a", "höher\n" * 9)
        await port.write("/suture/t.1/trunc/a", "höher\n" * 9)
        with pytest.raises(PathTakenError):
            await port.write("/suture/t.1/trunc/a", "something else")
        others = Backends(Settings(), backend).in_run(None, waits=waits)("log")
        with pytest.raises(PathTakenError):
            await others.write("/suture/t.1/trunc/a", "something else")
        with pytest.raises(PathTakenError):  # the same would be another's
            await port.write_stream("/suture/t.1/trunc/a", pieces("höher\n" * 9))
        assert b"".join([chunk async for chunk in port.read("/suture/t.1/trunc/a")]).decode() == "höher\n" * 9
        assert await port.size("/suture/t.1/trunc/a") == 63
        with pytest.raises(PathNotFoundError):
            await port.size("/suture/t.1/trunc/b")
        if kind != "deepagents-async":
            await port.delete("/suture/t.1/trunc/a")
            await port.write("/suture/t.1/trunc/a", "something else")

    asyncio.run(use())
    if hasattr(backend, "close"):
        backend.close()


def test_a_store_of_langgraph_has_each_thread_in_a_namespace_of_its_own():
    store = InMemoryStore()
    middleware = ToolReductionMiddleware("store", max_length_for_trunc=100)
    for thread in ("thread-1", "thread.2"):
        made, _ = agent([reads(100)], [middleware], store=store)
        invoke("sync", made, say("go"), thread)
    assert sorted(store.list_namespaces()) == [("suture", "thread%2E2"), ("suture", "thread-1")]
    found = store.get(("suture", "thread-1"), "trunc/call_1")
    assert found is not None
    assert found.value == {"content": log_of(100)}


@pytest.mark.parametrize("way", WAYS)
def test_an_agent_without_a_store_is_told_so_before_the_model_is_asked(way):
    made, model = agent([reads(100)], [ToolReductionMiddleware("store")])
    with pytest.raises(ConfigError, match=r"the agent's store, and it has none; make the agent with store=…"):
        invoke(way, made, say("go"))
    assert model.sent == []


class Plain:
    """The least that keeps output."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}

    def write(self, path: str, content: str) -> None:
        assert path not in self.files
        self.files[path] = content


class Later(Plain):
    """The same, to be awaited."""

    async def write(self, path: str, content: str) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        await asyncio.sleep(0)
        super().write(path, content)


@pytest.mark.parametrize("kind", [Plain, Later])
@pytest.mark.parametrize("way", WAYS)
class TestWhatCanOnlyWrite:
    def test_it_keeps_output_of_calls_with_one_id_apart(self, way, kind):
        backend = kind()
        turn = asks(call("same", "log", lines=100, day=1), call("same", "log", lines=100, day=2))
        run(way, [turn], backend, max_length_for_trunc=100)
        assert sorted(backend.files.values()) == [log_of(100, 1), log_of(100, 2)]

    def test_the_model_gets_no_tool_that_could_not_read_it(self, way, kind):
        made, model = agent([], [ToolReductionMiddleware(kind())])
        invoke(way, made, say("go"))
        assert model.tool_names == ["log"]


@pytest.mark.parametrize("way", WAYS)
class TestDeepAgents:
    @pytest.mark.parametrize("kind", ["state", "composite", "factory"])
    def test_the_agents_own_read_file_reads_what_was_saved_in_its_backend(self, way, kind, tmp_path):
        backend: Any = StateBackend()
        if kind == "composite":
            disk = FilesystemBackend(root_dir=str(tmp_path), virtual_mode=True)
            backend = CompositeBackend(default=StateBackend(), routes={"/suture/": disk})
        given = (lambda _: backend) if kind == "factory" else backend
        model = RecordingModel(replies=[reads(3_000), reads_back(key="file_path", offset=2_000, limit=2)])
        middleware = ToolReductionMiddleware(given, add_reading_tools=False)
        made = create_deep_agent(model, [log], backend=backend, middleware=[middleware], checkpointer=InMemorySaver())
        _, read = results(invoke(way, made, say("go")))
        assert "02001 day 1: ship 61 passed\n02002 day 1" in text_of(read)

    def test_output_that_is_cleared_goes_to_the_state_with_the_messages_that_name_it(self, way):
        model = RecordingModel(replies=[reads(100, 1), reads(100, 2), reads_back(key="file_path", limit=1)])
        settings: dict[str, Any] = {"max_tokens_for_clear": 4, "token_counter": lambda messages, _: len(messages)}
        made = create_deep_agent(
            model,
            [log],
            middleware=[ToolReductionMiddleware(StateBackend(), **settings)],
            checkpointer=InMemorySaver(),
        )
        messages = results(invoke(way, made, say("go")))
        assert path_in(messages[0]) == "/suture/thread-1/clear/call_1"
        assert "00001 day 1" in text_of(messages[-1])
        assert set(made.get_state(config()).values["files"]) >= {"/suture/thread-1/clear/call_1"}

    def test_parallel_calls_with_one_id_do_not_overwrite_each_other_in_the_state(self, way):
        turn = asks(call("same", "log", lines=3_000, day=1), call("same", "log", lines=3_000, day=2))
        model = RecordingModel(replies=[turn])
        made = create_deep_agent(
            model, [log], middleware=[ToolReductionMiddleware(StateBackend())], checkpointer=InMemorySaver()
        )
        invoke(way, made, say("go"))
        files = made.get_state(config()).values["files"]
        assert sorted(file["content"] for file in files.values()) == [log_of(3_000, 1), log_of(3_000, 2)]

    def test_an_error_that_the_backend_only_returns_is_raised(self, way):
        class Refusing(LaterFiles):
            async def awrite(self, file_path: str, content: str) -> WriteResult:
                await asyncio.sleep(0)
                return WriteResult(error="permission denied")

        with pytest.raises(OffloadError, match="permission denied"):
            run(way, [reads(100)], Refusing(), max_length_for_trunc=100)

    def test_a_file_that_the_caller_would_have_to_keep_is_not_saved(self, way):
        class Older:
            def write(self, path: str, content: str) -> Any:
                return SimpleNamespace(error=None, files_update={path: content})

        with pytest.raises(OffloadError, match="use a newer one"):
            run(way, [reads(100)], Older(), max_length_for_trunc=100)

    def test_a_backend_that_gives_lines_only_is_read_as_well(self, way):
        class Lines(BackendProtocol):
            def __init__(self) -> None:
                self.files: dict[str, str] = {}

            def write(self, file_path: str, content: str) -> WriteResult:
                self.files[file_path] = content
                return WriteResult(path=file_path)

            def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
                if file_path not in self.files:
                    return ReadResult(error=f"File '{file_path}' not found")
                lines = self.files[file_path].splitlines(keepends=True)[offset : offset + limit]
                return ReadResult(file_data={"content": "".join(lines), "encoding": "utf-8"})

        backend = Lines()
        turns = [asks(call("same", "log", lines=100, day=1)), asks(call("same", "log", lines=100, day=2))]
        run(way, turns, backend, max_length_for_trunc=100)
        again = [asks(call("same", "log", lines=100, day=3)), reads_back(offset=100)]
        *_, read = results(run(way, again, backend, max_length_for_trunc=100))
        assert len(backend.files) == 3
        assert "00100 day 3" in text_of(read)


def test_a_store_that_gives_back_something_else_loses_nothing():
    with pytest.raises(OffloadError, match="does not give back the bytes"):
        run("sync", [reads(100)], Garbled(object), max_length_for_trunc=100)


def test_how_long_a_store_keeps_things_is_its_own_matter():
    port = Backends(Settings(), InMemoryStore()).in_run(None, waits=False)("log")
    with pytest.raises(StoreError, match="expire as the store says"):
        asyncio.run(port.expire(1))


class TestSettings:
    def test_no_backend_is_refused_unless_nothing_is_truncated(self):
        with pytest.raises(ConfigError, match="backend must be set when not skipping truncation"):
            ToolReductionMiddleware()
        assert ToolReductionMiddleware(skip_truncation=True).backend is None

    @pytest.mark.parametrize(
        ("settings", "problem"),
        [
            ({"backend": 7}, r"a backend has write\(path, content\), or is a store; int is neither"),
            ({"backend": InMemoryStore}, r"make one: InMemoryStore\(…\)"),
            ({"backend": MemoryBackend(), "on_backend_error": "ignore"}, "known: raise, continue"),
            ({"backend": MemoryBackend(), "max_length_for_read": 0}, "max_length_for_read must be more than 0"),
            ({"backend": MemoryBackend(), "add_reading_tools": "yes"}, "add_reading_tools must be True or False"),
            ({"backend": MemoryBackend(), "max_tokens_for_clear": -1}, "max_tokens_for_clear must be an integer"),
            (
                {"skip_truncation": True, "tool_config": {"a": ToolReductionConfig(skip_truncation=False)}},
                r"tool_config\['a'\]: backend must be set",
            ),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, settings, problem):
        with pytest.raises(ConfigError, match=problem):
            ToolReductionMiddleware(**settings)

    def test_every_setting_has_its_name_and_default(self):
        middleware = ToolReductionMiddleware(MemoryBackend())
        assert {name: getattr(middleware, name) for name in vars(Settings())} == vars(Settings())
        assert (middleware.max_length_for_read, middleware.add_reading_tools) == (20_000, True)
        assert (middleware.on_backend_error, middleware.name) == ("raise", "ToolReductionMiddleware")

    def test_nothing_given_means_the_default(self):
        middleware = ToolReductionMiddleware(MemoryBackend(), add_reading_tools=None, max_tokens_for_clear=None)  # pyright: ignore[reportArgumentType]
        assert (middleware.add_reading_tools, middleware.max_tokens_for_clear) == (True, 160_000)

    @pytest.mark.parametrize("root", ["/data", "/data/"])
    def test_below_a_root_of_ones_own_each_thread_has_its_place(self, root):
        backend = MemoryBackend()
        (result,) = results(run("sync", [reads(100)], backend, root_dir=root, max_length_for_trunc=100))
        assert path_in(result) == "/data/thread-1/trunc/call_1"
