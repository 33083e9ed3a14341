"""Joins of tables that are not stored, whose keys cannot be computed of every row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from reactive import Database


@dataclass(frozen=True, slots=True)
class Row:
    a: Any
    b: Any = None


@pytest.mark.parametrize("optimize", [False, True])
def test_rows_that_an_index_leaves_out_are_not_taken_back_from_it(optimize: bool) -> None:
    """The part [x.a] of the key has no hash, so that each row is paired with all."""
    rows = Database(optimize=optimize).table(Row, stored=False)
    joined = rows.join(rows, on=lambda x, y: x.a == y.a and [x.a] == [y.a])
    views = [
        joined.where(lambda x, y: x.a == 0).select(lambda x, y: (x.a, y.a)).materialize(),
        joined.where(lambda x, y: x.a != 0).select(lambda x, y: (x.a, y.a)).materialize(),
    ]
    for number in range(1, 4):
        rows.add(Row(0))
        assert [dict(view.zset().items()) for view in views] == [{(0, 0): number**2}, {}]
    rows.add(Row(1))
    assert [dict(view.zset().items()) for view in views] == [{(0, 0): 9}, {(1, 1): 1}]
    rows.remove(Row(0))
    assert [dict(view.zset().items()) for view in views] == [{(0, 0): 4}, {(1, 1): 1}]
