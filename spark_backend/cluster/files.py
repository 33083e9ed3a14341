"""Folders of this machine, and of every store that Spark knows, behind one interface: pyarrow's.

    /folder, file:///folder           this machine
    hdfs://, s3a://, abfss://, ...    the session's own file systems, in its JVM (`hadoop.py`)
    the same with Spark Connect       pyarrow's, as there is no JVM here

A file is published whole or not at all: written under another name, and renamed. That holds on
object stores too, where files appear in one step, but folders cannot be renamed.

Sound:  if two processes publish a file of one name, one of them gets an error; on stores that
        rename by a copy, unless both do so within milliseconds.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from reactive.errors import OffloadError
from spark_backend.cluster.hadoop import HadoopFiles
from spark_backend.cluster.paths import is_remote, without_scheme

if TYPE_CHECKING:
    from spark_backend.cluster.session import Session

RENAMED = {"s3a": "s3", "s3n": "s3"}
MOVING = ("local", "py::hdfs", "py::file")
"""File systems, as pyarrow names them, that rename a folder in one step."""


@dataclass(frozen=True, slots=True)
class Place:
    """A folder: for this process a file system of pyarrow and a path in it, for Spark a URI."""

    files: Any
    root: str
    uri: str


def local_place(folder: str) -> Place:
    """Return a folder of this machine, without creating it."""
    files = fs.LocalFileSystem()
    root = files.normalize_path(without_scheme(folder)).rstrip("/")
    return Place(files, root, f"file://{root}")


def locate(folder: str, session: Session | None = None) -> Place:
    """Return the folder of a path or URI in the file systems of the session; without a session, in
    the file systems of pyarrow. Nothing is created.

    Raises
    ------
    OffloadError: no file system for the URI is known here.
    """
    if not is_remote(folder):
        return local_place(folder)
    uri = folder.rstrip("/")
    if session is None or session.is_connect:
        return Place(*_pyarrow_place(uri), uri)
    scheme, _, rest = uri.partition("://")
    host, slash, path = rest.partition("/")
    return Place(fs.PyFileSystem(HadoopFiles(session, scheme, host)), f"{slash}{path}", uri)


def list_parquet(files: Any, folder: str) -> list[str]:
    """Return the paths of the Parquet files in a folder, at any depth, sorted."""
    selector = fs.FileSelector(folder, allow_not_found=True, recursive=True)
    found = (i.path for i in files.get_file_info(selector) if i.type == fs.FileType.File)
    return sorted(path for path in found if path.endswith(".parquet"))


def count_rows(files: Any, path: str) -> int:
    """Return the number of rows of a Parquet file, from its end."""
    with files.open_input_file(path) as opened:
        return int(pq.ParquetFile(opened).metadata.num_rows)


def read_table(files: Any, path: str) -> pa.Table:
    """Read the rows of a Parquet file."""
    with files.open_input_file(path) as opened:
        return pq.ParquetFile(opened).read()


def moves_folders(files: Any) -> bool:
    """Return True if a folder is renamed in one step; object stores copy its files, or refuse."""
    return files.type_name in MOVING


def with_literal_paths(reader: Any) -> Any:
    """Return a Spark reader with literal paths: by default `[`, `{`, `*` and `?` are patterns."""
    return reader.option("__globPaths__", "false")


def replace_file(files: Any, path: str, data: bytes) -> None:
    """Write a whole file over an existing one; in one step if the store can."""
    aside = _write_aside(files, path, data)
    handler = getattr(files, "handler", None)
    if isinstance(handler, HadoopFiles):
        handler.replace(aside, path)
    else:
        files.move(aside, path)


def create_file(files: Any, path: str, data: bytes) -> None:
    """Write a whole new file.

    Raises
    ------
    FileExistsError: the file exists; it stays.
    """
    if files.get_file_info(path).type != fs.FileType.NotFound:
        raise FileExistsError(path)
    aside = _write_aside(files, path, data)
    try:
        files.move(aside, path)
    except FileExistsError:
        with suppress(FileNotFoundError):
            files.delete_file(aside)
        raise


def taken_over_error(folder: str) -> OffloadError:
    """Return the error about state that another process has continued."""
    return OffloadError(
        f"another process has gone on with {folder}: what this one holds no longer counts\n"
        "  one SparkOffload at a time may use a checkpoint: close one of the two"
    )


def _write_aside(files: Any, path: str, data: bytes) -> str:
    """Write a file beside a path, under a unique name."""
    folder, _, name = path.rpartition("/")
    aside = f"{folder}/_{name}.{uuid4().hex[:8]}"
    with files.open_output_stream(aside) as stream:
        stream.write(data)
    return aside


def _pyarrow_place(uri: str) -> tuple[Any, str]:
    """Return a file system for a URI, and the path in it, without a JVM.

    Raises
    ------
    OffloadError: pyarrow has no such file system.
    """
    scheme, _, rest = uri.partition("://")
    host, slash, path = rest.partition("/")
    try:
        here = f"{RENAMED.get(scheme, scheme)}://{host}{slash}{quote(path)}"
        files, path = fs.FileSystem.from_uri(here)
        return files, path.rstrip("/")
    except Exception as error:
        raise OffloadError(
            f"{scheme}:// cannot be read in this process, which has no JVM with Spark Connect: "
            f"{error}\n  give a folder that this process and the server see as one path, or use a "
            "session that is not of Connect"
        ) from error
