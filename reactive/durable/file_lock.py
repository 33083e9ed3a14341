"""A file that one process at a time has, and that is free again when the process is gone.

State:  an open file, and which this process has. The kernel lets it go when the process ends,
        however it ends.
"""

from __future__ import annotations

import os
import sys
import weakref

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


def _take(file: int) -> bool:
    """Lock a file for as long as it is open, if nobody has."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
