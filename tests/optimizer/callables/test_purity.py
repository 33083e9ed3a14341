"""Callables that are known to be impure are refused when the relation is made."""

from __future__ import annotations

import datetime
import os
import random
import time
import uuid
from collections.abc import Callable
from datetime import date
from random import Random
from time import time as now
from typing import Any

import pytest

from optimizer.callables.opaque import impurity
from reactive import Database, PlanError

GENERATOR = Random(1)
COUNT = 0


def counting(row: Any) -> int:
    global COUNT
    COUNT += 1
    return COUNT


def reading(row: Any) -> bool:
    with open(row) as file:  # noqa: PTH123
        return bool(file.read())


IMPURE: list[tuple[Callable[..., Any], str]] = [
    (lambda r: random.random() < r, "random.random"),
    (lambda r: [random.choice([1, 2]) for _ in range(r)], "random.choice"),
    (lambda r: GENERATOR.random() < r, "GENERATOR.random"),
    (lambda r: time.time() > r, "time.time"),
    (lambda r: now() > r, "now"),
    (lambda r: datetime.datetime.now() > r, "datetime.datetime.now"),
    (lambda r: date.today() > r, "date.today"),
    (lambda r: print(r), "print"),
    (lambda r: uuid.uuid4(), "uuid.uuid4"),
    (lambda r: os.urandom(r), "os.urandom"),
    (counting, "COUNT"),
    (reading, "open"),
    (print, "print"),
    (random.random, "random"),
]

PURE: list[Callable[[Any], Any]] = [
    lambda r: r.random,
    lambda r: r.time > 3,
    lambda r: datetime.timedelta(r),
    lambda r: date(2020, 1, 1) < r,
    lambda r: os.path.join(r, "x"),  # noqa: PTH118
    lambda r: (lambda x: x + 1)(r),
    lambda r: uuid.UUID(r),
    len,
    str.upper,
]


@pytest.mark.parametrize(("function", "name"), IMPURE, ids=[name for _, name in IMPURE])
def test_an_impure_callable_is_refused(function: Callable[..., Any], name: str) -> None:
    reason = impurity(function)
    assert reason is not None
    assert name in reason
    with pytest.raises(PlanError, match="cannot be used in a query"):
        Database().table(object, name="t").select(function)


@pytest.mark.parametrize("function", PURE)
def test_what_only_looks_like_it_is_taken(function: Callable[[Any], Any]) -> None:
    assert impurity(function) is None


def test_a_nested_function_may_keep_its_own_counters() -> None:
    def total(rows: Any) -> int:
        count = 0

        def add() -> None:
            nonlocal count
            count += 1

        add()
        return count

    assert impurity(total) is None


def test_writing_a_captured_variable_is_impure() -> None:
    count = 0

    def add(row: Any) -> int:
        nonlocal count
        count += 1
        return count

    assert impurity(add) == "it assigns the captured variable 'count'"
