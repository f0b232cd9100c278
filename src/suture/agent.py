"""`ChatModelAgent`: a model that uses tools until it has an answer."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, Literal, TypedDict, Unpack, cast

import msgspec
from msgspec.structs import force_setattr, replace

from suture._aio import run_to_the_end
from suture._loops import run_blocking
from suture._text import replace_surrogates
from suture.errors import ConfigError, ResumeError
from suture.kernel.answers import TypeUnion, make_output_rule
from suture.kernel.config import (
    Budget,
    Callbacks,
    ModelFailoverConfig,
    ModelRetryConfig,
    ToolsConfig,
    make_instruction,
)
from suture.kernel.input import NOTHING, Intake, read_input
from suture.kernel.lifecycle import Begin
from suture.kernel.loop import Standing, advance, drive
from suture.kernel.middleware import AgentMiddleware, ChatModelAgentMiddleware, Outcome, compile_stack, replaceable
from suture.kernel.requests import Model
from suture.kernel.retries import HICCUPS
from suture.kernel.ring import compile_rings
from suture.kernel.run import Go, Run, Work, run_nested
from suture.kernel.run_state import Msg, Out, RunResult
from suture.kernel.state import Execution, Spec
from suture.language import resolve_language
from suture.messages import ToolInfo
from suture.models import get_model
from suture.profiles import get_profile
from suture.tools import AnyTool, Tool, ToolArgumentsError, as_tools
from suture.tools.results import read_result
from suture.wires import get_chat_wire

if TYPE_CHECKING:
    from suture.kernel.storage import Checkpoint
    from suture.sessions import Session
    from suture.stores import Store
else:
    Store = Any  # reading an agent's signature must not import the stores

__all__ = ["ChatModelAgent"]

_REQUEST = {
    "type": "object",
    "properties": {"request": {"type": "string", "description": "What the agent is to do."}},
    "required": ["request"],
    "additionalProperties": False,
}
_NO_TOOL_NAME, _LONGEST_NAME = re.compile(r"[^A-Za-z0-9_-]"), 64
"""What an agent's name may have and a tool's may not, and how long that may be."""
_WORDS = {"on_max_iterations": ("raise", "answer"), "tool_errors": ("result", "raise")}
_KINDS: dict[str, tuple[Any, ...]] = {
    "budget": (Budget,),
    "model_retry_config": (ModelRetryConfig,),
    "failover": (ModelFailoverConfig,),
    "callbacks": (Callbacks, Sequence),
    **dict.fromkeys(("input_builder", "redact", "format_tool_error"), (Callable,)),
    **dict.fromkeys(("description", "output_key"), (str,)),
    "instruction": (str, Callable),
}


class ResumeOptions(TypedDict, total=False):
    """What `resume` takes besides the answers. Deps are not stored, so pass them again."""

    deps: Any
    """What tools and hooks find as `RunContext.deps`."""
    session: Mapping[str, Any] | None
    """Values shared by this run and the agents inside it."""
    options: Mapping[str, Any] | None
    """Passed on to the model."""
    tool_options: Mapping[str, Any] | None
    """Passed on to the tools' endpoints."""
    after_tool_calls: Callable[[Any], Any] | None
    """Called with the state after each turn's calls; may return a changed one."""
    callbacks: Callbacks | Sequence[Callbacks]
    """More callbacks, for this run."""


class RunOptions(ResumeOptions, total=False):
    """What `run`, `stream` and `run_sync` take besides the input."""

    history: Sequence[Any] | RunResult[Any, Any]
    """Earlier messages, broken or not: of any wire, or an earlier result."""
    checkpoint_id: str | None
    """Keep the run in the agent's store under this id. If a conversation is there already, it goes on."""
    streaming: bool
    """Whether pieces of messages and results are sent as events; if not, the provider is not asked for a stream."""
    key: str | None
    """Identifies this input: a session does not run the same one twice."""
    language: str | None
    """Language of the texts that Suture writes in this run."""


@replaceable
class ChatModelAgent(msgspec.Struct, Generic[Out, Msg], frozen=True, kw_only=True, eq=False, dict=True, weakref=True):
    """A model that uses tools until it has an answer. Immutable: any number of runs can go on at once.

    `ChatModelAgent[City]` returns a `City`: `result.output` has the type `output_type`, or `str` if none is given. For
    type checkers, a second parameter is the type of the messages, `Message` if it is left out.

    Args:
        model: the model, or its name such as `"openai:gpt-5-mini"`. Its wire is the wire of all messages of this agent.
        name: its name in events, and the tool's name when the agent is a tool.
        description: what it is for; other models read this when the agent is a tool.
        instruction: the system prompt, or a function that returns it when a run begins, plain or async, with or without
            the `RunContext`. Never part of the messages, never formatted as a template.
        tools: functions, `Tool`s, other agents' `as_tool()`, or a `ToolsConfig`.
        middlewares: wrapped around turns and calls, the first one outermost.
        repair: whether the history is repaired before each turn. If `False`, requests are still fitted to the profile.
        max_iterations: how many model turns a run may take.
        on_max_iterations: what happens then: an error, or one last turn without tools. Also when a budget is used up.
        budget: how many tokens, how much money and how many tool calls a run may use.
        return_directly: names of tools whose result ends the run.
        sequential: whether the calls of a turn run one after another.
        model_retry_config: when a model turn is tried again; by default twice, if the model's error may pass.
            `None` turns it off.
        failover: other models for when one fails.
        tool_errors: whether a tool's exception is reported to the model, or ends the run.
        format_tool_error: makes the text that reports a tool's exception to the model.
        output_key: the session value that the final text is kept under.
        output_type: the type of the final answer: the model is asked for it, and its answer is checked and parsed.
        input_builder: `(instruction, messages) -> messages` that a run starts with.
        checkpoint_store: keeps runs that are given a `checkpoint_id`, so that they can be resumed.
        callbacks: called when the agent, the model and tools start, end or fail.
        redact: called with each message, `Delta`, `ToolResult`, text of arguments or error, and `info` of an interrupt
            before it goes into an event or a store; what it returns goes there instead.
        language: language of the texts that Suture writes; by default the one set with `set_language`.

    >>> from suture.testing import ScriptedModel
    >>> ChatModelAgent(model=ScriptedModel(["hello"])).run_sync("hi").output
    'hello'
    """

    model: Model[Msg] | str
    name: str = "agent"
    description: str = ""
    instruction: str | Callable[..., str | Awaitable[str]] = ""
    tools: Sequence[AnyTool] | ToolsConfig = ()
    middlewares: Sequence[ChatModelAgentMiddleware[Any] | AgentMiddleware] = ()
    repair: bool = True
    max_iterations: int = 20
    on_max_iterations: Literal["raise", "answer"] = "raise"
    budget: Budget | None = None
    return_directly: Sequence[str] | AbstractSet[str] = ()
    sequential: bool = False
    model_retry_config: ModelRetryConfig | None = HICCUPS
    failover: ModelFailoverConfig | None = None
    tool_errors: Literal["result", "raise"] = "result"
    format_tool_error: Callable[[Exception], str] | None = None
    output_key: str | None = None
    output_type: "type[Out] | TypeUnion[Out] | Sequence[type[Out]]" = str  # pyright: ignore[reportAssignmentType]
    input_builder: Callable[[str, Sequence[Any]], Any] | None = None
    checkpoint_store: Store | None = None
    callbacks: Callbacks | Sequence[Callbacks] | None = None
    redact: Callable[[Any], Any] | None = None
    language: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.model, str):
            force_setattr(self, "model", get_model(self.model))
        _check_settings(self)
        _ = self._bare_spec  # raises now if tools or middlewares are wrong

    def __repr__(self) -> str:
        return f"<ChatModelAgent {self.name!r}>"

    @cached_property
    def _bare_spec(self) -> Spec:
        return _make_spec(self, cast("Model[Any]", self.model))

    @cached_property
    def spec(self) -> Spec:
        """The agent as the kernel takes it, with the default repair, whose room is imported only here."""
        listed: Sequence[Any] = self.middlewares
        spec, own = self._bare_spec, next((item for item in listed if hasattr(item, "fit_options")), None)
        if own is not None:
            spec = replace(spec, fit_options=own.fit_options, repairs=own.repairs_history)
        elif self.repair:
            from suture.middleware.patch_tool_calls import PatchToolCalls  # noqa: PLC0415 - only a run needs it

            patch = PatchToolCalls()
            before = compile_stack([patch, *listed], first=-1).before_model
            spec = replace(spec, stack=replace(spec.stack, before_model=before), fit_options=patch.fit_options)
        else:
            spec = replace(spec, repairs=False)
        own_answer: Any = next((item for item in listed if hasattr(item, "shorten")), None)
        return replace(spec, shorten=_shorten if own_answer is None else own_answer.shorten)

    async def run(self, input: Any = NOTHING, /, **options: Unpack[RunOptions]) -> RunResult[Out, Msg]:  # noqa: A002 - the word for it
        """Run to the end and return the result.

        `input` is a text, content parts, or messages of any wire (a whole history, broken or not). It comes after
        `history=`; without an input, that goes on as it is. See `RunOptions` for the rest.

        >>> import asyncio
        >>> from suture.testing import ScriptedModel
        >>> asyncio.run(ChatModelAgent(model=ScriptedModel(["hello"])).run("hi")).output
        'hello'
        """
        return await self.stream(input, **options).result()

    def run_sync(self, input: Any = NOTHING, /, **options: Unpack[RunOptions]) -> RunResult[Out, Msg]:  # noqa: A002
        """Run to the end from plain code, even inside a running event loop. Takes what `run` takes.

        >>> from suture.testing import ScriptedModel
        >>> ChatModelAgent(model=ScriptedModel(["hello"])).run_sync("hi").outcome.value
        'finished'
        """
        return run_blocking(self.run(input, **options))

    async def resume(
        self,
        run: str | RunResult[Any, Any],
        answer: Any = NOTHING,
        /,
        *,
        answers: Mapping[str, Any] | None = None,
        **options: Unpack[ResumeOptions],
    ) -> RunResult[Out, Msg]:
        """Resume a run from its checkpoint id or from its result, and return the new result.

        `answer` is for a run that waits for one thing; `answers` holds several, by interrupt id or call id. Interrupts
        without an answer are raised again. Without a store, the result holds the state of the run: resuming it twice
        makes a fork. Streaming and language stay as they were.
        """
        return await self.stream(resume=run, answer=answer, answers=answers, **options).result()

    def resume_sync(
        self,
        run: str | RunResult[Any, Any],
        answer: Any = NOTHING,
        /,
        *,
        answers: Mapping[str, Any] | None = None,
        **options: Unpack[ResumeOptions],
    ) -> RunResult[Out, Msg]:
        """Resume a run from plain code, even inside a running event loop. Takes what `resume` takes."""
        return run_blocking(self.resume(run, answer, answers=answers, **options))

    def stream(
        self,
        input: Any = NOTHING,  # noqa: A002 - the word for it
        /,
        *,
        resume: str | RunResult[Any, Any] | None = None,
        answer: Any = NOTHING,
        answers: Mapping[str, Any] | None = None,
        **options: Unpack[RunOptions],
    ) -> Run[Out, Msg]:
        """Return a live run, from an input or (`resume=`) from where it stopped: `async with agent.stream(…) as run`.

        >>> from suture.testing import ScriptedModel
        >>> ChatModelAgent(model=ScriptedModel(["hello"])).stream("hi")  # doctest: +ELLIPSIS
        <Run ...: not begun>
        """
        return Run(self._work(input, resume, answer, answers, options))

    async def advance(
        self,
        run: str,
        input: Any = NOTHING,  # noqa: A002 - the word for it
        /,
        *,
        answers: Mapping[str, Any] | None = None,
        **options: Unpack[RunOptions],
    ) -> Standing:
        """Do the next step of a stored run and no more; return where the run stands then.

        One step is a model turn, the hooks after it, or all calls of a turn. With an `input` the run begins. A workflow
        engine that drives runs itself calls this until `phase` is `end`. If the run waits for an answer, nothing is
        raised and the phase stays; `resume` answers it.

        >>> import asyncio
        >>> from suture.stores import MemoryStore
        >>> from suture.testing import ScriptedModel
        >>> agent = ChatModelAgent(model=ScriptedModel(["hello"]), checkpoint_store=MemoryStore())
        >>> asyncio.run(agent.advance("job-1", "hi")).phase
        'after'
        >>> asyncio.run(agent.advance("job-1")).phase
        'end'
        """
        begins = input is not NOTHING or bool(options.get("history"))
        options = cast("RunOptions", {**options, "checkpoint_id": run})
        work = self._work(input, None if begins else run, NOTHING, answers, options, advance)
        task = work.begin(listens=False)
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            work.stop("now", recursive=True)
            await run_to_the_end(asyncio.wait([task]))
            raise
        task.result()
        if work.result is not None and work.result.error is not None:
            raise work.result.error
        return work.standing

    def session(self, session_id: str, *, busy: Literal["wait", "refuse"] = "wait") -> "Session[Out, Msg]":
        """Return a conversation over many runs and processes, kept in the agent's store.

        `await session.run("…")` starts it, continues it, or resumes what a dead process left behind. One process writes
        at a time: others wait, or are refused (`busy="refuse"`).

        >>> from suture.stores import MemoryStore
        >>> from suture.testing import ScriptedModel
        >>> agent = ChatModelAgent(model=ScriptedModel(["hello"]), checkpoint_store=MemoryStore())
        >>> agent.session("user-42")
        <Session 'user-42'>
        """
        from suture.sessions import Session  # noqa: PLC0415 - only who has one pays for it

        if self.checkpoint_store is None:
            raise ConfigError("a session needs an agent with a checkpoint_store")
        return Session(self, session_id, busy)

    async def checkpoints(self, run: str, /) -> "list[Checkpoint]":
        """Return the places in a stored run that `fork` can go back to, in order."""
        from suture.kernel.storage import read_checkpoints  # noqa: PLC0415 - only who stores runs pays for it

        return await read_checkpoints(self.spec, run)

    async def fork(self, run: str, position: int, new_run: str, /) -> None:
        """Make `new_run`, which goes on from a checkpoint's position in `run`; `run` stays as it is.

        Continue it with `resume` if the checkpoint is inside a run, and with `run` and a new input if it is at the end.

        >>> import asyncio
        >>> from suture.stores import MemoryStore
        >>> from suture.testing import ScriptedModel
        >>> agent = ChatModelAgent(model=ScriptedModel(["one", "two"]), checkpoint_store=MemoryStore())
        >>> async def go_back():
        ...     await agent.run("hi", checkpoint_id="a")
        ...     await agent.fork("a", (await agent.checkpoints("a"))[0].position, "b")
        ...     return (await agent.resume("b")).output
        >>> asyncio.run(go_back())
        'two'
        """
        from suture.kernel.storage import fork_run  # noqa: PLC0415 - only who stores runs pays for it

        await fork_run(self.spec, run, position, new_run)

    async def compact(self, run: str, /) -> None:
        """Shorten the journal of a conversation whose last run has finished; the conversation goes on as before.

        Each message is kept once. Checkpoints are removed, and the keys of all inputs but the last.
        """
        from suture.kernel.storage import compact_run  # noqa: PLC0415 - only who stores runs pays for it

        await compact_run(self.spec, run)

    def as_tool(
        self,
        *,
        name: str | None = None,
        description: str | None = None,
        input_schema: Mapping[str, Any] | None = None,
        forward_events: bool = True,
    ) -> Tool[..., Any]:
        """Return this agent as a tool for another one.

        Its run is part of the outer run: its events are forwarded with their own run path, its interrupts are
        resumed through the outer run, session values are shared. Without `input_schema` it takes one text,
        `request`; with one, the JSON text of the arguments becomes its user message.

        >>> from suture.testing import ScriptedModel
        >>> ChatModelAgent(name="writer", description="Writes.", model=ScriptedModel([])).as_tool().name
        'writer'
        """
        purpose = description or self.description
        if not purpose:
            raise ConfigError(f"agent {self.name!r} needs a description to be a tool: other models choose by it")

        async def call(arguments: str, **_: Any) -> Any:
            spec = self.spec
            text: Any = arguments or "{}"
            if input_schema is None:
                try:
                    text = msgspec.json.decode(arguments or "{}", type=dict[str, Any]).get("request")
                except msgspec.DecodeError as error:
                    raise ToolArgumentsError(f"the arguments must be a JSON object: {error}") from None
                if not isinstance(text, str) or not text.strip():
                    raise ToolArgumentsError("arguments.request: expected a text that says what to do")
            return read_result(await run_nested(spec, [spec.wire.user(text)], forwards_events=forward_events))

        own_name = _NO_TOOL_NAME.sub("_", self.name)[:_LONGEST_NAME]
        info = ToolInfo(name or own_name, purpose, input_schema or _REQUEST)
        made: Tool[..., Any] = Tool(info=info, kind="invokable", endpoint=call, idempotent=True)
        return as_tools([made])[0]

    def describe(self) -> str:
        """Return what wraps a model turn and a tool call, outermost first, and the tools that the model sees.

        >>> from suture.testing import ScriptedModel
        >>> print(ChatModelAgent(name="greeter", model=ScriptedModel([]), repair=False).describe())
        greeter: ScriptedModel (wire message, profile pairing)
          model turn: retry > event sender > fit > callbacks > ScriptedModel
          tool call:  event sender > callbacks > tool
          tools:      none
        """
        from suture.kernel.description import describe  # noqa: PLC0415 - only who asks pays for it

        return describe(self.spec, self.middlewares)

    def _work(
        self,
        given: Any,
        resumed: str | RunResult[Any, Any] | None,
        answer: Any,
        answers: Mapping[str, Any] | None,
        options: RunOptions,
        go: Go = drive,
    ) -> Work:
        """Return one run that has not begun."""
        if resumed is not None and (given is not NOTHING or options.get("history")):
            raise ConfigError("a run begins with an input or history=, or with resume=: one of the two")
        if options or answers:
            _check_options(options, answers)
        spec = self.spec
        if "callbacks" in options:
            spec = replace(spec, callbacks=(*spec.callbacks, *_as_callbacks(options["callbacks"])))
        run = Execution.new(
            spec,
            resolve_language(options.get("language") or self.language),
            streaming=bool(options.get("streaming", True)),
            session=dict(options.get("session") or {}),
            key=options.get("key") or "",
        )
        run.deps = options.get("deps")
        run.options, run.tool_options = options.get("options") or {}, options.get("tool_options") or {}
        run.after_tool_calls = options.get("after_tool_calls")
        run.checkpoint_id = options.get("checkpoint_id")
        if resumed is None:
            history = options.get("history")
            goes_on = given is NOTHING and not history and run.checkpoint_id is not None
            return Work(run, Begin(Intake() if goes_on else read_input(spec.wire, given, history)), go)
        asked = resumed.interrupts if isinstance(resumed, RunResult) else ()
        start = Begin(resumes=True, answer=answer, asked=asked, answers=answers or {})
        if isinstance(resumed, str):
            run.checkpoint_id = resumed
        elif not isinstance(resumed, RunResult):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"a run is resumed by its result or its checkpoint_id, not by {type(resumed).__name__}")
        else:
            run.checkpoint_id = resumed.checkpoint_id
            if run.checkpoint_id is None:
                if resumed.snapshot is None and resumed.outcome is Outcome.FINISHED:
                    raise ResumeError("this run has finished; to continue, run the agent with history=result.messages")
                if resumed.snapshot is None:
                    raise ResumeError("this run cannot be resumed: it ended before it had begun")
                start = replace(start, snapshot=resumed.snapshot)
        return Work(run, start, go)


def _shorten(*refused: Any) -> Any:
    """Shorten a request that the provider refused as too long, for an agent that has no `Compaction` of its own."""
    return import_module("suture.middleware.compaction").Compaction().shorten(*refused)


def _make_spec(agent: ChatModelAgent[Any, Any], model: Model[Any]) -> Spec:
    config = agent.tools if isinstance(agent.tools, ToolsConfig) else ToolsConfig(tools=agent.tools)
    stack = compile_stack(agent.middlewares, config.tool_call_middlewares)
    older = [item for item in agent.middlewares if isinstance(item, AgentMiddleware)]
    output = make_output_rule(agent.output_type)
    added = (*(item.additional_instruction for item in older), output.instruction if output else "")
    return Spec(
        name=agent.name,
        instruction=make_instruction(agent.instruction, added),
        model=model,
        wire=get_chat_wire(model.wire),
        tools=as_tools([*config.tools, *(tool for item in older for tool in item.additional_tools)]),
        return_directly=frozenset(agent.return_directly) | frozenset(config.return_directly),
        stack=stack,
        rings=compile_rings(stack),
        fit_options={},
        max_iterations=agent.max_iterations,
        answers_at_limit=agent.on_max_iterations == "answer",
        budget=agent.budget,
        retry=agent.model_retry_config,
        failover=agent.failover,
        sequential=agent.sequential or config.sequential,
        raises_tool_errors=agent.tool_errors == "raise",
        format_tool_error=agent.format_tool_error,
        callbacks=_as_callbacks(agent.callbacks),
        output_key=agent.output_key,
        output=output,
        input_builder=agent.input_builder,
        store=agent.checkpoint_store,
        redact=agent.redact,
    )


def _as_callbacks(given: Callbacks | Sequence[Callbacks] | None) -> tuple[Callbacks, ...]:
    """Return the callbacks that were passed: none, one, or several."""
    return () if given is None else (given,) if isinstance(given, Callbacks) else tuple(given)


# --- settings -------------------------------------------------------------------------------------


def _check_settings(agent: ChatModelAgent[Any, Any]) -> None:
    """Raise `ConfigError` if a setting of an agent is wrong."""
    name: Any = agent.name
    if not isinstance(name, str) or not name or "/" in name or "#" in name:
        raise ConfigError(f"an agent's name is part of addresses: a text, not empty, without / and #; got {name!r}")
    for setting, known in _WORDS.items():
        if getattr(agent, setting) not in known:
            raise ConfigError(f"unknown {setting} {getattr(agent, setting)!r}; known: {', '.join(known)}")
    if type(agent.max_iterations) is not int or agent.max_iterations < 1:
        raise ConfigError(f"max_iterations counts model turns, 1 or more; got {agent.max_iterations!r}")
    for setting in ("tools", "middlewares", "return_directly"):
        given: Any = getattr(agent, setting)
        kinds = (Sequence, AbstractSet) if setting == "return_directly" else (Sequence, ToolsConfig)
        if isinstance(given, str) or not isinstance(given, kinds):
            raise ConfigError(f"{setting} takes a list; put a single one into a list. Got {type(given).__name__}")
    for setting, kinds in _KINDS.items():
        given = getattr(agent, setting)
        if given is not None and not isinstance(given, kinds):
            wanted = " or a ".join(kind.__name__ for kind in kinds)
            raise ConfigError(f"{setting} takes a {wanted}, not {type(given).__name__}")
    store = agent.checkpoint_store
    if store is not None and not (hasattr(store, "append") and hasattr(store, "load")):
        raise ConfigError(f"checkpoint_store takes a store, such as SQLiteStore(path), not {type(store).__name__}")
    resolve_language(agent.language)
    for other in (agent.model, *(agent.failover.models if agent.failover is not None else ())):
        _check_model(other)
        if cast("Any", other).wire != cast("Any", agent.model).wire:
            raise ConfigError(
                f"a failover model speaks {cast('Any', other).wire}, and the agent's model speaks "
                f"{cast('Any', agent.model).wire}"
            )


def _check_model(model: Any) -> None:
    if isinstance(model, type):
        raise ConfigError(f"model takes an instance of {model.__name__}, not the class")
    if isinstance(model, str):
        raise ConfigError(f"a failover takes models, not names; suture.models.get_model({model!r}) gives one")
    for part in ("wire", "profile", "stream"):
        if not hasattr(model, part):
            raise ConfigError(
                f"{type(model).__name__} is not a model: it has no {part}; give a model such as "
                'OpenAIChatModel("gpt-5-mini"), or a name such as "openai:gpt-5-mini"'
            )
    wire = get_chat_wire(model.wire)
    profile = get_profile(model.profile)
    if not wire.native and not profile.speaks_of(wire.name):
        raise ConfigError(f"profile {profile.name} has no rules for {wire.name} messages")


def _check_options(options: RunOptions, answers: object) -> None:
    unknown = options.keys() - RunOptions.__annotations__.keys()
    if unknown:
        known, name = ", ".join(sorted(RunOptions.__annotations__)), min(unknown)
        where = f"a run takes {known}, and those of the model in options={{{name!r}: …}}"
        raise TypeError(f"an unexpected keyword argument: {name!r}; {where}")
    key: Any = options.get("key") or ""
    if not isinstance(key, str) or key != replace_surrogates(key):
        raise ConfigError(f"the key of an input is a text, without half characters, not {key!r}")
    mappings = {name: options.get(name) for name in ("session", "options", "tool_options")}
    for name, given in {**mappings, "answers": answers}.items():
        if given is not None and not isinstance(given, Mapping):
            hint = "; answer by interrupt id or call id: {id: data}" if name == "answers" else ""
            raise ConfigError(f"{name} takes a mapping, not {type(given).__name__}{hint}")
