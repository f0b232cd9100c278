"""`PostgresStore`: journals in a PostgreSQL database, for agents on many machines.

Each thread of the store's own pool has one connection. Work is done there and not with psycopg's async connections,
because those belong to one event loop, and a store is shared by several.
"""

import asyncio
import os
import re
import time
import weakref
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from secrets import randbits
from threading import Event, Lock, local
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias, TypeVar
from zlib import crc32

from suture._aio import wait_to_the_end
from suture._extras import import_extra
from suture.errors import ConfigError
from suture.stores import protocols
from suture.stores.journals import MAY_WRITE, SEGMENTS, Journals, SQLTables
from suture.stores.protocols import DamagedJournalError, Entry, StoreConflictError, StoreError, compute_checksum

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")
Connection: TypeAlias = "psycopg.Connection[Any]"
Work: TypeAlias = Callable[["_Session"], T]

_CHECK: Final = "check its address and your rights there, and that the server runs"
_PAUSES: Final = (0.01, 0.02, 0.05, 0.1, 0.25)
_DAMAGE: Final = ("XX001", "XX002")  # data corrupted, index corrupted
_RETRY: Final = ("40001", "40P01")  # serialization failure, deadlock
_DOWN: Final = ("57P01", "57P02", "57P03")  # shut down, crashed, starting
_NOW: Final = "extract(epoch FROM clock_timestamp())::float8"

# Texts are kept as bytes: a text in PostgreSQL cannot contain a NUL, and its order depends on the locale.
_VERSION: Final = 2
_TABLES: Final = f"""
    CREATE SCHEMA IF NOT EXISTS {{name}};
    CREATE TABLE {{schema}}version (version integer NOT NULL);
    CREATE TABLE {{schema}}runs (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, run bytea UNIQUE, parent bigint, base bigint NOT NULL,
        length bigint NOT NULL, changed float8 NOT NULL DEFAULT {{now}}
    );
    CREATE INDEX forks ON {{schema}}runs (parent) WHERE parent IS NOT NULL;
    CREATE TABLE {{schema}}records (
        run bigint, number bigint, checksum integer NOT NULL, token bigint NOT NULL, key bytea, body bytea NOT NULL,
        PRIMARY KEY (run, number)
    );
    CREATE UNIQUE INDEX claims ON {{schema}}records (run, key) WHERE key IS NOT NULL;
    CREATE TABLE {{schema}}leases (run bytea, place bigint, owner bytea NOT NULL, until float8 NOT NULL,
        PRIMARY KEY (run, place));
    INSERT INTO {{schema}}version VALUES ({_VERSION});
"""
_INSERT: Final = """
    INSERT INTO {schema}records (run, number, checksum, token, body)
    SELECT id, :first + place - 1, checksum, :token, body FROM head,
    unnest(%(checksums)b::integer[], %(bodies)b::bytea[]) WITH ORDINALITY AS new (checksum, body, place)
"""
_BEGIN: Final = f"""
    WITH head AS (INSERT INTO {{schema}}runs (run, base, length) SELECT :run, 0, :count WHERE {MAY_WRITE}
        ON CONFLICT DO NOTHING RETURNING id) {_INSERT}
"""
_APPEND: Final = f"""
    WITH head AS (UPDATE {{schema}}runs SET length = length + :count, changed = {{now}}
        WHERE run = :run AND length = :first AND {MAY_WRITE} RETURNING id) {_INSERT}
"""
_WAS_WRITTEN: Final = """
    SELECT 1 FROM {schema}runs JOIN {schema}records ON records.run = id
    WHERE runs.run = :run AND number = :first AND token = :token
"""
_LOAD: Final = f"""
    {SEGMENTS} SELECT number, checksum, body, high FROM segments LEFT JOIN {{schema}}records
    ON records.run = id AND number >= low AND number >= :first AND number < high ORDER BY number
"""
_FIND_KEY: Final = f"""
    {SEGMENTS} SELECT number, checksum, body FROM segments JOIN {{schema}}records
    ON run = id AND key = :key AND number < high
"""
_LOCK_RUN: Final = """
    INSERT INTO {schema}runs (run, base, length) VALUES (:run, 0, 0)
    ON CONFLICT (run) DO UPDATE SET changed = runs.changed RETURNING id, length
"""
_ADD_CLAIM: Final = "INSERT INTO {schema}records VALUES (:id, :number, :checksum, :token, :key, %(body)b)"
_GROW: Final = "UPDATE {schema}runs SET length = length + 1, changed = {now} WHERE id = :id"


class PostgresStore(Journals):
    """A store in a PostgreSQL database, shared by any number of processes and machines.

    `conninfo` is a connection string of libpq, such as `postgresql://user@host/database`; a password belongs in the
    environment or in a file of libpq's. The tables are in `schema`, and are made at the first use. At most
    `connections` operations run at once. If the server goes away, the store tries again for up to `timeout` seconds,
    and checks whether its last write arrived. Runs expire and leases run out by the server's clock.
    """

    def __init__(self, conninfo: str, *, schema: str = "suture", connections: int = 4, timeout: float = 30.0) -> None:
        self._psycopg: Any = import_extra("psycopg", "postgres")
        protocols.check_text("the schema of a PostgresStore", schema)
        protocols.check_seconds("timeout", timeout)
        if connections < 1:
            raise ConfigError(f"a PostgresStore has at least one connection, not {connections}")
        try:
            known = self._psycopg.conninfo.conninfo_to_dict(conninfo)
        except self._psycopg.ProgrammingError:
            # No cause, because it would show the connection string, which may contain a password.
            raise ConfigError("a PostgresStore takes what libpq understands: postgresql://user@host/database") from None
        self._name = f"PostgresStore({known.get('dbname', '')!r} at {known.get('host', 'localhost')!r})"
        self._conninfo, self._schema, self._timeout, self._count = conninfo, schema, timeout, connections
        self._closed, self._lock = Event(), Lock()
        self._is_set_up = False
        self._start()

    def close(self) -> None:
        """Close the connections. The store cannot be used after that; closing it again does nothing."""
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

    async def _do(self, work: Work[T], undone: str, *, reads: bool = False) -> T:
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
        """Do `work`, and repeat it, up to the timeout, if the server goes away."""
        attempt, deadline = 0, 0.0
        session: _Session | None = getattr(self._thread, "session", None)
        if session is None:
            session = self._thread.session = _Session(self._psycopg, self._conninfo, self._schema)
            self._sessions.append(session)
        session.token = randbits(63)
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
                is_lost = session.is_lost(error)
                if not self._is_set_up:  # the address may be wrong
                    raise StoreError(f"cannot open the store {self}: {reason}; {_CHECK}") from error
                if error.sqlstate not in _RETRY and not is_lost:
                    raise StoreError(f"{self}: {undone}: {reason}") from error
                now = time.monotonic()
                deadline = deadline or now + self._timeout
                if now >= deadline:
                    lost = f"the server was not reached for {self._timeout:g} s; load the run before it goes on"
                    raise StoreError(f"{self}: {undone}: {lost} ({reason})") from error
            self._closed.wait(_PAUSES[min(attempt, len(_PAUSES) - 1)])
            attempt += 1

    def _set_up(self, session: "_Session") -> None:
        with self._lock, session.transaction():
            session.query("SELECT pg_advisory_xact_lock(:number)", number=crc32(self._schema.encode()))
            ((exists,),) = session.query("SELECT to_regclass(:name) IS NOT NULL", name=f"{session.name}.version")
            if not exists:
                session.run_script(_TABLES)
            ((version,),) = session.query("SELECT version FROM {schema}version")
            if version != _VERSION:
                known = f"this release of Suture knows version {_VERSION} only; use the release that made it"
                raise StoreError(f"cannot open the store {self}: it has version {version}, and {known}")
        self._is_set_up = True


class _Session(SQLTables):
    """The connection of one thread, which is opened when it is needed, and again if it was lost."""

    changes = "SELECT run, changed, id FROM {schema}runs WHERE run IS NOT NULL ORDER BY changed DESC"
    add_fork = "INSERT INTO {schema}runs (run, parent, base, length) VALUES (:run, :parent, :base, :base)"
    drop_records = ("DELETE FROM {schema}records WHERE run = :id AND number >= :first",)

    def __init__(self, psycopg: Any, conninfo: str, schema: str) -> None:
        self._psycopg, self._conninfo = psycopg, conninfo
        self.name: str = psycopg.sql.Identifier(schema).as_string(None)
        self._statements: dict[str, Any] = {}
        self._connection: Connection | None = None
        self.token = 0
        """Marks the records of one piece of work, however often it is repeated."""
        self.is_retry = False
        """Whether this work is repeated, because the server went away the first time."""

    def execute(self, statement: str, **asked: Any) -> int:
        return self._execute(statement, asked).rowcount

    def query(self, statement: str, **asked: Any) -> list[Any]:
        return self._execute(statement, asked).fetchall()

    def run_script(self, statements: str) -> None:
        """Execute statements without parameters."""
        self._open().execute(self._compose(statements, self.name), None)

    def transaction(self) -> Any:
        """Return a transaction."""
        return self._open().transaction()

    @contextmanager
    def changing(self, run: str = "") -> Generator[None]:
        with self.transaction():
            if run:
                self.query("SELECT pg_advisory_xact_lock(:number)", number=crc32(f"{self.name}/{run}".encode()))
            else:
                self.execute("LOCK TABLE {schema}runs IN SHARE ROW EXCLUSIVE MODE")
            yield

    def text(self, text: str) -> bytes:
        return text.encode()

    def read(self, text: Any) -> str:
        return text.decode()

    def is_lost(self, error: Any) -> bool:
        """Return whether the connection is lost; the next use opens another one."""
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

    def _execute(self, statement: str, asked: dict[str, Any]) -> Any:
        composed = self._statements.get(statement)
        if composed is None:
            placed = re.sub(r"(?<!:):([a-z]+)", r"%(\1)s", statement)
            composed = self._statements[statement] = self._compose(placed, self.name.replace("%", "%%"))
        return self._open().execute(composed, asked, binary=bool(asked))

    def _compose(self, statement: str, name: str) -> Any:
        statement = statement.replace("{now}", _NOW).replace("{length}", "length")
        return self._psycopg.sql.SQL(statement.replace("{schema}", f"{name}.").replace("{name}", name))

    def _open(self) -> Connection:
        if self._connection is None:
            connection: Connection = self._psycopg.connect(self._conninfo, autocommit=True)
            self._connection = connection
        return self._connection

    # The journals

    def append(self, run: str, first: int, records: Sequence[bytes], owner: str | None) -> None:
        asked: dict[str, Any] = {"run": run.encode(), "first": first, "count": len(records), "token": self.token}
        asked["owner"] = None if owner is None else owner.encode()
        asked["checksums"] = [compute_checksum(number, record) for number, record in enumerate(records, first)]
        asked["bodies"] = list(records)
        while not self._was_written(asked) and not self.execute(_APPEND if first else _BEGIN, **asked):
            length = self.length(run)
            if self._was_written(asked):
                return
            self.check_lease(run, owner)
            if length != first:
                raise StoreConflictError(run, given=first, expected=length)

    def _was_written(self, asked: dict[str, Any]) -> bool:
        # On a retry, perhaps only the answer was lost, or a slow server is still writing.
        return self.is_retry and bool(self.query(_WAS_WRITTEN, **asked))

    def claim(self, run: str, key: str, record: bytes) -> Entry:
        asked = {"run": run.encode(), "key": key.encode()}
        with self.transaction():
            ((number, length),) = self.query(_LOCK_RUN, **asked)
            for row in self.query(_FIND_KEY, first=0, **asked):
                return Entry(row[0], protocols.verify_records(row[0], [row])[0])
            row = {"id": number, "number": length, "checksum": compute_checksum(length, record), "body": record}
            self.execute(_ADD_CLAIM, token=self.token, **asked, **row)
            self.execute(_GROW, id=number)
        return Entry(length, record)

    def load(self, run: str, first: int) -> list[bytes]:
        rows = self.query(_LOAD, run=run.encode(), first=first)
        records = protocols.verify_records(first, (row[:3] for row in rows if row[0] is not None))
        length = max((high for _, _, _, high in rows), default=0)
        if first + len(records) < length:
            raise DamagedJournalError(f"record {first + len(records)} is missing")
        return records

    def fork(self, run: str, position: int, new_run: str) -> None:
        try:
            super().fork(run, position, new_run)
        except StoreConflictError:
            if not self.is_retry or self.length(new_run) != position:  # otherwise only the answer was lost
                raise

    def replace(self, run: str, length: int, records: Sequence[bytes], owner: str | None) -> None:
        try:
            super().replace(run, length, records, owner)
        except StoreConflictError:
            if not self.is_retry or self.length(run) != len(records):
                raise

    def length(self, run: str) -> int:
        rows = self.query("SELECT length FROM {schema}runs WHERE run = :run", run=run.encode())
        return rows[0][0] if rows else 0


def _close(sessions: list[_Session], process: int) -> None:
    # A forked process has only inherited the connections; they are its parent's.
    if process == os.getpid():
        for session in sessions:
            session.close()


def _explain(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:300] or type(error).__name__
