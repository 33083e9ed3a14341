"""What a circle of joins asks is asked, and raises, also where a further input has no rows."""

from __future__ import annotations

from typing import Any

import pytest

from reactive import Database


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("late", [True, False])
def test_a_condition_above_a_circle_raises_though_another_input_has_no_rows(
    optimize: bool, late: bool
) -> None:
    db = Database(optimize=optimize)
    edges: Any = db.table(tuple, name="edges")
    names: Any = db.table(tuple, name="names")
    named = (
        edges.join(edges, on=lambda x, y: x[1] == y[0])
        .join(edges, on=lambda x, y, z: y[1] == z[0] and x[0] == z[1])
        .where(lambda x, y, z: 10 / (y[1] - z[1]) > 0)
        .join(names, left_key=lambda x, y, z: x[1], right_key=lambda n: n[0])
    )
    if late:
        edges.add((2, 2))
        with pytest.raises(ZeroDivisionError):
            named.materialize()
    else:
        view = named.materialize()
        with pytest.raises(ZeroDivisionError):
            edges.add((2, 2))
        assert not list(view) and not list(edges)
