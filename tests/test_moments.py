"""Calls at the end of a generator are distinguished from other calls."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

import pytest

from tests.moments import is_closed


def numbers() -> Iterator[int]:
    yield 1
    yield 2


@contextmanager
def watched() -> Iterator[None]:
    try:
        yield
    except KeyError as error:
        raise LookupError from error


def dropped() -> None:
    for number in numbers():
        assert number == 1
        break


def thrown() -> None:
    with suppress(LookupError), watched():
        raise KeyError


def read() -> None:
    assert [*numbers()] == [1, 2]


def closed_in(run: Callable[[], None], name: str) -> list[bool]:
    """Return for each call of a function whether it is closed."""
    found: list[bool] = []

    def trace(frame: FrameType, event: str, argument: object) -> None:
        if frame.f_code.co_name == name:
            found.append(is_closed(frame))

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return found


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="there, it is not told")
def test_a_generator_that_nobody_holds_is_closed() -> None:
    assert closed_in(dropped, "numbers") == [False, True]


def test_nothing_else_is() -> None:
    assert not any(closed_in(read, "numbers") + closed_in(thrown, "watched"))
    assert closed_in(thrown, "thrown") == [False]
