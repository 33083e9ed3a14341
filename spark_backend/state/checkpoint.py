"""The folder of a `SparkOffload`: lock it, delete remains, and record the queries of its views.

    lock            held until the process ends, in any way
    spilled/        rows of tables, for the process that wrote them
    part-5f0c.../   state of a part that starts empty in each process

State:  the lock.
Cost:   a listing.

`ViewLedger` records the queries of the views whose state is in the checkpoint, by the names of the
views:

    views.json      {"format": 1, "views": {"per town": ["4b1c738cb36b..."]}}

State is found by the fingerprint of its plan, so a view with a changed query finds none. The ledger
distinguishes such a view from a new one.

State:  the fingerprints of named views, of an earlier process and of this one.
Cost:   O(views) to record one.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from reactive.errors import OffloadError
from spark_backend.cluster.files import locate, replace_file
from spark_backend.cluster.paths import is_remote, writing
from spark_backend.cluster.session import Session

SPILLED, ANEW = "spilled", "part-"
"""The folder of rows of tables, and the prefix of parts that start empty in each process."""


def lock_folder(folder: str) -> IO[bytes] | None:
    """Return a lock on a local folder, which the system releases when the process ends.

    Return None for a remote folder and on Windows.

    Raises
    ------
    OffloadError: another process holds the lock, or the file cannot be written.
    """
    if is_remote(folder):
        return None
    with suppress(ImportError):  # Windows has no `fcntl`
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
        _sweep_folder(Path(folder))
        return file
    return None


def _sweep_folder(folder: Path) -> None:
    """Delete the files of the previous owner, which has ended."""
    shutil.rmtree(folder / SPILLED, ignore_errors=True)
    for path in folder.glob(f"{ANEW}*"):
        shutil.rmtree(path, ignore_errors=True)


FORMAT = 1
FILE = "views.json"


class ViewLedger:
    """The views of a checkpoint; an unreadable file counts as empty.

    Parameters
    ----------
    folder: the checkpoint, as a path or URI.
    """

    def __init__(self, session: Session, folder: str) -> None:
        found = locate(folder, session)
        self._files, self._root = found.files, found.root
        self._before = self._read_file()
        self._now: dict[str, list[str]] = {}

    def changed(self, views: Mapping[str, str]) -> list[str]:
        """Return the names of the views that had another query in an earlier process.

        Parameters
        ----------
        views: the fingerprint of the query of each view, by its name.
        """
        return [name for name, plan in views.items() if plan not in self._before.get(name, [plan])]

    def note(self, views: Mapping[str, str]) -> None:
        """Record that the checkpoint has state of the given views."""
        new = {n: p for n, p in views.items() if p not in self._now.get(n, ())}
        for name, plan in new.items():
            self._now.setdefault(name, []).append(plan)
        if new:
            self._write_file()

    def _write_file(self) -> None:
        self._files.create_dir(self._root, recursive=True)
        found = {"format": FORMAT, "views": self._before | self._now}
        replace_file(self._files, f"{self._root}/{FILE}", json.dumps(found).encode())

    def _read_file(self) -> dict[str, list[str]]:
        """Return the plans of each view by its name; nothing if the file is missing, invalid or of
        another format."""
        with suppress(FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
            with self._files.open_input_stream(f"{self._root}/{FILE}") as stream:
                found: Any = json.loads(stream.read())
            if found["format"] == FORMAT:
                return {str(name): list(map(str, plans)) for name, plans in found["views"].items()}
        return {}
