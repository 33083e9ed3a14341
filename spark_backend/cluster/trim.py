"""Return free memory to the system after rows have moved to Spark.

Python, Arrow and glibc keep freed memory for later allocations.
"""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress

import pyarrow as pa


def trim_memory() -> None:
    """Collect garbage, and return free memory to the system.

    Takes up to a second in a large process.
    """
    gc.collect()
    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):  # not on every system
        ctypes.CDLL(None).malloc_trim(0)
