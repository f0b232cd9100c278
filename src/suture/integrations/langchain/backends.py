"""The stores of LangChain programs as backends for tool output, and the output of a conversation in them.

A store of LangGraph, a key-value store of LangChain, a backend of deepagents, anything with `write(path, content)`:
each gets the form of a backend that never overwrites a file. The stores themselves overwrite silently, so a path is
read first, and meanwhile other writers in this process are kept away from it. Nothing of deepagents is imported.
"""

import re
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any
from uuid import uuid4

from langchain_core.stores import BaseStore as KeyValueStore
from langgraph.config import get_config
from langgraph.store.base import BaseStore

from suture._aio import settle
from suture.errors import ConfigError
from suture.integrations.langchain.wire import WIRE
from suture.middleware.record import BackendOf, Outside, Record
from suture.reduction import Saved, Settings
from suture.reduction.draft import Terms
from suture.reduction.texts import folded, safe_name
from suture.stores import FileBackend, PathNotFoundError, PathTakenError, StoreError, encode_text
from suture.wires import Wire

RUN_STORE = "store"
"""The name for the store that the agent was made with."""
_LISTED = 10_000
"""How many files of a conversation are listed."""
_REMEMBERED = 65_536
"""How many paths are remembered."""


class Memory(dict[Any, Any]):
    """What one middleware has lately written in this process: the digest at a path, and the paths of conversations."""

    def note(self, key: Any, value: Any) -> Any:
        """Remember a value, unless the key has one; return the remembered value."""
        known = self.setdefault(key, value)  # atomic, because threads share it
        while len(self) > _REMEMBERED:
            with suppress(RuntimeError):  # another thread did it
                self.pop(next(iter(self)), None)
        return known


class Backends:
    """The backends that one middleware was given.

    >>> from langgraph.store.memory import InMemoryStore
    >>> backend_of = Backends(Settings(), InMemoryStore()).in_run(None, waits=False)
    >>> isinstance(backend_of("search"), FileBackend)
    True
    """

    def __init__(self, settings: Settings, backend: Any) -> None:
        self._settings, self._backend, self.memory = settings, backend, Memory()
        given = [backend, *[config.backend for config in settings.tool_config.values()]]
        made = [_is_of_run(each) or adapt(each, self.memory) for each in given if each is not None]
        self.can_read = any(each is True or isinstance(each, FileBackend) for each in made)
        """Whether output can be read back; that is assumed of a backend that only a run has."""

    def in_run(self, runtime: Any, *, waits: bool) -> Callable[[str], Any]:
        """Return a function that returns the backend of a tool in one run; `waits` chooses async methods."""
        made: dict[int, Any] = {}

        def backend_of(name: str) -> Any:
            own = self._settings.config_of(name).backend
            given: Any = self._backend if own is None else own
            if given is not None and id(given) not in made:
                store = given
                if _is_of_run(given):
                    store = given(runtime) if callable(given) else getattr(runtime, "store", None)
                made[id(given)] = adapt(store, self.memory, waits=waits)
            return made.get(id(given))

        return backend_of


def _is_of_run(given: Any) -> bool:
    """Return whether only a run has the backend: its store, or the result of `lambda runtime: …`."""
    return given == RUN_STORE or (callable(given) and not isinstance(given, type) and not hasattr(given, "write"))


def adapt(store: Any, memory: Memory, *, waits: bool = False) -> Any:
    """Return a store in the form of a backend; refuse one that cannot keep tool output.

    >>> adapt(7, Memory())
    Traceback (most recent call last):
        ...
    suture.errors.ConfigError: a backend has write(path, content), or is a store; int is neither
    """
    if store is None:
        raise ConfigError(
            "output goes to the agent's store, and it has none; make the agent with store=…, or pass another backend"
        )
    if isinstance(store, type):
        raise ConfigError(f"a backend is an object, not a class; make one: {store.__name__}(…)")
    if isinstance(store, FileBackend):
        return store
    if isinstance(store, BaseStore):
        return _GraphStore(store, memory, waits=waits)
    if isinstance(store, KeyValueStore):
        return _KeyValues(store, memory, waits=waits)
    if all(callable(getattr(store, name, None)) for name in ("awrite", "aread", "download_files")):
        return _AgentFiles(store, memory, waits=waits)
    if callable(getattr(store, "write", None)):
        return _Writer(store, memory, waits=waits)
    raise ConfigError(f"a backend has write(path, content), or is a store; {type(store).__name__} is neither")


class _Writer:
    """Anything with `write`: it cannot be read, so only what this process has written is known."""

    def __init__(self, store: Any, memory: Memory, *, waits: bool) -> None:
        self.store, self._memory, self._waits = store, memory, waits

    async def write(self, path: str, content: str | bytes) -> None:
        """Write a file, unless the path has another one; the same content again is no error."""
        text = content if isinstance(content, str) else content.decode("utf-8", "surrogatepass")
        body = encode_text(text)
        key, digest = folded(path), sha256(body).digest()
        known = self._memory.note(key, digest)
        if known != digest:
            raise PathTakenError(path)
        done = False
        try:
            there = await self.find(path)
            if there is None:
                await self.put(path, text)
            done = there in (None, body)
        finally:
            if not done and known is digest:
                self._memory.pop(key, None)
        if not done:
            raise PathTakenError(path)

    async def find(self, path: str) -> bytes | None:
        """Return the content at a path, as far as it is known."""
        del path
        return None

    async def put(self, path: str, text: str) -> None:
        """Write a file over any other; raise the error that a backend of deepagents only returns."""
        result = await self.ask("write", path, text)
        error = getattr(result, "error", None)
        if error:
            raise StoreError(str(error))
        if getattr(result, "files_update", None):
            raise StoreError("this release of deepagents wants the caller to keep the file; use a newer one")

    async def ask(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Call a method of the store, preferably the async or the plain one as `waits` says, else the other."""
        names = (f"a{method}", method) if self._waits else (method, f"a{method}")
        for function in [getattr(self.store, name, None) for name in names]:
            if function is not None:
                with suppress(NotImplementedError):
                    return await settle(function(*arguments, **options))
        raise NotImplementedError(f"a {type(self.store).__name__} cannot {method}")


class _Shelf(_Writer, FileBackend):
    """A store that can be read as well, so files are never overwritten."""

    deleting = "delete"
    """The method that deletes."""

    def place(self, path: str) -> tuple[Any, ...]:
        """Return the arguments of the store's methods for a path."""
        return (path,)

    async def write_stream(self, path: str, chunks: AsyncIterable[bytes]) -> int:
        """Write a stream as a whole, since these stores take no pieces; the same content again is an error."""
        body = b"".join([chunk async for chunk in chunks])
        if await self.find(path) is not None:
            raise PathTakenError(path)
        await self.write(path, body)
        return len(body)

    async def read(self, path: str, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        """Yield the content of a file."""
        body = await self.find(path)
        if body is None:
            raise PathNotFoundError(path)
        yield body[start:stop]

    async def size(self, path: str) -> int:
        """Return how many bytes a file has."""
        return sum([len(chunk) async for chunk in self.read(path)])

    async def delete(self, path: str) -> None:
        """Delete a file."""
        await self.ask(self.deleting, *self.place(path))
        self._memory.pop(folded(path), None)

    async def paths(self, prefix: str = "") -> list[str]:
        """Return the paths below `prefix`, or none if the store cannot be listed."""
        del prefix
        return []

    async def expire(self, seconds: float) -> int:
        """Refuse, because the store itself decides how long it keeps things."""
        raise StoreError(f"the files in a {type(self.store).__name__} expire as the store says; ask the store itself")


class _GraphStore(_Shelf):
    """A store of LangGraph: output is under `("suture", <thread>)`."""

    def place(self, path: str) -> tuple[Any, ...]:
        """Return namespace and key: `/suture/<thread>/…` is in the thread's own namespace."""
        first, _, rest = path.strip("/").removeprefix("suture/").partition("/")
        label = first.replace("%", "%25").replace(".", "%2E")  # a dot would split the namespace
        return (("suture", label), rest) if rest else (("suture",), first)

    async def find(self, path: str) -> bytes | None:
        item = await self.ask("get", *self.place(path))
        return None if item is None else encode_text(str(item.value.get("content", "")))

    async def put(self, path: str, text: str) -> None:
        await self.ask("put", *self.place(path), {"content": text}, index=False)  # no search should find it

    async def paths(self, prefix: str = "") -> list[str]:
        namespace, start = self.place(f"{prefix}x")
        found = await self.ask("search", namespace, limit=_LISTED)
        keys = [item.key for item in found if item.key.startswith(start[:-1]) and tuple(item.namespace) == namespace]
        return [prefix + key[len(start) - 1 :] for key in keys]


class _KeyValues(_Shelf):
    """A key-value store of LangChain that keeps bytes."""

    deleting = "mdelete"

    def place(self, path: str) -> tuple[Any, ...]:
        return ([path.lstrip("/")],)

    async def find(self, path: str) -> bytes | None:
        return (await self.ask("mget", *self.place(path)))[0]

    async def put(self, path: str, text: str) -> None:
        body = encode_text(text)
        await self.ask("mset", [(path.lstrip("/"), body)])
        if await self.find(path) != body:
            await self.delete(path)
            raise StoreError(f"a {type(self.store).__name__} does not give back the bytes that it is given")

    async def paths(self, prefix: str = "") -> list[str]:
        start = prefix.lstrip("/")
        if self._waits:
            return [prefix + str(key)[len(start) :] async for key in self.store.ayield_keys(prefix=start)]
        return [prefix + str(key)[len(start) :] for key in self.store.yield_keys(prefix=start)]


class _AgentFiles(_Shelf):
    """A backend of deepagents: the agent's own `read_file` reads what is written here."""

    async def find(self, path: str) -> bytes | None:
        try:
            found = (await self.ask("download_files", [path]))[0]
        except NotImplementedError:  # it can only read lines
            found = await self.ask("read", path, 0, 2**31 - 1)
        if found.error is None:
            return found.content if hasattr(found, "content") else encode_text(str(found.file_data["content"]))
        said = str(found.error).lower().replace("_", " ")
        if "not found" in said or "no such file" in said:
            return None
        raise StoreError(f"{path} cannot be read: {found.error}")


# The files that a conversation has saved, and those that it may read

_SEPARATOR = re.compile(r"[/\\]")


def home_of(settings: Settings, messages: Sequence[Any]) -> tuple[str, str]:
    """Return the root of the paths that the current conversation saves to, and the prefix of those it may read.

    The root is named after the thread, below `root_dir` if that is set; without a thread, after the id of the first
    message. A conversation may read its own files and those of the agents inside it.

    >>> from types import SimpleNamespace
    >>> home_of(Settings(root_dir="/data"), [SimpleNamespace(id="m1")])
    ('/data/run+m1', '/data/run+m1/')
    """
    above = "/suture" if settings.root_dir is None else settings.root_dir.rstrip("/")
    try:
        configurable: dict[str, Any] = dict(get_config().get("configurable", {}))
    except RuntimeError:
        configurable = {}
    thread, outer = configurable.get("thread_id"), ""
    if thread is None:
        first = getattr(messages[0], "id", None) if messages else None
        own = f"{above}/run+{safe_name(str(first or uuid4().hex))}"  # no thread's name has a plus
    else:
        own = f"{above}/{safe_name(str(thread))}"
        outer = str(configurable.get("checkpoint_ns") or "").rpartition("|")[0]  # the last part is the node's
    return f"{own}/{sha256(outer.encode()).hexdigest()[:12]}" if outer else own, f"{own}/"


class Conversation(Record):
    """A conversation as one request or an agent's state shows it; it is made anew each time.

    `held` are the messages in the agent's state; `means` are its backends, what was written, and the token counter.
    """

    def __init__(
        self, settings: Settings, messages: Sequence[Any], held: Sequence[Any], means: tuple[BackendOf, Memory, Any]
    ) -> None:
        outside = Outside()  # an agent of ours that runs around this one must not share its conversation
        super().__init__(settings, lambda: outside)
        self._root, self._fence = home_of(settings, held or messages)
        outside.conversation_id = self._root
        self.backend_of, self._memory, self._counts = means
        self._found: dict[str, Saved] = {}
        _, self.history = self.see(messages, WIRE.name)

    @property
    def root(self) -> str:
        """The root of the paths that output is saved to."""
        return self._root

    def tally(self, wire: Wire) -> Any:
        """Return the token counter, which all conversations of a middleware share."""
        del wire
        return self._counts

    def note_saved(self, saved: Saved) -> dict[str, Any]:
        """Remember saved output; return the mark for its result."""
        self.own(saved.path)
        return super().note_saved(saved)

    def own(self, path: str) -> None:
        """Remember that this conversation has written to a path, even one outside its fence."""
        if not self._holds(path):
            self._memory.note((self._fence, path), value=True)

    def _holds(self, path: str) -> bool:
        """Return whether a path is inside the fence, and does not climb out of it."""
        return path.startswith(self._fence) and ".." not in _SEPARATOR.split(path[len(self._fence) :])

    def terms(self, backend_of: BackendOf) -> Terms:
        """Return the terms of a reduction; paths that any mark names count as taken."""
        terms, marked = super().terms(backend_of), super().recorded()

        def is_taken(path: str) -> bool:
            return path in marked or terms.is_taken(path)

        return terms._replace(is_taken=is_taken)

    def may_read(self, path: str) -> bool:
        """Return whether a path is the conversation's own: inside its fence, or one that it was seen to write."""
        return self._holds(path) or (self._fence, path) in self._memory

    def recorded(self) -> Mapping[str, Saved]:
        """Return the saved files by folded path: those that marks of results name, and those that `look` found.

        A mark counts only if it names a path that this conversation may read: marks come with the messages, and those
        may come from anybody.
        """
        marked = super().recorded()
        return self._found | {path: saved for path, saved in marked.items() if self.may_read(saved.path)}

    async def look(self, path: object) -> None:
        """Find files whose results are gone, because a summary replaced them; `path` is looked for, too."""
        known = self.recorded()
        for name in ("", *[name for name, config in self.settings.tool_config.items() if config.backend is not None]):
            backend = self.backend_of(name)
            if not isinstance(backend, FileBackend):
                continue
            paths = [path] if isinstance(path, str) else []
            with suppress(Exception):  # a store that cannot be listed
                paths += await backend.paths(self._fence)
            for each in paths:
                if folded(each) not in known and self._holds(each):
                    with suppress(Exception):  # nothing is there
                        phase = "clear" if "/clear/" in each else "trunc"
                        self._found[folded(each)] = Saved(each, "", name, phase, await backend.size(each))
