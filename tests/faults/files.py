"""A local file system whose changes fail: `times` changes from the `first` one on.

    full       each raises OSError(ENOSPC), as on a disk without room; a file is half written
    stopped    each raises Stopped, and so do all later ones: as in a process that is killed

So each moment of a history at which a process can be killed is one number.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from pyarrow import fs

from spark_backend.cluster import files


class Stopped(BaseException):
    """Raised in place of the end of the process."""


class Fault:
    """Fault of `times` changes from the `first` on; None: no fault.

    `count` is the number of changes so far.
    """

    def __init__(self, first: int | None = None, times: float = 1, *, stops: bool = False) -> None:
        self.count = 0
        self.happened = False
        self._first = first
        self._last = float("inf") if stops or first is None else first + times - 1
        self._stops = stops

    def change(self) -> None:
        """A file or folder is about to change."""
        self.count += 1
        if self._first is not None and self._first <= self.count <= self._last:
            self.happened = True
            if self._stops:
                raise Stopped
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class FaultyFiles(fs.FileSystemHandler):  # type: ignore[misc]
    """Local files that report each change to a fault before it is made."""

    def __init__(self, fault: Fault) -> None:
        self._files = fs.LocalFileSystem()
        self._fault = fault

    def get_type_name(self) -> str:
        return "faulty"

    def normalize_path(self, path: str) -> str:
        return str(self._files.normalize_path(path))

    def get_file_info(self, paths: list[str]) -> Any:
        return self._files.get_file_info(paths)

    def get_file_info_selector(self, selector: Any) -> Any:
        return self._files.get_file_info(selector)

    def open_input_stream(self, path: str) -> Any:
        return self._files.open_input_stream(path)

    def open_input_file(self, path: str) -> Any:
        return self._files.open_input_file(path)

    def open_output_stream(self, path: str, metadata: Any) -> Any:
        self._fault.change()
        return pa.PythonFile(_Writing(self._files.open_output_stream(path), self._fault), mode="w")

    def open_append_stream(self, path: str, metadata: Any) -> Any:
        raise NotImplementedError

    def create_dir(self, path: str, recursive: bool) -> None:
        self._fault.change()
        self._files.create_dir(path, recursive=recursive)

    def move(self, src: str, dest: str) -> None:
        self._fault.change()
        self._files.move(src, dest)

    def delete_file(self, path: str) -> None:
        self._fault.change()
        self._files.delete_file(path)

    def delete_dir(self, path: str) -> None:
        """Delete a folder file by file: a killed process may leave a part of it."""
        for info in self._files.get_file_info(fs.FileSelector(path, recursive=True)):
            if info.type == fs.FileType.File:
                self._fault.change()
                self._files.delete_file(info.path)
        self._files.delete_dir(path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        raise NotImplementedError

    def delete_root_dir_contents(self) -> None:
        raise NotImplementedError

    def copy_file(self, src: str, dest: str) -> None:
        raise NotImplementedError


class _Writing:
    """A file being written; a fault leaves half of the pending write."""

    def __init__(self, stream: Any, fault: Fault) -> None:
        self._stream, self._fault = stream, fault
        self._given: list[bytes] = []
        self.closed = False

    def write(self, data: Any) -> int:
        given = bytes(data)
        self._given.append(given)
        return len(given)

    def flush(self) -> None: ...

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        given = b"".join(self._given)
        try:
            self._fault.change()
        except BaseException:
            given = given[: len(given) // 2]
            raise
        finally:
            self._stream.write(given)
            self._stream.close()


@contextmanager
def failing(fault: Fault) -> Iterator[Fault]:
    """Give all filesystems that are made in the block a fault."""
    made = fs.PyFileSystem(FaultyFiles(fault))
    given = SimpleNamespace(**{**vars(fs), "LocalFileSystem": lambda: made})
    with patch.object(files, "fs", given):
        yield fault
