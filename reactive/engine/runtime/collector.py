"""Keep the cyclic garbage collector from walking growing state again and again.

A bulk load allocates containers that all stay, and none of them in a cycle. The collector is set
off by such allocations, and walks all that there is each time, which doubles the time of a load.

So it pauses. When it goes on, the first thing that it would do is to walk all that was made
meanwhile, a third of the time of making a view of many rows. Such a view stays: what was made for
it is taken for old at once (`make_old`), and so are the tables of a file, of which each is small,
and thousands are opened in a row. What garbage of others is young then waits for the next full
collection, and so that this comes in time, few large pauses, or many small ones, in a row end so.
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
"""Containers made in a pause, from which on it is worth while to take them for old ones."""
MOST = 16
"""Pauses between two full collections of which what was made is taken for old; one in which fewer
than `MANY` containers were made counts as the part of a pause."""
_MADE_OLD = (gc.freeze, gc.unfreeze)


class _Pauses:
    """The containers of pauses that have ended so since the last full collection, of each at most
    `MANY`. Of the process, as these."""

    __slots__ = ("_collections", "_count")

    def __init__(self) -> None:
        self._collections = -1
        self._count = 0

    def is_one_more_allowed(self, containers: int) -> bool:
        collections = gc.get_stats()[2]["collections"]
        if collections != self._collections:
            self._collections, self._count = collections, 0
        self._count += min(containers, MANY)
        return self._count <= MOST * MANY

    def allow_no_more(self) -> None:
        self._count = MOST * MANY


_PAUSES = _Pauses()


def make_old(least: int = MANY) -> None:
    """Within a pause: take what was made in it for old, if these are at least so many containers.

    Where a program has frozen objects of its own nothing is done, as they would no longer be.
    Whether it has is asked once between two full collections: the answer walks all of them.
    """
    containers = gc.get_count()[0]
    if containers < least or not _PAUSES.is_one_more_allowed(containers):
        return
    if gc.get_freeze_count():
        _PAUSES.allow_no_more()
        return
    deque(map(call, _MADE_OLD), 0)  # together: an interrupt comes before or after


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


def in_pause(
    change: Callable[[], Sequence[T]], take_back: Callable[[Sequence[T]], None]
) -> Sequence[T]:
    """What a change gives, made without collections.

    An interrupt may come when it is made, and nobody knows of it yet: then it is undone.
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
