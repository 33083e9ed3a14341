"""Keep the cyclic garbage collector from walking growing state again and again.

A bulk load allocates containers that all stay, and none of them in a cycle. The collector is set
off by such allocations, and walks all that there is each time, which doubles the time of a load.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


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
