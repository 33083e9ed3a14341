"""Spark Connect: sessions of a server that runs elsewhere, which has no JVM here.

Its sessions have nothing in common but the server: a query is of one of them, so that a DataFrame
of another is read by its plan. That of a temporary view means nothing in another session.

Source: PySpark's client, whose `newSession` begins with the settings of the server.
"""

from __future__ import annotations

from contextlib import suppress
from importlib.util import find_spec
from typing import Any

from reactive.engine.runtime.needs import installing
from reactive.errors import OffloadError

SCHEME = "sc://"
NEEDED = ("grpc", "grpc_status", "google.protobuf", "zstandard")


def is_connect(session: Any) -> bool:
    """Whether a `SparkSession` is of Spark Connect."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def connected(url: str) -> Any:
    """A new session of the server at a URL.

    Raises
    ------
    OffloadError: what the client needs is not installed, or no server answers.
    """
    missing = [name for name in NEEDED if not _is_there(name)]
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


def another(session: Any) -> Any:
    """A session of our own beside one that was given, of the same server.

    Raises
    ------
    OffloadError: this PySpark cannot make one.
    """
    try:
        return session.newSession()
    except NotImplementedError as error:
        raise OffloadError(
            "this PySpark makes no second session of a Spark Connect server\n"
            f'  install pyspark 4.3 or later, or give its URL: SparkOffload(master="{SCHEME}...")'
        ) from error


def answers(session: Any) -> bool:
    """Whether the server knows the session."""
    if session.is_stopped:
        return False
    try:
        return bool(session.version)
    except Exception:
        return False


def release(session: Any) -> None:
    """Give a session up. `stop` would also stop a server that this process has started."""
    with suppress(Exception):  # the server may be gone
        session.client.release_session()
    with suppress(Exception):
        session.client.close()


def tasks(session: Any) -> int:
    """How many tasks run at a time: into how many parts Spark puts a range."""
    from pyspark.sql import functions as F

    parts = session.range(0, 1 << 20).select(F.spark_partition_id().alias("part"))
    return int(parts.agg(F.max("part")).collect()[0][0]) + 1


def of_session(frame: Any, session: Any) -> Any:
    """A DataFrame as one of another session; itself if it is of that one, or not of Connect."""
    if not is_connect(session) or frame.sparkSession is session:
        return frame
    return type(frame)(frame._plan, session)


def worked_out(frame: Any) -> Any:
    """A DataFrame whose rows are there, as long as somebody has it.

    Of Connect, PySpark says that it is of the active session, and lets go of it there.
    """
    found, session = frame.localCheckpoint(), frame.sparkSession
    if not is_connect(session):
        return found
    found._plan._spark_session = session
    return of_session(found, session)


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False
