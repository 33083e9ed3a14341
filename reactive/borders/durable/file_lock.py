"""A file that one process at a time has, and that is free again when the process is gone.

    FileLock     an empty file beside it is locked, which is found by its path
    InodeLock    a byte of the file itself, far behind its end: whoever opens it by another name, or
                 when the file beside it was deleted, finds it taken (Linux)

State:  an open file, and which this process has. The kernel lets it go when the process ends,
        however it ends.
"""

from __future__ import annotations

import errno
import os
import struct
import sys
import weakref
from pathlib import Path
from typing import Any

fcntl: Any = None
if sys.platform != "win32":
    import fcntl

PLACE = 2**62
"""The byte of a file that is locked; SQLite locks some from 2**30 on."""
_INODES: weakref.WeakValueDictionary[tuple[int, int], InodeLock] = weakref.WeakValueDictionary()
"""The files that this process has, by device and number."""
_HERE: weakref.WeakValueDictionary[str, FileLock] = weakref.WeakValueDictionary()
"""The files that this process has."""


class FileLock:
    """Take a file; `taken` tells whether nobody else has it, and `is_here` whether it is this
    process that does."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self._closes = weakref.finalize(self, os.close, self._file)
        self.taken = _take(self._file)
        self.is_here = self.taken or path in _HERE
        if self.taken:
            _HERE[path] = self
        else:
            self.close()

    def close(self) -> None:
        """Let it go; in a child of the process that has it, only forget it."""
        if _HERE.get(self._path) is self:
            del _HERE[self._path]
        self._closes()


class InodeLock:
    """Take a file, by whatever name it is opened, for as long as `close` is not called.

    Closing any descriptor of a file lets go of the locks that SQLite has on it in this process. So
    the file is not opened while this process has it, and is to be closed after SQLite has closed.
    """

    def __init__(self, path: str) -> None:
        found = Path(path).stat()
        self._inode = found.st_dev, found.st_ino
        self.is_here = self._inode in _INODES
        self.taken, self._file = not self.is_here, -1
        if self.taken and hasattr(fcntl, "F_OFD_SETLK"):
            self._file = os.open(path, os.O_RDWR)
            self.taken = _take_byte(self._file)
        if self.taken:
            _INODES[self._inode] = self
        else:
            self.close()

    def close(self) -> None:
        """Let it go."""
        if _INODES.get(self._inode) is self:
            del _INODES[self._inode]
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)


def other_name_with_log(path: str) -> str | None:
    """Return another name of the file, in its folder, that has a log beside it; None if none has:
    its commits would not be read by this name."""
    found = Path(path)
    mine = found.stat()
    if mine.st_nlink < 2:
        return None
    for other in found.parent.iterdir():
        if other.name != found.name and Path(f"{other}-wal").exists():
            there = other.stat()
            if (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino):
                return str(other)
    return None


def _take_byte(file: int) -> bool:
    """Lock a byte that no file has, which nobody but us does."""
    kind = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, PLACE, 1, 0)
    try:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, kind)
    except OSError as error:
        return error.errno not in (errno.EAGAIN, errno.EACCES)  # others: there are no such locks
    return True


def _take(file: int) -> bool:
    """Lock a file for as long as it is open, if nobody has."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
