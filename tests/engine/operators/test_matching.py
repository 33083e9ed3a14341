"""Equal rows of two tables are the same row to a join that counts their partners."""

from __future__ import annotations

import pytest

from reactive import Database


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("kind", ["semi_join", "left_join"])
def test_a_row_that_two_tables_have_counts_its_partners_once(kind: str, optimize: bool) -> None:
    db = Database(optimize=optimize)
    ours, theirs = db.table(tuple, name="ours"), db.table(tuple, name="theirs")
    others = db.table(int, name="others")
    both = ours.union_all(theirs)
    view = getattr(both, kind)(others, on=lambda row, n: row[0] < n).materialize()
    ours.add((1000, 1))
    theirs.add((1000, 1))
    others.add(2000)
    theirs.remove((1000, 1))
    others.remove(2000)
    view.verify()
    assert len(view) == (kind == "left_join")
