"""Check the machines of a cluster once per start, in one job: their folder and their versions.

    driver   seen/0, seen/1, ...   --read, each in a task-->   rows read, host, versions
    task     reports/              --read by the driver-->     all of them, or an error

Files pass through the folder as all state does. If a machine has its own folder under the name of
the checkpoint, no other machine finds the files of its tasks, but Spark takes them for written:
rows would be lost silently.

Sound:  for the machines at the start, if tasks are spread over them, as Spark does with as many
        short tasks as run concurrently.
State:  none; the files are deleted.
Cost:   a job, and a small file for each task; none if Spark runs in one process.

`python` and `library` identify the versions of a process. A library that is sent along
(`--py-files`) or read from a checkout may have other code under the same version number; so the
version includes a digest of the sources.

Cost:   reading all sources.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import metadata, resources
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow.dataset as ds
from pyarrow import fs

from reactive.errors import OffloadError
from spark_backend.cluster.files import Place, locate, with_literal_paths
from spark_backend.cluster.paths import spark_message, writing

if TYPE_CHECKING:
    from spark_backend.cluster.session import Session


MOST = 256
"""The most tasks of a check."""
AT_A_TIME = 16
"""The number of files that are written in parallel."""
COLUMNS = "seen long, host string, python string, library string"
FEWEST = "spark.sql.files.minPartitionNum"
"""The setting of Spark for the minimum number of tasks that read files."""
NOT_WRITTEN = ("Mkdirs failed", "Permission denied", "Read-only file system", "FileNotFound")
NOT_RUN = ("PYTHON_VERSION_MISMATCH", "ModuleNotFoundError", "ImportError")
"""Words in the lines of an error that give the reason."""


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a task: the number of files of the driver that it reads, its host, its
    versions."""

    seen: int
    host: str
    python: str
    library: str | None
    """None if it cannot be imported."""


def check_machines(session: Session, folder: str) -> None:
    """Check the folder and the versions on the machines of a cluster.

    Raises
    ------
    OffloadError: a machine does not share the folder with this process, or runs another Python or
        other code of this library; or the cluster runs no tasks of this process. The text says what
        to do.
    """
    place = locate(folder, session)
    inside = f"_probe-{uuid4().hex[:12]}"
    count = min(session.tasks, MOST)
    try:
        with writing(folder):
            _write_marks(place, f"{place.root}/{inside}/seen", count)
        with _one_task_per_file(session, count):
            frame = _report_frame(session, f"{place.uri}/{inside}/seen")
            frame.write.parquet(f"{place.uri}/{inside}/reports")
        found = _read_reports(place, f"{place.root}/{inside}/reports")
        check_reports(found, count, folder, lambda: _list_hosts(session, count))
    except OffloadError:
        raise
    except Exception as error:
        raise _job_error(str(error), spark_message(error), folder) from error
    finally:
        with suppress(OSError):
            place.files.delete_dir(f"{place.root}/{inside}")


def check_reports(
    found: Sequence[Report],
    count: int,
    folder: str,
    everywhere: Callable[[], Iterable[str]] = tuple,
) -> None:
    """Check the reports of machines: each sees the folder, and has the versions of this process.

    Parameters
    ----------
    count: the number of files written by the driver.
    everywhere: returns the machines that run tasks; called if reports are missing.

    Raises
    ------
    OffloadError: some machine does not.
    """
    blind = {report.host for report in found if not report.seen}
    if blind:
        raise _not_shared_error(
            folder, f"{_join_names(blind)} cannot see what this process writes there"
        )
    if sum(report.seen for report in found) < count:
        hidden = set(everywhere()) - {report.host for report in found}
        whose = _join_names(hidden) if hidden else "a machine of the cluster"
        raise _not_shared_error(folder, f"this process cannot see what {whose} writes there")
    here = python(), library()
    others = {
        f"{report.host} has Python {report.python} and {report.library or f'no {NAME}'}"
        for report in found
        if (report.python, report.library) != here
    }
    if others:
        raise OffloadError(
            "the machines of the cluster run something else than this process: "
            f"{_join_names(others)}; here are Python {here[0]} and {here[1]}\n  {_install_advice()}"
        )


def make_reporter(paths: Sequence[str], module: str) -> Callable[[Any], Any]:
    """Return a function for `mapInArrow` that reports. A worker has to import nothing for it.

    Parameters
    ----------
    paths: the folders that workers add to their import path.
    module: the name of the module with `library`.
    """

    def run(batches: Any) -> Any:
        import importlib
        import platform
        import sys

        import pyarrow as pa

        sys.path.extend([path for path in paths if path not in sys.path])
        try:
            library = importlib.import_module(module).library()
        except ImportError:
            library = None
        seen = sum(batch.num_rows for batch in batches)
        python = f"{sys.version_info[0]}.{sys.version_info[1]}"
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([seen], pa.int64()),
                *(pa.array([text], pa.string()) for text in (platform.node(), python, library)),
            ],
            ["seen", "host", "python", "library"],
        )

    return run


def _write_marks(place: Place, folder: str, count: int) -> None:
    """Write `count` files of one line into a folder of `place`."""
    place.files.create_dir(folder, recursive=True)

    def mark(number: int) -> None:
        with place.files.open_output_stream(f"{folder}/{number}") as stream:
            stream.write(b"seen\n")

    with ThreadPoolExecutor(AT_A_TIME, thread_name_prefix="reactive-probe") as pool:
        list(pool.map(mark, range(count)))


@contextmanager
def _one_task_per_file(session: Session, count: int) -> Iterator[None]:
    """Set Spark to read each of `count` small files in its own task, until the end."""
    session.spark.conf.set(FEWEST, str(count))
    try:
        yield
    finally:
        with suppress(Exception):  # the JVM may be gone
            session.spark.conf.unset(FEWEST)


def _report_frame(session: Session, uri: str) -> Any:
    """Return a DataFrame with a report per task about the files at `uri`."""
    reader = with_literal_paths(session.spark.read).option("ignoreMissingFiles", "true")
    found = reader.schema("value string").text(uri)
    return found.mapInArrow(make_reporter(session.paths, __name__), COLUMNS)


def _read_reports(place: Place, folder: str) -> list[Report]:
    """Return the reports in a folder of `place` that this process can read; [] if none."""
    infos = place.files.get_file_info(fs.FileSelector(folder, allow_not_found=True))
    paths = [info.path for info in infos if info.path.endswith(".parquet")]
    if not paths:
        return []
    rows = ds.dataset(paths, format="parquet", filesystem=place.files).to_table().to_pylist()
    return [Report(**row) for row in rows]


def _list_hosts(session: Session, count: int) -> list[str]:
    """Return the host of each of `count` tasks, by a job."""
    frame = session.spark.range(0, count, 1, count)
    run = make_reporter(session.paths, __name__)
    return [row["host"] for row in frame.mapInArrow(run, COLUMNS).select("host").collect()]


def _not_shared_error(folder: str, what: str) -> OffloadError:
    """Return the error for a folder that is not the same on all machines; `what` is the
    evidence."""
    return OffloadError(
        f"{folder} is not one folder for all machines: {what}\n"
        '  give one that all of them see, such as SparkOffload(checkpoint="hdfs:///folder") or '
        '"s3a://bucket/folder", or one of a file system that they share'
    )


def _job_error(text: str, message: str, folder: str) -> OffloadError:
    """Return the error of a failed probe: the folder is not shared, or no tasks run here.

    Parameters
    ----------
    text: the whole error, which is searched for the cause.
    message: the summary of the error by Spark, which is shown if no cause is found.
    folder: the folder that the tasks write to.
    """
    why = _find_line(text, NOT_RUN)
    if why is None and (place := _find_line(text, NOT_WRITTEN)) is not None:
        return _not_shared_error(folder, place)
    told = why or message
    return OffloadError(
        f"the cluster runs no tasks of this process: {told:.500}\n  {_install_advice()}"
    )


def _find_line(text: str, words: Sequence[str]) -> str | None:
    """Return the first line of a text with one of these words; None if there is none.

    The line is cut to 500 characters.
    """
    lines = (line.strip() for line in text.splitlines())
    return next((line[:500] for line in lines if any(word in line for word in words)), None)


def _install_advice() -> str:
    """Return the sentence that says what each machine needs: Python, pyarrow and this library."""
    return (
        f"each machine needs Python {python()} (PYSPARK_PYTHON says which one), pyarrow, "
        f"and {library()}, installed or sent along with --py-files"
    )


def _join_names(names: Iterable[str]) -> str:
    """Join the first few names."""
    found = sorted(names)
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return ", ".join(found[:3]) + more


NAME = "reactive-collections"
PACKAGES = ("optimizer", "reactive", "spark_backend")


def python() -> str:
    """Return the Python version in two numbers; workers can read code of the same version."""
    return f"{sys.version_info[0]}.{sys.version_info[1]}"


def library() -> str:
    """Return the version of this library, if it is installed, and a digest of its code."""
    try:
        version = f"{metadata.version(NAME)} "
    except metadata.PackageNotFoundError:
        version = ""
    digest = hashlib.sha256()
    for package in PACKAGES:
        _digest_sources(digest, resources.files(package), package)
    return f"{NAME} {version}({digest.hexdigest()[:8]})"


def _digest_sources(digest: Any, folder: Any, path: str) -> None:
    """Add the sources in a folder, perhaps of a zip file, to a digest."""
    for entry in sorted(folder.iterdir(), key=lambda entry: str(entry.name)):
        if entry.is_dir():
            _digest_sources(digest, entry, f"{path}/{entry.name}")
        elif entry.name.endswith(".py"):
            digest.update(f"{path}/{entry.name}\n".encode())
            digest.update(entry.read_bytes())
