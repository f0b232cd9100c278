"""A `PostgresStore` on a real server: the contract, many processes, and a server that is killed."""

import asyncio
import re
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager
from typing import Any

import psycopg
import pytest
from psycopg import sql

from suture.errors import ConfigError
from suture.stores import Entry, PostgresStore, Store, StoreConflictError, StoreError, postgres
from suture.testing import StoreContract
from tests.stores.processes import finished, hear, program, run, tell
from tests.stores.servers import Postgres, closed_port
from tests.stores.test_killed_processes import WRITER, whole
from tests.stores.test_many_processes import OWN_RUN, SHARED_RUN

# One server for all, where the tests are given out by groups.
pytestmark = pytest.mark.xdist_group("postgres")

numbers = iter(range(1_000_000))


@pytest.fixture
def server(postgres: Postgres) -> Postgres:
    return postgres


class TestPostgresStore(StoreContract):
    @pytest.fixture(autouse=True)
    def _server(self, server: Postgres):
        self.server, self.stores = server, list[PostgresStore]()
        yield
        for store in self.stores:
            store.close()

    def make_store(self) -> Store:
        self.schema = f"contract {next(numbers)}"
        return self.make_another()

    def make_another(self, store: Store | None = None) -> Store:
        self.stores.append(PostgresStore(self.server.conninfo, schema=self.schema))
        return self.stores[-1]

    def crash(self, store: Store) -> None:
        self.server.kill()
        self.server.start()

    def damage(self, store: Store, run: str, number: int) -> bool:
        with psycopg.connect(self.server.conninfo) as other:
            update = sql.SQL("UPDATE {}.records SET body = 'x' WHERE number = %s").format(sql.Identifier(self.schema))
            other.execute(update, (number,))
        return True


@pytest.fixture
def schema() -> str:
    return f"test {next(numbers)}"


@pytest.fixture
def store(server: Postgres, schema: str):
    with PostgresStore(server.conninfo, schema=schema) as store:
        yield store


def adapt(script: str, schema: str) -> str:
    """Return a program that was written for a SQLite file."""
    return script.replace("SQLiteStore(path, busy_timeout=60)", "SQLiteStore(path)").replace(
        "SQLiteStore(path)", f"PostgresStore(path, schema={schema!r})"
    )


# --- many processes ---------------------------------------------------------------------------


def test_processes_write_their_own_runs_at_once(server: Postgres, store: PostgresStore, schema: str):
    with ExitStack() as stack:
        script = adapt(OWN_RUN, schema).replace("range(300)", "range(100)")
        processes = [stack.enter_context(program(script, server.conninfo)) for _ in range(3)]
        for process in processes:
            assert hear(process) == "ready"
        for number, process in enumerate(processes):
            tell(process, f"run-{number}")
        for process in processes:
            assert finished(process) == []
    assert sorted(asyncio.run(store.runs())) == ["run-0", "run-1", "run-2"]


def test_of_processes_that_write_one_run_each_number_is_written_by_one(
    server: Postgres, store: PostgresStore, schema: str
):
    with ExitStack() as stack:
        script = adapt(SHARED_RUN, schema).replace("done < 100", "done < 40")
        processes = [stack.enter_context(program(script, server.conninfo)) for _ in range(3)]
        for process in processes:
            assert hear(process) == "ready"
        for name, process in zip("abc", processes, strict=True):
            tell(process, name)
        said = [line.split(maxsplit=1) for process in processes for line in finished(process)]
    claimed = {int(number): record.encode() for number, record in said}
    assert len(said) == len(claimed) == 120
    assert dict(enumerate(asyncio.run(store.load("shared")))) == claimed


def test_what_a_killed_process_was_told_is_written_is_there(server: Postgres, store: PostgresStore, schema: str):
    told = {"a": 0, "a/b": 0}
    for count in (0, 1, 7, 50):
        with program(adapt(WRITER, schema), server.conninfo) as process:
            tell(process, "a a/b")
            assert hear(process) == "ready"
            for _ in range(count):
                name, length = hear(process).split()
                told[name] = int(length)
            process.send_signal(signal.SIGKILL)
            process.wait()
        for name, length in told.items():
            journal = asyncio.run(store.load(name))
            assert whole(name, journal)
            assert len(journal) >= length
            told[name] = len(journal)


def test_a_forked_process_has_connections_of_its_own(server: Postgres, store: PostgresStore, schema: str):
    script = adapt(
        """
store = SQLiteStore(path)
asyncio.run(store.append("run", 0, [b"0"]))
child = os.fork()
if not child:
    asyncio.run(store.append("run", 1, [b"1"]))
    os._exit(0)
os.waitpid(child, 0)
asyncio.run(store.append("run", 2, [b"2"]))
store.close()
""",
        schema,
    )
    assert run(script, server.conninfo) == []
    assert asyncio.run(store.load("run")) == [b"0", b"1", b"2"]


# --- a server that goes away ------------------------------------------------------------------


def test_a_server_that_is_killed_again_and_again_loses_nothing_and_nothing_is_written_twice(
    server: Postgres, store: PostgresStore
):
    async def write(name: str) -> None:
        for number in range(150):
            if number % 2:
                entry = await store.claim(name, f"{number}", b"%d" % number)
                assert entry == Entry(number, b"%d" % number)
            else:
                await store.append(name, number, [b"%d" % number])

    async def use() -> None:
        writers = asyncio.gather(*(write(name) for name in "abcd"))
        for _ in range(3):
            length = len(await store.load("a"))
            while not writers.done() and len(await store.load("a")) < min(length + 20, 150):
                pass
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
        await writers
        for name in "abcd":
            assert await store.load(name) == [b"%d" % number for number in range(150)]

    asyncio.run(use())


def lose_one_answer(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    """Let the connection break once, right after something was done."""
    real, lost = getattr(postgres._Session, method), list[str]()

    def losing(session: Any, statement: str, **asked: Any) -> Any:
        result = real(session, statement, **asked)
        if "INSERT INTO {schema}runs" in statement and not lost:
            lost.append(statement)
            session.close()
            raise psycopg.OperationalError("the connection is lost")
        return result

    monkeypatch.setattr(postgres._Session, method, losing)


def test_an_append_whose_answer_was_lost_is_not_done_twice(store: PostgresStore, monkeypatch: pytest.MonkeyPatch):
    async def use() -> None:
        assert await store.load("run") == []
        lose_one_answer(monkeypatch, "execute")
        await store.append("run", 0, [b"0", b"1"])
        assert await store.load("run") == [b"0", b"1"]
        with pytest.raises(StoreConflictError):
            await store.append("run", 0, [b"0", b"1"])  # which is somebody else's, although it is the same

    asyncio.run(use())


def test_an_append_that_a_slow_server_still_writes_is_not_a_conflict(
    server: Postgres, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
):
    real, sent = postgres._Session.execute, list[Any]()

    def slow(session: Any, statement: str, **asked: Any) -> int:
        if not sent:
            # Another connection of this store's holds the row, and nobody sees yet what it has written.
            holder = postgres._Session(psycopg, server.conninfo, store._schema)
            transaction = holder.transaction()
            transaction.__enter__()
            sent.append((holder, transaction, real(holder, statement, **asked)))
            session.close()
            raise psycopg.OperationalError("the connection is lost")
        if len(sent) == 1:
            holder, transaction, _ = sent[0]
            sent.append(threading.Thread(target=finish, args=(holder, transaction)))
            sent[1].start()
        return real(session, statement, **asked)

    def finish(holder: Any, transaction: Any) -> None:
        with psycopg.connect(server.conninfo, autocommit=True) as other:
            while not other.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone():
                pass  # until the second append waits for the first
        transaction.__exit__(None, None, None)
        holder.close()

    async def use() -> None:
        await store.append("run", 0, [b"0"])
        monkeypatch.setattr(postgres._Session, "execute", slow)
        await store.append("run", 1, [b"1"])
        sent[1].join()
        assert await store.load("run") == [b"0", b"1"]

    asyncio.run(use())


def test_a_claim_that_was_cut_off_is_done_again(store: PostgresStore, monkeypatch: pytest.MonkeyPatch):
    async def use() -> None:
        assert await store.load("run") == []
        lose_one_answer(monkeypatch, "query")
        assert await store.claim("run", "key", b"0") == Entry(0, b"0")
        assert await store.load("run") == [b"0"]

    asyncio.run(use())


LOST: dict[str, tuple[tuple[Any, ...], dict[str, list[bytes]]]] = {
    "fork": (("run", 2, "new"), {"run": [b"0", b"1", b"2"], "new": [b"0", b"1"]}),
    "replace": (("run", 3, [b"new"]), {"run": [b"new"]}),
    "replace by as many": (("run", 3, [b"a", b"b", b"c"]), {"run": [b"a", b"b", b"c"]}),
    "delete": (("run",), {"run": []}),
    "acquire": (("run", "owner", 60), {"run": [b"0", b"1", b"2"]}),
}


@pytest.mark.parametrize("name", LOST)
def test_what_was_done_before_its_answer_was_lost_is_done_once(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, name: str
):
    real, lost = postgres._Session.transaction, list[str]()

    @contextmanager
    def losing(session: Any):
        with real(session):
            yield
        if not lost:
            lost.append(name)
            session.close()
            raise psycopg.OperationalError("the connection is lost")

    async def use() -> None:
        await store.append("run", 0, [b"0", b"1", b"2"])
        monkeypatch.setattr(postgres._Session, "transaction", losing)
        arguments, expected = LOST[name]
        assert await getattr(store, name.split(maxsplit=1)[0])(*arguments) is (True if name == "acquire" else None)
        assert lost == [name]
        assert {run: await store.load(run) for run in expected} == expected

    asyncio.run(use())


def test_a_server_that_stays_away_is_named(server: Postgres, schema: str):
    with PostgresStore(server.conninfo, schema=schema, timeout=0.01) as store:
        asyncio.run(store.append("run", 0, [b"0"]))
        server.kill()
        with pytest.raises(StoreError) as caught:
            asyncio.run(store.append("run", 1, [b"1"]))
        assert "record 1 of run 'run' was not written: the server was not reached for 0.01 s" in str(caught.value)
        assert caught.value.__cause__ is not None
        server.start()
        assert asyncio.run(store.load("run")) == [b"0"]
        asyncio.run(store.append("run", 1, [b"1"]))


def test_a_server_that_is_not_there_is_named_at_once():
    with closed_port() as port:
        conninfo = f"postgresql://user:SECRET@127.0.0.1:{port}/postgres"
        with PostgresStore(conninfo) as store, pytest.raises(StoreError) as caught:
            asyncio.run(store.load("run"))
    assert str(caught.value).startswith("cannot open the store PostgresStore('postgres' at '127.0.0.1'): connection ")
    assert str(caught.value).endswith("; check its address and your rights there, and that the server runs")
    assert "SECRET" not in f"{caught.value}{caught.value.__cause__}{store!r}"


# --- the database -----------------------------------------------------------------------------


def test_stores_with_other_schemas_have_other_runs(server: Postgres, store: PostgresStore):
    with PostgresStore(server.conninfo, schema='odd "name"; DROP') as other:
        asyncio.run(other.append("run", 0, [b"other"]))
        assert asyncio.run(store.load("run")) == []
        assert asyncio.run(other.load("run")) == [b"other"]


def test_stores_that_make_their_tables_at_once_do_not_disturb_each_other(server: Postgres, schema: str):
    async def use() -> None:
        stores = [PostgresStore(server.conninfo, schema=schema) for _ in range(4)]
        await asyncio.gather(*(store.append(f"{number}", 0, [b"0"]) for number, store in enumerate(stores)))
        assert sorted(await stores[0].runs()) == ["0", "1", "2", "3"]
        for store in stores:
            store.close()

    asyncio.run(use())


def change(server: Postgres, schema: str, statement: str) -> None:
    with psycopg.connect(server.conninfo) as other:
        other.execute(sql.SQL(statement).format(schema=sql.Identifier(schema)))  # pyright: ignore[reportArgumentType]


def test_tables_of_another_version_are_refused(server: Postgres, store: PostgresStore, schema: str):
    asyncio.run(store.append("run", 0, [b"0"]))
    change(server, schema, "UPDATE {schema}.version SET version = 9")
    with PostgresStore(server.conninfo, schema=schema) as other, pytest.raises(StoreError, match="has version 9"):
        asyncio.run(other.load("run"))


def test_what_is_missing_is_noticed(server: Postgres, store: PostgresStore, schema: str):
    asyncio.run(store.append("run", 0, [b"0", b"1", b"2"]))
    asyncio.run(store.fork("run", 3, "fork"))
    for number in (2, 1):
        change(server, schema, f"DELETE FROM {{schema}}.records WHERE number = {number}")
        for name in ("run", "fork"):
            with pytest.raises(StoreError, match=f"run '{name}' was not read: record {number} is missing"):
                asyncio.run(store.load(name))


def test_a_deleted_run_leaves_only_what_forks_share(server: Postgres, store: PostgresStore, schema: str):
    async def use() -> None:
        await store.append("run", 0, [b"%d" % number for number in range(10)])
        await store.fork("run", 4, "fork")
        await store.delete("run")

    def count() -> tuple[Any, ...] | None:
        with psycopg.connect(server.conninfo) as other:
            tables = "SELECT (SELECT count(*) FROM {0}.records), (SELECT count(*) FROM {0}.runs)"
            return other.execute(sql.SQL(tables).format(sql.Identifier(schema))).fetchone()

    asyncio.run(use())
    assert count() == (4, 2)
    asyncio.run(store.delete("fork"))
    assert count() == (0, 0)


# --- options ----------------------------------------------------------------------------------


def test_a_closed_store_says_so(server: Postgres, schema: str):
    store = PostgresStore(server.conninfo, schema=schema)
    asyncio.run(store.append("run", 0, [b"0"]))
    store.close()
    store.close()
    with pytest.raises(StoreError, match="has been closed"):
        asyncio.run(store.load("run"))


@pytest.mark.parametrize("options", [{"schema": ""}, {"connections": 0}, {"timeout": -1}])
def test_wrong_options_are_refused(options: dict[str, Any]):
    with pytest.raises(ConfigError):
        PostgresStore("postgresql://localhost/postgres", **options)


def test_what_is_no_address_is_refused_without_repeating_it():
    with pytest.raises(ConfigError) as caught:
        PostgresStore("postgresql://user:SECRET@host/x?SECRET=1")
    assert "SECRET" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_without_psycopg_it_is_said_what_to_install():
    script = """
import sys
import suture.stores
print("psycopg" in sys.modules)
sys.modules["psycopg"] = None  # as if it were not installed
try:
    suture.stores.PostgresStore("postgresql://localhost")
except Exception as error:
    print(type(error).__name__, error)
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    loaded, told = ended.stdout.splitlines()
    assert loaded == "False"
    assert re.match(r"ConfigError this needs psycopg\[binary\]>=\S+ \(extra postgres\), and psycopg is not inst", told)
