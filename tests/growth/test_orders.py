"""A change of an order, and a page of it, take as much where rows have equal keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from reactive import Database
from tests.budget import sampled
from tests.counted_calls import calls_of

ROWS = 6_000


@dataclass(frozen=True, slots=True)
class Bid:
    id: int
    price: int


@dataclass(frozen=True, slots=True, order=True)
class Ordered:
    id: int
    price: int


@sampled
@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("limit", [1, 10, None])
@pytest.mark.parametrize("kind", [Bid, Ordered, tuple])
@pytest.mark.parametrize("is_new", [True, False])
def test_a_new_best_takes_at_most_twice_thecalls_of(
    kind: type, is_new: bool, limit: int | None, descending: bool
) -> None:
    """The new row has a new key, or the key of the best row so far."""
    found = [_changed(kind, is_new, limit, descending, n) for n in (1, 2, 10, 1_000)]
    assert max(found) <= 2 * found[0], found


@pytest.mark.parametrize("per_key", [2, 50, ROWS])
def test_a_page_is_found_once(per_key: int) -> None:
    bids: Any = Database().table(Bid)
    view = bids.order_by(lambda bid: bid.price).materialize()
    bids.add_all(Bid(n, n // per_key) for n in range(ROWS))
    for start in (0, ROWS // 2, ROWS - 20):
        assert [bid.id for bid in view[start : start + 20]] == [*range(start, start + 20)]
        one, page = calls_of(lambda: view[start]), calls_of(lambda: view[start : start + 20])
        assert page <= 4 * one, (page, one)


def _changed(kind: type, is_new: bool, limit: int | None, descending: bool, per_key: int) -> int:
    """Return the calls to add a new best row, and to remove it, with `per_key` rows per key."""
    table: Any = Database().table(kind)
    make: Callable[..., Any] = (lambda *fields: fields) if kind is tuple else kind
    relation = table.order_by(_price, descending=descending)
    relation = relation if limit is None else relation.limit(limit)
    view = relation.materialize()
    table.add_all(make(n, n // per_key) for n in range(ROWS))
    last = (ROWS - 1) // per_key if descending else 0
    best = make(ROWS, last + is_new if descending else last - is_new)
    table.add(best)
    table.remove(best)  # after the one-time work
    count = calls_of(lambda: (table.add(best), table.remove(best)))
    assert len(view) == (ROWS if limit is None else limit)
    return count


def _price(row: Any) -> int:
    price: int = row[1] if isinstance(row, tuple) else row.price
    return price
