"""Where LangChain programs keep things, as backends for tool output.

A store of LangGraph, a key-value store of LangChain, a backend of deepagents, anything with `write(path, content)`:
each is given one form, which never overwrites a file. Those stores overwrite without a word. So they are looked into
first, and meanwhile others in this process are kept away from the path. Nothing of deepagents is imported.
"""

from collections import OrderedDict
from collections.abc import AsyncIterable, AsyncIterator, Callable, Generator
from contextlib import contextmanager
from hashlib import sha256
from threading import Lock
from typing import Any, cast

from langchain_core.documents import Document
from langchain_core.stores import BaseStore as KeyValueStore
from langgraph.store.base import BaseStore

from suture._aio import settle
from suture.errors import ConfigError
from suture.reduction import Settings
from suture.reduction.texts import folded
from suture.stores import FileBackend, PathNotFoundError, PathTakenError, StoreError, encode_text

RUN_STORE = "store"
"""What stands for the store that the agent was made with."""

_LISTED = 10_000
"""How many files of a conversation are listed."""
_REMEMBERED = 4_096
"""How many files that were written are kept in mind."""


class Backends:
    """What one middleware was given to keep output in; it knows what was written through it of late.

    >>> from langgraph.store.memory import InMemoryStore
    >>> backend_of = Backends(Settings(), InMemoryStore()).in_run(None, waits=False)
    >>> isinstance(backend_of("search"), FileBackend)
    True
    """

    def __init__(self, settings: Settings, backend: Any) -> None:
        self._settings, self._backend = settings, backend
        self._lock = Lock()
        self._written: OrderedDict[tuple[int, str], bytes] = OrderedDict()
        for given in self.all():
            check_backend(given)

    def all(self) -> list[Any]:
        """Return all that was given."""
        given = [self._backend, *[config.backend for config in self._settings.tool_config.values()]]
        return [each for each in given if each is not None]

    def given_for(self, name: str) -> Any:
        """Return what was given for the output of the tool `name`."""
        own = self._settings.config_of(name).backend
        return self._backend if own is None else own

    def in_run(self, runtime: Any, *, waits: bool) -> Callable[[str], Any]:
        """Return what gives the backend of a tool in one run; `waits` says that async methods are to be used."""
        made: dict[int, Any] = {}

        def backend_of(name: str) -> Any:
            given = self.given_for(name)
            if given is not None and id(given) not in made:
                made[id(given)] = self._adapt(given, runtime, waits=waits)
            return made.get(id(given))

        return backend_of

    def _adapt(self, given: Any, runtime: Any, *, waits: bool) -> Any:
        store: Any = given
        if given == RUN_STORE:
            store = getattr(runtime, "store", None)
        elif _is_factory(given):
            store = given(runtime)
        check_backend(store)
        if isinstance(store, FileBackend):
            return store
        form = next((form for is_it, form in _FORMS if is_it(store)), _Writer)
        return form(store, self, store if given == RUN_STORE else given, waits=waits)

    @contextmanager
    def claim(self, owner: object, path: str, content: str) -> Generator[None]:
        """Keep all others away from a path, as long as this process remembers that it holds this content."""
        key, digest = (id(owner), folded(path)), sha256(encode_text(content)).digest()
        with self._lock:
            before = self._written.get(key)
            if before is not None and before != digest:
                raise PathTakenError(path)
            self._written[key] = digest
            self._written.move_to_end(key)
            while len(self._written) > _REMEMBERED:
                self._written.popitem(last=False)
        try:
            yield
        except BaseException:
            if before is None:
                self.release(owner, path)
            raise

    def release(self, owner: object, path: str) -> None:
        """Let others have a path."""
        with self._lock:
            self._written.pop((id(owner), folded(path)), None)


class _Writer:
    """Anything with `write`: it cannot say what it holds, so only what this process has written is known."""

    def __init__(self, store: Any, backends: Backends, owner: object, *, waits: bool) -> None:
        self.store, self._backends, self._owner, self._waits = store, backends, owner, waits

    async def write(self, path: str, content: str | bytes) -> None:
        """Write a file, unless another is there."""
        text = content if isinstance(content, str) else content.decode("utf-8", "surrogatepass")
        with self._backends.claim(self._owner, path, text):
            await self.put(path, text)

    async def put(self, path: str, text: str) -> None:
        """Write a file, whatever is there."""
        _check_written(await self.ask("write", path, text))

    async def ask(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Call a method of the store: async or plain, as it may be; the other way where that is all there is."""
        names = (f"a{method}", method) if self._waits else (method, f"a{method}")
        for function in [getattr(self.store, name, None) for name in names]:
            if function is not None:
                try:
                    return await settle(function(*arguments, **options))
                except NotImplementedError:
                    continue
        raise NotImplementedError(f"a {type(self.store).__name__} cannot {method}")

    def forget(self, path: str) -> None:
        """Let others have a path."""
        self._backends.release(self._owner, path)


class _Shelf(_Writer, FileBackend):
    """A store that can be read as well: what is there is never overwritten."""

    async def find(self, path: str) -> bytes | None:
        """Return what is at a path."""
        raise NotImplementedError

    async def drop(self, path: str) -> None:
        """Delete what is at a path."""
        raise NotImplementedError

    async def write(self, path: str, content: str | bytes) -> None:
        """Write a file; the same once more is no error."""
        text = content if isinstance(content, str) else content.decode("utf-8", "surrogatepass")
        with self._backends.claim(self._owner, path, text):
            there = await self.find(path)
            if there is None:
                await self.put(path, text)
            elif there != encode_text(text):
                raise PathTakenError(path)

    async def write_stream(self, path: str, chunks: AsyncIterable[bytes]) -> int:
        """Write what comes in pieces, as a whole: these stores take nothing else. The same once more is an error."""
        body = b"".join([chunk async for chunk in chunks])
        if await self.find(path) is not None:
            raise PathTakenError(path)
        await self.write(path, body)
        return len(body)

    async def read(self, path: str, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        """Yield what is at a path."""
        yield (await self._found(path))[start:stop]

    async def size(self, path: str) -> int:
        """Return how many bytes are at a path."""
        return len(await self._found(path))

    async def delete(self, path: str) -> None:
        """Delete a file."""
        await self.drop(path)
        self.forget(path)

    async def paths(self, prefix: str = "") -> list[str]:
        """Return the paths below `prefix`, of stores that can be listed; nothing of others."""
        del prefix
        return []

    async def expire(self, seconds: float) -> int:
        """Refuse: how long things are kept is the store's own matter."""
        raise StoreError(f"the files in a {type(self.store).__name__} expire as the store says; ask the store itself")

    async def _found(self, path: str) -> bytes:
        body = await self.find(path)
        if body is None:
            raise PathNotFoundError(path)
        return body


class _GraphStore(_Shelf):
    """A store of LangGraph: output is under `("suture", <thread>)`."""

    async def find(self, path: str) -> bytes | None:
        """Return what is at a path."""
        item = await self.ask("get", *_place(path))
        return None if item is None else encode_text(str(item.value.get("content", "")))

    async def put(self, path: str, text: str) -> None:
        """Write an item that no search is to find."""
        namespace, key = _place(path)
        await self.ask("put", namespace, key, {"content": text}, index=False)

    async def paths(self, prefix: str = "") -> list[str]:
        """Return the paths below `prefix`."""
        namespace, start = _place(f"{prefix}x")
        found = await self.ask("search", namespace, limit=_LISTED)
        keys = [item.key for item in found if item.key.startswith(start[:-1]) and tuple(item.namespace) == namespace]
        return [prefix + key[len(start) - 1 :] for key in keys]

    async def drop(self, path: str) -> None:
        """Delete an item."""
        await self.ask("delete", *_place(path))


class _KeyValues(_Shelf):
    """A key-value store of LangChain: of bytes, of texts or of documents, which only trying can tell."""

    async def find(self, path: str) -> bytes | None:
        """Return what is at a key."""
        value = (await self.ask("mget", [_key(path)]))[0]
        if isinstance(value, Document):
            value = value.page_content
        if value is None or isinstance(value, bytes):
            return value
        return encode_text(value) if isinstance(value, str) else repr(value).encode()

    async def put(self, path: str, text: str) -> None:
        """Write a value in the first form that the store takes and gives back."""
        body, problem = encode_text(text), ""
        for make in (encode_text, str, _document):
            try:
                await self.ask("mset", [(_key(path), make(text))])
                if await self.find(path) == body:
                    return
            except (TypeError, ValueError, AttributeError, NotImplementedError) as error:
                problem = f": {error}"
        await self.drop(path)
        raise StoreError(f"a {type(self.store).__name__} gives back neither bytes, texts nor documents{problem}")

    async def paths(self, prefix: str = "") -> list[str]:
        """Return the paths below `prefix`."""
        start = _key(prefix)
        if self._waits:
            return [prefix + str(key)[len(start) :] async for key in self.store.ayield_keys(prefix=start)]
        return [prefix + str(key)[len(start) :] for key in self.store.yield_keys(prefix=start)]

    async def drop(self, path: str) -> None:
        """Delete a value."""
        await self.ask("mdelete", [_key(path)])


class _AgentFiles(_Shelf):
    """A backend of deepagents: the agent's own `read_file` reads what is written here."""

    async def find(self, path: str) -> bytes | None:
        """Return what is at a path."""
        try:
            found = (await self.ask("download_files", [path]))[0]
        except NotImplementedError:
            return await self._find_lines(path)
        if found.error is None:
            return found.content
        if _says_missing(found.error):
            return None
        raise StoreError(f"{path} cannot be read: {found.error}")

    async def _find_lines(self, path: str) -> bytes | None:
        """Return what is at a path, of a backend that gives nothing but lines."""
        found = await self.ask("read", path, 0, 2**31 - 1)
        if found.error is None:
            return encode_text(str(found.file_data["content"]))
        if _says_missing(found.error):
            return None
        raise StoreError(f"{path} cannot be read: {found.error}")

    async def drop(self, path: str) -> None:
        """Delete a file."""
        await self.ask("delete", path)


def _is_deepagents(given: Any) -> bool:
    """Tell whether `given` looks like a backend of deepagents: files that are read, written and downloaded."""
    return all(callable(getattr(given, name, None)) for name in ("awrite", "aread", "download_files"))


def is_readable(given: Any) -> bool:
    """Tell whether output that is written to `given` can be read back; what a factory makes is expected to be.

    >>> from suture.stores import MemoryBackend
    >>> is_readable(MemoryBackend()), is_readable(None)
    (True, False)
    """
    if given == RUN_STORE or isinstance(given, FileBackend) or _is_factory(given):
        return True
    return any(is_it(given) for is_it, _ in _FORMS)


def check_backend(given: Any) -> None:
    """Refuse what cannot keep tool output.

    >>> check_backend(7)
    Traceback (most recent call last):
        ...
    suture.errors.ConfigError: a backend has write(path, content), or is a store; int is neither
    """
    if isinstance(given, type):
        raise ConfigError(f"a backend is an object, not a class; make one: {given.__name__}(…)")
    if given is None:
        raise ConfigError(
            "output is to be kept in the agent's store, and it has none; make it with store=…, or pass another backend"
        )
    if given == RUN_STORE or _is_factory(given) or callable(getattr(given, "write", None)):
        return
    if not any(is_it(given) for is_it, _ in _FORMS):
        raise ConfigError(f"a backend has write(path, content), or is a store; {type(given).__name__} is neither")


def _is_factory(given: Any) -> bool:
    """Tell whether `given` makes a backend of the run: `lambda runtime: …`."""
    return callable(given) and not isinstance(given, type) and not hasattr(given, "write")


def _is_graph_store(given: Any) -> bool:
    return isinstance(given, BaseStore)


def _is_key_value_store(given: Any) -> bool:
    return isinstance(given, KeyValueStore)


_FORMS: tuple[tuple[Callable[[Any], bool], type[_Writer]], ...] = (
    (_is_graph_store, _GraphStore),
    (_is_key_value_store, _KeyValues),
    (_is_deepagents, _AgentFiles),
)


def _check_written(result: Any) -> None:
    """Raise what a backend only tells: one of deepagents returns its error."""
    error = getattr(result, "error", None)
    if error:
        raise StoreError(str(error))
    if getattr(result, "files_update", None):
        raise StoreError("this release of deepagents wants the caller to keep the file; use a newer one")


def _says_missing(error: object) -> bool:
    said = str(error).lower()
    return "not_found" in said or "not found" in said or "no such file" in said


def _place(path: str) -> tuple[tuple[str, ...], str]:
    """Return namespace and key of a path: `/suture/<thread>/…` is in the thread's own namespace.

    >>> _place("/suture/thread-1/trunc/call_1")
    (('suture', 'thread-1'), 'trunc/call_1')
    """
    first, _, rest = path.strip("/").removeprefix("suture/").partition("/")
    label = first.replace("%", "%25").replace(".", "%2E")  # a dot would part the namespace
    return (("suture", label), rest) if rest else (("suture",), first)


def _key(path: str) -> str:
    return path.lstrip("/")


def _document(text: str) -> Document:
    return cast("Any", Document)(page_content=text)
