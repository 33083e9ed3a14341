"""Keep the cyclic garbage collector from walking growing state again and again.

A bulk load allocates containers that all stay, and none of them in a cycle. The collector is set
off by such allocations, and walks all that there is each time, which doubles the time of a load.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """Without collections inside, unless another thread ends a pause of its own meanwhile."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
