"""A call with a large stack has the same result, and leaves no trace."""

from __future__ import annotations

import sys
import threading
import time
from contextvars import ContextVar

import pytest

from reactive.engine.runtime.large_stack import (
    call_with_any_stack,
    call_with_large_stack,
    has_large_stack,
)

ASKED: ContextVar[str] = ContextVar("ASKED", default="nothing")


def depth(levels: int) -> int:
    return levels and 1 + depth(levels - 1)


def test_a_deep_call_gives_its_result() -> None:
    assert call_with_any_stack(lambda: depth(50_000)) == 50_000


def test_a_call_that_is_not_deep_is_made_here() -> None:
    assert call_with_any_stack(threading.get_ident) == threading.get_ident()
    assert not has_large_stack()


def test_a_call_inside_is_made_in_the_same_thread() -> None:
    def inner() -> bool:
        return call_with_large_stack(threading.get_ident) == threading.get_ident()

    assert call_with_large_stack(inner)


def test_an_exception_is_raised_here() -> None:
    with pytest.raises(ZeroDivisionError):
        call_with_large_stack(lambda: 1 // 0)


def test_what_is_deeper_still_is_an_error_and_the_limit_is_as_before() -> None:
    before = sys.getrecursionlimit()
    with pytest.raises(RecursionError):
        call_with_any_stack(lambda: depth(10**6))
    assert sys.getrecursionlimit() == before


def test_context_variables_are_those_of_the_caller() -> None:
    token = ASKED.set("this")
    try:
        assert call_with_large_stack(ASKED.get) == "this"
    finally:
        ASKED.reset(token)


def test_several_threads_at_a_time() -> None:
    before, found = sys.getrecursionlimit(), list[int]()
    threads = [
        threading.Thread(target=lambda: found.append(call_with_any_stack(lambda: depth(20_000))))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [20_000] * 8
    assert sys.getrecursionlimit() == before


def test_no_call_runs_on_a_small_stack_while_the_limit_is_raised() -> None:
    """A thread with a small stack that recursed so deeply would end the process."""
    stop, limits = threading.Event(), set[int]()

    def note() -> None:
        if not has_large_stack():
            limits.add(sys.getrecursionlimit())

    def small() -> None:
        while not stop.is_set():
            call_with_any_stack(note)

    threads = [threading.Thread(target=small) for _ in range(3)]
    before = sys.getrecursionlimit()
    for thread in threads:
        thread.start()
    for _ in range(20):
        call_with_large_stack(lambda: time.sleep(0.002))
    stop.set()
    for thread in threads:
        thread.join()
    assert limits == {before} == {sys.getrecursionlimit()}


def test_a_call_inside_of_one_here_may_have_a_large_stack() -> None:
    def inner() -> int:
        return call_with_large_stack(lambda: depth(5_000)) + call_with_any_stack(lambda: 1)

    assert call_with_any_stack(inner) == 5_001
    assert call_with_any_stack(threading.get_ident) == threading.get_ident()


def test_what_exceeds_the_limit_inside_of_a_call_is_made_again_from_the_outermost() -> None:
    made: list[bool] = []

    def outer() -> int:
        made.append(has_large_stack())
        return call_with_any_stack(lambda: depth(20_000))

    assert call_with_any_stack(outer) == 20_000
    assert made == [False, True]
