"""A key or a value that raises at any of its calls leaves a group of values as it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

import pytest

from reactive import Collect, Count, CountDistinct, Database, Max, Min, Sum
from tests.budget import sampled, stride
from tests.moody import Moods
from tests.thresholds import WAYS, thresholds

FIRST = 8
"""Number of first moments that are always tried."""


class Moody(Moods):
    """Three of them have the same hash; they are in an order."""

    calls: ClassVar[int] = 0
    at: ClassVar[int] = 0

    __eq__ = Moods.__eq__

    def __hash__(self) -> int:
        self.mood()
        return self.value % 3

    def __lt__(self, other: Any) -> bool:
        self.mood()
        return bool(self.value < other.value)

    def __gt__(self, other: Any) -> bool:
        self.mood()
        return bool(self.value > other.value)


@dataclass(frozen=True, slots=True)
class Row:
    key: Any
    value: Any
    number: float


SEVERAL: dict[str, Callable[[Any], Any]] = {
    "one": lambda t: t.group_by(lambda r: r.key).aggregate(Min(lambda r: r.value)),
    "two of a value": lambda t: t.group_by(lambda r: r.key).aggregate(
        Min(lambda r: r.value), Collect(lambda r: r.value), CountDistinct(lambda r: r.key)
    ),
    "with numbers": lambda t: t.group_by(lambda r: r.key).aggregate(
        Sum(lambda r: r.number), Max(lambda r: r.value), Count()
    ),
    "of all": lambda t: t.aggregate(Max(lambda r: r.value), CountDistinct(lambda r: r.key)),
}
CHANGES: dict[str, Callable[[Any, list[Row]], None]] = {
    "insert": lambda table, rows: table.add(rows[0]),
    "delete": lambda table, rows: table.remove(rows[1]),
    "insert and delete": lambda table, rows: table.replace_all(rows[2:]),
}


@pytest.mark.long
@sampled
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", SEVERAL)
def test_groups_are_right_whenever_one_raises(way: str, change: str, name: str) -> None:
    raised, moment, is_over = 0, 0, False
    while not is_over:
        moment += 1 if moment < FIRST else stride(1, 40)
        random = Random(1)
        held = [
            Row(Moody(random.randrange(3)), Moody(random.randrange(5)), random.random())
            for _ in range(9)
        ]
        with thresholds(WAYS[way]), Database() as db:
            table = db.table(Row)
            view = SEVERAL[name](table).materialize()
            table.add_all(held[1:])
            before = list(view)
            Moody.calls, Moody.at = 0, moment
            try:
                CHANGES[change](table, held)
                is_over = Moody.calls < moment
            except ValueError:
                raised += 1
                Moody.at = 0
                assert list(view) == before
            Moody.at = 0
            view.verify()
            table.clear()
            view.verify()
            assert view.stats().rows == SEVERAL[name](table).materialize().stats().rows
    assert raised
