"""`Compaction`: no request exceeds the limit, whatever is in the history and whatever a summariser does."""

import asyncio
import dataclasses
from collections.abc import AsyncIterable, Awaitable, Callable, Collection, MutableMapping
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, partial
from typing import Any

from msgspec.structs import replace

from suture import kernel
from suture._aio import LOG, settle
from suture.errors import ConfigError, ContextLengthError, ContextOverflowError, OffloadError, SutureError
from suture.events import Custom
from suture.kernel.model_call import ask
from suture.kernel.retries import HICCUPS, can_help, wait_after
from suture.messages import History
from suture.middleware.reading_tools import reading_tools
from suture.middleware.record import InRun, Outside, Record, save_all
from suture.reduction import Compactor, Folding, Limits, Plan, Saved, Settings, Writer
from suture.reduction.compaction import check_sizes, target_of
from suture.reduction.phases import name_by_content
from suture.reduction.settings import READ_EARLIER
from suture.reduction.texts import digest_of
from suture.stores import FileBackend, MemoryBackend, PathTakenError
from suture.tokens import CharacterCounter, Counter, UsageCounter, WholeCounter, check_count, is_incremental
from suture.tools import RunContext, Tool
from suture.wires import Wire, get_chat_wire

_SHARE = 0.8
"""The share of a model's window for a request: the rest is for the reply, and for errors in counting."""
_LIMIT = "suture.context_limit"
"""The key of the run's value that says how many tokens its model takes, as its provider said."""
_SUMMARIES = "suture.summaries"
"""The key of the run's value with the summariser's answers in its last compaction, by the digest of the prompt."""


@dataclass(frozen=True, eq=False, repr=False)
class Compaction(InRun, kernel.ChatModelAgentMiddleware[Any]):
    """Keeps requests below a limit, before each model turn and when a provider refuses one as too long.

    It counts again after each step, and stops at `target_tokens`: it clears old tool results, drops old thinking,
    summarises the oldest rounds (or makes a digest if no model can) and cuts the largest blocks. What a user said
    stays, or is saved under a path that the model can read. If even that is not enough, `ContextOverflowError` names
    the one thing that is too large.

    Args:
        max_tokens: how many tokens a request may have; by default 80 % of the model's window, if that is known.
        target_tokens: how many it should have after a compaction; by default 60 % of the limit.
        summarizer: a model of any size, or a function of the prompt, plain or async; by default the agent's own model.

    >>> Compaction(max_tokens=100_000).keep_recent_rounds
    2
    """

    max_tokens: int | None = None
    target_tokens: int | None = None
    summarizer: kernel.Model[Any] | Callable[[str], str | Awaitable[str]] | None = None
    _: KW_ONLY
    keep_recent_rounds: int = 2
    """How many of the model's latest turns stay unchanged, if possible."""
    keep_user_tokens: int = 20_000
    """How many tokens of the user's words stay verbatim, at most a third of the target; the rest is saved."""
    token_counter: Counter | WholeCounter = field(default_factory=UsageCounter)
    """By default the provider's own count plus an estimate."""
    backend: Writer | None = None
    """Where content is saved; by default in the run's session."""
    instruction: str | None = None
    """The prompt for the summariser, instead of the built-in one."""
    read_file_tool_name: str = "read_file"
    root_dir: str | None = None
    summarizer_timeout: float = 120.0
    """How many seconds one answer of the summariser may take."""
    outside: Outside = field(default_factory=Outside, init=False)
    """Stands for the run if there is none, as in guests, whose agents are not ours."""

    def __post_init__(self) -> None:
        check_sizes(self.max_tokens, self.target_tokens, self.keep_recent_rounds, self.keep_user_tokens)
        is_incremental(self.token_counter)  # raises if it is not a counter
        if self.backend is not None and not callable(getattr(self.backend, "write", None)):
            raise ConfigError(f"a backend has write(path, content); {type(self.backend).__name__} has none")
        if self.summarizer is not None and not callable(getattr(self.summarizer, "stream", self.summarizer)):
            raise ConfigError(f"a summarizer is a model or a function, not {type(self.summarizer).__name__}")

    # What belongs to a run

    @cached_property
    def _settings(self) -> Settings:
        """How results are cleared."""
        counter = self.token_counter
        return Settings(
            skip_truncation=True,
            root_dir=self.root_dir,
            token_counter=counter if is_incremental(counter) else None,
            read_file_tool_name=self.read_file_tool_name,
        )

    def _record(self) -> Record:
        return self._record_of(self._settings, self._backend, "compaction")

    def _backend(self, name: str = "") -> Writer:
        """Return the backend in which content is saved."""
        del name
        if self.backend is not None:
            return self.backend
        run = self._run()
        key = (self, "files")
        if key not in run.cache:
            run.cache[key] = SessionFiles(run.session, f"suture.compaction/{run.address}/files")
        return run.cache[key]

    # The tools that read what was saved

    def before_agent(self, context: kernel.ChatModelAgentContext[Any]) -> kernel.ChatModelAgentContext[Any]:
        """Add the tools that read saved content, except those whose names are taken."""
        names = {tool.name for tool in context.tools}
        if self._reads:
            self._run().cache[self, "reader"] = self._reader(names)
        new = self.added_tools(names)
        return replace(context, tools=(*context.tools, *new)) if new else context

    def added_tools(self, taken: Collection[str]) -> tuple[Tool[..., Any], ...]:
        """Return the tools that an agent gets if its own have the names in `taken`."""
        name = self._reader(taken)
        if not self._reads or name in taken:
            return ()
        return reading_tools(self._record, self._backend, name, 20_000)[:1]

    @property
    def _reads(self) -> bool:
        return self.backend is None or isinstance(self.backend, FileBackend)

    def _reader(self, taken: Collection[str]) -> str:
        return self.read_file_tool_name if self.read_file_tool_name not in taken else READ_EARLIER

    # Before the model

    def before_model_rewrite_state(  # not async: most turns need no compaction, and should not pay for a coroutine
        self, state: kernel.ChatModelAgentState[Any], model_context: kernel.ModelContext
    ) -> kernel.ChatModelAgentState[Any] | Awaitable[kernel.ChatModelAgentState[Any] | None] | None:
        """Count the tokens, and compact the history if there are too many."""
        run = self._run()
        limit = self._limit(run)
        if limit is None:
            return None
        counter = self.token_counter
        if not is_incremental(counter):
            return self._count_whole(state, model_context, limit)
        record = self._record()
        wire, history = record.see(state.messages, model_context.wire)
        tally, usage = record.tally(wire), model_context.last_usage
        if usage is not None and run.cache.get((self, "stale")) is usage:
            tokens = self._estimate(state, model_context)
        else:
            tokens = tally.total(history, state.tool_infos, usage, model_context.instruction)
        if tokens <= limit:
            return None
        return self.compact(state, model_context, limit, tokens)

    async def _count_whole(
        self, state: kernel.ChatModelAgentState[Any], context: kernel.ModelContext, limit: int
    ) -> kernel.ChatModelAgentState[Any] | None:
        """Count with a function of the whole history, and compact until it is satisfied."""
        before = state
        for share in (64, 48, 36, 27, 0):  # nothing fits into 0, so the last attempt raises and names what is too large
            counter: Any = self.token_counter
            tokens = check_count(counter, await settle(counter(state.messages, state.tool_infos)))
            tokens += CharacterCounter().count_text(context.instruction)
            if tokens <= limit:
                break
            try:
                state = await self.compact(state, context, limit * share // 64, tokens) or state
            except ContextOverflowError as error:
                raise ContextOverflowError(error.what, error.tokens, limit, index=error.index) from error.__context__
        return None if state is before else state

    def _limit(self, run: RunContext[Any]) -> int | None:
        """Return how many tokens a request may have: what was set, what the provider said, what is known."""
        if self.max_tokens is not None:
            return self.max_tokens
        window = run.values.get(_LIMIT) or getattr(getattr(run, "model", None), "context_window", None)
        return int(window * _SHARE) if window else None

    async def shorten(
        self, state: kernel.ChatModelAgentState[Any], context: kernel.ModelContext, error: ContextLengthError
    ) -> kernel.ChatModelAgentState[Any] | None:
        """Compact a history that a provider refused as too long, to 80 % of what it takes, and strictly smaller."""
        run, estimate = self._run(), max(1, self._estimate(state, context))
        window = error.limit or getattr(getattr(run, "model", None), "context_window", None)
        if error.limit:
            run.values[_LIMIT] = error.limit
        real = max(error.tokens or 0, window or 0, estimate)  # it was too long, so it has at least this many tokens
        limit = int(_SHARE * min(window or real // 2, real))
        return await self.compact(state, context, limit, real)

    def _estimate(self, state: kernel.ChatModelAgentState[Any], context: kernel.ModelContext) -> int:
        """Return the estimated tokens; a provider's report does not count, since it is about another history."""
        wire, history = self._record().see(state.messages, context.wire)
        tally = self._record().tally(wire)
        return sum(map(tally.of, history)) + tally.of_rest(state.tool_infos, context.instruction)

    async def compact(
        self, state: kernel.ChatModelAgentState[Any], context: kernel.ModelContext, limit: int, tokens: int
    ) -> kernel.ChatModelAgentState[Any] | None:
        """Compact a history that has `tokens` tokens to at most `limit`; `None` if nothing changes."""
        record, run = self._record(), self._run()
        wire, history = record.see(state.messages, context.wire)
        tally = record.tally(wire)
        rest, tools = tally.of_rest(state.tool_infos, context.instruction), tally.of_rest(state.tool_infos)
        # The compaction counts by estimates of single messages, so the limits are converted to these.
        scale = (sum(map(tally.of, history)) + rest) / max(1, tokens)
        target = int(target_of(limit, self.target_tokens) * scale)
        limits = Limits(int(limit * scale), target, rest - tools, tools)
        run.send(Custom("suture.compaction", {"tokens": tokens, "limit": limit}))
        # Saved content must be readable, by one of our tools or by the owner of the backend.
        can_save = self.backend is not None or (self, "reader") in run.cache
        try:
            plan = await self._plan(wire, history, limits, offload=can_save)
        except ContextOverflowError as error:
            size = round(error.tokens / scale)
            raise ContextOverflowError(error.what, size, limit, index=error.index) from error.__context__
        if not plan.changed:
            return None
        run.cache[self, "stale"] = context.last_usage
        messages: History[Any] = History(plan.messages)
        record.see(messages)
        return replace(state, messages=messages, report=plan.to_dict())

    async def _plan(self, wire: Wire, history: History[Any], limits: Limits, *, offload: bool) -> Plan[Any]:
        """Plan, and save what the plan removes; if that fails, plan again without anything that must be saved."""
        run, record = self._run(), self._record()
        terms = record.terms(self._backend if offload else _nowhere)
        reader = run.cache.get((self, "reader"), self.read_file_tool_name)
        maker = partial(name_by_content, terms.root) if self.backend is not None else None  # others write to it, too
        settings = dataclasses.replace(self._settings, read_file_tool_name=reader, gen_clear_offload_file_path=maker)
        terms = terms._replace(settings=settings)
        model = self.summarizer if self.summarizer is not None else getattr(run, "model", None)
        window = getattr(model, "context_window", None) or (run.values.get(_LIMIT) if self.summarizer is None else None)
        room = int(_SHARE * window) if window else None
        folding = Folding(self.keep_recent_rounds, self.keep_user_tokens, offload, self.instruction, room)
        asks = None if model is None else partial(self._ask_once, run, model, dict[str, str]())
        plan = await Compactor(wire, history, terms, limits, folding, record.tally(wire).of, asks).run()
        try:
            await save_all(plan.saves, self._backend)
        except (OffloadError, PathTakenError) as error:
            LOG.warning("what a compaction takes out was not saved; all that the user said stays: %s", error)
            return await self._plan(wire, history, limits, offload=False)
        record.keep([Saved(save.path, save.call_id, save.name, "compact", len(save.content)) for save in plan.saves])
        return plan

    # The summariser

    async def _ask_once(self, run: RunContext[Any], model: Any, answers: dict[str, str], prompt: str) -> str:
        """Ask the summariser, unless this run has the answer already, as it may if a failed turn is repeated."""
        key = digest_of(prompt)
        answer = run.values.get(_SUMMARIES, {}).get(key)
        answers[key] = await self._ask(run, model, prompt) if answer is None else answer
        if answer is None:
            run.values[_SUMMARIES] = dict(answers)
        return answers[key]

    async def _ask(self, run: RunContext[Any], model: Any, prompt: str) -> str:
        """Ask the summariser; log and raise its errors."""
        try:
            attempt = 0
            while True:
                attempt += 1
                try:
                    return await self._in_time(self._answer(run, model, prompt))
                except SutureError as error:
                    if not can_help(HICCUPS, attempt, error):
                        raise
                    delay = wait_after(HICCUPS, attempt, error)
                    LOG.info("the summariser's attempt %d failed: %s; the next in %.1f s", attempt, error, delay)
                    await asyncio.sleep(delay)
        except Exception as error:
            LOG.warning("the summariser failed: %s: %s", type(error).__name__, error)
            run.send(Custom("suture.summarizer_failed", {"error": type(error).__name__}))
            raise

    async def _answer(self, run: RunContext[Any], model: Any, prompt: str) -> str:
        if not hasattr(model, "stream"):
            said: Any = await settle(model(prompt))
            if not isinstance(said, str):
                raise TypeError(f"expected a text, found {type(said).__name__}")
            return said
        wire = get_chat_wire(model.wire)
        message = await ask(model, kernel.ModelRequest("", [wire.user(prompt)]))
        usage = wire.usage(message)
        if usage is not None:
            run.spend(usage)
        if wire.calls(message):
            raise RuntimeError("it called a tool")
        return wire.text(message)

    async def _in_time(self, work: Awaitable[str]) -> str:
        """Wait for an answer up to the timeout, even if the work cannot be cancelled."""
        task = asyncio.ensure_future(work)
        try:
            done, _ = await asyncio.wait({task}, timeout=self.summarizer_timeout)
        finally:
            task.cancel()  # has no effect if it is done
        if not done:
            raise TimeoutError(f"no answer within {self.summarizer_timeout:g} s")
        if task.cancelled():
            raise RuntimeError("its own work was cancelled")
        return task.result()


def _nowhere(_: str) -> None:
    """Return no backend."""


class SessionFiles(MemoryBackend):
    """Files in a run's session, which last as long as the conversation."""

    def __init__(self, session: MutableMapping[str, Any], prefix: str) -> None:
        super().__init__()
        self._session, self._prefix = session, prefix
        for key in [key for key in session if key.startswith(prefix)]:
            self.fill(key.removeprefix(prefix), session[key])

    async def write(self, path: str, content: str | bytes) -> None:
        """Keep a file."""
        await super().write(path, content)
        self._keep(path)

    async def write_stream(self, path: str, chunks: AsyncIterable[bytes]) -> int:
        """Keep a file that arrives in pieces."""
        size = await super().write_stream(path, chunks)
        self._keep(path)
        return size

    def _keep(self, path: str) -> None:
        self._session[f"{self._prefix}{path}"] = self._file(path).content.decode(errors="replace")
