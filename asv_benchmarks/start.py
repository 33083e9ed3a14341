"""The time of `import reactive` in a new process, beyond that of the interpreter itself.

An installed package has its compiled files; here they are in a folder that the first start fills.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from statistics import median
from time import perf_counter
from typing import NamedTuple

ROUNDS = 15


class Start(NamedTuple):
    """The milliseconds of a process, and its CPU milliseconds."""

    wall: float
    processor: float


def import_figures(rounds: int = ROUNDS) -> dict[str, float]:
    """Milliseconds of the import, and of a process that does nothing; the two in turns."""
    with tempfile.TemporaryDirectory() as folder:
        started("import reactive", folder)
        pairs = [
            (started("pass", folder), started("import reactive", folder)) for _ in range(rounds)
        ]
    return {
        "import": median(full.wall - bare.wall for bare, full in pairs),
        "import_processor": median(full.processor - bare.processor for bare, full in pairs),
        "bare": median(bare.wall for bare, _ in pairs),
    }


def started(program: str, folder: str) -> Start:
    """Return the time of a process that runs a program, with its compiled files in a folder."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    start, worked = perf_counter(), _of_children()
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    return Start((perf_counter() - start) * 1e3, (_of_children() - worked) * 1e3)


def _of_children() -> float:
    """Seconds of processor time of all processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
