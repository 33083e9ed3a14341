"""Locks of a file for one process, which the kernel releases when the process ends.

    FileLock     locks an empty file beside the database file, found by its path
    InodeLock    locks a byte of the database file, far behind its end: found by a process that
                 opens another path, or after the file beside it was deleted (Linux)

State:  an open file; which files this process has locked.
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
"""The byte of a file that is locked; SQLite locks bytes from 2**30 on."""
_INODES: weakref.WeakValueDictionary[tuple[int, int], InodeLock] = weakref.WeakValueDictionary()
"""The files that this process has locked, by device and inode."""
_HERE: weakref.WeakValueDictionary[str, FileLock] = weakref.WeakValueDictionary()
"""The files that this process has locked, by path."""


class FileLock:
    """The lock of a file: `taken` tells if it was acquired, `is_here` if this process holds it."""

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
        """Release the lock; in a forked child, only close its descriptor."""
        if _HERE.get(self._path) is self:
            del _HERE[self._path]
        self._closes()


class InodeLock:
    """The lock of an inode, whatever path opens it, until `close`.

    Closing any descriptor of a file releases the locks that SQLite has on it in this process. So
    the lock does not open a file that this process has locked, and must be closed after SQLite.
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
        """Release the lock."""
        if _INODES.get(self._inode) is self:
            del _INODES[self._inode]
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)


def other_name_with_log(path: str) -> str | None:
    """Return another name of the file, in its folder, that has a log beside it; None if none has.

    The commits in that log would not be read through `path`.
    """
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
    """Lock a byte far behind the end of the file; False if another process has locked it."""
    kind = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, PLACE, 1, 0)
    try:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, kind)
    except OSError as error:
        return error.errno not in (errno.EAGAIN, errno.EACCES)  # other errors: no such locks here
    return True


def _take(file: int) -> bool:
    """Lock a file for as long as it is open; False if it is locked already."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
