"""The beginning of a run: its input, its stored past, and what `before_agent` makes of it."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from suture.errors import ConfigError, InputError, ResumeError
from suture.events import RunStarted
from suture.kernel._awaiting import settled
from suture.kernel._contexts import ChatModelAgentContext
from suture.kernel._interrupt import Approval
from suture.kernel._journal import Journal
from suture.kernel._machine import Phase, Position
from suture.kernel._policies import Component
from suture.kernel._records import VERSION, Began, Entered, Record, Resumed, decode_records
from suture.kernel._replay import Restored, check_answers, close_batch, reopen_calls, replay
from suture.kernel._scope import Scope, current_frame
from suture.kernel._telling import tell
from suture.kernel._typed import encode_value
from suture.messages import FrozenMap, History
from suture.tools import as_tools
from suture.wires import ChatWire

__all__ = ["Begin", "begin", "read_input"]


class Begin(NamedTuple):
    """How a run is to begin: with an input, or (`resumes`) from a checkpoint with answers."""

    messages: Sequence[Any] = ()
    resumes: bool = False
    answers: Mapping[str, Any] = FrozenMap()
    nested: bool = False
    """Inside another run: it goes on from where it was, if it was anywhere."""


def read_input(wire: ChatWire, given: Any) -> list[Any]:
    """Return the messages that an input stands for: a text, content parts, a message, or a whole history."""
    if isinstance(given, str):
        return [wire.user(given)]
    if isinstance(given, bytes) or (not isinstance(given, Sequence) and not _is_message(wire, given)):
        raise InputError(f"a run takes a text, content parts or messages, not {type(given).__name__}")
    if not isinstance(given, Sequence):
        given = [given]
    items: list[Any] = list(given)  # pyright: ignore[reportUnknownArgumentType]
    if items and not any(_is_message(wire, item) for item in items) and all(_is_part(item) for item in items):
        return [wire.user(items)]
    for index, message in enumerate(items):
        if wire.native and isinstance(message, Mapping):
            raise InputError(
                f"this agent's model speaks {wire.name}, and this is a dict; make it with suture.messages, or use a "
                "model that speaks openai-chat",
                index=index,
            )
        wire.view(message, index)
    return items


def _is_message(wire: ChatWire, item: Any) -> bool:
    return wire.claims(item) is not False


def _is_part(item: Any) -> bool:
    if isinstance(item, Mapping):
        return "type" in item and "role" not in item
    return hasattr(item, "__struct_fields__") and not hasattr(item, "role")


async def begin(scope: Scope, start: Begin) -> Position:
    """Load what is stored, run the `before_agent` hooks, and return where the run stands."""
    restored = await _load(scope, start)
    if start.nested:
        start = start._replace(resumes=restored is not None)
    if restored is None:
        scope.history = History(start.messages)
        position = Position()
    elif start.nested and restored.outcome == "finished":
        position = Position(phase=Phase.GATHERED, ends=True)
    elif start.resumes:
        position = restored.position
    else:
        close_batch(scope, restored.position, cancelled=restored.outcome == "cancelled")
        scope.history = scope.history.extend(start.messages)
        scope.number(restored.runs + 1)
        scope.forget_run()
        position = Position()
    if scope.emitter is not None:
        scope.emitter.send(
            RunStarted, messages=len(scope.history), resumed=start.resumes, checkpoint_id=scope.checkpoint_id
        )
    if scope.journal is not None and not start.resumes:
        _note_start(scope, scope.journal)
    if scope.spec.callbacks is not None:
        await tell(scope.spec.callbacks, "on_start", Component(kind="agent", name=scope.spec.name), scope.history)
    has_input = restored is not None and start.resumes and restored.entered
    await _before_agent(scope, resumed=has_input)
    if has_input:
        reopen_calls(scope)
    else:
        await _build_input(scope)
        if scope.journal is not None:
            scope.journal.note_history(scope.history)
            scope.journal.note(Entered())
            await scope.journal.flush()
    return position


def _note_start(scope: Scope, journal: Journal) -> None:
    journal.note(Began(VERSION, scope.run_id, scope.spec.name, scope.wire.name, scope.streaming, scope.language))
    journal.note_history(scope.history)
    for key, value in scope.session.items():
        journal.keep_value("session", key, encode_value(value))


async def _load(scope: Scope, start: Begin) -> Restored | None:
    """Read the stored past of a run, if there is any, and open its journal."""
    store, run = scope.spec.store, scope.checkpoint_id
    if run is None or store is None:
        if start.resumes:
            raise ConfigError("to resume, the agent needs the checkpoint_store that the run was kept in")
        if run is not None:
            raise ConfigError("a checkpoint_id needs an agent with a checkpoint_store")
        return None
    stored = await store.load(run)
    records = decode_records(run, stored)
    journal = Journal(scope.spec, store, run, len(stored))
    if not records:
        if start.resumes:
            raise ResumeError(f"there is no checkpoint {run!r} in this store")
        scope.journal = journal
        return None
    _check_wire(scope, records)
    session, language = dict(scope.session), scope.language
    restored = replay(scope, records)
    if not (start.resumes or start.nested):
        scope.language = language
    elif restored.began is not None:
        _take_over(scope, restored.began)
    scope.session.update(session)
    journal.take_over(scope.history)
    scope.usage_before = scope.usage
    if start.nested:
        start = start._replace(
            resumes=True, answers={key: start.answers[key] for key in restored.asked if key in start.answers}
        )
    if start.resumes and not (start.nested and restored.outcome == "finished"):
        scope.partial = None
        given = {address: _plain_answer(data) for address, data in start.answers.items()}
        check_answers(run, restored, scope.answers, given)
        journal.note(Resumed({address: encode_value(data) for address, data in given.items()}))
        scope.answers.update(given)
        scope.resumes += 1
        await journal.flush()
    scope.journal = journal
    return restored


def _plain_answer(data: Any) -> Any:
    return {"approved": data.approved, "reason": data.reason} if isinstance(data, Approval) else data


def _check_wire(scope: Scope, records: Sequence[Record]) -> None:
    for record in records:
        if isinstance(record, Began) and record.wire != scope.wire.name:
            raise ResumeError(
                f"checkpoint {scope.checkpoint_id!r} holds {record.wire} messages, and this agent's model speaks "
                f"{scope.wire.name}"
            )


def _take_over(scope: Scope, began: Began) -> None:
    """Go on as the same run."""
    scope.run_id, scope.streaming = began.run_id, began.streaming
    if scope.emitter is not None:
        scope.emitter.run_id = began.run_id


async def _before_agent(scope: Scope, *, resumed: bool) -> None:
    spec = scope.spec
    frame = current_frame()
    frame.move(0, "before_agent")
    context: ChatModelAgentContext[Any] = ChatModelAgentContext(
        instruction=spec.instruction,
        tools=spec.tools,
        return_directly=spec.return_directly,
        messages=scope.history,
        resumed=resumed,
    )
    for hook in spec.stack.before_agent:
        scope.reached = hook.at
        frame.name = hook.frame
        changed = cast("ChatModelAgentContext[Any] | None", await settled(hook.call(context)))
        if changed is None:
            continue
        if not isinstance(changed, ChatModelAgentContext):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"{hook.name} must return a ChatModelAgentContext or None, not {type(changed).__name__}")
        if resumed and changed.messages is not context.messages:
            raise ConfigError(f"{hook.name}: messages are read-only when a run is resumed; check context.resumed")
        context = changed
    scope.reached = len(spec.stack.names)
    tools = as_tools(context.tools)
    scope.instruction = context.instruction
    scope.tools = {tool.name: tool for tool in tools}
    scope.return_directly = frozenset(context.return_directly)
    scope.history = History.of(context.messages)
    if not scope.edited_infos:
        scope.tool_infos, scope.deferred_tool_infos = tuple([tool.info for tool in tools]), ()


async def _build_input(scope: Scope) -> None:
    builder = scope.spec.input_builder
    if builder is not None:
        messages = await settled(builder(scope.instruction, scope.history))
        scope.history = History(read_input(scope.wire, messages))
