"""The folder of a `SparkOffload`: one at a time has it, and finds nothing of an earlier one in it
that nobody can go on with.

    lock            held as long as the process lives, however it ends
    spilled/        rows of tables, for the process that wrote them
    part-5f0c.../   state of a part that is begun anew in each process

State:  the lock.
Cost:   a listing.

Which query each view had whose state is kept in a checkpoint, by the names of the views.

    views.json      {"format": 1, "views": {"per town": ["4b1c738cb36b..."]}}

State is found by the fingerprint of its plan, so a view whose query has changed finds none. This
is how that is told from a view that is new.

State:  the fingerprints of views with a name, as an earlier process and as this one has had them.
Cost:   O(views) to note one.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from reactive.errors import OffloadError
from spark_backend.cluster.files import located, put
from spark_backend.cluster.paths import is_remote, writing
from spark_backend.cluster.session import Session

SPILLED, ANEW = "spilled", "part-"
"""The folder of rows of tables, and what names of parts that are begun anew start with."""


def lock(folder: str) -> IO[bytes] | None:
    """A lock on a local folder, which the system frees when the process ends, however it does.

    Raises
    ------
    OffloadError: another one has it, or it cannot be written.
    """
    if is_remote(folder):
        return None
    with suppress(ImportError):  # there are no such locks on Windows
        import fcntl

        with writing(folder):
            Path(folder).mkdir(parents=True, exist_ok=True)
            file = (Path(folder) / "lock").open("wb")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise OffloadError(
                f"checkpoint {folder!r} is in use\n  one SparkOffload at a time may use a folder"
            ) from None
        _sweep(Path(folder))
        return file
    return None


def _sweep(folder: Path) -> None:
    """Delete what was of the process that had it before, which cannot be there any more."""
    shutil.rmtree(folder / SPILLED, ignore_errors=True)
    for path in folder.glob(f"{ANEW}*"):
        shutil.rmtree(path, ignore_errors=True)


FORMAT = 1
FILE = "views.json"


class ViewLedger:
    """The views of a checkpoint; a file that cannot be read counts as none.

    Parameters
    ----------
    folder: the checkpoint, as a path or URI.
    """

    def __init__(self, session: Session, folder: str) -> None:
        found = located(folder, session)
        self._files, self._root = found.files, found.root
        self._before = self._read()
        self._now: dict[str, list[str]] = {}

    def changed(self, views: Mapping[str, str]) -> list[str]:
        """The names of those that had another query in an earlier process.

        Parameters
        ----------
        views: the fingerprint of the query of each, by its name.
        """
        return [name for name, plan in views.items() if plan not in self._before.get(name, [plan])]

    def note(self, views: Mapping[str, str]) -> None:
        """State of these is now kept."""
        new = {n: p for n, p in views.items() if p not in self._now.get(n, ())}
        for name, plan in new.items():
            self._now.setdefault(name, []).append(plan)
        if new:
            self._write()

    def _write(self) -> None:
        self._files.create_dir(self._root, recursive=True)
        found = {"format": FORMAT, "views": self._before | self._now}
        put(self._files, f"{self._root}/{FILE}", json.dumps(found).encode())

    def _read(self) -> dict[str, list[str]]:
        with suppress(FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
            with self._files.open_input_stream(f"{self._root}/{FILE}") as stream:
                found: Any = json.loads(stream.read())
            if found["format"] == FORMAT:
                return {str(name): list(map(str, plans)) for name, plans in found["views"].items()}
        return {}
