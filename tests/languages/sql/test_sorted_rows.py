"""Rows in the order of aggregates: sorted by their keys, whatever the keys are."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import pytest

from reactive.languages.sql.runtime.folds import sorted_rows
from reactive.languages.sql.runtime.rows import sort_key_function
from tests.counted_calls import calls_of

VALUES: dict[str, tuple[Any, ...]] = {
    "numbers": (1, 2, 3, -4),
    "texts": ("a", "b", "", "ab"),
    "with NULL": (1, None, 3),
    "floats": (0.5, math.nan, 1.0),
    "of two classes": (True, 1, 2),
    "tuples": ((1, "a"), (1, None), (0,)),
}


@pytest.mark.parametrize("rest", VALUES)
@pytest.mark.parametrize("keys", VALUES)
def test_rows_are_sorted_as_by_their_sort_keys(keys: str, rest: str) -> None:
    random = Random(f"{keys} {rest}")
    for _ in range(40):
        width = random.randrange(3)
        directions = tuple((random.random() < 0.5, random.random() < 0.5) for _ in range(width))
        rows = [
            (*random.choices(VALUES[keys], k=width), random.choice(VALUES[rest]))
            for _ in range(random.randrange(8))
        ]
        key = sort_key_function(directions)
        expected = sorted(rows, key=lambda row: key(row[:width], row[width:]))
        assert repr(sorted_rows(rows, directions)) == repr(expected)


def test_numbers_and_texts_are_compared_without_a_call_for_each() -> None:
    rows = [(n % 50, str(n)) for n in range(1000)]
    assert calls_of(lambda: sorted_rows(rows, [(True, False)])) < 50
