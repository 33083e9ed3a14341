"""Collect against plain Python, over histories with failing commits, and the cost of a change."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Bag, Collect, Count, Database, Max, Table
from reactive.engine.collections import weight_tree
from tests.budget import examples
from tests.thresholds import LOWEST, thresholds

Row = tuple[int, Any]

ROWS = st.tuples(st.integers(0, 2), st.sampled_from([*range(12), None, float("nan"), "a"]))
COMMIT = st.tuples(
    st.lists(ROWS, max_size=8), st.lists(st.integers(0, 40), max_size=6), st.booleans()
)


def refuse(row: Row) -> bool:
    if row[1] == "refused":
        raise ArithmeticError
    return True


@pytest.mark.parametrize("settings_", [{}, LOWEST], ids=["as shipped", "at their lowest"])
@examples(64)
@given(history=st.lists(COMMIT, max_size=8))
def test_groups_are_those_of_plain_python(
    settings_: dict[str, int], history: list[tuple[list[Row], list[int], bool]]
) -> None:
    with thresholds(settings_), Database() as db:
        rows: Table[Row] = db.table(tuple, name="rows")
        groups = rows.group_by(lambda r: r[0]).aggregate(
            Count(), Collect(lambda r: r[1]), Max(lambda r: str(r[1])), Collect(lambda r: r[0])
        )
        view, whole = groups.materialize(), rows.aggregate(Collect(lambda r: r)).materialize()
        checked = rows.where(refuse).materialize()
        held: list[Row] = []
        for added, places, fails in history:
            gone = [held[place] for place in {place for place in places if place < len(held)}]
            try:
                with db.transaction():
                    rows.add_all(added)
                    rows.remove_all(gone)
                    if fails:
                        rows.add((0, "refused"))
            except ArithmeticError:
                pass
            else:
                held += added
                for row in gone:
                    held.remove(row)
            assert by_group(view) == {key: expected(held, key) for key, _ in held}
            assert whole.value == Bag(held)
            with groups.materialize() as late:
                assert by_group(late) == by_group(view)
        view.verify()
        checked.close()


def by_group(view: Any) -> dict[int, tuple[Any, ...]]:
    return {row[0]: row[1:] for row in view}


def expected(held: list[Row], group: int) -> tuple[Any, ...]:
    values = [value for key, value in held if key == group]
    return len(values), Bag(values), max(map(str, values)), Bag([group] * len(values))


def test_a_row_that_comes_and_goes_in_a_commit_tells_nobody() -> None:
    db = Database()
    words = db.table(str)
    told: list[Any] = []
    groups = words.group_by(len).aggregate(Collect(lambda w: w))
    subscription = groups.subscribe(told.append)
    words.add_all(["to", "be"])
    with db.transaction():
        words.add("or")
        words.remove("or")
    with db.transaction():
        words.remove("to")
        words.add("to")
    assert len(told) == 1
    subscription.close()


def test_a_change_of_a_large_group_leaves_nearly_all_of_it_as_it_was() -> None:
    db = Database()
    numbers = db.table(int)
    view = numbers.aggregate(Collect(lambda n: n)).materialize()
    numbers.add_all(range(5_000))
    numbers.add(-1)
    before: Bag[int] = view.value
    with db.transaction():
        numbers.add(-2)
        numbers.remove(17)
    after = view.value
    kept = {id(leaf) for leaf in weight_tree.tree_dicts(before._tree)}
    made = [leaf for leaf in weight_tree.tree_dicts(after._tree) if id(leaf) not in kept]
    assert len(made) <= 2 and Counter(after) == Counter([*range(5_000), -1, -2]) - Counter([17])
    assert after.difference(before) == {-2: 1, 17: -1}
