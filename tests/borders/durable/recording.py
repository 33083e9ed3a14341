"""Record the calls of SQLite on its files: writes, and other calls between which a kill may fall.

A VFS wraps the VFS of the system; it is registered in the library that Python's `sqlite3` is linked
to. The files are real. Each call that changes a file is recorded, and may be made to fail:

    ("create", name)  ("write", name, offset, bytes)  ("truncate", name, size)
    ("sync", name)    ("delete", name)

The index of the log (`-shm`) is not recorded: the first process that opens the files rebuilds it.

Source: sqlite.org/vfs.html, sqlite.org/c3ref/io_methods.html.
"""

from __future__ import annotations

import ctypes
import os
import sqlite3
import sys
from collections.abc import Callable
from ctypes import CFUNCTYPE, Structure, c_char_p, c_int, c_int64, c_void_p
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote
from weakref import WeakValueDictionary

Call: TypeAlias = tuple[Any, ...]
Fails: TypeAlias = Callable[[int, Call], int]
"""Given the number of a call, from 0 on, and the call: 0, or the error that it has."""
FULL, FAILS_TO_SYNC = 13, 10 | 4 << 8
"""SQLITE_FULL, SQLITE_IOERR_FSYNC."""
_CREATE = 4
_Open = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p)
_Delete = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int)
_Write = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
_Truncate = CFUNCTYPE(c_int, c_void_p, c_int64)
_Sync = CFUNCTYPE(c_int, c_void_p, c_int)


class _System(Structure):
    """`sqlite3_vfs`."""

    _fields_ = [
        *((name, c_int) for name in ("iVersion", "szOsFile", "mxPathname")),
        ("pNext", c_void_p),
        ("zName", c_char_p),
        ("pAppData", c_void_p),
        *((name, c_void_p) for name in ("xOpen", "xDelete")),
        ("others", c_void_p * 14),
    ]


class _Methods(Structure):
    """`sqlite3_io_methods`."""

    _fields_ = [
        ("iVersion", c_int),
        *((name, c_void_p) for name in ("xClose", "xRead", "xWrite", "xTruncate", "xSync")),
        ("others", c_void_p * 13),
    ]


@cache
def _library() -> Any:
    """Load the library that `sqlite3` is linked to."""
    library = ctypes.CDLL(sys.modules["_sqlite3"].__file__)
    library.sqlite3_vfs_find.restype = c_void_p
    return library


def can_record() -> bool:
    """Return True if the library that `sqlite3` is linked to can be reached."""
    return sys.platform != "win32" and hasattr(_library(), "sqlite3_vfs_register")


def never(number: int, call: Call) -> int:
    """No call fails."""
    return 0


class Recording:
    """Record the calls on files of the connections that it makes.

    made: called with each call after it was made.
    fails: decides which calls fail.
    """

    def __init__(self, made: Callable[[Call], object] | None = None, fails: Fails = never) -> None:
        self.calls: list[Call] = []
        self.fails = fails
        self.tried = 0
        """Number of calls, including failed ones."""
        self._made = made

    def connect(self, path: str, **options: Any) -> sqlite3.Connection:
        """Connect in place of `sqlite3.connect`."""
        _system().recordings[os.path.realpath(path)] = self
        address = f"file:{quote(path)}?vfs=recording"
        found: sqlite3.Connection = sqlite3.connect(address, uri=True, **options)
        return found

    def do(self, call: Call, do: Callable[..., int]) -> int:
        """Make a call, and note it. Of a write that is to fail, make the first half."""
        error = self.fails(self.tried, call)
        self.tried += 1
        if error and call[0] == "write":
            *head, data = call
            call = (*head, data[: len(data) // 2])
            do(len(call[-1]))
        result = error or do()
        if not result or call[0] == "write":
            self.calls.append(call)
            if self._made is not None:
                self._made(call)
        return result


@cache
def _system() -> _Recorder:
    """Return the VFS of this process: SQLite may call it as long as there are connections."""
    return _Recorder()


class _Recorder:
    """A VFS of SQLite's."""

    def __init__(self) -> None:
        self.recordings: WeakValueDictionary[str, Recording] = WeakValueDictionary()
        """Recordings by the path of their database."""
        self._files: dict[int, tuple[str, str]] = {}
        """The paths of a database and of one of its files, by the address of the file in SQLite."""
        self._methods: dict[int, tuple[_Methods, _Methods]] = {}
        """Methods of the system by their address with ours, and ours with those of the system."""
        self._system = _System.from_address(_library().sqlite3_vfs_find(None))
        self._vfs = _System.from_buffer_copy(self._system)
        self._vfs.zName = b"recording"
        self._open, self._delete = _Open(self._opened), _Delete(self._deleted)
        self._write, self._truncate = _Write(self._written), _Truncate(self._truncated)
        self._sync = _Sync(self._synced)
        self._vfs.xOpen, self._vfs.xDelete = _address(self._open), _address(self._delete)
        _library().sqlite3_vfs_register(ctypes.byref(self._vfs), 0)

    def _do(self, files: tuple[str, str], kind: str, data: Any, do: Callable[..., int]) -> int:
        recording = self.recordings.get(files[0])
        if recording is None:
            return do()
        return recording.do((kind, Path(files[1]).name, *data), do)

    def _opened(self, vfs: int, place: int | None, file: int, flags: int, found: int) -> int:
        do: Callable[[], int] = partial(_Open(self._system.xOpen), vfs, place, file, flags, found)
        if not place:
            return do()
        files = _files(place)
        is_new = flags & _CREATE and not Path(files[1]).exists()
        result = self._do(files, "create", (), do) if is_new else do()
        methods = c_void_p.from_address(file)
        if result:
            methods.value = None
        elif methods.value:
            self._files[file] = files
            methods.value = ctypes.addressof(self._ours(methods.value))
        return result

    def _ours(self, place: int) -> _Methods:
        if place not in self._methods:
            methods = _Methods.from_address(place)
            ours = _Methods.from_buffer_copy(methods)
            ours.xWrite, ours.xTruncate = _address(self._write), _address(self._truncate)
            ours.xSync = _address(self._sync)
            self._methods[place] = self._methods[ctypes.addressof(ours)] = methods, ours
        return self._methods[place][1]

    def _of_system(self, file: int) -> _Methods:
        place = c_void_p.from_address(file).value
        assert place
        return self._methods[place][0]

    def _written(self, file: int, data: int, size: int, offset: int) -> int:
        write, written = _Write(self._of_system(file).xWrite), ctypes.string_at(data, size)

        def do(most: int = size) -> int:
            found: int = write(file, data, most, offset)
            return found

        return self._do(self._files[file], "write", (offset, written), do)

    def _truncated(self, file: int, size: int) -> int:
        truncate = _Truncate(self._of_system(file).xTruncate)
        return self._do(self._files[file], "truncate", (size,), partial(truncate, file, size))

    def _synced(self, file: int, flags: int) -> int:
        sync = _Sync(self._of_system(file).xSync)
        return self._do(self._files[file], "sync", (), partial(sync, file, flags))

    def _deleted(self, vfs: int, place: int, is_synced: int) -> int:
        delete = partial(_Delete(self._system.xDelete), vfs, place, is_synced)
        files = _files(place)
        return self._do(files, "delete", (), delete) if Path(files[1]).exists() else delete()


def _files(place: int) -> tuple[str, str]:
    """The path of a database, and that of the file of it whose name is there."""
    path = ctypes.string_at(place).decode()
    return path.removesuffix("-wal").removesuffix("-journal"), path


def _address(function: Any) -> int | None:
    return ctypes.cast(function, c_void_p).value
