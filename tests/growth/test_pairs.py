"""A view of pairs hashes each pair once, when the view is made and when pairs change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from reactive import Database


@dataclass(frozen=True, eq=True, slots=True)
class Item:
    number: int
    key: int
    hashed: ClassVar[list[int]] = [0]

    def __hash__(self) -> int:
        self.hashed[0] += 1
        return hash((self.number, self.key))


def hashed(run: Any) -> int:
    before = Item.hashed[0]
    run()
    return Item.hashed[0] - before


@pytest.mark.parametrize("size", [300, 3_000])
def test_a_view_made_late_hashes_each_row_of_a_pair_once(size: int) -> None:
    db = Database()
    left, right = db.table(Item), db.table(Item)
    left.add_all(Item(number, number % 7) for number in range(size))
    right.add_all(Item(number, number) for number in range(7))
    views: list[Any] = []
    query = left.join(right, on=lambda a, b: a.key == b.key)
    assert hashed(lambda: views.append(query.materialize())) == 2 * size
    assert len(views[0]) == size
    views[0].verify()


@pytest.mark.parametrize("size", [300, 3_000])
def test_many_partners_that_come_or_go_at_once_are_hashed_once(size: int) -> None:
    db = Database()
    left, right = db.table(Item), db.table(Item)
    view = left.join(right, on=lambda a, b: a.key == b.key).materialize()
    left.add_all(Item(number, 7) for number in range(size))
    partner, other = Item(7, 7), Item(8, 7)
    right.add(other)
    few = 8  # of the row itself, in its table
    assert hashed(lambda: right.add(partner)) <= 2 * size + few
    assert len(view) == 2 * size
    assert hashed(lambda: right.remove(partner)) <= 2 * size + few
    view.verify()
