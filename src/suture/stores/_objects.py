"""The objects behind an `ObjectBackend`: asked for through `obstore`, whose errors are put into words.

Imported only when an `ObjectBackend` is made, because `obstore` is an extra. Requests are made in threads, not with
the async methods of `obstore`: with those a process that ends soon after a request is aborted now and then.

The file at `a/b` is the object `files/a/b`, which is only ever put where there is none. That is the one condition
that all stores keep: one on a copy or on the end of a multipart upload is not known to some, and not safe from a
race in others, and an upload that is given up stays there unseen. So what is too large for one object is put in
parts of its own first, and the object is a pointer to them: a text of a fixed length that says where they are and
how long they are together. A small file that looks like a pointer is put in parts as well. So nothing that a tool
says is ever taken for one.
"""

import os
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    NotSupportedError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)

from suture.stores._backend import BLOCK, DAY, check_path
from suture.stores._errors import PathNotFoundError, PathTakenError, StoreError, shown
from suture.stores._threads import in_thread, to_its_end

if TYPE_CHECKING:
    from obstore import GetOptions, ObjectMeta
    from obstore.store import ObjectStore

__all__ = ["PART", "Objects", "Upload"]

_Result = TypeVar("_Result")

PART: Final = 2 << 20
"""How many bytes a part has. With larger ones a stream would take much memory, with smaller ones many requests."""

_MARK: Final = b"suture: in parts "
_POINTER: Final = len(_MARK) + 48 + 21
_BATCH: Final = 1000
_NO_RIGHT: Final = "the store does not accept the credentials, or not for this; check them and their rights"
_NO_DIRECTORY: Final = "Not a directory"
"""How a store that is a file system says that a file stands in the way."""


class Found(NamedTuple):
    """A file: its object, its size, what tells this version of the object from others, the id of its parts if any."""

    key: str
    size: int
    e_tag: str | None
    id: str

    @property
    def parts(self) -> int:
        """How many parts it has."""
        return max(-(-self.size // PART), 1) if self.id else 0


class Objects:
    """The objects of one backend. Names are checked paths without a leading slash."""

    def __init__(self, store: "ObjectStore", prefix: str) -> None:
        self._store = store
        self._files = f"{prefix}/files" if prefix else "files"
        self._parts = f"{prefix}/parts" if prefix else "parts"

    def __repr__(self) -> str:
        return repr(self._store)

    def create(self, name: str, body: bytes) -> bool:
        """Put a small file, or a pointer, where there is none; tell whether there was none."""
        try:
            self._store.put(self._key(name), body, mode="create")
        except (AlreadyExistsError, PreconditionError):
            return False
        return True

    def put_part(self, group: str, number: int, body: bytes | bytearray) -> None:
        """Put a part, which nobody else knows of."""
        self._store.put(self._part(group, number), body, use_multipart=False)

    def find(self, name: str) -> Found:
        """Return what is known of a file; raises `FileNotFoundError` if there is none."""
        key = self._key(name)
        try:
            meta = self._store.head(key)
        except BaseError as error:
            if _NO_DIRECTORY in str(error):
                raise FileNotFoundError(key) from error
            raise
        found = Found(key, meta["size"], meta["e_tag"], "")
        if found.size != _POINTER:
            return found
        content = self.get(found, 0, _POINTER)
        if not _is_pointer(content):
            return found
        group, size = content.removeprefix(_MARK).split()
        return Found(key, int(size), found.e_tag, group.decode())

    def has(self, name: str) -> bool:
        """Tell whether there is a file of this name."""
        try:
            self.find(name)
        except FileNotFoundError:
            return False
        return True

    def is_same(self, name: str, body: bytes) -> bool:
        """Tell whether the object of a file, which may be a pointer, is this one."""
        try:
            result = self._store.get(self._key(name))
        except FileNotFoundError:
            return False
        return result.meta["size"] == len(body) and bytes(result.bytes()) == body

    def get(self, found: Found, start: int, end: int) -> bytes:
        """Return bytes of a file from `start` on, at most to `end`: as many as there are in one request."""
        options: GetOptions = {}
        if found.id:
            key, skipped = self._part(found.id, start // PART), start // PART * PART
            start, end = start - skipped, min(end - skipped, PART)
        else:
            key = found.key
            if found.e_tag:
                options["if_match"] = found.e_tag
        end = min(end, start + BLOCK)
        options["range"] = (start, end)
        result = self._store.get(key, options=options)
        content = bytes(result.bytes())
        if len(content) != end - start:
            raise StoreError(f"{self!r}: {shown(key)} is shorter than it was; something else has changed it")
        return content

    def delete(self, name: str, found: Found) -> None:
        """Delete a file, and then its parts."""
        self._remove([self._key(name)])
        self.delete_parts(found.id, found.parts)

    def delete_parts(self, group: str, count: int) -> None:
        """Delete the first parts of a group."""
        self._remove([self._part(group, number) for number in range(count)])

    def names(self, prefix: str) -> list[str]:
        """Return the names of all files at or below `prefix`, in no order."""
        names: list[str] = []
        try:
            names += [name for name, _ in self._list(f"{self._files}/{prefix}" if prefix else self._files)]
        except BaseError as error:
            if _NO_DIRECTORY not in str(error):
                raise
        with suppress(FileNotFoundError):
            if prefix:
                self.find(prefix)
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
        owners = {_owner(name): name for name in names.difference(stale)}
        for group, (count, last) in self._groups().items():
            if last <= now - max(seconds, DAY) and not self._has_group(owners.get(group[:32]), group):
                self.delete_parts(group, count)
        return len(stale)

    @contextmanager
    def explained(self, path: str, done: str) -> Generator[None, None, None]:
        """Say in words what the store says of a file that was to be `done`: read, written, …."""
        try:
            yield
        except (FileNotFoundError, PreconditionError) as error:
            if done == "read":
                raise PathNotFoundError(path) from error
            raise self._error(
                path, done, "there is no such bucket or container, or it has just changed", error
            ) from error
        except (PermissionDeniedError, UnauthenticatedError) as error:
            raise self._error(path, done, _NO_RIGHT, error) from error
        except NotSupportedError as error:
            raise self._error(path, done, "the store cannot do this; use another one", error) from error
        except (BaseError, OSError, ValueError) as error:
            if done == "written" and _NO_DIRECTORY in str(error):
                raise PathTakenError(path, "a file stands where it needs a directory") from error
            refused = any(status in str(error) for status in ("401 Unauthorized", "403 Forbidden"))
            reason = _NO_RIGHT if refused else "the store did not answer, or refused it; try again"
            raise self._error(path, done, reason, error) from error

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

    def _error(self, path: str, done: str, reason: str, error: Exception) -> StoreError:
        what = shown(path) if path else "what is in it"
        return StoreError(f"{self!r}: {what} was not {done}: {reason} ({str(error).partition(chr(10))[0][:300]})")


class Upload:
    """A stream on its way into an object, or into parts and a pointer to them."""

    def __init__(self, objects: Objects, path: str, *, look: bool) -> None:
        self._objects = objects
        self._path = path
        self._look = look
        self._name = self._id = ""
        self._count = self._size = 0
        self._put_last = time.monotonic()

    async def begin(self) -> None:
        """Check the path, and look whether it is taken, unless that is not worth a request."""
        self._name = check_path(self._path)
        if self._look and await self._do(partial(self._objects.has, self._name)):
            raise PathTakenError(self._path)

    async def add(self, block: bytes | bytearray) -> None:
        """Put a part."""
        now = time.monotonic()
        if now - self._put_last > DAY / 2:
            raise StoreError(f"{shown(self._path)} was not written: it paused for so long that it may be expired")
        self._put_last = now
        self._id = self._id or _owner(self._name) + os.urandom(8).hex()
        self._count += 1
        await self._do(partial(self._objects.put_part, self._id, self._count - 1, bytes(block)))
        self._size += len(block)

    async def commit(self, last: bytearray) -> None:
        """Put the last part and the pointer, or the only object that it takes."""
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
        """Delete the parts."""
        await self._do(partial(self._objects.delete_parts, self._id, self._count))

    async def _do(self, request: Callable[[], _Result]) -> _Result:
        with self._objects.explained(self._path, "written"):
            return await to_its_end(in_thread(request))


def _owner(name: str) -> str:
    """Return how the ids of all parts of a file begin, however often it is written."""
    return blake2b(name.encode(), digest_size=16).hexdigest()


def _is_pointer(content: bytes) -> bool:
    return len(content) == _POINTER and content.startswith(_MARK)
