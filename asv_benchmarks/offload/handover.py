"""A full view of the process moves to Spark: the time of the move, and the memory that it frees.

The state is the growth of the process since it was empty, with Spark already running; only the
table refers to the rows. The JVM is another process and is not counted.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from contextlib import suppress
from time import perf_counter

from asv_benchmarks.memory import measured, resident
from asv_benchmarks.offload.cases import Case
from asv_benchmarks.offload.sides import Side, moved, spark

FIRST = 100
"""Rows of a view that is moved before, since the first query of a JVM takes longer."""


def handover_figures(case: Case, size: int) -> dict[str, float]:
    """Seconds, and bytes of the process before and after.

    `empty`, `full` and `moved` are resident bytes, `peak` the most during the move beyond `full`;
    `objects` is how many blocks of memory Python objects have, in the three states.
    """
    start = perf_counter()
    with spark() as offload:
        started = perf_counter() - start
        moved(case, FIRST, offload).close()
        side = Side(case, offload)
        empty, none = trimmed(), sys.getallocatedblocks()
        side.load(case, size)
        full, all_of_it = trimmed(), sys.getallocatedblocks()
        stats = side.view.stats()
        taken = measured(side.view.offload)
        left, some = trimmed(), sys.getallocatedblocks()
        kept = side.view.stats()
        start = perf_counter()
        side.view.recall()
        recalled = perf_counter() - start
        side.close()
    return {
        "start": started,
        "seconds": taken.seconds,
        "recall": recalled,
        "empty": empty,
        "full": full,
        "moved": left,
        "peak": taken.peak,
        "state": stats.bytes,
        "kept": kept.bytes,
        "objects empty": none,
        "objects full": all_of_it,
        "objects moved": some,
    }


def trimmed() -> int:
    """Return the bytes of the process, after it has returned unused memory to the system."""
    gc.collect()
    with suppress(OSError, AttributeError):  # there is another C library
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    return resident()
