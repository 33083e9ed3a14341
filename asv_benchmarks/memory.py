"""Bytes that a side takes for its rows: how much the resident set of the process grows.

Meant for a process that does nothing else. The rows are made beforehand and are not counted.
Tracing allocations instead would be exact, and many times slower.
"""

from __future__ import annotations

import gc
import os
import resource
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

STATM = Path("/proc/self/statm")
STATUS = Path("/proc/self/status")
CLEAR = Path("/proc/self/clear_refs")


class Load(NamedTuple):
    """Seconds of a load, the bytes held after it, and the most that were held during it."""

    seconds: float
    held: int
    peak: int


def measured(work: Callable[[], object], clock: Callable[[], float] = perf_counter) -> Load:
    """Run `work` once, and measure its cost."""
    gc.collect()
    _forget_peak()
    before = resident()
    start = clock()
    work()
    seconds = clock() - start
    return Load(seconds, max(0, resident() - before), max(0, peak() - before))


def resident() -> int:
    """Bytes of the process that are in memory; elsewhere than on Linux, the most there were."""
    if STATM.exists():
        return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return peak()


def peak() -> int:
    """Return the most bytes that were in memory, since the start or the last `_forget_peak`."""
    if STATUS.exists():
        for line in STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _forget_peak() -> None:
    if CLEAR.exists():
        CLEAR.write_text("5")
