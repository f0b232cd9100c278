"""Output that is too long, in real agents: what the model is sent, what is kept, and what can be read again.

V1 to V11 are the failures that the research found in deepagents' eviction; V10 is described nowhere. In a deep agent
that eviction is there too, outside of ours: it takes what is longer than 80,000 characters, which ours never lets
through unless it cannot be saved.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import pytest
from deepagents.backends import BackendProtocol, FilesystemBackend, StateBackend
from langchain.agents.middleware import AgentMiddleware, ToolErrorMiddleware
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langchain_core.stores import InMemoryByteStore
from langchain_core.stores import InMemoryStore as PlainStore
from langchain_core.tools import BaseTool, InjectedToolCallId, tool
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from suture import OffloadError
from suture.integrations.langchain import PatchToolCallsMiddleware, ToolReductionMiddleware
from suture.stores import LocalBackend, MemoryBackend
from tests.guests.langchain.judges import message_faults
from tests.guests.langchain.recording import asks, call
from tests.guests.langchain.talks import (
    Shop,
    Talk,
    WatchedMemory,
    each_builder,
    each_builder_and_manner,
    each_manner,
)

PAID = "paid 1 euro"
NOTICE = 400
"""More than a notice adds to what it shows."""


class Writer:
    """The least that a backend may be."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}

    def write(self, path: str, content: str) -> None:
        assert path not in self.files, f"{path} was written twice"
        self.files[path] = content


class FullDisk(Writer):
    """Takes nothing while it is full."""

    full = True

    def write(self, path: str, content: str) -> None:
        if self.full:
            raise OSError("no space left on device")
        super().write(path, content)


BACKENDS: dict[str, Callable[[Path], Any]] = {
    "store": lambda _: "store",
    "memory": lambda _: MemoryBackend(),
    "local": LocalBackend,
    "langgraph store": lambda _: InMemoryStore(),
    "langchain store": lambda _: PlainStore(),
    "langchain bytes": lambda _: InMemoryByteStore(),
    "deepagents files": lambda folder: FilesystemBackend(root_dir=folder, virtual_mode=True),
}
each_backend = pytest.mark.parametrize("backend", BACKENDS)


def _text(tag: str, length: int) -> str:
    """Return so many characters in numbered lines, all of which name the tag."""
    lines = (f"line {number} of {tag}, where ships pass the harbour\n" for number in range(1, length // 20))
    return "".join(lines)[:length]


class Source:
    """A tool `fetch` that gives the text of a key, and counts."""

    def __init__(self, **texts: str) -> None:
        self.texts = texts
        self.fetched: list[str] = []

    def tools(self) -> list[BaseTool]:
        @tool
        def fetch(key: str) -> str:
            """Fetch."""
            self.fetched.append(key)
            return self.texts[key]

        return [fetch]


def _fetch(identity: str, key: str) -> dict[str, Any]:
    return call(identity, "fetch", key=key)


def _talk(
    builder: str, source: Source, turns: Sequence[Any], *middleware: AgentMiddleware[Any, Any, Any], **options: Any
) -> Talk:
    return Talk(builder, turns, tools=source.tools(), middleware=middleware, store=InMemoryStore(), **options)


def _own(builder: str, backend: Any) -> dict[str, Any]:
    """Return how a deep agent is told that a backend of deepagents' is its own, too."""
    return {"backend": backend} if builder == "create_deep_agent" and isinstance(backend, BackendProtocol) else {}


def _results(messages: Sequence[BaseMessage]) -> list[ToolMessage]:
    return [each for each in messages if isinstance(each, ToolMessage)]


def _path(message: ToolMessage) -> str:
    found = re.search(r"saved to: (\S+)", message.text)
    assert found is not None, message.text[:200]
    return found[1]


def _read(backend: Any, path: str) -> str:
    """Return what one of our own backends keeps at a path."""

    async def read() -> bytes:
        return b"".join([piece async for piece in backend.read(path)])

    return asyncio.run(read()).decode()


def _window(talk: Talk, path: str, line: int) -> str:
    """Have the model read some lines with the `read_file` that it has; returns what it was given."""
    reader = next(each for each in talk.model.tools if each.name == "read_file")
    where = next(each for each in reader.args if "path" in each)
    talk.model.replies[:] = [asks(call("reading", "read_file", **{where: path, "offset": line - 5, "limit": 10}))]
    talk.say("Read it.")
    answer = next(each for each in reversed(_results(talk.received)) if each.tool_call_id == "reading")
    return answer.text


# V1: one result is too long


@each_builder_and_manner
def test_v1_a_long_result_is_shortened_and_saved_whole(builder: str, manner: str):
    backend, source = MemoryBackend(), Source(log=_text("log", 100_000))
    talk = _talk(builder, source, [asks(_fetch("a", "log"))], ToolReductionMiddleware(backend), manner=manner)
    talk.say("Fetch.")
    [answer] = _results(talk.received)
    preview = 500 if "deep" in builder else 50_000
    assert preview < len(answer.text) <= preview + NOTICE
    assert source.texts["log"][: preview // 2 - 1] in answer.text
    assert source.texts["log"][1 - preview // 2 :] in answer.text
    assert (answer.tool_call_id, answer.name, answer.status) == ("a", "fetch", "success")
    assert _read(backend, _path(answer)) == source.texts["log"]
    assert [each.text for each in _results(talk.kept)] == [answer.text]
    assert not [path for path in talk.agent.get_state(talk.config).values.get("files", {}) if "large_tool" in path]


@each_builder
def test_v1_what_is_exactly_as_long_as_the_limit_stays(builder: str):
    backend, source = MemoryBackend(), Source(fits=_text("fits", 50_000), over=_text("over", 50_500))
    turn = asks(_fetch("a", "fits"), _fetch("b", "over"))
    talk = _talk(builder, source, [turn], ToolReductionMiddleware(backend))
    talk.say("Fetch.")
    fits, over = _results(talk.received)
    assert fits.text == source.texts["fits"]
    assert len(over.text) < 50_500
    assert len(asyncio.run(backend.paths())) == 1


@each_builder
def test_v1_a_shortened_result_is_not_shortened_again(builder: str):
    backend, source = MemoryBackend(), Source(log=_text("log", 100_000))
    talk = _talk(builder, source, [asks(_fetch("a", "log"))], ToolReductionMiddleware(backend))
    talk.say("Fetch.")
    [first] = _results(talk.received)
    for text in ("And now?", "Anything else?"):
        talk.say(text)
    assert [each.text for each in _results(talk.received)] == [first.text]
    assert len(asyncio.run(backend.paths())) == 1


@each_manner
@each_backend
@each_builder
def test_v1_the_model_reads_what_was_saved_with_the_tool_that_the_notice_names(
    builder: str, backend: str, manner: str, tmp_path: Path
):
    given, source = BACKENDS[backend](tmp_path), Source(log=_text("log", 100_000))
    middleware = ToolReductionMiddleware(given, max_length_for_trunc=2_000)
    talk = _talk(builder, source, [asks(_fetch("a", "log"))], middleware, manner=manner, **_own(builder, given))
    talk.say("Fetch.")
    [answer] = _results(talk.received)
    assert len(answer.text) <= 2_000 + NOTICE
    assert "line 1000 of log" not in answer.text
    assert "read_file" in answer.text
    assert talk.model.tool_names.count("read_file") == 1
    window = _window(talk, _path(answer), 1_000)
    assert "line 1000 of log, where ships pass the harbour" in window
    assert "line 1020 of log" not in window


@each_builder
def test_v1_a_backend_that_can_only_write_is_enough(builder: str):
    backend, source = Writer(), Source(log=_text("log", 100_000))
    talk = _talk(builder, source, [asks(_fetch("a", "log"))], ToolReductionMiddleware(backend))
    talk.say("Fetch.")
    assert backend.files == {_path(_results(talk.received)[0]): source.texts["log"]}


@each_manner
def test_v1_the_files_of_a_deep_agents_own_state_can_be_read_with_its_own_tool(manner: str):
    source = Source(log=_text("log", 100_000))
    middleware = ToolReductionMiddleware(StateBackend(), max_length_for_trunc=2_000)
    talk = _talk("create_deep_agent", source, [asks(_fetch("a", "log"))], middleware, manner=manner)
    talk.say("Fetch.")
    [answer] = _results(talk.received)
    assert len(answer.text) <= 2_000 + NOTICE
    assert "line 1000 of log" in _window(talk, _path(answer), 1_000)


def test_v1_the_notice_of_a_deep_agent_whose_own_files_are_elsewhere_leads_somewhere(tmp_path: Path):
    source = Source(log=_text("log", 100_000))
    middleware = ToolReductionMiddleware(FilesystemBackend(root_dir=tmp_path, virtual_mode=True))
    talk = _talk("create_deep_agent", source, [asks(_fetch("a", "log"))], middleware)
    talk.say("Fetch.")
    [answer] = _results(talk.received)
    assert "line 1000 of log" in _window(talk, _path(answer), 1_000)


@each_builder
def test_v1_what_a_tool_gives_beside_its_text_stays(builder: str):
    text, picture = _text("log", 100_000), {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}

    @tool
    def paint() -> list[Any]:
        """Paint."""
        return [{"type": "text", "text": text}, picture]

    @tool(response_format="content_and_artifact")
    def measure() -> tuple[str, dict[str, int]]:
        """Measure."""
        return text, {"width": 3}

    @tool
    def command(tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Command."""
        return Command(update={"messages": [ToolMessage(text, tool_call_id=tool_call_id, name="command")]})

    turn = asks(call("a", "paint"), call("b", "measure"), call("c", "command"))
    middleware = ToolReductionMiddleware(MemoryBackend(), max_length_for_trunc=2_000)
    talk = Talk(builder, [turn], tools=[paint, measure, command], middleware=[middleware])
    talk.say("Go.")
    painted, measured, commanded = _results(talk.received)
    assert all(len(each.text) <= 2_000 + NOTICE for each in (painted, measured, commanded))
    assert painted.content[-1] == picture
    assert measured.artifact == {"width": 3}
    assert "line 1000 of log" in _window(talk, _path(commanded), 1_000)


@pytest.mark.parametrize("way", ["input", "state"])
@each_builder_and_manner
def test_v1_a_long_result_that_came_another_way_is_shortened_for_good(builder: str, manner: str, way: str):
    text = _text("log", 100_000)
    talk = _talk(builder, Source(), [], ToolReductionMiddleware(MemoryBackend()), manner=manner)
    history = [HumanMessage("Pay."), asks("a"), ToolMessage(text, tool_call_id="a", name="pay")]
    if way == "state":
        talk.say("Hello.")
        talk.put(*history)
        history = []
    talk.say(*history, "And now?")
    [answer] = _results(talk.received)
    assert len(answer.text) <= 50_000 + NOTICE
    assert [each.text for each in _results(talk.kept)] == [answer.text]
    assert "line 1000 of log" in _window(talk, _path(answer), 1_000)


@pytest.mark.parametrize("place", ["first", "last"])
@each_builder
def test_v1_a_long_result_that_finished_before_a_sibling_raised_can_be_read(builder: str, place: str):
    class BigShop(Shop):
        def _pay(self) -> str:
            return super()._pay() + _text("log", 100_000)

    saver = WatchedMemory()
    middleware = [PatchToolCallsMiddleware(), ToolReductionMiddleware(MemoryBackend())]
    shop = BigShop(saver, RuntimeError("no ship"))
    turn = asks(call("a", "pay"), call("b", "ship"))
    order = middleware if place == "first" else middleware[::-1]
    talk = Talk(builder, [turn], tools=shop.sync_tools(), middleware=order, saver=saver)
    with pytest.raises(RuntimeError, match="no ship"):
        talk.say("Pay and ship.")
    talk.say("And now?")
    paid, _ = _results(talk.received)
    assert PAID in paid.text
    assert len(paid.text) <= 50_000 + NOTICE
    assert "line 1000 of log" in _window(talk, _path(paid), 1_000)


@each_builder
def test_v1_another_thread_cannot_read_what_was_saved(builder: str):
    talk, _ = _fetched(builder, MemoryBackend(), ["a"])
    path = _path(_results(talk.kept)[0])
    assert "line 60 of log0" in _window(talk, path, 60)
    talk.config = {"configurable": {"thread_id": "another"}}
    assert "line 60 of log0" not in _window(talk, path, 60)


def test_v1_a_deep_agent_still_reads_its_own_files():
    source = Source(log=_text("log", 100_000))
    note = call("w", "write_file", file_path="/note.txt", content="\n".join(f"word {each}" for each in range(1, 21)))
    talk = _talk("create_deep_agent", source, [asks(_fetch("a", "log")), asks(note)], ToolReductionMiddleware(Writer()))
    talk.say("Fetch.")
    assert "word 12" in _window(talk, "/note.txt", 12)


# V2 and V3: each result is short enough, all of a turn are not


@each_builder_and_manner
def test_v2_a_result_that_eviction_would_leave_is_shortened(builder: str, manner: str):
    backend, source = MemoryBackend(), Source(log=_text("log", 79_000))
    talk = _talk(builder, source, [asks(_fetch("a", "log"))], ToolReductionMiddleware(backend), manner=manner)
    talk.say("Fetch.")
    [answer] = _results(talk.received)
    assert len(answer.text) <= 50_000 + NOTICE
    assert _read(backend, _path(answer)) == source.texts["log"]


@pytest.mark.parametrize("length", [49_000, 79_000])
@each_builder_and_manner
def test_v3_ten_parallel_results_share_the_budget_of_their_turn(builder: str, manner: str, length: int):
    source = Source(**{f"log{number}": _text(f"log{number}", length) for number in range(10)})
    backend = MemoryBackend()
    turn = asks(*[_fetch(f"id{number}", f"log{number}") for number in range(10)])
    talk = _talk(builder, source, [turn], ToolReductionMiddleware(backend), manner=manner)
    talk.say("Fetch.")
    answers = _results(talk.received)
    assert sum(len(each.text) for each in answers) <= 200_000 + 10 * NOTICE
    assert message_faults(talk.received) == []
    for number, answer in enumerate(answers):
        assert answer.tool_call_id == f"id{number}"
        assert f"line 1 of log{number}," in answer.text
        assert _read(backend, _path(answer)) == source.texts[f"log{number}"]
    assert [each.text for each in _results(talk.kept)] == [each.text for each in answers]


@each_builder
def test_v3_a_turn_within_its_budget_is_left_alone(builder: str):
    source = Source(**{f"log{number}": _text(f"log{number}", 49_000) for number in range(4)})
    turn = asks(*[_fetch(f"id{number}", f"log{number}") for number in range(4)])
    talk = _talk(builder, source, [turn], ToolReductionMiddleware(Writer()))
    talk.say("Fetch.")
    assert [each.text for each in _results(talk.received)] == list(source.texts.values())


# V4: characters that are more than a quarter of a token


@each_builder_and_manner
def test_v4_long_chinese_output_is_shortened_and_saved_whole(builder: str, manner: str):
    text = "".join(f"第{number}艘船驶过港口。" for number in range(20_000))[:79_000]
    backend, source = MemoryBackend(), Source(log=text)
    talk = _talk(builder, source, [asks(_fetch("a", "log"))], ToolReductionMiddleware(backend), manner=manner)
    talk.say("Fetch.")
    [answer] = _results(talk.received)
    assert len(answer.text) <= 50_000 + NOTICE
    assert _read(backend, _path(answer)) == text


# V5: an id is used again. V6: two ids look alike. V7: an id is very long


def _fetched(builder: str, backend: Any, *turns: Sequence[str], **settings: Any) -> tuple[Talk, Source]:
    """Run an agent whose calls, turn by turn, have these ids; the text that each fetches names its number."""
    keys = [f"log{number}" for number, _ in enumerate(identity for turn in turns for identity in turn)]
    source = Source(**{key: _text(key, 5_000) for key in keys})
    left = iter(keys)
    replies = [asks(*[_fetch(identity, next(left)) for identity in turn]) for turn in turns]
    middleware = ToolReductionMiddleware(backend, **{"max_length_for_trunc": 1_000, **settings})
    talk = _talk(builder, source, replies, middleware, **_own(builder, backend))
    talk.say("Fetch.")
    return talk, source


def _check_files(talk: Talk, source: Source, read: Callable[[str], str]) -> None:
    """Check that each notice leads to what its own call gave."""
    answers = _results(talk.kept)
    paths = [_path(each) for each in answers]
    assert len(set(paths)) == len(paths) == len(source.texts)
    for answer, path, (key, text) in zip(answers, paths, source.texts.items(), strict=True):
        assert f"line 1 of {key}," in answer.text
        assert read(path) == text


@each_builder
def test_v5_an_id_that_is_used_again_overwrites_nothing(builder: str):
    backend = MemoryBackend()
    talk, source = _fetched(builder, backend, ["a"], ["a"], ["a"])
    _check_files(talk, source, lambda path: _read(backend, path))


@each_builder
def test_v5_an_id_that_the_next_run_uses_again_overwrites_nothing(builder: str):
    backend, source = MemoryBackend(), Source(log0=_text("log0", 5_000), log1=_text("log1", 5_000))
    talk = _talk(
        builder, source, [asks(_fetch("a", "log0"))], ToolReductionMiddleware(backend, max_length_for_trunc=1_000)
    )
    talk.say("Fetch.")
    talk.model.replies[:] = [asks(_fetch("a", "log1"))]
    talk.say("Fetch again.")
    _check_files(talk, source, lambda path: _read(backend, path))


@each_builder
def test_v5_an_id_that_another_thread_uses_overwrites_nothing(builder: str):
    backend, source = MemoryBackend(), Source(log0=_text("log0", 5_000), log1=_text("log1", 5_000))
    middleware = ToolReductionMiddleware(backend, max_length_for_trunc=1_000, root_dir="/shared")
    talk = _talk(builder, source, [asks(_fetch("a", "log0"))], middleware)
    talk.say("Fetch.")
    [first] = _results(talk.kept)
    talk.config = {"configurable": {"thread_id": "another"}}
    talk.model.replies[:] = [asks(_fetch("a", "log1"))]
    talk.say("Fetch again.")
    [second] = _results(talk.kept)
    assert _read(backend, _path(first)) == source.texts["log0"]
    assert _read(backend, _path(second)) == source.texts["log1"]


@each_builder
def test_v5_one_id_twice_in_a_turn_overwrites_nothing(builder: str):
    backend = MemoryBackend()
    talk, source = _fetched(builder, backend, ["a", "a"])
    _check_files(talk, source, lambda path: _read(backend, path))


@each_backend
@each_builder
def test_v5_the_model_reads_the_first_of_two_results_of_one_id(builder: str, backend: str, tmp_path: Path):
    talk, _ = _fetched(builder, BACKENDS[backend](tmp_path), ["a"], ["a"])
    first, second = [_path(each) for each in _results(talk.kept)]
    assert "line 60 of log0" in _window(talk, first, 60)
    assert "line 60 of log1" in _window(talk, second, 60)


@each_builder
def test_v5_clearing_an_old_result_leaves_a_new_one_of_the_same_id_alone(builder: str):
    backend = MemoryBackend()
    settings = {"skip_truncation": True, "max_tokens_for_clear": 2_000}
    talk, source = _fetched(builder, backend, ["a"], ["a"], **settings)
    old, new = _results(talk.kept)
    assert _read(backend, _path(old)) == source.texts["log0"]
    assert new.text == source.texts["log1"]


ALIKE = ["a/b", "a_b", "a b", "a?b", "A_B", "a%2Fb", "../a_b", "a\\b"]


@pytest.mark.parametrize("kind", ["memory", "local"])
@each_builder
def test_v6_ids_that_look_alike_have_files_of_their_own(builder: str, kind: str, tmp_path: Path):
    backend = BACKENDS[kind](tmp_path / "outputs")
    talk, source = _fetched(builder, backend, ALIKE)
    _check_files(talk, source, lambda path: _read(backend, path))
    assert [each for each in tmp_path.iterdir() if each.name != "outputs"] == []


@each_backend
@each_builder
def test_v7_an_id_of_1400_characters_is_no_obstacle(builder: str, backend: str, tmp_path: Path):
    ids = ["i" * 1_400, "i" * 1_399 + "j"]
    talk, source = _fetched(builder, BACKENDS[backend](tmp_path), ids)
    answers = _results(talk.kept)
    assert [each.tool_call_id for each in answers] == ids
    assert all(len(each.text) <= 1_000 + NOTICE for each in answers)
    for answer, key in zip(answers, source.texts, strict=True):
        assert f"line 60 of {key}" in _window(talk, _path(answer), 60)


# V8: it cannot be saved. In a deep agent what is longer than 80,000 characters is then evicted by deepagents itself


@each_builder_and_manner
def test_v8_what_cannot_be_saved_stops_the_run_and_is_not_lost(builder: str, manner: str):
    disk, source = FullDisk(), Source(log=_text("log", 79_000))
    talk = _talk(builder, source, [asks(_fetch("a", "log"))], ToolReductionMiddleware(disk), manner=manner)
    with pytest.raises(OffloadError, match="no space left on device"):
        talk.say("Fetch.")
    assert len(talk.model.sent) == 1
    assert [each.text for each in _results(talk.kept)] == [source.texts["log"]]
    disk.full = False
    talk.say("And now?")
    [answer] = _results(talk.received)
    assert len(answer.text) <= 50_000 + NOTICE
    assert disk.files == {_path(answer): source.texts["log"]}
    assert source.fetched == ["log"]


@each_builder_and_manner
def test_v8_a_sibling_of_what_cannot_be_saved_is_not_lost(builder: str, manner: str):
    disk, source = FullDisk(), Source(log=_text("log", 79_000), short="short and sweet")
    turn = asks(_fetch("a", "log"), _fetch("b", "short"))
    talk = _talk(builder, source, [turn], ToolReductionMiddleware(disk), PatchToolCallsMiddleware(), manner=manner)
    with pytest.raises(OffloadError):
        talk.say("Fetch.")
    disk.full = False
    talk.say("And now?")
    log, short = _results(talk.received)
    assert disk.files == {_path(log): source.texts["log"]}
    assert short.text == "short and sweet"
    assert sorted(source.fetched) == ["log", "short"]


@each_builder_and_manner
def test_v8_on_request_the_run_goes_on_with_what_cannot_be_saved_and_says_so(
    builder: str, manner: str, caplog: pytest.LogCaptureFixture
):
    disk, source = FullDisk(), Source(log=_text("log", 60_000))
    middleware = ToolReductionMiddleware(disk, on_backend_error="continue")
    talk = _talk(builder, source, [asks(_fetch("a", "log"))], middleware, manner=manner)
    assert talk.say("Fetch.")[-1].text == "done"
    assert [each.text for each in _results(talk.received)] == [source.texts["log"]]
    [told] = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert "fetch" in told
    assert "no space left on device" in told


@each_manner
def test_v8_the_eviction_of_deepagents_keeps_what_ours_cannot_save(manner: str):
    source = Source(log=_text("log", 400_000))
    middleware = ToolReductionMiddleware(FullDisk())
    talk = _talk("create_deep_agent", source, [asks(_fetch("a", "log"))], middleware, manner=manner)
    talk.say("Fetch.")
    [answer] = _results(talk.received)
    assert len(answer.text) < 50_000
    files = talk.agent.get_state(talk.config).values["files"]
    assert [each["content"] for each in files.values()] == [source.texts["log"]]


@each_manner
def test_v8_where_nobody_else_saves_them_400k_characters_stop_the_run_too(manner: str):
    disk, source = FullDisk(), Source(log=_text("log", 400_000))
    talk = _talk("create_agent", source, [asks(_fetch("a", "log"))], ToolReductionMiddleware(disk), manner=manner)
    with pytest.raises(OffloadError, match="no space left on device"):
        talk.say("Fetch.")
    assert [each.text for each in _results(talk.kept)] == [source.texts["log"]]


# V9: an exception has a very long message


class Fails(Source):
    """Its tool raises."""

    def tools(self) -> list[BaseTool]:
        @tool
        def fetch(key: str) -> str:
            """Fetch."""
            raise ValueError(self.texts[key])

        return [fetch]


@pytest.mark.parametrize("place", ["first", "last"])
@each_builder_and_manner
def test_v9_a_long_error_is_shortened_and_stays_an_error(builder: str, manner: str, place: str):
    backend, source = MemoryBackend(), Fails(log=_text("log", 300_000))
    reduction, errors = ToolReductionMiddleware(backend), ToolErrorMiddleware(lambda error, _: str(error))
    middleware = [reduction, errors] if place == "first" else [errors, reduction]
    talk = _talk(builder, source, [asks(_fetch("a", "log"))], *middleware, manner=manner)
    talk.say("Fetch.")
    [answer] = _results(talk.received)
    assert answer.status == "error"
    assert len(answer.text) <= 50_000 + NOTICE
    # Where ours is the inner one, deepagents' eviction comes first and keeps the text in its own place.
    if place == "first" or builder == "create_agent":
        assert _read(backend, _path(answer)) == source.texts["log"]


@each_builder
def test_v9_an_exception_that_nobody_handles_ends_the_run_as_ever(builder: str):
    source = Fails(log=_text("log", 300_000))
    talk = _talk(builder, source, [asks(_fetch("a", "log"))], ToolReductionMiddleware(MemoryBackend()))
    with pytest.raises(ValueError, match="line 1 of log"):
        talk.say("Fetch.")


# V11: what was saved elsewhere is not in the checkpoint


def _stored(talk: Talk) -> bytes:
    """Return all that the saver of a talk keeps, in one piece."""
    saver = talk.saver
    writes = [value[2][1] for held in saver.writes.values() for value in held.values()]
    return b"\n".join([*[blob for _, blob in saver.blobs.values()], *writes])


@each_builder
def test_v11_saved_output_is_not_in_the_checkpoint(builder: str):
    talk, source = _fetched(builder, MemoryBackend(), ["a"], ["b"], ["c", "d"])
    stored = _stored(talk)
    for key in source.texts:
        assert f"line 1 of {key},".encode() in stored
        assert f"line 60 of {key},".encode() not in stored
        assert "line 60 of" in source.texts[key]


def test_v11_output_in_the_state_of_a_deep_agent_is_in_the_checkpoint_once():
    talk, source = _fetched("create_deep_agent", StateBackend(), ["a"], ["b"], ["c"], ["d"])
    stored = _stored(talk)
    for key in source.texts:
        assert stored.count(f"line 60 of {key},".encode()) == 1
