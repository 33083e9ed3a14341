"""Pause the cyclic garbage collector while large, growing state is built.

A bulk load allocates containers that all stay, none of them in a cycle. Such allocations trigger
the collector, which scans all objects each time, and that doubles the time of a load.

So the collector is paused. Afterwards it would first scan everything allocated meanwhile, a third
of the time of building a view of many rows. Since such a view stays, its objects are moved to the
oldest generation directly (`make_old`); so are the tables of a file, each of them small, but opened
by the thousand. Young garbage of other code then waits for the next full collection. To get one in
time, only a few large pauses, or many small ones, in a row end this way.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import call
from typing import TypeVar

T = TypeVar("T")
MANY = 10_000
"""Minimum number of containers allocated in a pause for moving them to the oldest generation."""
MOST = 16
"""Maximum number of pauses between two full collections that end with `make_old`.

A pause with fewer than `MANY` containers counts as a fraction.
"""
_MADE_OLD = (gc.freeze, gc.unfreeze)


class _Pauses:
    """Containers of the pauses since the last full collection, at most `MANY` of each.

    Process-wide, like the collector.
    """

    __slots__ = ("_collections", "_count")

    def __init__(self) -> None:
        self._collections = -1
        self._count = 0

    def is_one_more_allowed(self, containers: int) -> bool:
        """Count a pause of the collector; False if there were too many since its last run."""
        collections = gc.get_stats()[2]["collections"]
        if collections != self._collections:
            self._collections, self._count = collections, 0
        self._count += min(containers, MANY)
        return self._count <= MOST * MANY

    def allow_no_more(self) -> None:
        self._count = MOST * MANY


_PAUSES = _Pauses()


def make_old(least: int = MANY) -> None:
    """Move the containers allocated in this pause to the oldest generation, if they are enough.

    Do nothing if the program has frozen objects of its own, which this would unfreeze. This is
    tested once between two full collections, since the test scans all frozen objects.
    """
    containers = gc.get_count()[0]
    if containers < least or not _PAUSES.is_one_more_allowed(containers):
        return
    if gc.get_freeze_count():
        _PAUSES.allow_no_more()
        return
    deque(map(call, _MADE_OLD), 0)  # in one call: an interrupt cannot separate the two


@contextmanager
def pause_collector() -> Iterator[None]:
    """Pause the collector, unless another thread ends a pause of its own meanwhile."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def in_pause(
    change: Callable[[], Sequence[T]], take_back: Callable[[Sequence[T]], None]
) -> Sequence[T]:
    """Return the result of a change, made while the collector is paused.

    If an interrupt occurs after the change, before the caller has the result, it is undone.
    """
    if not gc.isenabled():
        return change()
    changes: Sequence[T] = ()
    try:
        gc.disable()
        changes = change()
        gc.enable()
    except BaseException:
        take_back(changes)
        gc.enable()
        raise
    return changes
