"""The folder of a `SparkOffload`: one at a time has it, and finds nothing of an earlier one in it
that nobody can go on with.

    lock            held as long as the process lives, however it ends
    spilled/        rows of tables, for the process that wrote them
    part-5f0c.../   state of a part that is begun anew in each process

State:  the lock.
Cost:   a listing.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import IO

from reactive.errors import OffloadError
from spark_backend.cluster.paths import is_remote
from spark_backend.cluster.refusals import writing

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
