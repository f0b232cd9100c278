"""`ToolReductionMiddleware`: tool output that cannot overflow the context, in LangChain's agents and in deepagents."""

from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, cast

from langchain.agents.middleware.types import AgentMiddleware, ModelRequest, ToolCallRequest

from suture.agent import run_to_end
from suture.errors import ConfigError
from suture.integrations._langchain_backends import RUN_STORE, Backends, check_backend, is_readable
from suture.integrations._langchain_reading import Opened, Reader
from suture.integrations._langchain_reduction_results import Results
from suture.integrations._langchain_reduction_state import messages_of
from suture.integrations._langchain_reduction_turns import Turns
from suture.reduction import Settings, folded

__all__ = ["ToolReductionMiddleware"]


@dataclass(frozen=True, eq=False, repr=False)
class ToolReductionMiddleware(Settings, AgentMiddleware[Any, Any, Any]):
    """Keeps tool output from overflowing the context, in `create_agent` and in `create_deep_agent`.

    *Truncation*, when a tool returns: text longer than `max_length_for_trunc` is saved in the backend, and a notice
    with its beginning, its end and its path takes its place. *Clear*, before a model call: when the history has more
    than `max_tokens_for_clear` tokens, old results are saved and replaced by their paths, oldest first. What was
    replaced stays so in the agent's state: the next call begins with the same bytes. The model gets tools that read
    what was saved.

    A conversation reads its own output alone, which is at `/suture/{thread}/trunc/{call_id}` and
    `/suture/{thread}/clear/{call_id}`, or at `{root_dir}/{thread}/…`. In a run without a thread the id of its first
    message takes the thread's place: whoever knows that id can go on with the conversation, and read. Paths that
    your own functions or handlers choose can be read as long as this middleware, in this process, remembers that the
    conversation wrote them, and no longer: a mark in a message could name anybody's.

    Args:
        backend: where output is saved: one of `suture.stores`, a store of LangGraph, a key-value store of LangChain,
            a backend of deepagents or a function `runtime -> backend`, anything with `write(path, content)`; or
            `"store"`, the store that the agent was made with. It may be left out only together with `skip_truncation`.

    >>> from suture.stores import MemoryBackend
    >>> ToolReductionMiddleware(MemoryBackend(), max_tokens_for_clear=100_000).clear_retention_suffix_limit
    1
    """

    backend: Any = None
    _: KW_ONLY
    max_length_for_read: int = 20_000
    """How many characters the reading tools give at once."""
    add_reading_tools: bool = True
    """Whether the model gets `read_file`, `ls` and `grep` for what was saved, if the backend can be read. A tool of
    the agent's own with such a name is kept; asked for a path of this conversation, its `read_file` reads what was
    saved there."""
    on_backend_error: Literal["raise", "continue"] = "raise"
    """What happens when output cannot be saved: nothing is changed, and the run stops before the next model call, or
    goes on and a warning is logged."""

    _backends: Backends = field(default=cast("Any", None), init=False)
    _results: Results = field(default=cast("Any", None), init=False)
    _turns: Turns = field(default=cast("Any", None), init=False)
    _reader: Reader | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check()
        backends, results = Backends(self, self.backend), Results(self)
        reads = self.add_reading_tools and any(map(is_readable, backends.all()))
        made = {
            "_backends": backends,
            "_results": results,
            "_turns": Turns(self, results, self.on_backend_error),
            "_reader": Reader(self.read_file_tool_name, self.max_length_for_read) if reads else None,
        }
        for name, value in made.items():
            object.__setattr__(self, name, value)

    def _check(self) -> None:
        if self.on_backend_error not in {"raise", "continue"}:
            raise ConfigError(f"unknown on_backend_error {self.on_backend_error!r}; known: raise, continue")
        if type(self.add_reading_tools) is not bool:
            raise ConfigError(f"add_reading_tools must be True or False, found {self.add_reading_tools!r}")
        if type(self.max_length_for_read) is not int or self.max_length_for_read <= 0:
            raise ConfigError(f"max_length_for_read must be more than 0, found {self.max_length_for_read!r}")
        if not self.skip_truncation and self.backend is None:
            raise ConfigError(
                "backend must be set when not skipping truncation: a backend of suture.stores, a store, a backend of "
                'deepagents, or "store" for the one that the agent was made with; or pass skip_truncation=True'
            )
        for name, config in self.tool_config.items():
            without = self.backend is None and config.backend is None
            if config.skip_truncation is False and config.trunc_handler is None and without:
                raise ConfigError(f"tool_config[{name!r}]: backend must be set when not skipping truncation")

    # Before the model: what is too long is truncated, what is old is cleared

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]) -> Any:
        """Send a history that is not too long."""
        request = self._equipped(request)
        case = self._turns.look(request)
        if case is None:
            return handler(request)
        backend_of = self._backends.in_run(request.runtime, waits=False)
        ready = run_to_end(lambda: self._turns.reduce(case, backend_of))
        return ready.answered(handler(ready.request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[Any]]
    ) -> Any:
        """Send a history that is not too long."""
        request = self._equipped(request)
        case = self._turns.look(request)
        if case is None:
            return await handler(request)
        ready = await self._turns.reduce(case, self._backends.in_run(request.runtime, waits=True))
        return ready.answered(await handler(ready.request))

    def _equipped(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        """Return a request with the tools that read what was saved, but none whose name is taken."""
        if self.backend == RUN_STORE and getattr(request.runtime, "store", None) is None:
            check_backend(None)
        if self._reader is None:
            return request
        taken = {*map(_tool_name, request.tools)}
        new = [tool for tool in self._reader.tools if tool.name not in taken]
        return request.override(tools=[*request.tools, *new]) if new else request

    # When a tool returns: what is too long is truncated

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        """Give what a tool gave, not too long."""
        request = self._bound(request)
        given, call = handler(request), cast("dict[str, Any]", request.tool_call)
        if not self._results.is_due(given, call):
            return given
        opened = self._open(request, waits=False)
        return run_to_end(lambda: self._results.shortened(given, call, *opened))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """Give what a tool gave, not too long."""
        request = self._bound(request)
        given, call = await handler(request), cast("dict[str, Any]", request.tool_call)
        if not self._results.is_due(given, call):
            return given
        return await self._results.shortened(given, call, *self._open(request, waits=True))

    def _open(self, request: ToolCallRequest, *, waits: bool) -> Opened:
        """Return the conversation that a call belongs to, and its backends."""
        book = self._turns.conversations.open(messages_of(request.state))
        return Opened(book, self._backends.in_run(cast("Any", request).runtime, waits=waits))

    def _bound(self, request: ToolCallRequest) -> ToolCallRequest:
        """Return a request that calls our tool for this conversation, where it is ours that was called."""
        reader, name = self._reader, request.tool_call["name"]
        if reader is None or name not in reader.names:
            return request
        if request.tool is None:
            return request.override(tool=reader.bound(name, lambda waits: self._open(request, waits=waits)))
        path = self._path_asked_of(request)
        if path is None:
            return request
        call: Any = {**request.tool_call, "args": {**request.tool_call["args"], "path": path}}
        tool = reader.bound(name, lambda waits: self._open(request, waits=waits))
        return request.override(tool=tool, tool_call=call)

    def _path_asked_of(self, request: ToolCallRequest) -> str | None:
        """Return which saved output the agent's own reading tool is asked for; that tool cannot know where it is."""
        arguments = request.tool_call["args"]
        path = arguments.get("path", arguments.get("file_path"))
        if request.tool_call["name"] != self.read_file_tool_name or not isinstance(path, str):
            return None
        return path if folded(path) in self._open(request, waits=False).book.recorded() else None


def _tool_name(tool: Any) -> str:
    if not isinstance(tool, dict):
        return str(getattr(tool, "name", ""))
    told = cast("dict[str, Any]", tool)
    return str(told.get("name") or cast("dict[str, Any]", told.get("function") or {}).get("name", ""))
