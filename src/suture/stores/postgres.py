"""`PostgresStore`: journals in a PostgreSQL database, for agents on many machines.

Each thread of the store's own pool has one connection. Work is done there and not with psycopg's async connections,
because those belong to one event loop, and a store is shared by several.
"""

import asyncio
import os
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from importlib import import_module
from math import inf
from secrets import randbits
from threading import Event, Lock, local
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias, TypeVar

from suture._aio import wait_to_the_end
from suture.errors import ConfigError
from suture.stores.protocols import (
    DamagedJournalError,
    Entry,
    Lease,
    LeaseError,
    StoreConflictError,
    StoreError,
    check_append,
    check_fork,
    check_lease,
    check_run,
    check_seconds,
    check_text,
    compute_checksum,
    find_stale_runs,
    verify_records,
)

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")
Connection: TypeAlias = "psycopg.Connection[Any]"
Work: TypeAlias = Callable[["_Session"], T]

_VERSION: Final = 1
_PAUSES: Final = (0.01, 0.02, 0.05, 0.1, 0.25)
_DAMAGE: Final = ("XX001", "XX002")  # data corrupted, index corrupted
_RETRY: Final = ("40001", "40P01")  # serialization failure, deadlock
_DOWN: Final = ("57P01", "57P02", "57P03")  # shut down, crashed, starting

# Texts are kept as bytes: a text of PostgreSQL's cannot have a NUL in it, and its order depends on the locale.
_TABLES: Final = """
    CREATE SCHEMA IF NOT EXISTS {schema};
    CREATE TABLE {schema}.version (version integer NOT NULL);
    CREATE TABLE {schema}.runs (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, run bytea UNIQUE, parent bigint, base bigint NOT NULL,
        length bigint NOT NULL, changed timestamptz NOT NULL DEFAULT clock_timestamp()
    );
    CREATE INDEX forks ON {schema}.runs (parent) WHERE parent IS NOT NULL;
    CREATE TABLE {schema}.records (
        run bigint, number bigint, checksum integer NOT NULL, token bigint NOT NULL, key bytea, body bytea NOT NULL,
        PRIMARY KEY (run, number)
    );
    CREATE UNIQUE INDEX claims ON {schema}.records (run, key) WHERE key IS NOT NULL;
    CREATE TABLE {schema}.leases (run bytea PRIMARY KEY, owner bytea NOT NULL, until timestamptz NOT NULL);
    INSERT INTO {schema}.version VALUES (1);
"""
# What several statements have in common, by the name that stands for it in them.
_PARTS: Final = {
    "unleased": """NOT EXISTS (SELECT 1 FROM {schema}.leases AS held
        WHERE held.run = %(run)s AND held.owner <> %(owner)s AND held.until > clock_timestamp())""",
    "insert": """INSERT INTO {schema}.records (run, number, checksum, token, body)
        SELECT id, %(first)s + place - 1, checksum, %(token)s, body FROM head,
        unnest(%(checksums)b::integer[], %(bodies)b::bytea[]) WITH ORDINALITY AS new (checksum, body, place)""",
    # Where the records of a run are: in the run itself, and in others that it shares them with.
    "segments": """WITH RECURSIVE segments (id, low, high, parent) AS (
        SELECT id, base, length, parent FROM {schema}.runs WHERE run = %(run)s
        UNION ALL
        SELECT runs.id, runs.base, low, runs.parent FROM segments JOIN {schema}.runs ON runs.id = segments.parent
        WHERE low > %(first)s AND runs.base < low)""",
    "within": "(run = %(run)s OR run >= %(low)s AND run < %(high)s)",
}
_BEGIN: Final = """
    WITH head AS (INSERT INTO {schema}.runs (run, base, length) SELECT %(run)s, 0, %(count)s WHERE {unleased}
        ON CONFLICT DO NOTHING RETURNING id) {insert}
"""
_APPEND: Final = """
    WITH head AS (UPDATE {schema}.runs SET length = length + %(count)s, changed = clock_timestamp()
        WHERE run = %(run)s AND length = %(first)s AND {unleased} RETURNING id) {insert}
"""
_WAS_WRITTEN: Final = """
    SELECT 1 FROM {schema}.runs JOIN {schema}.records ON records.run = id
    WHERE runs.run = %(run)s AND number = %(first)s AND token = %(token)s
"""
_LOAD: Final = """
    {segments} SELECT number, checksum, body, high FROM segments LEFT JOIN {schema}.records
    ON records.run = id AND number >= low AND number >= %(first)s AND number < high ORDER BY number
"""
_FIND_KEY: Final = """
    {segments} SELECT number, checksum, body FROM segments JOIN {schema}.records
    ON run = id AND key = %(key)s AND number < high
"""
_FORK: Final = """
    {segments} INSERT INTO {schema}.runs (run, parent, base, length)
    SELECT %(new)s, id, %(position)s, %(position)s FROM segments
    WHERE low < %(position)s AND %(position)s <= high ON CONFLICT DO NOTHING
"""
_LENGTH: Final = "SELECT length FROM {schema}.runs WHERE run = %(run)s"
_LOCK_RUN: Final = """
    INSERT INTO {schema}.runs (run, base, length) VALUES (%(run)s, 0, 0)
    ON CONFLICT (run) DO UPDATE SET changed = runs.changed RETURNING id, length
"""
_ADD_CLAIM: Final = """
    INSERT INTO {schema}.records VALUES (%(id)s, %(number)s, %(checksum)s, %(token)s, %(key)s, %(body)b)
"""
_GROW: Final = "UPDATE {schema}.runs SET length = length + 1, changed = clock_timestamp() WHERE id = %(id)s"
_ACQUIRE: Final = """
    INSERT INTO {schema}.leases VALUES (%(run)s, %(owner)s, clock_timestamp() + make_interval(secs => %(seconds)s))
    ON CONFLICT (run) DO UPDATE SET owner = excluded.owner, until = excluded.until
    WHERE leases.owner = excluded.owner OR leases.until <= clock_timestamp()
"""
_RENEW: Final = """
    UPDATE {schema}.leases SET until = clock_timestamp() + make_interval(secs => %(seconds)s)
    WHERE run = %(run)s AND owner = %(owner)s AND until > clock_timestamp()
"""
_LEASE: Final = """
    SELECT owner, extract(epoch FROM until - clock_timestamp())::float8 FROM {schema}.leases
    WHERE run = %(run)s AND until > clock_timestamp()
"""
_CHANGES: Final = """
    SELECT run, extract(epoch FROM clock_timestamp() - changed)::float8, id,
        EXISTS (SELECT 1 FROM {schema}.leases WHERE leases.run = runs.run AND until > clock_timestamp())
    FROM {schema}.runs WHERE run IS NOT NULL ORDER BY changed DESC
"""


class PostgresStore:
    """A store in a PostgreSQL database, shared by any number of processes and machines.

    `conninfo` is what libpq understands, such as `postgresql://user@host/database`; a password belongs into the
    environment or a file of libpq's. The tables are in `schema`, and are made at the first use. Work beyond
    `connections` at once waits. When the server goes away, the store tries again for up to `timeout` seconds, and finds
    out whether what it had sent was written. Runs expire and leases run out by the clock of the server.
    """

    def __init__(self, conninfo: str, *, schema: str = "suture", connections: int = 4, timeout: float = 30.0) -> None:
        try:
            # The extra is paid for by those who use it.
            self._psycopg: Any = import_module("psycopg")
        except ImportError as error:
            missing = "a PostgresStore needs psycopg, which is not installed: pip install 'psycopg[binary]>=3.2'"
            raise ConfigError(missing) from error
        check_text("the schema of a PostgresStore", schema)
        check_seconds("timeout", timeout)
        if connections < 1:
            raise ConfigError(f"a PostgresStore has at least one connection, not {connections}")
        try:
            known = self._psycopg.conninfo.conninfo_to_dict(conninfo)
        except self._psycopg.ProgrammingError:
            # Without the cause, which shows what was given: there may be a password in it.
            raise ConfigError("a PostgresStore takes what libpq understands: postgresql://user@host/database") from None
        self._name = f"PostgresStore({known.get('dbname', '')!r} at {known.get('host', 'localhost')!r})"
        self._conninfo, self._schema, self._timeout, self._count = conninfo, schema, timeout, connections
        self._closed, self._lock = Event(), Lock()
        self._is_set_up = False
        self._start()

    def close(self) -> None:
        """Close the connections. The store cannot be used any more; closing it again does nothing."""
        self._closed.set()
        if self._process == os.getpid():
            self._executor.shutdown()
            self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return self._name

    async def append(self, run: str, first: int, records: Sequence[bytes], *, owner: str | None = None) -> None:
        """Write `records` as number `first`, `first` + 1, … of `run`: all of them, or none."""
        check_append(run, first, records, owner)
        if not records:
            return
        asked: dict[str, Any] = {
            "run": run.encode(),
            "first": first,
            "count": len(records),
            "owner": None if owner is None else owner.encode(),
            "checksums": [compute_checksum(number, record) for number, record in enumerate(records, first)],
            "bodies": list(records),
            "token": randbits(63),
        }
        await self._do(
            partial(_append, run=run, owner=owner, asked=asked), f"record {first} of run {run!r} was not written"
        )

    async def claim(self, run: str, key: str, record: bytes) -> Entry:
        """Write a record under a key as the next one of `run`, unless there is one; return what is under the key."""
        check_append(run, 0, [record])
        check_text("the key of a record", key)
        work = partial(_claim, run=run, key=key, record=record)
        return await self._do(work, f"record {key!r} of run {run!r} was not written")

    async def load(self, run: str, first: int = 0) -> list[bytes]:
        """Return the records of `run` from number `first` on, in order; none if there is no such run."""
        check_append(run, first, ())
        return await self._do(partial(_load, run=run, first=first), f"run {run!r} was not read")

    async def fork(self, run: str, position: int, new_run: str) -> None:
        """Let `new_run` begin with the records of `run` below `position`, without copying them."""
        check_append(run, position, ())
        check_run(new_run)
        work = partial(_fork, run=run, position=position, new_run=new_run)
        await self._do(work, f"run {run!r} was not forked")

    async def delete(self, run: str) -> None:
        """Delete `run`, the runs nested in it, and their leases."""
        check_run(run)
        await self._do(partial(_delete, run=run), f"run {run!r} was not deleted")

    async def runs(self) -> list[str]:
        """Return the ids of all runs, the one that changed last first."""
        rows = await self._do(lambda session: session.query(_CHANGES), "the runs were not read")
        return [run.decode() for run, _, _, _ in rows]

    async def expire(self, seconds: float) -> int:
        """Delete the runs that, with all those nested in them, have not changed for `seconds`; return how many."""
        check_seconds("seconds", seconds)
        return await self._do(partial(_expire, seconds=seconds), "no run was expired")

    async def acquire(self, run: str, owner: str, seconds: float) -> bool:
        """Take the lease of `run` for `seconds`; return whether it is `owner`'s now."""
        return await self._lease(_ACQUIRE, run, owner, seconds)

    async def renew(self, run: str, owner: str, seconds: float) -> bool:
        """Hold a lease for `seconds` from now on; return `False` if it is not `owner`'s any more."""
        return await self._lease(_RENEW, run, owner, seconds)

    async def release(self, run: str, owner: str) -> None:
        """Give the lease of `run` back, if it is `owner`'s."""
        await self._lease("DELETE FROM {schema}.leases WHERE run = %(run)s AND owner = %(owner)s", run, owner, 0)

    async def lease(self, run: str) -> Lease | None:
        """Return who holds the lease of `run`, if anybody does."""
        check_run(run)
        return await self._do(partial(_find_lease, run=run), f"the lease of run {run!r} was not read")

    async def _lease(self, statement: str, run: str, owner: str, seconds: float) -> bool:
        check_lease(run, owner, seconds)
        asked = {"run": run.encode(), "owner": owner.encode(), "seconds": seconds}
        return await self._do(
            lambda session: session.execute(statement, asked) == 1, f"the lease of run {run!r} was not changed"
        )

    async def _do(self, work: Work[T], undone: str) -> T:
        if self._process != os.getpid():
            self._start()
        if self._closed.is_set():
            raise StoreError(f"{self}: {undone}: it has been closed; make another one")
        loop = asyncio.get_running_loop()
        return await wait_to_the_end(loop.run_in_executor(self._executor, self._perform, work, undone))

    def _start(self) -> None:
        self._process = os.getpid()
        self._sessions: list[_Session] = []
        self._finalizer = weakref.finalize(self, _close, self._sessions, self._process)
        self._thread = local()
        self._executor = ThreadPoolExecutor(self._count, thread_name_prefix="suture-postgres")

    def _perform(self, work: Work[T], undone: str) -> T:
        """Do `work`; again, up to the timeout, if the server goes away."""
        attempt, deadline = 0, 0.0
        session = self._find_session()
        while True:
            session.is_retry = attempt > 0
            try:
                if not self._is_set_up:
                    self._set_up(session)
                return work(session)
            except DamagedJournalError as error:
                raise DamagedJournalError(f"{self}: {undone}: {error}; bring back a copy of the database") from None
            except self._psycopg.Error as error:
                reason = _explain(error)
                if error.sqlstate in _DAMAGE:
                    raise DamagedJournalError(f"{self}: {undone}: {reason}") from error
                if error.sqlstate not in _RETRY and not session.is_lost(error):
                    raise StoreError(f"{self}: {undone}: {reason}") from error
                now = time.monotonic()
                deadline = deadline or now + self._timeout
                if not self._is_set_up:  # its address may be wrong
                    raise StoreError(f"{self}: {undone}: no server was reached ({reason})") from error
                if now >= deadline:
                    lost = f"the server was not reached for {self._timeout:g} s; load the run before it goes on"
                    raise StoreError(f"{self}: {undone}: {lost} ({reason})") from error
            self._closed.wait(_PAUSES[min(attempt, len(_PAUSES) - 1)])
            attempt += 1

    def _find_session(self) -> "_Session":
        session: _Session | None = getattr(self._thread, "session", None)
        if session is None:
            session = self._thread.session = _Session(self._psycopg, self._conninfo, self._schema)
            self._sessions.append(session)
        return session

    def _set_up(self, session: "_Session") -> None:
        with self._lock, session.transaction():
            session.lock()
            ((exists,),) = session.query("SELECT to_regclass(%(name)s) IS NOT NULL", {"name": session.table("version")})
            if not exists:
                session.execute(_TABLES)
            ((version,),) = session.query("SELECT version FROM {schema}.version")
            if version != _VERSION:
                raise StoreError(f"{self} has version {version}, and this release of Suture knows {_VERSION} only")
        self._is_set_up = True


class _Session:
    """The connection of one thread, which is opened when it is needed, and again when it was lost."""

    def __init__(self, psycopg: Any, conninfo: str, schema: str) -> None:
        self._psycopg, self._conninfo = psycopg, conninfo
        self._schema = psycopg.sql.Identifier(schema)
        self._statements: dict[str, Any] = {}
        self._connection: Connection | None = None
        self.is_retry = False
        """Whether this is done again, because the server went away the first time."""

    def execute(self, statement: str, asked: dict[str, Any] | None = None) -> int:
        """Execute a statement, and return how many rows it changed."""
        return self._execute(statement, asked).rowcount

    def query(self, statement: str, asked: dict[str, Any] | None = None) -> list[Any]:
        """Execute a statement, and return its rows."""
        return self._execute(statement, asked).fetchall()

    def transaction(self) -> Any:
        """Return a block that is whole or not at all."""
        return self._open().transaction()

    def lock(self) -> None:
        """Keep others from deleting and forking until the transaction ends."""
        self.query("SELECT pg_advisory_xact_lock(hashtext(%(name)s))", {"name": self.table("runs")})

    def table(self, name: str) -> str:
        """Return the whole name of a table."""
        return f"{self._schema.as_string(None)}.{name}"

    def is_lost(self, error: Any) -> bool:
        """Return whether the connection is gone; the next use opens another one."""
        connection = self._connection
        if connection is not None and not connection.broken and not connection.closed and error.sqlstate not in _DOWN:
            return False
        self.close()
        return True

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(self._psycopg.Error):
                connection.close()

    def _execute(self, statement: str, asked: dict[str, Any] | None) -> Any:
        composed = self._statements.get(statement)
        if composed is None:
            compose = self._psycopg.sql.SQL
            parts = {name: compose(part).format(schema=self._schema) for name, part in _PARTS.items()}
            composed = self._statements[statement] = compose(statement).format(schema=self._schema, **parts)
        return self._open().execute(composed, asked, binary=asked is not None)

    def _open(self) -> Connection:
        if self._connection is None:
            connection: Connection = self._psycopg.connect(self._conninfo, autocommit=True)
            self._connection = connection
        return self._connection


def _append(session: _Session, run: str, owner: str | None, asked: dict[str, Any]) -> None:
    def was_written() -> bool:
        # Of what is done again perhaps only the answer was lost, or a server that is slow still writes it.
        return session.is_retry and bool(session.query(_WAS_WRITTEN, asked))

    while not was_written() and not session.execute(_APPEND if asked["first"] else _BEGIN, asked):
        lease, length = _find_lease(session, run), _find_length(session, run)
        if was_written():
            return
        if owner is not None and lease is not None and lease.owner != owner:
            raise LeaseError(run, owner, lease.owner)
        if length != asked["first"]:
            raise StoreConflictError(run, given=asked["first"], expected=length)


def _claim(session: _Session, run: str, key: str, record: bytes) -> Entry:
    asked = {"run": run.encode(), "key": key.encode(), "first": 0}
    with session.transaction():
        ((number, length),) = session.query(_LOCK_RUN, asked)
        for row in session.query(_FIND_KEY, asked):
            return Entry(row[0], verify_records(row[0], [row])[0])
        row = {"id": number, "number": length, "checksum": compute_checksum(length, record), "token": randbits(63)}
        session.execute(_ADD_CLAIM, {**row, "key": key.encode(), "body": record})
        session.execute(_GROW, {"id": number})
    return Entry(length, record)


def _load(session: _Session, run: str, first: int) -> list[bytes]:
    rows = session.query(_LOAD, {"run": run.encode(), "first": first})
    records = verify_records(first, (row[:3] for row in rows if row[0] is not None))
    length = max((high for _, _, _, high in rows), default=0)
    if first + len(records) < length:
        raise DamagedJournalError(f"record {first + len(records)} is missing")
    return records


def _find_length(session: _Session, run: str) -> int:
    rows = session.query(_LENGTH, {"run": run.encode()})
    return rows[0][0] if rows else 0


def _find_lease(session: _Session, run: str) -> Lease | None:
    rows = session.query(_LEASE, {"run": run.encode()})
    return Lease(rows[0][0].decode(), rows[0][1]) if rows else None


def _fork(session: _Session, run: str, position: int, new_run: str) -> None:
    with session.transaction():
        session.lock()
        check_fork(run, position, _find_length(session, run))
        asked = {"run": run.encode(), "first": 0, "position": position, "new": new_run.encode()}
        if session.execute(_FORK, asked):
            return
        length = _find_length(session, new_run)
        if length and not (session.is_retry and length == position):
            raise StoreConflictError(new_run, given=0, expected=length)


def _delete(session: _Session, run: str) -> None:
    # In the order of the bytes "0" is what comes right after "/".
    asked = {"run": run.encode(), "low": f"{run}/".encode(), "high": f"{run}0".encode()}
    with session.transaction():
        session.lock()
        session.execute("DELETE FROM {schema}.leases WHERE {within}", asked)
        _remove(session, session.query("UPDATE {schema}.runs SET run = NULL WHERE {within} RETURNING id", asked))


def _expire(session: _Session, seconds: float) -> int:
    with session.transaction():
        session.lock()
        session.execute("DELETE FROM {schema}.leases WHERE until <= clock_timestamp()")
        rows = session.query(_CHANGES)
        stale = set(find_stale_runs({run.decode(): inf if held else -age for run, age, _, held in rows}, -seconds))
        ids = [number for run, _, number, _ in rows if run.decode() in stale]
        unname = "UPDATE {schema}.runs SET run = NULL WHERE id = ANY(%(ids)s) AND changed <= clock_timestamp()"
        unname += " - make_interval(secs => %(seconds)s) RETURNING id"
        gone = session.query(unname, {"ids": ids, "seconds": seconds})
        count = len(gone)
        _remove(session, gone)
    return count


def _remove(session: _Session, rows: list[tuple[int]]) -> None:
    """Remove runs that have no name any more, except for records that forks share."""
    numbers = [number for (number,) in rows]
    while numbers:
        asked = {"id": numbers.pop()}
        # Forks need what is below the highest of their bases.
        ((shared,),) = session.query("SELECT coalesce(max(base), 0) FROM {schema}.runs WHERE parent = %(id)s", asked)
        session.execute(
            "DELETE FROM {schema}.records WHERE run = %(id)s AND number >= %(shared)s", {**asked, "shared": shared}
        )
        if not shared:
            parents = session.query("DELETE FROM {schema}.runs WHERE id = %(id)s RETURNING parent", asked)
            unnamed = "SELECT id FROM {schema}.runs WHERE id = %(id)s AND run IS NULL"
            numbers += [row[0] for (parent,) in parents for row in session.query(unnamed, {"id": parent})]


def _close(sessions: list[_Session], process: int) -> None:
    # What a forked process has inherited is its parent's.
    if process == os.getpid():
        for session in sessions:
            session.close()


def _explain(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:300] or type(error).__name__
