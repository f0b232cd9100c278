"""`ObjectBackend`: files in the bucket of an object store, through `obstore`.

Requests are made in threads, not with the async methods of `obstore`: with those a process that ends soon after a
request is aborted now and then.

The file at `a/b` is the object `files/a/b`, which is only ever put where there is none. That is the one condition
that all stores keep: one on a copy or on the end of a multipart upload is not known to some, and not safe from a
race in others, and an upload that is given up stays there unseen. So what is too large for one object is put in
parts of its own first, and the object is a pointer to them: a text of a fixed length that says where they are and
how long they are together. A small file that looks like a pointer is put in parts as well. So nothing that a tool
says is ever taken for one.
"""

import os
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from hashlib import blake2b
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from suture._aio import run_in_thread
from suture._text import quote
from suture.errors import ConfigError
from suture.stores.protocols import PathNotFoundError, PathTakenError, StoreError, check_seconds
from suture.stores.uploads import BLOCK, DAY, Upload, UploadBackend, check_path, check_prefix, check_range, run_whole

if TYPE_CHECKING:
    from obstore import GetOptions, ObjectMeta
    from obstore.store import ObjectStore

T = TypeVar("T")

_PART: Final = 2 << 20
"""How many bytes a part has. With larger ones a stream would take much memory, with smaller ones many requests."""

_MARK: Final = b"suture: in parts "
_POINTER: Final = len(_MARK) + 48 + 21
_BATCH: Final = 1000
_METHODS: Final = ("delete", "get", "head", "list", "put")
_NO_RIGHT: Final = "the store does not accept the credentials, or not for this; check them and their rights"
_NO_DIRECTORY: Final = "Not a directory"
"""How a store that is a file system says that a file stands in the way."""


class ObjectBackend(UploadBackend):
    """A backend in an object store: S3 and what speaks like it, Google Cloud Storage, Azure.

    Give a store of `obstore.store`, or a URL such as `s3://bucket/prefix` with the options of
    `obstore.store.from_url`. With a URL a store that is down is given up after half a minute or so; a store of your
    own is as patient as you made it. `prefix` is put before every path. The store must be able to put an object only
    where there is none (`If-None-Match: *`), as all of those above are.

    >>> import asyncio
    >>> from suture.stores import ObjectBackend
    >>> backend = ObjectBackend("memory:///", prefix="outputs")
    >>> asyncio.run(backend.write("/run-1/trunc/call_1", "what the tool said"))
    >>> asyncio.run(backend.paths())
    ['/run-1/trunc/call_1']
    """

    _block = _PART

    def __init__(self, store: "ObjectStore | str", *, prefix: str = "", **options: Any) -> None:
        try:
            # The extra is paid for by those who use it.
            problems: Any = import_module("obstore.exceptions")
        except ImportError as error:
            missing = "an ObjectBackend needs obstore, which is not installed: pip install 'obstore>=0.12'"
            raise ConfigError(missing) from error
        if isinstance(store, str):
            store = _open_url(store, options)
        elif options:
            raise ConfigError(f"{', '.join(options)}: options go with a URL; a store has its own")
        elif not all(hasattr(store, name) for name in _METHODS):
            raise ConfigError(f"an ObjectBackend takes a store of obstore or a URL, not {type(store).__name__}")
        self._objects = _Objects(store, check_prefix(prefix), problems)

    def _upload(self, path: str) -> Upload:
        return _Upload(self._objects, path)

    async def read(self, path: str, start: int = 0, stop: int | None = None) -> AsyncGenerator[bytes, None]:
        """Yield the bytes from `start` up to `stop`, as a slice would, in pieces of 1 MiB at most."""
        name = check_path(path)
        check_range(start, stop)
        file = await self._do(partial(self._objects.find, name), path, "read")
        end = file.size if stop is None else min(stop, file.size)
        while start < end:
            piece = await self._do(partial(self._objects.get, file, start, end), path, "read")
            yield piece
            start += len(piece)

    async def size(self, path: str) -> int:
        """Return how many bytes a file has."""
        return (await self._do(partial(self._objects.find, check_path(path)), path, "read")).size

    async def delete(self, path: str) -> None:
        """Delete a file, if it is there."""
        name = check_path(path)
        try:
            file = await self._do(partial(self._objects.find, name), path, "read")
        except PathNotFoundError:
            return
        await self._do(partial(self._objects.delete, name, file), path, "deleted")

    async def paths(self, prefix: str = "") -> list[str]:
        """Return the paths of all files in order; only those at or below `prefix`."""
        within = check_prefix(prefix)
        return sorted(f"/{name}" for name in await self._do(partial(self._objects.names, within), prefix, "listed"))

    async def expire(self, seconds: float) -> int:
        """Delete the files that were written `seconds` ago or earlier, by the store's clock; return how many.

        What has been unfinished for a day goes, too: its writer was killed.
        """
        check_seconds("seconds", seconds)
        return await self._do(partial(self._objects.expire, seconds), "", "expired")

    def __repr__(self) -> str:
        return f"ObjectBackend({self._objects!r})"

    async def _do(self, request: Callable[[], T], path: str, action: str) -> T:
        with self._objects.explain(path, action):
            return await run_in_thread(request)


class _File(NamedTuple):
    """A file: its object, its size, what tells this version of the object from others, the id of its parts if any."""

    key: str
    size: int
    e_tag: str | None
    id: str

    @property
    def parts(self) -> int:
        """How many parts it has."""
        return max(-(-self.size // _PART), 1) if self.id else 0


class _Objects:
    """The objects of one backend. Names are checked paths without a leading slash."""

    def __init__(self, store: "ObjectStore", prefix: str, problems: Any) -> None:
        self._store = store
        self._files = f"{prefix}/files" if prefix else "files"
        self._parts = f"{prefix}/parts" if prefix else "parts"
        self._problems = problems

    def __repr__(self) -> str:
        return repr(self._store)

    def create(self, name: str, body: bytes) -> bool:
        """Put a small file, or a pointer, where there is none; return whether there was none."""
        try:
            self._store.put(self._key(name), body, mode="create")
        except (self._problems.AlreadyExistsError, self._problems.PreconditionError):
            return False
        return True

    def put_part(self, group: str, number: int, body: bytes) -> None:
        """Put a part, which nobody else knows of."""
        self._store.put(self._part(group, number), body, use_multipart=False)

    def find(self, name: str) -> _File:
        """Return what is known of a file; raises `FileNotFoundError` if there is none."""
        key = self._key(name)
        try:
            meta = self._store.head(key)
        except self._problems.BaseError as error:
            if _NO_DIRECTORY in str(error):
                raise FileNotFoundError(key) from error
            raise
        file = _File(key, meta["size"], meta["e_tag"], "")
        if file.size != _POINTER:
            return file
        content = self.get(file, 0, _POINTER)
        if not _is_pointer(content):
            return file
        group, size = content.removeprefix(_MARK).split()
        return _File(key, int(size), file.e_tag, group.decode())

    def has(self, name: str) -> bool:
        """Return whether there is a file of this name."""
        try:
            self.find(name)
        except FileNotFoundError:
            return False
        return True

    def is_same(self, name: str, body: bytes) -> bool:
        """Return whether the object of a file, which may be a pointer, is this one."""
        try:
            result = self._store.get(self._key(name))
        except FileNotFoundError:
            return False
        return result.meta["size"] == len(body) and bytes(result.bytes()) == body

    def get(self, file: _File, start: int, end: int) -> bytes:
        """Read a file from `start` on, at most to `end`: as many bytes as there are in one request."""
        options: GetOptions = {}
        if file.id:
            key, offset = self._part(file.id, start // _PART), start // _PART * _PART
            start, end = start - offset, min(end - offset, _PART)
        else:
            key = file.key
            if file.e_tag:
                options["if_match"] = file.e_tag
        end = min(end, start + BLOCK)
        options["range"] = (start, end)
        content = bytes(self._store.get(key, options=options).bytes())
        if len(content) != end - start:
            raise StoreError(f"{self!r}: {quote(key, 80)} is shorter than it was; something else has changed it")
        return content

    def delete(self, name: str, file: _File) -> None:
        """Delete a file, and then its parts."""
        self._remove([self._key(name)])
        self.delete_parts(file.id, file.parts)

    def delete_parts(self, group: str, count: int) -> None:
        """Delete the first parts of a group."""
        self._remove([self._part(group, number) for number in range(count)])

    def names(self, prefix: str) -> list[str]:
        """Return the names of all files at or below `prefix`, in no order."""
        names: list[str] = []
        try:
            names += [name for name, _ in self._list(f"{self._files}/{prefix}" if prefix else self._files)]
        except self._problems.BaseError as error:
            if _NO_DIRECTORY not in str(error):
                raise
        if prefix and self.has(prefix):
            names.append("")
        return [f"{prefix}/{name}".strip("/") for name in names]

    def expire(self, seconds: float) -> int:
        """Delete the files that are so old, and parts that belong to none; return how many files."""
        now = time.time()
        names: set[str] = set()
        stale: list[str] = []
        for name, meta in self._list(self._files):
            names.add(name)
            if meta["last_modified"].timestamp() <= now - seconds:
                stale.append(name)
        for name in stale:
            with suppress(FileNotFoundError):
                self.delete(name, self.find(name))
        owners = {_hash_owner(name): name for name in names.difference(stale)}
        for group, (count, last) in self._groups().items():
            if last <= now - max(seconds, DAY) and not self._has_group(owners.get(group[:32]), group):
                self.delete_parts(group, count)
        return len(stale)

    @contextmanager
    def explain(self, path: str, action: str) -> Generator[None, None, None]:
        """Say in words what the store says of a file that was to be read, written, …."""
        try:
            yield
        except (self._problems.BaseError, OSError, ValueError) as error:
            raise self._name_problem(path, action, error) from error

    def _name_problem(self, path: str, action: str, error: Exception) -> StoreError:
        problems, text = self._problems, str(error)
        reason = "the store did not answer, or refused it; try again"
        if isinstance(error, FileNotFoundError | problems.PreconditionError):
            if action == "read":
                return PathNotFoundError(path)
            reason = "there is no such bucket or container, or it has just changed"
        elif isinstance(error, problems.NotSupportedError):
            reason = "the store cannot do this; use another one"
        elif isinstance(error, problems.PermissionDeniedError | problems.UnauthenticatedError) or any(
            status in text for status in ("401 Unauthorized", "403 Forbidden")
        ):
            reason = _NO_RIGHT
        elif action == "written" and _NO_DIRECTORY in text:
            return PathTakenError(path, "a file stands where it needs a directory")
        subject = quote(path, 80) if path else "what is in it"
        return StoreError(f"{self!r}: {subject} was not {action}: {reason} ({text.partition(chr(10))[0][:300]})")

    def _list(self, prefix: str) -> "Iterator[tuple[str, ObjectMeta]]":
        """Yield the objects below `prefix`, by what stands behind it."""
        for batch in self._store.list(prefix, chunk_size=_BATCH):  # pyright: ignore[reportUnknownMemberType]
            for meta in batch:
                yield meta["path"][len(prefix) + 1 :], meta

    def _groups(self) -> dict[str, tuple[int, float]]:
        """Return the groups of parts that are there: how many each may have, and when the last one was put."""
        groups: dict[str, tuple[int, float]] = {}
        for name, meta in self._list(self._parts):
            group, number = name.split("/")
            count, last = groups.get(group, (0, 0.0))
            groups[group] = max(count, int(number) + 1), max(last, meta["last_modified"].timestamp())
        return groups

    def _has_group(self, name: str | None, group: str) -> bool:
        if name is not None:
            with suppress(FileNotFoundError):
                return self.find(name).id == group
        return False

    def _remove(self, keys: Sequence[str]) -> None:
        for start in range(0, len(keys), _BATCH):
            batch = keys[start : start + _BATCH]
            try:
                self._store.delete(batch)
            except FileNotFoundError:
                # Some stores stop where something is gone already.
                for key in batch:
                    with suppress(FileNotFoundError):
                        self._store.delete(key)

    def _key(self, name: str) -> str:
        return f"{self._files}/{name}"

    def _part(self, group: str, number: int) -> str:
        return f"{self._parts}/{group}/{number}"


class _Upload:
    """A stream on its way into an object, or into parts and a pointer to them."""

    def __init__(self, objects: _Objects, path: str) -> None:
        self._objects = objects
        self._path = path
        self._name = self._id = ""
        self._count = self._size = 0
        self._put_last = time.monotonic()

    async def begin(self, *, look: bool) -> None:
        self._name = check_path(self._path)
        if look and await self._do(partial(self._objects.has, self._name)):
            raise PathTakenError(self._path)

    async def add(self, block: bytes | bytearray) -> None:
        now = time.monotonic()
        if now - self._put_last > DAY / 2:
            raise StoreError(f"{quote(self._path, 80)} was not written: it paused for so long that it may be expired")
        self._put_last = now
        self._id = self._id or _hash_owner(self._name) + os.urandom(8).hex()
        self._count += 1
        await self._do(partial(self._objects.put_part, self._id, self._count - 1, bytes(block)))
        self._size += len(block)

    async def commit(self, last: bytearray) -> None:
        body = bytes(last)
        if self._count or _is_pointer(body):
            if body:
                await self.add(body)
            body = _MARK + f"{self._id} {self._size:020}".encode()
        # The request may have been made twice below, because the first answer was lost; then it is ours.
        if await self._do(partial(self._objects.create, self._name, body)):
            return
        if not await self._do(partial(self._objects.is_same, self._name, body)):
            raise PathTakenError(self._path)

    async def abort(self) -> None:
        await self._do(partial(self._objects.delete_parts, self._id, self._count))

    async def _do(self, request: Callable[[], T]) -> T:
        with self._objects.explain(self._path, "written"):
            return await run_whole(request)


def _hash_owner(name: str) -> str:
    """Return how the ids of all parts of a file begin, however often it is written."""
    return blake2b(name.encode(), digest_size=16).hexdigest()


def _is_pointer(content: bytes) -> bool:
    return len(content) == _POINTER and content.startswith(_MARK)


def _open_url(url: str, options: dict[str, Any]) -> "ObjectStore":
    from obstore.exceptions import BaseError  # noqa: PLC0415 - the extra
    from obstore.store import from_url  # noqa: PLC0415

    if not url.startswith(("memory:", "file:")):
        options = {"retry_config": {"max_retries": 3, "retry_timeout": timedelta(seconds=30)}, **options}
    try:
        return from_url(url, **options)
    except (BaseError, TypeError, ValueError) as error:
        where, names = url.partition("?")[0], ", ".join(options) or "no options"
        reason = str(error).partition("\n")[0].replace(url, where)
        # Without the cause, which shows all of the URL: there may be a key in it.
        raise ConfigError(f"{where} with {names} leads to no store: {reason}") from None
