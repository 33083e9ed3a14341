"""A Postgres server of the tests' own: in a temporary folder, found only by its socket.

    server = PostgresServer()          # a folder; nothing runs
    server.start(); server.kill(); server.start(); server.close()
    dsn = server.new_database()        # for psycopg2.connect; `url` for others
    server.execute(dsn, "select 1")

Tests take the fixtures `postgres`, a server for all tests of a worker, and `database`, the DSN of a
new database in it. A test that kills a server has its own: `with running_or_skipped() as server`.

Files are not flushed to the disk, but a commit is written before it is acknowledged: without
`fsync`, a machine may lose data, but never a killed process.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pytest

DEBIAN = "/usr/lib/postgresql"
OPTIONS = {
    "listen_addresses": "",
    "wal_level": "logical",
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "dynamic_shared_memory_type": "mmap",
    "shared_buffers": "16MB",
    "max_connections": "60",
    "max_wal_senders": "30",
    "max_replication_slots": "60",
    "log_min_messages": "warning",
}
SECONDS = 60


@cache
def binaries() -> Path | None:
    """The folder with the programs of a server, of the newest that there is."""
    folders = [path.parent for path in Path(DEBIAN).glob("*/bin/postgres")]
    if folders:
        return max(folders, key=lambda path: [int(n) for n in path.parent.name.split(".")])
    found = shutil.which("postgres")
    return Path(found).resolve().parent if found else None


def why_none() -> str | None:
    """Why no server can be started here; `None` where one can."""
    if not sys.platform.startswith(("linux", "darwin")):
        return "servers of the tests have Unix sockets"
    if binaries() is None:
        return f"no Postgres server in {DEBIAN} or PATH (sh tests/services.sh installs it)"
    try:
        import psycopg2  # noqa: F401
    except ImportError:
        return "psycopg2 is not installed"
    return None


class PostgresServer:
    """A server that can be killed and restarted, with its data."""

    def __init__(self, **options: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pg"))
        self._options = {**OPTIONS, "unix_socket_directories": str(self.folder), **options}
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = count(1)
        shutil.rmtree(self.folder)
        shutil.copytree(_template(), self.folder)
        _own(self.folder)
        atexit.register(self.close)

    @property
    def pid(self) -> int:
        """Return the id of the process that starts all others of the server."""
        assert self._process is not None
        return self._process.pid

    def dsn(self, database: str = "postgres") -> str:
        """Return the argument for `psycopg2.connect`."""
        return f"host={self.folder} user=postgres dbname={database}"

    def url(self, database: str = "postgres") -> str:
        """Return the DSN as a URL; SQLAlchemy needs it to begin with `postgresql+driver://`."""
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def start(self) -> None:
        """Start it, also after it was killed, and wait until it answers."""
        assert self._process is None, "it runs"
        options = [f"--{name}={value}" for name, value in self._options.items()]
        command = [*_as_owner(ends_with_us=True), _program("postgres"), "-D", str(self.folder)]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, *options], stdout=log, stderr=log, cwd=self.folder
            )
        self._wait()

    def kill(self) -> None:
        """Kill all of its processes, as when memory runs out."""
        if self._process is not None:
            os.kill(self.pid, signal.SIGSTOP)  # it starts no more processes
            children = _children(self.pid)
            for pid in (self.pid, *children):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._process.wait()
            self._process = None
            self._wait_for_end(children)

    def stop(self, *, gently: bool = True) -> None:
        """Stop the server: end clients and write changes; if not `gently`, do neither."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT if gently else signal.SIGQUIT)
            self._process.wait(SECONDS)
            self._process = None

    def close(self) -> None:
        """Stop it, and have its folder removed."""
        self.stop(gently=False)
        atexit.unregister(self.close)
        if self.folder.exists():
            gone = self.folder.rename(self.folder.with_suffix(".gone"))
            subprocess.run(["sh", "-c", 'rm -rf "$0" &', str(gone)])  # hundreds of files a database

    def new_database(self) -> str:
        """Make an empty database; its DSN."""
        name = f"db{next(self._numbers)}"
        self.execute(self.dsn(), f"create database {name}")
        return self.dsn(name)

    def execute(self, dsn: str, statement: str, values: Sequence[Any] | None = None) -> list[Any]:
        """Run a statement in a connection and a commit of its own; return its rows."""
        import psycopg2

        connection = psycopg2.connect(dsn)
        connection.autocommit = True
        try:
            cursor = connection.cursor()
            cursor.execute(statement, values)
            return cursor.fetchall() if cursor.description else []
        finally:
            connection.close()

    def _wait_for_end(self, pids: Sequence[int]) -> None:
        """Wait until no process is left: one that still ends holds the shared memory, for which
        the next server would refuse to start."""
        until = time.monotonic() + SECONDS
        while any(map(_is_running, pids)) and time.monotonic() < until:
            time.sleep(0.005)

    def _wait(self) -> None:
        import psycopg2

        assert self._process is not None
        until = time.monotonic() + SECONDS
        while True:
            try:
                psycopg2.connect(self.dsn()).close()
                return
            except psycopg2.OperationalError:
                if self._process.poll() is not None or time.monotonic() > until:
                    self.stop(gently=False)
                    raise AssertionError((self.folder / "log").read_text()[-2000:]) from None
            time.sleep(0.02)


@contextlib.contextmanager
def running(**options: str) -> Iterator[PostgresServer]:
    """A server for as long as the block lasts; `options` are settings of `postgresql.conf`."""
    server = PostgresServer(**options)
    try:
        server.start()
        yield server
    finally:
        server.close()


def running_or_skipped(**options: str) -> AbstractContextManager[PostgresServer]:
    """Start a server; if it cannot run, skip the test, or fail in CI."""
    if why := why_none():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(why)
    return running(**options)


def _is_running(pid: int) -> bool:
    """Return True if the process runs; False if it ended, and only waits for its parent."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status not in "ZX"


def _template() -> Path:
    """A folder as `initdb` makes it, made once and copied: a copy takes a tenth of the time."""
    version = subprocess.check_output([_program("postgres"), "--version"], text=True).split()[-1]
    path = Path(tempfile.gettempdir()) / f"reactive-postgres-{version.strip('()')}-{os.getuid()}"
    if path.exists():
        return path
    made = Path(tempfile.mkdtemp(prefix="pg"))
    _own(made)
    options = ["-D", str(made), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C"]
    command = [*_as_owner(), _program("initdb"), *options, "--no-sync"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=made)
    try:
        made.rename(path)
    except OSError:  # another worker was quicker
        shutil.rmtree(made)
    return path


def _program(name: str) -> str:
    folder = binaries()
    assert folder is not None
    return str(folder / name)


def _as_owner(*, ends_with_us: bool = False) -> list[str]:
    """Return the prefix of a command that runs it as a user other than root."""
    setpriv = shutil.which("setpriv")
    ends = ["--pdeathsig", "QUIT"] if ends_with_us and setpriv else []
    if os.getuid() != 0:
        return [setpriv, *ends, "--"] if setpriv and ends else []
    assert setpriv, "a server does not run as root, and there is no setpriv"
    return [setpriv, "--reuid=postgres", "--regid=postgres", "--clear-groups", *ends, "--"]


def _own(folder: Path) -> None:
    """Give a folder and its contents to the user of the server, and let others reach its socket."""
    if os.getuid() == 0:
        for path in (folder, *folder.rglob("*")):
            shutil.chown(path, "postgres", "postgres")
    folder.chmod(0o700 if os.getuid() else 0o750)


def _children(pid: int) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True)
    return [int(line) for line in found.stdout.split()]
