"""`import reactive` beside importing the modules of others that it needs."""

from __future__ import annotations

import tempfile
from functools import partial

from asv_benchmarks.cliffs.cliff import Cliff, Sides, Timed
from asv_benchmarks.start import started

OURS, THEIRS = "import reactive", "import sortedcontainers, typing_extensions"


def starting(size: int) -> Sides:
    """Milliseconds of a processor beyond a process that does nothing; `size` processes each."""
    one, other = (
        Timed(partial(_taken, p, size), 1, lambda: None, lambda state: None) for p in (OURS, THEIRS)
    )
    return one, other


def _taken(program: str, processes: int, state: object) -> float:
    with tempfile.TemporaryDirectory() as folder:
        started(program, folder)
        return (
            sum(
                started(program, folder).processor - started("pass", folder).processor
                for _ in range(processes)
            )
            / processes
        )


CLIFFS = (Cliff("`import reactive`", "its third-party modules", starting, 1, most=3.0, unit="ms"),)
