"""Equations in other words find partners as an equation does, also beside values without a key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Database
from tests.budget import examples, sampled

KINDS = ["semi_join", "anti_join", "left_join", "full_join"]
SPELLINGS: dict[str, Callable[[Any, Any], bool]] = {
    "equation": lambda x, y: x[0] == y[0],
    "not other": lambda x, y: not x[0] != y[0],  # noqa: SIM202
    "no distance": lambda x, y: x[0] - y[0] == 0,
    "and one side": lambda x, y: x[0] - y[0] == 0 and y[1] > 0,
    "one side first": lambda x, y: y[1] > 0 and x[0] == y[0],
    "a divisor": lambda x, y: x[0] == y[0] and 2 // y[1] > 1,
    "of the left, too": lambda x, y: x[0] == y[0] and y[1] < 2 and x[1] > 0,
    "more": lambda x, y: not x[0] != y[0] and x[1] - y[1] == 1,  # noqa: SIM202
    "all": lambda x, y: all([not x[0] != y[0], x[1] == y[1]]),  # noqa: SIM202
}
ORDINARY = [0, 1, 2, 3]
ODD = [*ORDINARY, 1.0, True, None, float("nan"), float("inf"), "a", (1, float("nan")), [1], 1 << 70]
Row = tuple[Any, Any]


def rows_of(values: list[Any], numbers: list[Any]) -> st.SearchStrategy[list[Row]]:
    row = st.tuples(st.sampled_from(values), st.sampled_from(numbers))
    return st.lists(row, max_size=5)


FEW, MORE = rows_of(ORDINARY, [1, 2]), rows_of(ODD, [0, 1, 2, None, "b", float("nan")])


STEPS = st.lists(
    st.one_of([st.tuples(each, each, st.booleans()) for each in (FEW, MORE)]),
    min_size=1,
    max_size=6,
)


class Holder:
    """A row's value that may have no hash, in a row that has one."""

    def __init__(self, value: Any, number: Any) -> None:
        self.value = value
        self.number = number

    def __getitem__(self, place: int) -> Any:
        return (self.value, self.number)[place]


@sampled
@pytest.mark.parametrize("on_error", ["raise", "drop"])
@pytest.mark.parametrize("spelling", list(SPELLINGS))
@pytest.mark.parametrize("kind", KINDS)
@given(steps=STEPS)
@examples(15)
def test_partners_are_right_after_every_commit(
    kind: str, spelling: str, on_error: Any, steps: list[tuple[list[Row], list[Row], bool]]
) -> None:
    sides = [Side(kind, spelling, on_error, optimize=optimize) for optimize in (True, False)]
    held: tuple[list[Holder], list[Holder]] = ([], [])
    for left, right, is_away in steps:
        new = [Holder(*row) for row in left], [Holder(*row) for row in right]
        gone = [rows[::2] if is_away else [] for rows in held]
        raised = [side.commit(new, gone) for side in sides]
        assert raised[0] == raised[1]
        sides[0].view.verify()
        if raised[0] is None:
            for rows, come, go in zip(held, new, gone, strict=True):
                rows[:] = [row for row in rows if row not in go] + come
    for side in sides:
        side.db.close()


class Side:
    """A database with one view, in which each pair is tested unless it is to `optimize`."""

    def __init__(self, kind: str, spelling: str, on_error: Any, *, optimize: bool) -> None:
        self.db = Database(optimize=optimize)
        self.tables = [self.db.table(Holder, identity=True, name=name) for name in "ab"]
        joined = getattr(self.tables[0], kind)(self.tables[1], on=SPELLINGS[spelling])
        self.view = joined.materialize(on_error=on_error)

    def commit(self, new: Any, gone: Any) -> type[Exception] | None:
        """Insert and delete rows in one transaction; return the class of what it raises."""
        try:
            with self.db.transaction():
                for table, come, go in zip(self.tables, new, gone, strict=True):
                    table.add_all(come)
                    table.remove_all(go)
        except (TypeError, ValueError, ArithmeticError) as error:
            return type(error)
        return None


@pytest.mark.parametrize("spelling", ["not other", "no distance", "and one side"])
@pytest.mark.parametrize("kind", KINDS[:2])
def test_one_more_partner_touches_no_other_row(kind: str, spelling: str) -> None:
    touched = {}
    for words in ("equation", spelling):
        db = Database()
        a, b = db.table(tuple, name="a"), db.table(tuple, name="b")
        a.add_all([(n % 5, n) for n in range(1_000)])
        b.add_all([(n % 5, n) for n in range(1, 100)])
        view = getattr(a, kind)(b, on=SPELLINGS[words]).materialize()
        before = view.stats().touched
        b.add((3, 500))
        b.remove((3, 500))
        touched[words] = view.stats().touched - before
        view.verify()
    assert touched[spelling] == touched["equation"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_without_a_key_is_refused_and_the_counts_stay(kind: str) -> None:
    db = Database()
    a, b = db.table(tuple, name="a"), db.table(tuple, name="b")
    view = getattr(a, kind)(b, on=SPELLINGS["no distance"]).materialize()
    a.add_all([(1, 1), (2, 2)])
    with pytest.raises(TypeError, match="unsupported operand"):
        b.add(("text", 1))
    b.add((1, 7))
    view.verify()
    a.clear()
    b.add(("text", 1))  # meets no row
    b.remove(("text", 1))
    a.add_all([(1, 3), (7, 3)])
    view.verify()
    with pytest.raises(TypeError), db.transaction():
        a.add((1, 4))
        b.add(("text", 1))
    view.verify()
