"""`ObjectBackend`: files in the bucket of an object store, through `obstore`.

Requests are made in threads, not with the async methods of `obstore`: with those a process that ends soon after a
request is aborted now and then.

The file at `a/b` is the object `files/a/b`, which is only ever put if it does not exist. That is the one condition
that all stores support: some do not know one on a copy or on the end of a multipart upload, others have a race
there, and an abandoned upload stays there unseen. So a file that is too large for one object is first put in parts,
and its object is a pointer to them: a text of a fixed length that says where they are and how long they are
together. A small file that looks like a pointer is put in parts as well, so that no tool output is taken for one.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from suture._aio import run_in_thread
from suture._extras import import_extra
from suture._text import quote
from suture.errors import ConfigError
from suture.stores.protocols import PathNotFoundError, PathTakenError, StoreError
from suture.stores.uploads import BLOCK, DAY, Files, Upload, check_prefix, label, run_whole

if TYPE_CHECKING:
    from obstore import GetOptions, ObjectMeta
    from obstore.store import ObjectStore

T = TypeVar("T")

_PART: Final = 2 << 20
"""How many bytes a part has. Larger parts would take more memory, smaller ones more requests."""

_MARK: Final = b"suture: in parts "
_POINTER: Final = len(_MARK) + 48 + 21
_BATCH: Final = 1000
_METHODS: Final = ("delete", "get", "head", "list", "put")
_NO_RIGHT: Final = "the store does not accept the credentials, or not for this; check them and their rights"
_NO_DIRECTORY: Final = "Not a directory"
"""The error of a store on a file system if a file is in the place of a directory."""


class ObjectBackend(Files):
    """A backend in an object store: S3 and compatible stores, Google Cloud Storage, Azure.

    Give a store of `obstore.store`, or a URL such as `s3://bucket/prefix` with the options of
    `obstore.store.from_url`. With a URL it gives up on a store that is down after about half a minute; a store of
    your own has its own timeouts. `prefix` is put before every path. The store must support putting an object only
    if it does not exist (`If-None-Match: *`), as all of those above do.

    >>> import asyncio
    >>> from suture.stores import ObjectBackend
    >>> backend = ObjectBackend("memory:///", prefix="outputs")
    >>> asyncio.run(backend.write("/run-1/trunc/call_1", "what the tool said"))
    >>> asyncio.run(backend.paths())
    ['/run-1/trunc/call_1']
    """

    _block = _PART

    def __init__(self, store: "ObjectStore | str", *, prefix: str = "", **options: Any) -> None:
        problems: Any = import_extra("obstore.exceptions", "object-stores")
        if isinstance(store, str):
            store = _open_url(store, options)
        elif options:
            raise ConfigError(f"{', '.join(options)}: options go with a URL; a store has its own")
        elif not all(hasattr(store, name) for name in _METHODS):
            raise ConfigError(f"an ObjectBackend takes a store of obstore or a URL, not {type(store).__name__}")
        self._shelf = _Shelf(store, check_prefix(prefix), problems)

    def __repr__(self) -> str:
        return f"ObjectBackend({self._shelf!r})"

    async def _do(self, work: Callable[["_Shelf"], T], path: str, action: str) -> T:
        run = run_whole if action == "written" else run_in_thread
        problems = self._shelf.problems
        try:
            return await run(partial(work, self._shelf))
        except (problems.BaseError, OSError, ValueError) as error:
            text, reason = str(error), "the store did not answer, or refused it; try again"
            if isinstance(error, FileNotFoundError | problems.PreconditionError):
                if action == "read":
                    raise PathNotFoundError(path) from error
                reason = "there is no such bucket or container, or it has just changed"
            elif isinstance(error, problems.NotSupportedError):
                reason = "the store cannot do this; use another one"
            elif isinstance(error, problems.PermissionDeniedError | problems.UnauthenticatedError) or any(
                status in text for status in ("401 Unauthorized", "403 Forbidden")
            ):
                reason = _NO_RIGHT
            elif action == "written" and _NO_DIRECTORY in text:
                raise PathTakenError(path, "a file stands where it needs a directory") from error
            detail = text.partition("\n")[0][:300]
            raise StoreError(f"{self._shelf!r}: {label(path)} was not {action}: {reason} ({detail})") from error


class _File(NamedTuple):
    """A file: its object, its size, the version tag of the object, and the id of its parts, if any."""

    key: str
    size: int
    e_tag: str | None
    id: str


class _Shelf:
    """The objects of one backend. Names are checked paths without a leading slash."""

    def __init__(self, store: "ObjectStore", prefix: str, problems: Any) -> None:
        self.store, self.problems = store, problems
        self._files = f"{prefix}/files" if prefix else "files"
        self._parts = f"{prefix}/parts" if prefix else "parts"

    def __repr__(self) -> str:
        return repr(self.store)

    def key(self, name: str) -> str:
        """Return the name of a file's object."""
        return f"{self._files}/{name}"

    def part(self, group: str, number: int) -> str:
        """Return the name of a part's object."""
        return f"{self._parts}/{group}/{number}"

    def find(self, name: str) -> _File:
        try:
            meta = self.store.head(self.key(name))
        except (self.problems.BaseError, FileNotFoundError) as error:
            if isinstance(error, FileNotFoundError) or _NO_DIRECTORY in str(error):
                raise PathNotFoundError(f"/{name}") from error
            raise
        file = _File(self.key(name), meta["size"], meta["e_tag"], "")
        content = self.get(file, 0, _POINTER) if file.size == _POINTER else b""
        if not _is_pointer(content):
            return file
        group, size = content.removeprefix(_MARK).split()
        return file._replace(size=int(size), id=group.decode())

    def get(self, file: _File, start: int, end: int) -> bytes:
        """Read a file from `start` on, at most to `end`, as far as one request goes."""
        options: GetOptions = {}
        if file.id:
            key, offset = self.part(file.id, start // _PART), start // _PART * _PART
            start, end = start - offset, min(end - offset, _PART)
        else:
            key = file.key
            if file.e_tag:
                options["if_match"] = file.e_tag
        end = min(end, start + BLOCK)
        options["range"] = (start, end)
        content = bytes(self.store.get(key, options=options).bytes())
        if len(content) != end - start:
            raise StoreError(f"{self!r}: {quote(key, 80)} is shorter than it was; something else has changed it")
        return content

    def delete(self, name: str) -> None:
        """Delete a file, and then its parts."""
        with suppress(PathNotFoundError):
            file = self.find(name)
            self._remove([file.key])
            self.delete_parts(file.id, max(-(-file.size // _PART), 1) if file.id else 0)

    def delete_parts(self, group: str, count: int) -> None:
        """Delete the first parts of a group."""
        self._remove([self.part(group, number) for number in range(count)])

    def names(self, prefix: str) -> list[str]:
        names: list[str] = []
        try:
            names += [name for name, _ in self._list(f"{self._files}/{prefix}" if prefix else self._files)]
        except self.problems.BaseError as error:
            if _NO_DIRECTORY not in str(error):
                raise
        if prefix:
            with suppress(PathNotFoundError):
                self.find(prefix)
                names.append("")
        return [f"{prefix}/{name}".strip("/") for name in names]

    def expire(self, seconds: float) -> int:
        now = time.time()
        written = {name: meta["last_modified"].timestamp() for name, meta in self._list(self._files)}
        stale = [name for name, when in written.items() if when <= now - seconds]
        for name in stale:
            self.delete(name)
        owners = {_hash_owner(name): name for name in written.keys() - stale}
        groups: dict[str, tuple[int, float]] = {}  # how many parts each may have, and when the latest was put
        for name, meta in self._list(self._parts):
            group, number = name.split("/")
            count, last = groups.get(group, (0, 0.0))
            groups[group] = max(count, int(number) + 1), max(last, meta["last_modified"].timestamp())
        for group, (count, last) in groups.items():
            if last <= now - max(seconds, DAY) and not self._has_group(owners.get(group[:32]), group):
                self.delete_parts(group, count)
        return len(stale)

    def add(self, upload: Upload, block: bytes | bytearray) -> None:
        group, last = upload.place or (_hash_owner(upload.name) + os.urandom(8).hex(), time.monotonic())
        now = time.monotonic()
        if now - last > DAY / 2:
            reason = "it paused for so long that it may be expired"
            raise StoreError(f"{label(f'/{upload.name}')} was not written: {reason}")
        upload.place = group, now
        self.store.put(self.part(group, upload.count), bytes(block), use_multipart=False)

    def commit(self, upload: Upload, block: bytearray) -> None:
        body, key, size = bytes(block), self.key(upload.name), upload.size + len(block)
        if upload.count or _is_pointer(body):
            if body:
                self.add(upload, body)
            body = _MARK + f"{upload.place[0]} {size:020}".encode()
        try:
            self.store.put(key, body, mode="create")
        except (self.problems.AlreadyExistsError, self.problems.PreconditionError):
            # obstore may have sent the request twice because the first answer was lost; then the object is ours.
            with suppress(FileNotFoundError):
                there = self.store.get(key)
                if there.meta["size"] == len(body) and bytes(there.bytes()) == body:
                    return
            raise PathTakenError(f"/{upload.name}") from None

    def abort(self, upload: Upload) -> None:
        if upload.place is not None:
            self.delete_parts(upload.place[0], upload.count + 1)

    def _list(self, prefix: str) -> "Iterator[tuple[str, ObjectMeta]]":
        """Yield the objects below `prefix`, with their names relative to it."""
        for batch in self.store.list(prefix, chunk_size=_BATCH):  # pyright: ignore[reportUnknownMemberType]
            for meta in batch:
                yield meta["path"][len(prefix) + 1 :], meta

    def _has_group(self, name: str | None, group: str) -> bool:
        if name is not None:
            with suppress(PathNotFoundError):
                return self.find(name).id == group
        return False

    def _remove(self, keys: Sequence[str]) -> None:
        for start in range(0, len(keys), _BATCH):
            batch = keys[start : start + _BATCH]
            try:
                self.store.delete(batch)
            except FileNotFoundError:
                # Some stores stop at the first object that is already gone.
                for key in batch:
                    with suppress(FileNotFoundError):
                        self.store.delete(key)


def _hash_owner(name: str) -> str:
    """Return the beginning of the ids of a file's parts, which is the same each time the file is written."""
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
        # No cause, because it would show the whole URL, which may contain a key.
        raise ConfigError(f"{where} with {names} leads to no store: {reason}") from None
