"""The Spark session of queries: started when it is first needed, or given by the user.

A process has one JVM, which all sessions share. The first session of the library starts it, the
last one to be closed stops it; a JVM that was running before is never stopped. SQL settings apply
to a separate session of the library, and are not visible to others.

A cluster needs: Python of the same version on its workers, with this library and the modules of the
rows installed (or sent along with `--py-files`), and a folder for `checkpoint` that driver and
workers share. With a local master, workers import from the paths of the driver. A server of Spark
Connect is such a cluster, and is never stopped.

Spark Connect: sessions of a server in another process, without a JVM in this one. Its sessions
share only the server: a query belongs to one session, so that a DataFrame of another is read by its
plan. The plan of a temporary view means nothing in another session.

Source: PySpark's client, whose `newSession` begins with the settings of the server.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from reactive.engine.runtime.needs import installing
from reactive.errors import OffloadError

JAVA = 17
START = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.memory": "2g",
    "spark.driver.host": "localhost",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir()) / "spark-warehouse"),
}
"""Settings of a JVM that this process starts with a local master; users can override them."""
OWN = {"spark.python.sql.dataFrameDebugging.enabled": "false"}
"""Settings of any JVM that this process starts: columns do not record the Python lines that made
them, which are lines of this library, and which would take three calls of the JVM for each."""
SQL = {
    "spark.sql.files.maxPartitionBytes": "16m",
    "spark.sql.files.openCostInBytes": "256k",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.adaptive.skewJoin.skewedPartitionFactor": "2",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.dataFrameQueryContext.enabled": "false",
    "spark.sql.execution.useObjectHashAggregateExec": "false",
    "spark.sql.maxConcurrentOutputFileWriters": "32",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.pollingDelay": "5ms",
    "spark.sql.streaming.minBatchesToRetain": "10",
}
"""Settings of the queries of the library."""
LISTING = {"spark.sql.sources.parallelPartitionDiscovery.threshold": "1000"}
"""For a local master: up to this number of files is listed by the driver, without a job."""
ASKED = (
    "org.apache.spark.api.python.PythonUtils",
    "org.apache.spark.sql.api.python.PythonSQLUtils",
)
"""Classes that PySpark looks up by short name at each step of a query: unless the full name is
imported, the JVM searches a dozen packages, each with hundreds of files."""
ADAPTIVE = "spark.sql.adaptive.enabled"
"""The setting that plans a stage after measuring the output of the one before."""
SPLIT = (
    "spark.sql.adaptive.advisoryPartitionSizeInBytes",
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes",
)
"""The settings of the size from that a task is split."""
PIECE = 4 << 20
"""The size in bytes, shuffled, of some 300,000 rows."""
PARTITIONS = "spark.sql.shuffle.partitions"
"""The setting of shuffle partitions: by default, the number of concurrent tasks."""


def check_spark(*, java: bool = True) -> None:
    """Check that Spark can be started here, which needs Java, or used elsewhere.

    Raises
    ------
    OffloadError: pyspark, pyarrow, xxhash or Java is missing; the text says what to install.
    """
    missing = [name for name in ("pyspark", "pyarrow", "xxhash") if find_spec(name) is None]
    if missing:
        raise OffloadError(
            f"Spark cannot be used: {' and '.join(missing)} missing\n  {installing('spark')}"
        )
    found = _java_version() if java else JAVA
    if found is None or found < JAVA:
        shown = "no Java found" if found is None else f"Java {found} is too old"
        raise OffloadError(
            f"Spark cannot be used: {shown}\n"
            f"  install Java {JAVA} or later, on PATH or with JAVA_HOME"
        )


class Session:
    """A session that starts Spark at first need, or borrows a `SparkSession`, and detects its
    death.

    Parameters
    ----------
    master: the address of Spark, such as `"local[*]"`, `"spark://host:7077"` or, for Spark Connect,
        `"sc://host:15002"`.
    session: a `SparkSession` to use instead; it is never stopped, and keeps its settings.
    config: further settings, such as `{"spark.driver.memory": "4g"}`.
    folder: a folder that all machines of a cluster have to share, which is checked at each start;
        None for no check.
    """

    def __init__(
        self,
        *,
        master: str = "local[*]",
        session: Any = None,
        config: Mapping[str, str] | None = None,
        folder: str | None = None,
    ) -> None:
        self._folder = folder
        self._master = _with_retries(master)
        self._given = session
        self._config = dict(config or {})
        self._own: Any = None
        self._tasks: int | None = None
        self._spread = 0
        self._adapting = 0
        self._lock = threading.RLock()

    @property
    def spark(self) -> Any:
        """A `SparkSession` of the library, with its settings for SQL."""
        with self._lock:
            if self._own is None:
                self._own = self._begin()
                self._check_cluster()
            return self._own

    def _check_cluster(self) -> None:
        """Check the folder and the versions on the machines of a cluster."""
        if self._folder is None or self._is_one_process:
            return
        from spark_backend.cluster import probe

        try:
            probe.check_machines(self, self._folder)
        except BaseException:
            self.close()
            raise
        self.follow()

    @property
    def _is_one_process(self) -> bool:
        """True if all tasks run in a JVM of this process."""
        master = str(self.spark.conf.get("spark.master", ""))
        return not self.is_connect and re.match(r"local(\[|$)", master) is not None

    @property
    def is_connect(self) -> bool:
        """True for Spark Connect, which has no JVM here. Nothing is started."""
        is_url = self._given is None and self._master.startswith(SCHEME)
        return is_url or is_connect(self._given)

    @property
    def is_local(self) -> bool:
        """True if workers are on this machine."""
        return str(self.spark.conf.get("spark.master", "")).startswith("local")

    @property
    def tasks(self) -> int:
        """The number of tasks that run concurrently."""
        return self._tasks_of(self.spark)

    def follow(self) -> None:
        """Set the number of shuffle partitions to that of concurrent tasks, which changes with
        executors."""
        tasks = self.tasks
        if tasks != self._spread and PARTITIONS not in self._config:
            self.spark.conf.set(PARTITIONS, str(tasks))
            self._spread = tasks

    def _tasks_of(self, session: Any) -> int:
        """Return the number of concurrent tasks, at least 1; on Connect a job counts them, once."""
        if not is_connect(session):
            return max(1, int(session.sparkContext.defaultParallelism))
        if self._tasks is None:
            self._tasks = count_tasks(session)
        return self._tasks

    def own(self, frame: Any) -> Any:
        """Convert a DataFrame of the user to the session of the library."""
        return in_session(frame, self.spark)

    def given(self, frame: Any) -> Any:
        """Convert a DataFrame of the library to the session of the user, so that both can be
        joined."""
        return frame if self._given is None else in_session(frame, self._given)

    @property
    def outer(self) -> Any:
        """The session for DataFrames that users receive: theirs, if frames of two sessions do not
        mix."""
        is_theirs = self._given is not None and self.is_connect
        return self._given if is_theirs else self.spark

    @property
    def paths(self) -> list[str]:
        """The folders that workers add to their import path."""
        return [path or os.getcwd() for path in sys.path] if self.is_local else []  # noqa: PTH109

    @contextmanager
    def adaptive(self, times: int = 1) -> Iterator[None]:
        """Set Spark to measure the rows of each task in this context, and to split a large task: a
        key may have any share of the rows.

        Parameters
        ----------
        times: a factor for the size of a task to be split.
        """
        spark = self.spark
        for name in SPLIT:
            spark.conf.set(name, self._config.get(name, f"{PIECE * times}b"))
        try:
            self._adapt(spark, 1)
            yield
        finally:
            with suppress(Exception):  # Spark and its settings are gone
                self._adapt(spark, -1)

    def _adapt(self, spark: Any, more: int) -> None:
        """Add `more` (1 or -1) to the number of users of adaptive execution, which is on while
        there are any, or always if the configuration says so."""
        with self._lock:
            self._adapting += more
            is_always = self._config.get(ADAPTIVE) == "true"
            spark.conf.set(ADAPTIVE, "true" if self._adapting or is_always else "false")

    def is_alive(self) -> bool:
        """Return True if the JVM answers."""
        own = self._own
        if own is None:
            return False
        return session_answers(own) if is_connect(own) else _context_answers(own.sparkContext)

    @property
    def is_gone(self) -> bool:
        """True if the given session has been stopped, or its JVM has ended: forever."""
        given = self._given
        if given is None or is_connect(given):
            return False
        return not _context_answers(given.sparkContext)

    def ready(self) -> None:
        """Start Spark if needed for a flush, with as many partitions as tasks run concurrently now.

        Raises
        ------
        OffloadError: the session was given by the user, and is gone.
        """
        self.restart()
        self.follow()

    def restart(self) -> None:
        """Start again if the JVM has ended; do nothing if it answers.

        Raises
        ------
        OffloadError: the session was given by the user, and is gone.
        """
        with self._lock:
            self._restart()

    def _restart(self) -> None:
        """Start a new session if the current one is dead.

        Raises if a given session is gone and cannot reconnect.
        """
        if self.is_alive():
            return
        had, self._own = self._own, None
        if had is not None and self._given is not None and not self._can_reconnect():
            raise _gone_error()
        _ = self.spark

    def _can_reconnect(self) -> bool:
        """Return True if a given Connect session can create another one: its server answers
        again."""
        return is_connect(self._given) and not self._given.is_stopped

    def close(self) -> None:
        """Stop the JVM if the library started it and no other session uses it."""
        own, self._own = self._own, None
        if is_connect(own):
            release_session(own)
            return
        if own is None or self._given is not None:
            return
        context = own.sparkContext
        users = getattr(context, "_reactive_users", None)
        if users is None or not _context_answers(context):
            return
        context._reactive_users = users - 1
        if users == 1:
            with suppress(Exception):  # the JVM may be ending by itself
                context.stop()
            _stop_jvm()

    def _begin(self) -> Any:
        """Return a new session: of the given one, of a Connect server, or of a JVM, which is
        started unless a living one is active. Raises if the given session is gone."""
        if self.is_gone:
            raise _gone_error()
        if self._given is not None:
            begin = new_connect_session if self.is_connect else type(self._given).newSession
            return self._with_settings(begin(self._given))
        if self.is_connect:
            return self._with_settings(connect(self._master))
        from pyspark import SparkContext

        with SparkContext._lock:
            context = SparkContext._active_spark_context
            if context is None or not _context_answers(context):
                _forget_context()
                context = self._start()
                context._reactive_users = 0
            if hasattr(context, "_reactive_users"):
                context._reactive_users += 1
        from pyspark.sql import SparkSession

        return self._with_settings(SparkSession(context).newSession())

    def _start(self) -> Any:
        """Start a JVM unless PySpark has one, and return its `SparkContext`.

        Raises `OffloadError` with the end of the JVM's log.
        """
        from pyspark import SparkConf, SparkContext, java_gateway

        local = START if self._master.startswith("local") else {}
        conf = SparkConf().setMaster(self._master).setAppName("reactive-collections")
        for name, value in {**OWN, **local, **self._config}.items():
            conf.set(name, value)
        with _python_of_workers(), tempfile.TemporaryFile() as log:
            try:
                launcher: Any = java_gateway
                gateway = SparkContext._gateway or launcher.launch_gateway(conf, {"stderr": log})
                for name in ASKED:
                    launcher.java_import(gateway.jvm, name)
                return _silence_accumulators(SparkContext(conf=conf, gateway=gateway))
            except Exception as error:
                log.seek(0)
                said = log.read()[-2000:].decode(errors="replace")
                raise OffloadError(f"Spark could not be started: {error}\n{said}") from error

    def _with_settings(self, session: Any) -> Any:
        """Apply the SQL settings to the session and return it; settings that only a new JVM can
        take are skipped."""
        self._spread = self._tasks_of(session)
        tasks = str(self._spread)
        listing = LISTING if str(session.conf.get("spark.master", "")).startswith("local") else {}
        for name, value in {PARTITIONS: tasks, **SQL, **listing, **self._config}.items():
            if name.startswith("spark.sql."):
                with suppress(_static_setting_error()):
                    session.conf.set(name, value)
        return session


def _static_setting_error() -> type[Exception]:
    """Return the exception of a setting that is only valid when a JVM starts.

    `isModifiable` would also refuse settings that Spark reads without registering them.
    """
    from pyspark.errors import AnalysisException

    return AnalysisException


def _silence_accumulators(context: Any) -> Any:
    """Silence the server of accumulators, which prints a traceback when the JVM ends."""
    server = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *of: None
    return context


def _with_retries(master: str) -> str:
    """Add retries to a local master, for tasks whose Python worker was killed."""
    found = re.fullmatch(r"local(?:\[(\*|\d+)\])?", master)
    return f"local[{found[1] or 1},4]" if found else master


@contextmanager
def _python_of_workers() -> Iterator[None]:
    """Set the Python of workers to that of the driver, unless the user has set it."""
    if "PYSPARK_PYTHON" in os.environ:
        yield
        return
    os.environ["PYSPARK_PYTHON"] = sys.executable
    try:
        yield
    finally:
        del os.environ["PYSPARK_PYTHON"]


def _context_answers(context: Any) -> bool:
    """Return True if the context and its JVM are alive."""
    if context._jsc is None:
        return False
    process = getattr(context._gateway, "proc", None)
    if process is not None and process.poll() is not None:
        return False
    try:
        return not context._jsc.sc().isStopped()
    except Exception:
        return False


def _gone_error() -> OffloadError:
    """Return the error for a given session that was stopped, or whose JVM has ended."""
    return OffloadError(
        "the Spark session that was given is gone: it was stopped, or its JVM has ended\n"
        "  make a new one, and a new SparkOffload with the same checkpoint"
    )


def _forget_context() -> None:
    """Remove what PySpark remembers of a stopped context, and of a dead JVM, which it would keep
    calling. A living JVM starts another context."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None
    try:
        SparkContext._jvm.java.lang.System.currentTimeMillis()  # type: ignore[union-attr]
    except Exception:
        _stop_jvm()


def _stop_jvm() -> None:
    """Stop the JVM, which `SparkContext.stop` leaves running, idle, with its memory."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    if gateway is None or process is None or SparkContext._active_spark_context is not None:
        return
    with suppress(Exception):
        gateway.shutdown()
    SparkContext._gateway = None
    SparkContext._jvm = None
    with suppress(OSError):
        process.stdin.close()  # it ends at the end of its input
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()


def _java_version() -> int | None:
    """Return the major version of `java` in JAVA_HOME, else of the one in PATH.

    Return None if there is none.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if java is None:
        return None
    shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)(?:\.(\d+))?', shown)
    return None if found is None else int(found[2] if found[1] == "1" else found[1])


SCHEME = "sc://"
NEEDED = ("grpc", "grpc_status", "google.protobuf", "zstandard")


def is_connect(session: Any) -> bool:
    """Return True if a `SparkSession` is of Spark Connect."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def connect(url: str) -> Any:
    """Return a new session of the server at a URL.

    Raises
    ------
    OffloadError: a package of the client is not installed, or no server answers.
    """
    missing = [name for name in NEEDED if not _is_importable(name)]
    if missing:
        raise OffloadError(
            f"Spark Connect cannot be used: {', '.join(missing)} missing\n"
            f"  {installing('spark-connect')}"
        )
    from pyspark.sql import SparkSession

    try:
        return SparkSession.builder.remote(url).create()
    except Exception as error:
        raise OffloadError(f"no Spark Connect server at {url}: {error}") from error


def new_connect_session(session: Any) -> Any:
    """Return a session of the library on the server of a given one.

    Raises
    ------
    OffloadError: this PySpark cannot create one.
    """
    try:
        return session.newSession()
    except NotImplementedError as error:
        raise OffloadError(
            "this PySpark makes no second session of a Spark Connect server\n"
            f'  install pyspark 4.3 or later, or give its URL: SparkOffload(master="{SCHEME}...")'
        ) from error


def session_answers(session: Any) -> bool:
    """Return True if the server knows the session."""
    if session.is_stopped:
        return False
    try:
        return bool(session.version)
    except Exception:
        return False


def release_session(session: Any) -> None:
    """Release a session. `stop` would also stop a server that this process has started."""
    with suppress(Exception):  # the server may be gone
        session.client.release_session()
    with suppress(Exception):
        session.client.close()


def count_tasks(session: Any) -> int:
    """Return the number of concurrent tasks: the number of partitions of a range."""
    from pyspark.sql import functions as F

    parts = session.range(0, 1 << 20).select(F.spark_partition_id().alias("part"))
    return int(parts.agg(F.max("part")).collect()[0][0]) + 1


def in_session(frame: Any, session: Any) -> Any:
    """Return a DataFrame in another session; itself if it is of that session, or not of Connect."""
    if not is_connect(session) or frame.sparkSession is session:
        return frame
    return type(frame)(frame._plan, session)


def materialize_frame(frame: Any) -> Any:
    """Return a DataFrame with computed rows, which are kept while it is referenced.

    With Connect, PySpark assigns it to the active session and would release it there.
    """
    found, session = frame.localCheckpoint(), frame.sparkSession
    if not is_connect(session):
        return found
    found._plan._spark_session = session
    return in_session(found, session)


def _is_importable(name: str) -> bool:
    """Return True if the module is found. Its parent packages are imported, it is not."""
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False
