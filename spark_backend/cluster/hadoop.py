"""The file systems of Spark as one of pyarrow: `hdfs://`, `s3a://`, `abfss://`, `gs://` and others.

    pyarrow --path--> HadoopFiles --py4j--> org.apache.hadoop.fs.FileSystem, in the session's JVM

It uses the settings and credentials of the session, so this process can list and read the files
that Spark writes. Contents pass in blocks: ends of Parquet files, manifests, and rows of deltas.

State:  none; the JVM caches a file system by scheme and host.
Cost:   a call to the JVM for each block, and a few for each file of a listing.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import fs

if TYPE_CHECKING:
    from spark_backend.cluster.session import Session

BLOCK = 1 << 22
"""The bytes per call."""


class HadoopFiles(fs.FileSystemHandler):  # type: ignore[misc]
    """The methods that `pyarrow.fs.PyFileSystem` requires.

    Parameters
    ----------
    session: the session with the JVM; after a restart, its new JVM is used.
    scheme, host: the start of URIs, such as `"hdfs"` and `"name:9000"`. Paths follow after them.
    """

    def __init__(self, session: Session, scheme: str, host: str) -> None:
        self._session = session
        self._scheme, self._host = scheme, host

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HadoopFiles) and self._place == other._place

    def __hash__(self) -> int:
        return hash(self._place)

    @property
    def _place(self) -> tuple[int, str, str]:
        return id(self._session), self._scheme, self._host

    def get_type_name(self) -> str:
        """Return the scheme, for messages."""
        return self._scheme

    def normalize_path(self, path: str) -> str:
        """Return the path without a slash at its end."""
        return path.rstrip("/")

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        """Return the type, size and time of each path."""
        return [self._info(path) for path in paths]

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        """List a folder; with `recursive`, the files at any depth.

        Raises `FileNotFoundError` if the folder is missing, unless the selector allows it; then the
        list is empty.
        """
        files, folder = self._files(), self._path(selector.base_dir)
        if not files.exists(folder):
            if selector.allow_not_found:
                return []
            raise FileNotFoundError(selector.base_dir)
        if not selector.recursive:
            return [self._file_info(status) for status in files.listStatus(folder)]
        return [
            self._file_info(status) for status in _iterate_remote(files.listFiles(folder, True))
        ]

    def create_dir(self, path: str, recursive: bool) -> None:
        """Create a folder and its parents. Raises `OSError` if Hadoop refuses."""
        if not self._files().mkdirs(self._path(path)):
            raise OSError(f"{self._uri(path)} cannot be made")

    def delete_dir(self, path: str) -> None:
        """Delete a folder and its contents."""
        self._delete(path, recursive=True)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        """Delete the contents of a folder."""
        selector = fs.FileSelector(path, allow_not_found=missing_dir_ok)
        for info in self.get_file_info_selector(selector):
            self._delete(info.path, recursive=True)

    def delete_root_dir_contents(self) -> None:
        """Refuse: no caller needs it."""
        raise OSError("the root of a file system is not emptied")

    def delete_file(self, path: str) -> None:
        """Delete a file."""
        self._delete(path, recursive=False)

    def move(self, source: str, target: str) -> None:
        """Rename a file; never replace an existing one.

        Raises
        ------
        FileExistsError: the target exists.
        """
        files, to = self._files(), self._path(target)
        if files.exists(to):
            raise FileExistsError(self._uri(target))
        if not files.rename(self._path(source), to):
            refused = FileExistsError if files.exists(to) else OSError
            raise refused(f"{self._uri(source)} cannot be renamed to {self._uri(target)}")

    def replace(self, source: str, target: str) -> None:
        """Rename a file, also over an existing file."""
        spark = self._session.spark
        hadoop = spark._jvm.org.apache.hadoop.fs
        rename = getattr(hadoop, "Options$Rename")
        options = spark.sparkContext._gateway.new_array(rename, 1)
        options[0] = rename.OVERWRITE
        files = hadoop.FileContext.getFileContext(self._path("/").toUri(), self._settings())
        files.rename(self._path(source), self._path(target), options)

    def copy_file(self, source: str, target: str) -> None:
        """Copy the contents of a file to another."""
        with self.open_input_file(source) as read, self.open_output_stream(target, None) as write:
            write.write(read.read())

    def open_input_stream(self, path: str) -> pa.NativeFile:
        """Open a file for reading."""
        return self.open_input_file(path)

    def open_input_file(self, path: str) -> pa.NativeFile:
        """Open a file for reading at any position.

        Raises `FileNotFoundError` if the path is no file.
        """
        info = self._info(path)
        if info.type != fs.FileType.File:
            raise FileNotFoundError(self._uri(path))
        opened = self._files().open(self._path(path))
        return pa.PythonFile(_Input(opened, info.size), mode="r")

    def open_output_stream(self, path: str, metadata: Any) -> pa.NativeFile:
        """Open a new file for writing."""
        return pa.PythonFile(_Output(self._files().create(self._path(path), True)), mode="w")

    def open_append_stream(self, path: str, metadata: Any) -> pa.NativeFile:
        """Refuse: object stores cannot append."""
        raise OSError("files are written once")

    def _files(self) -> Any:
        return self._path("/").getFileSystem(self._settings())

    def _settings(self) -> Any:
        """Return the settings of the session with its credentials."""
        return self._session.spark._jsparkSession.sessionState().newHadoopConf()

    def _path(self, path: str) -> Any:
        jvm = self._session.spark._jvm
        return jvm.org.apache.hadoop.fs.Path(self._scheme, self._host or None, path or "/")

    def _uri(self, path: str) -> str:
        return f"{self._scheme}://{self._host}{path}"

    def _info(self, path: str) -> fs.FileInfo:
        """Return the information about a path; its type is `NotFound` if the path does not
        exist."""
        files, there = self._files(), self._path(path)
        if not files.exists(there):
            return fs.FileInfo(path, fs.FileType.NotFound)
        return self._file_info(files.getFileStatus(there))

    def _file_info(self, status: Any) -> fs.FileInfo:
        """Return Hadoop's status of a file or folder as a `FileInfo` of pyarrow; folders have no
        size."""
        path = status.getPath().toUri().getPath()
        changed = datetime.fromtimestamp(status.getModificationTime() / 1000, UTC)
        if status.isDirectory():
            return fs.FileInfo(path, fs.FileType.Directory, mtime=changed)
        return fs.FileInfo(path, fs.FileType.File, mtime=changed, size=status.getLen())

    def _delete(self, path: str, *, recursive: bool) -> None:
        """Delete a file or folder. Raises `FileNotFoundError` if it is missing."""
        if not self._files().delete(self._path(path), recursive):
            raise FileNotFoundError(self._uri(path))


class _Input(io.RawIOBase):
    """A stream of the JVM that can be read at any position."""

    def __init__(self, stream: Any, size: int) -> None:
        self._stream, self._size, self._at = stream, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set the position, and return it; the stream itself moves at the next read."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = start + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        """Read at most `size` bytes, all bytes left if `size` is None or negative; fewer at the end
        of the file."""
        left = self._size - self._at
        wanted = left if size is None or size < 0 else min(size, left)
        blocks: list[bytes] = []
        self._stream.seek(self._at)
        while wanted > 0:
            block = bytes(self._stream.readNBytes(min(wanted, BLOCK)))
            if not block:
                break
            blocks.append(block)
            wanted -= len(block)
        found = b"".join(blocks)
        self._at += len(found)
        return found

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


class _Output(io.RawIOBase):
    """A stream of the JVM to write to; the file appears when it is closed."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        """Write all of `data` in blocks, and return the number of bytes."""
        whole = bytes(data)
        for start in range(0, len(whole), BLOCK):
            self._stream.write(whole[start : start + BLOCK])
        return len(whole)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


def _iterate_remote(found: Any) -> Iterator[Any]:
    """Yield the items of a `RemoteIterator` of Hadoop."""
    while found.hasNext():
        yield found.next()
