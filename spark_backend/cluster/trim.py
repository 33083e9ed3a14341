"""Give memory that is free back to the system: what a move is for.

Python and Arrow keep what they have freed for what they may need next; glibc does too.
"""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress

import pyarrow as pa


def trim() -> None:
    """Collect garbage, and return free memory to the system. Takes up to a second in a large
    process."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):  # not every system has it
        ctypes.CDLL(None).malloc_trim(0)
