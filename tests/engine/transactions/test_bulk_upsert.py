"""Upserts of many rows in one loop do what single upserts do; calls are counted."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Database, Sum, TableError
from reactive.engine.transactions import row_gate
from tests.budget import examples
from tests.counted_calls import calls_of


class Stock(NamedTuple):
    id: Any
    place: Any
    amount: Any


class Shop:
    """A keyed table with two views, and the deltas that a subscriber gets."""

    def __init__(self, rows: list[Stock]) -> None:
        self.db = Database()
        self.table: Any = self.db.table(Stock, key="id")
        self.table.add_all(rows)
        self.sums = (
            self.table.group_by(lambda s: s.place).aggregate(Sum(lambda s: s.amount)).materialize()
        )
        self.copy = self.table.materialize()
        self.told: list[Any] = []
        self.following = self.copy.subscribe(self.hear)

    def hear(self, delta: Any) -> None:
        self.told.append((list(delta.items()), sorted(delta.updated)))

    def state(self) -> tuple[Any, ...]:
        return list(self.table), sorted(self.sums.zset()), self.told


ROWS = st.lists(
    st.builds(Stock, st.integers(0, 9), st.integers(0, 2), st.integers(0, 3)), max_size=8
)
BY_KEY = ROWS.map(lambda rows: list({row.id: row for row in rows}.values()))


@given(BY_KEY, st.lists(st.one_of(ROWS, BY_KEY), max_size=4), st.booleans())
@examples(80)
def test_they_tell_and_keep_what_single_upserts_do(
    first: list[Stock], batches: list[list[Stock]], in_transaction: bool
) -> None:
    one, other = Shop(first), Shop(first)
    with pytest.MonkeyPatch.context() as patch:
        for batch in batches:
            for shop, least in ((one, 1), (other, 10**9)):
                patch.setattr(row_gate, "MANY", least)
                if in_transaction and batch:
                    with shop.db.transaction():
                        shop.table.discard(next(iter(shop.table), batch[0]))
                        shop.table.upsert_all(batch)
                else:
                    shop.table.upsert_all(batch)
                shop.copy.verify()
                shop.sums.verify()
            assert one.state() == other.state()


@pytest.mark.parametrize("bad", [("x",), Stock(float("nan"), 1, 1), Stock([], 1, 1)])
def test_a_refused_row_leaves_the_table_as_it_was(bad: Any) -> None:
    shop = Shop([Stock(n, 0, 0) for n in range(100)])
    before = sorted(shop.table)
    with pytest.raises((TableError, TypeError)) as caught:
        shop.table.upsert_all([*[Stock(n, 1, 1) for n in range(50, 150)], bad])
    with pytest.raises(caught.type) as single:
        shop.table.upsert(bad)
    assert str(single.value) == str(caught.value)
    assert sorted(shop.table) == before and shop.told == []
    shop.sums.verify()


def test_a_view_that_refuses_takes_the_rows_back() -> None:
    shop = Shop([Stock(n, 0, 0) for n in range(100)])
    view = shop.table.select(lambda s: 10 // s.amount if s.id > 50 and s.place else 0).materialize()
    before = list(view)
    with pytest.raises(ZeroDivisionError):
        shop.table.upsert_all([Stock(n, 1, n - 70) for n in range(100)])
    assert {row.amount for row in shop.table} == {0} and list(view) == before
    shop.table.upsert_all([Stock(n, 1, n + 1) for n in range(100)])
    view.verify()


def test_a_row_of_many_takes_few_calls() -> None:
    def per_row(count: int) -> float:
        shop = Shop([Stock(n, 0, 0) for n in range(count)])
        shop.following.close()
        rows = [Stock(n, 0, 1) for n in range(count)]
        return calls_of(lambda: shop.table.upsert_all(rows)) / count

    few, many = per_row(200), per_row(4000)
    assert many <= few and many < 12, (few, many)
