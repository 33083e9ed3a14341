"""The file of notices: a line of JSON for each batch, with its number.

A batch and its number are one line, so that they are in the file together or not at all: a line
without its end is what a kill or a full disk has left of one, and is removed when the file is
opened. A batch whose number the file has is not written again. So each notice is in it once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from examples.monitor.rows import Notice

Tell = Callable[[dict[str, Any]], object]


class Outbox:
    """The file of notices at a path, open for writing.

    Parameters
    ----------
    path: of the file, which is made if there is none.
    tell: called with each notice after it is in the file, such as to print it.
    """

    def __init__(self, path: Path, tell: Tell = lambda notice: None) -> None:
        self._tell = tell
        self._file = path.open("ab", buffering=0)
        whole = path.read_bytes()
        end = whole.rfind(b"\n") + 1
        self._file.truncate(end)
        last = whole[:end].splitlines()[-1:]
        self.number: int = json.loads(last[0])["batch"] if last else -1
        """The number of the last batch in the file, -1 if it has none."""

    def write(self, number: int, changes: Sequence[tuple[Notice, int]]) -> None:
        """Append a batch of the sink; what is no longer to be told is left out."""
        if number <= self.number:
            return
        notices = [_as_json(notice) for notice in sorted(n for n, weight in changes if weight > 0)]
        line = (json.dumps({"batch": number, "notices": notices}) + "\n").encode()
        end = self._file.tell()
        try:
            if self._file.write(line) < len(line):
                raise OSError(f"the disk has no room for batch {number}")
            os.fsync(self._file.fileno())
        except OSError:
            self._file.truncate(end)  # the sink repeats the whole batch
            raise
        self.number = number
        for notice in notices:
            self._tell(notice)

    def close(self) -> None:
        self._file.close()


def read_notices(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the notices of a file, oldest first."""
    for line in path.read_text().splitlines(keepends=True):
        if line.endswith("\n"):
            yield from json.loads(line)["notices"]


def _as_json(notice: Notice) -> dict[str, Any]:
    return {**notice._asdict(), "at": notice.at.isoformat()}
