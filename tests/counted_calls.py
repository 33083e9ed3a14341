"""Work of a function: its number of calls, which is equal in each run.

Garbage of other code does not count. Its collection calls finalizers of views and generated
functions, and the next function that is built removes the texts of freed ones from `linecache`:
both happen before counting. Nothing is collected while calls are counted.
"""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import optimizer
import reactive
from reactive.engine.codegen.functions import BoundValues, build
from reactive.engine.runtime.boundary import GENERATED

ROOMS = tuple(str(Path(str(room.__file__)).parent) for room in (optimizer, reactive))


def calls_of(run: Callable[[], object]) -> int:
    """Return the number of called functions, of Python and of C."""
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    with without_garbage():
        before = sys.getprofile()
        sys.setprofile(note)
        try:
            run()
        finally:
            sys.setprofile(before)
    return count


class OwnCalls(NamedTuple):
    """Calls of the project's own functions, and the number of files of these functions.

    A generated function is a file of its own.
    """

    calls: int
    files: int


def own_calls_of(run: Callable[[], object]) -> OwnCalls:
    """Count the calls of the project's own functions, and their files."""
    files: Counter[str] = Counter()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            files[frame.f_code.co_filename] += 1

    with without_garbage():
        before = sys.getprofile()
        sys.setprofile(note)
        try:
            run()
        finally:
            sys.setprofile(before)
    own = {file: count for file, count in files.items() if file.startswith((*ROOMS, GENERATED))}
    return OwnCalls(sum(own.values()), len(own))


@contextmanager
def without_garbage() -> Iterator[None]:
    """Collect garbage, then suspend collections; the collector stays enabled for the library."""
    gc.collect()
    build("nothing", "def nothing():\n    return None\n", BoundValues())
    thresholds = gc.get_threshold()
    gc.set_threshold(0)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
