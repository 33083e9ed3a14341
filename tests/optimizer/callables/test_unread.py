"""The parameters that an unreadable callable ignores are known all the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from optimizer.callables.captures import unread_parameters
from reactive import Collect, Count, Database, Max, Sum


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
    assert "where tagged" in str(query.explain()).partition("runs as")[2].partition("table left")[0]
    view = query.materialize()
    left.add_all([Row(1, ("x",)), Row(2, ("y",))])
    right.add_all([Row(1, ()), Row(2, ())])
    assert list(view) == [(Row(1, ("x",)), Row(1, ()))]
    view.verify()


CALLS: Counter[str] = Counter()


def key(row: Row) -> int:
    for _ in range(1):
        CALLS["key"] += 1
    return row.key % 3


def size(row: Row) -> int:
    for _ in range(1):
        CALLS["size"] += 1
    return len(row.tags)


def pair_key(row: Row, number: int) -> int:
    return key(row)


ONCE: dict[str, Callable[[Any, Any], Any]] = {
    "group": lambda t, n: t.group_by(key).aggregate(Count(), Sum(size)),
    "values": lambda t, n: t.group_by(key).aggregate(Max(size), Collect(lambda r: r.key)),
    "tuple": lambda t, n: t.group_by(lambda r: (key(r), r.key)).aggregate(Sum(size)),
    "after": lambda t, n: (
        t.where(lambda r: r.key > 0).select(lambda r: r).group_by(key).aggregate(Sum(size))
    ),
    "elements": lambda t, n: t.select_many(lambda r: [r]).group_by(key).aggregate(Sum(size)),
    "join": lambda t, n: t.join(n, left_key=key, right_key=lambda number: number).select(
        lambda row, number: size(row)
    ),
    "pairs": lambda t, n: (
        t.join(n, on=lambda row, number: row.key % 3 == number)
        .group_by(pair_key)
        .aggregate(Sum(lambda row, number: size(row)))
    ),
}


@pytest.mark.parametrize("query", ONCE)
def test_what_cannot_be_read_is_called_once_per_row(query: str) -> None:
    db = Database()
    table, numbers = db.table(Row, name="table"), db.table(int, name="numbers")
    numbers.add_all(range(3))
    view = ONCE[query](table, numbers).materialize()
    rows = [Row(n, ("x",) * (n % 4)) for n in range(1, 41)]
    for change in (table.add_all, table.remove_all):
        for count in (1, 40):
            table.remove_all(list(table)) if change == table.add_all else table.add_all(rows)
            CALLS.clear()
            change(rows[:count])
            assert {"key": count, "size": count} == CALLS
            view.verify()
