"""An agent with `Compaction`: no request is over the limit, whatever the summariser does."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import suture
from suture import ChatModelAgent, Compaction, Message, ToolCall
from suture.errors import ContextLengthError, ContextOverflowError, ModelServerError, ResumeError
from suture.events import Custom, HistoryRewritten, RetryScheduled
from suture.messages import ResponseMeta, TokenUsage
from suture.middleware import ToolReduction
from suture.stores import MemoryBackend, MemoryStore, SQLiteStore
from suture.testing import ScriptedModel
from tests.agent.compaction import _victim
from tests.agent.compaction.scenes import COUNTER, asking, look, size
from tests.agent.durability.victim import Snapshots
from tests.agent.reduction._backends import Shelf
from tests.reduction.compacting import contents

LIMIT = 1_200
ROOT = Path(__file__).parents[3]


async def hang(prompt: str) -> str:
    await asyncio.Event().wait()
    return prompt


async def hang_on(prompt: str) -> str:
    """Hang, and do not let go when cancelled the first time."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        await asyncio.sleep(0)
    return prompt


def fail(prompt: str) -> str:
    raise RuntimeError(prompt[:10])


SUMMARIZERS: dict[str, Any] = {
    "sound": lambda _: "They looked things up.",
    "raises": fail,
    "hangs": hang,
    "hangs on": hang_on,
    "says nothing": lambda _: " ",
    "answers too long": lambda prompt: prompt * 2,
    "says what is no text": lambda _: None,
    "model": ScriptedModel(lambda _: "They looked things up."),
    "another wire": ScriptedModel(lambda _: {"role": "assistant", "content": "They looked."}, wire="openai-chat"),
    "model that calls tools": ScriptedModel(
        lambda _: Message.assistant("hm", tool_calls=[ToolCall("x", "look", "{}")])
    ),
    "model that fails": ScriptedModel(lambda _: ModelServerError("overloaded", status=529)),
    "the agent's own": None,
}


def agent_of(compaction: Compaction | None, model: Any, **options: Any) -> ChatModelAgent[Any]:
    middlewares = [] if compaction is None else [compaction]
    return ChatModelAgent(
        model=model, tools=[look], middlewares=middlewares, max_iterations=60, instruction="Be brief.", **options
    )


@pytest.mark.parametrize("name", SUMMARIZERS)
def test_no_request_is_over_the_limit_whatever_the_summariser_does(name: str):
    model: ScriptedModel[Message] = ScriptedModel(asking(25, words=40))
    compaction = Compaction(LIMIT, 700, SUMMARIZERS[name], summarizer_timeout=0.01)
    result = agent_of(compaction, model).run_sync("Look 25 things up. The password is 4711.")
    assert result.output == "done"
    assert len(model.requests) >= 26
    assert max(map(size, model.requests)) <= LIMIT
    for request in model.requests:
        if not request.tool_infos:
            continue  # it was asked for a summary
        assert suture.check(request.messages, profile="pairing").acceptable
        assert any("4711" in message.content for message in request.messages)
    assert suture.check(result.messages, profile="pairing").acceptable


def test_events_say_that_there_is_too_much_and_what_was_done():
    async def scene() -> list[Any]:
        agent = agent_of(Compaction(LIMIT, 700, SUMMARIZERS["sound"]), ScriptedModel(asking(12, words=40)))
        async with agent.stream("go") as run:
            return [event async for event in run]

    events = asyncio.run(scene())
    rewritten = [event for event in events if isinstance(event, HistoryRewritten)]
    started = [event for event in events if isinstance(event, Custom) and event.name == "suture.compaction"]
    assert len(rewritten) == len(started) > 0
    assert {event.by for event in rewritten} == {"Compaction"}
    report = rewritten[-1].report
    assert report is not None
    assert report["tokens_before"] > LIMIT >= report["tokens_after"]


def test_what_a_summary_costs_is_in_the_usage():
    usage = TokenUsage(prompt_tokens=500, completion_tokens=20, total_tokens=520)
    reply = Message("assistant", "They looked.", response_meta=ResponseMeta(usage=usage))
    summarizer: ScriptedModel[Message] = ScriptedModel(lambda _: reply)
    result = agent_of(Compaction(LIMIT, 700, summarizer), ScriptedModel(asking(12, words=40))).run_sync("go")
    assert summarizer.requests
    assert result.usage.total_tokens == 520 * len(summarizer.requests)


def test_words_that_left_the_history_can_be_read_with_a_tool():
    said = "".join(f"word{number} " for number in range(2_000))
    read: list[str] = []

    def reply(messages: Any) -> Any:
        if messages[-1].role == "tool":
            read.append(messages[-1].content)
            return "done"
        path = messages[0].content.partition("saved to: ")[2].partition(". Use")[0]
        arguments = f'{{"path": "{path}", "char_offset": 4000, "char_limit": 50}}'
        return Message.assistant(tool_calls=[ToolCall("r", "read_file", arguments)])

    result = agent_of(Compaction(LIMIT), ScriptedModel(reply)).run_sync(said)
    assert result.output == "done"
    assert said[4_000:4_050] in read[0]


@pytest.mark.parametrize(("name", "length"), [("read_file", 1_000), ("look_back", 300)])
def test_words_that_are_read_back_are_not_truncated_however_little_a_tool_may_say(name: str, length: int):
    said = "".join(f"word{number} " for number in range(2_000))

    def reply(messages: Any) -> Any:
        if messages[-1].role == "tool":
            return "done"
        path = messages[0].content.partition("saved to: ")[2].partition(". Use")[0]
        arguments = f'{{"path": "{path}", "char_offset": 4000, "char_limit": 1000}}'
        reader = "read_earlier" if name == "read_file" else name
        return Message.assistant(tool_calls=[ToolCall("r", reader, arguments)])

    compaction = Compaction(3_000, read_file_tool_name=name)
    middlewares: list[Any] = [ToolReduction(MemoryBackend(), max_length_for_trunc=500), compaction]
    result = ChatModelAgent(model=ScriptedModel(reply), middlewares=middlewares).run_sync(said)
    assert said[4_000 : 4_000 + length] in result.messages[-2].content


@pytest.mark.parametrize("compacts_first", [False, True])
def test_output_that_was_truncated_is_read_back_whatever_stands_first_in_the_list(compacts_first: bool):
    calls = [("look", '{"label": "it"}'), ("read_file", '{"path": "/r/trunc/look", "char_offset": 100}')]
    asked = [{"id": name, "type": "function", "function": {"name": name, "arguments": given}} for name, given in calls]
    said = {"role": "assistant", "content": "done"}
    model = ScriptedModel([*[{"role": "assistant", "tool_calls": [call]} for call in asked], said], "openai-chat")
    reduction = ToolReduction(MemoryBackend(), root_dir="/r", max_length_for_trunc=10)
    middlewares: list[Any] = [reduction, Compaction(50_000)]
    middlewares = middlewares[::-1] if compacts_first else middlewares
    result = ChatModelAgent(model=model, tools=[look], middlewares=middlewares).run_sync("go")
    assert "says so. it" in result.messages[-2]["content"]
    assert "end of file, 240 characters" in result.messages[-2]["content"]


@pytest.mark.parametrize("compacts_first", [False, True])
def test_ls_and_grep_know_what_was_taken_out_of_a_chat_and_not_only_what_was_truncated(compacts_first: bool):
    said = "".join(f"word{number} " for number in range(2_000))
    calls = [("ls", "{}"), ("grep", '{"pattern": "word1999"}')]
    asked = [{"id": name, "type": "function", "function": {"name": name, "arguments": given}} for name, given in calls]
    replies = [{"role": "assistant", "tool_calls": asked}, {"role": "assistant", "content": "done"}]
    middlewares: list[Any] = [ToolReduction(MemoryBackend()), Compaction(3_000, root_dir="/r")]
    middlewares = middlewares[::-1] if compacts_first else middlewares
    model = ScriptedModel(replies, "openai-chat")
    listed, found = ChatModelAgent(model=model, middlewares=middlewares).run_sync(said).messages[-3:-1]
    assert "/r/compact/" in listed["content"]
    assert "word1999" in found["content"]
    assert "1 matching line in 1 file" in found["content"]


@pytest.mark.parametrize("compacts_first", [False, True])
def test_output_that_can_be_written_only_is_not_said_to_be_gone_where_a_compaction_reads(compacts_first: bool):
    calls = [("look", '{"label": "it"}'), ("read_file", '{"path": "/r/trunc/look"}')]
    replies = [Message.assistant(tool_calls=[ToolCall(name, name, given)]) for name, given in calls]
    reduction = ToolReduction(Shelf(), root_dir="/r", max_length_for_trunc=10)
    middlewares: list[Any] = [reduction, Compaction(50_000)]
    middlewares = middlewares[::-1] if compacts_first else middlewares
    agent = ChatModelAgent(model=ScriptedModel([*replies, "done"]), tools=[look], middlewares=middlewares)
    assert agent.run_sync("go").messages[-2].content == (
        "'/r/trunc/look' was saved where it can be written only; no tool here can read it"
    )


def test_conversations_that_share_a_place_save_what_each_of_them_takes_out():
    backend = MemoryBackend()
    for label in ("this", "that"):
        calls = [ToolCall(f"c{number}", "look", f'{{"label": "{label} {number}"}}') for number in range(12)]
        model: ScriptedModel[Message] = ScriptedModel([*[Message.assistant(tool_calls=[call]) for call in calls], "ok"])
        compaction = Compaction(LIMIT, 1_100, fail, backend=backend, root_dir="/shared")
        said = [message.content for message in agent_of(compaction, model).run_sync("go").messages]
        paths = [text.partition("saved to: ")[2].partition("\n")[0] for text in said if "persisted-output" in text]
        assert len(paths) > 2
        assert all(f"{label} " in asyncio.run(contents(backend))[path] for path in paths)


def test_output_that_was_cleared_before_it_was_folded_can_still_be_read():
    backend = MemoryBackend()
    calls = [ToolCall(f"c{number}", "look", f'{{"label": "thing {number}"}}') for number in range(20)]
    model: ScriptedModel[Message] = ScriptedModel([*[Message.assistant(tool_calls=[call]) for call in calls], "ok"])
    reduction = ToolReduction(backend, root_dir="/r", max_tokens_for_clear=400)
    middlewares: list[Any] = [reduction, Compaction(LIMIT, summarizer=fail, keep_recent_rounds=1)]
    first = ChatModelAgent(model=model, tools=[look], middlewares=middlewares, max_iterations=60).run_sync("go")
    summary = next(message.content for message in first.messages if "made without a model" in message.content)
    named = re.findall(r"/r/clear/c\d+", summary)
    assert len(named) > 2
    asks = Message.assistant(tool_calls=[ToolCall("r", "read_file", f'{{"path": "{named[-1]}"}}')])
    agent = ChatModelAgent(model=ScriptedModel([asks, "ok"]), tools=[look], middlewares=middlewares)
    again = agent.run_sync([*first.messages, Message.user("And?")], session=first.session)
    assert "says so" in again.messages[-2].content


def test_a_backend_that_cannot_write_costs_room_and_not_the_run():
    class Full(MemoryBackend):
        async def write(self, path: str, content: str | bytes) -> None:
            raise OSError("the disk is full")

        write_stream = write  # pyright: ignore[reportAssignmentType]

    model: ScriptedModel[Message] = ScriptedModel(asking(20, words=40))
    result = agent_of(Compaction(LIMIT, 700, backend=Full()), model).run_sync("go")
    assert result.output == "done"
    assert max(map(size, model.requests)) <= LIMIT


def test_what_is_too_large_by_itself_is_named():
    agent = ChatModelAgent(model=ScriptedModel(["hi"]), instruction="x" * 9_000, middlewares=[Compaction(1_000)])
    with pytest.raises(ContextOverflowError, match="instruction takes up") as caught:
        agent.run_sync("go")
    assert caught.value.what == "instruction"


def test_an_overflow_is_told_in_the_tokens_of_the_counter():
    def triple(messages: Any, tool_infos: Any) -> int:
        return 3 * sum(map(COUNTER.count, [*messages, *[Message.user(str(info)) for info in tool_infos]]))

    with pytest.raises(ContextOverflowError) as caught:
        agent_of(Compaction(600, token_counter=triple), ScriptedModel(["hi"])).run_sync("go")
    assert caught.value.what == "tool descriptions"
    assert caught.value.tokens > caught.value.limit == 600


def test_a_counter_that_gives_no_number_is_named():
    def vague(*_: Any) -> Any:
        return None

    with pytest.raises(suture.ConfigError, match="vague gave None; expected an integer"):
        agent_of(Compaction(600, token_counter=vague), ScriptedModel(["hi"])).run_sync("go")


def test_a_function_that_answers_no_text_makes_no_summary():
    model: ScriptedModel[Message] = ScriptedModel(asking(25, words=40))
    result = agent_of(Compaction(LIMIT, 700, lambda _: None), model).run_sync("Look.")  # pyright: ignore[reportArgumentType]
    summaries = [message.content for message in result.messages if message.content.startswith("<conversation-summary ")]
    assert ["made without a model" in summary for summary in summaries] == [True]


def test_what_a_counter_never_finds_short_enough_is_not_sent():
    model: ScriptedModel[Message] = ScriptedModel(["hi"])
    history = [Message.user("go"), *[Message.assistant("said " * 800), Message.user("go on")] * 40]
    with pytest.raises(ContextOverflowError) as caught:
        agent_of(Compaction(3_000, token_counter=lambda *_: 3_100, summarizer=fail), model).run_sync(history)
    assert caught.value.limit == 3_000
    assert model.requests == []


def test_a_turn_that_failed_is_taken_again_without_another_summary():
    prompts: list[str] = []

    def summarize(prompt: str) -> str:
        prompts.append(prompt)
        return "They looked."

    script = asking(12, words=40)
    failures = iter([ModelServerError("down")])

    def reply(messages: Any) -> Any:
        return next(failures, None) or script(messages) if prompts else script(messages)

    model: ScriptedModel[Message] = ScriptedModel(reply)
    agent = agent_of(Compaction(LIMIT, 700, summarize), model, checkpoint_store=MemoryStore(), model_retry_config=None)

    async def scene() -> Any:
        with pytest.raises(ModelServerError):
            await agent.run("go", checkpoint_id="k")
        return await agent.resume("k")

    assert asyncio.run(scene()).output == "done"
    assert len(prompts) == len(set(prompts))


def test_what_a_compaction_took_out_is_there_again_in_a_fork_from_before_it():
    store = MemoryStore()
    short, whole = (
        agent_of(compaction, ScriptedModel(asking(12, words=40)), checkpoint_store=store)
        for compaction in (Compaction(LIMIT, 700, SUMMARIZERS["sound"]), Compaction(100_000))
    )

    async def scene() -> tuple[Any, Any]:
        result = await short.run("go", checkpoint_id="k")
        steps = pairwise(await short.checkpoints("k"))
        await whole.fork("k", next(one.position for one, other in steps if other.messages < one.messages), "undone")
        return result, await whole.resume("undone")

    compacted, undone = asyncio.run(scene())
    assert (compacted.output, undone.output) == ("done", "done")
    first = "step 0 step 0"
    assert first not in "".join(message.content for message in compacted.messages)
    assert any(message.content.startswith(first) for message in undone.messages)
    assert len([message for message in undone.messages if message.role == "tool"]) == 12


# A provider that says "too long"


class Narrow(ScriptedModel[Message]):
    """A model that refuses more tokens than it takes, in a provider's words."""

    def __init__(self, reply: Any, takes: int, words: str) -> None:
        super().__init__(lambda messages: self._judge(messages, reply))
        self.takes, self.words, self.refused = takes, words, 0

    def _judge(self, messages: Any, reply: Any) -> Any:
        tokens = size(self.requests[-1])
        if tokens > self.takes:
            self.refused += 1
            return ContextLengthError(self.words.format(tokens=tokens, limit=self.takes))
        return reply(messages)


WORDS = {
    "openai": "This model's maximum context length is {limit} tokens. However, messages resulted in {tokens} tokens.",
    "anthropic": "prompt is too long: {tokens} tokens > {limit} maximum",
    "gemini": "The input token count ({tokens}) exceeds the maximum number of tokens allowed ({limit}).",
    "bedrock": "Input is too long for requested model.",
}


@pytest.mark.parametrize("provider", WORDS)
@pytest.mark.parametrize("compaction", [None, Compaction(), Compaction(100_000)])
def test_a_request_that_is_too_long_is_made_shorter_and_sent_once_more(provider: str, compaction: Compaction | None):
    model = Narrow(asking(20, words=40), 1_500, WORDS[provider])
    result = agent_of(compaction, model).run_sync("Look 20 things up. The password is 4711.")
    assert result.output == "done"
    assert 0 < model.refused < 6
    assert all("4711" in str([message.content for message in request.messages]) for request in model.requests[:5])
    assert suture.check(result.messages, profile="pairing").acceptable


def test_what_was_made_shorter_stays_so_and_an_event_says_it():
    async def scene() -> tuple[list[Any], Any]:
        model = Narrow(asking(12, words=40), 1_500, WORDS["anthropic"])
        async with agent_of(None, model).stream("go") as run:
            events = [event async for event in run]
        return events, await run.result()

    events, result = asyncio.run(scene())
    assert any(isinstance(event, RetryScheduled) for event in events)
    assert any(isinstance(event, HistoryRewritten) and event.by == "Compaction" for event in events)
    assert len([message for message in result.messages if message.role == "tool"]) <= 12


def test_the_limit_that_a_provider_named_is_kept_from_then_on():
    model = Narrow(asking(40, words=40), 1_500, WORDS["anthropic"])
    result = agent_of(Compaction(), model).run_sync("go")
    assert result.output == "done"
    assert model.refused == 1


def test_a_model_that_never_takes_it_ends_the_run_with_what_it_said():
    model: ScriptedModel[Message] = ScriptedModel(lambda _: ContextLengthError("Input is too long."))
    with pytest.raises((ContextLengthError, ContextOverflowError)):
        agent_of(None, model).run_sync("word " * 2_000)
    assert len(model.requests) <= 4


def test_what_cannot_be_made_short_enough_is_told_with_the_words_of_the_provider():
    words = "prompt is too long: 200480 tokens > 200000 maximum"
    model: ScriptedModel[Message] = ScriptedModel(lambda _: ContextLengthError(words))
    with pytest.raises(ContextOverflowError, match=f"; the provider said: {words}") as caught:
        agent_of(None, model).run_sync("go")
    assert caught.value.refusal == words
    assert isinstance(caught.value.__cause__, ContextLengthError)


# A process that dies


class Paid(list[str]):
    """What a summariser was asked."""

    def all(self) -> list[str]:
        return list(self)


async def go_on(store: Any, paid: list[str]) -> None:
    """Resume a run, and check that it loses nothing, and asks for no summary that was paid for."""
    prompts: list[str] = []
    agent, model = _victim.make(store, prompts)
    result = await agent.resume("k")
    assert result.output == "done"
    assert max(map(size, model.requests)) <= 700
    assert all("4711" in request.messages[0].content for request in model.requests)
    assert suture.check(result.messages, profile="pairing").acceptable
    assert set(paid).isdisjoint(prompts)
    assert len(prompts) == len(set(prompts))


def test_behind_whatever_write_a_process_dies_no_summary_is_paid_for_twice():
    async def scene() -> int:
        paid = Paid()
        store = Snapshots(paid)
        agent, _ = _victim.make(store, paid)
        assert (await agent.run(_victim.TASK, checkpoint_id="k")).output == "done"
        *taken, _ = store.taken  # behind the last one the run has ended
        for journals, had in taken:
            await go_on(await store.restore(journals), had)
        return len({len(had) for _, had in taken})

    assert asyncio.run(scene()) > 3


@pytest.mark.soak
def test_behind_whatever_write_a_process_is_killed_no_summary_is_paid_for_twice(
    tmp_path: Path, covered: Callable[[str], None]
):
    async def scene(database: Path) -> None:
        with SQLiteStore(database) as store:
            await go_on(store, prompts_of(database))

    killed = ended = 0
    while die(database := tmp_path / f"{killed}.db", str(killed + 1)):
        killed += 1
        try:
            asyncio.run(scene(database))
        except ResumeError:  # behind the last write the run has ended
            ended += 1
    covered(f"killed behind each of {killed} writes")
    assert ended == 1
    assert killed > 20


def die(database: Path, *arguments: str) -> bool:
    """Run the victim; tell whether it was killed."""
    command = [sys.executable, "-m", "tests.agent.compaction._victim", str(database), *arguments]
    ended = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode in {0, -signal.SIGKILL}, ended.stderr
    return ended.returncode != 0


def prompts_of(database: Path) -> list[str]:
    return list(_victim.Prompts(Path(f"{database}.prompts")))


def test_a_process_that_dies_while_it_summarises_goes_on_and_summarises_nothing_twice(tmp_path: Path):
    database = tmp_path / "runs.db"
    assert die(database)

    async def scene() -> None:
        with SQLiteStore(database) as store:
            await go_on(store, prompts_of(database)[:-1])  # the last was not answered

    asyncio.run(scene())
