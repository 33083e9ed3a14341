"""Whether files that are open are still those at their paths.

A file that was deleted, or has another one in its place, can be written as before, and what is
written is lost when it is closed. Nothing tells of that but a comparison.

State:  which file was at each path when it was opened.
Cost:   of a look at one 2 us, so there is one every `EVERY` seconds.
"""

from __future__ import annotations

from pathlib import Path
from time import monotonic

EVERY = 0.1
"""Seconds between two looks."""


class OpenFiles:
    """Files that have been opened; one that is not there is not looked at later.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/a"
    >>> open(path, "w").close()
    >>> files = OpenFiles(path, path + "-b")
    >>> files.missing() is None
    True
    >>> Path(path).unlink()
    >>> files.missing() == path
    True
    """

    def __init__(self, *paths: str) -> None:
        found = {path: _identity(path) for path in paths}
        self._known = {path: known for path, known in found.items() if known is not None}
        self.due = monotonic() + EVERY
        """When to look again."""

    def missing(self) -> str | None:
        """The path of one that is not there any more; None if all are."""
        for path, known in self._known.items():
            if _identity(path) != known:
                return path
        self.due = monotonic() + EVERY
        return None


def _identity(path: str) -> tuple[int, int] | None:
    """What no other file has while this one is open; None if there is none."""
    try:
        found = Path(path).stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino
