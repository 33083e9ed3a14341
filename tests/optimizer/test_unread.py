"""Of a callable that cannot be read it is still known which parameters it does not look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from optimizer.loads import unread_parameters
from reactive import Database


@dataclass(frozen=True, slots=True)
class Row:
    key: int
    tags: tuple[str, ...]


def tagged(left: Row, right: Row) -> bool:
    for tag in left.tags:  # noqa: SIM110 - a statement that cannot be read
        if tag == "x":
            return True
    return False


def both(left: Row, right: Row) -> bool:
    for tag in left.tags:  # noqa: SIM110
        if tag in right.tags:
            return True
    return False


def all_of_them(left: Row, right: Row) -> int:
    return len(locals())


def nested(left: Row, right: Row) -> Any:
    return [left.key + other for other in (1, 2)], lambda: right


def test_what_a_function_may_look_at_counts_as_read() -> None:
    assert unread_parameters(tagged) == {1}
    assert unread_parameters(both) == set()
    assert unread_parameters(all_of_them) == set()
    assert unread_parameters(nested) == set()
    assert unread_parameters(len) == set()


def test_an_opaque_condition_on_one_side_filters_the_index_of_that_side() -> None:
    db = Database()
    left, right = db.table(Row, name="left"), db.table(Row, name="right")
    query = left.join(right, on=lambda a, b: a.key == b.key).where(tagged)
    assert "left where tagged" in query.explain()
    view = query.materialize()
    left.add_all([Row(1, ("x",)), Row(2, ("y",))])
    right.add_all([Row(1, ()), Row(2, ())])
    assert list(view) == [(Row(1, ("x",)), Row(1, ()))]
    view.verify()
