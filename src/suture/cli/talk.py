"""A chat without its terminal: the conversation and its file, and the agent that the options describe."""

import os
import stat
import sys
from argparse import Namespace
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, cast

import msgspec

from suture.agent import ChatModelAgent
from suture.cli.files import open_source
from suture.cli.output import Outputs
from suture.cli.refusals import Refusal, describe_error, refusing
from suture.errors import InputError
from suture.kernel import (
    AskModel,
    CallTool,
    ChatModelAgentMiddleware,
    ChatModelAgentState,
    Model,
    ModelContext,
    ModelRequest,
    ToolCallRequest,
)
from suture.messages import AgenticMessage, Message, TokenUsage, ToolResult, to_json
from suture.middleware import PatchToolCalls, ToolReduction
from suture.models import get_model
from suture.stores import LocalBackend, MemoryStore
from suture.tools import Tool, as_tools
from suture.wires import ChatWire, recognise, sendable

_KINDS = {"message": Message, "agentic": AgenticMessage}
_PRIVATE = 0o600


class Talk:
    """The conversation so far. With a `path` it continues the one in that file, and `keep` writes every change there.

    >>> from suture.wires import get_chat_wire
    >>> talk = Talk(get_chat_wire("message"))
    >>> talk.keep([Message.user("hi"), Message.assistant("hello")])
    >>> [message.content for message in talk.undo()], list(talk.messages)
    (['hi', 'hello'], [])
    """

    def __init__(self, wire: ChatWire, path: str | None = None) -> None:
        self.wire, self.path = wire, path
        self._file = os.path.abspath(path or "")  # noqa: PTH100 - of a string; a tool may go to another directory
        self.usage = TokenUsage()
        self.messages: Sequence[Any] = ()
        self._seen: tuple[int, ...] | None = None
        if path == "-":
            raise Refusal("a history is kept in a file, not in a stream", "--history -")
        if path is not None:
            self._seen = _state_of(path)
            is_written = self._seen is not None and self._seen[1]  # it may have been created and never written
            self.messages = _load(path, wire.name) if is_written else ()
            with Outputs() as outputs:
                outputs.open(path)  # refuses now what cannot be written later

    def keep(self, messages: Sequence[Any]) -> None:
        """Make these the conversation and write them; raise `Refusal` if they cannot be written."""
        self.messages = messages
        self.write(messages)

    def write(self, messages: Sequence[Any]) -> None:
        """Replace the content of the file with these, in one step."""
        if self.path is None:
            return
        if _state_of(self._file) != self._seen:
            raise Refusal("was changed by another program; this chat is no longer kept in it", self.path)
        try:
            data = to_json(messages)
        except InputError as error:
            raise Refusal(f"cannot be written: {error}", self.path) from None
        if self._seen is None:
            with suppress(OSError):  # refused below
                os.close(os.open(self._file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _PRIVATE))
        try:
            with Outputs() as outputs:
                outputs.open(self._file).write(data + b"\n")
                outputs.publish()
        except Refusal as refusal:
            raise Refusal(refusal.reason, self.path) from None
        finally:
            self._seen = _state_of(self._file)

    def spend(self, usage: TokenUsage) -> None:
        """Add the token usage of a turn."""
        sums = {name: getattr(self.usage, name) + getattr(usage, name) for name in TokenUsage.__struct_fields__}
        self.usage = TokenUsage(**sums)

    def undo(self) -> Sequence[Any]:
        """Remove the last message of the user and everything after it, and return what was removed."""
        for place in range(len(self.messages) - 1, -1, -1):
            view = self.wire.view(self.messages[place])
            if view.role == "user" and not view.results:
                taken = self.messages[place:]
                self.keep(list(self.messages[:place]))
                return taken
        return ()


def _state_of(path: str) -> tuple[int, ...] | None:
    """Return values that change when a file is written; `None` if it does not exist."""
    with refusing(path, verb="read"):
        try:
            status = os.stat(path)  # noqa: PTH116 - a path from the command line is a string
        except FileNotFoundError:
            return None
    if not stat.S_ISREG(status.st_mode):
        raise Refusal("is no file that a history can be kept in", path)
    return status.st_ino, status.st_size, status.st_mtime_ns


def _load(path: str, wire: str) -> Sequence[Any]:
    """Return the messages of a file; refuse it unless it holds one conversation of this wire."""
    with open_source(path) as source:
        found = list(source)
        if len(found) > 1:
            raise Refusal(f"holds {len(found)} conversations; a chat continues one", path)
        messages, _ = found[0].take(None)
    if all(isinstance(message, _KINDS[wire]) for message in messages):
        return messages
    names = [kind for kind, type_of in _KINDS.items() if any(isinstance(message, type_of) for message in messages)]
    if not names:
        with suppress(InputError):
            names = list(recognise(messages))
        names = names if len(names) == 1 else []
    held = f"{' and '.join(names)} messages" if names else "messages of another provider"
    raise Refusal(f"holds {held}; make them {wire} messages first: suture convert --to {wire}", path)


# --- the agent ------------------------------------------------------------------------------------


def load_model(name: str) -> Model[Any]:
    """Return the model of this name: `PROVIDER:NAME`, or `MODULE:NAME` for one of the user's own.

    >>> load_model("ollama:qwen3").wire
    'message'
    """
    if ":" in name:
        _find_modules_here()
    place = f"--model {name}"
    try:
        model: Model[Any] = get_model(name)
        wire = model.wire
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a module of the user's may raise anything
        raise Refusal(describe_error(error), place) from None
    if wire not in _KINDS:
        raise Refusal(f"speaks {wire}; a chat takes a model that speaks one of {', '.join(_KINDS)}", place)
    return model


def load_tools(names: Sequence[str]) -> tuple[Tool[..., Any], ...]:
    """Return the tools of these names, `MODULE:NAME` each: a tool, a function, or a list of them.

    >>> load_tools(["suture.tools:exit_tool"])
    (Tool('exit_tool', kind='invokable'),)
    """
    found: list[Any] = []
    for name in names:
        thing = import_named(name, f"--tools {name}")
        each: list[Any] = list(cast("Any", thing)) if isinstance(thing, list | tuple) else [thing]
        try:
            found += as_tools(each)
        except Exception as error:  # noqa: BLE001 - what is read of a function is the user's
            raise Refusal(describe_error(error), f"--tools {name}") from None
    with refusing("--tools"):
        return as_tools(found)


def import_named(name: str, place: str) -> Any:
    """Import what `MODULE:NAME` names; modules in the current directory are found, too."""
    module, _, path = name.partition(":")
    if not module or not path:
        raise Refusal("expected MODULE:NAME", place)
    _find_modules_here()
    try:
        found: Any = import_module(module)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a module of the user's may raise anything
        raise Refusal(f"{module} cannot be imported: {describe_error(error)}", place) from None
    for step in path.split("."):
        if not hasattr(found, step):
            where = getattr(sys.modules[module], "__file__", None) or "no file"
            raise Refusal(f"there is no {step} in {module} ({where})", place)
        found = getattr(found, step)
    return found


def _find_modules_here() -> None:
    """Make modules in the current directory importable; installed ones come first."""
    if not {"", os.getcwd()} & set(sys.path):  # noqa: PTH109 - as `sys.path` has it
        sys.path.append(os.getcwd())  # noqa: PTH109


def make_agent(
    asked: Namespace, model: Model[Any], tools: Sequence[Tool[..., Any]], talk: Talk, store: MemoryStore, outputs: str
) -> ChatModelAgent[Any, Any]:
    """Return an agent that repairs and keeps its history, and saves long and old output."""
    reduction = ToolReduction(
        LocalBackend(outputs),
        max_tokens_for_clear=asked.max_tokens_for_clear,
        add_reading_tools=bool(tools),  # without tools there is no output to read
    )
    return ChatModelAgent(
        name="chat",
        instruction=asked.instruction,
        model=model,
        tools=tools,
        middlewares=[PatchToolCalls(), reduction, _Guard(talk)],
        on_max_iterations="answer",
        format_tool_error=describe_error,
        checkpoint_store=store,
    )


class _Guard(ChatModelAgentMiddleware[Any]):
    """Writes the conversation during a turn, so that a process that dies loses at most one step.

    It also turns attempts to end the program into errors, and makes sure that replies are valid Unicode.
    """

    def __init__(self, talk: Talk) -> None:
        self._talk = talk

    def before_model_rewrite_state(self, state: ChatModelAgentState[Any], model_context: ModelContext) -> None:
        with suppress(Refusal):  # reported at the end of the turn, when it fails again
            self._talk.write(state.messages)

    after_model_rewrite_state = before_model_rewrite_state

    async def wrap_model_call(self, request: ModelRequest[Any], proceed: AskModel) -> Any:
        with _catch_exits():
            return _to_unicode(await proceed(request))

    async def wrap_tool_call(self, call: ToolCallRequest, proceed: CallTool) -> ToolResult:
        with _catch_exits():
            return await proceed(call)


@contextmanager
def _catch_exits() -> Generator[None]:
    """Turn an attempt to end the program into an error. Signals do not raise during a turn, so a tool or model did."""
    try:
        yield
    except (SystemExit, KeyboardInterrupt) as error:
        raise RuntimeError(f"it tried to end the program ({describe_error(error)})") from error


def _to_unicode(value: Any) -> Any:
    """Return a value with each lone surrogate replaced by U+FFFD, since it can neither be sent nor saved."""
    try:
        msgspec.json.encode(value, enc_hook=repr)
    except UnicodeEncodeError:
        kind: type[Any] = value.__class__
        return msgspec.convert(sendable(msgspec.to_builtins(value)), kind)
    return value
