"""What a LangChain conversation has saved: where that goes, what of it may be read, and the tools that read it."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any, NamedTuple, NoReturn
from uuid import uuid4

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.config import get_config

from suture._aio import run_blocking
from suture.errors import NotInRunError
from suture.integrations.langchain.backends import Memory
from suture.messages import History, TextPart, ToolArgument, ToolResult
from suture.middleware.offload import BackendOf
from suture.middleware.reading_tools import reading_tools
from suture.middleware.record import Outside, Record
from suture.reduction import Saved, Settings
from suture.reduction.draft import SAVED, Terms, mark_saved, read_saved
from suture.reduction.texts import folded, safe_name
from suture.stores import FileBackend
from suture.tools import Tool, ToolArgumentsError
from suture.wires import Result, Wire, argument_json

_SEPARATOR = re.compile(r"[/\\]")


class Home(NamedTuple):
    """Where the output of a conversation is kept."""

    root: str
    """The beginning of the paths of what is saved next."""
    fence: str
    """The beginning of the paths that it may read: its own, and those of the agents inside of it."""

    def holds(self, path: str) -> bool:
        """Tell whether a path is behind the fence, and does not climb over it.

        >>> home = Home("/suture/a", "/suture/a/")
        >>> home.holds("/suture/a/trunc/x"), home.holds("/suture/b/trunc/x"), home.holds("/suture/a/../b/trunc/x")
        (True, False, False)
        """
        return path.startswith(self.fence) and ".." not in _SEPARATOR.split(path[len(self.fence) :])


def home_of(settings: Settings, messages: Sequence[Any]) -> Home:
    """Return where the output of the conversation at hand goes: to its thread's place, below `root_dir` if that is set.

    Without a thread it goes by its first message, whose id is its own.

    >>> home_of(Settings(root_dir="/data"), [ToolMessage("42", tool_call_id="a", id="m1")])
    Home(root='/data/run+m1', fence='/data/run+m1/')
    """
    above = "/suture" if settings.root_dir is None else settings.root_dir.rstrip("/")
    try:
        configurable: dict[str, Any] = dict(get_config().get("configurable", {}))
    except RuntimeError:
        configurable = {}
    thread = configurable.get("thread_id")
    if thread is None:
        first = getattr(messages[0], "id", None) if messages else None
        own = f"{above}/run+{safe_name(str(first or uuid4().hex))}"  # no thread's name has a plus
        return Home(own, own + "/")
    own = f"{above}/{safe_name(str(thread))}"
    outer = str(configurable.get("checkpoint_ns") or "").rpartition("|")[0]  # the last part is the node's
    inner = f"/{sha256(outer.encode()).hexdigest()[:12]}" if outer else ""
    return Home(own + inner, own + "/")


class Conversation(Record):
    """What one request, or the state of an agent, shows of a conversation; it is not kept.

    `held` is what the agent's state holds of it; `counts` knows how many tokens a message has.
    """

    def __init__(
        self, settings: Settings, messages: Sequence[Any], held: Sequence[Any], memory: Memory, counts: Any
    ) -> None:
        outside = Outside()  # an agent of ours may be running around this one; it is none of its business
        super().__init__(settings, lambda: outside)
        self.history: History[Any] = History(messages)
        self.home = home_of(settings, held or messages)
        self.backend_of: BackendOf = lambda _: None
        self.is_deep = False
        """Whether the agent is one of deepagents'."""
        self._memory, self._counts, self._found = memory, counts, dict[str, Saved]()

    @property
    def root(self) -> str:
        """Where output is kept."""
        return self.home.root

    def tally(self, wire: Wire) -> Any:
        """Return what counts tokens, for all the conversations of a middleware."""
        del wire
        return self._counts

    def note_saved(self, saved: Saved) -> dict[str, Any]:
        """Remember what was saved; return the mark for its result."""
        self.own(saved.path)
        return mark_saved(saved)

    def own(self, path: str) -> None:
        """Remember that this conversation has written to a path, which others may have chosen."""
        if not self.home.holds(path):
            self._memory.note((self.home.fence, path))

    def terms(self, backend_of: BackendOf) -> Terms:
        """Return what reducing a result depends on; no path that a mark names is written to, whoever's it is."""
        terms, marked = super().terms(backend_of), {folded(saved.path) for saved in _marked(self.history)}

        def is_taken(path: str) -> bool:
            return path in marked or terms.is_taken(path)

        return terms._replace(is_taken=is_taken, owner=self.root)

    def may_read(self, path: str) -> bool:
        """Tell whether a path is the conversation's own: it is behind its fence, or it was seen to write there."""
        return self.home.holds(path) or (self.home.fence, path) in self._memory

    def recorded(self) -> dict[str, Saved]:
        """Return what was saved, by folded path: as far as marks of results tell, and what `look` has found.

        A mark is believed where it names a path that this conversation may read: marks come with the messages, and
        these may come from anybody.
        """
        marked = {folded(saved.path): saved for saved in _marked(self.history)}
        return self._found | {path: saved for path, saved in marked.items() if self.may_read(saved.path)}

    async def look(self, path: object) -> None:
        """Find what was saved by results that are no longer there, as a summary has taken their place; also `path`."""
        known = self.recorded()
        for name in ("", *[name for name, config in self.settings.tool_config.items() if config.backend is not None]):
            backend = self.backend_of(name)
            if not isinstance(backend, FileBackend):
                continue
            paths = [path] if isinstance(path, str) and self.home.holds(path) else []
            with suppress(Exception):  # a store that cannot be listed
                paths += await backend.paths(self.home.fence)
            for each in paths:
                if folded(each) not in known and self.home.holds(each):
                    with suppress(Exception):  # nothing is there
                        phase = "clear" if "/clear/" in each else "trunc"
                        self._found[folded(each)] = Saved(each, "", name, phase, await backend.size(each))


def _marked(messages: Sequence[Any]) -> Iterator[Saved]:
    """Yield all that results say was saved, true or not."""
    for message in messages:
        if isinstance(message, ToolMessage) and SAVED in message.response_metadata:
            saved = read_saved(message.response_metadata, Result(message.tool_call_id, message.name or ""))
            if saved is not None:
                yield saved


class Reader:
    """Makes the tools that read what a conversation has saved, no more of it at once than `limit` characters.

    >>> [tool.name for tool in Reader("read_file", 20_000).tools]
    ['read_file', 'ls', 'grep']
    """

    def __init__(self, read_name: str, limit: int) -> None:
        self._read_name, self._limit = read_name, limit
        self._infos = {tool.name: tool.info for tool in self._tools_of(_nowhere)}
        self.names = frozenset(self._infos)
        """What the tools are called."""
        self.tools = [self.bound(name, lambda _: _nowhere()) for name in self._infos]
        """What the model is told: these belong to no conversation."""

    def bound(self, name: str, opening: Callable[[bool], Conversation]) -> BaseTool:
        """Return a tool that reads from the conversation which `opening` gives; that is told whether it may wait."""
        info = self._infos[name]
        schema = dict[str, Any](info.parameters or {})

        async def read(arguments: dict[str, Any], book: Conversation) -> str:
            await book.look(arguments.get("path"))
            tool = next(tool for tool in self._tools_of(lambda: book) if tool.name == name)
            known = {key: value for key, value in arguments.items() if key in schema["properties"]}
            try:
                return _text(await tool.endpoint(ToolArgument(argument_json(known))))
            except ToolArgumentsError as error:
                raise ToolException(str(error)) from error

        def plain(**arguments: Any) -> str:
            return run_blocking(read(arguments, opening(False)))  # noqa: FBT003 - said above

        async def waiting(**arguments: Any) -> str:
            return await read(arguments, opening(True))  # noqa: FBT003 - said above

        return StructuredTool(
            name=name,
            description=info.description,
            args_schema=schema,
            func=plain,
            coroutine=waiting,
            handle_tool_error=True,
        )

    def _tools_of(self, book: Callable[[], Conversation]) -> tuple[Tool[..., Any], ...]:
        return reading_tools(book, lambda name: book().backend_of(name), self._read_name, self._limit)


def _nowhere() -> NoReturn:
    raise NotInRunError("this tool reads what an agent's conversation has saved; it works inside an agent alone")


def _text(result: ToolResult) -> str:
    """Return what a tool says; raise it where it says what is wrong."""
    text = "".join([part.text for part in result.parts if isinstance(part, TextPart)])
    if result.is_error:
        raise ToolException(text)
    return text
