"""Calls are counted for the given function only, without leftovers of earlier code."""

from __future__ import annotations

import gc
import linecache
import weakref
from typing import Any

from reactive.engine.codegen.functions import BoundValues, build
from tests.counted_calls import calls_of

MANY = 20
TEXT = "def nothing():\n    return None\n"


class Left:
    """Garbage in a cycle, which only a collection finds."""

    def __init__(self) -> None:
        self.made = build("nothing", TEXT, BoundValues())
        self.itself = self


def leave() -> weakref.ref[Any]:
    """Leave garbage, less than the threshold of a collection."""
    gc.collect()
    return weakref.ref([Left() for _ in range(MANY)][-1])


def test_what_finalizes_the_garbage_of_others_is_not_counted() -> None:
    held: list[Any] = []

    def work() -> None:
        held.extend([] for _ in range(5_000))  # sets a collection off
        held.append(build("nothing", TEXT, BoundValues()))

    alone = calls_of(work)
    gone = leave()
    assert gone() is not None
    assert calls_of(work) == alone
    assert gone() is None


def test_texts_of_functions_that_are_gone_already_are_not_counted() -> None:
    held: list[Any] = []

    def work() -> None:
        held.append(build("nothing", TEXT, BoundValues()))

    alone, texts = calls_of(work), len(linecache.cache)
    leave()
    gc.collect()
    assert len(linecache.cache) > texts + MANY // 2
    assert calls_of(work) == alone


def test_the_collector_is_enabled_meanwhile_and_then_as_before() -> None:
    thresholds, found = gc.get_threshold(), list[bool]()
    calls_of(lambda: found.append(gc.isenabled()))
    assert found == [True]
    assert gc.get_threshold() == thresholds
