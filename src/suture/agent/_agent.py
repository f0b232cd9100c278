"""`ChatModelAgent`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Literal, TypedDict, Unpack

import msgspec

from suture.agent._checks import check_choices, check_settings
from suture.agent._describe import describe
from suture.agent._fit import make_fit
from suture.agent._output import make_output_rule
from suture.agent._sync import run_to_end
from suture.errors import ConfigError
from suture.kernel import (
    AgentMiddleware,
    Begin,
    Budget,
    Callbacks,
    ChatModelAgentMiddleware,
    JournalStore,
    Model,
    ModelFailoverConfig,
    ModelRetryConfig,
    Run,
    RunResult,
    Scope,
    Spec,
    ToolsConfig,
    compile_stack,
    new_run_id,
    read_input,
    run_nested,
)
from suture.language import resolve_language
from suture.messages import M, Part, ToolInfo, UserInputBlock
from suture.middleware import PatchToolCalls
from suture.models import get_model
from suture.tools import AnyTool, Tool, ToolArgumentsError, as_tools
from suture.wires import get_chat_wire

__all__ = ["ChatModelAgent"]


_REQUEST = {
    "type": "object",
    "properties": {"request": {"type": "string", "description": "What the agent is to do."}},
    "required": ["request"],
    "additionalProperties": False,
}


class _Choices(TypedDict, total=False):
    """The keyword arguments of `run`."""

    streaming: bool
    checkpoint_id: str | None
    deps: Iterable[object]
    session: Mapping[str, Any] | None
    options: Mapping[str, Any] | None
    tool_options: Mapping[str, Any] | None
    after_tool_calls: Callable[[Any], Any] | None
    language: str | None


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ChatModelAgent(Generic[M]):
    """A model that uses tools until it has an answer. Immutable: any number of runs go on at once.

    >>> from suture.testing import ScriptedModel
    >>> agent = ChatModelAgent(name="greeter", model=ScriptedModel(["hello"]))
    >>> agent.run_sync("hi").output
    'hello'
    """

    model: Model[M] | str
    """Speaks the wire that all messages of this agent are of; or its name, such as `"openai:gpt-5-mini"`."""
    name: str = "agent"
    """In events, and the tool's name where the agent is a tool."""
    description: str = ""
    """What it is for; told to other models where the agent is a tool."""
    instruction: str = ""
    """What the model is told before everything else; never part of the messages, never formatted."""
    tools: Sequence[AnyTool] | ToolsConfig = ()
    """Functions, `Tool`s, other agents' `as_tool()`, or a `ToolsConfig`."""
    middlewares: Sequence[ChatModelAgentMiddleware[Any] | AgentMiddleware] = ()
    """What surrounds turns and calls, the first outermost."""
    max_iterations: int = 20
    """How many model turns a run may take."""
    on_max_iterations: Literal["raise", "answer"] = "raise"
    """What then: an error, or one last turn without tools. Budgets end a run the same way."""
    budget: Budget | None = None
    """Tokens, cost and tool calls that a run may use up."""
    return_directly: Sequence[str] | AbstractSet[str] = ()
    """Names of tools whose result ends the run."""
    sequential: bool = False
    """Whether the calls of a turn run one after another."""
    model_retry_config: ModelRetryConfig | None = None
    """When a model turn is tried again."""
    failover: ModelFailoverConfig | None = None
    """Other models for when one fails."""
    tool_errors: Literal["result", "raise"] = "result"
    """Whether a tool's exception is told to the model, or ends the run."""
    format_tool_error: Callable[[Exception], str] | None = None
    """What the model is told of a tool's exception."""
    output_key: str | None = None
    """The session value that the final text is kept under."""
    output_type: Any = None
    """The type of the final answer; it is asked for, checked and read."""
    input_builder: Callable[[str, Sequence[M]], Any] | None = None
    """`(instruction, messages) -> messages` that a run starts with."""
    checkpoint_store: JournalStore | None = None
    """Keeps runs that are given a `checkpoint_id`, so that they can be resumed."""
    callbacks: Callbacks | None = None
    """Told when agent, model and tools start, end and fail."""
    redact: Callable[[Any], Any] | None = None
    """Called with each message, `Delta`, `ToolResult`, text of arguments or error, and `info` of an interrupt before it
    goes into an event or a store; what it returns goes there instead. The run itself keeps what it has."""
    language: str | None = None
    """Of the texts that Suture writes; the one in force if not given."""
    _spec: Spec = field(init=False)

    def __post_init__(self) -> None:
        model: Model[Any] = get_model(self.model) if isinstance(self.model, str) else self.model
        object.__setattr__(self, "model", model)
        check_settings(self)
        config = self.tools if isinstance(self.tools, ToolsConfig) else ToolsConfig(tools=self.tools)
        stack = compile_stack(self.middlewares, config.tool_call_middlewares)
        output = make_output_rule(self.output_type)
        told = (self.instruction, *stack.instructions, output.instruction if output is not None else "")
        spec = Spec(
            name=self.name,
            instruction="\n\n".join(part for part in told if part),
            model=model,
            wire=get_chat_wire(model.wire),
            tools=as_tools([*config.tools, *stack.tools]),
            return_directly=frozenset(self.return_directly) | frozenset(config.return_directly),
            stack=stack,
            fit=partial(make_fit, next((item for item in self.middlewares if isinstance(item, PatchToolCalls)), None)),
            max_iterations=self.max_iterations,
            answers_at_limit=self.on_max_iterations == "answer",
            budget=self.budget,
            retry=self.model_retry_config,
            failover=self.failover,
            sequential=self.sequential or config.sequential,
            raises_tool_errors=self.tool_errors == "raise",
            format_tool_error=self.format_tool_error,
            callbacks=self.callbacks,
            output_key=self.output_key,
            output=output,
            input_builder=self.input_builder,
            store=self.checkpoint_store,
            redact=self.redact,
        )
        object.__setattr__(self, "_spec", spec)

    def __repr__(self) -> str:
        return f"<ChatModelAgent {self.name!r}>"

    def run(  # noqa: PLR0913 - choices of one run, by name
        self,
        input: str | M | Sequence[M | Part | UserInputBlock | Mapping[str, Any]],  # noqa: A002 - the word for it
        *,
        streaming: bool = True,
        checkpoint_id: str | None = None,
        deps: Iterable[object] = (),
        session: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        tool_options: Mapping[str, Any] | None = None,
        after_tool_calls: Callable[[Any], Any] | None = None,
        language: str | None = None,
    ) -> Run[M]:
        """Return a run: await it, iterate it, or enter it with `async with`.

        Args:
            input: a text, content parts, or messages: a whole history, broken or not.
            streaming: whether pieces of messages and results are sent as events.
            checkpoint_id: keep the run in the agent's store under this id; one that is there already goes on.
            deps: values for tools that ask for them by type.
            session: values shared by this run and the agents inside it.
            options: passed on to the model.
            tool_options: passed on to the tools' endpoints.
            after_tool_calls: called with the state after each turn's calls; may return a changed one.
            language: of the texts that Suture writes, for this run.

        >>> from suture.testing import ScriptedModel
        >>> agent = ChatModelAgent(name="greeter", model=ScriptedModel(["hello"]))
        >>> agent.run("hi").result is None
        True
        """
        check_choices(options=options, tool_options=tool_options, session=session)
        scope = self._scope(checkpoint_id, deps, language)
        scope.streaming = streaming
        scope.session.update(session or {})
        scope.options, scope.tool_options = options or {}, tool_options or {}
        scope.after_tool_calls = after_tool_calls
        return Run(scope, Begin(read_input(self._spec.wire, input)))

    def run_sync(
        self,
        input: str | M | Sequence[M | Part | UserInputBlock | Mapping[str, Any]],  # noqa: A002 - the word for it
        **choices: Unpack[_Choices],
    ) -> RunResult[M]:
        """Run to the end and return the result; takes what `run` takes. Works inside a running event loop, too.

        >>> from suture.testing import ScriptedModel
        >>> ChatModelAgent(name="greeter", model=ScriptedModel(["hello"])).run_sync("hi").outcome.value
        'finished'
        """
        return run_to_end(lambda: self.run(input, **choices))

    def resume(
        self,
        checkpoint_id: str,
        answers: Mapping[str, Any] | None = None,
        *,
        deps: Iterable[object] = (),
        options: Mapping[str, Any] | None = None,
        tool_options: Mapping[str, Any] | None = None,
        after_tool_calls: Callable[[Any], Any] | None = None,
    ) -> Run[M]:
        """Return a run that goes on from a checkpoint, with answers to its interrupts by their ids.

        Interrupts that are not answered are raised again. It streams as it did, in the language it had.

        >>> from suture.stores import MemoryStore
        >>> from suture.testing import ScriptedModel
        >>> agent = ChatModelAgent(name="a", model=ScriptedModel([]), checkpoint_store=MemoryStore())
        >>> agent.resume("c1", {"a/1/0/tool/0": True}).result is None
        True
        """
        check_choices(options=options, tool_options=tool_options, answers=answers)
        scope = self._scope(checkpoint_id, deps, None)
        scope.options, scope.tool_options = options or {}, tool_options or {}
        scope.after_tool_calls = after_tool_calls
        return Run(scope, Begin(resumes=True, answers=answers or {}))

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
        resumed through the outer checkpoint, session values are shared. Without `input_schema` it takes one text,
        `request`; with one, the JSON text of the arguments becomes its user message.

        >>> from suture.testing import ScriptedModel
        >>> ChatModelAgent(name="writer", description="Writes.", model=ScriptedModel([])).as_tool().name
        'writer'
        """
        spec = self._spec
        told = description or self.description
        if not told:
            raise ConfigError(f"agent {spec.name!r} needs a description to be a tool: other models choose by it")

        async def call(arguments: str, **_: Any) -> str:
            text = arguments if input_schema is not None else _request(arguments)
            output = await run_nested(spec, [spec.wire.user(text)], forwards_events=forward_events)
            return output if isinstance(output, str) else msgspec.json.encode(output).decode()

        info = ToolInfo(name or spec.name, told, input_schema or _REQUEST)
        made: Tool[..., Any] = Tool(info=info, kind="invokable", endpoint=call, idempotent=True)
        return as_tools([made])[0]

    def describe(self) -> str:
        """Print what surrounds a model turn and a tool call, outermost first; also return it.

        >>> from suture.testing import ScriptedModel
        >>> _ = ChatModelAgent(name="greeter", model=ScriptedModel([])).describe()
        greeter: ScriptedModel (wire message, profile pairing)
          model turn: event sender > fit > callbacks > ScriptedModel
          tool call:  event sender > callbacks > tool
          tools:      none
        """
        text = describe(self._spec)
        print(text)  # noqa: T201 - what it is for
        return text

    def _scope(self, checkpoint_id: str | None, deps: Iterable[object], language: str | None) -> Scope:
        spec = self._spec
        pinned = resolve_language(self.language if language is None else language)
        scope = Scope(spec, new_run_id(), spec.name, (spec.name,), pinned, checkpoint_id=checkpoint_id)
        if isinstance(deps, str | Mapping):
            raise ConfigError("deps is a list of values, found by their types; put a single one into a list")
        scope.dependencies = tuple(deps)
        return scope


def _request(arguments: str) -> str:
    try:
        decoded = msgspec.json.decode(arguments or "{}", type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise ToolArgumentsError(f"the arguments must be a JSON object: {error}") from None
    request = decoded.get("request")
    if not isinstance(request, str):
        raise ToolArgumentsError("arguments.request: expected a text that says what to do")
    return request
